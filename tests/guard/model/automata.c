// SPDX-License-Identifier: MIT OR Apache-2.0
/* Compiles the automata for the explorer: see automata.h. */
#include "automata.h"

static void border_act(struct border *border, u32 kind, u32 argument)
{
	machine_act(border, kind, argument);
}

#include "guard/hv/border/crossings.h"

static int border_read_stack(struct border *border, struct border_exit *exit)
{
	return machine_read_stack(border, exit);
}

static int border_is_leaf(const struct border *border, u64 address)
{
	return machine_is_leaf(border, address);
}

struct border_claim automata_match(struct border *border, struct border_exit *exit)
{
	return border_match(border, exit);
}

u8 automata_in(struct border *border, const struct border_exit *exit,
	       const struct border_claim *claim)
{
	return border_in(border, exit, claim);
}

u8 automata_out(struct border *border, struct border_exit *exit)
{
	exit->is_inside = module_has(border->module, exit->at.rip);
	return border_out(border, exit);
}

void automata_publish(struct border *border, u32 activation)
{
	border_publish(border, activation);
}

int automata_flush(struct border *border, u32 *generation)
{
	return border_flush(border, generation);
}

void automata_suspect(struct border *border, u8 suspicion)
{
	border_suspect(border, suspicion);
}

void automata_sweep(struct border *border)
{
	border_sweep(border);
}
