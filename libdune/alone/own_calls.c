// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * Calls of the library's own with arguments and results in memory, which pass through copies
 * (dune_copies.h): the arguments through the window, the results through the scratch.
 */
#include "alone.h"

/*
 * Ends the process, without a message: the library's part of the copies is large enough for all of
 * its calls, and no filter of system calls may forbid those of this file.
 */
static void __noreturn end(void)
{
	for (;;)
		dune_alone_call(__NR_exit_group, 128 + SIGABRT, 0, 0, 0);
}

/* Returns the kernel's address of a copy of @size bytes at @p. The caller releases it. */
u64 dune_alone_show(const void *p, u64 size)
{
	void *copy = dune_own_window(size);

	if (!copy)
		end();
	memcpy(copy, p, size);
	return dune_kernel_at(copy);
}

/* Returns @size bytes of zeroed scratch for a result. The caller releases it. */
void *dune_alone_result(u64 size)
{
	void *result = dune_own_scratch(size);

	if (!result)
		end();
	memset(result, 0, size);
	return result;
}

/* Implements @action of struct dune_services. */
long dune_alone_action(int sig, const struct ksigaction *real, struct ksigaction *old)
{
	u64 mark = dune_copies_mark(), shown = real ? dune_alone_show(real, sizeof(*real)) : 0;
	struct ksigaction *result = old ? dune_alone_result(sizeof(*old)) : NULL;
	long err = dune_alone_call(__NR_rt_sigaction, sig, shown,
				   result ? dune_kernel_at(result) : 0, SIGSET_SIZE);

	if (old && !err)
		*old = *result;
	dune_copies_release(mark);
	return err;
}

/* Implements @mask of struct dune_services. */
long dune_alone_mask(int how, u64 set, u64 *old)
{
	u64 mark = dune_copies_mark(), shown = dune_alone_show(&set, sizeof(set));
	u64 *result = old ? dune_alone_result(sizeof(*old)) : NULL;
	long err = dune_hypercall(__NR_rt_sigprocmask, how, shown,
				  result ? dune_kernel_at(result) : 0, SIGSET_SIZE, 0, 0);

	if (old && !err)
		*old = *result;
	dune_copies_release(mark);
	return err;
}

/*
 * Sets the mask, and stores the one of before at @old, if that is not NULL. An error ends the
 * process: without the old mask, it would continue with another one.
 */
void dune_alone_set_mask(u64 set, u64 *old)
{
	if (dune_alone_mask(SIG_SETMASK, set, old))
		end();
}

/* Implements @forward_mask of struct dune_services. */
long dune_alone_forward_mask(u64 set)
{
	u64 mark = dune_copies_mark();
	long ret = dune_syscall_forward(__NR_rt_sigprocmask, SIG_SETMASK,
					dune_alone_show(&set, sizeof(set)), 0, SIGSET_SIZE, 0, 0);

	dune_copies_release(mark);
	return ret;
}

/* Sets the mask even if a signal has come. */
void dune_alone_force_mask(u64 set)
{
	u64 mark = dune_copies_mark();

	dune_alone_call(__NR_rt_sigprocmask, SIG_SETMASK, dune_alone_show(&set, sizeof(set)), 0,
			SIGSET_SIZE);
	dune_copies_release(mark);
}

/* Implements @print of struct dune_services. */
void dune_alone_print(const char *text, u64 size)
{
	u64 mark = dune_copies_mark();

	dune_hypercall(__NR_write, 2, dune_alone_show(text, size), size, 0, 0, 0);
	dune_copies_release(mark);
}
