// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * A program in the sandbox opens files that lead to memory or devices, and uses the runtime's
 * descriptors, or handles of them. Fails when it gets the memory of a process, /dev/dune or a
 * device that it must not have, when a hidden descriptor or such a handle can be used, when the
 * program loses a number of its own, or when /proc/self/exe is not the program.
 */
#define _GNU_SOURCE
#include "hostile.h"
#include "tap.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <unistd.h>

static void test_memory_files(void)
{
	struct { unsigned long flags, mode, resolve; } how = { O_RDWR, 0, 0 };
	int dir = open("/proc/self", O_RDONLY | O_DIRECTORY);
	char path[100];
	pid_t child;

	is(call(SYS_open, (long)"/proc/self/mem", O_RDWR, 0, 0, 0, 0), -EACCES,
	   "open of /proc/self/mem: EACCES");
	is(call(SYS_open, (long)"/proc/self/mem", O_RDONLY, 0, 0, 0, 0), -EACCES,
	   "open of /proc/self/mem to read: EACCES");
	is(call(SYS_openat, dir, (long)"mem", O_RDONLY, 0, 0, 0), -EACCES,
	   "openat of mem below /proc/self: EACCES");
	is(call(SYS_openat2, dir, (long)"mem", (long)&how, sizeof(how), 0, 0), -EACCES,
	   "openat2 of mem below /proc/self: EACCES");
	is(call(SYS_open, (long)"/proc/self/task/../mem", O_RDWR, 0, 0, 0, 0), -EACCES,
	   "open of /proc/self/task/../mem: EACCES");
	if (symlink("/proc/thread-self/mem", "link"))
		bail("symlink: %s", strerror(errno));
	is(call(SYS_open, (long)"link", O_RDWR, 0, 0, 0, 0), -EACCES,
	   "open of a symbolic link to /proc/thread-self/mem: EACCES");
	unlink("link");
	is(call(SYS_open, (long)"/proc/self/mem", O_PATH, 0, 0, 0, 0), -EACCES,
	   "open of /proc/self/mem with O_PATH: EACCES");
	child = fork();
	if (!child) {
		pause();
		_exit(0);
	}
	snprintf(path, sizeof(path), "/proc/%d/mem", child);
	is(call(SYS_open, (long)path, O_RDWR, 0, 0, 0, 0), -EACCES,
	   "open of a child's memory: EACCES");
	is(call(SYS_ptrace, 16, child, 0, 0, 0, 0), -EPERM, "ptrace of a child: EPERM");
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	snprintf(path, sizeof(path), "/proc/%d/mem", getppid());
	is(call(SYS_open, (long)path, O_RDWR, 0, 0, 0, 0), -EACCES,
	   "open of the parent's memory: EACCES");
	close(dir);
}

/* As root. */
static void test_kcore(void)
{
	is(call(SYS_open, (long)"/proc/kcore", O_RDONLY, 0, 0, 0, 0), -EPERM,
	   "open of /proc/kcore: EPERM");
	chmod("/proc/kcore", 0444);
	is(call(SYS_open, (long)"/proc/kcore", O_RDONLY, 0, 0, 0, 0), -EPERM,
	   "open of /proc/kcore, readable for all: EPERM");
	chmod("/proc/kcore", 0400);
}

/* As root. */
static void test_nodes(void)
{
	static const struct { const char *name; int type, major, minor, error; } nodes[] = {
		{ "mem", S_IFCHR, 1, 1, ENXIO }, { "port", S_IFCHR, 1, 4, ENXIO },
		{ "kvm", S_IFCHR, 10, 232, ENODEV }, { "vhost", S_IFCHR, 10, 238, ENODEV },
		{ "null", S_IFCHR, 1, 3, 0 }, { "zero", S_IFCHR, 1, 5, 0 },
	};
	size_t i;

	for (i = 0; i < sizeof(nodes) / sizeof(nodes[0]); i++) {
		long got;

		unlink("node");
		if (mknod("node", nodes[i].type | 0600,
			  makedev(nodes[i].major, nodes[i].minor))) {
			skip(strerror(errno), "open of a node of one's own for %s", nodes[i].name);
			continue;
		}
		got = call(SYS_open, (long)"node", O_RDWR, 0, 0, 0, 0);
		is(got < 0 ? -got : 0, nodes[i].error,
		   "open of a node of one's own for %s: %s", nodes[i].name,
		   nodes[i].error ? strerrorname_np(nodes[i].error) : "it succeeds");
	}
	unlink("node");
}

/* @what: a part of the descriptor's link in /proc. */
static void test_hidden_descriptor(const char *what)
{
	int fd = -1, n;
	pid_t child;

	if (find_descriptors(what, &fd, 1) != 1)
		bail("no descriptor of %s", what);
	diag("%s: descriptor %d", what, fd);

	is(call(SYS_dup, fd, 0, 0, 0, 0, 0), -EBADF, "dup of a hidden descriptor: EBADF");
	is(call(SYS_fcntl, fd, F_DUPFD, 3, 0, 0, 0), -EBADF,
	   "F_DUPFD of a hidden descriptor: EBADF");
	is(call(SYS_close, fd, 0, 0, 0, 0, 0), -EBADF, "close of a hidden descriptor: EBADF");
	is(call(SYS_mmap, 0, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0), -EBADF,
	   "mmap of a hidden descriptor: EBADF");
	is(call(SYS_ioctl, fd, 0xde10, 0, 0, 0, 0), -EBADF, "ioctl of a hidden descriptor: EBADF");
	is(call(SYS_dup2, 0, fd, 0, 0, 0, 0), fd,
	   "dup2 to the number of a hidden descriptor: the number");
	/* This call leaves the guest, and comes back by the vCPU's new number. */
	is(call(SYS_prctl, PR_GET_DUMPABLE, 0, 0, 0, 0, 0), 1, "a call that the stub makes");
	is(call(SYS_close, fd, 0, 0, 0, 0, 0), 0,
	   "close of a number that a hidden descriptor had: 0");
	is(call(SYS_close_range, 3, ~0U, 0, 0, 0, 0), 0, "close_range of all descriptors: 0");
	child = fork();
	if (!child)
		_exit(0);
	ok(child > 0 && waitpid(child, &n, 0) == child && !n,
	   "a child can be made after close_range() of all descriptors");
}

/* What a descriptor with O_PATH permits. */
static void test_handle(const char *name, int fd, int error)
{
	char path[40];

	ok(fd >= 0, "a handle (O_PATH) of %s", name);
	is(call(SYS_ioctl, fd, FIONREAD, (long)path, 0, 0, 0), -EBADF,
	   "ioctl of a handle of %s: EBADF", name);
	is(call(SYS_mmap, 0, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0), -EBADF,
	   "mmap of a handle of %s: EBADF", name);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	is(call(SYS_open, (long)path, O_RDWR, 0, 0, 0, 0), -error,
	   "open by a handle of %s: %s", name, strerrorname_np(error));
	close(fd);
}

static void test_handles(void)
{
	char path[40];
	int vcpu;

	is(call(SYS_open, (long)"/dev/dune", O_PATH, 0, 0, 0, 0), -ENODEV,
	   "open of /dev/dune with O_PATH: ENODEV");
	test_handle("/dev/dune", call(SYS_open_tree, AT_FDCWD, (long)"/dev/dune", 0, 0, 0, 0),
		    ENODEV);
	if (find_descriptors("dune-vcpu", &vcpu, 1) != 1)
		bail("the vCPU's descriptor cannot be seen in /proc");
	snprintf(path, sizeof(path), "/proc/self/fd/%d", vcpu);
	test_handle("the vCPU", open(path, O_PATH), ENXIO);
}

/* Calls that follow /proc/self/exe must not reach dune-run's own file. */
static void test_own_attributes(void)
{
	static const struct timespec times[2] = { { .tv_sec = 1 }, { .tv_sec = 2 } };
	char self[200] = "", runtime[200] = "", path[40];
	struct stat before, after, own;
	int fd;

	if (find_descriptors("libexec/dune-run", &fd, 1) != 1)
		bail("dune-run's own file cannot be seen in /proc");
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	if (readlink("/proc/self/exe", self, sizeof(self) - 1) < 0 ||
	    readlink(path, runtime, sizeof(runtime) - 1) < 0 || stat(runtime, &before))
		bail("%s: %s", runtime, strerror(errno));
	is(call(SYS_chmod, (long)"/proc/self/exe", 0711, 0, 0, 0, 0), 0,
	   "chmod of /proc/self/exe: 0");
	stat(self, &own);
	is(own.st_mode & 07777, 0711, "chmod of /proc/self/exe changes the program");
	is(call(SYS_utimensat, AT_FDCWD, (long)"/proc/self/exe", (long)times, 0, 0, 0), 0,
	   "utimensat of /proc/self/exe: 0");
	stat(self, &own);
	is(own.st_mtime, 2, "utimensat of /proc/self/exe changes the program");
	is(call(SYS_linkat, AT_FDCWD, (long)"/proc/self/exe", AT_FDCWD, (long)"exe",
		AT_SYMLINK_FOLLOW, 0), 0, "linkat of /proc/self/exe: 0");
	ok(!stat("exe", &after) && after.st_ino == own.st_ino,
	   "linkat of /proc/self/exe makes a link to the program");
	unlink("exe");
	ok(!stat(runtime, &after) && after.st_mode == before.st_mode &&
	   after.st_mtime == before.st_mtime && after.st_nlink == before.st_nlink,
	   "dune-run's file is as before");
}

static bool is_link(int fd)
{
	struct stat st;

	return fd >= 0 && !fstatat(fd, "", &st, AT_EMPTY_PATH) && S_ISLNK(st.st_mode);
}

/* Calls that do not follow /proc/self/exe must get the link. */
static void test_own_link(void)
{
	struct open_how how = { .flags = O_RDONLY, .resolve = RESOLVE_NO_SYMLINKS };
	long exe = (long)"/proc/self/exe";
	int fd;

	is(call(SYS_open, exe, O_RDONLY | O_NOFOLLOW, 0, 0, 0, 0), -ELOOP,
	   "open of /proc/self/exe with O_NOFOLLOW: ELOOP");
	is(call(SYS_openat, AT_FDCWD, exe, O_RDONLY | O_NOFOLLOW, 0, 0, 0), -ELOOP,
	   "openat of /proc/self/exe with O_NOFOLLOW: ELOOP");
	is(call(SYS_openat2, AT_FDCWD, exe, (long)&how, sizeof(how), 0, 0), -ELOOP,
	   "openat2 of /proc/self/exe with RESOLVE_NO_SYMLINKS: ELOOP");
	fd = call(SYS_open, exe, O_PATH | O_NOFOLLOW, 0, 0, 0, 0);
	ok(is_link(fd), "open of /proc/self/exe with O_PATH and O_NOFOLLOW gives the link");
	close(fd);
	fd = call(SYS_open_tree, AT_FDCWD, exe, AT_SYMLINK_NOFOLLOW, 0, 0, 0);
	ok(is_link(fd), "open_tree of /proc/self/exe with AT_SYMLINK_NOFOLLOW gives the link");
	close(fd);
}

static bool is_program(int fd)
{
	struct stat opened, program;

	return fd >= 0 && !fstat(fd, &opened) && !stat("/proc/self/exe", &program) &&
	       opened.st_dev == program.st_dev && opened.st_ino == program.st_ino;
}

/* Calls that follow it get the program, by each way to open it. */
static void test_own_program(void)
{
	struct open_how how = { .flags = O_RDONLY };
	long exe = (long)"/proc/self/exe";
	int fd;

	fd = call(SYS_open, exe, O_RDONLY, 0, 0, 0, 0);
	ok(is_program(fd), "open of /proc/self/exe gives the program");
	close(fd);
	fd = call(SYS_openat, AT_FDCWD, exe, O_RDONLY, 0, 0, 0);
	ok(is_program(fd), "openat of /proc/self/exe gives the program");
	close(fd);
	fd = call(SYS_openat2, AT_FDCWD, exe, (long)&how, sizeof(how), 0, 0);
	ok(is_program(fd), "openat2 of /proc/self/exe gives the program");
	close(fd);
	fd = call(SYS_open_tree, AT_FDCWD, exe, 0, 0, 0, 0);
	ok(is_program(fd), "open_tree of /proc/self/exe gives the program");
	close(fd);
}

static bool exists(const char *name)
{
	return !access(name, F_OK);
}

/* /proc/self/exe exists also if its file has another name: no call makes a file of the old name. */
static void test_own_name_gone(void)
{
	struct open_how how = { .flags = O_RDONLY | O_CREAT, .mode = 0600 };
	char self[200] = "", away[210];
	long exe = (long)"/proc/self/exe";

	if (readlink("/proc/self/exe", self, sizeof(self) - 1) < 0)
		bail("/proc/self/exe: %s", strerror(errno));
	snprintf(away, sizeof(away), "%s.away", self);
	if (rename(self, away))
		bail("%s: %s", self, strerror(errno));
	is(call(SYS_open, exe, O_RDONLY | O_CREAT, 0600, 0, 0, 0), -ENOENT,
	   "open of /proc/self/exe with O_CREAT finds no file");
	ok(!exists(self), "open with O_CREAT makes no file");
	is(call(SYS_open, exe, O_RDONLY | O_CREAT | O_EXCL, 0600, 0, 0, 0), -EEXIST,
	   "open of /proc/self/exe with O_CREAT and O_EXCL: EEXIST");
	ok(!exists(self), "open with O_EXCL makes no file");
	is(call(SYS_openat, AT_FDCWD, exe, O_RDONLY | O_CREAT, 0600, 0, 0), -ENOENT,
	   "openat of /proc/self/exe with O_CREAT finds no file");
	ok(!exists(self), "openat with O_CREAT makes no file");
	is(call(SYS_openat2, AT_FDCWD, exe, (long)&how, sizeof(how), 0, 0), -ENOENT,
	   "openat2 of /proc/self/exe with O_CREAT finds no file");
	ok(!exists(self), "openat2 with O_CREAT makes no file");
	is(call(SYS_creat, exe, 0600, 0, 0, 0, 0), -ENOENT,
	   "creat of /proc/self/exe finds no file");
	ok(!exists(self), "creat makes no file");
	if (rename(away, self))
		bail("%s: %s", away, strerror(errno));
}

/* While its file has its name, O_CREAT has no effect. */
static void test_own_program_created(void)
{
	struct open_how how = { .flags = O_RDONLY | O_CREAT, .mode = 0600 };
	long exe = (long)"/proc/self/exe";
	int fd;

	fd = call(SYS_open, exe, O_RDONLY | O_CREAT, 0600, 0, 0, 0);
	ok(is_program(fd), "open of /proc/self/exe with O_CREAT gives the program");
	close(fd);
	fd = call(SYS_openat2, AT_FDCWD, exe, (long)&how, sizeof(how), 0, 0);
	ok(is_program(fd), "openat2 of /proc/self/exe with O_CREAT gives the program");
	close(fd);
	fd = call(SYS_open, exe, O_PATH | O_CREAT | O_EXCL, 0, 0, 0, 0);
	ok(is_program(fd), "open of /proc/self/exe with O_PATH, O_CREAT and O_EXCL does, too");
	close(fd);
	how.mode = 010000;
	is(call(SYS_openat2, AT_FDCWD, exe, (long)&how, sizeof(how), 0, 0), -EINVAL,
	   "openat2 of /proc/self/exe with O_CREAT and a wrong mode: EINVAL");
	is(call(SYS_open, exe, O_RDWR | O_CREAT, 0600, 0, 0, 0), -ETXTBSY,
	   "open of /proc/self/exe to write, with O_CREAT: ETXTBSY");
	is(call(SYS_creat, exe, 0600, 0, 0, 0, 0), -ETXTBSY, "creat of /proc/self/exe: ETXTBSY");
	is(call(SYS_acct, exe, 0, 0, 0, 0, 0), -ENOSYS, "acct: ENOSYS");
}

static void test_own_file(void)
{
	char self[200] = "";
	int fd, n = readlink("/proc/self/exe", self, sizeof(self) - 1);

	ok(n > 0 && strstr(self, "hostile/files"), "/proc/self/exe is the program");
	fd = open("/proc/self/exe", O_RDONLY);
	ok(fd >= 0 && read(fd, self, 4) == 4 && !memcmp(self, "\177ELF", 4),
	   "/proc/self/exe can be opened");
	close(fd);
}

int main(void)
{
	leave_session();
	test_memory_files();
	if (geteuid() == 0) {
		test_kcore();
		test_nodes();
	}
	is(call(SYS_open, (long)"/dev/dune", O_RDWR, 0, 0, 0, 0), -ENODEV,
	   "open of /dev/dune: ENODEV");
	test_hidden_descriptor("libexec/dune-run");
	test_hidden_descriptor("dune-vcpu");
	test_handles();
	test_own_file();
	test_own_link();
	test_own_program();
	test_own_program_created();
	test_own_name_gone();
	test_own_attributes();
	return done();
}
