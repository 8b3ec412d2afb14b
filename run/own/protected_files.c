// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * The files that the program must not write: dune-run's and its own, which are executing; and
 * the memory of --stats, which it must not open at all. A file is known by device and inode,
 * whatever name leads to it.
 */
#include "hidden.h"
#include "protected_files.h"
#include "sys.h"

#include <asm/unistd.h>

/* The identity of a file, whatever its name. No file has inode 0. */
struct identity {
	u64 device;
	u64 inode;
};

static struct identity self_file, program_file, stats_file;

static bool is_file(const struct stat *st, const struct identity *file)
{
	return st->st_ino == file->inode && st->st_dev == file->device;
}

/*
 * Without fstat (a seccomp filter from before dune-run may deny it) the file has no identity
 * here, and judge() gives the program the error of fstat for every file.
 */
static void identify(struct identity *file, int fd)
{
	struct stat st;

	if (sys_fstat(fd, &st) < 0)
		return;
	file->device = st.st_dev;
	file->inode = st.st_ino;
}

void protected_files_init(void)
{
	identify(&self_file, hidden_fd(HIDDEN_SELF));
	if (hidden_fd(HIDDEN_STATS) >= 0)
		identify(&stats_file, hidden_fd(HIDDEN_STATS));
}

void protected_files_set_program(int fd)
{
	identify(&program_file, fd);
}

bool is_stats_file(const struct stat *st)
{
	return is_file(st, &stats_file);
}

bool is_running_file(const struct stat *st)
{
	return is_file(st, &self_file) || is_file(st, &program_file);
}
