# SPDX-License-Identifier: GPL-2.0-only
# make -f kernel/debug.mk O=BUILD
# builds Debian's 6.1 source with the checkers of debug.config and keeps it:
# BUILD/debug/linux-source-6.1 (headers and bzImage), about 15 minutes once.
O ?= $(CURDIR)/build
DEBUG := $(O)/debug
SOURCE := $(DEBUG)/linux-source-6.1
CONFIG := $(abspath $(dir $(lastword $(MAKEFILE_LIST)))debug.config)
# Kbuild has a variable O of its own: do not hand ours down.
MAKEOVERRIDES :=
KMAKE := $(MAKE) -C $(SOURCE) KBUILD_BUILD_USER=dune KBUILD_BUILD_HOST=dune

all: $(DEBUG)/vmlinuz

$(SOURCE)/Makefile:
	mkdir -p $(DEBUG)
	cd $(DEBUG) && apt-get download linux-source-6.1
	dpkg-deb --fsys-tarfile $(DEBUG)/linux-source-6.1_*.deb | \
		tar -xO ./usr/src/linux-source-6.1.tar.xz | \
		tar -xJ -C $(DEBUG)
	rm -f $(DEBUG)/linux-source-6.1_*.deb
	touch $@

$(SOURCE)/.config: $(CONFIG) $(SOURCE)/Makefile
	$(KMAKE) x86_64_defconfig kvm_guest.config
	cd $(SOURCE) && scripts/kconfig/merge_config.sh -m .config $(CONFIG)
	$(KMAKE) olddefconfig

$(DEBUG)/vmlinuz: $(SOURCE)/.config
	$(KMAKE) bzImage modules_prepare
	cp $(SOURCE)/vmlinux.symvers $(SOURCE)/Module.symvers
	cp $(SOURCE)/arch/x86/boot/bzImage $@

.PHONY: all
