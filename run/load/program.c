// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * The file of the program that runs, which /proc/self/exe would name if the program ran
 * natively. In the sandbox /proc/self/exe leads to dune-run; calls/ puts the name of the
 * program's file in its place.
 */
#include "copies.h"
#include "page.h"
#include "program.h"
#include "protected_files.h"
#include "sys.h"
#include "text.h"
#include "user_memory.h"

#include <asm/unistd.h>

static char program[PATH_BYTES];
static u64 shown_at;	/* a copy in the window, which is never given back */

void program_set(int fd)
{
	char link[32];
	long n;

	text_fd_name(link, sizeof(link), fd);
	protected_files_set_program(fd);
	n = sys_readlink(link, program, sizeof(program) - 1);
	program[n > 0 ? n : 0] = 0;
}

const char *program_name(void)
{
	return program;
}

void program_show(void)
{
	shown_at = shown_string(program);
}

u64 program_shown(void)
{
	return shown_at;
}

bool is_own_exe(const char *name)
{
	const char *rest;
	u64 pid;

	if (!program[0])
		return false;
	if (text_equal(name, "/proc/self/exe") ||
	    text_equal(name, "/proc/thread-self/exe"))
		return true;
	return text_starts(name, "/proc/") &&
	       text_to_number(name + 6, &rest, &pid) &&
	       text_equal(rest, "/exe") && (long)pid == SYS0(__NR_getpid);
}

bool names_program(u64 path)
{
	static const char prefix[8] = "/proc/";		/* six characters are compared */
	char name[32];
	u64 first = 0;

	if ((path & (PAGE_BYTES - 1)) <= PAGE_BYTES - sizeof(first)) {
		if (user_read(&first, path, sizeof(first)))
			return false;
		if (likely((first ^ *(const u64 *)prefix) << 16))
			return false;
	}
	return user_string(name, path, sizeof(name)) >= 0 && is_own_exe(name);
}

u64 followed_name(u64 path)
{
	return unlikely(names_program(path)) ? program_shown() : path;
}
