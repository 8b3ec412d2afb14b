// SPDX-License-Identifier: MIT OR Apache-2.0
/* The messages to people. A message is one line: the problem and what to do. */
#include "message.h"
#include "sys.h"
#include "text.h"

#include <asm/unistd.h>

static const char *errno_text(long err)
{
	static char other[32];
	char *p;

	switch (-err) {
	case EPERM:
		return "Operation not permitted";
	case ENOENT:
		return "No such file or directory";
	case EIO:
		return "Input/output error";
	case ENXIO:
		return "No such device or address";
	case EBADF:
		return "Bad file descriptor";
	case ENOEXEC:
		return "Exec format error";
	case ENOMEM:
		return "Cannot allocate memory";
	case EACCES:
		return "Permission denied";
	case EEXIST:
		return "File exists";
	case ENODEV:
		return "No such device";
	case ENOTDIR:
		return "Not a directory";
	case EISDIR:
		return "Is a directory";
	case EINVAL:
		return "Invalid argument";
	case EMFILE:
		return "Too many open files";
	case ELOOP:
		return "Too many levels of symbolic links";
	case ENAMETOOLONG:
		return "File name too long";
	case EPROTO:
		return "Protocol error";
	case ELIBBAD:
		return "Accessing a corrupted shared library";
	}
	p = text_append(other, other + sizeof(other), "error ");
	text_number(p, other + sizeof(other), -err);
	return other;
}

void message(const char *problem, const char *object, long err, const char *advice)
{
	char line[PATH_BYTES + 512];
	const char *end = line + sizeof(line);
	char *p;

	p = text_append(line, end, "dune-run: ");
	p = text_append(p, end, problem);
	if (object) {
		p = text_append(p, end, " ");
		p = text_append(p, end, object);
	}
	if (err) {
		p = text_append(p, end, ": ");
		p = text_append(p, end, errno_text(err));
	}
	p = text_append(p, end, ": ");
	p = text_append(p, end, advice);
	*p++ = '\n';
	sys_write(2, line, p - line);
}

void die(int status, const char *problem, const char *object, long err, const char *advice)
{
	message(problem, object, err, advice);
	for (;;)
		SYS1(__NR_exit_group, status);
}
