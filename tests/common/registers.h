/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Assembly that fills registers and checks later whether they still hold the
 * same values: for guests of both kinds. Operand [x] is the value, in none of
 * R8 to R15, RAX and RCX; afterwards RCX is not 0 if one has changed.
 */
#ifndef DUNE_TESTS_REGISTERS_H
#define DUNE_TESTS_REGISTERS_H

#define FILL_REGISTERS \
	"mov %[x], %%r8; mov %[x], %%r9; mov %[x], %%r10; mov %[x], %%r11\n" \
	"mov %[x], %%r12; mov %[x], %%r13; mov %[x], %%r14; mov %[x], %%r15\n"

/* COUNT, an immediate, times; RCX is 0 then. */
#define WAIT_IN_LOOP(COUNT) \
	"mov $" #COUNT ", %%ecx\n" \
	"1: loop 1b\n"

#define COMPARE_REGISTERS \
	"xor %%eax, %%eax\n" \
	"cmp %[x], %%r8; setne %%al; or %%eax, %%ecx\n" \
	"cmp %[x], %%r9; setne %%al; or %%eax, %%ecx\n" \
	"cmp %[x], %%r10; setne %%al; or %%eax, %%ecx\n" \
	"cmp %[x], %%r11; setne %%al; or %%eax, %%ecx\n" \
	"cmp %[x], %%r12; setne %%al; or %%eax, %%ecx\n" \
	"cmp %[x], %%r13; setne %%al; or %%eax, %%ecx\n" \
	"cmp %[x], %%r14; setne %%al; or %%eax, %%ecx\n" \
	"cmp %[x], %%r15; setne %%al; or %%eax, %%ecx\n"

#define FILLED_REGISTERS "rax", "r8", "r9", "r10", "r11", "r12", "r13", "r14", "r15", "cc"

#endif
