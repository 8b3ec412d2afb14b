/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Common parts of both vendors' handlers of exits: exit.c.
 */
#ifndef DUNE_EXIT_H
#define DUNE_EXIT_H

#include <linux/types.h>

struct dune_vcpu;
struct vcpu_hw;

/* The answer of a vendor's table to an exit. */
enum answer {
	ANSWER_NONE,	/* the table has no such exit */
	ANSWER_GP,	/* #GP(0) */
	ANSWER_UD,	/* #UD */
	ANSWER_EXIT,	/* the handler has a case of its own */
};

void exit_init(void);

int exit_answer(struct dune_vcpu *vcpu, enum answer answer,
		void (*inject)(struct vcpu_hw *hw, u32 vector, bool error));

void exit_bus_lock(unsigned long rip);
bool exit_split_lock(unsigned long rip);
void exit_machine_check(void);

#endif /* DUNE_EXIT_H */
