/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Debian's drivers, which nobody changed, as guarded modules, by the command dunectl guard. */
#ifndef DUNE_TESTS_GUARD_DRIVER_H
#define DUNE_TESTS_GUARD_DRIVER_H

#include <stdbool.h>

struct driver {
	const char *file, *name;
	const char *device;	/* vendor and device, as in sysfs; NULL: it gets no privilege */
	unsigned int bar;	/* of its registers */
	const char *parameter;	/* of the module, or NULL */
};

/* The address of the driver's device, such as 0000:00:04.0; "" without one. */
const char *driver_device(const struct driver *driver);
/* Where a BAR of the device is. */
unsigned long long driver_bar(const struct driver *driver, unsigned int bar);
/*
 * Describe the driver, bind it to the registers of its device, and register it. The exit status of
 * the first command that fails, or 0.
 */
int driver_enroll(const struct driver *driver);
/*
 * The same, and perhaps with the leaves that are proposed; options of dunectl guard register come
 * before the file.
 */
int driver_enroll_with(const struct driver *driver, bool leaves, const char *options);
/* It is loaded, and guarded. Otherwise command_output has the status. */
bool driver_is_guarded(const struct driver *driver);

#endif
