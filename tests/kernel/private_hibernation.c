// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * A computer with private memory does not hibernate, since the image on the disk would contain it.
 * Fails when hibernation begins while an address space has private pages, or cannot begin after
 * the last one has gone; and when a page is added while the computer hibernates.
 */
#define _GNU_SOURCE
#include "private.h"
#include "tap.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

/* Opening it is the first step of hibernation by a program, closing it the last. */
static int snapshot_open(void)
{
	int fd = open("/dev/snapshot", O_RDONLY);

	return fd < 0 ? -errno : fd;
}

/* Closes @g. */
static void hibernation(struct guest *g)
{
	int fd = snapshot_open();
	struct guest h;
	u64 gpa;

	if (fd < 0) {
		skip(strerror(-fd), "hibernation with private memory");
		guest_close(g);
		return;
	}
	is(private_add(g, 1, &gpa), -EBUSY, "no page is added while the computer hibernates");
	close(fd);
	is(private_add(g, 1, &gpa), 0, "a page is added after the hibernation has ended");
	is(snapshot_open(), -EBUSY, "the computer does not hibernate with private memory");
	guest_open(&h);
	private_add(&h, 1, &gpa);
	guest_close(g);
	is(snapshot_open(), -EBUSY,
	   "the computer does not hibernate while another address space has private memory");
	guest_close(&h);
	fd = snapshot_open();
	ok(fd >= 0, "the computer hibernates when no address space has private memory (%d)", fd);
	close(fd);
}

int main(void)
{
	struct guest g;

	if (private_begin(&g, 60))
		hibernation(&g);
	return private_end();
}
