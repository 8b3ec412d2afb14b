/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Single-stepping a part of a program in ring 0: between step_on() and step_off() a debug
 * exception follows each instruction, for which the program has set a handler
 * (dune_trap_set(X86_TRAP_DB)).
 */
#ifndef DUNE_TESTS_STEP_H
#define DUNE_TESTS_STEP_H

#include <asm/processor-flags.h>

/* Both leave the red zone as it is. */
#define step_on()								\
	__asm__ volatile("lea -128(%%rsp), %%rsp; pushfq; orq %0, (%%rsp); popfq;"	\
			 "lea 128(%%rsp), %%rsp"				\
			 : : "i" (X86_EFLAGS_TF) : "memory", "cc")
#define step_off()								\
	__asm__ volatile("lea -128(%%rsp), %%rsp; pushfq; andq %0, (%%rsp); popfq;"	\
			 "lea 128(%%rsp), %%rsp"				\
			 : : "i" (~X86_EFLAGS_TF) : "memory", "cc")

#endif
