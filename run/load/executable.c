// SPDX-License-Identifier: MIT OR Apache-2.0
/* Opening a file to execute it, as the kernel does. */
#include "executable.h"
#include "sys.h"
#include "text.h"

#include <asm/stat.h>
#include <asm/unistd.h>
#include <linux/fcntl.h>
#include <linux/stat.h>

/*
 * Open a file to execute it, with the errors of the kernel's open_exec(). The
 * right to execute is tested by name first, so that no device is opened for this,
 * and once more on the file that was opened, since the name may lead to another
 * file in the meantime.
 */
long executable_open(int dir, const char *path, u64 flags)
{
	struct stat st;
	long fd, err;

	err = SYS4(__NR_faccessat2, dir, path, 1,
		   AT_EACCESS | (flags & (AT_EMPTY_PATH | AT_SYMLINK_NOFOLLOW)));
	if (err)
		return err;
	if ((flags & AT_EMPTY_PATH) && !path[0]) {
		char link[32];

		text_fd_name(link, sizeof(link), dir);
		fd = SYS4(__NR_openat, AT_FDCWD, link, O_RDONLY | O_CLOEXEC, 0);
	} else {
		fd = SYS4(__NR_openat, dir, path, O_RDONLY | O_CLOEXEC | O_NONBLOCK |
			  (flags & AT_SYMLINK_NOFOLLOW ? O_NOFOLLOW : 0), 0);
	}
	if (fd < 0)
		return fd;
	err = SYS2(__NR_fstat, fd, &st);
	if (!err && !S_ISREG(st.st_mode))
		err = -EACCES;
	if (!err)
		err = SYS4(__NR_faccessat2, fd, "", 1, AT_EACCESS | AT_EMPTY_PATH);
	if (err) {
		SYS1(__NR_close, fd);
		return err;
	}
	return fd;
}
