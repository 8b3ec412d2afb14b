// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * A program's file on hugetlbfs. The kernel rounds the length of a mapping of such a file
 * up to huge pages, so the 4 KB that the image asks for would replace 2 MB: here these
 * contain the arguments, the environment and the auxiliary vector of the process
 * that loads the image. The kernel's own loader cannot map such an image
 * either: natively execve kills the process. huge_image.bash reserves huge pages. Fails
 * when execve does not return the error, or when the same image in another file does
 * not run.
 */
#define _GNU_SOURCE
#include "child.h"
#include "hostile.h"
#include "tap.h"
#include "tiny_image.h"
#include "x86.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/personality.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define HUGE		(2UL << 20)
#define STACK_ROOM	0x40000UL	/* more than the kernel maps below the vectors */
#define VECTORS		0x2000UL	/* more than they take */
#define WORDS		24		/* in the environment, */
#define WORD_BYTES	0x1f000UL	/* this long: 3 MB */

/*
 * The addresses of the stack depend on nothing but its contents then, and the
 * vectors are more than 2 MB below its end.
 */
static void execute_with_known_stack(void)
{
	static char *words[WORDS + 1];
	char *argv[] = { "huge_image", "known", NULL };
	struct rlimit limit;
	int i;

	for (i = 0; i < WORDS; i++) {
		words[i] = malloc(WORD_BYTES);
		memset(words[i], 'a', WORD_BYTES);
		words[i][1] = '=';
		words[i][WORD_BYTES - 1] = 0;
	}
	getrlimit(RLIMIT_STACK, &limit);
	limit.rlim_cur = 64UL << 20;
	if (setrlimit(RLIMIT_STACK, &limit))
		perror("setrlimit");
	personality(ADDR_NO_RANDOMIZE);
	execve("/proc/self/exe", argv, words);
	perror("execve");
}

static int new_file(const char *name, int flags, const struct tiny_image *image)
{
	int fd = memfd_create(name, flags);
	void *page;

	if (fd < 0 || ftruncate(fd, HUGE) || fchmod(fd, 0777))
		return -1;
	page = mmap(NULL, HUGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (page == MAP_FAILED)
		return -1;
	memcpy(page, image, sizeof(*image));
	munmap(page, HUGE);
	return fd;
}

/* Execute a file with the same stack: the error of execveat, or the status of wait(). */
static int execute(int fd, char **argv, char **envp)
{
	int *err = shared_alloc(sizeof(*err));
	int status = -1;
	pid_t child = fork();

	if (!child) {
		syscall(SYS_execveat, fd, "", argv, envp, AT_EMPTY_PATH);
		*err = -errno;
		_exit(0);
	}
	waitpid(child, &status, 0);
	return *err ? *err : status;
}

int main(int argc, char **argv, char **envp)
{
	u64 vectors = (u64)(argv - 1), start = vectors & ~(HUGE - 1);
	char *arguments[] = { argv[0], argv[1], NULL }, path[64];
	int plain, huge, outer;
	struct tiny_image image;

	if (argc < 2) {
		execute_with_known_stack();
		return 1;
	}
	if (vectors - start < STACK_ROOM || start + HUGE - vectors < VECTORS)
		bail("the vectors are at %#lx", (unsigned long)vectors);
	make_tiny_image(&image, start);
	plain = new_file("plain", 0, &image);
	huge = new_file("huge", MFD_HUGETLB, &image);
	if (huge < 0) {
		skip("no huge pages", "a program's file on hugetlbfs");
		return done();
	}
	is(execute(plain, arguments, envp), TINY_STATUS << 8,
	   "an image in the 2 MB of the vectors runs");
	is(execute(huge, arguments, envp), -ENOEXEC, "a program's file on hugetlbfs is refused");

	snprintf(path, sizeof(path), "/proc/%d/fd/%d", getpid(), huge);
	make_tiny_image(&image, start - HUGE);
	set_interpreter(&image, path);
	outer = new_file("outer", 0, &image);
	is(execute(outer, arguments, envp), -ELIBBAD, "a loader's file on hugetlbfs is refused");

	snprintf(path, sizeof(path), "/proc/%d/fd/%d", getpid(), plain);
	make_tiny_image(&image, start - HUGE);
	set_interpreter(&image, path);
	outer = new_file("outer", 0, &image);
	is(execute(outer, arguments, envp), TINY_STATUS << 8,
	   "the same loader in another file runs");
	return done();
}
