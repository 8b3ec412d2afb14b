// SPDX-License-Identifier: GPL-2.0-only
/*
 * execve() by a guest without a host half (event.c). A thread that executes nothing but the stub in
 * user mode must not begin to execute another program there. So the module is a binary format that
 * the kernel asks before its own ones: it sees the file that is really executed, whatever was done
 * to the name, to the descriptor or to an interpreter until then.
 */
#include <linux/binfmts.h>
#include <linux/file.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/ptrace.h>

#include "dune/exec.h"
#include "dune/stub.h"

/* Returns whether @file is the one that the process executes. */
static bool is_own_program(const struct file *file)
{
	const struct file *own;
	bool is_own;

	rcu_read_lock();
	own = rcu_dereference(current->mm->exe_file);
	is_own = own && file_inode(own) == file_inode(file);
	rcu_read_unlock();
	return is_own;
}

/*
 * The kernel asks about each file that any process executes, and for a script or the like also
 * about its interpreter. ENOEXEC means that the other formats are asked. The calls of a stub are
 * recognized by the mapping that the thread executes, since nothing else is certain: another
 * process may change the descriptors.
 */
static int load(struct linux_binprm *bprm)
{
	int from_stub = stub_calls();

	if (likely(!from_stub))
		return -ENOEXEC;
	if (from_stub < 0)
		return from_stub;
	return is_own_program(bprm->file) ? -ENOEXEC : -EPERM;
}

static struct linux_binfmt format = { .module = THIS_MODULE, .load_binary = load };

/* exec_init() is called at load, and exec_cleanup() before the module is unloaded. */
void __init exec_init(void)
{
	insert_binfmt(&format);
}

void exec_cleanup(void)
{
	unregister_binfmt(&format);
}
