/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The modules of KVM and of Dune: load, unload, who holds them. */
#ifndef DUNE_TESTS_MODULES_H
#define DUNE_TESTS_MODULES_H

#include <stdbool.h>

/* Whether this kernel has KVM's module for this processor. */
bool kvm_exists(void);
bool kvm_is_loaded(void);
/* With a parameter of kvm.ko, or NULL. 0 or -errno. */
int kvm_load(const char *parameter);
/* kvm.ko alone, which turns nothing on. 0 or -errno. */
int kvm_load_common(void);
/* kvm_amd or kvm_intel, and kvm. 0, or -errno of the first that stays. */
int kvm_unload(void);
/* Only kvm_amd or kvm_intel. */
int kvm_unload_vendor(void);

bool dune_is_loaded(void);
/* The file of the module: $DUNE_KO, or the one for this kernel below $BUILD. */
const char *dune_module(void);
/* With parameters of dune.ko, "" for none. 0 or -errno; -EEXIST if it is loaded. */
int dune_insert(const char *parameters);
/* dune_insert() if it is not loaded, and wait for the device. */
int dune_load(const char *parameters);
/* 0 or -errno, -EWOULDBLOCK while the module has users. */
int dune_unload(void);

/* Users of a module when they have settled down to @wanted; -1 without it. */
long module_users(const char *name, long wanted);
/* Dune's when all have gone; the last fput of dead processes may come much later. */
long dune_users_left(void);
const char *kvm_vendor(void);

/*
 * Whether @cpu has virtualization on: EFER.SVME on AMD. -1 where that cannot
 * be seen: Intel's bit is in CR4, which nothing shows.
 */
int virtualization_is_on(int cpu);

#endif
