/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The automata, as they are or broken (mutants): automata.c is compiled with the source of each.
 * The rest of the explorer is compiled once, with the shipped headers.
 */
#ifndef TESTS_GUARD_MODEL_AUTOMATA_H
#define TESTS_GUARD_MODEL_AUTOMATA_H

#include "guard/hv/border/border.h"

struct border_claim automata_match(struct border *border, struct border_exit *exit);
u8 automata_in(struct border *border, const struct border_exit *exit,
	       const struct border_claim *claim);
u8 automata_out(struct border *border, struct border_exit *exit);
void automata_publish(struct border *border, u32 activation);
int automata_flush(struct border *border, u32 *generation);
void automata_suspect(struct border *border, u8 suspicion);
void automata_sweep(struct border *border);

/* Of the machine, for the automata. */
void machine_act(struct border *border, u32 kind, u32 argument);
int machine_read_stack(struct border *border, struct border_exit *exit);
int machine_is_leaf(const struct border *border, u64 address);

#endif
