// SPDX-License-Identifier: MIT OR Apache-2.0
/* Debian's drivers as guarded modules: see driver.h. */
#define _GNU_SOURCE
#include "driver.h"
#include "command.h"
#include "modules.h"
#include "tap.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>

const char *driver_device(const struct driver *driver)
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

unsigned long long driver_bar(const struct driver *driver, unsigned int bar)
{
	const char *device = driver_device(driver);
	char command[200];

	snprintf(command, sizeof(command), "sed -n %up /sys/bus/pci/devices/%s/resource",
		 bar + 1, device);
	command_run(command);
	return strtoull(command_output, NULL, 16);
}

int driver_enroll_with(const struct driver *driver, bool leaves, const char *options)
{
	char words[400];
	int status;

	snprintf(words, sizeof(words), "describe $(modinfo -n %s) -o /tmp/%s.toml", driver->file,
		 driver->name);
	status = dunectl_guard(words);
	/* The modules to which it refers come first. */
	snprintf(words, sizeof(words), "for one in $(modinfo -F depends %s | tr , ' '); do "
		 "modprobe $one; done", driver->file);
	status = status ?: command_run(words);
	snprintf(words, sizeof(words), "bind --force /tmp/%s.toml", driver->name);
	if (!status)
		status = dunectl_guard(words);
	if (!status && driver->device && *driver_device(driver)) {
		snprintf(words, sizeof(words), "printf '[[privilege]]\nkind = \"mmio\"\n"
			 "device = \"%s\"\n' >>/etc/dune/guard.d/%s.toml",
			 driver_device(driver), driver->name);
		status = command_run(words);
	}
	if (!status && leaves) {
		snprintf(words, sizeof(words), "leaves /tmp/%s.toml >>/etc/dune/guard.d/%s.toml",
			 driver->name, driver->name);
		status = dunectl_guard(words);
	}
	snprintf(words, sizeof(words), "register %s /tmp/%s.toml", options, driver->name);
	return status ?: dunectl_guard(words);
}

int driver_enroll(const struct driver *driver)
{
	return driver_enroll_with(driver, false, "");
}

bool driver_is_guarded(const struct driver *driver)
{
	char line[100];

	snprintf(line, sizeof(line), "module  %-15s loaded, and guarded\n", driver->name);
	dunectl_guard("status");
	return strstr(command_output, line);
}
