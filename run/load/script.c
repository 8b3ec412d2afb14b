// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * "#!": the interpreters that are executed in place of scripts, and the words that
 * come before a script's arguments.
 */
#include "elf_image.h"
#include "executable.h"
#include "program.h"
#include "script.h"
#include "script_words.h"
#include "sys.h"

#include <asm/unistd.h>
#include <linux/errno.h>
#include <linux/fcntl.h>

struct script script;

static bool is_blank(char c)
{
	return c == ' ' || c == '\t';
}

static char *skip_blanks(char *p)
{
	while (is_blank(*p))
		p++;
	return p;
}

static char *skip_word(char *p)
{
	while (*p && !is_blank(*p))
		p++;
	return p;
}

/*
 * Read the line after "#!" as fs/binfmt_script.c does: an interpreter and at most one
 * argument, which goes to the end of the line. @line is the head of the file, @len bytes
 * and room for a NUL.
 */
static long parse_script(char *line, long len, const char **interpreter,
			 const char **argument)
{
	char *start = line + 2, *end, *p;
	bool trims;

	line[len] = 0;
	for (end = start; *end && *end != '\n'; end++)
		;
	if (end == line + SCRIPT_HEAD) {
		/* A line that is cut off is right only if the interpreter's name is complete. */
		if (skip_word(skip_blanks(start)) == end)
			return -ENOEXEC;
		end--;		/* the kernel puts its NUL there */
	}
	/*
	 * The kernel keeps the blanks at the end of a file that has no newline, unless they
	 * are the last that it reads.
	 */
	trims = *end || end == line + SCRIPT_HEAD - 1;
	if (trims)
		while (end > start && is_blank(end[-1]))
			end--;
	*end = 0;

	p = skip_blanks(start);
	if (!*p)	/* in the other case the kernel opens "", which is the working directory */
		return trims ? -ENOEXEC : -EACCES;
	*interpreter = p;
	*argument = NULL;
	p = skip_word(p);
	if (*p) {
		*p++ = 0;
		*argument = skip_blanks(p);
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

long follow_scripts(long fd)
{
	unsigned int depth;

	script.count = 0;
	for (depth = 0; ; depth++) {
		const char *interpreter, *argument;
		char *head;
		long n, err;

		head = script.text[depth];
		n = sys_pread(fd, head, SCRIPT_HEAD, 0);
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
		err = parse_script(head, n, &interpreter, &argument);
		if (err != -ENOEXEC && script.unreachable_name)
			return -ENOENT;
		if (err)
			return err;
		if (!script.count) {
			script.words[0] = script.name;
			script.count = 1;
		}
		push_words(interpreter, argument);
		fd = executable_open(AT_FDCWD, is_own_exe(interpreter) ? program_name() :
				     interpreter, 0);
		if (fd < 0)
			return fd;
	}
}

void script_set_name(int dir, const char *name, bool closes)
{
	const char *end = script.name + sizeof(script.name);
	char *p;

	script.unreachable_name = closes;
	if (dir == AT_FDCWD || name[0] == '/') {
		text_copy(script.name, sizeof(script.name), name);
		return;
	}
	p = text_number(text_append(script.name, end, "/dev/fd/"), end, dir);
	if (name[0])
		text_append(text_append(p, end, "/"), end, name);
}
