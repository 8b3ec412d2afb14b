// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * Functions of the kernel's that a guarded module executes itself: Debian's e1000, which nobody
 * changed, with the leaves that `dunectl guard leaves` proposes. Fails if one of them is still a
 * crossing, also after another module with the same leaves has come and gone; if the module is
 * registered with a leaf that the kernel does not have; if packets get lost; if anything is
 * suspicious; or if the kernel's changes of such a function reach the module: before the module is
 * loaded and afterwards, before the seal and after it, and after another module with it was
 * unregistered.
 *
 * With the argument "echo", this program sends and gets echo requests.
 */
#define _GNU_SOURCE
#include "attack.h"
#include "child.h"
#include "command.h"
#include "driver.h"
#include "guard.h"
#include "klog.h"
#include "modules.h"
#include "network.h"
#include "proc.h"
#include "tap.h"
#include "timing.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define BINDING	"/etc/dune/guard.d/e1000.toml"
#define MOST	40

static const struct driver driver = { "e1000", "e1000", "0x80860x100e", 0, NULL };
/* Its pages with leaves are among those of the first one. It needs no device for that. */
static const struct driver second = { "8139cp", "8139cp", NULL, 0, NULL };

/* The kernel calls it for a driver's interrupt alone, and the driver calls it itself. */
#define VICTIM	"napi_schedule_prep"

static int fd;
static char interface[IFNAMSIZ];

/* ---- the leaves ---- */

static struct {
	char name[60];
	unsigned long address;
	unsigned long long calls;	/* without leaves */
} leaves[MOST];
static int count;

static void find_leaves(void)
{
	char *line, *rest = command_output;

	is(dunectl_guard("leaves /tmp/e1000.toml"), 0, "leaves are proposed");
	while ((line = strsep(&rest, "\n")) && count < MOST)
		if (sscanf(line, "symbol = \"%59[a-z0-9_]", leaves[count].name) == 1)
			count++;
	ok(count > 1 && count < MOST, "%d of them", count);
	for (int i = 0; i < count; i++)
		leaves[i].address = kernel_address(leaves[i].name);
}

/* How often the module has left for this function, while packets were sent and came back. */
static unsigned long long calls_of(unsigned long address)
{
	char key[60], *at;
	unsigned long long calls = 0;

	snprintf(key, sizeof(key), "\"address\":%lu,", address);
	at = strstr(command_output, key);
	if (at)
		at = strstr(at, "\"out_call\":");
	if (at)
		sscanf(at, "\"out_call\":%llu", &calls);
	return calls;
}

static void count_calls(void)
{
	char words[400], program[300];
	int size = readlink("/proc/self/exe", program, sizeof(program) - 1);

	program[size < 0 ? 0 : size] = 0;
	snprintf(words, sizeof(words), "crossings --json e1000 -- %s echo", program);
	if (!is(dunectl_guard(words), 0, "all packets come back, and crossings are counted"))
		diag("%s", command_output);
}

/* ---- the driver ---- */

static bool is_quiet(void)
{
	static unsigned long long index;
	struct dune_guard_entry entry = { .index = index };
	int entries = 0;

	for (; !ioctl(fd, DUNE_GUARD_GET_LOG, &entry); entry.index++, entries++)
		diag("the guard's log: kind %u, %#llx", entry.kind, entry.value);
	index = entry.index;
	return !entries;
}

static void switch_on(bool on)
{
	is(network_set(interface, on), 0, "the interface is switched %s", on ? "on" : "off");
}

static void load(void)
{
	if (!modprobe("-q", driver.file, NULL))
		bail("%s cannot be loaded", driver.file);
	if (!ok(driver_is_guarded(&driver), "the driver is loaded, and guarded"))
		diag("%s", command_output);
	WAIT_FOR(network_find(interface), 20);
	if (!interface[0])
		bail("e1000 has no network interface");
}

static void unload(void)
{
	ok(modprobe("-qr", driver.file, NULL), "it is unloaded");
	ok(is_quiet(), "nothing of that was suspicious");
}

static int enroll(const char *leaves_command)
{
	char command[600];

	if (driver_enroll(&driver))
		bail("e1000 is not registered: %s", command_output);
	dunectl_guard("unregister e1000");
	snprintf(command, sizeof(command), "%s >>" BINDING, leaves_command);
	if (command_run(command))
		bail("%s: %s", command, command_output);
	return dunectl_guard("register --count-crossings /tmp/e1000.toml");
}

/* ---- what is tried ---- */

/* Another function in the place of VICTIM: it returns 0, and so no packet is received. */
static const unsigned char other[] = { 0x31, 0xc0, 0xc3 };
static unsigned char original[sizeof(other)];

static void patch(bool is_other)
{
	unsigned long address = kernel_address(VICTIM);
	bool done = true;
	unsigned int i;

	for (i = 0; i < sizeof(other); i++) {
		unsigned char byte = is_other ? other[i] : original[i];

		done &= !attack("patch", address + i, byte, 0) && seen == byte;
		if (is_other)
			original[i] = found;
	}
	ok(done, "the kernel has %s %s()", is_other ? "another" : "the old", VICTIM);
}

static long received(void)
{
	char path[100], text[40];

	snprintf(path, sizeof(path), "/sys/class/net/%s/statistics/rx_packets", interface);
	return file_read(path, text, sizeof(text)) < 0 ? -1 : atol(text);
}

static void without_leaves(void)
{
	long before;
	int child, i;

	is(enroll("true"), 0, "e1000 is registered without leaves");
	find_leaves();
	load();
	switch_on(true);
	count_calls();
	for (i = 0; i < count; i++)
		leaves[i].calls = calls_of(leaves[i].address);
	/* Shorter than Linux waits before it reports that nothing is sent. */
	patch(true);
	before = received();
	child = checked_fork();
	if (!child) {
		network_echo();
		_exit(0);
	}
	sleep(2);
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	is(received(), before, "without leaves, this changes the driver: packets received");
	patch(false);
	switch_on(false);
	unload();
	is(dunectl_guard("unregister e1000"), 0, "it is unregistered");
}

/* A binding whose leaves are not the kernel's. */
static void refused(const char *change, const char *text)
{
	char command[400];
	int status;

	snprintf(command, sizeof(command), "%s/bin/dunectl guard leaves /tmp/e1000.toml | %s",
		 build_directory(), change);
	status = enroll(command);
	ok(status == 1 && command_lines() == 1 && strstr(command_output, text), "%s: %d, %s",
	   change, status, command_output);
}

static void wrong_leaves(void)
{
	refused("sed '/^sha256/{s/\"[0-7]/\"8/;t;s/\"./\"0/}'",
		"is not the function that the binding has");
	refused("sed 's/^size = .*/size = 8/'", "is not the function that the binding has");
	refused("sed 's/^size = .*/size = 0/'", "is not the function that the binding has");
	refused("sed 's/^symbol = .*/symbol = \"no_such_function\"/'",
		"this kernel has no function no_such_function");
	refused("sed 's/^sha256 = .*/sha256 = \"12\"/'", "is no SHA-256");
	refused("{ cat >/tmp/all; cat /tmp/all /tmp/all /tmp/all /tmp/all /tmp/all /tmp/all; }",
		"a module can have 32 leaves");
	patch(true);
	is(enroll("cat /tmp/leaves"), 1, "a function that was changed after its hash was taken");
	ok(strstr(command_output, VICTIM "() is not the function"), "%s", command_output);
	patch(false);
}

static void enroll_second(void)
{
	if (driver_enroll(&second))
		bail("8139cp is not registered: %s", command_output);
	dunectl_guard("unregister 8139cp");
	is(dunectl_guard("leaves /tmp/8139cp.toml >>/etc/dune/guard.d/8139cp.toml"), 0,
	   "leaves for another driver");
	is(dunectl_guard("register /tmp/8139cp.toml"), 0, "it is registered with them");
}

/* While it and e1000 are loaded. The modules that it needs stay, for the next registration. */
static void unregister_second(void)
{
	ok(modprobe("-q", second.file, NULL) && driver_is_guarded(&second),
	   "another guarded driver is loaded");
	is(dunectl_guard("unregister 8139cp"), 0, "it is unregistered");
	is(module_unload(second.file), 0, "and unloaded");
}

static void use(const char *when)
{
	int i;

	load();
	ok(modprobe("-q", second.file, NULL) && driver_is_guarded(&second) &&
	   modprobe("-qr", second.file, NULL), "another guarded driver has come and gone");
	switch_on(true);
	count_calls();
	for (i = 0; i < count; i++) {
		unsigned long long calls = calls_of(leaves[i].address);

		/* An interrupt at the first instruction leaves it, too. */
		ok(calls <= leaves[i].calls / 20 + 1, "%s: %llu calls, %llu crossings%s",
		   leaves[i].name, leaves[i].calls, calls, when);
	}
	patch(true);
	is(network_echo(), NETWORK_ECHOES, "all packets come back again");
	patch(false);
	switch_on(false);
	unload();
}

static void with_leaves(void)
{
	command_run("dunectl guard leaves /tmp/e1000.toml >/tmp/leaves");
	wrong_leaves();
	is(enroll("cat /tmp/leaves"), 0, "e1000 is registered with its leaves");
	enroll_second();
	use("");
	patch(true);
	load();
	unregister_second();
	switch_on(true);
	is(network_echo(), NETWORK_ECHOES, "changed before the load: all packets come back");
	switch_on(false);
	unload();
	patch(false);
	is(dunectl_guard("register /tmp/8139cp.toml"), 0, "the other driver is registered again");
	is(guard_request(fd, DUNE_GUARD_SEAL), 0, "the seal");
	use(", sealed");
}

int main(int argc, char **argv)
{
	char path[1000];
	struct klog log;
	int i, called = 0;

	if (argc > 1 && !strcmp(argv[1], "echo"))
		return network_echo() != NETWORK_ECHOES;
	snprintf(path, sizeof(path), "%s/bin:%s", build_directory(), getenv("PATH"));
	setenv("PATH", path, 1);
	fd = guard_begin(900, &log);
	attack_load();
	is(guard_request(fd, DUNE_GUARD_LAUNCH), 0, "a launch");
	without_leaves();
	for (i = 0; i < count; i++)
		called += leaves[i].calls >= NETWORK_ECHOES;
	ok(called > 1, "%d of the leaves are called for each packet", called);
	with_leaves();
	klog_end(&log);
	return done();
}
