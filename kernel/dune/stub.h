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
#include <linux/sched.h>
#include <linux/sched/task_stack.h>
#include <linux/thread_info.h>
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

/* For birth.c: the vCPU that waits for a child in the mapping of the stub. */
struct file *stub_take_child(unsigned long address);
bool stub_put_child(unsigned long address, struct file *child);

/*
 * Returns whether the calling thread is in the lseek() of the stub to which @vcpu is bound. Only
 * that instruction gets here with its RIP: not an lseek() elsewhere, and not one that a guest makes
 * (dispatch_listed() in hypercall.c), which would begin a run within a run. Inline: the path of a
 * slow call, as the function below.
 *
 * A tracer can set this RIP in a 32-bit call (INT 0x80). Seccomp filters would then take the
 * guest's calls for 32-bit ones.
 */
static __always_inline bool stub_enters(const struct dune_vcpu *vcpu)
{
	return vcpu->stub && !in_ia32_syscall() &&
	       task_pt_regs(current)->ip == vcpu->stub + STUB_ENTERED;
}

/*
 * Lets the thread, whose registers are @regs, continue at @place of the stub. SYSRET, which is
 * faster than IRET, needs RIP in RCX, too.
 */
static __always_inline void stub_go_to(const struct dune_vcpu *vcpu, struct pt_regs *regs,
				       unsigned long place)
{
	regs->ip = vcpu->stub + place;
	regs->cx = regs->ip;
}

#endif /* __ASSEMBLER__ */
#endif /* DUNE_STUB_H */
