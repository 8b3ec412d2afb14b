// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * fork, vfork, clone and clone3 in the guest. Each of them becomes a struct dune_clone, of which
 * a service makes the child (@make_child of services.h): host/process.c or, without a host half,
 * alone/process.c.
 */
#include "guest.h"

#define CLONE_ARGS_SIZE_VER0	64
#define CSIGNAL			0xffULL

/*
 * Returns 0 if [from, end) has only zeros, -E2BIG if not, or -EFAULT. (check_zeros() of
 * run/base/user_memory.c does the same with a check of the range.)
 */
static long check_zeros(const char *from, const char *end)
{
	char part[64];
	u64 i, n;

	for (; from < end; from += n) {
		n = (u64)(end - from) < sizeof(part) ? (u64)(end - from) : sizeof(part);
		if (dune_copy(part, from, n))
			return -EFAULT;
		for (i = 0; i < n; i++) {
			if (part[i])
				return -E2BIG;
		}
	}
	return 0;
}

/*
 * Fills @c from @size bytes at @args, in memory of the caller or, with @user, of ring 3. As in
 * Linux, a larger structure than ours is one of a newer caller, which asks for nothing more
 * if the rest is zero (copy_struct_from_user()).
 */
static long parse_clone3(struct dune_clone *c, const void *args, u64 size, bool user)
{
	u64 known = size < sizeof(c->args) ? size : sizeof(c->args);
	long err;

	if (size < CLONE_ARGS_SIZE_VER0)
		return -EINVAL;
	if (size > PAGE)
		return -E2BIG;
	if (user && !dune_user_ok(args, size))
		return -EFAULT;
	err = check_zeros(args + known, args + size);
	if (err)
		return err;
	if (dune_copy(&c->args, args, known))
		return -EFAULT;
	c->nr = __NR_clone3;
	c->args_size = known;
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
		return parse_clone3(c, (void *)tf->rdi, tf->rsi, from_ring3(tf));
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

static long make_child(struct dune_clone *c)
{
	if (c->flags & CLONE_THREAD) {
		dune_services->no_threads();
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
	return dune_services->make_child(c);
}

/* Carries out fork(), vfork(), clone() and clone3(). */
long dune_sys_clone(struct dune_tf *tf)
{
	struct dune_clone c;
	long err;

	memset(&c, 0, sizeof(c));
	c.tf = tf;
	err = parse(tf, &c);
	return err ? err : make_child(&c);
}

long dune_execveat(long fd, u64 name, u64 argv, u64 envp, long flags)
{
	return dune_services->execute(fd, name, argv, envp, flags);
}

void dune_syscall_clone3(struct dune_tf *tf, const void *args, size_t size)
{
	struct dune_clone c;
	long err;

	memset(&c, 0, sizeof(c));
	c.tf = tf;
	err = parse_clone3(&c, args, size, false);
	dune_syscall_result(tf, err ? err : make_child(&c));
}
