// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * execve and execveat. What the kernel would refuse is refused here, while the
 * old program still exists and can get the error: path, rights, format, "#!"
 * chains, the loader. Then dune-run executes itself, with the open file of the
 * new program and a list of what it needs to know:
 *
 *   dune-run --tree=LIST --name=NAME -- ARGV0 ARGS...
 *
 * LIST is "image,self,vcpu,memory,report,flags": numbers of open descriptors (no
 * memory and report without --stats), and 1 or 0: whether the report goes to a
 * file. NAME is the file name that the kernel would use: AT_EXECFN, and the
 * process's name.
 *
 * A set-user-ID or set-group-ID bit and file capabilities have no effect in the
 * sandbox, as under no_new_privs: otherwise dune-run would run with them.
 */
#include "calls.h"

#include <linux/mman.h>
#include <asm/stat.h>
#include <asm/unistd.h>
#include <linux/fcntl.h>
#include <linux/stat.h>

#define SCRIPT_DEPTH	5	/* as fs/exec.c */
#define SCRIPT_HEAD	256	/* BINPRM_BUF_SIZE */

#define VECTOR_SMALL	1024	/* pointers kept without a mapping */
#define VECTOR_LIMIT	(1UL << 20)	/* more cannot fit on a stack */

/* The arguments as scripts change them. */
struct script {
	char name[PATH_BYTES];		/* of the script, as it was called */
	/* first line of each script; the program's head */
	char text[SCRIPT_DEPTH + 1][SCRIPT_HEAD];
	const char *words[SCRIPT_DEPTH * 2 + 1];	/* before argv[1] */
	unsigned int count;
};

static struct script script;
static bool unreachable_name;	/* script.name ends with the old program */
static u64 small_vector[2 * VECTOR_SMALL];

/* dune-run's own arguments; see the beginning of this file. */
#define OWN_WORDS	4
static char tree_option[64], name_option[PATH_BYTES + 8];

/*
 * Open a file to execute it, with the errors of the kernel's open_exec(). The
 * right to execute it is tested by name first, so that no device is opened for
 * this, and then of the file that was opened, since the name may lead to another
 * file by then.
 */
long exec_open(int dir, const char *path, u64 flags)
{
	struct stat st;
	long fd, err;

	err = SYS4(__NR_faccessat2, dir, path, 1,
		   AT_EACCESS | (flags & (AT_EMPTY_PATH | AT_SYMLINK_NOFOLLOW)));
	if (err)
		return err;
	if ((flags & AT_EMPTY_PATH) && !path[0]) {
		char link[32];

		text_number(text_append(link, link + sizeof(link), "/proc/self/fd/"),
			    link + sizeof(link), dir);
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

static bool is_blank(char c)
{
	return c == ' ' || c == '\t';
}

/*
 * The line after "#!", as fs/binfmt_script.c reads it: an interpreter and at
 * most one argument, which goes to the end of the line.
 */
static long parse_script(char *line, long len, const char **interpreter,
			 const char **argument)
{
	char *p, *end;
	bool whole = false;

	line[len] = 0;
	for (end = line + 2; *end; end++) {
		if (*end == '\n') {
			whole = true;
			break;
		}
	}
	if (!whole && len == SCRIPT_HEAD - 1) {
		/* cut off: fine only if the interpreter's name is complete */
		for (p = line + 2; is_blank(*p); p++)
			;
		while (*p && !is_blank(*p))
			p++;
		if (!is_blank(*p))
			return -ENOEXEC;
	}
	while (end > line + 2 && is_blank(end[-1]))
		end--;
	*end = 0;
	for (p = line + 2; is_blank(*p); p++)
		;
	if (!*p)
		return -ENOEXEC;
	*interpreter = p;
	*argument = NULL;
	while (*p && !is_blank(*p))
		p++;
	if (*p) {
		*p++ = 0;
		while (is_blank(*p))
			p++;
		*argument = p;
	}
	return 0;
}

/* Put words before those of the previous script, the first of which is its name. */
static void push_words(const char *interpreter, const char *argument)
{
	unsigned int n = argument ? 2 : 1, i;

	for (i = script.count; i-- > 0; )
		script.words[i + n] = script.words[i];
	script.words[0] = interpreter;
	if (argument)
		script.words[1] = argument;
	script.count += n;
}

/*
 * Follow "#!" from the open file @fd until a program is reached. Returns its
 * descriptor, @fd or a new one; or an error, and @fd is closed.
 */
static long follow_scripts(long fd)
{
	unsigned int depth;

	script.count = 0;
	for (depth = 0; ; depth++) {
		const char *interpreter, *argument;
		char *head;
		long n, err;

		if (depth > SCRIPT_DEPTH) {
			SYS1(__NR_close, fd);
			return -ELOOP;
		}
		head = script.text[depth];
		n = SYS4(__NR_pread64, fd, head, SCRIPT_HEAD - 1, 0);
		if (n < 2 || head[0] != '#' || head[1] != '!') {
			err = n < 0 ? n : elf_probe(fd);
			if (!err)
				return fd;
			SYS1(__NR_close, fd);
			return err;
		}
		SYS1(__NR_close, fd);
		if (depth == SCRIPT_DEPTH)
			return -ELOOP;
		if (unreachable_name)
			return -ENOENT;
		err = parse_script(head, n, &interpreter, &argument);
		if (err)
			return err;
		if (!script.count) {
			script.words[0] = script.name;
			script.count = 1;
		}
		push_words(interpreter, argument);
		fd = exec_open(AT_FDCWD, interpreter, 0);
		if (fd < 0)
			return fd;
	}
}

/* The number of pointers before the NULL; 0 where there is no vector. */
static long vector_length(u64 from)
{
	u64 part[32];
	u64 n = 0, i, step;

	if (!from)
		return 0;
	while (n < VECTOR_LIMIT) {
		/* never read beyond the page in which the vector may end */
		step = (PAGE_BYTES - ((from + 8 * n) & (PAGE_BYTES - 1))) / 8;
		if (step == 0)
			step = 1;
		if (step > ARRAY_LEN(part))
			step = ARRAY_LEN(part);
		if (user_read(part, from + 8 * n, 8 * step))
			return -EFAULT;
		for (i = 0; i < step; i++)
			if (!part[i])
				return n + i;
		n += step;
	}
	return -E2BIG;
}

static long copy_vector(u64 *to, u64 from, u64 count)
{
	u64 i;

	to[count] = 0;
	if (count && user_read(to, from, 8 * count))
		return -EFAULT;
	for (i = 0; i < count; i++)
		if (in_super_range(to[i]))
			return -EFAULT;
	return 0;
}

static void set_inherited(int fd, bool yes)
{
	if (fd >= 0)
		SYS3(__NR_fcntl, fd, F_SETFD, yes ? 0 : FD_CLOEXEC);
}

static void inherit(int image, bool yes)
{
	set_inherited(image, yes);
	set_inherited(files_hidden(HIDDEN_SELF), yes);
	set_inherited(files_hidden(HIDDEN_VCPU), yes);
	set_inherited(files_hidden(HIDDEN_STATS), yes);
	set_inherited(files_hidden(HIDDEN_REPORT), yes);
}

static char *append_fd(char *p, const char *end, int fd)
{
	if (fd >= 0)
		p = text_number(p, end, fd);
	return text_append(p, end, ",");
}

/* The --tree option; see the beginning of this file. */
static void write_list(char *to, const char *end, int image)
{
	char *p = text_append(to, end, "--tree=");

	p = append_fd(p, end, image);
	p = append_fd(p, end, files_hidden(HIDDEN_SELF));
	p = append_fd(p, end, files_hidden(HIDDEN_VCPU));
	p = append_fd(p, end, files_hidden(HIDDEN_STATS));
	p = append_fd(p, end, files_hidden(HIDDEN_REPORT));
	text_number(p, end, stats_to_file());
}

static int take_number(const char **list)
{
	u64 value;
	int n = -1;

	if (text_to_number(*list, list, &value))
		n = value;
	if (**list == ',')
		(*list)++;
	return n;
}

void exec_resume(const char *list, int *image)
{
	int self, vcpu, memory, report, flags;

	*image = take_number(&list);
	self = take_number(&list);
	vcpu = take_number(&list);
	memory = take_number(&list);
	report = take_number(&list);
	flags = take_number(&list);
	set_inherited(*image, false);
	if (self >= 0)
		files_hide(HIDDEN_SELF, self);
	if (vcpu >= 0)
		dune_vcpu_inherit(vcpu);
	if (memory >= 0)
		stats_adopt(memory, report, flags & 1);
}

/* dune-run's argv and the program's environment, for execveat(). */
struct vectors {
	u64 *argv;
	u64 *envp;
	u64 mapped;	/* bytes at VECTOR_BASE; 0: the vectors are in small_vector */
};

static void free_vectors(const struct vectors *v)
{
	if (v->mapped)
		SYS2(__NR_munmap, VECTOR_BASE, v->mapped);
}

/*
 * The words of argv are OWN_WORDS of dune-run's, those of scripts, the program's
 * arguments, of which the first is missing where there are words of scripts, and a
 * NULL. @argv and @envp are the program's vectors. 0 or -errno.
 */
static long make_vectors(struct vectors *v, u64 argv, u64 envp)
{
	const char *end = name_option + sizeof(name_option);
	u64 *words = small_vector, *arguments;
	long argc, envc, err;
	unsigned int i;
	u64 bytes;

	argc = vector_length(argv);
	if (argc < 0)
		return argc;
	envc = vector_length(envp);
	if (envc < 0)
		return envc;

	/* One word more for the name that a program without arguments gets, and two NULL. */
	bytes = 8 * (OWN_WORDS + script.count + argc + 1 + 1 + envc + 1);
	v->mapped = 0;
	if (bytes > sizeof(small_vector)) {
		bytes = PAGE_UP(bytes);
		err = SYS6(__NR_mmap, VECTOR_BASE, bytes, PROT_READ | PROT_WRITE,
			   MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
		if (err < 0)
			return err;
		words = (u64 *)err;
		v->mapped = bytes;
	}
	v->argv = words;
	v->envp = words + OWN_WORDS + script.count + argc + 1 + 1;

	/* The last word of scripts, stored below, replaces the first argument. */
	arguments = words + OWN_WORDS + script.count - (script.count && argc ? 1 : 0);
	err = copy_vector(v->envp, envp, envc);
	if (!err && argc > 0)
		err = copy_vector(arguments, argv, argc);
	if (err) {
		free_vectors(v);
		return err;
	}
	if (!script.count && argc == 0)
		arguments[argc++] = (u64)"";	/* as the kernel since 5.18 */
	arguments[argc] = 0;

	text_append(text_append(name_option, end, "--name="), end, script.name);
	words[0] = (u64)"dune-run";
	words[1] = (u64)tree_option;
	words[2] = (u64)name_option;
	words[3] = (u64)"--";
	for (i = 0; i < script.count; i++)
		words[OWN_WORDS + i] = (u64)script.words[i];
	return 0;
}

/*
 * Become the program in @image, whose name is in script.name. @argv and @envp
 * are the program's vectors. Returns only with an error.
 */
static long become(int image, u64 argv, u64 envp)
{
	int self = files_hidden(HIDDEN_SELF);
	struct vectors v;
	long err;

	err = make_vectors(&v, argv, envp);
	if (err)
		return err;
	if (!files_is_self(self)) {
		free_vectors(&v);
		return -EBADF;
	}
	write_list(tree_option, tree_option + sizeof(tree_option), image);
	stats_end_process();
	inherit(image, true);
	err = SYS5(__NR_execveat, self, "", v.argv, v.envp, AT_EMPTY_PATH);
	inherit(image, false);
	free_vectors(&v);
	return err;
}

/* Also called by main.c, when the first program is a script. */
long exec_program(int fd, u64 argv, u64 envp)
{
	long image = follow_scripts(fd), err;

	if (image < 0)
		return image;
	err = become(image, argv, envp);
	SYS1(__NR_close, image);
	return err;
}

void exec_set_name(const char *name)
{
	text_append(script.name, script.name + sizeof(script.name), name);
}

static void execute(struct dune_tf *tf, int dir, u64 path, u64 argv, u64 envp, u64 flags)
{
	static char name[PATH_BYTES];
	const char *opened = name;
	long n, fd;

	n = user_string(name, path, sizeof(name));
	if (n < 0) {
		refuse(tf, -n);
		return;
	}
	if (n == 0 && !(flags & AT_EMPTY_PATH)) {
		refuse(tf, ENOENT);
		return;
	}
	if (dir == AT_FDCWD || name[0] == '/') {
		exec_set_name(name);
		if (!(flags & AT_SYMLINK_NOFOLLOW) && files_names_program(path))
			opened = files_program();
	} else {
		char *p = script.name;
		const char *end = p + sizeof(script.name);

		p = text_number(text_append(p, end, "/dev/fd/"), end, dir);
		if (n)
			text_append(text_append(p, end, "/"), end, name);
	}
	fd = exec_open(dir, opened, flags);
	if (fd < 0) {
		refuse(tf, -fd);
		return;
	}
	/* the interpreter cannot open /dev/fd/N where N closes on execve */
	unreachable_name = dir != AT_FDCWD && name[0] != '/' &&
			   (SYS2(__NR_fcntl, dir, F_GETFD) & FD_CLOEXEC);
	refuse(tf, -exec_program(fd, argv, envp));
}

void call_execve(struct dune_tf *tf)
{
	execute(tf, AT_FDCWD, ARG0(tf), ARG1(tf), ARG2(tf), 0);
}

void call_execveat(struct dune_tf *tf)
{
	u64 flags = ARG4(tf);

	if (flags & ~(u64)(AT_EMPTY_PATH | AT_SYMLINK_NOFOLLOW)) {
		refuse(tf, EINVAL);
		return;
	}
	execute(tf, ARG0(tf), ARG1(tf), ARG2(tf), ARG3(tf), flags);
}
