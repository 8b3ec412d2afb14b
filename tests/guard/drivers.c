// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * Debian's own network drivers, which nobody changed, as guarded modules of class D, with the
 * devices that the machine has. Each is described, bound to its device's registers, registered,
 * loaded and used: it sends and gets echo requests. Fails if a driver is not guarded, if no packet
 * comes back, if anything that it does is suspicious, if it works only once, or if the kernel
 * reaches the device's registers or moves them meanwhile; before and after the seal.
 */
#define _GNU_SOURCE
#include "attack.h"
#include "command.h"
#include "guard.h"
#include "klog.h"
#include "modules.h"
#include "tap.h"
#include "timing.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <net/if.h>
#include <netinet/in.h>
#include <netinet/ip_icmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#define PACKETS	20

static const struct driver {
	const char *file, *name;
	const char *device;	/* vendor and device, as in sysfs */
	unsigned int bar;	/* of its registers */
} drivers[] = {
	{ "e1000", "e1000", "0x80860x100e", 0 },
	{ "8139cp", "8139cp", "0x10ec0x8139", 1 },
	/* Another module, 8390, accesses its ports as well: it cannot have them alone. */
	{ "ne2k-pci", "ne2k_pci", NULL, 0 },
};

static int fd;

static int dunectl(const char *words)
{
	char command[600];

	snprintf(command, sizeof(command), "%s/bin/dunectl guard %s 2>&1", build_directory(),
		 words);
	return command_run(command);
}

/* The one network interface besides "lo". Returns whether there is one. */
static bool find_interface(char name[IFNAMSIZ])
{
	DIR *directory = opendir("/sys/class/net");
	struct dirent *entry;

	name[0] = 0;
	while (directory && (entry = readdir(directory)))
		if (entry->d_name[0] != '.' && strcmp(entry->d_name, "lo"))
			snprintf(name, IFNAMSIZ, "%.15s", entry->d_name);
	if (directory)
		closedir(directory);
	return name[0];
}

/* Switches the interface on, with an address in the network of QEMU's router, or off. */
static int set_up(const char *name, bool on)
{
	int socket_fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0), err = 0;
	struct sockaddr_in address = { .sin_family = AF_INET };
	struct ifreq request = {};

	snprintf(request.ifr_name, sizeof(request.ifr_name), "%s", name);
	if (on) {
		inet_pton(AF_INET, "10.0.2.15", &address.sin_addr);
		memcpy(&request.ifr_addr, &address, sizeof(address));
		err = ioctl(socket_fd, SIOCSIFADDR, &request) ? -errno : 0;
		inet_pton(AF_INET, "255.255.255.0", &address.sin_addr);
		memcpy(&request.ifr_netmask, &address, sizeof(address));
		if (!err)
			err = ioctl(socket_fd, SIOCSIFNETMASK, &request) ? -errno : 0;
	}
	request.ifr_flags = on ? IFF_UP | IFF_RUNNING : 0;
	if (!err)
		err = ioctl(socket_fd, SIOCSIFFLAGS, &request) ? -errno : 0;
	close(socket_fd);
	return err;
}

static unsigned short checksum(const void *data, unsigned int size)
{
	const unsigned short *words = data;
	unsigned int sum = 0;

	for (; size; size -= 2)
		sum += *words++;
	sum = (sum & 0xffff) + (sum >> 16);
	return ~(sum + (sum >> 16));
}

/* Sends an echo request of 1,000 bytes to the router. Whether the same bytes come back. */
static bool echo(int socket_fd, unsigned short number)
{
	struct sockaddr_in address = { .sin_family = AF_INET };
	struct {
		struct icmphdr header;
		unsigned char data[1000];
	} packet = { .header = { .type = ICMP_ECHO } };
	unsigned char answer[2000];
	unsigned int i;

	inet_pton(AF_INET, "10.0.2.2", &address.sin_addr);
	packet.header.un.echo.id = htons(getpid());
	packet.header.un.echo.sequence = htons(number);
	for (i = 0; i < sizeof(packet.data); i++)
		packet.data[i] = i * 7 + number;
	packet.header.checksum = checksum(&packet, sizeof(packet));
	if (sendto(socket_fd, &packet, sizeof(packet), 0, (struct sockaddr *)&address,
		   sizeof(address)) != sizeof(packet))
		return false;
	for (i = 0; i < 10; i++) {
		long size = recv(socket_fd, answer, sizeof(answer), 0);

		/* After an IP header of 20 bytes; and not a packet of another test. */
		if (size == 20 + sizeof(packet) && answer[20] == ICMP_ECHOREPLY &&
		    !memcmp(answer + 24, &packet.header.un, 4))
			return !memcmp(answer + 28, packet.data, sizeof(packet.data));
		if (size < 0)
			return false;
	}
	return false;
}

static int echoes(void)
{
	int socket_fd = socket(AF_INET, SOCK_RAW | SOCK_CLOEXEC, IPPROTO_ICMP), i, good = 0;
	struct timeval patience = { .tv_sec = 5 };

	setsockopt(socket_fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
	/* The link may take a while; the first one also has to find the router. */
	for (i = 0; i < 10 && !echo(socket_fd, 1000 + i); i++)
		;
	for (i = 0; i < PACKETS; i++)
		good += echo(socket_fd, i);
	close(socket_fd);
	return good;
}

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

/* The address of the driver's device; "" without one. */
static const char *find_device(const struct driver *driver)
{
	static char address[64];
	char path[300], id[64];
	DIR *directory = opendir("/sys/bus/pci/devices");
	struct dirent *entry;

	address[0] = 0;
	while (directory && (entry = readdir(directory))) {
		if (entry->d_name[0] == '.')
			continue;
		snprintf(path, sizeof(path), "cd /sys/bus/pci/devices/%.20s; "
			 "printf %%s $(cat vendor) $(cat device)", entry->d_name);
		command_run(path);
		snprintf(id, sizeof(id), "%.40s", command_output);
		if (!strcmp(id, driver->device))
			snprintf(address, sizeof(address), "%.20s", entry->d_name);
	}
	if (directory)
		closedir(directory);
	return address;
}

static int open_of(const char *device, const char *file)
{
	char path[200];

	snprintf(path, sizeof(path), "/sys/bus/pci/devices/%s/%s", device, file);
	return open(path, O_RDWR | O_CLOEXEC);
}

/* The address of the device's registers. */
static unsigned long long address_of(const struct driver *driver, const char *device)
{
	char command[200];

	snprintf(command, sizeof(command), "sed -n %up /sys/bus/pci/devices/%s/resource",
		 driver->bar + 1, device);
	command_run(command);
	return strtoull(command_output, NULL, 16);
}

static void attack_device(const struct driver *driver)
{
	const char *device = find_device(driver);
	int config = open_of(device, "config"), at = 0x10 + 4 * driver->bar;
	unsigned int before, moved, after;

	is(attack("registers", address_of(driver, device), 0, 0), 0,
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

static void use(const struct driver *driver)
{
	static unsigned long long at;
	char name[IFNAMSIZ], line[100];

	suspicions(&at);
	if (!modprobe("-q", driver->file, NULL))
		bail("%s cannot be loaded", driver->file);
	snprintf(line, sizeof(line), "module  %-15s loaded, and guarded\n", driver->name);
	dunectl("status");
	ok(strstr(command_output, line), "%s is guarded", driver->file);
	if (!strstr(command_output, line))
		diag("%s", command_output);
	WAIT_FOR(find_interface(name), 20);
	if (name[0]) {
		is(set_up(name, true), 0, "its interface is %s", name);
		is(echoes(), PACKETS, "all packets come back");
		is(suspicions(&at), 0, "nothing of that was suspicious");
		if (driver->device) {
			attack_device(driver);
			ok(suspicions(&at), "the log tells it");
			is(echoes(), PACKETS, "all packets come back again");
		}
		is(set_up(name, false), 0, "it is switched off");
	} else {
		skip("the machine has no such device", "packets by %s", driver->file);
	}
	ok(modprobe("-qr", driver->file, NULL), "it is unloaded");
	is(suspicions(&at), 0, "nothing of that was suspicious");
}

/* Whether the machine has the driver. */
static bool enroll(const struct driver *driver)
{
	char words[400];

	if (!modprobe("-nq", driver->file, NULL))
		return false;
	snprintf(words, sizeof(words), "describe $(modinfo -n %s) -o /tmp/driver.toml",
		 driver->file);
	is(dunectl(words), 0, "%s is described", driver->file);
	is(dunectl("bind --force /tmp/driver.toml"), 0, "and bound");
	if (driver->device && *find_device(driver)) {
		snprintf(words, sizeof(words), "printf '[[privilege]]\nkind = \"mmio\"\n"
			 "device = \"%s\"\n' >>/etc/dune/guard.d/%s.toml",
			 find_device(driver), driver->name);
		is(command_run(words), 0, "to the registers of its device");
	}
	is(dunectl("register /tmp/driver.toml"), 0, "and registered");
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
				use(&drivers[i]);
		if (!round)
			is(guard_request(fd, DUNE_GUARD_SEAL), 0, "the seal");
	}
	klog_end(&log);
	return done();
}
