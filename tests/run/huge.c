// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * Huge pages that the kernel itself puts into the supervisor range. The kernel looks
 * for room from mmap_base downwards, and the limit on the stack determines where that
 * is: right above the supervisor range, once this program has executed itself. When
 * all room between the two is used, the next room is in the supervisor range. A
 * mapping there has to be undone, and the kernel rounds a length of huge pages up.
 * huge.bash reserves the huge pages. Fails when the program gets such a mapping, when
 * one stays in the supervisor range, or when the runtime does not work afterwards.
 */
#define _GNU_SOURCE
#include "hostile.h"
#include "maps.h"
#include "tap.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/personality.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define TOP		0x7ffffffff000UL	/* of the addresses that a process may have */
/* about: there is a gap below the stack */
#define MMAP_BASE	(SUPER_BASE + 3 * SUPER_SIZE)
#define ELSEWHERE	(SUPER_BASE - 64 * SUPER_SIZE)
#define HUGE		(2UL << 20)
#define PIECE		(1UL << 20)	/* smaller, so that the kernel does not align it */

static void execute_with_low_base(char *self)
{
	char *argv[] = { self, "low", NULL };
	struct rlimit limit;

	getrlimit(RLIMIT_STACK, &limit);
	limit.rlim_cur = TOP - MMAP_BASE;
	if (setrlimit(RLIMIT_STACK, &limit))
		perror("setrlimit");
	personality(ADDR_NO_RANDOMIZE);
	execv("/proc/self/exe", argv);
	perror("execv");
}

/* Returns how many mappings of huge pages are in the supervisor range. */
static int huge_in_range(void)
{
	FILE *mappings = open_mappings();
	struct mapping m;
	int n = 0;

	while (next_mapping(mappings, &m)) {
		if (!strstr(m.name, "/memfd:huge") && !strstr(m.name, "/anon_hugepage"))
			continue;
		if (!meets_super_range(m.start, m.end - m.start))
			continue;
		diag("%lx-%lx %s", m.start, m.end, m.name);
		n++;
	}
	return n;
}

/*
 * Uses up the room above the supervisor range. Returns the error of the first mapping for which
 * the kernel finds room in the range only.
 */
static long fill(void)
{
	long at;

	do
		at = call(SYS_mmap, 0, PIECE, PROT_NONE,
			  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	while (at > (long)SUPER_BASE);
	return at;
}

static void test_huge(int fd)
{
	is(fill(), -ENOMEM,
	   "what the kernel puts into the supervisor range is not given to the program");
	is(call(SYS_mmap, 0, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0), -ENOMEM,
	   "a part of a huge page of a file in the supervisor range is not given to the program");
	is(huge_in_range(), 0, "a part of a huge page of a file does not stay there");
	is(call(SYS_mmap, 0, HUGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0), -ENOMEM,
	   "a huge page of a file in the supervisor range is not given to the program");
	is(huge_in_range(), 0, "a huge page of a file does not stay there");
	is(call(SYS_mmap, 0, HUGE + 1, PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS | MAP_HUGETLB, -1, 0), -ENOMEM,
	   "anonymous huge pages in the supervisor range are not given to the program");
	is(huge_in_range(), 0, "anonymous huge pages do not stay there");
}

int main(int argc, char **argv)
{
	int fd, status = -1;
	char *page;
	pid_t child;

	if (argc < 2) {
		execute_with_low_base(argv[0]);
		return 1;
	}
	fd = memfd_create("huge", MFD_HUGETLB);
	page = mmap((void *)ELSEWHERE, HUGE, PROT_READ | PROT_WRITE,
		    MAP_SHARED | MAP_FIXED_NOREPLACE, fd, 0);
	if (fd < 0 || ftruncate(fd, HUGE) || page == MAP_FAILED) {
		skip("no huge pages", "huge pages in the supervisor range");
		return done();
	}
	*page = 1;
	munmap(page, HUGE);
	test_huge(fd);
	child = fork();
	if (!child)
		_exit(0);
	waitpid(child, &status, 0);
	is(status, 0, "the runtime still works");
	return done();
}
