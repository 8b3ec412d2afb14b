/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Loading and unloading kernel modules, and their reference counts. */
#ifndef DUNE_TESTS_MODULES_H
#define DUNE_TESTS_MODULES_H

#include <stdbool.h>

/* ---- any module ---- */

/* Run modprobe(8), with @parameter of @module, or NULL. Returns whether it succeeded. */
bool modprobe(const char *option, const char *module, const char *parameter);

/* The directory of all that is built: $DUNE_BUILD, or "build". */
const char *build_directory(void);

bool module_is_loaded(const char *name);
/*
 * The file of a module of this repository for this kernel: $DUNE_KO for "dune", and likewise
 * for other names, or else the one in build_directory().
 */
const char *module_file(const char *name);
/* With parameters of the module, "" for none. 0 or -errno; -EEXIST if it is loaded. */
int module_insert(const char *name, const char *parameters);
/*
 * module_insert() if it is not loaded, and wait for the device of that name (-ENODEV if it does not
 * come).
 */
int module_load(const char *name, const char *parameters);
/* 0 or -errno, -EWOULDBLOCK while the module has users. */
int module_unload(const char *name);

/* The module's users (references to it) at this moment; -1 without the module. */
long module_users_now(const char *name);
/* Its users when they have settled down to @wanted; -1 without it. */
long module_users(const char *name, long wanted);
/* Its users when all have gone; the last fput of dead processes may come much later. */
long module_users_left(const char *name);

/* ---- KVM, and fuse ---- */

/* The module of KVM for this processor: kvm_amd or kvm_intel. */
const char *kvm_vendor(void);
/* Whether this kernel has KVM's module for this processor. */
bool kvm_exists(void);
bool kvm_is_loaded(void);
/*
 * With a parameter of kvm.ko, or NULL. 0 or -errno: -EIO if modprobe fails, which prints the
 * reason, and -ENODEV without /dev/kvm.
 */
int kvm_load(const char *parameter);
/* kvm.ko alone, which enables no virtualization. 0, or -EIO if modprobe fails. */
int kvm_load_common(void);
/* kvm_amd or kvm_intel, and kvm. 0, or -errno of the first that stays. */
int kvm_unload(void);
/* Only kvm_amd or kvm_intel. */
int kvm_unload_vendor(void);
/* The module fuse, for /dev/fuse. 0, or -EIO if modprobe fails. */
int fuse_load(void);

/* ---- dune.ko: the same as for any module ---- */

static inline bool dune_is_loaded(void)
{
	return module_is_loaded("dune");
}

static inline const char *dune_module(void)
{
	return module_file("dune");
}

static inline int dune_insert(const char *parameters)
{
	return module_insert("dune", parameters);
}

static inline int dune_load(const char *parameters)
{
	return module_load("dune", parameters);
}

static inline int dune_unload(void)
{
	return module_unload("dune");
}

static inline long dune_users_now(void)
{
	return module_users_now("dune");
}

static inline long dune_users_left(void)
{
	return module_users_left("dune");
}

/* Unload dune.ko if it is loaded, and load it. 0 or -errno of the first that fails. */
int dune_reload(const char *parameters);
/* Unload KVM, too, and load dune.ko without parameters. */
int dune_load_without_kvm(void);

#endif
