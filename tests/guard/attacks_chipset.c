// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * Attacks that need a chipset with configuration space in memory, and a computer that ignores some
 * resets (mode guard-q35). Each has a name and a verdict, as in attacks.c. Fails if the kernel
 * moves a guarded BAR through the window, also with a translation that is older than the
 * registration; or if it gets the frames of a module after a reset that did not happen, without all
 * CPUs' flushes.
 */
#define _GNU_SOURCE
#include "guard.h"
#include "klog.h"
#include "modules.h"
#include "named.h"
#include "outside.h"
#include "proc.h"
#include "tap.h"

#include <errno.h>
#include <sys/ioctl.h>

#define PARAMETERS	"/sys/module/dune_guard_outside/parameters/"

/* inside/outside_devices.c */
enum { EDU, BRIDGE = 4, HOST = 6 };
#define WITH_EDU	"1"
#define WINDOW		0x60	/* a register of HOST */
#define BAR		0x10
#define CAPABILITIES	0x34

/* Of PCI Express, of version 2: its number, and ARI Forwarding Enable. */
#define EXPRESS		0x20010
#define CONTROL_2	0x28
#define FORWARDS	0x20
#define WORD		0x400	/* an access of 4 bytes */

/* The registration of the guarded module (inside/outside.c). */
#define NUMBER		3

/* Ports, and what resets a computer that has them. */
#define KEYBOARD	0x64
#define PULSE		0xfe
#define WRITE_OUTPUT	0xd1	/* the next byte, at another port, has the line of the reset */
#define CONTROL		0x92
#define FAST_RESET	1

static int guard;

static unsigned long long run(const char *word, unsigned long long a, unsigned long long b,
			      unsigned long long c)
{
	return ask_module("dune-guard-outside", word, a, b, c);
}

/* Loads the module, and returns whether it is armed: 0, or an errno. */
static int load(void)
{
	if (module_insert("dune-guard-inside", ""))
		bail("the module cannot be loaded");
	return -(int)run("armed", 0, 0, 0);
}

/* Another CPU moves the BAR after the registration, and before its own flush. */
static unsigned long long moved_while_arming(void)
{
	int err;

	file_write(PARAMETERS "moves", "1");
	err = load();
	file_write(PARAMETERS "moves", "0");
	if (module_unload("dune_guard_inside"))
		bail("the module cannot be unloaded");
	return err;
}

/* A reset that this computer does not have. Then the guard's answer to a THAW without a flush. */
static unsigned long long thaw_after(unsigned int port, unsigned int value)
{
	run("k-out", port, 1, value);
	return -outside("guard-call", CALL_THAW, NUMBER);
}

/* What the module has in its private page when the keyboard controller is asked for its lines. */
static unsigned long long read_after_output(void)
{
	run("k-out", KEYBOARD, 1, WRITE_OUTPUT);
	return outside("read", 0, 0);
}

static unsigned long long thaw_after_keyboard(void)
{
	return thaw_after(KEYBOARD, PULSE);
}

static unsigned long long thaw_after_control(void)
{
	return thaw_after(CONTROL, FAST_RESET);
}

/* Has the port above the device forward what is for all device numbers. */
static unsigned long long forward(void)
{
	unsigned int at = run("config-read", BRIDGE, CAPABILITIES, 0) & 0xfc, word;

	while (((word = run("config-read", BRIDGE, at, 0)) & 0xf00ff) != EXPRESS) {
		at = word >> 8 & 0xfc;
		if (!at)
			bail("the bridge is no port of PCI Express");
	}
	return run("config", BRIDGE, WORD + at + CONTROL_2, FORWARDS) & FORWARDS;
}

/* By another device number of its link. Returns how many entries the guard's log has about that. */
static unsigned long long write_other_device(void)
{
	struct dune_guard_entry entry = { .index = 0 };
	unsigned long long count = 0;

	while (!ioctl(guard, DUNE_GUARD_GET_LOG, &entry))
		entry.index++;
	run("config-other-device", EDU, 0xf0, 0x12345678);
	for (; !ioctl(guard, DUNE_GUARD_GET_LOG, &entry); entry.index++)
		count += entry.kind == DUNE_GUARD_LOG_PCI;
	return count;
}

static void attack_window(char **names)
{
	const struct attack attacks[] = {
		{ NAMED("window-bar", "a BAR moved through the window"),
		  BY(OUTSIDE, "config-window", EDU, BAR, 0xd0000000),
		  .stopped = run("bar", EDU, 0, 0) },
		{ NAMED("window-moved", "the window itself"),
		  BY(OUTSIDE, "move-window", run("window", 0, 0, 0) + 0x10000000),
		  .stopped = run("config-read", HOST, WINDOW, 0) },
		{ NAMED("config-forwarding", "a link that leads to the device by all numbers"),
		  BY_US(forward) },
		{ NAMED("config-other-device", "the device's registers, by another number"),
		  BY_US(write_other_device), .stopped = 1 },
	};

	attacks_make(attacks, COUNT(attacks), names);
}

int main(int argc, char **argv)
{
	static const struct attack first[] = {
		{ NAMED("window-stale", "a BAR moved while its module is being armed"),
		  BY_US(moved_while_arming), .stopped = ENXIO },
	};
	static const struct attack last[] = {
		{ NAMED("reset-output", "the private page before a reset by two bytes"),
		  BY_US(read_after_output) },
		{ NAMED("reset-keyboard", "a THAW after port 64h has not reset the computer"),
		  BY_US(thaw_after_keyboard), .stopped = EBUSY },
		{ NAMED("reset-control", "after port 92h has not"),
		  BY_US(thaw_after_control), .stopped = EBUSY },
	};
	struct klog log;

	guard = guard_begin(200, &log);
	outside_load("");
	if (!run("devices", 0, 0, 0) || !run("window", 0, 0, 0)) {
		skip("the machine has another chipset", "attacks on the chipset");
		module_unload("dune_guard_outside");
		return guard_end(guard, &log);
	}
	is(guard_request(guard, DUNE_GUARD_LAUNCH), 0, "a launch");
	argv++;
	file_write(PARAMETERS "with", WITH_EDU);
	if (cpus_on_line() > 1)
		attacks_make(first, COUNT(first), argv);
	is(load(), 0, "the module is guarded");
	is(guard_request(guard, DUNE_GUARD_SEAL), 0, "the seal (%s)", guard_answer.text);
	attack_window(argv);
	is(run("write", SECRET, 0, 0), SECRET, "the module has its private page");
	attacks_make(last, COUNT(last), argv);
	attacks_end(argv);
	klog_end(&log);
	return done();
}
