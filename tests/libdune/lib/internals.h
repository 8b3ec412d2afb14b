/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Functions of libdune that dune.h does not have, for tests that include libc's headers: libdune's
 * own (memory/memory.h, host/host.h) do not go with these. internals.c compares the two.
 */
#ifndef DUNE_TESTS_INTERNALS_H
#define DUNE_TESTS_INTERNALS_H

#include <dune.h>
#include <stdbool.h>
#include <stdint.h>

struct dune_thread *dune_thread_new(void);
void dune_page_init(const struct dune_config *cfg);
void dune_pt_init(bool have_1g);
dune_pte *dune_pt_new(void);
int dune_pt_touch(dune_pte *root, const void *p, uint64_t size);
int dune_pt_touch_core(dune_pte *root);
void dune_granule_init(uint32_t granules);
uint64_t dune_granule_gpa(uint64_t va);
long dune_granule_tell(int vcpu, uint64_t gpa);
long dune_host_probe_read(const void *p, const uint32_t *nsig);
long dune_host_probe_write(void *p, const uint32_t *nsig);

#endif
