// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * The memory of the kernel that a vCPU takes. Fails when a vCPU takes more than 64 KB, or when
 * vCPUs that were closed do not give their memory back.
 */
#define _GNU_SOURCE
#include "klog.h"
#include "proc.h"
#include "tap.h"
#include "timing.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/dune.h>
#include <stdbool.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <unistd.h>

#define VCPUS	1000

static int vcpus[2 * VCPUS];

static bool make_vcpus(int dev, int from, int to)
{
	struct dune_create_vcpu create = { .size = sizeof(create) };

	for (int i = from; i < to; i++) {
		vcpus[i] = ioctl(dev, DUNE_CREATE_VCPU, &create);
		if (vcpus[i] < 0) {
			diag("vCPU %d: %s", i, strerror(errno));
			return false;
		}
	}
	return true;
}

static void close_vcpus(int from, int to)
{
	for (int i = from; i < to; i++)
		if (vcpus[i] > 0)
			close(vcpus[i]);
}

/* Kernel memory only: no run page is touched, no table made. */
static void taken(int dev)
{
	/* The first thousand fills the kernel's pools; the second is counted. */
	bool made = make_vcpus(dev, 0, VCPUS);
	long before = memory_available();

	made = made && make_vcpus(dev, VCPUS, 2 * VCPUS);
	long used = before - memory_available();

	/* Less than a page each would mean that the memory was measured wrongly. */
	ok(made && used >= 4 * VCPUS && used <= 64 * VCPUS,
	   "a vCPU takes %ld KB of kernel memory, 64 at most", used / VCPUS);
	close_vcpus(0, 2 * VCPUS);
}

static void given_back(int dev)
{
	long before = memory_available();
	bool made = true;

	for (int i = 0; i < 4 && made; i++) {
		made = make_vcpus(dev, 0, VCPUS);
		close_vcpus(0, VCPUS);
	}
	long after = memory_available();

	if (kernel_has("kasan_poison"))
		skip("KASAN keeps what is freed", "a vCPU gives its memory back");
	else
		/* A lost page for each would be 16 MB. */
		ok(made && before - after < 4 * VCPUS * 2,
		   "a vCPU gives its memory back (%ld KB available, after %d more %ld KB)",
		   before, 4 * VCPUS, after);
}

int main(void)
{
	struct rlimit files = { 4096, 4096 };
	struct klog log;
	int dev;

	begin(120);
	klog_begin(&log);
	dev = open("/dev/dune", O_RDWR);
	if (dev < 0)
		bail("/dev/dune: %s", strerror(errno));
	setrlimit(RLIMIT_NOFILE, &files);
	taken(dev);
	given_back(dev);
	close(dev);
	klog_end(&log);
	return done();
}
