// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * A driver of QEMU's device edu (inside/edu.c), which knows nothing of the guard, as a guarded
 * module of class D: it is described, bound to its device, registered and loaded, and copies data
 * to the device and back, by DMA and interrupts. Fails if it is not guarded, if other data come
 * back, if anything that it does is suspicious, or if the kernel reads its device meanwhile; before
 * and after the seal, and after it was loaded again.
 */
#define _GNU_SOURCE
#include "attack.h"
#include "command.h"
#include "debugfs.h"
#include "driver.h"
#include "guard.h"
#include "klog.h"
#include "modules.h"
#include "outside.h"
#include "tap.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#define FILE_OF_EDU	"/sys/kernel/debug/dune-guard-edu"
#define MOST		4095
#define ROUNDS		3
#define ONES		0xffffffffULL

static int fd;

/* How many entries the guard's log has had. */
static unsigned long long log_end(void)
{
	static struct dune_guard_entry entry;

	while (!ioctl(fd, DUNE_GUARD_GET_LOG, &entry))
		entry.index++;
	return entry.index;
}

/* Random data, of several lengths. How many come back as they were. */
static int copies(void)
{
	static unsigned char data[MOST], back[MOST];
	int device = open(FILE_OF_EDU, O_RDWR | O_CLOEXEC), good = 0, i;
	size_t k, length;

	for (i = 0; i < ROUNDS; i++) {
		length = i ? 1 + random() % MOST : MOST;
		for (k = 0; k < length; k++)
			data[k] = random();
		if (write(device, data, length) != (ssize_t)length) {
			diag("%s: %m", FILE_OF_EDU);
			break;
		}
		good += pread(device, back, sizeof(back), 0) == (ssize_t)length &&
			!memcmp(data, back, length);
	}
	close(device);
	return good;
}

static void use(const struct driver *driver)
{
	char parameters[100];
	unsigned long long before = log_end();

	snprintf(parameters, sizeof(parameters), "address=%s", driver_device(driver));
	is(module_insert("dune-guard-edu", parameters), 0, "the driver is loaded");
	if (!ok(driver_is_guarded(driver), "it is guarded"))
		diag("%s", command_output);
	is(copies(), ROUNDS, "data go to the device and come back");
	is(log_end(), before, "nothing of that is suspicious");
	attack("program", driver_bar(driver, driver->bar) + 4, 1, 0);
	is(found, ONES, "the kernel reads the device: ones");
	ok(log_end() > before, "what it writes there is logged");
	before = log_end();
	is(copies(), ROUNDS, "data go there and come back again");
	is(module_unload("dune_guard_edu"), 0, "the driver is unloaded");
	is(log_end(), before, "nothing of that is suspicious");
}

int main(void)
{
	struct driver driver = {
		.file = strdup(module_file("dune-guard-edu")), .name = "dune_guard_edu",
		.device = "0x12340x11e8",
	};
	struct klog log;

	fd = guard_begin(300, &log);
	if (!*driver_device(&driver)) {
		skip("the machine has no such device", "a driver of edu");
		return guard_end(fd, &log);
	}
	attack_load();
	debugfs_mount();
	is(guard_request(fd, DUNE_GUARD_LAUNCH), 0, "a launch");
	is(driver_enroll(&driver), 0, "the driver is described, bound and registered");
	use(&driver);
	is(guard_request(fd, DUNE_GUARD_SEAL), 0, "the seal (%s)", guard_answer.text);
	use(&driver);
	use(&driver);
	klog_end(&log);
	return done();
}
