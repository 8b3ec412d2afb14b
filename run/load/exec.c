// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * One program becomes another: dune-run executes itself, with the open file of the new
 * program and a list of what it needs to know:
 *
 *   dune-run --tree=LIST --name=NAME --
 *
 * LIST is "image,self,stats,report,to_file,count": numbers of open descriptors (no
 * stats and report without --stats); 1 or 0: whether the report goes to a file; and how many
 * arguments the program has. NAME is the file name that the kernel would use: AT_EXECFN, and the
 * process's name.
 *
 * These words decide what runs natively, so they are in the window (<dune_copies.h>). The program's
 * arguments, of which there may be many, are not: the kernel gets them as the first words of the
 * environment, and the new dune-run takes them from there.
 */
#include "copies.h"
#include "exec.h"
#include "hidden.h"
#include "page.h"
#include "script_words.h"
#include "stats.h"
#include "super_range.h"
#include "sys.h"
#include "text.h"
#include "user_memory.h"

#include <dune_runtime.h>
#include <asm/unistd.h>
#include <linux/fcntl.h>
#include <linux/mman.h>

#define WORDS_IN_SCRATCH	(16 * 1024UL)	/* bytes; more words get a mapping */
#define VECTOR_LIMIT	(1UL << 20)	/* more cannot fit on a stack */

/* dune-run's own arguments; see the beginning of this file. */
#define OWN_WORDS	4

/* The number of pointers before the NULL; 0 if there is no vector. */
static long vector_length(u64 from)
{
	u64 part[32];
	u64 n = 0, i, step;

	if (!from)
		return 0;
	while (n < VECTOR_LIMIT) {
		/* Never read beyond the page in which the vector may end. */
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

/* Store @word in memory of the process at @to, and return where the next one goes. */
static u64 put_word(u64 to, u64 word)
{
	dune_copy((void *)to, &word, sizeof(word));
	return to + sizeof(word);
}

/* Copy @count words and a NULL from the program's vector @from to memory of the process at @to. */
static long copy_vector(u64 to, u64 from, u64 count)
{
	u64 part[32], n, i;

	for (; count; count -= n) {
		n = count < ARRAY_LEN(part) ? count : ARRAY_LEN(part);
		if (user_read(part, from, 8 * n))
			return -EFAULT;
		for (i = 0; i < n; i++)
			if (in_super_range(part[i]))
				return -EFAULT;
		if (dune_copy((void *)to, part, 8 * n))
			return -EFAULT;
		from += 8 * n;
		to += 8 * n;
	}
	put_word(to, 0);
	return 0;
}

static void set_inherited(int fd, bool yes)
{
	if (fd >= 0)
		SYS3(__NR_fcntl, fd, F_SETFD, yes ? 0 : FD_CLOEXEC);
}

/* Let execve keep the descriptors of LIST and the vCPU's open, or not. */
static void inherit(int image, bool yes)
{
	int i;

	set_inherited(image, yes);
	for (i = 0; i < HIDDEN_COUNT; i++)
		set_inherited(hidden_fd(i), yes);
}

static char *append_fd(char *p, const char *end, int fd)
{
	if (fd >= 0)
		p = text_number(p, end, fd);
	return text_append(p, end, ",");
}

/* The --tree option; see the beginning of this file. */
static void write_list(char *to, const char *end, int image, long count)
{
	char *p = text_append(to, end, "--tree=");
	int i;

	p = append_fd(p, end, image);
	for (i = 0; i < HIDDEN_VCPU; i++)
		p = append_fd(p, end, hidden_fd(i));
	p = append_fd(p, end, stats_to_file());
	text_number(p, end, count);
}

/* The next number of @list; -1 if it is empty. */
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

int exec_resume(const char *list, int *count)
{
	int image, fds[HIDDEN_VCPU], i;
	bool to_file;

	image = take_number(&list);
	/* The vCPU's number comes from the module (struct dune_start). */
	for (i = 0; i < HIDDEN_VCPU; i++)
		fds[i] = take_number(&list);
	to_file = take_number(&list) == 1;
	*count = take_number(&list);
	set_inherited(image, false);
	if (fds[HIDDEN_SELF] >= 0)
		hidden_add(HIDDEN_SELF, fds[HIDDEN_SELF]);
	if (fds[HIDDEN_STATS] >= 0)
		stats_adopt(fds[HIDDEN_STATS], fds[HIDDEN_REPORT], to_file);
	return image;
}

/* What execveat() gets, where the kernel finds it. */
struct vectors {
	u64 argv;	/* dune-run's own arguments */
	u64 envp;	/* the program's arguments, and then its environment */
};

static u64 mapping, mapping_size;	/* a mapping for the words, or 0 */

/*
 * Find room for @words words, in the scratch or in a mapping, which is ordinary memory of the
 * process, too. Returns the room or -errno.
 */
static long allocate_words(u64 words)
{
	u64 bytes = 8 * words;
	void *room = bytes <= WORDS_IN_SCRATCH ? dune_scratch_get(bytes) : NULL;
	long at;

	if (room)
		return dune_kernel_at(room);
	at = SYS6(__NR_mmap, 0, PAGE_UP(bytes), PROT_READ | PROT_WRITE,
		  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	/* Ring 0 writes there: a forged result must be no address of its own. */
	if ((u64)at > USER_END - PAGE_UP(bytes))
		return at < 0 ? at : -EFAULT;
	mapping = at;
	mapping_size = PAGE_UP(bytes);
	return at;
}

void exec_free_vectors(void)
{
	if (mapping)
		SYS2(__NR_munmap, mapping, mapping_size);
	mapping = 0;
}

/*
 * Store in @v the words of the program's @argv and @envp, of which the kernel makes the environment
 * of the new dune-run: the words of scripts, if any; the program's arguments, without the first if
 * there are words of scripts; its environment; NULL. Returns the number of arguments, or -errno.
 */
static long make_words(struct vectors *v, u64 argv, u64 envp)
{
	long argc, envc, room, err;
	unsigned int i;
	u64 to;

	argc = vector_length(argv);
	if (argc < 0)
		return argc;
	envc = vector_length(envp);
	if (envc < 0)
		return envc;

	/* One word more for the name that a program without arguments gets. */
	room = allocate_words(script.count + argc + 1 + envc + 1);
	if (room < 0)
		return room;
	v->envp = room;
	to = room;
	for (i = 0; i < script.count; i++)
		to = put_word(to, scratched_string(script.words[i]));
	if (!script.count && argc == 0)
		to = put_word(to, scratched_string(""));	/* as the kernel since 5.18 */
	/* The last word of scripts replaces the first argument. */
	if (script.count && argc) {
		argv += 8;
		argc--;
	}
	err = argc ? copy_vector(to, argv, argc) : 0;
	to += 8 * argc;
	if (!err)
		err = copy_vector(to, envp, envc);
	if (err) {
		exec_free_vectors();
		return err;
	}
	return (to - room) / 8;
}

/* dune-run's own arguments; see the beginning of this file. */
static struct {
	char list[64], name[PATH_BYTES + 8];
	u64 words[OWN_WORDS + 1];
} own_args;

/* Store in @v dune-run's own arguments. */
static void make_own_words(struct vectors *v, int image, long count)
{
	const char *end = own_args.name + sizeof(own_args.name);

	write_list(own_args.list, own_args.list + sizeof(own_args.list), image, count);
	text_append(text_append(own_args.name, end, "--name="), end, script.name);
	own_args.words[0] = shown_string("dune-run");
	own_args.words[1] = shown_string(own_args.list);
	own_args.words[2] = shown_string(own_args.name);
	own_args.words[3] = shown_string("--");
	own_args.words[OWN_WORDS] = 0;
	v->argv = shown(own_args.words, sizeof(own_args.words));
}

/*
 * Become the program in @image, whose name is in script.name. @argv and @envp
 * are the program's vectors. Returns only with an error.
 */
static long become(int image, u64 argv, u64 envp)
{
	int self = hidden_fd(HIDDEN_SELF);
	struct vectors v;
	long count, err;

	count = make_words(&v, argv, envp);
	if (count < 0)
		return count;
	make_own_words(&v, image, count);
	stats_end_process();
	inherit(image, true);
	err = dune_execveat(self, shown_string(""), v.argv, v.envp, AT_EMPTY_PATH);
	inherit(image, false);
	exec_free_vectors();
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
