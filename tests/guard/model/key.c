// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * Packed states. Two states that can never be told apart have the same key: counters are only
 * compared for equality with what somebody remembers, so they are replaced by their rank among
 * these; what nobody reads again is left out; and of the states that differ only in the names of
 * the two CPUs or of the two stacks, one stands for all.
 */
#include "world.h"

#include <string.h>

struct cursor {
	u8 *bytes;
	int at;
	bool is_packing;
};

static void move(struct cursor *c, void *field, int size)
{
	if (c->at + size > (int)sizeof(struct key))
		__builtin_trap();
	if (c->is_packing)
		memcpy(c->bytes + c->at, field, size);
	else
		memcpy(field, c->bytes + c->at, size);
	c->at += size;
}

/* Two fields of four bits. */
static void move_pair(struct cursor *c, u8 *low, u8 *high)
{
	u8 both = *low | *high << 4;

	move(c, &both, 1);
	*low = both & 15;
	*high = both >> 4;
}

#define MOVE(c, lvalue) do {				\
	u8 byte_ = (u8)(lvalue);			\
							\
	move(c, &byte_, 1);				\
	if (!(c)->is_packing)				\
		(lvalue) = byte_;			\
} while (0)

static void move_place(struct cursor *c, struct border_place *place)
{
	MOVE(c, place->rip);
	MOVE(c, place->rsp);
}

/* Room for seven CPUs and the IOMMU. */
static void move_who(struct cursor *c, u64 *who)
{
	u8 byte = (*who & 0x7f) | (*who & AWAIT_IOMMU ? 0x80 : 0);

	move(c, &byte, 1);
	*who = (byte & 0x7f) | (byte & 0x80 ? AWAIT_IOMMU : 0);
}

static void move_registration(struct cursor *c, struct border_registration *r)
{
	u8 flags = r->begun | r->stopped << 1;
	u8 privileges = r->privileges;

	move_pair(c, &r->state, &flags);
	move_who(c, &r->awaited);
	r->begun = flags & 1;
	r->stopped = flags >> 1;
	MOVE(c, r->generation);
	MOVE(c, privileges);
	r->privileges = privileges;
}

static void move_activation(struct cursor *c, struct border_activation *a, struct ghost *g)
{
	u8 state = word_state(a->word), cpu = word_cpu(a->word);
	u8 registration = word_registration(a->word);
	u32 count = word_count(a->word);
	u8 owner = cpu | registration << 1;

	move_pair(c, &state, &owner);
	MOVE(c, count);
	a->word = state | (u64)(owner & 1) << 8 | (u64)(owner >> 1) << 16 | (u64)count << 32;
	if (state == ACTIVATION_FREE)
		return;
	move_place(c, &a->home);
	move_place(c, &a->exit);
	move_place(c, &a->back);
	move_place(c, &a->inside);
	move_pair(c, &a->entry, &a->cause);
	MOVE(c, a->stack);
	move_pair(c, &g->state, &g->cause);
	move_pair(c, &g->module, &g->is_saved);
	move_place(c, &g->back);
	move_place(c, &g->inside);
}

static void move_cpu(struct cursor *c, struct world *w, int cpu)
{
	struct border_cpu *b = &w->cpus[cpu];
	u8 raised = b->raised, low, high;

	low = b->view | b->activation << 1;
	move_pair(c, &low, &b->owes);
	b->view = low & 1;
	b->activation = low >> 1;
	move_pair(c, &raised, &w->raised[cpu]);
	b->raised = raised;
	for (int tag = 0; tag < 2; tag++) {
		for (int frame = 0; frame < FRAMES; frame += 2)
			move_pair(c, &w->tlb[cpu][tag][frame], &w->tlb[cpu][tag][frame + 1]);
	}
	high = w->m_is_stale[cpu] | w->must_invalidate[cpu] << 1;
	MOVE(c, high);
	w->m_is_stale[cpu] = high & 1;
	w->must_invalidate[cpu] = high >> 1;
}

static void move_pending(struct cursor *c, struct pending *p)
{
	u8 state = word_state(p->claim.word), registration = word_registration(p->claim.word);
	u32 count = word_count(p->claim.word);
	u8 fixup = p->claim.fixup != NO_FIXUP;

	move_pair(c, &p->kind, &p->module);
	if (p->kind == NOTHING)
		return;
	if (p->kind == ACKNOWLEDGE) {
		MOVE(c, p->generation);
		return;
	}
	move_pair(c, &p->claim.crossing, &p->claim.entry);
	move_pair(c, &p->claim.activation, &fixup);
	p->claim.fixup = fixup ? 0 : NO_FIXUP;
	move_pair(c, &state, &registration);
	MOVE(c, count);
	p->claim.word = state | (u64)registration << 16 | (u64)count << 32;
	move_place(c, &p->exit.at);
	MOVE(c, p->exit.return_address);
	MOVE(c, p->exit.is_proper);
	p->exit.stack = stack_of(p->exit.at.rsp);
	p->exit.is_fetch = 1;
}

static void move_world(struct cursor *c, struct world *w)
{
	u8 flags;

	for (int module = 0; module < config.modules; module++) {
		flags = w->is_evil[module] | w->is_settled[module] << 1 |
			w->was_begun[module] << 2 | w->was_stopped[module] << 3;
		move_registration(c, &w->registrations[module]);
		move_pair(c, &flags, &w->opened[module]);
		w->is_evil[module] = flags & 1;
		w->is_settled[module] = flags >> 1 & 1;
		w->was_begun[module] = flags >> 2 & 1;
		w->was_stopped[module] = flags >> 3;
	}
	for (int i = 0; i < ACTIVATIONS; i++)
		move_activation(c, &w->activations[i], &w->ghosts[i]);
	MOVE(c, w->used);
	for (int cpu = 0; cpu < CPUS; cpu++)
		move_cpu(c, w, cpu);
	for (int who = 0; who <= CPUS; who++)
		move_pending(c, &w->pending[who]);
	for (int frame = 0; frame < FRAMES; frame += 2) {
		for (int view = 0; view < VIEWS; view++)
			move_pair(c, &w->views[view][frame], &w->views[view][frame + 1]);
		move_pair(c, &w->iotlb[frame], &w->iotlb[frame + 1]);
	}
	flags = w->has_secret | w->is_locked << 1 | w->is_moved << 2;
	MOVE(c, flags);
	w->has_secret = flags & 1;
	w->is_locked = flags >> 1 & 1;
	w->is_moved = flags >> 2;
}

/* The number of different values in @all that are smaller than @value. */
static u32 rank(const u32 *all, int count, u32 value)
{
	u32 result = 0;

	for (int i = 0; i < count; i++) {
		bool is_first = true;

		for (int j = 0; j < i; j++)
			is_first = is_first && all[j] != all[i];
		result += is_first && all[i] < value;
	}
	return result;
}

static void rank_generations(struct world *w, int module)
{
	u32 all[CPUS + 2] = { w->registrations[module].generation };
	int count = 1;

	for (int who = 0; who <= CPUS; who++) {
		if (w->pending[who].kind == ACKNOWLEDGE && w->pending[who].module == module)
			all[count++] = w->pending[who].generation;
	}
	for (int who = 0; who <= CPUS; who++) {
		if (w->pending[who].kind == ACKNOWLEDGE && w->pending[who].module == module)
			w->pending[who].generation = rank(all, count, w->pending[who].generation);
	}
	w->registrations[module].generation = rank(all, count, all[0]);
}

static u64 with_count(u64 word, u32 count)
{
	return (word & 0xffffffff) | (u64)count << 32;
}

static void rank_counts(struct world *w, int activation)
{
	u64 *word = &w->activations[activation].word;
	u32 all[CPUS + 1] = { word_count(*word) };
	int count = 1;

	for (int cpu = 0; cpu < CPUS; cpu++) {
		const struct pending *p = &w->pending[cpu];

		if (p->kind == CLAIM && p->claim.activation == activation)
			all[count++] = word_count(p->claim.word);
	}
	for (int cpu = 0; cpu < CPUS; cpu++) {
		struct pending *p = &w->pending[cpu];

		if (p->kind == CLAIM && p->claim.activation == activation) {
			u64 ranked = rank(all, count, word_count(p->claim.word));

			p->claim.word = with_count(p->claim.word, ranked);
		}
	}
	*word = with_count(*word, rank(all, count, all[0]));
}

/* Leaves out what is written before it is read again. */
static void forget(struct world *w)
{
	static const struct border_place nowhere;

	for (int i = 0; i < ACTIVATIONS; i++) {
		struct border_activation *a = &w->activations[i];

		switch (word_state(a->word)) {
		case ACTIVATION_FREE:
			*a = (struct border_activation){ .word = a->word };
			break;
		case ACTIVATION_DEAD:
			a->home = nowhere;
			a->exit = nowhere;
			a->inside = nowhere;
			a->cause = 0;
			a->entry = 0;
			a->stack = 0;
			break;
		case ACTIVATION_IN:
			a->back = nowhere;
			a->inside = nowhere;
			a->cause = 0;
			break;
		case ACTIVATION_OUT_CALL:
			a->cause = 0;
			break;
		}
	}
}

#define SWAP(a, b) do {			\
	__typeof__(a) swapped_ = (a);	\
					\
	(a) = (b);			\
	(b) = swapped_;			\
} while (0)

static void swap_cpus(struct world *w)
{
	for (int module = 0; module < config.modules; module++) {
		u64 *awaited = &w->registrations[module].awaited;

		*awaited = (*awaited & AWAIT_IOMMU) | (*awaited & 1) << 1 | (*awaited >> 1 & 1);
	}
	for (int i = 0; i < ACTIVATIONS; i++) {
		if (word_state(w->activations[i].word) == ACTIVATION_IN)
			w->activations[i].word ^= 1 << 8;
	}
	SWAP(w->cpus[0], w->cpus[1]);
	SWAP(w->pending[0], w->pending[1]);
	SWAP(w->raised[0], w->raised[1]);
	SWAP(w->m_is_stale[0], w->m_is_stale[1]);
	SWAP(w->must_invalidate[0], w->must_invalidate[1]);
	for (int frame = 0; frame < FRAMES; frame++) {
		SWAP(w->tlb[0][IN_K][frame], w->tlb[1][IN_K][frame]);
		SWAP(w->tlb[0][IN_M][frame], w->tlb[1][IN_M][frame]);
	}
}

static void swap_stack(struct border_place *place)
{
	if (place->rsp && place->rsp < PRIVATE_STACKS)
		place->rsp += stack_of(place->rsp) ? -STACK_SIZE : STACK_SIZE;
}

static void swap_stacks(struct world *w)
{
	for (int i = 0; i < ACTIVATIONS; i++) {
		struct border_activation *a = &w->activations[i];
		u8 state = word_state(a->word);

		swap_stack(&a->home);
		swap_stack(&a->exit);
		swap_stack(&a->back);
		swap_stack(&a->inside);
		swap_stack(&w->ghosts[i].back);
		swap_stack(&w->ghosts[i].inside);
		if (state != ACTIVATION_FREE && state != ACTIVATION_DEAD)
			a->stack = !a->stack;
	}
	for (int cpu = 0; cpu < CPUS; cpu++) {
		if (w->pending[cpu].kind == CLAIM)
			swap_stack(&w->pending[cpu].exit.at);
	}
}

/* Packs the state, if it is smaller than what is packed. */
static void pack_smaller(struct key *key, struct world *w)
{
	struct key other = { 0 };
	struct cursor c = { .bytes = other.bytes, .is_packing = true };

	move_world(&c, w);
	if (memcmp(&other, key, sizeof(other)) < 0)
		*key = other;
}

void key_pack(struct key *key, const struct world *w)
{
	struct world copy = *w;

	memset(key, 0xff, sizeof(*key));
	for (int module = 0; module < config.modules; module++)
		rank_generations(&copy, module);
	for (int i = 0; i < ACTIVATIONS; i++)
		rank_counts(&copy, i);
	forget(&copy);
	for (int cpu = 0; cpu < config.cpus; cpu++) {
		for (int stack = 0; stack < config.stacks; stack++) {
			pack_smaller(key, &copy);
			if (config.stacks == STACKS)
				swap_stacks(&copy);
		}
		if (config.cpus == CPUS)
			swap_cpus(&copy);
	}
}

void key_unpack(struct world *w, const struct key *key)
{
	static struct world first;
	static bool is_made;
	struct cursor c = { .bytes = (u8 *)key->bytes };

	if (!is_made)
		world_init(&first);
	is_made = true;
	*w = first;
	move_world(&c, w);
}
