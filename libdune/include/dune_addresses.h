/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The linear addresses of a runtime's memory (dune_runtime.h), for ring 0 alone. For C, and for the
 * linker script of the runtime (run/image.ld).
 *
 *	DUNE_PRIVATE_BASE	all private memory that the address space can have, in one gigabyte.
 *				The first address of the upper half: that of entry 256 of a root
 *	DUNE_IMAGE_BASE		the runtime's image: code, which can be executed and not written;
 *				constants; data. The pages of its .bss are added when they are first
 *				used, so those that a process never uses are not copied for its
 *				children.
 *	DUNE_SCRATCH_AT		the scratch (dune_copies.h), which is memory of the process. Here
 *				ring 0 accesses it without RFLAGS.AC, which SMAP demands at the
 *				other address
 */
#ifndef DUNE_ADDRESSES_H
#define DUNE_ADDRESSES_H

#define DUNE_PRIVATE_BASE	0xffff800000000000
#define DUNE_IMAGE_BASE		(DUNE_PRIVATE_BASE + 0x40000000)
#define DUNE_SCRATCH_AT		(DUNE_IMAGE_BASE + 0x180000)

#endif /* DUNE_ADDRESSES_H */
