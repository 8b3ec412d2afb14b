// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * Truncates files of all kinds, by O_TRUNC and by name: those that are empty already, new ones,
 * those that may not be written, and what is no regular file. Prints what comes of it. edges.bash
 * runs it as root, and fails when that differs natively and in the sandbox.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <linux/openat2.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#define OLD	1000			/* the time of a file that was not changed */

static void fail(const char *what)
{
	perror(what);
	exit(EXIT_FAILURE);
}

/* Makes a file with the old time. */
static void make(const char *name, const char *content, mode_t mode)
{
	const struct timespec old[2] = { { OLD, 0 }, { OLD, 0 } };
	int fd;

	unlink(name);
	fd = open(name, O_WRONLY | O_CREAT | O_EXCL, mode);
	if (fd < 0 || write(fd, content, strlen(content)) < 0 || futimens(fd, old))
		fail(name);
	close(fd);
}

static void print(const char *how, const char *name, long ret)
{
	int err = errno;
	struct stat st;

	printf("%s %s: %s", how, name, ret < 0 ? strerrorname_np(err) : "done");
	if (!stat(name, &st) && S_ISREG(st.st_mode))
		printf(", %ld bytes, mode %o%s", (long)st.st_size, st.st_mode & 07777,
		       st.st_mtime == OLD ? "" : ", changed");
	puts("");
}

static void by_open(const char *name, int flags)
{
	char how[40];
	int fd = open(name, flags | O_TRUNC, 0400);

	snprintf(how, sizeof(how), "open %#o", flags);
	print(how, name, fd);
	if (fd >= 0)
		close(fd);
}

static void by_openat2(const char *name, int flags)
{
	struct open_how how = {
		.flags = flags | O_TRUNC, .mode = flags & O_CREAT ? 0400 : 0,
		.resolve = RESOLVE_BENEATH,
	};
	int fd = syscall(SYS_openat2, AT_FDCWD, name, &how, sizeof(how));

	print("openat2", name, fd);
	if (fd >= 0)
		close(fd);
}

static void by_name(const char *name, off_t length)
{
	print("truncate", name, truncate(name, length));
}

static void test_empty(void)
{
	make("empty", "", 0600);
	by_open("empty", O_RDONLY);
	make("empty", "", 0600);
	by_openat2("empty", O_RDONLY);
	make("empty", "", 0600);
	by_open("empty", O_RDONLY | O_CREAT);
	make("empty", "", 0600);
	by_openat2("empty", O_RDONLY | O_CREAT);
	make("empty", "", 0600);
	by_open("empty", O_RDONLY | O_CREAT | O_EXCL);
	by_open("empty", O_WRONLY);
	make("empty", "", 0600);
	by_open("empty", O_PATH);
	make("full", "words", 0600);
	by_open("full", O_RDONLY);
	make("full", "words", 04777);
	by_openat2("full", O_RDONLY | O_CREAT);
	make("full", "words", 04777);
	by_name("full", 2);
}

/* A new file may be opened with any mode. Its time is that of its making. */
static void test_new(void)
{
	unlink("new");
	by_open("new", O_RDONLY | O_CREAT);
	by_open("new", O_RDONLY | O_CREAT);
	unlink("new");
	by_openat2("new", O_RDONLY | O_CREAT);
	unlink("new");
	by_open("new", O_RDONLY | O_CREAT | O_EXCL);
	unlink("new");
	symlink("new", "to-new");
	by_open("to-new", O_RDONLY | O_CREAT);
	by_open("to-new", O_RDONLY | O_CREAT | O_EXCL);
	unlink("new");
	by_open("new", O_RDONLY);
	by_open("new/", O_RDONLY | O_CREAT);
	by_open("no-directory/new", O_RDONLY | O_CREAT);
	unlink("to-new");
}

static void test_protected(const char *name, int flag)
{
	int fd = open(name, O_RDONLY), none = 0;

	if (fd < 0 || ioctl(fd, FS_IOC_SETFLAGS, &flag)) {
		printf("%s has no flags: %s\n", name, strerrorname_np(errno));
		return;
	}
	by_open(name, O_RDONLY);
	by_open(name, O_WRONLY);
	by_open(name, O_WRONLY | O_APPEND);
	by_name(name, 0);
	ioctl(fd, FS_IOC_SETFLAGS, &none);
	close(fd);
}

static void test_others(void)
{
	struct sockaddr_un address = { AF_UNIX, "socket" };
	int sk = socket(AF_UNIX, SOCK_STREAM, 0);

	if (mkdir("directory", 0700) || mkfifo("fifo", 0644) ||
	    bind(sk, (void *)&address, sizeof(address)) ||
	    mknod("null", S_IFCHR | 0644, makedev(1, 3)) ||
	    mknod("missing", S_IFCHR | 0644, makedev(200, 3)))
		fail("files");
	chmod("null", 0644);
	close(sk);
	by_open("directory", O_RDONLY);
	by_openat2("directory", O_RDONLY);
	by_open("directory", O_RDONLY | O_CREAT);
	by_open("directory", O_RDONLY | O_DIRECTORY);
	by_open("fifo", O_RDONLY | O_NONBLOCK);
	by_open("null", O_RDONLY);
	by_open("socket", O_RDONLY);
	by_name("directory", 0);
	by_name("fifo", 0);
	by_name("null", 0);
	by_name("missing", 0);
	by_name("socket", 0);
	by_name("none", 0);
	by_name("", 0);
	by_name("full/none", 0);
	by_name("full", -1);
	by_name("none", -1);
}

/* Truncating a FIFO does not open it: a process that waits for a writer still waits. */
static void test_waiting_reader(void)
{
	char byte = '-';
	int fd, status;
	pid_t child = fork();

	if (!child) {
		fd = open("fifo", O_RDONLY);
		if (read(fd, &byte, 1) != 1)
			byte = '0';
		_exit(byte);
	}
	usleep(200000);
	by_name("fifo", 0);
	usleep(200000);
	fd = open("fifo", O_WRONLY | O_NONBLOCK);
	printf("writer %s, %zd bytes\n", fd < 0 ? strerrorname_np(errno) : "opened",
	       write(fd, "x", 1));
	waitpid(child, &status, 0);
	printf("the reader has read %c\n", WEXITSTATUS(status));
	close(fd);
}

static void test_other_user(void)
{
	pid_t child;

	make("empty", "", 0644);
	make("full", "words", 0644);
	fflush(stdout);
	child = fork();
	if (!child) {
		if (setresuid(1000, 1000, 1000))
			fail("setresuid");
		by_open("empty", O_RDONLY);
		by_openat2("empty", O_RDONLY);
		by_open("empty", O_RDONLY | O_CREAT);
		by_openat2("empty", O_RDONLY | O_CREAT);
		by_open("full", O_RDONLY);
		by_open("null", O_RDONLY);
		by_open("fifo", O_RDONLY | O_NONBLOCK);
		by_name("empty", 0);
		by_name("fifo", 0);
		by_name("null", 0);
		test_new();
		fflush(stdout);
		_exit(0);
	}
	waitpid(child, NULL, 0);
}

int main(void)
{
	setvbuf(stdout, NULL, _IOLBF, 0);
	umask(0);
	if (mkdir("files", 0777) || unshare(CLONE_NEWNS) ||
	    mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) ||
	    mount("files", "files", "tmpfs", 0, "mode=777") || chdir("files"))
		fail("a file system");
	test_empty();
	test_new();
	make("append", "", 0600);
	test_protected("append", FS_APPEND_FL);
	make("immutable", "", 0600);
	test_protected("immutable", FS_IMMUTABLE_FL);
	test_others();
	test_waiting_reader();
	test_other_user();
	return 0;
}
