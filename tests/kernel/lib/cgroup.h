/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* A memory cgroup of the test's own, which its children join. */
#ifndef DUNE_TESTS_CGROUP_H
#define DUNE_TESTS_CGROUP_H

#include <stdbool.h>

/* The version of cgroups by which the kernel has memory cgroups. */
enum cgroups { CGROUPS_NONE, CGROUPS_1, CGROUPS_2 };

/* Call first: mount the file system of memory cgroups, preferably of version 1. */
enum cgroups cgroup_mount(void);
/* Unmount it. */
void cgroup_unmount(void);

/* Make the cgroup, which may have @limit bytes. Returns whether that worked. */
bool cgroup_make(unsigned long limit);
/* Remove it. Returns whether that worked. */
bool cgroup_remove(void);
/* Have the kernel take back from it what can be taken. */
void cgroup_empty(void);
/* The bytes that it is charged with. */
long cgroup_charge(void);
/* The same, after waiting for up to 10 s until it is at most @most: pages are given back late. */
long cgroup_charge_below(long most);
/* Version 1: whether the OOM killer ends processes of the cgroup, or they wait. 0 or -errno. */
int cgroup_set_oom_killer(bool on);

/* In a child, which fails if it cannot: join the cgroup. */
void cgroup_join(void);

#endif
