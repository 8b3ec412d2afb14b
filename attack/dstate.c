#define _GNU_SOURCE
#include "by_fork.h"
#include "child.h"
#include "tap.h"
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
static volatile long *sh;	/* 0: C's pid, 1: P copies, 2: C closes, 3.. errors */
static long now(void) { struct timespec t; clock_gettime(CLOCK_MONOTONIC, &t); return t.tv_sec * 1000 + t.tv_nsec / 1000000; }
static struct dune_create_vcpu cv = { .size = sizeof(cv) };
static struct dune_stub st2;
static struct dune_private pr = { .size = sizeof(pr), .pages = 20000 };
static struct sched_param sp;
static u64 body(void *arg)
{
	long fd2 = privileged(SYS_ioctl, event_guest.dev, DUNE_CREATE_VCPU, (long)&cv, 0), pid;
	sh[3] = fd2;
	st2 = (struct dune_stub){ .size = sizeof(st2), .flags = DUNE_STUB_EVENTS, .address = (u64)event_stub, .irq_vector = EVENT_VECTOR };
	sh[4] = privileged(SYS_ioctl, fd2, DUNE_SET_STUB, (long)&st2, 0);
	pid = child_fork(17);
	if (!pid) {
		sh[0] = hypercall0(SYS_getpid);
		while (!sh[2]) asm volatile("pause");
		hypercall3(SYS_close, fd2, 0, 0);
		sh[9] = 1;
		for (;;) hypercall0(SYS_pause);
	}
	while (!sh[0]) asm volatile("pause");
	sh[5] = hypercall3(SYS_close, fd2, 0, 0);
	sh[6] = privileged(SYS_ioctl, event_guest.fd, DUNE_ADD_PRIVATE, (long)&pr, 0);
	sh[7] = hypercall3(SYS_sched_setscheduler, 0, 5 /* SCHED_IDLE */, (long)&sp);
	sh[1] = 1;
	sh[8] = child_make(DUNE_MAKE_CHILD, 0);
	sh[1] = 2;
	for (;;) hypercall0(SYS_pause);
}
static void pin(int cpu) { cpu_set_t s; CPU_ZERO(&s); CPU_SET(cpu, &s); sched_setaffinity(0, sizeof(s), &s); }
static char state(pid_t p)
{
	char b[512], *q; snprintf(b, 64, "/proc/%d/stat", p);
	int fd = open(b, O_RDONLY), n = fd < 0 ? 0 : read(fd, b, 511); if (fd >= 0) close(fd);
	if (n <= 0) return '-';
	b[n] = 0; q = strrchr(b, ')'); return q[2];
}
static void where(pid_t p)
{
	char b[2048]; snprintf(b, 64, "/proc/%d/stack", p);
	int fd = open(b, O_RDONLY), n = fd < 0 ? 0 : read(fd, b, 2000); if (n > 0) { b[n] = 0; printf("%s", b); } if (fd >= 0) close(fd);
}
int main(void)
{
	setvbuf(stdout, NULL, _IONBF, 0);
	sh = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	pid_t spin = fork();
	if (!spin) { pin(0); for (;;) ; }
	pid_t p = fork();
	if (!p) { pin(0); event_start(0, body, NULL); }
	for (long t = now(); !sh[1] && now() < t + 60000;) usleep(10000);
	pid_t c = sh[0];
	printf("C %d fd2 %ld set_stub %ld close %ld add %ld sched %ld, P state %c\n", c, sh[3], sh[4], sh[5], sh[6], sh[7], state(p));
	pid_t h = fork();
	(void)h; if (!h) _exit(0); waitpid(h, 0, 0);
	cpu_set_t s; CPU_ZERO(&s); CPU_SET(1, &s); sched_setaffinity(c, sizeof(s), &s); pin(1);
	sh[2] = 1;
	sleep(1);
	long t = now();
	kill(c, SIGKILL);
	for (int i = 0; i < 45; i++) {
		char x = state(c);
		if (i % 5 == 0) printf("%ld ms after SIGKILL: C is %c, P copies: %ld\n", now() - t, x, sh[1]);
		if (i == 2) where(c);
		if (x == 'Z' || x == '-' || x == 'X') break;
		sleep(1);
	}
	printf("end: C is %c after %ld ms; P: %ld result %ld\n", state(c), now() - t, sh[1], sh[8]);
	kill(spin, 9); kill(p, 9);
	return 0;
}
