# SPDX-License-Identifier: MIT OR Apache-2.0
# Flags of code for ring 0 of the guest, the library's and dune-run's: nothing of
# libc, no red zone, and no FPU registers, which hold the program's values (guest/fpu.c
# saves them). It is position-independent: dune-run lies far above 2 GB.
RING0_FLAGS := -std=gnu11 -O2 -g -Wall -Wextra -Werror -ffreestanding -fPIE \
	-fno-stack-protector -fno-strict-aliasing -fno-asynchronous-unwind-tables \
	-fcf-protection=none -mno-red-zone -mgeneral-regs-only
