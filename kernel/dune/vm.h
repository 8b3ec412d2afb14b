/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * An open /dev/dune is an address space: vm.c.
 */
#ifndef DUNE_VM_H
#define DUNE_VM_H

#include <linux/dune.h>
#include <linux/fs.h>
#include <linux/kref.h>
#include <linux/mutex.h>

#include "dune/memory/second_level.h"

struct mm_struct;

/**
 * struct dune_vm - an address space, that of the process that opened /dev/dune or of a child
 * @kref:	one for the file, one for each vCPU
 * @mm:		held by mmgrab(): the structure stays, its pages may go. A vCPU
 *		runs only while current->mm is this mm, so the page table that the
 *		processor walks is always the live one.
 *		That of a child process is its parent's until vm_settle().
 * @unborn:	that of a child process, until vm_settle()
 * @lock:	protects @prepared, and @second_level until @prepared is set
 * @prepared:	vm_prepare() has called second_level_get()
 * @child:	the file of the vCPU that the process's first thread will enter, while it is in a
 *		mapping of the stub that a fork has made (stub.c); or NULL. Changed by xchg() once
 *		a mapping refers to the vm
 * @template:	the file of a vCPU that no thread enters: what the process executes begins with a
 *		copy of it (exec.c). Children inherit it. NULL, until it is set once
 * @second_level: leads guests to the memory of @mm, and to private memory. Not prepared by
 *		open(): misc_open() holds the lock of all misc devices then, and the lock of
 *		@mm may be held until the server of a FUSE file replies.
 */
struct dune_vm {
	struct kref kref;
	struct mm_struct *mm;
	bool unborn;
	struct mutex lock;	/* see @lock above */
	bool prepared;
	struct file *child;
	struct file *template;
	struct second_level second_level;
};

extern const struct file_operations vm_fops;

/* vm.c */
struct dune_vm *vm_new(void);
struct dune_vm *vm_new_child(void);
int vm_settle(struct dune_vm *vm);
int vm_prepare(struct dune_vm *vm);
void vm_get(struct dune_vm *vm);
void vm_put(struct dune_vm *vm);

/* info.c: DUNE_GET_INFO, and the answer to DUNE_IGNORED_SIGNALS */
long info_get(struct dune_info __user *argument);
u64 info_ignored_signals(void);

#endif /* DUNE_VM_H */
