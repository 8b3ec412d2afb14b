# SPDX-License-Identifier: MIT OR Apache-2.0
# The sandbox without its checks (unchecked.h): two builds of dune-run for tests, and a program that
# attacks them. They are in the folder of decoy's programs. Included by tests/run/Makefile after
# decoy/decoy.mk.
unchecked := $(OUT)/decoy/unchecked
unchecked_objects := $(unchecked)/runtime.o
unchecked_control := $(unchecked)/runtime.o $(unchecked)/control.o
wrap_unchecked := -Wl,--wrap=check_syscall -Wl,--wrap=is_hidden -Wl,--wrap=dune_runtime_close

all: $(addprefix $(OUT)/decoy/,dune-run-unchecked dune-run-unchecked-control pitfalls executed \
	executed.address stale_again)

$(unchecked)/%.o: unchecked/%.c unchecked/unchecked.h $(wildcard ../../run/*/*.h) \
		../../libdune/common/layout.h
	@mkdir -p $(@D)
	$(CC) $(RING0_FLAGS) -Wno-unused-parameter \
		-Iunchecked -I../../run $(foreach layer,base own load calls,-I../../run/$(layer)) \
		-I../../libdune/include -I../../libdune/common -I../../include/uapi -c -o $@ $<

$(OUT)/decoy/dune-run-unchecked: $(unchecked_objects) $(O)/lib/libdune-runtime.a $(run_objects)
	$(call link_runtime,$(unchecked_objects),$(wrap_unchecked))

$(OUT)/decoy/dune-run-unchecked-control: $(unchecked_control) $(O)/lib/libdune-runtime.a \
		$(run_objects)
	$(call link_runtime,$(unchecked_control),$(wrap_unchecked))

$(OUT)/decoy/pitfalls: $(wildcard unchecked/pitfalls/*.[ch]) unchecked/unchecked.h \
		$(run_headers) $(MAPS)
	@mkdir -p $(@D)
	$(CC) $(decoy_flags) -Iunchecked -o $@ $(filter %.c,$^)

$(OUT)/decoy/executed $(OUT)/decoy/stale_again: $(OUT)/decoy/%: unchecked/%.c
	@mkdir -p $(@D)
	$(CC) $(decoy_flags) -static -o $@ $<

# Where ring 0 has its descriptor table
$(OUT)/decoy/executed.address: $(OUT)/decoy/dune-run-unchecked
	nm $<.image | sed -n 's/^\([0-9a-f]*\) . first_block$$/0x\1/p' >$@.new
	test -s $@.new && mv $@.new $@
