// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * dune-run: run a program in ring 3 of a virtual machine of its own, with this
 * runtime in ring 0, which checks the program's system calls and forwards them to the
 * kernel (calls/check.c). dunectl starts it, and for execve it starts itself
 * (load/exec.c).
 *
 * The folders are layers, the lowest first:
 *
 *	base/	strings, messages, dune-run's own system calls, copies from and to the
 *		program's memory; super_range.h: the addresses that every check is about
 *	own/	what the runtime keeps from the program: the guard region, sealed tables,
 *		hidden descriptors, protected files, the counters of --stats
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
#include "elf_image.h"
#include "exec.h"
#include "executable.h"
#include "guard_region.h"
#include "hidden.h"
#include "initial_stack.h"
#include "memcpy.h"
#include "message.h"
#include "page.h"
#include "program.h"
#include "protected_files.h"
#include "script.h"
#include "seal.h"
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

_Static_assert(SUPER_BASE + GUARD_REGION_SIZE == DUNE_RUN_IMAGE,
	       "run/Makefile links dune-run right after the guard region");

/* From entry.S: @stack is as the kernel made it. */
void run_main(u64 *stack) __attribute__((noreturn));

struct options {
	const char *argv0;
	const char *name;
	const char *tree;
	const char *stats_file;
	bool stats;
	unsigned int first;	/* index of the argument after "--" */
};

static const char usage[] =
	"usage: dune-run [--stats] [--stats=FILE] [--argv0=NAME] -- PATH ARGS...\n"
	"Runs a Linux program in a sandbox of Dune. Use `dunectl run` instead: it finds\n"
	"the program, and a machine if this computer has no /dev/dune.\n";

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

	for (i = 1; i < *s->argc; i++) {
		const char *arg = s->argv[i];

		if (text_equal(arg, "--"))
			break;
		if (text_equal(arg, "--help")) {
			SYS3(__NR_write, 1, usage, sizeof(usage) - 1);
			SYS1(__NR_exit_group, 0);
		}
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
	char *at = s->argv[o->first];

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

	fd = SYS4(__NR_openat, AT_FDCWD, "/proc/self/exe", O_PATH | O_CLOEXEC, 0);
	if (fd < 0 && name)
		fd = SYS4(__NR_openat, AT_FDCWD, *name, O_PATH | O_CLOEXEC, 0);
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
	const char *path = s->argv[o->first];
	long fd = executable_open(AT_FDCWD, path, 0);
	char head[2];

	if (fd < 0)
		cannot_run(path, fd);
	if (SYS4(__NR_pread64, fd, head, 2, 0) == 2 && head[0] == '#' && head[1] == '!') {
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

	if (text_starts(name, "/dev/fd/") && last == name + 8) {
		SYS2(__NR_prctl, PR_GET_NAME, mine);
		if (mine[0] > '9')
			last = text_last(program_name(), '/');
	}
	SYS2(__NR_prctl, PR_SET_NAME, last);
}

static void enter(void)
{
	struct dune_config config = {
		.size = sizeof(config),
		.arena = (void *)ARENA_BASE,
		.arena_size = ARENA_SIZE,
		.arena_limit = ARENA_LIMIT,
		.flags = DUNE_ENTER_SMAP | DUNE_ENTER_RING3_SIGNALS,
		.super_base = SUPER_BASE,
		.super_size = SUPER_SIZE,
	};
	const char *advice = "`dunectl check` shows what this computer lacks";
	long err;

	/* Only the vDSO can be there already (map_guard_region()), and it is hidden then. */
	err = SYS6(__NR_mmap, ARENA_BASE, ARENA_SIZE, PROT_READ | PROT_WRITE,
		   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
	if (err < 0)
		die(126, "cannot get memory for the runtime", NULL, err,
		    "raise the limit on address space (ulimit -v)");
	dune_stub_use();
	err = dune_enter(&config);
	if (!err)
		return;
	if (err == -ENOENT || err == -ENODEV)
		advice = "load dune.ko; `dunectl check` shows what this computer lacks";
	else if (err == -EACCES)
		advice = "join the group dune, or ask an administrator for access to "
			 "/dev/dune (docs/install.md)";
	else if (err == -EMFILE)
		advice = files_advice;
	else if (err == -EPROTO)
		advice = "load the dune.ko that belongs to this dune-run";
	die(126, "cannot use /dev/dune", NULL, err, advice);
}

/*
 * Everything for which the stack must be as the kernel made it. Sets the program's stack
 * pointer, and returns the descriptor of its file.
 */
static int prepare(u64 *stack, struct initial_stack *initial, struct options *options,
		   struct dune_tf *tf)
{
	static char name[PATH_BYTES];	/* for messages after elf_load() */
	int program = -1;
	long err;

	map_guard_region();
	stack_find(initial, stack);
	areas_init(initial);
	parse(initial, options);
	if (options->tree)
		program = resume(initial, options);
	else
		open_self(initial);
	if (options->first >= *initial->argc)
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
		options->name = initial->argv[options->first];

	err = elf_probe(program);
	if (err)
		cannot_run(options->name, err);
	program_set(program);
	set_name(options->name);
	tf->rsp = stack_arrange(initial, options->first, options->name);
	text_copy(name, sizeof(name), options->name);
	options->name = name;
	vdso_patch(initial);
	seal_tables();
	return program;
}

/*
 * Load the program from the file @program. From here on nothing reads the stack that the
 * kernel made: the program's image may replace it. stack_describe() alone writes to it.
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

void run_main(u64 *stack)
{
	struct options options = {};
	struct initial_stack initial;
	struct dune_tf tf = {};
	int program;
	long err;

	program = prepare(stack, &initial, &options, &tf);
	load(program, &initial, &options, &tf);

	/* From here on only user_memory.c touches memory of the program. */
	if (tf.rip >= USER_END)
		die(126, "cannot run", options.name, 0, "its entry point must be a user address");
	enter();
	program_show();
	dune_syscall_set(check_syscall);
	seal_rest();
	err = dune_ring3(&tf);
	die(126, "cannot start the program in ring 3", NULL, err,
	    "report this with the output of `dunectl check`");
}
