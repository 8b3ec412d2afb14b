/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The special system calls: those that the kernel cannot simply make for the guest,
 * with the library's work for them. All other calls are one hypercall, which the module
 * carries out (entry.S).
 *
 *	X(arg, name, guest, host)
 *
 * @guest: the function of guest/ that carries out the call. It gets the frame, in ring 0
 * with interrupts off, on the thread's ring-0 stack, and returns the result, a negative
 * errno number, or DUNE_AGAIN. (That of rt_sigreturn has replaced the frame; its result is
 * not used.)
 * @host: the action of the part of the library that makes the call itself. With a host half that is
 * host/loop.c: the call arrives there by HC_SYSCALL(), or because something watches the thread.
 * Without one it is alone/special.c, which gets the calls of dune_sys_service() only:
 *
 *	CALL		makes the call
 *	REFUSE		ENOSYS: a child or a return needs the caller's frame
 *	MASK_register	makes the call; until it returns, the mask of signals is the one
 *			at the address in this register
 *	MASK_IN_register the same; the mask's address is at the address in this register
 *	NEW_CPU		makes the call; the thread may run on another CPU afterwards
 *
 * tests/run/calls.bash compares the table with the module's and dune-run's.
 */
#ifndef LIBDUNE_SPECIAL_H
#define LIBDUNE_SPECIAL_H

/* The actions. CALL, which is 0, is for all calls that a table does not name. */
enum action {
	CALL, REFUSE, MASK_RDI, MASK_R8, MASK_R10, MASK_IN_R9, NEW_CPU, EXEC, EXIT
};

_Static_assert(EXIT < 256, "an action has no room in a byte");

/* The X for a table of the actions by the number of the call, which has a byte for each. */
#define ACTION(arg, name, guest, host)	\
	[__NR_##name] = (host),

#define SPECIAL_CALLS(X, arg)						\
	/* descriptors, of which those of vCPUs are hidden */		\
	X(arg, close, dune_sys_fd, CALL)				\
	X(arg, dup2, dune_sys_fd, CALL)					\
	X(arg, dup3, dune_sys_fd, CALL)					\
	X(arg, close_range, dune_sys_fd, CALL)				\
	/* handlers of signals, which the library runs */		\
	X(arg, rt_sigaction, dune_sys_sigaction, CALL)			\
	X(arg, rt_sigreturn, dune_sys_sigreturn, REFUSE)		\
	X(arg, sigaltstack, dune_sys_sigaltstack, CALL)			\
	/* children, which get the frame and a vCPU */			\
	X(arg, clone, dune_sys_clone, REFUSE)				\
	X(arg, clone3, dune_sys_clone, REFUSE)				\
	X(arg, fork, dune_sys_clone, REFUSE)				\
	X(arg, vfork, dune_sys_clone, REFUSE)				\
	/* the guest's own FS and GS bases */				\
	X(arg, arch_prctl, dune_sys_arch_prctl, CALL)			\
	/* with a mask or to another CPU: @special of services.h */	\
	X(arg, rt_sigsuspend, dune_sys_service, MASK_RDI)		\
	X(arg, ppoll, dune_sys_service, MASK_R10)			\
	X(arg, epoll_pwait, dune_sys_service, MASK_R8)			\
	X(arg, epoll_pwait2, dune_sys_service, MASK_R8)			\
	X(arg, pselect6, dune_sys_service, MASK_IN_R9)			\
	X(arg, io_pgetevents, dune_sys_service, MASK_IN_R9)		\
	X(arg, sched_setaffinity, dune_sys_service, NEW_CPU)

/*
 * Calls that are special in host/loop.c alone. The module never makes them for a guest
 * (slow_calls[] of kernel/dune/hypercall.c), so each arrives there. Without a host half they are
 * not special: the stub makes exit(), which needs nothing else since the process has only this
 * thread, and the module refuses the others. (dune_execveat() is the way of a runtime.)
 *
 *	EXEC		makes the call; until it returns, the kernel ignores SIGSEGV and
 *			SIGBUS if the program ignores them
 *	EXIT		makes the call, and gives back the thread's vCPU and block
 */
#define HOST_CALLS(X, arg)						\
	X(arg, execve, NULL, EXEC)					\
	X(arg, execveat, NULL, EXEC)					\
	X(arg, exit, NULL, EXIT)

#endif /* LIBDUNE_SPECIAL_H */
