// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * fork, vfork, clone and clone3 in the guest. All of them become one request to
 * the host half (struct dune_clone, host/process.c).
 */
#include "guest.h"

#define SIGCHLD			17
#define CLONE_ARGS_SIZE_VER0	64
#define CSIGNAL			0xffULL

static long parse_clone3(struct dune_clone *c, const void *args, u64 size)
{
	if (size < CLONE_ARGS_SIZE_VER0)
		return -EINVAL;
	if (size > sizeof(c->args))
		return -E2BIG;
	if (dune_copy(&c->args, args, size))
		return -EFAULT;
	c->nr = __NR_clone3;
	c->args_size = size;
	c->flags = c->args.flags;
	if (!c->args.stack != !c->args.stack_size)
		return -EINVAL;
	if (c->args.stack)
		c->child_rsp = c->args.stack + c->args.stack_size;
	return 0;
}

static long parse(struct dune_tf *tf, struct dune_clone *c)
{
	c->nr = __NR_clone;
	switch ((u32)tf->rax) {
	case __NR_clone3:
		if (from_ring3(tf) && !dune_user_ok((void *)tf->rdi, tf->rsi))
			return -EFAULT;
		return parse_clone3(c, (void *)tf->rdi, tf->rsi);
	case __NR_clone:
		c->flags = (u32)tf->rdi & ~CSIGNAL;
		c->args.exit_signal = tf->rdi & CSIGNAL;
		c->child_rsp = tf->rsi;
		c->args.parent_tid = tf->rdx;
		c->args.child_tid = tf->r10;
		c->args.tls = tf->r8;
		return 0;
	case __NR_vfork:
		c->flags = CLONE_VFORK | CLONE_VM;
		break;
	}
	c->args.exit_signal = SIGCHLD;
	return 0;
}

static long make_child(struct dune_tf *tf, struct dune_clone *c)
{
	if (c->flags & CLONE_THREAD) {
		dune_hypercall(HC_NO_THREADS, 0, 0, 0, 0, 0, 0);
		return -ENOSYS;
	}
	if (c->flags & CLONE_SETTLS) {
		if (c->args.tls >= USER_END)
			return -EPERM;
		c->flags &= ~CLONE_SETTLS;
		c->fs_base = c->args.tls;
	} else {
		c->fs_base = rdmsr(MSR_FS_BASE);
	}
	if (tf->rflags & RFLAGS_IF)
		return dune_syscall_forward(HC_CLONE, (long)c, 0, 0, 0, 0, 0);
	return dune_hypercall(HC_CLONE, (long)c, 0, 0, 0, 0, 0);
}

/* fork(), vfork(), clone(), clone3() */
long dune_sys_clone(struct dune_tf *tf)
{
	struct dune_clone c;
	long err;

	memset(&c, 0, sizeof(c));
	c.tf = tf;
	err = parse(tf, &c);
	return err ? err : make_child(tf, &c);
}

void dune_syscall_clone3(struct dune_tf *tf, const void *args, size_t size)
{
	struct dune_clone c;
	long err;

	memset(&c, 0, sizeof(c));
	c.tf = tf;
	err = parse_clone3(&c, args, size);
	dune_syscall_result(tf, err ? err : make_child(tf, &c));
}
