/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Pages, and the layout of user addresses. */
#ifndef DUNE_RUN_PAGE_H
#define DUNE_RUN_PAGE_H

#define USER_END	0x7ffffffff000UL		/* Linux's TASK_SIZE */
#define PAGE_BYTES	4096UL
#define PAGE_DOWN(x)	((x) & ~(PAGE_BYTES - 1))
#define PAGE_UP(x)	PAGE_DOWN((x) + PAGE_BYTES - 1)

/* Linux's base for position-independent programs: two thirds of the user addresses. */
#define DYN_BASE	PAGE_DOWN(USER_END / 3 * 2)

#endif /* DUNE_RUN_PAGE_H */
