// SPDX-License-Identifier: MIT OR Apache-2.0
/* Private memory of a guest, and secrets in it: see private.h. */
#define _GNU_SOURCE
#include "private.h"
#include "klog.h"
#include "tap.h"
#include "timing.h"

#include <errno.h>
#include <sys/ioctl.h>

volatile u64 secret_seed = 0x1234567;

static struct klog log;

bool private_begin(struct guest *g, unsigned int seconds)
{
	begin(seconds);
	klog_begin(&log);
	guest_open(g);
	if (!g->info.private_pages)
		skip("this processor's guest-physical addresses are too narrow", "private memory");
	return g->info.private_pages;
}

int private_end(void)
{
	klog_end(&log);
	return done();
}

int private_add(struct guest *g, u64 pages, u64 *gpa)
{
	struct dune_private p = { .size = sizeof(p), .pages = pages };
	int err = ioctl(g->fd, DUNE_ADD_PRIVATE, &p) ? -errno : 0;

	*gpa = p.guest;
	return err;
}

bool private_missing(const struct guest *g, u64 gpa)
{
	if (g->run->exit_reason == DUNE_EXIT_FAULT && g->run->fault_address == gpa &&
	    g->run->fault_flags & DUNE_FAULT_GUEST)
		return true;
	diag("exit %u, fault at %#llx, flags %#x", g->run->exit_reason, g->run->fault_address,
	     g->run->fault_flags);
	return false;
}

/* ---- secrets ---- */

u64 secret(u64 n)
{
	return (secret_seed + n) * 0x9e3779b97f4a7c15;
}

u64 keep_secrets(void *page)
{
	for (u64 i = 0; i < SECRETS; i++)
		((volatile u64 *)page)[i] = secret(i);
	return 0;
}

u64 count_secrets(void *page)
{
	u64 n = 0;

	for (u64 i = 0; i < SECRETS; i++)
		n += ((volatile u64 *)page)[i] == secret(i);
	return n;
}
