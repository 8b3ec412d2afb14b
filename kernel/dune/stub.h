/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The stub, by which user mode runs a vCPU: stub.c.
 */
#ifndef DUNE_STUB_H
#define DUNE_STUB_H

/* The offset in the stub of the instruction after its SYSCALL for lseek(). */
#define STUB_ENTERED	7

/* The lengths of the instructions that make a call or probe an address; stub_code.S checks them. */
#define STUB_CALL_LENGTH	2
#define STUB_READ_LENGTH	2
#define STUB_WRITE_LENGTH	4

#ifndef __ASSEMBLER__
#include <linux/compiler.h>
#include <linux/ptrace.h>
#include <linux/types.h>

#include "dune/vcpu.h"

struct dune_vm;
struct file;
struct vm_area_struct;

int stub_init(void);
void stub_cleanup(void);

int stub_mmap(struct vm_area_struct *vma, struct dune_vm *vm);
long stub_can_bind(const struct dune_vcpu *vcpu, unsigned long address);
long stub_size_in_call(void);
loff_t stub_run(struct file *file, loff_t value, int whence);
void stub_add_refused(unsigned long *calls);
long stub_refuses(const struct dune_vcpu *vcpu, const struct pt_regs *call);

/* For child.c. */
bool stub_enters(const struct dune_vcpu *vcpu);
void stub_enter_again(const struct dune_vcpu *vcpu);
struct file *stub_take_child(unsigned long address);
bool stub_put_child(unsigned long address, struct file *child);

/*
 * Lets the thread, whose registers are @regs, continue at @place of the stub. SYSRET, which is
 * faster than IRET, needs RIP in RCX, too. Inline, as the next function: the path of a slow call.
 */
static __always_inline void stub_go_to(const struct dune_vcpu *vcpu, struct pt_regs *regs,
				       unsigned long place)
{
	regs->ip = vcpu->stub + place;
	regs->cx = regs->ip;
}

/* Gives the thread the arguments of the guest's call. */
static __always_inline void stub_load_call(const struct dune_vcpu *vcpu, struct pt_regs *regs)
{
	const struct pt_regs *call = &vcpu->frame;

	regs->di = call->di;
	regs->si = call->si;
	regs->dx = call->dx;
	regs->r10 = call->r10;
	regs->r8 = call->r8;
	regs->r9 = call->r9;
}

#endif /* __ASSEMBLER__ */
#endif /* DUNE_STUB_H */
