/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Pages, and where user addresses end. */
#ifndef DUNE_RUN_PAGE_H
#define DUNE_RUN_PAGE_H

#define USER_END	0x7ffffffff000UL		/* Linux's TASK_SIZE */
#define PAGE_BYTES	4096UL
#define PAGE_DOWN(x)	((x) & ~(PAGE_BYTES - 1))
#define PAGE_UP(x)	PAGE_DOWN((x) + PAGE_BYTES - 1)

#endif /* DUNE_RUN_PAGE_H */
