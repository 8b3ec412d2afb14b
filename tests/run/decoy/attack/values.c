// SPDX-License-Identifier: MIT OR Apache-2.0
/* The values that the seed chooses: numbers, addresses, structures, names. See attack.h. */
#define _GNU_SOURCE
#include "attack.h"

#include <fcntl.h>
#include <string.h>

char *pool;
static size_t pool_used;
static u64 seed_state;
static int depth;

void choose_from(u64 seed)
{
	seed_state = seed;
}

/* splitmix64 */
u64 any(void)
{
	u64 z = seed_state += 0x9e3779b97f4a7c15UL;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9UL;
	z = (z ^ z >> 27) * 0x94d049bb133111ebUL;
	return z ^ z >> 31;
}

u64 below(u64 n)
{
	return any() % n;
}

bool one_in(u64 n)
{
	return below(n) == 0;
}

/* An address of the runtime without checks: of the process or of private memory; or any other. */
static u64 in_runtime(void)
{
	static const u64 places[] = { DUNE_PRIVATE_BASE, DUNE_IMAGE_BASE, DUNE_SCRATCH_AT };

	switch (below(6)) {
	case 0:
		return PICK(places) + (below(1UL << 20) & ~7UL);
	case 1:
		return one_in(2) ? any() : any() >> 17;
	case 2:
		return super_base + below(STUB_SIZE);
	}
	return super_base + (below(SUPER_SIZE) & (one_in(2) ? ~4095UL : ~7UL));
}

u64 in_decoy(void)
{
	static const u64 near[] = { 0, 8, 16, 64, 2048, 4088, 4096, 8192, 65536 };

	if (unchecked)
		return in_runtime();
	return decoy_base() + (one_in(4) ? below(DECOY_SIZE) & ~7UL : PICK(near));
}

u64 below_range(void)
{
	static const u64 near[] = {
		1, 4, 8, 12, 16, 24, 32, 48, 56, 64, 128, 256, 1024, 4096, 65536,
	};

	return super_base - (one_in(4) ? below(LOW_SIZE) & ~3UL : PICK(near));
}

u64 number(void)
{
	static const u64 known[] = {
		0, 1, 2, 3, 4, 6, 7, 8, 9, 12, 16, 24, 32, 48, 64, 96, 128, 256, 512, 1000, 1024,
		4096, 65536, SUPER_SIZE, SUPER_SIZE / 4 + 1, 2 * SUPER_SIZE,
		0x7fffffff, 0x80000000, 0xffffffff, -1UL, -2UL, -100UL, 1UL << 32, 1UL << 63,
	};

	switch (below(4)) {
	case 0:
		return 1UL << below(64);
	case 1:
		return below(64);
	case 2:
		return below(1UL << below(33));
	}
	return PICK(known);
}

/* One 8-byte word of some structure. */
static u64 word(void)
{
	switch (below(10)) {
	case 0:
	case 1:
	case 2:
		return in_decoy();
	case 3:
		return below_range();
	case 4:
		return 0;
	case 5:
		return below(4096) << 32 | below(64);
	case 6:
		return depth < 3 ? buffer() : (u64)pool;
	case 7:
		return below(16);
	}
	return number();
}

void *take(size_t size)
{
	char *p;

	size = (size + 15) & ~15UL;
	if (pool_used + size > POOL_SIZE)
		pool_used = 0;
	p = pool + pool_used;
	pool_used += size;
	return p;
}

void fill(u64 *to, size_t words)
{
	u64 kind = below(6), start = one_in(2) ? 1 : 1 + below(3);
	size_t i;

	depth++;
	for (i = 0; i < words; i++) {
		/* most structures begin with small numbers and continue with pointers */
		if (kind == 0)
			to[i] = in_decoy();
		else if (kind < 4 && i < start)
			to[i] = below(32) | (one_in(2) ? below(256) : 8 * below(16)) << 32;
		else if (kind < 4)
			to[i] = one_in(4) ? below(64) : in_decoy();
		else
			to[i] = word();
	}
	depth--;
}

u64 buffer(void)
{
	static const size_t words[] = { 1, 2, 3, 4, 5, 6, 7, 8, 10, 16, 32, 64, 512 };
	size_t n = PICK(words);
	u64 *to = take(8 * n);

	fill(to, n);
	if (one_in(8)) {
		u64 at = super_base - 8 * (1 + below(n));

		memcpy((void *)at, to, super_base - at);
		return at;
	}
	return (u64)to;
}

u64 name(void)
{
	static const char * const names[] = {
		"", ".", "a", "b", "folder", "folder/c", "link", "/proc/self/exe", "/proc/self/mem",
		"/proc/self/maps", "/dev/null", "/dev/zero", "/dev/mem", "/dev/dune", "/dev/kvm",
		"/proc/self/fd/3", "/proc/thread-self/mem", "/proc/kcore", "tmpfs", "user",
		"keyring", "logon", "security.x", "user.x", "proc", "/proc/self/ns/net",
		"/dev/ptmx", "/dev/fuse", "/dev/userfaultfd", "/dev/net/tun", "/dev/uinput",
		"/dev/vhost-net", "/dev/loop0",
	};
	const char *chosen = PICK(names);
	char *to = take(strlen(chosen) + 1);

	return (u64)strcpy(to, chosen);
}

u64 pointer(void)
{
	switch (below(12)) {
	case 0:
		return in_decoy();
	case 1:
		return 0;
	case 2:
	case 3:
		return below_range();
	case 4:
	case 5:
		return name();
	}
	return buffer();
}

u64 value(void)
{
	switch (below(6)) {
	case 0:
		return in_decoy();
	case 1:
		return buffer();
	case 2:
		return file();
	}
	return number();
}
