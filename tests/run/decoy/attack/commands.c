// SPDX-License-Identifier: MIT OR Apache-2.0
/* Calls with many meanings: ioctl, socket options and others. See attack.h. */
#define _GNU_SOURCE
#include "attack.h"

#include <errno.h>
#include <sys/syscall.h>

static const u32 ioctls[] = {
#include "ioctls.h"
};

/*
 * The numbers that a file answers to: each is tried on one file a few times, then
 * those again and again that were not simply unknown.
 */
struct known {
	u64 fd;
	u64 next;
	u64 used;
	u64 alive[256];
};

static u64 choose(struct known *k, u64 count, u64 tries)
{
	u64 at;

	if (!k->next) {
		k->fd = file();
		k->used = 0;
	}
	if (k->next < count * tries)
		return k->next++ / tries;
	if (k->used && !one_in(50))
		return k->alive[below(k->used)];
	at = below(count);
	if (one_in(8))
		k->next = 0;
	return at;
}

/* @pointer: the argument. One that is refused with every number gives no information. */
static void learn(struct known *k, u64 what, u64 pointer, long ret)
{
	u64 i;

	if (ret < 0 && errno == EFAULT && pointer - (u64)pool >= POOL_SIZE)
		return;
	if (ret < 0 && (errno == ENOTTY || errno == EINVAL || errno == ENOPROTOOPT ||
			errno == EBADF || errno == EOPNOTSUPP || errno == ENOTSOCK ||
			errno == ENOSYS))
		return;
	for (i = 0; i < k->used; i++)
		if (k->alive[i] == what)
			return;
	if (k->used < ARRAY_LEN(k->alive))
		k->alive[k->used++] = what;
}

static u64 ioctl_argument(u32 cmd)
{
	u64 n = cmd >> 16 & 0x3fff;

	if (n > 8 && n <= 1024 && !one_in(4)) {
		u64 *to = take(n + 8);

		fill(to, n / 8);
		return (u64)to;
	}
	return one_in(4) ? value() : pointer();
}

void do_ioctl(void)
{
	static struct known known;
	u32 cmd = PICK(ioctls);
	u64 argument;
	long ret;

	if (!one_in(8)) {
		u64 i = choose(&known, ARRAY_LEN(ioctls), 1);

		argument = ioctl_argument(ioctls[i]);
		ret = call(SYS_ioctl, known.fd, ioctls[i], argument, 0, 0, 0);
		learn(&known, i, argument, ret);
		return;
	}
	switch (below(4)) {
	case 0:	/* from before sizes were part of the number */
		cmd = below(0x10000);
		break;
	case 1:	/* one that a later kernel may have */
		cmd = (cmd & ~0xffU) | below(256);
		break;
	case 2:
		cmd = (cmd & 0xffff) | (u32)below(0x10000) << 16;
		break;
	}
	call(SYS_ioctl, one_in(2) ? known.fd : file(), cmd, ioctl_argument(cmd), 0, 0, 0);
}

static long one_option(u64 fd, u64 level, u64 option, u64 *argument)
{
	static const u32 sizes[] = {
		1, 4, 8, 12, 16, 20, 24, 28, 32, 36, 40, 64, 128, 136, 256, 4096,
	};
	u64 size = PICK(sizes);
	u64 *to = take(size + 16);
	u32 *len = take(8);

	fill(to, size / 8 + 1);
	*len = size;
	*argument = one_in(4) ? pointer() : (u64)to;
	if (one_in(2))
		return call(SYS_getsockopt, fd, level, option, *argument,
			    one_in(8) ? pointer() : (u64)len, 0);
	return call(SYS_setsockopt, fd, level, option, *argument, size, 0);
}

void do_option(void)
{
	static const u32 levels[] = {
		0, 1, 6, 17, 41, 58, 132, 136, 255, 263, 270, 281, 282, 286, 40,
	};
	static struct known known;
	u64 i, argument;
	long ret;

	if (one_in(8)) {
		one_option(file(), below(300), number(), &argument);
		return;
	}
	i = choose(&known, ARRAY_LEN(levels) * 130, 1);
	ret = one_option(known.fd, levels[i / 130], i % 130, &argument);
	learn(&known, i, argument, ret);
}

/* Calls with many meanings: which argument chooses, and from what range. */
static const struct command {
	short nr;
	short place;
	u32 first, last;
} commands[] = {
	{ SYS_prctl, 0, 1, 82 }, { SYS_prctl, 0, 1, 82 }, { SYS_prctl, 0, 1, 82 },
	{ SYS_prctl, 0, 0x53564d41, 0x53564d41 }, { SYS_prctl, 0, 0x41555856, 0x41555856 },
	{ SYS_prctl, 0, 0x59616d61, 0x59616d61 },
	{ SYS_fcntl, 1, 0, 17 }, { SYS_fcntl, 1, 32, 40 }, { SYS_fcntl, 1, 1024, 1045 },
	{ SYS_keyctl, 0, 0, 34 }, { SYS_keyctl, 0, 0, 34 },
	{ SYS_shmctl, 1, 0, 16 }, { SYS_semctl, 2, 0, 24 }, { SYS_msgctl, 1, 0, 16 },
	{ SYS_futex, 1, 0, 13 }, { SYS_futex, 1, 128, 141 }, { SYS_futex, 1, 256, 270 },
	{ SYS_madvise, 2, 0, 26 }, { SYS_madvise, 2, 100, 103 },
	{ SYS_arch_prctl, 0, 0x1001, 0x1026 }, { SYS_arch_prctl, 0, 0x2001, 0x2003 },
	{ SYS_arch_prctl, 0, 0x4001, 0x4004 }, { SYS_arch_prctl, 0, 0x5001, 0x5005 },
	{ SYS_quotactl, 0, 0x800001, 0x80000a }, { SYS_quotactl_fd, 1, 0x800001, 0x80000a },
	{ SYS_fsconfig, 1, 0, 9 }, { SYS_bpf, 0, 0, 40 }, { SYS_seccomp, 0, 0, 4 },
	{ SYS_membarrier, 0, 0, 512 }, { SYS_kcmp, 2, 0, 8 }, { SYS_epoll_ctl, 1, 1, 3 },
	{ SYS_timer_create, 0, 0, 11 }, { SYS_clock_nanosleep, 0, 0, 11 },
	{ SYS_mq_notify, 0, 0, 100 }, { SYS_capget, 0, 0, 0 }, { SYS_get_mempolicy, 4, 0, 7 },
	{ SYS_mbind, 2, 0, 7 }, { SYS_set_mempolicy, 0, 0, 7 }, { SYS_waitid, 0, 0, 4 },
	{ SYS_sysfs, 0, 1, 3 }, { SYS_io_uring_register, 1, 0, 32 },
	{ SYS_landlock_add_rule, 1, 1, 2 }, { SYS_fanotify_mark, 1, 0, 2048 },
	{ SYS_statx, 2, 0, 0x8000 }, { SYS_rt_sigaction, 0, 1, 64 },
	{ SYS_process_madvise, 3, 0, 26 }, { SYS_vmsplice, 3, 0, 15 },
	{ SYS_pidfd_send_signal, 1, 0, 0 }, { SYS_mount, 3, 0, 0xffff },
};

void do_command(void)
{
	const struct command *c = &PICK(commands);
	const struct entry *e = entry_of(c->nr);
	u64 args[6];
	int i;

	for (i = 0; i < 6; i++)
		args[i] = e->args[i] == F && !e->deny ? file() : one_in(3) ? value() : pointer();
	args[c->place] = c->first + below(c->last - c->first + 1);
	call(c->nr, args[0], args[1], args[2], args[3], args[4], args[5]);
}
