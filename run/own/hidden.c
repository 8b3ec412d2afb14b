// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * The hidden descriptors: dune-run's descriptors, which the program must not see.
 * Their numbers are here; the calls that could reach one are in calls/.
 */
#include "hidden.h"
#include "sys.h"

#include <dune_runtime.h>
#include <asm/unistd.h>
#include <linux/fcntl.h>

static struct hidden_table table = { .hidden = { -1, -1, -1 } };

int hidden_fd(enum hidden which)
{
	if (which == HIDDEN_VCPU)
		return dune_vcpu_fd();
	return table.hidden[which];
}

/*
 * A vfork child has a table of descriptors of its own, in which hidden ones may
 * move, but it uses its parent's memory, and so the parent's @table.
 */
void hidden_save(struct hidden_table *to)
{
	*to = table;
}

void hidden_restore(const struct hidden_table *from)
{
	table = *from;
}

bool is_hidden(u64 fd)
{
	int n = (int)fd;

	_Static_assert(HIDDEN_COUNT == 4, "is_hidden() names each one");
	/* An absent descriptor is -1 in the table, and AT_FDCWD is negative, too. */
	if (n < 0)
		return false;
	return n == table.hidden[HIDDEN_SELF] || n == table.hidden[HIDDEN_STATS] ||
	       n == table.hidden[HIDDEN_REPORT] || n == dune_vcpu_fd();
}

/* Give @fd a number that the program hardly uses. Returns the number or an error. */
static long move_away(enum hidden which, int fd)
{
	int floor = DUNE_HIGH_FD;
	long n = -EMFILE;

	/* Lower numbers are tried because RLIMIT_NOFILE may be low. */
	for (; n < 0 && floor >= 3; floor = floor * 3 / 4)
		n = SYS3(__NR_fcntl, fd, F_DUPFD_CLOEXEC, floor);
	if (n < 0)
		return n;
	SYS1(__NR_close, fd);
	table.hidden[which] = n;
	return n;
}

long hidden_add(enum hidden which, int fd)
{
	if (fd < DUNE_HIGH_FD) {
		long n = move_away(which, fd);

		if (n >= 0)
			return n;
	}
	SYS3(__NR_fcntl, fd, F_SETFD, FD_CLOEXEC);
	table.hidden[which] = fd;
	return fd;
}

bool hidden_make_way(int fd)
{
	int i;

	if (fd == dune_vcpu_fd())
		return dune_vcpu_fd_move() >= 0;
	for (i = 0; i < HIDDEN_VCPU; i++)
		if (table.hidden[i] == fd)
			return move_away(i, fd) >= 0;
	return true;
}
