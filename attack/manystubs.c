#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <unistd.h>
#include <time.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <linux/dune.h>
static double now(void) { struct timespec t; clock_gettime(CLOCK_MONOTONIC, &t); return t.tv_sec + t.tv_nsec / 1e9; }
static volatile int *ready;
static void trial(int sleepers, int count)
{
	pid_t s[5000];
	int n, st;
	for (n = 0; n < sleepers; n++) {
		s[n] = fork();
		if (!s[n]) { for (;;) pause(); }
		if (s[n] < 0) break;
	}
	*ready = 0;
	pid_t k = fork();
	if (!k) {
		int dev = open("/dev/dune", O_RDWR);
		struct dune_create_vcpu c = { .size = sizeof(c) };
		int fd = ioctl(dev, DUNE_CREATE_VCPU, &c), i;
		char *at = mmap(NULL, count * 4096UL, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
		double t = now();
		munmap(at, count * 4096UL);
		for (i = 0; i < count; i++)
			if (mmap(at + i * 4096UL, 4096, PROT_READ, MAP_SHARED | MAP_FIXED_NOREPLACE, fd, DUNE_STUB_OFFSET) == MAP_FAILED) { printf("mmap %d %s\n", i, strerror(errno)); break; }
		printf("%d stubs mapped in %.1f s\n", i, now() - t);
		*ready = 1;
		munmap(at, count * 4096UL);
		printf("alive\n");
		_exit(0);
	}
	while (!*ready) usleep(1000);
	double t = now();
	usleep(100000);
	kill(k, SIGKILL);
	waitpid(k, &st, 0);
	printf("%d other processes, %d stubs: gone %.2f s after the munmap() began, %.2f s after SIGKILL; status %x\n", n, count, now() - t, now() - t - .1, st);
	while (n--) { kill(s[n], SIGKILL); waitpid(s[n], &st, 0); }
}
int main(void)
{
	setvbuf(stdout, NULL, _IONBF, 0);
	ready = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	trial(0, 20000);
	trial(1000, 20000);
	trial(3000, 60000);
	return 0;
}
