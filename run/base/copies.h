/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Copies for the kernel, which cannot read the runtime's own memory. <dune_copies.h> describes what
 * belongs in the window and what in the scratch.
 */
#ifndef DUNE_RUN_COPIES_H
#define DUNE_RUN_COPIES_H

#include "types.h"

#include <dune_copies.h>

/* Where the kernel finds nothing: what the functions below return if there is no room. */
#define NOWHERE		(~0UL - 0xfff)

/*
 * What the kernel gets for @len bytes at @p, or for the string @s, which it reads: a copy in the
 * window.
 */
u64 shown(const void *p, u64 len);
u64 shown_string(const char *s);
/* The same for a copy in the scratch. */
u64 scratched(const void *p, u64 len);
u64 scratched_string(const char *s);

/*
 * What the kernel gets for @len bytes, to which it writes: room in the scratch. If @ret, the call's
 * result, is no error, take_result() copies from there to @p. Returns @ret, or -EFAULT without
 * memory for that.
 */
u64 result_room(u64 len);
long take_result(void *p, u64 room, u64 len, long ret);

#endif /* DUNE_RUN_COPIES_H */
