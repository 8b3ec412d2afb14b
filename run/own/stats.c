// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * --stats: the counters of all vCPUs of a tree of processes. A file in memory that the processes
 * share holds the sums; each process adds its own when it ends or becomes another program (the
 * counts of a process that is killed are lost). The first process prints them at its end; into a
 * file, each process writes the sums so far. The file is locked while its sums change.
 */
#include "copies.h"
#include "hidden.h"
#include "memcpy.h"
#include "message.h"
#include "stats.h"
#include "sys.h"
#include "text.h"

#include <dune.h>
#include <asm/unistd.h>
#include <linux/dune.h>
#include <linux/fcntl.h>
#include <linux/memfd.h>

static const char * const keys[] = {
	[DUNE_COUNT_EXITS] = "exits",
	[DUNE_COUNT_SYSCALL_FAST] = "syscalls_fast",
	[DUNE_COUNT_SYSCALL_SLOW] = "syscalls_slow",
	[DUNE_COUNT_FAULT] = "faults",
	[DUNE_COUNT_INTERRUPT] = "interrupts",
	[DUNE_COUNT_EXCEPTION] = "exceptions",
	[DUNE_COUNT_HOSTCALL] = "hostcalls",
	[DUNE_COUNT_OTHER] = "other",
	[DUNE_COUNT_TLB_FLUSH] = "tlb_flushes",
	[DUNE_COUNT_MIGRATION] = "migrations",
};

_Static_assert(ARRAY_LEN(keys) == DUNE_COUNT_MIGRATION + 1, "a key for each counter");

struct sums {
	u64 counters[ARRAY_LEN(keys)];
	u64 processes;
	u64 root;		/* process number of the first */
};

static bool is_counting;
static u64 counted[ARRAY_LEN(keys)];	/* what this process has already added to the sums */
/* The parent's @counted while @counted is zero for a child's copy */
static u64 saved[ARRAY_LEN(keys)];
static bool to_file;	/* the report goes to a file */

/*
 * Returns whether the lock was taken or given back. A signal may end the wait for it. All signals
 * are blocked from then on, so the second attempt is not interrupted.
 */
static bool lock(int type)
{
	struct flock file = { .l_type = type };
	long err = sys_lock(hidden_fd(HIDDEN_STATS), &file);

	if (err == -EINTR)
		err = sys_lock(hidden_fd(HIDDEN_STATS), &file);
	return !err;
}

static void write_sums(const struct sums *sums)
{
	sys_pwrite(hidden_fd(HIDDEN_STATS), sums, sizeof(*sums), 0);
}

/*
 * Lock the file, and read it. Returns false, without a lock, if nothing is counted or the file
 * cannot be locked.
 */
static bool lock_sums(struct sums *sums)
{
	if (!is_counting || !lock(F_WRLCK))
		return false;
	if (sys_pread(hidden_fd(HIDDEN_STATS), sums, sizeof(*sums), 0) == sizeof(*sums))
		return true;
	lock(F_UNLCK);
	return false;
}

static long make_file(void)
{
	u64 mark = dune_copies_mark();
	long fd = SYS2(__NR_memfd_create, shown_string("dune-stats"),
		       MFD_CLOEXEC | MFD_ALLOW_SEALING);
	long err;

	dune_copies_release(mark);
	if (fd < 0)
		return fd;
	err = SYS2(__NR_ftruncate, fd, sizeof(struct sums));
	if (err >= 0)
		err = SYS3(__NR_fcntl, fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL);
	return err < 0 ? err : fd;
}

void stats_create(const char *file)
{
	struct sums sums = { .processes = 1, .root = SYS0(__NR_getpid) };
	long fd = make_file(), report;

	if (fd < 0)
		die(126, "cannot get memory for --stats", NULL, fd,
		    "raise the limits on address space and open files (ulimit -v, -n)");
	if (file)
		report = sys_openat(AT_FDCWD, file, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
	else
		report = SYS3(__NR_fcntl, 2, F_DUPFD_CLOEXEC, 3);
	if (report < 0)
		die(126, "cannot write the counters to", file ? file : "standard error", report,
		    "give --stats=FILE with a file that can be written");
	hidden_add(HIDDEN_STATS, fd);
	hidden_add(HIDDEN_REPORT, report);
	to_file = file;
	is_counting = true;
	write_sums(&sums);
}

void stats_adopt(int stats, int report, bool report_to_file)
{
	hidden_add(HIDDEN_STATS, stats);
	hidden_add(HIDDEN_REPORT, report);
	to_file = report_to_file;
	is_counting = true;
}

bool stats_to_file(void)
{
	return to_file;
}

void stats_new_process(void)
{
	struct sums sums;

	if (!lock_sums(&sums))
		return;
	sums.processes++;
	write_sums(&sums);
	lock(F_UNLCK);
}

/*
 * A child that gets a copy of this memory counts from zero, so its copy of @counted
 * must be zero, too; the parent takes its own values back. A vfork child shares the
 * counters with its parent and needs neither.
 */
void stats_before_copy(void)
{
	memcpy(saved, counted, sizeof(saved));
	memset(counted, 0, sizeof(counted));
}

void stats_after_copy(void)
{
	memcpy(counted, saved, sizeof(counted));
}

static void report(const struct sums *sums)
{
	char text[1024];
	const char *end = text + sizeof(text);
	char *p = text_append(text, end, "{");
	int fd = hidden_fd(HIDDEN_REPORT);
	size_t i;

	for (i = 0; i < ARRAY_LEN(keys); i++) {
		p = text_append(p, end, i ? ", \"" : "\"");
		p = text_append(p, end, keys[i]);
		p = text_append(p, end, "\": ");
		p = text_number(p, end, sums->counters[i]);
	}
	p = text_append(p, end, ", \"processes\": ");
	p = text_number(p, end, sums->processes);
	p = text_append(p, end, "}\n");
	/* Sums only grow, so a shorter text never follows a longer one */
	if (to_file)
		sys_pwrite(fd, text, p - text, 0);
	else
		sys_write(fd, text, p - text);
}

void stats_end_process(void)
{
	struct dune_stats mine;
	struct sums sums;
	size_t i;

	if (!lock_sums(&sums))
		return;
	dune_stats(&mine);
	for (i = 0; i < ARRAY_LEN(keys); i++) {
		sums.counters[i] += mine.counters[i] - counted[i];
		counted[i] = mine.counters[i];
	}
	write_sums(&sums);
	lock(F_UNLCK);
}

/* The last writer must have read the sums of all others, so the file stays locked meanwhile. */
void stats_report(void)
{
	struct sums sums;

	if (!lock_sums(&sums))
		return;
	if (to_file || (long)sums.root == SYS0(__NR_getpid))
		report(&sums);
	lock(F_UNLCK);
}
