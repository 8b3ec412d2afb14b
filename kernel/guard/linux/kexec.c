// SPDX-License-Identifier: GPL-2.0-only
/*
 * kexec and the seal: sealing refuses if a kernel is loaded for kexec, and forbids to load one.
 */
#include <linux/err.h>
#include <linux/fs.h>

#include "guard/linux/guard.h"

/* Returns the first character of a file of the kernel, or 0 without it. */
static char read_flag(const char *path)
{
	struct file *file = filp_open(path, O_RDONLY, 0);
	loff_t at = 0;
	char flag = 0;

	if (IS_ERR(file))
		return 0;
	kernel_read(file, &flag, 1, &at);
	filp_close(file, NULL);
	return flag;
}

/*
 * Forbids kexec to load a kernel from now on, for good. Modules have no other way to do so than the
 * sysctl. A crash kernel that is loaded already stays: it has memory of its own, and runs under the
 * guard. Returns 0, or a negative errno with the reason in @answer.
 */
int guard_kexec_disable(struct dune_guard_answer *answer)
{
	static const char path[] = "/proc/sys/kernel/kexec_load_disabled";
	struct file *file;
	loff_t at = 0;
	ssize_t written;

	if (read_flag("/sys/kernel/kexec_loaded") == '1')
		return guard_refuse(answer, -EBUSY,
				    "a kernel is loaded for kexec, which would run without the guard: kexec -u");
	file = filp_open(path, O_WRONLY, 0);
	if (PTR_ERR_OR_ZERO(file) == -ENOENT)
		return 0;	/* This kernel has no kexec. */
	if (IS_ERR(file))
		return guard_refuse(answer, PTR_ERR(file), "%s cannot be opened", path);
	written = kernel_write(file, "1", 1, &at);
	filp_close(file, NULL);
	if (written != 1)
		return guard_refuse(answer, -EIO, "%s cannot be written", path);
	if (read_flag("/sys/kernel/kexec_loaded") == '1')
		return guard_refuse(answer, -EBUSY,
				    "a kernel was loaded for kexec meanwhile: kexec -u");
	return 0;
}
