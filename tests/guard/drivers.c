// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * Debian's own network drivers, which nobody changed, as guarded modules of class D, with the
 * devices that the machine has. Each is described, bound to its device's registers, registered,
 * loaded and used: it sends and gets echo requests, and, once the guard is sealed, a file. Fails if
 * a driver is not guarded, if no packet comes back, if a file has another SHA-256 on the other
 * side, if anything that it does is suspicious, if it works only once, or if the kernel reaches the
 * device's registers or moves them meanwhile; before and after the seal.
 */
#define _GNU_SOURCE
#include "attack.h"
#include "command.h"
#include "driver.h"
#include "guard.h"
#include "klog.h"
#include "modules.h"
#include "network.h"
#include "tap.h"
#include "timing.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <unistd.h>

static const struct driver drivers[] = {
	{ "e1000", "e1000", "0x80860x100e", 0, NULL },
	/* By MSI: the kernel could not write the table of MSI-X, which is in a BAR. */
	{ "e1000e", "e1000e", "0x80860x10d3", 0, "IntMode=1" },
	{ "8139cp", "8139cp", "0x10ec0x8139", 1, NULL },
	/* Another module, 8390, accesses its ports as well: it cannot have them alone. */
	{ "ne2k-pci", "ne2k_pci", NULL, 0, NULL },
};

#define FETCHED	"/dev/shm/drivers-fetched"

static int fd;

/* The guard's log has no entry from @index on, which then is its end. */
static int suspicions(unsigned long long *index)
{
	struct dune_guard_entry entry = { .index = *index };
	int count = 0;

	for (; !ioctl(fd, DUNE_GUARD_GET_LOG, &entry); entry.index++, count++)
		if (count < 5)
			diag("the guard's log: kind %u, %#llx", entry.kind, entry.value);
	*index = entry.index;
	return count;
}

static int open_of(const char *device, const char *file)
{
	char path[200];

	snprintf(path, sizeof(path), "/sys/bus/pci/devices/%s/%s", device, file);
	return open(path, O_RDWR | O_CLOEXEC);
}

static void attack_device(const struct driver *driver)
{
	const char *device = driver_device(driver);
	int config = open_of(device, "config"), at = 0x10 + 4 * driver->bar;
	unsigned int before, moved, after;

	is(attack("registers", driver_bar(driver, driver->bar), 0, 0), 0,
	   "the kernel reads the device's registers");
	is(found, 0xffffffff, "it finds ones");
	if (pread(config, &before, 4, at) != 4)
		bail("the configuration of %s: %m", device);
	moved = before ^ 0x10000;
	if (pwrite(config, &moved, 4, at) != 4 || pread(config, &after, 4, at) != 4)
		bail("the configuration of %s: %m", device);
	is(after, before, "it moves them");
	close(config);
}

/* A file goes both ways. */
static void transfer(void)
{
	const char *file = module_file("dune-guard-inside");
	char hash[65];

	network_hash(file, hash);
	ok(network_fetches(file, FETCHED, hash), "a file is fetched: same SHA-256");
	ok(network_sends(file, hash), "it is sent: the other side has the same SHA-256");
}

static void use(const struct driver *driver, bool transfers)
{
	static unsigned long long at;
	char name[IFNAMSIZ];

	suspicions(&at);
	if (!modprobe("-q", driver->file, driver->parameter))
		bail("%s cannot be loaded", driver->file);
	if (!ok(driver_is_guarded(driver), "%s is guarded", driver->file))
		diag("%s", command_output);
	WAIT_FOR(network_find(name), 20);
	if (name[0]) {
		is(network_set(name, true), 0, "its interface is %s", name);
		is(network_echo(), NETWORK_ECHOES, "all packets come back");
		if (transfers)
			transfer();
		is(suspicions(&at), 0, "nothing of that was suspicious");
		if (driver->device) {
			attack_device(driver);
			ok(suspicions(&at), "the log tells it");
			is(network_echo(), NETWORK_ECHOES, "all packets come back again");
		}
		is(network_set(name, false), 0, "it is switched off");
	} else {
		skip("the machine has no such device", "packets by %s", driver->file);
	}
	ok(modprobe("-qr", driver->file, NULL), "it is unloaded");
	is(suspicions(&at), 0, "nothing of that was suspicious");
}

/* Whether the kernel has the driver. */
static bool enroll(const struct driver *driver)
{
	if (!modprobe("-nq", driver->file, NULL)) {
		skip("the kernel does not have it", "%s is guarded", driver->file);
		return false;
	}
	is(driver_enroll(driver), 0, "%s is described, bound and registered", driver->file);
	return true;
}

int main(void)
{
	bool have[sizeof(drivers) / sizeof(drivers[0])];
	struct klog log;
	unsigned int i, round;

	fd = guard_begin(900, &log);
	attack_load();
	is(guard_request(fd, DUNE_GUARD_LAUNCH), 0, "a launch");
	for (i = 0; i < sizeof(drivers) / sizeof(drivers[0]); i++)
		have[i] = enroll(&drivers[i]);
	for (round = 0; round < 2; round++) {
		for (i = 0; i < sizeof(drivers) / sizeof(drivers[0]); i++)
			if (have[i])
				use(&drivers[i], round);
		if (!round)
			is(guard_request(fd, DUNE_GUARD_SEAL), 0, "the seal");
	}
	klog_end(&log);
	return done();
}
