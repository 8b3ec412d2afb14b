# SPDX-License-Identifier: MIT OR Apache-2.0
# This makefile drives everything: cargo for the tools, Kbuild for the module,
# and a small makefile in each directory of C. All outputs go below build/.
#
#   make             builds everything; ./setup installs what that needs
#   make test        runs the usual tests in emulated machines, on KERNELS="6.1 6.12";
#                    ONLY=TEXT,TEXT: those whose name contains one of these
#   make test-all    runs all tests on 6.1, 6.12 and newest, in every mode but debug (hours);
#                    resumes where it was interrupted. PARTS="NAME NAME" runs some of its parts
#   make list-parts  lists the names of these parts, and which have passed
#   make fuzz        runs the fuzzers of dune.ko and of the guard for HOURS=1, and resumes; findings
#                    are in build/fuzz. ONLY=dune or ONLY=guard: one of them
#   make decoy       attacks the sandbox's checks for HOURS=1, and resumes; findings are in
#                    build/decoy
#   make demo        runs real programs, natively and under dunectl run
#   make demo-guard  launches the guard, gives it a key and a network card, and attacks both
#   make bench       measures, and writes docs/benchmarks.md, its plot and the README's table
#   make bench-guard measures the guard alone (and guard-keys), on KERNELS
#   make bench-check fails if a figure was not measured, or misses its target and the miss is
#                    not an accepted one
#   make test-vmx    runs the tests in the vmx machine, which is slow; ONLY=TEXT,TEXT: some
#   make test-debug  runs the module's tests on a debug kernel; MACHINE=vmx ONLY=TEXT: in Bochs
#   make install     installs dunectl, dune-agent, dune-run, libdune with its headers, and the
#                    modules of KERNELS to $(DESTDIR)$(PREFIX), where it removes older modules
#   make uninstall   removes what make install installed
#   make deb         makes the Debian packages dune-dkms (the modules) and dune (dunectl, libdune)
#                    in build/packages
#   make module      builds the modules for the kernel that runs here
#   make check-style runs checkpatch and rustfmt, and, if they are installed, clippy and shellcheck
#   make clean       removes what was built; keeps fetched kernels, logs, figures, and what
#                    make fuzz and make decoy found
#   make distclean   removes these, too
#   make help        prints this list
#
# O=DIR builds elsewhere; V=1 shows the commands. KERNELS also chooses the kernels of make,
# make install, make deb, make fuzz, make decoy and, for AMD, make bench; KERNEL=6.12 that of
# make demo and make demo-guard. MACHINE=vmx is for make demo and make test-debug.

O ?= build
PREFIX ?= /usr/local
# "newest" changes from week to week. It is not among these, since a change outside
# must not fail a test here. Which kernels the vmx machine boots is in
# tests/suite.toml (full_kernels, vmx_kernels).
KERNELS ?= 6.1 6.12
# The names are those of Series in tools/machine/src/kernel.rs.
ALL_KERNELS := 6.1 6.12 newest
# The modules that kernel/ builds, in the order of loading, as in
# tools/machine/src/layout.rs and packaging/dkms.conf. A test in layout.rs compares the names in
# all lists, but not their order. packaging/Makefile reads this line.
MODULES := dune dune-guard guard-keys
# Their interfaces for programs.
UAPI := $(wildcard include/uapi/linux/*.h)
quiet := $(if $(V),,-s)
override O := $(abspath $(O))

bin := $(O)/bin
libexec := $(O)/libexec
machine := $(O)/machine
# Each of these directories has a target: build-tests builds tests/.
directories := libdune run examples tests bench
parts := $(directories:%=build-%)

export CARGO_TARGET_DIR := $(O)/cargo
cargo := cargo build --quiet --locked --release
# The agent is alone in an initramfs, so it is static. A panic in any of its threads
# must end process 1, and so the machine: otherwise the harness would wait for ever. Only
# its own build may have these flags.
agent_flags := -C target-feature=+crt-static -C strip=symbols -C panic=abort

.PHONY: all
all: tools kernels modules $(parts)

.PHONY: help
help:
	@sed -n '/^#   make/,/^$$/s/^# \{0,1\}//p' Makefile

# Only ./setup installs packages. Here it reports which ones are missing.
.PHONY: to-build to-test
to-build:
	@./setup --check build
to-test:
	@./setup --check

# ---- Rust ----

.PHONY: tools
tools: | to-build
	@mkdir -p $(bin) $(libexec)
	@echo "  CARGO    tools"
	@$(cargo) -p dunectl -p dune-suite
	@cargo rustc --quiet --locked --release -p dune-agent -- $(agent_flags)
	@for program in dunectl dune-suite; do \
		cmp -s $(O)/cargo/release/$$program $(bin)/$$program || \
			install $(O)/cargo/release/$$program $(bin)/$$program || exit 1; done
	@cmp -s $(O)/cargo/release/dune-agent $(libexec)/dune-agent || \
		install $(O)/cargo/release/dune-agent $(libexec)/dune-agent

# ---- kernels and the module ----

.PHONY: kernels
kernels: tools
	@$(bin)/dunectl machine prepare $(KERNELS) >/dev/null

.PHONY: modules
modules: $(KERNELS:%=module-%)

# A rule prepares the kernels, so their releases are known only in a recipe. The modules that attack
# the guard in its tests have to fit the same kernels; guards that are weakened for tests
# (tests/guard/weak) are built for one.
weak_kernel := 6.1
module-%: kernels
	@for headers in $(machine)/$*/usr/src/linux-headers-*-amd64; do \
		echo "  MODULE   $${headers##*/linux-headers-}"; \
		$(MAKE) $(quiet) --no-print-directory -C kernel O=$(O) KDIR=$$headers \
			RELEASE=$${headers##*/linux-headers-} || exit 1; \
		for tests in attack inside secret; do \
			$(MAKE) $(quiet) --no-print-directory -C tests/guard/$$tests O=$(O) \
				KDIR=$$headers RELEASE=$${headers##*/linux-headers-} || exit 1; \
		done; \
		test $* != $(weak_kernel) || $(MAKE) $(quiet) --no-print-directory \
			-C tests/guard/weak O=$(O) KDIR=$$headers \
			RELEASE=$${headers##*/linux-headers-} modules || exit 1; done

.PHONY: module
module:
	@test -e /lib/modules/$$(uname -r)/build || \
		{ echo "no headers for $$(uname -r): install linux-headers-$$(uname -r)" >&2; \
		exit 69; }
	$(MAKE) -C kernel O=$(O) KDIR=/lib/modules/$$(uname -r)/build RELEASE=$$(uname -r)

# ---- C ----

.PHONY: $(parts)
$(parts): build-%: | to-build
	@echo "  MAKE     $*"
	@$(MAKE) $(quiet) --no-print-directory -C $* O=$(O)

# Programs that are linked with libdune.a or run by dune-run come after these.
$(filter-out build-libdune,$(parts)): $(filter build-libdune,$(parts))
$(filter build-tests build-bench,$(parts)): $(filter build-run build-examples,$(parts))

# ---- tests, demo and benchmarks ----

suite = $(bin)/dune-suite --source $(CURDIR)

.PHONY: check-header
check-header: to-test
	@$(MAKE) $(quiet) --no-print-directory -C tests O=$(O) header

.PHONY: test
test: to-test all check-header
	@$(suite) test $(KERNELS) $(if $(ONLY),--only $(ONLY))

# With this seed, fuzz.t makes other random programs each time, and prints its seed.
.PHONY: test-all
test-all: export FUZZ_SEED = 0
test-all: to-test check-header
	@$(MAKE) $(quiet) --no-print-directory deb KERNELS="$(ALL_KERNELS)"
	@$(suite) test-all $(ALL_KERNELS) $(PARTS:%=--part %)

.PHONY: list-parts
list-parts: tools
	@$(suite) test-all $(ALL_KERNELS) --list

HOURS ?= 1
.PHONY: fuzz
fuzz: all
	@$(suite) fuzz $(KERNELS) --hours $(HOURS) $(if $(ONLY),--only $(ONLY))

.PHONY: decoy
decoy: all
	@$(suite) decoy $(KERNELS) --hours $(HOURS)

KERNEL ?= 6.1
MACHINE ?= svm
.PHONY: demo
demo: to-test
	@$(MAKE) $(quiet) --no-print-directory all KERNELS=$(KERNEL)
	@$(suite) demo --kernel $(KERNEL) --machine $(MACHINE)

.PHONY: demo-guard
demo-guard: to-test
	@$(MAKE) $(quiet) --no-print-directory module-$(KERNEL) KERNELS=$(KERNEL)
	@echo "  MAKE     tests/guard"
	@$(MAKE) $(quiet) --no-print-directory -C tests/guard O=$(O)
	@$(suite) demo-guard --kernel $(KERNEL)

# test-vmx and bench boot the vmx machine on 6.1, whatever KERNELS is (tests/suite.toml).
.PHONY: test-vmx
test-vmx: to-test check-header
	@$(MAKE) $(quiet) --no-print-directory all KERNELS="$(sort $(KERNELS) 6.1)"
	@$(suite) test-vmx $(if $(ONLY),--only $(ONLY))

.PHONY: bench
bench: to-test
	@$(MAKE) $(quiet) --no-print-directory all KERNELS="$(sort $(KERNELS) 6.1)"
	@$(suite) bench $(KERNELS) --machine svm
	@$(suite) bench --machine vmx

.PHONY: bench-guard
bench-guard: to-test all
	@$(suite) bench $(KERNELS) --machine svm --only guard
	@$(suite) bench $(KERNELS) --machine svm --only keys

.PHONY: bench-check
bench-check: tools
	@$(suite) bench-check

.PHONY: test-debug
test-debug: to-test all check-header
	@$(suite) test-debug --machine $(MACHINE) $(if $(ONLY),--only $(ONLY))

# ---- the rest ----

c_files = $(shell git ls-files '*.c' '*.h' '*.S')
shell_files = $(shell git grep -lE '^\#!/bin/(ba)?sh$$')

.PHONY: check-style
check-style: tools
	@echo "  CHECKPATCH"
	@$(suite) checkpatch $(c_files)
	@echo "  RUSTFMT"
	@cargo fmt --all --check
	@if cargo clippy --version >/dev/null 2>&1; then echo "  CLIPPY"; \
		cargo clippy --quiet --locked --release --workspace --all-targets -- -D warnings; \
	else echo "skipped: clippy is not installed (package rust-web-clippy)"; fi
	@if command -v shellcheck >/dev/null; then echo "  SHELLCHECK"; \
		shellcheck --severity=warning -x -P SCRIPTDIR -P tests/common $(shell_files); \
	else echo "skipped: shellcheck is not installed (package shellcheck)"; fi

prefix = $(DESTDIR)$(PREFIX)

.PHONY: install
install: all
	@$(MAKE) $(quiet) --no-print-directory install-files

# Installs what was built for KERNELS, and builds nothing. Modules of other kernels may be older
# than the programs: those in $(O) are not installed, and those in the prefix are removed.
.PHONY: install-files
install-files:
	install -D $(bin)/dunectl $(prefix)/bin/dunectl
	install -D $(libexec)/dune-agent $(prefix)/libexec/dune/dune-agent
	install -D $(libexec)/dune-run $(prefix)/libexec/dune/dune-run
	install -D -m 644 $(O)/lib/libdune.a $(prefix)/lib/libdune.a
	install -D -m 644 libdune/include/dune.h $(prefix)/include/dune.h
	install -D -m 644 -t $(prefix)/include/linux $(UAPI)
	rm -rf $(prefix)/lib/dune/kernel
	for headers in $(KERNELS:%=$(machine)/%/usr/src/linux-headers-*-amd64); do \
		release=$${headers##*/linux-headers-}; for module in $(MODULES:%=%.ko); do \
		install -D -m 644 $(O)/kernel/$$release/$$module \
			$(prefix)/lib/dune/kernel/$$release/$$module || exit 1; done; done

.PHONY: uninstall
uninstall:
	rm -rf $(prefix)/libexec/dune $(prefix)/lib/dune
	rm -f $(prefix)/bin/dunectl $(prefix)/lib/libdune.a \
		$(prefix)/include/dune.h $(UAPI:include/uapi/%=$(prefix)/include/%)

.PHONY: deb
deb: all
	@echo "  DEB      $(notdir $(O))/packages"
	@$(MAKE) $(quiet) --no-print-directory -C packaging O=$(O) >/dev/null

# The files and directories that the build and the tests write to $(O); with O=DIR that directory
# may contain files of other people. parts/ has the records of make test-all.
outputs := bin libexec lib obj kernel cargo tests examples bench packages parts
kept := machine log fuzz decoy bench.json

.PHONY: clean
clean:
	rm -rf $(addprefix $(O)/,$(outputs))

.PHONY: distclean
distclean: clean
	rm -rf $(addprefix $(O)/,$(kept))
	! test -d $(O) || rmdir --ignore-fail-on-non-empty $(O)
