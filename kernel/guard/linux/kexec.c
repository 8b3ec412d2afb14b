// SPDX-License-Identifier: GPL-2.0-only
/*
 * kexec and the seal: sealing refuses if a kernel is loaded for kexec, and forbids to load one.
 * Modules find both in files alone. The caller's mounts and root may lack these files, or have
 * others in their places, so the file systems are mounted for each access.
 */
#include <linux/err.h>
#include <linux/fs.h>
#include <linux/mount.h>

#include "guard/linux/guard.h"

#define DISABLED	"sys/kernel/kexec_load_disabled"

/*
 * Reads the first character of a file in a file system of the kernel's, or writes it if @flags is
 * O_WRONLY. Returns 0 or a negative errno.
 */
static int access_flag(const char *type, const char *path, int flags, char *flag)
{
	struct file_system_type *system = get_fs_type(type);
	struct vfsmount *mount;
	struct file *file;
	loff_t at = 0;
	ssize_t done;

	if (!system)
		return -ENODEV;
	mount = kern_mount(system);
	if (IS_ERR(mount))
		return PTR_ERR(mount);
	file = file_open_root_mnt(mount, path, flags, 0);
	done = PTR_ERR_OR_ZERO(file);
	if (!done) {
		done = flags == O_WRONLY ? kernel_write(file, flag, 1, &at) :
					   kernel_read(file, flag, 1, &at);
		filp_close(file, NULL);
	}
	kern_unmount(mount);
	return done == 1 ? 0 : done ?: -EIO;
}

static int refuse_loaded(struct dune_guard_answer *answer)
{
	char flag;
	int err = access_flag("sysfs", "kernel/kexec_loaded", O_RDONLY, &flag);

	if (err)
		return guard_refuse(answer, err,
				    "whether a kernel is loaded for kexec is not known: /sys/kernel/kexec_loaded cannot be read (%d)",
				    err);
	if (flag != '0')
		return guard_refuse(answer, -EBUSY,
				    "a kernel is loaded for kexec, which would run without the guard: kexec -u");
	return 0;
}

/*
 * Forbids kexec to load a kernel from now on, for good. A crash kernel that is loaded already
 * stays: it has memory of its own, and runs under the guard. Returns 0, or a negative errno with
 * the reason in @answer.
 */
int guard_kexec_disable(struct dune_guard_answer *answer)
{
	char flag = '1';
	int err;

	if (!IS_ENABLED(CONFIG_KEXEC_CORE))
		return 0;
	err = refuse_loaded(answer);
	if (err)
		return err;
	err = access_flag("proc", DISABLED, O_WRONLY, &flag);
	if (err)
		return guard_refuse(answer, err, "/proc/" DISABLED " cannot be written (%d)", err);
	/* One may have been loaded meanwhile. */
	return refuse_loaded(answer);
}
