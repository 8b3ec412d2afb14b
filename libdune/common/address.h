/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Sizes and limits of addresses. */
#ifndef LIBDUNE_ADDRESS_H
#define LIBDUNE_ADDRESS_H

#define PAGE		4096ULL
#define GB_SHIFT	30
#define GB		(1ULL << GB_SHIFT)

/* User addresses of Linux with 4-level tables end a page below 2^47. */
#define USER_BITS	47
#define USER_TOP	(1ULL << USER_BITS)
#define USER_END	(USER_TOP - PAGE)

#endif /* LIBDUNE_ADDRESS_H */
