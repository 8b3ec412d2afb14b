// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * A guarded module (inside/) that alone has devices, ports, an MSR and the guard's services. Fails
 * if they do not work in the module, if the kernel around it reaches one of them, before the seal
 * or after it, by moving a BAR, by an access that overlaps a port, or by any other way that is
 * known; if a driver's calls of the kernel do not work any more; if a list that is wrong is
 * accepted; or if the guard has less memory left afterwards.
 */
#define _GNU_SOURCE
#include "cpu.h"
#include "guard.h"
#include "klog.h"
#include "modules.h"
#include "outside.h"
#include "proc.h"
#include "tap.h"
#include "timing.h"
#include "x86.h"

#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#define WITH	"/sys/module/dune_guard_outside/parameters/with"
#define WRONG	"/sys/module/dune_guard_outside/parameters/wrong"

typedef unsigned long long u64;

/* inside/outside_devices.c: devices by their numbers, and what the module has. */
enum { EDU, OTHER_EDU, NIC, SHARED, BRIDGE, OTHER_BRIDGE, HOST, SMBUS };
enum { WITH_EDU = 1, WITH_NIC = 2, WITH_SHARED = 4, WITH_PORTS = 8, WITH_MSR = 16,
	WITH_MONITOR = 32, WITH_ALL = 63, WITH_SMBUS = 64 };

/* The device edu. */
#define EDU_ID		0x010000edULL
#define EDU_INVERT	4
#define ONES		0xffffffffULL

/* The watchdog, whose last time is no time at all. */
#define DISARM		0x441
#define ARM		0x443
#define AT_ONCE		0xf

#define MSR		0x1a0
#define VALUE		0x850089ULL

static int guard;
/* Of the guard's memory, without the module. */
static unsigned int memory_left;

static u64 run(const char *word, u64 a, u64 b, u64 c)
{
	return ask_module("dune-guard-outside", word, a, b, c);
}

static void gives(const char *word, u64 a, u64 b, u64 c, u64 want, const char *what)
{
	u64 got = run(word, a, b, c);

	ok(got == want, "%s: %s(%llx, %llx, %llx) is %llx (%llx)", what, word, a, b, c, want, got);
}

/* Whether the guard's log has an entry of this kind from @from on. Returns its end. */
static u64 log_has(u64 from, unsigned int kind, bool *found)
{
	struct dune_guard_entry entry = { .index = from };

	*found = false;
	for (; !ioctl(guard, DUNE_GUARD_GET_LOG, &entry); entry.index++)
		*found |= entry.kind == kind;
	return entry.index;
}

/* The same verdict, and one on the log. */
static void is_logged(const char *word, u64 a, u64 b, u64 c, u64 want, unsigned int kind,
		      const char *what)
{
	bool found;
	u64 end = log_has(0, kind, &found);

	gives(word, a, b, c, want, what);
	log_has(end, kind, &found);
	ok(found, "it is logged");
}

/* ---- memory ---- */

static void in_module(void)
{
	gives("m-read", EDU, 0, 0, EDU_ID, "the module reads its device");
	run("m-write", EDU, EDU_INVERT, 0x12345678);
	gives("m-read", EDU, EDU_INVERT, 0, 0xedcba987, "and writes it");
	gives("m-factorial", 10, 0, 0, 3628800, "the device computes");
	run("m-write", SHARED, 0x1000, 0x77);
	gives("m-read", SHARED, 0x1000, 0, 0x77, "a BAR of 32 MB");
	run("m-write", NIC, 0x5440, 0x11223344);
	gives("m-read", NIC, 0x5440, 0, 0x11223344, "a third device");
}

static void transfers(void)
{
	run("pci-master", EDU, 0, 0);
	gives("m-dma", 0, 0, 0, 1, "the device copies memory");
}

static void memory_of_kernel(void)
{
	gives("k-read", EDU, 0, 0, ONES, "the kernel reads the device");
	gives("k-read", NIC, 0x5440, 0, ONES, "another one");
	gives("k-read", SHARED, 0x1000, 0, ONES, "a BAR of 32 MB");
	gives("k-alias", EDU, 0, 0, ONES, "by another mapping");
	gives("k-alias", SHARED, 0x1ff0000, 0, ONES, "the end of the large one");
	gives("k-xadd", EDU, EDU_INVERT, 0, ONES, "it reads and writes");
	is_logged("k-write", EDU, EDU_INVERT, 1, 0, DUNE_GUARD_LOG_WRITE, "it writes");
	run("k-write", SHARED, 0x1000, 1);
	gives("l-read", SHARED, 0x1000, 0, ~0ULL, "the module's text without the privilege");
	run("l-write", EDU, EDU_INVERT, 0);
	gives("m-read", EDU, EDU_INVERT, 0, 0xedcba987, "the device has the module's value");
	gives("m-read", SHARED, 0x1000, 0, 0x77, "so has the other one");
}

/* ---- configuration space ---- */

/* The window of configuration space, which the machine q35 has. */
static void through_window(u64 bar)
{
	u64 window = run("window", 0, 0, 0);

	if (!window)
		return;
	is_logged("config-window", EDU, 0x10, 0xd0000000, bar, DUNE_GUARD_LOG_WRITE,
		  "a BAR is moved through the window");
	gives("config-window", OTHER_EDU, 0x10, bar, run("config-read", OTHER_EDU, 0x10, 0),
	      "another device's");
	is_logged("move-window", window + 0x10000000, 0, 0, run("config-read", HOST, 0x60, 0),
		  DUNE_GUARD_LOG_PCI, "the window is moved");
}

static void bars_stay(void)
{
	u64 bar = run("bar", EDU, 0, 0), other = run("bar", OTHER_EDU, 0, 0);
	u64 nic = run("bar", NIC, 0, 0);
	u64 window = run("config-read", OTHER_BRIDGE, 0x20, 0);
	u64 buses = run("config-read", OTHER_BRIDGE, 0x18, 0);
	u64 bus = run("config-read", BRIDGE, 0x18, 0) >> 8 & 0xff;

	gives("config-read", EDU, 0, 0, 0x11e81234, "configuration space is read");
	is_logged("config", EDU, 0x410, 0xd0000000, bar, DUNE_GUARD_LOG_PCI, "the BAR is moved");
	gives("config", EDU, 0x410, ONES, bar, "its size is asked for");
	gives("config", EDU, 0x410, bar, bar, "it is written as it is");
	gives("config", EDU, 0x213, 0xd0, bar, "its last byte is written");
	gives("config-string", EDU, 0x10, 0, 1, "by OUTS");
	gives("config-reserved", EDU, 0x10, 0xd0000000, bar, "with reserved bits in CF8h");
	gives("config-reserved", EDU, 0x3c, 0, run("config-read", EDU, 0x3c, 0),
	      "with these a register that may be written");
	is_logged("config-between", EDU, 0x10, 0xd0000000, bar, DUNE_GUARD_LOG_PCI,
		  "by an access that begins in the register before");
	gives("config-between", OTHER_EDU, 0x10, bar, other, "another device's");
	through_window(bar);
	gives("config-fuzz", EDU, 0, 0, 0, "each register by all ports and sizes");
	gives("config-fuzz", BRIDGE, 0, 0, 0, "those of the bridge");
	gives("config-fuzz", NIC, 0, 0, 0, "those of another device");
	gives("m-read", EDU, 0, 0, EDU_ID, "the module still has its device");

	is_logged("config", OTHER_EDU, 0x410, bar, other, DUNE_GUARD_LOG_PCI,
		  "another device is laid over it");
	/* The network interface is in the 1 MB that this means. */
	gives("config", OTHER_EDU, 0x410, (nic & ~0xfffffULL) | 0xf0000, other,
	      "with bits that it ignores");
	ok((nic & 0xfffff) < 0xd0000, "the interface is below these (%llx)", nic);
	gives("config", OTHER_EDU, 0x410, run("bar", SHARED, 2, 0) + 0x1f00000, other,
	      "over the end of the large one");
	is_logged("config-reserved", OTHER_EDU, 0x10, 0xd0000000, other, DUNE_GUARD_LOG_PCI,
		  "with reserved bits it is moved nowhere");
	gives("config", OTHER_EDU, 0x410, 0xd0000000, 0xd0000000, "it is moved elsewhere");
	gives("config", OTHER_EDU, 0x410, other, other, "and back");
	gives("config", OTHER_BRIDGE, 0x420, (bar & 0xfff00000) | bar >> 16, window,
	      "another bridge's window");
	run("config", OTHER_BRIDGE, 0x220, 0);
	gives("config", OTHER_BRIDGE, 0x222, bar >> 16, 0, "its end alone");
	gives("config", OTHER_BRIDGE, 0x420, window, window, "it is as before");
	gives("config", OTHER_BRIDGE, 0x418, bus << 16 | bus << 8, buses, "another bridge's bus");
	gives("m-read", EDU, 0, 0, EDU_ID, "the module still has its device");
	gives("m-factorial", 5, 0, 0, 120, "which computes");
}

/* A device that has ports alone: the window is closed for it, too. */
static void ports_stay(void)
{
	u64 bar = run("config-read", SMBUS, 0x20, 0);

	is_logged("config-window", SMBUS, 0x20, 0x5001, bar, DUNE_GUARD_LOG_WRITE,
		  "a BAR of ports is moved through the window");
	gives("config", SMBUS, 0x420, 0x5001, bar, "and by ports");
}

/*
 * The device with 32 MB is not guarded. Its BAR full of ones, as when its size is asked for, begins
 * 32 MB below 4 GB, and would have the guarded device in it.
 */
static void large_device(void)
{
	u64 low = run("config-read", SHARED, 0x18, 0), high = run("config-read", SHARED, 0x1c, 0);
	u64 command = run("config-read", SHARED, 4, 0) & 0xffff;

	ok(low < 0xfe000000 && !high && run("bar", EDU, 0, 0) >= 0xfe000000 && command & 2,
	   "the devices are where the test needs them (%llx, %llx)", high, low);
	is_logged("config", SHARED, 0x418, ONES, low, DUNE_GUARD_LOG_PCI,
		  "a large device is laid over it");
	run("config", SHARED, 0x204, command & ~3ULL);
	gives("config", SHARED, 0x418, ONES, 0xfe000000 | (low & 0xf),
	      "its size is asked for while it decodes nothing");
	run("config", SHARED, 0x204, command);
	ok(!(run("config-read", SHARED, 4, 0) & 2), "it does not decode then");
	gives("m-read", EDU, 0, 0, EDU_ID, "the module still has its device");
	gives("config", SHARED, 0x418, low, low, "its BAR is restored");
	run("config", SHARED, 0x204, command);
	ok(run("config-read", SHARED, 4, 0) & 2, "and it decodes");
}

/* The offset of a capability. */
static u64 capability(u64 device, u64 id)
{
	u64 at = run("config-read", device, 0x34, 0) & 0xfc, word;
	int i;

	for (i = 0; i < 48 && at; i++) {
		word = run("config-read", device, at, 0);
		if ((word & 0xff) == id)
			return at;
		at = word >> 8 & 0xfc;
	}
	return 0;
}

/* What drivers do through the kernel's functions. */
static void drivers(void)
{
	u64 msi = capability(EDU, 5), command = run("config-read", EDU, 4, 0) & 0xffff;

	is_logged("config", EDU, 0x204, 0, (run("config-read", EDU, 4, 0) & ~0xffffULL) |
		  (command & 3), DUNE_GUARD_LOG_PCI, "memory is not turned off");
	gives("m-read", EDU, 0, 0, EDU_ID, "the module still has its device");
	gives("pci-enable", EDU, 0, 0, 0, "pci_enable_device()");
	run("pci-master", EDU, 0, 0);
	ok(run("config-read", EDU, 4, 0) & 4, "pci_set_master()");
	run("pci-disable", EDU, 0, 0);
	ok(!(run("config-read", EDU, 4, 0) & 4), "pci_disable_device() ends that");
	gives("pci-enable", NIC, 0, 0, 0, "pci_enable_device() of another one");
	gives("pci-power", NIC, 0, 0, 0, "pci_set_power_state()");
	ok(msi, "the device has MSI");
	gives("config", EDU, 0x400 + msi + 4, 0xfee01000, 0xfee01000, "its address is written");
	gives("config", EDU, 0x43c, 0, run("config-read", EDU, 0x3c, 0) & ~0xffULL,
	      "the line of its interrupt is written");
}

/* ---- ports ---- */

/* An NMI comes at once, or never. */
static void nmi_comes(u64 before, bool comes, const char *what)
{
	WAIT_FOR(run("nmis", 0, 0, 0) > before, comes ? 10 : 1);
	ok((run("nmis", 0, 0, 0) > before) == comes, "%s %s the watchdog", what,
	   comes ? "arms" : "does not arm");
}

static void ports(void)
{
	u64 nic = run("bar", NIC, 1, 0), before = run("nmis", 0, 0, 0);

	/* QEMU's interface has zeros at these ports. */
	gives("m-in", nic, 4, 0, 0, "the module reads a port");
	gives("m-in-string", nic, 0, 0, 0, "by INS");
	is_logged("k-in", nic, 4, 0, ONES, DUNE_GUARD_LOG_PORT, "the kernel reads it");
	gives("k-in", nic, 2, 0, 0xffff, "two bytes");
	gives("k-in", nic + 3, 1, 0, 0xff, "one");
	ok(run("k-in", nic - 2, 4, 0) >> 16 == 0xffff, "four bytes, of which two are no module's");
	gives("k-in", nic + 0x3e, 2, 0, 0xffff, "the last ones");
	gives("k-in-string", nic, 0, 0, 1, "by INS");
	run("k-out", ARM, 1, AT_ONCE);
	nmi_comes(before, false, "a byte of the kernel's");
	/* QEMU's watchdog ignores the next two anyway; they count as accesses to it. */
	is_logged("k-out", ARM - 1, 2, AT_ONCE << 8, 0, DUNE_GUARD_LOG_PORT, "two bytes");
	nmi_comes(before, false, "two bytes");
	is_logged("k-out", ARM - 3, 4, AT_ONCE << 24, 0, DUNE_GUARD_LOG_PORT, "four bytes");
	nmi_comes(before, false, "four bytes");
	gives("k-out-string", ARM, 0, 0, 1, "OUTS raises an exception");
	nmi_comes(before, false, "OUTS");
	run("m-out", ARM, 1, AT_ONCE);
	nmi_comes(before, true, "the module");
	run("m-out", DISARM, 1, 0);
}

/* ---- MSR, and services ---- */

static void msrs(void)
{
	run("m-msr-write", MSR, VALUE, 0);
	gives("m-msr-read", MSR, 0, 0, VALUE, "the module reads its register");
	is_logged("k-msr-read", MSR, 0, 0, 0, DUNE_GUARD_LOG_MSR_READ, "the kernel reads it");
	is_logged("k-msr-write", MSR, 1, 0, 0, DUNE_GUARD_LOG_MSR_WRITE, "it writes it");
	gives("m-msr-read", MSR, 0, 0, VALUE, "the register has the module's value");
}

/* The kernel's PAT is its own. M's is constant: all modules have it, and class S relies on it. */
static void pat(void)
{
	u64 was = run("k-msr-read", MSR_IA32_CR_PAT, 0, 0), other = was ^ 2ULL << 56;

	gives("m-msr-read", MSR_IA32_CR_PAT, 0, 0, was, "the module has the same types of memory");
	run("m-msr-write", MSR_IA32_CR_PAT, other, 0);
	gives("m-msr-read", MSR_IA32_CR_PAT, 0, 0, was, "the module cannot change them");
	gives("k-msr-write", MSR_IA32_CR_PAT, other, 0, other, "the kernel changes its own");
	gives("m-msr-read", MSR_IA32_CR_PAT, 0, 0, was, "the module's stay");
	gives("k-msr-write", MSR_IA32_CR_PAT, was, 0, was, "the kernel changes them back");
}

static void services(void)
{
	u64 first = run("m-counter", 0, 0, 0), second = run("m-counter", 0, 0, 0);

	ok(first && second == first + 1, "the counter grows (%llu, %llu)", first, second);
	gives("m-random", 0, 0, 0, 1, "random numbers");
	is_logged("k-call", CALL_RANDOM, 0, 0, -EPERM, DUNE_GUARD_LOG_CALL,
		  "the kernel asks for one");
	gives("k-call", CALL_COUNTER, 0, 0, -EPERM, "and for the counter");
	gives("m-counter", 0, 0, 0, second + 1, "which it has not changed");
}

/* ---- the registration ---- */

static void set(const char *parameter, unsigned int value)
{
	char text[20];

	snprintf(text, sizeof(text), "%u", value);
	if (file_write(parameter, text))
		bail("%s cannot be written", parameter);
}

static void load(int wanted)
{
	is(module_insert("dune-guard-inside", ""), 0, "the module is loaded");
	is((int)run("armed", 0, 0, 0), wanted, "and %s", wanted ? "not armed" : "armed");
}

static void leave(void)
{
	is(module_unload("dune_guard_inside"), 0, "the module is unloaded");
	is(guard_status(guard).memory_left, memory_left, "the guard has its memory again");
}

static void unload(void)
{
	leave();
	is((int)run("armed", 0, 0, 0), -ENOENT, "and not armed");
}

static void is_kernels(const char *when)
{
	gives("k-read", EDU, 0, 0, EDU_ID, when);
	gives("k-in", run("bar", NIC, 1, 0), 4, 0, 0, when);
	gives("k-read", SHARED, 0x1000, 0, run("k-alias", SHARED, 0x1000, 0), when);
}

/* Without the guard all attacks succeed: else the verdicts on them would mean nothing. */
static void without(void)
{
	u64 before = run("nmis", 0, 0, 0), other = run("bar", OTHER_EDU, 0, 0);

	is_kernels("the kernel has its devices");
	run("k-out", ARM, 1, AT_ONCE);
	nmi_comes(before, true, "the kernel");
	run("k-out", DISARM, 1, 0);
	gives("config", OTHER_EDU, 0x410, 0xd0000000, 0xd0000000, "it moves a BAR");
	gives("config", OTHER_EDU, 0x410, other, other, "and back");
	gives("config", EDU, 0x410, 0xd0000000, 0xd0000000, "it moves the other one");
	gives("config", EDU, 0x410, run("bar", EDU, 0, 0), run("bar", EDU, 0, 0), "and back");
}

static void wrong_lists(void)
{
	static const struct { int err; const char *what; } lists[] = {
		{ -ENXIO, "an unknown kind" },
		{ -ENXIO, "a range that overflows" },
		{ -ENXIO, "an empty range" },
		{ -EADDRINUSE, "a port twice" },
		{ -ENXIO, "memory as a BAR" },
		{ -ENXIO, "a BAR of no power of two" },
		{ -ENXIO, "a device without one of its BARs" },
		{ -ENXIO, "a device without its bridge" },
		{ -ENXIO, "a device that does not exist" },
		{ -ENXIO, "ports of configuration space" },
		{ -ENXIO, "ports of reset" },
		{ -ENXIO, "ports above the last one" },
		{ -ENXIO, "EFER" },
		{ -ENXIO, "a register with a device" },
		{ -EINVAL, "too many entries" },
	};
	unsigned int i;

	for (i = 0; i < sizeof(lists) / sizeof(lists[0]); i++) {
		diag("a list with %s", lists[i].what);
		set(WRONG, i + 1);
		load(lists[i].err);
		leave();
		is_kernels("nothing has changed");
	}
	set(WRONG, 0);
}

static void costs(void)
{
	static const char *const names[] = {
		"entry and return", "with a call for the counter", "with a call for random bits",
		"a read of a BAR in K", "a write", "a read of a port", "a write",
		"a read of an MSR", "a read of configuration space (2 exits)",
		"a refused write and a read of it (4 exits)",
	};
	unsigned int i;

	for (i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		diag("%s: %llu", names[i], run("cost-of", i, 0, 0));
}

static void everything(void)
{
	in_module();
	transfers();
	memory_of_kernel();
	bars_stay();
	drivers();
	transfers();
	ports();
	msrs();
	pat();
	services();
}

/* On one CPU: an MSR is the CPU's own. */
static void stay(void)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(sched_getcpu(), &set);
	if (sched_setaffinity(0, sizeof(set), &set))
		bail("sched_setaffinity: %m");
}

int main(void)
{
	struct klog log;
	u64 counter;
	int err;

	begin(300);
	klog_begin(&log);
	stay();
	guard = guard_open();
	is(guard_request(guard, DUNE_GUARD_LAUNCH), 0, "a launch");
	outside_load("");
	if (!run("devices", 0, 0, 0)) {
		skip("the machine has no devices for it", "privileges");
		module_unload("dune_guard_outside");
		return done();
	}
	/* No device's registers may get into its memory. */
	secrets_load();
	memory_left = guard_status(guard).memory_left;
	without();
	set(WITH, 0);
	load(0);
	diag("no privilege but memory: entry and return: %llu", run("cost-of", 0, 0, 0));
	unload();
	set(WITH, WITH_SHARED);
	load(0);
	diag("with a BAR of 32 MB: entry and return: %llu", run("cost-of", 0, 0, 0));
	gives("l-read", SHARED, 0x1000, 0, ~0ULL, "the module's text without the privilege");
	is_logged("k-call", CALL_COUNTER, 0, 0, -EPERM, DUNE_GUARD_LOG_CALL, "no service");
	unload();
	set(WITH, WITH_PORTS);
	load(0);
	is_logged("config", NIC, 0x414, ARM & ~0x3fULL, run("bar", NIC, 1, 0) | 1,
		  DUNE_GUARD_LOG_PCI, "a device is laid over the ports");
	unload();
	set(WITH, WITH_EDU);
	load(0);
	large_device();
	unload();
	if (run("window", 0, 0, 0)) {
		set(WITH, WITH_SMBUS);
		load(0);
		ports_stay();
		unload();
	}
	set(WITH, WITH_ALL);
	wrong_lists();
	load(0);
	costs();
	everything();
	gives("second", ARM, 0xc0010073, 0, -EADDRINUSE, "another module wants a port");
	gives("second", 0x300, MSR, 0, -EADDRINUSE, "and the register");
	gives("second", 0x300, 0xc0010073, 0, 0, "others can be had");
	run("m-msr-write", MSR, VALUE, 0);
	gives("second-reads", run("bar", NIC, 1, 0), MSR, 0, 0, "another module reads neither");
	everything();
	counter = run("m-counter", 0, 0, 0);
	unload();
	is_kernels("the kernel has its devices again");
	without();
	load(0);
	gives("m-counter", 0, 0, 0, counter + 1, "the counter continues");
	err = guard_request(guard, DUNE_GUARD_SEAL);
	ok(!err, "the seal (%s)", guard_answer.text);
	everything();
	gives("second", 0x300, 0xc0010073, 0, -EPERM, "no other module");
	unload();
	is_kernels("the kernel has its devices again");
	gives("k-msr-read", MSR, 0, 0, VALUE, "and the register");
	is(module_unload("dune_guard_outside"), 0, "the other module is unloaded");
	klog_end(&log);
	return done();
}
