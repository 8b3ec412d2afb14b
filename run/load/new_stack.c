// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * The stack of a process that was executed: the module has left the strings there, and this file
 * adds the vectors, as create_elf_tables() of Linux does. What the kernel told the first process
 * of the tree holds for this one, too, but for a few values.
 */
#include "areas.h"
#include "memcpy.h"
#include "new_stack.h"
#include "page.h"
#include "sys.h"
#include "text.h"

#include <asm/prctl.h>
#include <asm/unistd.h>
#include <linux/auxvec.h>
#include <linux/dune.h>

#define LARGE_PAGE	(2UL << 20)
#define VDSO_ROOM	(8 * PAGE_BYTES) /* more than it has */

/*
 * Returns where the kernel would map the vDSO: above the stack, in the same 2 MB, or, since Linux
 * 6.9, anywhere. In a process without random addresses there is no room above the stack.
 */
static u64 vdso_place(const struct dune_start *start)
{
	u64 from = PAGE_UP(start->strings), to;

	if (!start->vdso_is_above)
		return 0;
	to = (from + VDSO_ROOM + LARGE_PAGE - 1) & -LARGE_PAGE;
	if (to > USER_END)
		to = USER_END;
	to -= VDSO_ROOM;
	return to > from ? from + random_offset((to - from) / PAGE_BYTES + 1) : from;
}

/* Returns the address of the vDSO, or 0. */
static u64 map_vdso(const struct dune_start *start)
{
	if (SYS2(__NR_arch_prctl, ARCH_MAP_VDSO_64, vdso_place(start)) < 0)
		return 0;
	return SYS0(DUNE_FIND_VDSO);
}

/* What new_stack() puts below the strings, besides the vectors. */
struct below {
	u64 random[2];		/* AT_RANDOM */
	char platform[16];	/* AT_PLATFORM */
};

/* Returns the value of entry @type, which was @value in the first process. */
static u64 aux_value(const struct dune_start *start, const struct below *below, u64 type, u64 value)
{
	switch (type) {
	case AT_SYSINFO_EHDR:
		return map_vdso(start);
	case AT_UID:
		return SYS0(__NR_getuid);
	case AT_EUID:
		return SYS0(__NR_geteuid);
	case AT_GID:
		return SYS0(__NR_getgid);
	case AT_EGID:
		return SYS0(__NR_getegid);
	case AT_SECURE:
		return start->secure;
	case AT_RANDOM:
		return (u64)below->random;
	case AT_PLATFORM:
		return (u64)below->platform;
	case AT_EXECFN:
		return start->name;
	default:
		return value;
	}
}

/* Stores the addresses of @count strings from @p on, and a NULL. Returns the end of the strings. */
static u64 put_words(u64 **to, u64 p, u32 count)
{
	for (; count; count--) {
		*(*to)++ = p;
		p += text_len((const char *)p) + 1;
	}
	*(*to)++ = 0;
	return p;
}

void new_stack(const struct dune_start *start, struct initial_stack *stack)
{
	u64 words = 1 + start->argc + 1 + start->envc + 1;
	u64 i, at, *sp, *to;
	struct below *below;
	u64 random[3];

	random_bytes(random, sizeof(random));
	for (i = 0; start->auxv[i] != AT_NULL; i += 2)
		;
	words += i + 2;
	at = start->strings - sizeof(*below);
	if (areas_are_random())
		at -= random[2] % (2 * PAGE_BYTES);
	at &= -16UL;
	sp = (u64 *)((at - words * sizeof(*sp)) & -16UL);

	below = (struct below *)at;
	memcpy(below->random, random, sizeof(below->random));
	memcpy(below->platform, start->platform, sizeof(below->platform));
	to = sp;
	/* If the stack does not reach down to here yet, user mode makes it grow (own_fault()). */
	*to++ = start->argc;
	at = put_words(&to, start->strings, start->argc);
	put_words(&to, at, start->envc);
	for (i = 0; start->auxv[i] != AT_NULL; i += 2) {
		*to++ = start->auxv[i];
		*to++ = aux_value(start, below, start->auxv[i], start->auxv[i + 1]);
	}
	*to++ = AT_NULL;
	*to = 0;
	stack_set(stack, sp, start->argc, start->envc, i / 2 + 1);
}
