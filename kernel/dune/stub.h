/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The stub, by which user mode runs a vCPU: stub.c.
 */
#ifndef DUNE_STUB_H
#define DUNE_STUB_H

/* The offset in the stub of the instruction after its SYSCALL for lseek(). */
#define STUB_ENTERED	7

#ifndef __ASSEMBLER__
#include <linux/types.h>

/* The length of SYSCALL. */
#define SYSCALL_LENGTH	2

struct dune_vcpu;
struct dune_vm;
struct file;
struct pt_regs;
struct vm_area_struct;

int stub_init(void);
void stub_cleanup(void);

int stub_mmap(struct vm_area_struct *vma, struct dune_vm *vm);
long stub_bind(struct dune_vcpu *vcpu, unsigned long address);
loff_t stub_run(struct file *file, loff_t result, int whence);
long stub_refuses(const struct pt_regs *call);

/* For child.c. */
bool stub_enters(const struct dune_vcpu *vcpu);
void stub_enter_again(const struct dune_vcpu *vcpu);
struct file *stub_take_child(unsigned long address);
bool stub_put_child(unsigned long address, struct file *child);

#endif /* __ASSEMBLER__ */
#endif /* DUNE_STUB_H */
