// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * The calls that name a type of file system, some of which are refused, and umount2. mount
 * follows both of its names: a file mounted on /proc/self/exe must cover the program's file,
 * not dune-run's.
 */
#include "calls.h"
#include "copies.h"
#include "program.h"
#include "text.h"
#include "user_memory.h"

#define UMOUNT_NOFOLLOW	8	/* <sys/mount.h>; no header of the kernel for programs has it */

/*
 * File systems that are refused as if the kernel was built without them. The
 * binary mount data of NFS is full of pointers. Mount options of 9p (trans=fd) and
 * the mount data of coda name descriptors, which may be hidden ones. The program's
 * own instance of binfmt_misc (in a user name space, since 6.7) chooses an
 * interpreter by the first bytes of a file, which may be those of dune-run's own
 * file: execve would run the interpreter natively.
 */
static bool type_refused(const char *type)
{
	return text_starts(type, "nfs") || text_equal(type, "9p") ||
	       text_equal(type, "coda") || text_equal(type, "binfmt_misc");
}

void call_mount(struct dune_tf *tf)
{
	char type[64];
	u64 name = ARG2(tf);

	if (name) {
		long n = user_string(type, name, sizeof(type));

		if (n < 0 || type_refused(type)) {
			refuse(tf, n == -EFAULT ? -EFAULT : -ENODEV);
			return;
		}
		name = shown(type, n + 1);
	}
	dune_syscall_result(tf, dune_syscall_forward(tf->rax, ARG0(tf),
						     followed_name(ARG1(tf)), name,
						     ARG3(tf), ARG4(tf), 0));
}

/* Takes away what mount has put on the program's file. */
void call_umount2(struct dune_tf *tf)
{
	u64 name = ARG1(tf) & UMOUNT_NOFOLLOW ? ARG0(tf) : followed_name(ARG0(tf));

	dune_syscall_result(tf, dune_syscall_forward(tf->rax, name, ARG1(tf), 0, 0, 0, 0));
}

void call_fsopen(struct dune_tf *tf)
{
	char type[64];
	long n = user_string(type, ARG0(tf), sizeof(type));

	if (n < 0 || type_refused(type))
		refuse(tf, n == -EFAULT ? -EFAULT : -ENODEV);
	else
		dune_syscall_result(tf, dune_syscall_forward(tf->rax, shown(type, n + 1), ARG1(tf),
							     0, 0, 0, 0));
}
