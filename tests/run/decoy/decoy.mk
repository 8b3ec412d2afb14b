# SPDX-License-Identifier: MIT OR Apache-2.0
# The decoy (decoy.h): a build of dune-run for tests, one without two of its checks, the
# program that attacks them, and the one that watches. Included by tests/run/Makefile,
# in whose directory it runs.
include ../../libdune/ring0.mk

run_objects := $(wildcard $(O)/obj/run/*.o $(O)/obj/run/*/*.o)
runtime_objects := $(OUT)/decoy/runtime.o
control_objects := $(OUT)/decoy/runtime.o $(OUT)/decoy/control.o
wrap_decoy := -Wl,--wrap=check_syscall -Wl,--wrap=areas_init
wrap_control := $(wrap_decoy) -Wl,--wrap=call_iovec -Wl,--wrap=is_hidden
uapi := $(or $(lastword $(sort $(wildcard $(O)/machine/*/usr/src/linux-headers-*-common))),/usr)
run_headers := ../../run/base/super_range.h ../../run/calls/syscalls.def \
	../../libdune/include/dune_addresses.h
decoy_flags := $(CFLAGS) -Wno-unused-result -Ilib -Idecoy -Iunchecked -I../../run \
	-I../../libdune/include

all: $(addprefix $(OUT)/decoy/,dune-run-decoy dune-run-control attack watch)

$(OUT)/decoy/%.o: decoy/%.c decoy/decoy.h $(wildcard ../../run/*/*.h)
	@mkdir -p $(@D)
	$(CC) $(RING0_FLAGS) -Wno-unused-parameter \
		-Idecoy -I../../run $(foreach layer,base own load calls,-I../../run/$(layer)) \
		-I../../libdune/include -I../../include/uapi -c -o $@ $<

# link_runtime OBJECTS FLAGS: run/Makefile links dune-run's own objects with OBJECTS around
# them.
link_runtime = $(if $(run_objects),,$(error build run/ in $(O) first: make build-run)) \
	$(MAKE) -C ../../run O=$(O) PROGRAM=$@ \
	LIBS="$(1) $(O)/lib/libdune-runtime.a" \
	EXTRA_LDFLAGS="$(2)"

$(OUT)/decoy/dune-run-decoy: $(runtime_objects) $(O)/lib/libdune-runtime.a $(run_objects)
	$(call link_runtime,$(runtime_objects),$(wrap_decoy))

$(OUT)/decoy/dune-run-control: $(control_objects) $(O)/lib/libdune-runtime.a $(run_objects)
	$(call link_runtime,$(control_objects),$(wrap_control))

$(OUT)/decoy/ioctls.h: decoy/ioctls.bash
	@mkdir -p $(@D)
	bash $< $(uapi) >$@.new && mv $@.new $@

both_headers := decoy/decoy.h unchecked/unchecked.h lib/kinds.h $(run_headers)

$(OUT)/decoy/attack: $(wildcard decoy/attack/*.[ch]) $(both_headers) \
		$(COMMON)x86.h $(MAPS) $(OUT)/decoy/ioctls.h
	@mkdir -p $(@D)
	$(CC) $(decoy_flags) -I$(OUT)/decoy -o $@ $(filter %.c,$^)

$(OUT)/decoy/watch: $(wildcard decoy/watch/*.[ch]) $(both_headers)
	@mkdir -p $(@D)
	$(CC) $(decoy_flags) -o $@ $(filter %.c,$^)
