// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * Looks for what must not be in reach of a program in the sandbox, and reports it. The
 * first functions work without libc, see attack.h.
 */
#define _GNU_SOURCE
#include "attack.h"
#include "maps.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

static u64 current_seed;

u64 super_base = SUPER_BASE;
bool unchecked;

void find_range(void)
{
	/* A branch: `unchecked = raw(...) > 0` would be a SETcc to memory (docs/emulators.md). */
	if (raw(RAW_BIT | SYS_getpid, 0, 0, 0, 0, 0, 0) <= 0)
		return;
	unchecked = true;
	super_base = mapping_start("[dune-stub]");
}

void scan_memory(void)
{
	if (unchecked && has_secret(pool, POOL_SIZE))
		found("the runtime's memory was read:", "", 0);
}

/* Numbers, for a node of a device can be made anywhere; filled in at the start. */
static struct {
	const char *name;
	dev_t number;
} devices[] = { { .name = "/dev/mem" }, { .name = "/dev/dune" }, { .name = "/dev/kvm" } };

void find_devices(void)
{
	struct stat st;
	size_t i;

	for (i = 0; i < ARRAY_LEN(devices); i++)
		devices[i].number = stat(devices[i].name, &st) ? 0 : st.st_rdev;
}

void findings_of(u64 seed)
{
	current_seed = seed;
}

static char *text(char *to, const char *from)
{
	while ((*to = *from++))
		to++;
	return to;
}

static char *digits(char *to, u64 n)
{
	if (n >= 10)
		to = digits(to, n / 10);
	*to++ = '0' + n % 10;
	*to = 0;
	return to;
}

static bool has(const char *where, const char *what)
{
	for (; *where; where++) {
		size_t i = 0;

		while (what[i] && where[i] == what[i])
			i++;
		if (!what[i])
			return true;
	}
	return false;
}

void found(const char *what, const char *detail, u64 n)
{
	char line[700];
	char *p = text(line, "FOUND seed ");

	p = digits(p, current_seed);
	p = text(text(text(p, ": "), what), " ");
	p = digits(text(text(p, detail), " "), n);
	p = text(p, "\n");
	RAW(SYS_write, 2, line, p - line);
}

/*
 * No descriptor that the program can use may lead to a vCPU, dune-run's own
 * file, or memory, whichever way it came here. What is hidden is EBADF. O_PATH
 * gives no access (what is opened by way of it is judged), but dune-run's file
 * is not named that way either.
 */
static void check_descriptor(const char *name)
{
	static const char * const forbidden[] = {
		"dune-run", "anon_inode:[dune-vcpu", "/memfd:dune-stats", "/mem$", "/kcore$",
	};
	char link[40], target[400];
	struct stat st;
	u64 fd = 0, i;
	long n, flags;

	text(text(link, "/proc/self/fd/"), name);
	while (*name >= '0' && *name <= '9')
		fd = fd * 10 + (*name++ - '0');
	if (*name)
		return;
	flags = RAW(SYS_fcntl, fd, F_GETFL, 0);
	n = RAW(SYS_readlink, link, target, sizeof(target) - 2);
	if (flags < 0 || n <= 0)
		return;
	text(target + n, "$");
	/* The name of a memory file is the program's own choice. */
	for (i = 0; i < (flags & O_PATH ? 1 : ARRAY_LEN(forbidden)); i++)
		if (has(target, forbidden[i]) &&
		    (!has(target, "/memfd:") || has(forbidden[i], "/memfd:")))
			found("a descriptor in reach:", target, fd);
	if (flags & O_PATH || fstat(fd, &st) || !S_ISCHR(st.st_mode))
		return;
	for (i = 0; i < ARRAY_LEN(devices); i++)
		if (st.st_rdev == devices[i].number)
			found("a descriptor in reach:", devices[i].name, fd);
}

struct directory_entry {	/* struct linux_dirent64 */
	u64 ino, off;
	unsigned short len;
	unsigned char type;
	char name[];
};

void scan_descriptors(void)
{
	char entries[1024] __attribute__((aligned(8)));
	long dir, n, at;

	if (unchecked)
		return;
	dir = RAW(SYS_open, "/proc/self/fd", O_RDONLY | O_DIRECTORY, 0);

	while (dir >= 0 && (n = RAW(SYS_getdents64, dir, entries, sizeof(entries))) > 0) {
		for (at = 0; at < n; ) {
			struct directory_entry *e = (void *)(entries + at);

			check_descriptor(e->name);
			at += e->len;
		}
	}
	RAW(SYS_close, dir, 0, 0);
}

/* In the supervisor range are the decoy, and before it pages without access. */
void scan_mappings(void)
{
	FILE *mappings = unchecked ? NULL : fopen("/proc/self/maps", "r");
	struct mapping m;
	u64 decoy = 0;

	/* This process may have given up /proc, or all of its descriptors may be in use. */
	if (!mappings)
		return;
	while (next_mapping(mappings, &m)) {
		if (!meets_super_range(m.start, m.end - m.start))
			continue;
		if (m.start >= decoy_base() && m.end <= decoy_base() + DECOY_SIZE)
			decoy += m.end - m.start;
		else if (m.start != super_base || m.end != decoy_base() || strcmp(m.rights, "---p"))
			found("a mapping in the supervisor range:", m.name, m.start);
	}
	if (decoy != DECOY_SIZE)
		found("the decoy's mapping is not whole:", "bytes", decoy);
}

/*
 * Reports @who if it runs natively: bpf() then fails with EINVAL or EPERM, and in the
 * sandbox with ENOSYS.
 */
void check_confined(const char *who)
{
	if (!unchecked && raw(SYS_bpf, -1, 0, 0, 0, 0, 0) != -ENOSYS)
		found("runs natively:", who, getpid());
}
