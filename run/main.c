// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * dune-run: run a program in ring 3 of a virtual machine of its own, with this
 * runtime in ring 0, which checks the program's system calls and forwards them to the
 * kernel (calls/check.c). dunectl starts it, and for execve it starts itself
 * (load/exec.c).
 *
 * All of the runtime is in private memory, at linear addresses where only ring 0 reaches it
 * (dune_runtime.h). In the first process of a tree a small native program puts it there (start/);
 * after an execve the module does, from its copy.
 *
 * The folders are layers, the lowest first; start/, which needs base/ alone, is the native program.
 *
 *	base/	strings, messages, dune-run's own system calls, copies from and to the
 *		program's memory; super_range.h: the addresses that every check is about
 *	own/	what the runtime keeps from the program: hidden descriptors, protected
 *		files, the counters of --stats
 *	load/	the program's file, image and stack; how one program becomes another
 *	calls/	the program's system calls: check.c with the table syscalls.def, and the
 *		functions that the table names
 *
 *   dune-run [--stats] [--stats=FILE] [--argv0=NAME] -- PATH ARGS...
 *
 * (--tree and --name are only for dune-run itself: load/exec.c.)
 *
 * The exit status is as in shells: 127 when there is no such program, 126 when it
 * cannot be executed, and else the program's own.
 */
#include "areas.h"
#include "check.h"
#include "copies.h"
#include "elf_image.h"
#include "exec.h"
#include "executable.h"
#include "hidden.h"
#include "initial_stack.h"
#include "memcpy.h"
#include "message.h"
#include "new_stack.h"
#include "page.h"
#include "program.h"
#include "protected_files.h"
#include "script.h"
#include "stats.h"
#include "super_range.h"
#include "sys.h"
#include "text.h"
#include "vdso.h"

#include <dune_runtime.h>
#include <asm/processor-flags.h>
#include <asm/unistd.h>
#include <linux/auxvec.h>
#include <linux/fcntl.h>
#include <linux/mman.h>
#include <linux/prctl.h>

struct options {
	const char *argv0;
	const char *name;
	const char *tree;
	const char *stats_file;
	bool stats;
	unsigned int first;	/* index of the argument after "--" */
};

static const char files_advice[] = "raise the limit on open files (ulimit -n)";

/* If @arg is @option with a value, store the value in @value. */
static bool take(const char *arg, const char *option, const char **value)
{
	if (!text_starts(arg, option))
		return false;
	*value = arg + text_len(option);
	return true;
}

static void parse(const struct initial_stack *s, struct options *o)
{
	unsigned int i;

	for (i = 1; i < s->args; i++) {
		const char *arg = stack_string(s->argv + i);

		if (text_equal(arg, "--"))
			break;
		if (!text_equal(arg, "--stats") &&
		    !take(arg, "--stats=", &o->stats_file) &&
		    !take(arg, "--argv0=", &o->argv0) &&
		    !take(arg, "--tree=", &o->tree) &&
		    !take(arg, "--name=", &o->name))
			die(126, "there is no option", arg, 0, "see dune-run --help");
		if (text_starts(arg, "--stats"))
			o->stats = true;
	}
	o->first = i + 1;
}

/*
 * Take over what the dune-run that has executed this one has passed on. Returns the descriptor of
 * the program's file, or -1.
 */
static int resume(struct initial_stack *s, const struct options *o)
{
	int count = -1, program = exec_resume(o->tree, &count);

	if (!stack_take_arguments(s, count))
		die(126, "arguments are missing after --tree", NULL, 0,
		    "let dune-run alone use --tree");
	return program;
}

/*
 * --argv0: put NAME where PATH is, right before the other arguments, and PATH before
 * NAME, because /proc/self/cmdline shows the arguments in one piece. The strings of
 * `--argv0=NAME ... -- PATH ARGS` lie next to each other. `PATH NAME` is shorter than
 * `--argv0=NAME -- PATH` and ends at the same address, so it fits without touching ARGS.
 */
static void replace_argv0(struct initial_stack *s, struct options *o)
{
	static char path[PATH_BYTES];
	size_t path_bytes, name_bytes = text_len(o->argv0) + 1;
	char *at = stack_string(s->argv + o->first);

	path_bytes = text_copy(path, sizeof(path), at) + 1;
	at += text_len(at) + 1 - name_bytes;
	memmove(at, o->argv0, name_bytes);
	s->argv[o->first] = at;
	at -= path_bytes;
	memcpy(at, path, path_bytes);
	o->name = at;
}

/* Open dune-run's own file, which execve executes. */
static void open_self(const struct initial_stack *s)
{
	u64 *name = stack_aux(s, AT_EXECFN);
	long fd;

	fd = sys_openat(AT_FDCWD, "/proc/self/exe", O_PATH | O_CLOEXEC, 0);
	if (fd < 0 && name)
		fd = sys_openat(AT_FDCWD, stack_string((char **)name), O_PATH | O_CLOEXEC, 0);
	if (fd < 0)
		die(126, "cannot open dune-run's own file", NULL, fd,
		    fd == -EMFILE ? files_advice : "mount /proc");
	hidden_add(HIDDEN_SELF, fd);
}

static const char *run_advice(long err)
{
	switch (err) {
	case -ENOENT:
	case -ENOTDIR:
		return "check the path of the program and of its dynamic loader";
	case -EACCES:
		return "a program must be an executable file that you may read";
	case -ENOEXEC:
		return "a program must be a 64-bit x86 program or #! script, and not on hugetlbfs";
	case -ELIBBAD:
		return "its dynamic loader must be a 64-bit x86 program, and not on hugetlbfs";
	case -EMFILE:
		return files_advice;
	case -ELOOP:
		return "shorten the chain of symbolic links or #! scripts";
	case -ENOMEM:
		return "raise the limit on address space (ulimit -v); if that does not help, link "
		       "the program to addresses that dune-run does not use (docs/sandbox.md)";
	}
	return "check whether the program runs without the sandbox";
}

static void __attribute__((noreturn)) cannot_run(const char *path, long err)
{
	bool missing = err == -ENOENT || err == -ENOTDIR;

	die(missing ? 127 : 126, "cannot run", path, err, run_advice(err));
}

static long open_program(const struct initial_stack *s, const struct options *o)
{
	const char *path = stack_string(s->argv + o->first);
	long fd = executable_open(AT_FDCWD, path, 0);
	char head[2];

	if (fd < 0)
		cannot_run(path, fd);
	if (sys_pread(fd, head, 2, 0) == 2 && head[0] == '#' && head[1] == '!') {
		script_set_name(AT_FDCWD, path, false);
		if (o->argv0)
			s->argv[o->first] = (char *)o->argv0;
		fd = exec_program(fd, (u64)(s->argv + o->first), (u64)s->envp);
		cannot_run(path, fd);
	}
	return fd;
}

/*
 * Set the process's name as execve() would: the last component of the file name. For
 * execveat() with only a descriptor, Linux before 6.14 (and older stable kernels) uses
 * the descriptor's number, and later kernels the name of the file that is loaded in
 * the end. The kernel started dune-run by such a call, so its own name shows which
 * rule holds.
 */
static void set_name(const char *name)
{
	const char *last = text_last(name, '/');
	char mine[16] = "";
	u64 mark = dune_copies_mark(), room = result_room(sizeof(mine));

	if (text_starts(name, "/dev/fd/") && last == name + 8) {
		take_result(mine, room, sizeof(mine), SYS2(__NR_prctl, PR_GET_NAME, room));
		if (mine[0] > '9')
			last = text_last(program_name(), '/');
	}
	SYS2(__NR_prctl, PR_SET_NAME, shown_string(last));
	dune_copies_release(mark);
}

/*
 * Does everything that reads the stack with which dune-run itself starts. Sets the program's stack
 * pointer, and returns the descriptor of its file.
 */
static int prepare(const struct dune_start *start, struct initial_stack *initial,
		   struct options *options, struct dune_tf *tf)
{
	static char name[PATH_BYTES];	/* for messages after elf_load() */
	int program = -1;
	long err;

	areas_init(start->name, start->heap_is_random);
	if (start->stack)
		stack_set(initial, start->stack, start->argc, start->envc, start->auxc);
	else
		new_stack(start, initial);
	parse(initial, options);
	if (options->tree)
		program = resume(initial, options);
	else
		open_self(initial);
	if (options->first >= initial->args)
		die(126, "no program is named", NULL, 0,
		    "give its path after --, see dune-run --help");
	if (options->stats)
		stats_create(options->stats_file);
	protected_files_init();
	if (program < 0)
		program = open_program(initial, options);
	if (options->argv0)
		replace_argv0(initial, options);
	if (!options->name)
		options->name = stack_string(initial->argv + options->first);

	err = elf_read(program);
	if (err)
		cannot_run(options->name, err);
	program_set(program);
	set_name(options->name);
	tf->rsp = stack_arrange(initial, options->first, options->name);
	text_copy(name, sizeof(name), options->name);
	options->name = name;
	vdso_patch(start, initial);
	return program;
}

/*
 * Load the program from the file @program. From here on nothing reads dune-run's own vectors: the
 * program's image may replace them. stack_describe() alone writes there.
 */
static void load(int program, const struct initial_stack *initial, const struct options *options,
		 struct dune_tf *tf)
{
	struct image image;
	long err;

	err = elf_load(program, &image);
	if (err)
		cannot_run(options->name, err);
	SYS1(__NR_close, program);
	tf->rip = image.entry;
	tf->rflags = X86_EFLAGS_IF | X86_EFLAGS_FIXED;
	stack_describe(initial, &image);
	err = areas_set(initial, &image);
	if (err)
		die(126, "cannot set the program's memory areas", NULL, err,
		    "use a kernel that has CONFIG_CHECKPOINT_RESTORE");
	if (image.stack_executable)
		SYS3(__NR_mprotect, PAGE_DOWN(tf->rsp), PAGE_BYTES,
		     PROT_READ | PROT_WRITE | PROT_EXEC | PROT_GROWSDOWN);
}

void dune_runtime_main(const struct dune_start *start)
{
	struct options options = {};
	struct initial_stack initial;
	struct dune_tf tf = {};
	int program;
	long err;

	super_base = start->stub;
	dune_runtime_refuse(super_base, SUPER_SIZE);
	if (start->image)
		SYS2(__NR_munmap, start->image, start->image_end - start->image);
	/* The program's cores have what they have natively. */
	SYS3(__NR_madvise, start->scratch, SUPER_SIZE - STUB_SIZE, MADV_DONTDUMP);
	/* A child uses nothing that is there. So a fork need not copy it. */
	SYS3(__NR_madvise, start->scratch, SUPER_SIZE - STUB_SIZE, MADV_WIPEONFORK);
	program = prepare(start, &initial, &options, &tf);
	load(program, &initial, &options, &tf);
	if (tf.rip >= USER_END)
		die(126, "cannot run", options.name, 0, "its entry point must be a user address");
	program_show();
	/* From here on only user_memory.c touches memory of the program. */
	dune_runtime_close();
	dune_syscall_set(check_syscall);
	err = dune_ring3(&tf);
	die(126, "cannot start the program in ring 3", NULL, err,
	    "report this with the output of `dunectl check`");
}
