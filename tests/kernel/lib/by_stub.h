/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* For the tests of the stub (struct dune_stub): mapping it, and running a vCPU by it. */
#ifndef DUNE_TESTS_BY_STUB_H
#define DUNE_TESTS_BY_STUB_H

#include "guest.h"

/* How many pages stub_map() maps: 1, or more for a window after the stub. */
extern unsigned int stub_pages;

/* Map a stub from @g's vCPU, at an address of the kernel's choice. Bails out on an error. */
char *stub_map(struct guest *g);
/* Bind @g's vCPU to the stub at @stub: 0 or -errno. */
int stub_bind(struct guest *g, const void *stub);
/* guest_open(), and a stub to which the vCPU is bound. */
char *stub_open(struct guest *g);
/* Run the vCPU @fd by @stub once: 0, or -errno of the module. */
long stub_enter(const void *stub, int fd);
/* guest_resume() and guest_call() by @stub; GUEST_EXIT for a call that the stub did not make. */
enum guest_end stub_resume(struct guest *g, const void *stub);
enum guest_end stub_call(struct guest *g, const void *stub, u64 (*fn)(void *arg), void *arg);

#endif
