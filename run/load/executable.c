// SPDX-License-Identifier: MIT OR Apache-2.0
/* Opening a file to execute it, as the kernel does. */
#include "executable.h"
#include "sys.h"
#include "text.h"

#include <asm/stat.h>
#include <asm/unistd.h>
#include <linux/fcntl.h>
#include <linux/resource.h>
#include <linux/stat.h>

/* The name may lead to a FIFO or a terminal: do not wait for it. */
#define TO_EXECUTE	(O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY)

/*
 * The kernel's execve needs no number of a descriptor, so it does not fail when the soft
 * limit allows no more. Here the file gets a number that only the hard limit has to allow.
 */
static long open_beyond_limit(int dir, const char *path, u64 flags)
{
	struct rlimit64 limit, raised;
	long fd = sys_openat(dir, path, flags, 0);

	if (fd != -EMFILE || sys_rlimit(RLIMIT_NOFILE, NULL, &limit) < 0)
		return fd;
	raised = limit;
	raised.rlim_cur = limit.rlim_max;
	if (sys_rlimit(RLIMIT_NOFILE, &raised, NULL) < 0)
		return fd;
	fd = sys_openat(dir, path, flags, 0);
	sys_rlimit(RLIMIT_NOFILE, &limit, NULL);
	return fd;
}

/*
 * Open a file to execute it, with the errors of the kernel's open_exec(). That it is a regular
 * file is tested by name first, since opening a device or a FIFO has effects, and once more by the
 * descriptor, since the name may lead to another file by then. That it may be executed is tested
 * when it is open, or, if it cannot be opened, by name; a file that nobody may execute is not
 * opened.
 */
long executable_open(int dir, const char *path, u64 flags)
{
	struct stat st;
	long fd, err;

	flags &= AT_EMPTY_PATH | AT_SYMLINK_NOFOLLOW;
	err = sys_fstatat(dir, path, &st, flags);
	if (err)
		return err;
	if (!S_ISREG(st.st_mode))
		return S_ISLNK(st.st_mode) ? -ELOOP : -EACCES;
	if (!(st.st_mode & 0111))
		return -EACCES;
	if ((flags & AT_EMPTY_PATH) && !path[0]) {
		char link[32];

		text_fd_name(link, sizeof(link), dir);
		fd = open_beyond_limit(AT_FDCWD, link, TO_EXECUTE);
	} else {
		fd = open_beyond_limit(dir, path, TO_EXECUTE |
				       (flags & AT_SYMLINK_NOFOLLOW ? O_NOFOLLOW : 0));
	}
	if (fd < 0) {
		err = sys_faccessat2(dir, path, 1, AT_EACCESS | flags);
		return err ? err : fd;
	}
	err = sys_fstat(fd, &st);
	if (!err && !S_ISREG(st.st_mode))
		err = -EACCES;
	if (!err)
		err = sys_faccessat2(fd, "", 1, AT_EACCESS | AT_EMPTY_PATH);
	if (err) {
		SYS1(__NR_close, fd);
		return err;
	}
	return fd;
}
