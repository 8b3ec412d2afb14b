// SPDX-License-Identifier: MIT OR Apache-2.0
/* Any system call of syscalls.def, with arguments of its kinds. See attack.h. */
#define _GNU_SOURCE
#include "attack.h"

#include <errno.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <unistd.h>

static const struct entry table[] = {
#include "calls/syscalls.def"
};

/* Calls that end the case, stop it, or take its memory are made rarely. */
static bool spared(u64 nr)
{
	static const short numbers[] = {
		SYS_exit, SYS_exit_group, SYS_rt_sigreturn, SYS_pause, SYS_vfork, SYS_fork,
		SYS_clone, SYS_clone3, SYS_execve, SYS_execveat, SYS_kill, SYS_tkill, SYS_tgkill,
		SYS_reboot, SYS_rt_sigsuspend, SYS_sync, SYS_vhangup, SYS_swapon, SYS_acct,
		SYS_sched_setscheduler, SYS_sched_setattr, SYS_rt_sigqueueinfo,
		SYS_rt_tgsigqueueinfo, SYS_munmap, SYS_brk, SYS_mremap, SYS_setrlimit,
		SYS_prlimit64, SYS_mprotect, SYS_close_range, SYS_pidfd_send_signal,
		SYS_getrandom, SYS_mlockall,
	};
	size_t i;

	for (i = 0; i < ARRAY_LEN(numbers); i++)
		if (numbers[i] == (long)nr)
			return !one_in(200);
	return false;
}

void tick(int sig)
{
}

void keep_ticking(void)
{
	struct itimerval often = { { 0, 5000 }, { 0, 5000 } };
	struct sigaction act = { .sa_handler = tick };

	sigaction(SIGALRM, &act, NULL);
	setitimer(ITIMER_REAL, &often, NULL);
}

long call(u64 nr, u64 a, u64 b, u64 c, u64 d, u64 e, u64 f)
{
	long ret;

	if (nr == SYS_close && (u32)a <= 2)
		return 0;
	if ((nr == SYS_dup2 || nr == SYS_dup3) && (u32)b <= 2)
		return 0;
	/* MADV_HWPOISON, MADV_SOFT_OFFLINE: root may take the stub's page from all processes */
	if (unchecked && nr == SYS_madvise && (c == 100 || c == 101))
		return 0;
	if (unchecked && one_in(2))
		nr |= RAW_BIT;
	ret = syscall(nr, a, b, c, d, e, f);
	if (ret > 2 && ret < 2000)
		keep(ret);
	return ret;
}

static u64 argument(enum kind kind)
{
	if (one_in(10))
		return value();
	switch (kind) {
	case F:
		return file();
	case V:
		return value();
	case N:
		return name();
	default:
		return pointer();
	}
}

void do_any(void)
{
	const struct entry *e = &PICK(table);
	u64 args[6], nr = e->nr;
	int i;

	for (i = 0; i < 6; i++)
		args[i] = argument(e->deny ? (one_in(2) ? P : V) : e->args[i]);
	if (one_in(100))
		nr = below(600);
	if (!spared(nr))
		call(nr, args[0], args[1], args[2], args[3], args[4], args[5]);
}

const struct entry *entry_of(long nr)
{
	size_t i;

	for (i = 0; i < ARRAY_LEN(table); i++)
		if (table[i].nr == nr)
			return &table[i];
	return &table[0];
}
