# SPDX-License-Identifier: MIT OR Apache-2.0
# Variables for the makefiles of all test programs in C. COMMON is this directory.
COMMON := $(dir $(lastword $(MAKEFILE_LIST)))
CC ?= gcc
# Functions of guests, children and handlers have parameters that not all of them use.
CFLAGS := -std=gnu11 -O2 -g -Wall -Wextra -Wno-unused-parameter -Werror \
	-I$(COMMON) -I$(COMMON)../../include/uapi

# Programs that run some of their own functions as a guest without libc: these
# functions lie where the linker puts them, and use no register that the module
# leaves to the thread.
GUEST_FLAGS := -static -no-pie -fno-pie -mgeneral-regs-only -mno-red-zone \
	-fno-stack-protector -fcf-protection=none -pthread

TAP := $(addprefix $(COMMON),tap.c tap.h)
# Children with a time limit.
CHILD := $(foreach part,child timing,$(addprefix $(COMMON)$(part),.c .h))
# The mappings of a process.
MAPS := $(TAP) $(addprefix $(COMMON)maps,.c .h)
# Seccomp filters.
FILTER := $(addprefix $(COMMON),filter.c filter.h)
# Restartable sequences.
RSEQ := $(addprefix $(COMMON),rseq.c rseq.h)
# clone3() with structures of several sizes.
CLONE3 := $(addprefix $(COMMON),clone3.c clone3.h)
# The kernel log and whatever else tests of a kernel use; nothing of Dune's.
KERNEL := $(TAP) $(CHILD) $(foreach part,klog proc cpu msr tracing modules other_tests, \
	$(addprefix $(COMMON)$(part),.c .h)) $(COMMON)x86.h
# A guest on the module's bare interface.
GUEST := $(KERNEL) $(addprefix $(COMMON),guest.c guest.h guest_calls.h trap.S \
	guest_memory.c guest_memory.h) $(COMMON)../../include/uapi/linux/dune.h
# A guest that the stub enters, and that has no host half.
ALONE := $(foreach part,by_alone by_stub private_show,$(addprefix $(COMMON)$(part),.c .h))
# A KVM machine, and Dune processes that run alongside it.
VM := $(GUEST) $(addprefix $(COMMON),vm.c vm.h vm_guest.c workers.c workers.h registers.h)
