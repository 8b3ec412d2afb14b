// SPDX-License-Identifier: MIT OR Apache-2.0
/* The same process's memory, by other ways. See pitfalls.h. */
#define _GNU_SOURCE
#include "pitfalls.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define RANGES		64
#define GONE_SECONDS	3

void row_proc_mem(void)
{
	int fd = RAW6(SYS_openat, AT_FDCWD, "/proc/self/mem", O_RDWR, 0, 0, 0);
	unsigned int i;

	for (i = 0; i < TARGETS; i++) {
		u64 at = target(i);

		RAW6(SYS_pread64, fd, buffer, PAGE, at, 0, 0);
		RAW(SYS_lseek, fd, at, SEEK_SET);
		RAW(SYS_read, fd, buffer + PAGE, PAGE);
		RAW6(SYS_pwrite64, fd, sled, at >= FRAMES ? PAGE : 64, at, 0, 0);
		work(1);
	}
}

void row_process_vm(void)
{
	unsigned int i;

	for (i = 0; i < TARGETS; i++) {
		struct iovec mine = { buffer, PAGE }, its = { (void *)target(i), PAGE };

		RAW6(SYS_process_vm_readv, getpid(), &mine, 1, &its, 1, 0);
		if (has_secret(buffer, PAGE))
			return;
		mine.iov_base = sled;
		RAW6(SYS_process_vm_writev, getpid(), &mine, 1, &its, 1, 0);
		work(1);
	}
}

/* Reads the writable mappings of process @pid. */
static int find_writable(pid_t pid, struct iovec *ranges)
{
	char name[64], line[512], rights[8];
	unsigned long start, end;
	int n = 0;
	FILE *f;

	snprintf(name, sizeof(name), "/proc/%d/maps", pid);
	f = fopen(name, "r");
	while (f && fgets(line, sizeof(line), f))
		if (sscanf(line, "%lx-%lx %7s", &start, &end, rights) == 3 && rights[1] == 'w' &&
		    n < RANGES)
			ranges[n++] = (struct iovec){ (void *)start, end - start };
	if (f)
		fclose(f);
	return n;
}

/* A new process for each attempt, since the attacked one dies of many of them; until killed. */
static void repeat(void (*attempt)(void))
{
	for (;;) {
		unsigned int choice = rand();
		pid_t pid = fork();

		if (!pid) {
			srand(choice);
			attempt();
			_exit(0);
		}
		if (pid > 0)
			waitpid(pid, NULL, 0);
	}
}

/* A child writes all writable memory of its parent, which works. */
static void overwrite_all(void)
{
	pid_t parent = getpid();
	struct iovec ranges[RANGES];
	u64 words[16];
	int n;

	prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY);
	if (fork()) {
		work_attacked(1000);
		return;
	}
	while (getppid() == parent) {
		n = find_writable(parent, ranges);
		while (n && rand() % 32) {
			struct iovec *r = &ranges[rand() % n], from = { words, 8 + rand() % 120 };
			struct iovec to = { (char *)r->iov_base + (rand() % (r->iov_len / 8)) * 8,
					    from.iov_len };

			random_words(words, 16);
			RAW6(SYS_process_vm_writev, parent, &from, 1, &to, 1, 0);
		}
	}
}

/*
 * The same for the scratch and the frames alone, so that the parent lives longer. The copies that
 * are used most are at the beginning.
 */
static void overwrite_part(u64 at, u64 size)
{
	pid_t parent = getpid();
	u64 words[64];

	prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY);
	if (fork()) {
		work_attacked(1000);
		return;
	}
	while (getppid() == parent) {
		struct iovec from = { words, 8 + rand() % 500 };
		u64 offset = rand() % (rand() & 1 ? 256 : size - 512) / 8 * 8;
		struct iovec to = { (char *)at + offset, from.iov_len };

		random_words(words, 64);
		RAW6(SYS_process_vm_writev, parent, &from, 1, &to, 1, 0);
	}
}

static void overwrite_scratch(void)
{
	overwrite_part(SCRATCH, rand() & 1 ? 4096 : SCRATCH_SIZE);
}

static void overwrite_frames(void)
{
	/* the last frame begins at the end of the stack */
	overwrite_part(FRAMES + FRAMES_SIZE - 4096, 4096);
}

/* Shared memory in the place of the scratch, the frames or both, which a child changes. */
static void share_part(void)
{
	u64 at = rand() & 1 ? SCRATCH : FRAMES, end = FRAMES + FRAMES_SIZE;
	int fd = memfd_create("shared", MFD_ALLOW_SEALING);
	pid_t parent = getpid();
	u64 *p;

	if (rand() & 1 && at == SCRATCH)
		end = FRAMES;
	ftruncate(fd, end - at);
	pwrite(fd, (void *)at, end - at, 0);
	p = mmap(NULL, end - at, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	RAW6(SYS_mmap, at, end - at, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_SHARED | MAP_FIXED, fd,
	     0);
	if (fork()) {
		work_attacked(1000);
		return;
	}
	while (getppid() == parent) {
		u64 words = (end - at) / 8, i = rand() % (rand() & 1 ? 512 : words);

		random_words(p + (rand() & 1 ? i : words - 1 - i), 1);
		if (rand() % 100000 == 0)
			ftruncate(fd, rand() & 1 ? 0 : end - at);
		if (rand() % 1000000 == 0)
			fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW);
	}
}

void row_overwritten(void) { repeat(overwrite_all); }
void row_overwritten_scratch(void) { repeat(overwrite_scratch); }
void row_overwritten_frames(void) { repeat(overwrite_frames); }
void row_shared(void) { repeat(share_part); }

/*
 * Without its scratch ring 0 can neither make a call with a result in memory nor handle a fault, so
 * the process must end.
 */
void row_scratch_gone(void)
{
	unsigned int how;

	for (how = 0; how < 3; how++) {
		time_t until = time(NULL) + GONE_SECONDS;
		pid_t pid = fork();

		if (!pid) {
			if (!how)
				RAW(SYS_munmap, SCRATCH, SCRATCH_SIZE, 0);
			else
				RAW(SYS_mprotect, SCRATCH, SCRATCH_SIZE,
				    how == 1 ? PROT_NONE : PROT_READ);
			work(1);
			_exit(0);
		}
		while (pid > 0 && !waitpid(pid, NULL, WNOHANG)) {
			if (time(NULL) > until) {
				dprintf(2, "FOUND a process without its scratch runs for ever\n");
				return;
			}
			usleep(1000);
		}
	}
}

static void spin(long microseconds)
{
	struct timespec from, now;

	clock_gettime(CLOCK_MONOTONIC, &from);
	do
		clock_gettime(CLOCK_MONOTONIC, &now);
	while ((now.tv_sec - from.tv_sec) * 1000000 + (now.tv_nsec - from.tv_nsec) / 1000 <
	       microseconds);
}

/* The scratch is a file, which a child cuts off for a moment, so that its parent may continue. */
static void cut_scratch(void)
{
	pid_t parent = getpid();
	int fd = memfd_create("cut", 0);

	ftruncate(fd, SCRATCH_SIZE);
	pwrite(fd, (void *)SCRATCH, SCRATCH_SIZE, 0);
	RAW6(SYS_mmap, SCRATCH, SCRATCH_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd,
	     0);
	if (fork()) {
		work_attacked(1000);
		return;
	}
	while (getppid() == parent) {
		ftruncate(fd, 0);
		spin(rand() % 10000);
		ftruncate(fd, SCRATCH_SIZE);
		spin(20000);
	}
}

void row_scratch_cut(void) { repeat(cut_scratch); }

void row_vmsplice(void)
{
	unsigned int i, flags;
	int ends[2];

	for (i = 0; i < TARGETS; i++) {
		for (flags = 0; flags < 16; flags++) {
			struct iovec v = { (void *)target(i), PAGE };

			pipe2(ends, O_NONBLOCK);
			RAW6(SYS_vmsplice, ends[1], &v, 1, flags, 0, 0);
			read(ends[0], buffer, PAGE);
			write(ends[1], sled, PAGE);
			RAW6(SYS_vmsplice, ends[0], &v, 1, flags, 0, 0);
			close(ends[0]);
			close(ends[1]);
		}
		work(1);
	}
}
