// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * Attaches a segment of shared memory in place of what is mapped (SHM_REMAP). Two of the places are
 * the one that the kernel would choose itself, and one that overlaps it. The program prints the
 * results. edges.bash fails if they differ natively and in the sandbox.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/shm.h>
#include <unistd.h>

#define PAGE	4096L
#define SIZE	(4 * PAGE)		/* of the segment, whose last page is not full */
#define ROOM	(64 * PAGE)		/* where the cases take place */
#define HOLE	(32 * PAGE)		/* the room in its middle where nothing is mapped */

static int id;
static char *hole;

static unsigned long attached(void)
{
	struct shmid_ds ds = { 0 };

	shmctl(id, IPC_STAT, &ds);
	return ds.shm_nattch;
}

/* One letter for each page around @at: mapped or not. */
static void print_pages(const char *at)
{
	for (int i = -5; i < 10; i++)
		putchar(msync((void *)(at + i * PAGE), PAGE, MS_ASYNC) ? '-' : 'm');
}

static void attach(const char *name, char *at, int flags)
{
	char *got = shmat(id, at, flags);

	if (got == (void *)-1)
		printf("%s: %s, %lu attached\n", name, strerrorname_np(errno), attached());
	else
		printf("%s: %s, %lu attached, \"%s\" and \"%s\"\n", name,
		       got == at ? "there" : "elsewhere", attached(), got, got + SIZE - PAGE);
}

static void attach_over(const char *name, char *at)
{
	attach(name, at, SHM_REMAP);
	printf("  around it ");
	print_pages(at);
	printf(", detached: %d, then ", shmdt(at));
	print_pages(at);
	puts("");
}

/*
 * Returns where the kernel attaches the segment next, which is in the hole. Fills all other places
 * before.
 */
static char *next_place(void)
{
	char *at;

	do
		at = shmat(id, NULL, 0);
	while (at != (void *)-1 && (at < hole || at >= hole + HOLE));
	if (at != (void *)-1)
		shmdt(at);
	return at;
}

int main(void)
{
	char *room = mmap(NULL, ROOM, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	char *at;

	setvbuf(stdout, NULL, _IOLBF, 0);
	hole = room + (ROOM - HOLE) / 2;
	munmap(hole, HOLE);
	id = shmget(IPC_PRIVATE, SIZE - 100, IPC_CREAT | 0600);
	at = shmat(id, NULL, 0);
	strcpy(at, "the first page");
	strcpy(at + SIZE - PAGE, "the last page");
	shmdt(at);
	at = next_place();
	if (at == (void *)-1)
		perror("no place in the hole");
	printf("at the end of the hole: %d\n", at == hole + HOLE - SIZE);
	attach_over("the next place", at);
	attach_over("a page above", at + PAGE);
	/* The end of the hole is a page higher now. */
	mmap(at + SIZE, PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
	attach_over("a page below", at - PAGE);
	attach_over("between this place and the one after it", at - 2 * PAGE);
	attach_over("the place after it", at - SIZE);
	attach_over("far away", hole + PAGE);
	attach("without SHM_REMAP", at, 0);
	attach_over("over itself", at);
	attach("where something is, without SHM_REMAP", room, 0);
	attach("within a page, rounded", at + 100, SHM_REMAP | SHM_RND);
	shmdt(at);
	attach("within a page", at + 100, SHM_REMAP);
	attach("to read", at, SHM_REMAP | SHM_RDONLY);
	attach("to execute", at, SHM_REMAP | SHM_EXEC);
	attach("without an address", NULL, SHM_REMAP);
	attach("beyond the end", (char *)0x7fffffffe000, SHM_REMAP);
	attach("above all memory", (char *)0x800000000000, SHM_REMAP);
	shmctl(id, IPC_RMID, NULL);
	attach("removed", at + SIZE - PAGE, SHM_REMAP);
	return 0;
}
