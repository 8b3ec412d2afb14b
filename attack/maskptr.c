#define _GNU_SOURCE
#include <stdio.h>
#include <errno.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <sys/syscall.h>
int main(void)
{
	struct timespec t = { 0, 1000000 };
	unsigned long at[] = { 0xffff800000000000, 0xffff880000000000, 0xffff800000100000 };
	setvbuf(stdout, NULL, _IONBF, 0);
	for (int i = 0; i < 3; i++) {
		long r = syscall(SYS_ppoll, NULL, 0, &t, at[i], 8);
		printf("ppoll with the mask at %lx: %ld %s\n", at[i], r, r < 0 ? strerror(errno) : "");
	}
	printf("end\n");
	return 0;
}
