// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * Private memory stays when the process changes memory far below some of its mappings, and all of
 * these have granules beyond the first 512 GB of guest-physical space: there private memory is the
 * only content of the first table. Fails when the change takes private memory away, or the kernel's
 * log has an error.
 */
#define _GNU_SOURCE
#include "private.h"
#include "tap.h"
#include "x86.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define FAR	(256 * GB)
#define SIZE	(600 * GB)
#define FIRST	512	/* the first granule that is not in the first 512 GB */
#define ENOUGH	(FIRST + 64)

static struct guest g;

static bool map_and_unmap(void)
{
	void *p = mmap((void *)FAR, SIZE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS |
		       MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0);

	if (p != (void *)FAR)
		bail("mmap: %s", strerror(errno));
	return !munmap(p, SIZE);
}

static void find_secrets(const char *when)
{
	enum guest_end end = guest_call(&g, count_secrets, (void *)PRIVATE_AT);

	ok(end == GUEST_DONE && g.value == SECRETS, "the guest finds its secrets %s (%lu of %d)",
	   when, g.value, SECRETS);
}

static void change_below(void)
{
	u64 gpa;

	is(private_add(&g, 1, &gpa), 0, "a page of private memory is added");
	private_show(&g, gpa);
	ok(guest_call(&g, keep_secrets, (void *)PRIVATE_AT) == GUEST_DONE,
	   "the guest writes secrets to it");
	ok(map_and_unmap(), "600 GB are mapped and unmapped");
	find_secrets("after the change");
	is(private_add(&g, 512, &gpa), 0, "more pages are added");
	find_secrets("after that");
}

int main(void)
{
	bool fits;

	if (!private_begin(&g, 60))
		return private_end();
	fits = g.info.granules >= ENOUGH;
	guest_close(&g);
	if (!fits) {
		skip("this processor has no granule beyond 512 GB", "private memory stays");
		return private_end();
	}
	guest_granules_from(FIRST);
	guest_open(&g);
	change_below();
	guest_close(&g);
	return private_end();
}
