// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * What dune-run needs of libdune's inside: the number of the descriptor that
 * it hides from the program. Before entering there is none.
 */
#include <internal.h>

int dune_vcpu_fd(void);
long dune_vcpu_fd_move(void);
void dune_vcpu_inherit(int fd);

int dune_vcpu_fd(void)
{
	return dune_active() ? dune_self()->vcpu : -1;
}

/* Before entering: @fd is the vCPU of the program that called execve. */
void dune_vcpu_inherit(int fd)
{
	dune_vcpu_inherited = fd;
}

/* Another number for it, and the old one free. */
long dune_vcpu_fd_move(void)
{
	struct dune_thread *t = dune_self();
	long fd = dune_hypercall(__NR_fcntl, t->vcpu, F_DUPFD_CLOEXEC, t->vcpu + 1, 0, 0, 0);

	if (fd < 0)
		fd = dune_hypercall(__NR_fcntl, t->vcpu, F_DUPFD_CLOEXEC, 3, 0, 0, 0);
	if (fd < 0)
		return fd;
	dune_hypercall(__NR_close, t->vcpu, 0, 0, 0, 0, 0);
	t->vcpu = fd;
	return fd;
}
