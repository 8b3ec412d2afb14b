// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * A program in the sandbox has the kernel attack the runtime: by ioctls with
 * pointers inside, arrays whose length is counted in items, control data at address
 * 0, files that are truncated before they are judged, and an image that spans the
 * runtime. It runs with --stats. Fails when a call reaches the
 * runtime's memory or descriptors instead of giving the error that is expected.
 */
#define _GNU_SOURCE
#include "hostile.h"
#include "tap.h"

#include <dirent.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/input.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

/* ---- ioctl -------------------------------------------------------------- */

static void test_ioctl(void)
{
	/* PAGEMAP_SCAN, Linux 6.7: struct pm_scan_arg */
	unsigned long scan[12] = { sizeof(scan), 0, 0x10000, 0x7ffffffff000, 0, SPARE, 8, 0,
				   0, 1 << 1, 0, 1 << 1 };
	/* PROCMAP_QUERY, Linux 6.11: struct procmap_query */
	unsigned long query[13] = { sizeof(query), 0x10, (long)test_ioctl };
	struct input_mask mask = { .type = EV_KEY, .codes_size = 8, .codes_ptr = SPARE };
	char path[300];
	int fd = open("/proc/self/pagemap", O_RDONLY), event;
	DIR *d;
	struct dirent *e;

	is(call(SYS_ioctl, fd, 0xc0606610, (long)scan, 0, 0, 0), -ENOTTY,
	   "PAGEMAP_SCAN does not store by a pointer that was not checked");
	close(fd);
	fd = open("/proc/self/maps", O_RDONLY);
	((unsigned int *)query)[20] = 64;	/* vma_name_size */
	query[11] = SPARE;			/* vma_name_addr */
	is(call(SYS_ioctl, fd, 0xc0686611, (long)query, 0, 0, 0), -ENOTTY,
	   "PROCMAP_QUERY does not store by a pointer that was not checked");
	close(fd);

	d = opendir("/dev/input");
	for (event = -1; d && event < 0 && (e = readdir(d)); ) {
		if (strncmp(e->d_name, "event", 5))
			continue;
		snprintf(path, sizeof(path), "/dev/input/%s", e->d_name);
		event = open(path, O_RDWR);
	}
	if (event < 0) {
		skip("no input device", "EVIOCGMASK, EVIOCSFF and EVIOCGNAME");
		return;
	}
	is(call(SYS_ioctl, event, EVIOCGMASK, (long)&mask, 0, 0, 0), -ENOTTY,
	   "EVIOCGMASK does not store by a pointer that was not checked");
	is(call(SYS_ioctl, event, EVIOCSFF, (long)path, 0, 0, 0), -ENOTTY,
	   "EVIOCSFF does not read by a pointer that was not checked");
	memset(path, 0, sizeof(path));
	ok(call(SYS_ioctl, event, EVIOCGNAME(sizeof(path)), (long)path, 0, 0, 0) > 0,
	   "EVIOCGNAME of a device succeeds");
}

/* ---- arrays ------------------------------------------------------------- */

#define BELOW	65536
#define MANY	600000		/* items of 2 bytes or more: the guard region holds fewer */

static void test_arrays(void)
{
	unsigned char *below = mmap((void *)(SUPER_BASE - BELOW), BELOW, PROT_READ | PROT_WRITE,
				    MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
	void **pages = calloc(MANY, sizeof(*pages));
	long at = (long)below;
	int i, written = 0;

	if (below == MAP_FAILED || !pages)
		bail("memory below the runtime: %s", strerror(errno));
	memset(below, 0x55, BELOW);
	is(call(SYS_move_pages, 0, MANY, (long)pages, 0, at, 0), -EFAULT,
	   "move_pages() with its status in the runtime is EFAULT");
	is(call(SYS_move_pages, 0, MANY, at, 0, (long)pages, 0), -EFAULT,
	   "move_pages() with its array of pages in the runtime is EFAULT");
	is(call(SYS_mincore, 0x10000, MANY * 4096L, at, 0, 0, 0), -EFAULT,
	   "mincore() into the runtime is EFAULT");
	for (i = 0; i < BELOW; i++)
		written += below[i] != 0x55;
	is(written, 0, "move_pages and mincore are refused before anything is written");
	munmap(below, BELOW);
	free(pages);
}

/* ---- address 0 ---------------------------------------------------------- */

/* The number of a vCPU, or -1. */
static int vcpu_fd(void)
{
	char path[64], link[64];
	int fd;

	for (fd = 3; fd < 4096; fd++) {
		ssize_t n;

		snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
		n = readlink(path, link, sizeof(link) - 1);
		link[n > 0 ? n : 0] = 0;
		if (strstr(link, "dune-vcpu"))
			return fd;
	}
	return -1;
}

static void test_zero(void)
{
	struct { struct cmsghdr c; int fd; int pad; } rights = {
		.c = { .cmsg_len = CMSG_LEN(sizeof(int)), .cmsg_level = SOL_SOCKET,
		       .cmsg_type = SCM_RIGHTS },
		.fd = vcpu_fd(),
	};
	char text[] = "x";
	struct iovec byte = { text, 1 };
	struct mmsghdr mm = { .msg_hdr = { .msg_iov = &byte, .msg_iovlen = 1,
					   .msg_controllen = sizeof(rights) } };
	char name[] = "/proc/self/exe", link[300] = "";
	char *zero = NULL;
	int sk[2];

	/* for the compiler an address like any other */
	__asm__("" : "+r" (zero));
	if (mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED,
		 -1, 0)) {
		skip(strerror(errno), "memory at address 0");
		return;
	}
	ok(rights.fd >= 0 && !socketpair(AF_UNIX, SOCK_DGRAM, 0, sk), "memory at address 0");
	memcpy(zero, &rights, sizeof(rights));
	is(call(SYS_sendmsg, sk[0], (long)&mm, MSG_DONTWAIT, 0, 0, 0), -EBADF,
	   "a hidden descriptor is not sent by sendmsg with control data at address 0");
	is(call(SYS_sendmmsg, sk[0], (long)&mm, 1, MSG_DONTWAIT, 0, 0), -EBADF,
	   "a hidden descriptor is not sent by sendmmsg with control data at address 0");
	rights.fd = open("/dev/null", O_RDONLY);
	memcpy(zero, &rights, sizeof(rights));
	is(call(SYS_sendmsg, sk[0], (long)&mm, MSG_DONTWAIT, 0, 0, 0), 1,
	   "another descriptor is sent with control data at address 0");
	mm.msg_hdr.msg_control = &rights;
	rights.fd = -1;
	is(call(SYS_recvmsg, sk[1], (long)&mm, MSG_DONTWAIT, 0, 0, 0), 1,
	   "control data that was sent from address 0 is received");
	ok(fcntl(rights.fd, F_GETFD) >= 0, "a descriptor that was sent from address 0 is open");
	memcpy(zero, name, sizeof(name));
	ok(call(SYS_readlink, 0, (long)link, sizeof(link) - 1, 0, 0, 0) > 0 &&
	   strstr(link, "/program"), "/proc/self/exe by a name at address 0 is the program");
	munmap(NULL, 4096);
	close(sk[0]);
	close(sk[1]);
}

/* ---- files -------------------------------------------------------------- */

static long size_of(const char *name)
{
	struct stat st;

	return stat(name, &st) ? -errno : st.st_size;
}

static void test_truncate(const char *program)
{
	struct open_how how = { .flags = O_WRONLY | O_TRUNC };
	struct open_how read_how = { .flags = O_RDONLY | O_TRUNC };
	long size = size_of(program), p = (long)program;
	static const char *const ways[] = {
		"open to write", "open to read", "openat2", "creat", "truncate",
	};
	const char *file = "file";
	int i, fd;

	is(call(SYS_open, p, O_WRONLY | O_TRUNC, 0, 0, 0, 0), -ETXTBSY,
	   "the running program is not truncated by open");
	is(call(SYS_open, (long)"/proc/self/exe", O_RDWR | O_TRUNC, 0, 0, 0, 0), -ETXTBSY,
	   "the running program is not truncated as /proc/self/exe");
	is(call(SYS_open, p, O_RDONLY | O_TRUNC, 0, 0, 0, 0), -ETXTBSY,
	   "the running program is not truncated by opening it to read");
	is(call(SYS_openat2, AT_FDCWD, p, (long)&how, sizeof(how), 0, 0), -ETXTBSY,
	   "the running program is not truncated by openat2");
	is(call(SYS_openat2, AT_FDCWD, p, (long)&read_how, sizeof(how), 0, 0), -ETXTBSY,
	   "the running program is not truncated by openat2 to read");
	is(call(SYS_creat, p, 0700, 0, 0, 0, 0), -ETXTBSY,
	   "the running program is not truncated by creat");
	is(call(SYS_truncate, p, 0, 0, 0, 0, 0), -ETXTBSY,
	   "the running program is not truncated by truncate");
	is(size_of(program), size, "the running program is as long as before");

	for (i = 0; i < 5; i++) {
		fd = open(file, O_RDWR | O_CREAT, 0600);
		if (write(fd, "words", 5) != 5)
			bail("%s: %s", file, strerror(errno));
		close(fd);
		fd = i == 0 ? open(file, O_WRONLY | O_TRUNC) :
		     i == 1 ? open(file, O_RDONLY | O_TRUNC) :
		     i == 2 ? (int)syscall(SYS_openat2, AT_FDCWD, file, &how, sizeof(how)) :
		     i == 3 ? creat(file, 0600) : truncate(file, 0);
		ok(fd >= 0 && size_of(file) == 0, "another file is truncated by %s", ways[i]);
		if (i < 4)
			close(fd);
	}
	ok(truncate(file, 3) == 0 && size_of(file) == 3, "truncate() may lengthen another file");
	is(call(SYS_truncate, (long)".", 0, 0, 0, 0, 0), -EISDIR,
	   "truncate() of a directory is EISDIR");
	is(call(SYS_truncate, (long)"/dev/null", 0, 0, 0, 0, 0), -EINVAL,
	   "truncate() of a device is EINVAL");
	fd = open("new", O_WRONLY | O_CREAT | O_EXCL | O_TRUNC, 0400);
	ok(fd >= 0 && write(fd, "x", 1) == 1, "a new file need not be writable");
	close(fd);
	unlink("new");
	unlink(file);
}

static void test_stats(void)
{
	int fds[4], found = find_descriptors("dune-stats", fds, 4), i;
	char path[40];

	for (i = 0; i < found; i++) {
		snprintf(path, sizeof(path), "/proc/self/fd/%d", fds[i]);
		is(call(SYS_open, (long)path, O_RDWR, 0, 0, 0, 0), -EACCES,
		   "the counters' memory cannot be opened");
		is(call(SYS_open, (long)path, O_RDWR | O_TRUNC, 0, 0, 0, 0), -EACCES,
		   "the counters' memory is not truncated by opening");
		is(call(SYS_truncate, (long)path, 0, 0, 0, 0, 0), -EACCES,
		   "the counters' memory is not truncated by name");
	}
	is(found, 1, "the counters' memory can be seen in /proc");
}

static void test_mount(void)
{
	static const char *const types[] = { "9p", "coda" };
	int i;

	mkdir("mount", 0700);
	is(call(SYS_mount, (long)"none", (long)"mount", (long)"binfmt_misc", 0, 0, 0), -ENODEV,
	   "no binfmt_misc: it would have dune-run's own file interpreted natively");
	is(call(SYS_fsopen, (long)"binfmt_misc", 0, 0, 0, 0, 0), -ENODEV,
	   "no binfmt_misc by fsopen");
	for (i = 0; i < 2; i++) {
		is(call(SYS_mount, (long)"none", (long)"mount", (long)types[i], 0, 0, 0), -ENODEV,
		   "no %s: its options name descriptors", types[i]);
		is(call(SYS_fsopen, (long)types[i], 0, 0, 0, 0, 0), -ENODEV,
		   "no %s by fsopen", types[i]);
	}
	rmdir("mount");
}

/* ---- images ------------------------------------------------------------- */

static void test_image(void)
{
	static const unsigned char code[] = {
		0xb8, 60, 0, 0, 0, 0x31, 0xff, 0x0f, 0x05,	/* exit(0) */
	};
	struct {
		Elf64_Ehdr h;
		Elf64_Phdr p[2];
		unsigned char code[16];
	} image = {
		.h = {
			.e_ident = ELFMAG "\x02\x01\x01", .e_type = ET_DYN,
			.e_machine = EM_X86_64, .e_version = 1,
			.e_entry = offsetof(typeof(image), code),
			.e_phoff = offsetof(typeof(image), p), .e_ehsize = sizeof(Elf64_Ehdr),
			.e_phentsize = sizeof(Elf64_Phdr), .e_phnum = 2,
		},
		.p = {
			{ .p_type = PT_LOAD, .p_flags = PF_R | PF_X, .p_filesz = sizeof(image),
			  .p_memsz = sizeof(image), .p_align = 4096 },
			{ .p_type = PT_LOAD, .p_flags = PF_R | PF_W, .p_memsz = 4096,
			  .p_vaddr = 30UL << 40, .p_align = 4096 },
		},
	};
	int fd, status, null;
	pid_t child;

	memcpy(image.code, code, sizeof(code));
	fd = open("wide", O_WRONLY | O_CREAT | O_TRUNC, 0700);
	if (write(fd, &image, sizeof(image)) != sizeof(image))
		bail("wide: %s", strerror(errno));
	close(fd);
	child = fork();
	if (!child) {
		null = open("/dev/null", O_WRONLY);
		dup2(null, 2);
		execl("./wide", "wide", NULL);
		_exit(errno == ENOMEM ? 126 : 1);
	}
	waitpid(child, &status, 0);
	is(WIFEXITED(status) ? WEXITSTATUS(status) : -1, 0,
	   "an image of 30 TB starts next to the supervisor range and its guard region");
	unlink("wide");
}

int main(int argc, char **argv)
{
	test_ioctl();
	test_arrays();
	test_zero();
	test_truncate(argv[0]);
	test_stats();
	test_mount();
	test_image();
	return done();
}
