// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * Attacks by code in ring 0 on a sealed guard, on a guarded module with devices, and on a module of
 * class S, each with a name and a verdict. Fails if an attack succeeds. With arguments, the attacks
 * with these names alone: weak/ makes them against guards that are weakened on purpose, where they
 * have to succeed. docs/guard-attacks.md has the list.
 */
#define _GNU_SOURCE
#include "attack.h"
#include "child.h"
#include "cpu.h"
#include "guard.h"
#include "klog.h"
#include "modules.h"
#include "named.h"
#include "outside.h"
#include "proc.h"
#include "tap.h"
#include "timing.h"

#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "secret/secret.h"

#define PAGE		4096
#define FAULT		((unsigned long long)-EFAULT)
#define DENIED		((unsigned long long)-EPERM)
#define IO		((unsigned long long)-EIO)
#define INVALID		((unsigned long long)-EINVAL)
#define ONES		0xffffffffULL

#define WITH		"/sys/module/dune_guard_outside/parameters/with"

/* inside/outside_devices.c */
enum { EDU, OTHER_EDU, NIC, SHARED, BRIDGE, OTHER_BRIDGE };
enum { WITH_ALL = 63 };

/* By the numbers of attack/: ways to map, and instructions of SVM's. */
enum { DIRECT, VMAP, OWN, IOREMAP = 4 };
enum { VMRUN, VMLOAD, VMSAVE, CLGI = 4, SKINIT, INVLPGA };

/* Of all calls of the guard's. */
#define CALL		0x64756e6500000000

/* Of inside/outside_hooks.c: from ring 3, and whether the kernel's tables let it fetch there. */
enum { BY_SYSRET, BY_IRET };
enum { CLOSED, OPEN };
/* The error code of a fetch by ring 3 of what it must not. */
#define PROTECTED	0x15

/* The registration of the guarded module (inside/outside.c). */
#define NUMBER		3

/* The watchdog's port, and the number that lets it send an NMI at once. */
#define ARM		0x443
#define DISARM		0x441
#define AT_ONCE		0xf

#define MSR		0x1a0
#define VALUE		0x850089ULL

/* The capability for MSI with addresses of 64 bits. */
#define MSI_SIZE	16

/* Of the device edu, a register that inverts. */
#define EDU_INVERT	4
#define INVERTED	0xedcba987ULL

#define MANY_ROUNDS	3000000
#define REFUSED_CALL	0xbad

static int guard;

static unsigned long long run(const char *word, unsigned long long a, unsigned long long b,
			      unsigned long long c)
{
	return ask_module("dune-guard-outside", word, a, b, c);
}

/* ---- attacks by programs, through files ---- */

/* The first four bytes of a page by mmap() of a file, or -errno. */
static unsigned long long map_file(const char *path, unsigned long long offset)
{
	int fd = open(path, O_RDWR | O_SYNC | O_CLOEXEC);
	volatile unsigned int *page = fd < 0 ? MAP_FAILED :
		mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, offset);
	unsigned long long got = page == MAP_FAILED ? (unsigned long long)-errno : *page;

	if (page != MAP_FAILED)
		munmap((void *)page, PAGE);
	if (fd >= 0)
		close(fd);
	return got;
}

#define DEV_MEM	"/dev/mem"

static unsigned long long map_device(void)
{
	return map_file(DEV_MEM, run("bar", EDU, 0, 0));
}

/* The file that sysfs has for the device's BAR. */
static unsigned long long map_resource(void)
{
	unsigned long long bar = run("bar", EDU, 0, 0), got = ENOENT;
	char text[40], *path;
	glob_t files;
	size_t i;

	if (glob("/sys/bus/pci/devices/*/resource", 0, NULL, &files))
		return got;
	for (i = 0; i < files.gl_pathc; i++) {
		const char *resource = files.gl_pathv[i];

		if (file_read(resource, text, sizeof(text)) <= 0 ||
		    strtoull(text, NULL, 16) != bar || asprintf(&path, "%s0", resource) < 0)
			continue;
		got = map_file(path, 0);
		free(path);
	}
	globfree(&files);
	return got;
}

/* Linux refuses that, until the hostile module has taken its check away. */
static unsigned long long map_guard(void)
{
	unsigned long long first = guard_status(guard).address, got;

	if (map_file(DEV_MEM, first) != DENIED)
		return 1;
	attack("dev-mem", 1, 0, 0);
	got = map_file(DEV_MEM, first);
	attack("dev-mem", 0, 0, 0);
	return got;
}

static unsigned long long read_guard(void)
{
	unsigned long long word = 1;
	int fd = open(DEV_MEM, O_RDONLY | O_CLOEXEC);

	attack("dev-mem", 1, 0, 0);
	if (fd < 0 || pread(fd, &word, 8, guard_status(guard).address) != 8)
		word = -errno;
	attack("dev-mem", 0, 0, 0);
	close(fd);
	return word;
}

/* ---- attacks of several steps ---- */

/* Returns at the beginning of the module's function, written to where its frame is. */
static unsigned long long patch_by_ioremap(void)
{
	unsigned long long golden = run("golden", 0, 0, 0), was, got;

	attack("read", IOREMAP, golden, 0);
	was = found;
	attack("write", IOREMAP, golden, 0xc3c3c3c3c3c3c3c3);
	got = run("read", 0, 0, 0);
	attack("write", IOREMAP, golden, was);
	return got;
}

/* A program makes a VMMCALL. Returns the signal that it gets. */
static unsigned long long call_from_ring_3(void)
{
	int pid = checked_fork();

	if (!pid) {
		unsigned long rax = CALL;

		asm volatile("vmmcall" : "+a" (rax) : : "memory", "rbx", "rcx", "rdx", "rsi");
		_exit(0);
	}
	return wait_child(pid, 20).signal;
}

/* Asks the guard to stop, and continues as this CPU has to if it does. Returns its answer. */
static unsigned long long leave(void)
{
	attack("leave", 0, 0, 0);
	return found;
}

/* Flags that a store has changed which crosses into a page that is not there. */
static unsigned long long write_and_fault(void)
{
	return attack("cross", guard_status(guard).address, 0, 0) == -EFAULT ? found : ~0ULL;
}

static unsigned long long write_to_device(void)
{
	run("k-write", EDU, EDU_INVERT, 1);
	return run("m-read", EDU, EDU_INVERT, 0);
}

static unsigned long long add_to_device(void)
{
	run("k-xadd", EDU, EDU_INVERT, 0);
	return run("m-read", EDU, EDU_INVERT, 0);
}

/* By the module's own code. */
static unsigned long long write_without_privilege(void)
{
	run("l-write", EDU, EDU_INVERT, 0);
	return run("m-read", EDU, EDU_INVERT, 0);
}

/* What the register of the module's MSR has after a write of the kernel's. */
static unsigned long long write_to_msr(void)
{
	run("m-msr-write", MSR, VALUE, 0);
	attack("msr", MSR, 1, 0);
	return run("m-msr-read", MSR, 0, 0);
}

static unsigned long long read_msr(void)
{
	run("m-msr-write", MSR, VALUE, 0);
	attack("flip", MSR, 0, 0);
	return run("k-msr-read", MSR, 0, 0);
}

/* How many NMIs a write to the watchdog's port makes the device send. */
static unsigned long long arm_watchdog(unsigned long long port, unsigned long long size)
{
	unsigned long long before = run("nmis", 0, 0, 0);

	run("k-out", port, size, AT_ONCE << 8 * (ARM - port));
	WAIT_FOR(run("nmis", 0, 0, 0) > before, 1);
	run("m-out", DISARM, 1, 0);
	return run("nmis", 0, 0, 0) - before;
}

static unsigned long long arm_watchdog_by_byte(void)
{
	return arm_watchdog(ARM, 1);
}

static unsigned long long arm_watchdog_by_string(void)
{
	unsigned long long before = run("nmis", 0, 0, 0);

	run("k-out-string", ARM, 0, 0);
	WAIT_FOR(run("nmis", 0, 0, 0) > before, 1);
	run("m-out", DISARM, 1, 0);
	return run("nmis", 0, 0, 0) - before;
}

/* The two bytes at the end of an access that begins in front of the module's ports. */
static unsigned long long read_overlapping(void)
{
	return run("k-in", run("bar", NIC, 1, 0) - 2, 4, 0) >> 16;
}

/* Whether memory of the device is turned off. */
static unsigned long long turn_memory_off(void)
{
	run("config", EDU, 0x204, 0);
	return run("config-read", EDU, 4, 0) & 2;
}

/* The number of entries that the log has had. */
static unsigned long long log_end(void)
{
	struct dune_guard_entry entry = { 0 };

	while (!ioctl(guard, DUNE_GUARD_GET_LOG, &entry))
		entry.index++;
	return entry.index;
}

/* A type of sleep that this chipset does not have. Returns how many writes the guard changed. */
static unsigned long long sleep_is_dropped(void)
{
	unsigned long long before = log_end();

	attack("sleep", 0, 7, 0);
	return log_end() - before;
}

static unsigned long long entry_flags(void)
{
	return run("direction", 0, 0, 0) & 0x500;
}

static unsigned long long is_full(void)
{
	unsigned long long at_most = run("nest", 62, 0, 0);

	/* One more than there are activations: the module's code runs without the privilege. */
	return at_most == SECRET ? run("nest", 70, 0, 0) : at_most;
}

/* What the kernel finds of class S in registers: after returns, and in interrupts. */
static unsigned long long registers_after_returns(void)
{
	ask_module("dune-guard-secret", "enter", SECRET_STORE, 0, 0);
	return ask_module("dune-guard-secret", "found", 0, 0, 0) |
	       ask_module("dune-guard-secret", "found", 1, 0, 0);
}

static unsigned long long registers_in_interrupts(void)
{
	ask_module("dune-guard-secret", "spin", MANY_ROUNDS, 0, 0);
	return ask_module("dune-guard-secret", "interrupts-saw", 0, 0, 0);
}

static unsigned long long flags_in_interrupts(void)
{
	ask_module("dune-guard-secret", "spin", MANY_ROUNDS, 0, 0);
	return ask_module("dune-guard-secret", "interrupts-saw", 1, 0, 0);
}

static unsigned long long place_in_interrupts(void)
{
	ask_module("dune-guard-secret", "spin", MANY_ROUNDS, 0, 0);
	return ask_module("dune-guard-secret", "interrupts-saw", 2, 0, 0) +
	       ask_module("dune-guard-secret", "interrupts-saw", 3, 0, 0);
}

/* After so many deaths the next entry takes a stack of a dead one. */
static unsigned long long residue(void)
{
	int i;

	for (i = 0; i < SECRET_STACKS; i++)
		ask_module("dune-guard-secret", "enter", SECRET_BAD_RETURN, 0, 0);
	return ask_module("dune-guard-secret", "enter", SECRET_RESIDUE, 0, 0);
}

/* The private memory, after the registration was ended by the kernel. */
static unsigned long long end_registration(void)
{
	run("thaw-early", NUMBER, 0, 0);
	return run("thaw", NUMBER, 0, 0);
}

/* All numbers, with arguments that also name registrations. Returns an error, or 0. */
static unsigned long long all_calls(void)
{
	return attack("calls", 300, 0, 0);
}

/* ---- the list ---- */

/* Without arguments of the programs' own: what is written here is the attacks' page, too. */
static void on_guard(char **names)
{
	struct dune_guard_status status = guard_status(guard);
	unsigned long long first = status.address, last = first + status.memory - PAGE;
	const struct attack attacks[] = {
		{ NAMED("read-direct", "the guard's code by the direct map"),
		  BY(ATTACKER, "read", DIRECT, first) },
		{ NAMED("read-vmap", "by vmap"), BY(ATTACKER, "read", VMAP, first) },
		{ NAMED("read-own-entry", "by an entry of its own"),
		  BY(ATTACKER, "read", OWN, first) },
		{ NAMED("read-ioremap", "by ioremap()"), BY(ATTACKER, "read", IOREMAP, first) },
		{ NAMED("read-dev-mem", "by a program's read() of /dev/mem"), BY_US(read_guard) },
		{ NAMED("map-dev-mem", "by its mmap()"), BY_US(map_guard) },
		{ NAMED("read-large", "by a large page of its own"), BY(ATTACKER, "huge", first) },
		{ NAMED("read-all", "pages of the guard's that are not zeros"),
		  BY(ATTACKER, "scan", first, status.memory) },
		{ NAMED("write-direct", "a write by the direct map"),
		  BY(ATTACKER, "write", DIRECT, last, 0x1234567) },
		{ NAMED("write-vmap", "a write by vmap"),
		  BY(ATTACKER, "write", VMAP, last, 0x1234567) },
		{ NAMED("write-own-entry", "a write by an entry of its own"),
		  BY(ATTACKER, "write", OWN, last, 0x1234567) },
		{ NAMED("write-ioremap", "a write by ioremap()"),
		  BY(ATTACKER, "write", IOREMAP, last, 0x1234567) },
		{ NAMED("write-all", "pages that are not zeros after writes"),
		  BY(ATTACKER, "scan", first, status.memory, 1) },
		{ NAMED("write-by-others", "REP STOS, XADD, POP and BTS"),
		  BY(ATTACKER, "fill", first) },
		{ NAMED("write-and-fault", "flags changed by a write that faults half way"),
		  BY_US(write_and_fault) },
		{ NAMED("execute", "its own code in the guard's memory"),
		  BY(ATTACKER, "execute", last) },
		{ NAMED("page-table", "a page table in the guard's memory"),
		  BY(ATTACKER, "table", last), .stopped = FAULT },

		{ NAMED("mtrr-variable", "MTRRphysBase7"), BY(ATTACKER, "flip", 0x20e, 0x1000),
		  .stopped = IO },
		{ NAMED("mtrr-fixed", "MTRRfix4K_F8000"), BY(ATTACKER, "flip", 0x26f, 1),
		  .stopped = IO },
		{ NAMED("mtrr-default", "MTRRdefType"), BY(ATTACKER, "flip", 0x2ff, 1),
		  .stopped = IO },
		{ NAMED("microcode", "a microcode update"), BY(ATTACKER, "flip", 0xc0010020),
		  .stopped = IO },
		{ NAMED("syscfg", "SYSCFG"), BY(ATTACKER, "flip", 0xc0010010, 1 << 18),
		  .stopped = IO },
		{ NAMED("iorr", "IORRBase0"), BY(ATTACKER, "flip", 0xc0010016, 0x1000),
		  .stopped = IO },
		{ NAMED("top-mem", "TOP_MEM"), BY(ATTACKER, "flip", 0xc001001a, 1 << 23),
		  .stopped = IO },
		{ NAMED("top-mem2", "TOP_MEM2"), BY(ATTACKER, "flip", 0xc001001d, 1 << 23),
		  .stopped = IO },
		{ NAMED("mmconfig", "MMCONFIG"), BY(ATTACKER, "flip", 0xc0010058, 1),
		  .stopped = IO },
		{ NAMED("smm-base", "SMM_ADDR"), BY(ATTACKER, "flip", 0xc0010112, 1 << 17),
		  .stopped = IO },
		{ NAMED("smm-mask", "SMM_MASK"), BY(ATTACKER, "flip", 0xc0010113, 1),
		  .stopped = IO },
		{ NAMED("apic-base", "the APIC's base"), BY(ATTACKER, "flip", 0x1b, 0x1000),
		  .stopped = IO },
		{ NAMED("hwcr", "HWCR's SMMLOCK"), BY(ATTACKER, "flip", 0xc0010015, 1),
		  .stopped = IO },
		{ NAMED("efer", "a bit of EFER that it did not have"),
		  BY(ATTACKER, "flip", 0xc0000080, 0x4000), .stopped = IO },
		{ NAMED("vm-cr", "VM_CR"), BY(ATTACKER, "msr", 0xc0010114, 0x10), .stopped = IO },
		{ NAMED("save-area", "VM_HSAVE_PA"), BY(ATTACKER, "save-area") },

		{ NAMED("vmrun", "VMRUN"), BY(ATTACKER, "instruction", VMRUN, first, 1),
		  .stopped = FAULT },
		{ NAMED("vmload", "VMLOAD"), BY(ATTACKER, "instruction", VMLOAD, first, 1),
		  .stopped = FAULT },
		{ NAMED("vmsave", "VMSAVE"), BY(ATTACKER, "instruction", VMSAVE, last, 1),
		  .stopped = FAULT },
		{ NAMED("clgi", "CLGI"), BY(ATTACKER, "instruction", CLGI, first, 1),
		  .stopped = FAULT },
		{ NAMED("skinit", "SKINIT"), BY(ATTACKER, "instruction", SKINIT, first, 1),
		  .stopped = FAULT },
		{ NAMED("invlpga", "INVLPGA"), BY(ATTACKER, "instruction", INVLPGA, first, 1),
		  .stopped = FAULT },

		{ NAMED("call-stop", "VMMCALL to stop"), BY_US(leave), .stopped = DENIED },
		{ NAMED("call-ring-3", "VMMCALL by a program"), BY_US(call_from_ring_3),
		  .stopped = SIGILL },
		{ NAMED("call-register", "a registration"), BY(OUTSIDE, "register", 5),
		  .stopped = DENIED },
		{ NAMED("call-describe", "a description"),
		  BY(OUTSIDE, "guard-call", CALL_DESCRIBE, 5), .stopped = DENIED },
		{ NAMED("call-random", "a module's random numbers"),
		  BY(OUTSIDE, "k-call", CALL_RANDOM), .stopped = DENIED },
		{ NAMED("call-counter", "its counter"), BY(OUTSIDE, "k-call", CALL_COUNTER),
		  .stopped = DENIED },
		{ NAMED("sleep", "changed writes to the register of sleep"),
		  BY_US(sleep_is_dropped), .stopped = 1 },
		{ NAMED("sleep-string", "sleep by OUTS"), BY(ATTACKER, "sleep", 3, 7),
		  .stopped = FAULT },
	};

	attacks_make(attacks, COUNT(attacks), names);
}

static void on_module(char **names)
{
	unsigned long long private = run("private", 0, 0, 0);
	const struct attack attacks[] = {
		{ NAMED("private-read", "the private page by the kernel"),
		  BY(OUTSIDE, "kernel-reads") },
		{ NAMED("private-write", "a write to it"), BY(OUTSIDE, "kernel-writes", 0x1234) },
		{ NAMED("private-vmap", "the page by vmap"), BY(ATTACKER, "read", VMAP, private) },
		{ NAMED("private-own-entry", "by an entry of its own"),
		  BY(ATTACKER, "read", OWN, private) },
		{ NAMED("private-ioremap", "by ioremap()"),
		  BY(ATTACKER, "read", IOREMAP, private) },
		{ NAMED("private-by-callee", "by code that the module calls"),
		  BY(OUTSIDE, "callee-reads") },
		{ NAMED("private-by-kernel", "by a function of the kernel's that it calls"),
		  BY(OUTSIDE, "kernel-callee") },
		{ NAMED("private-by-interrupt", "by code that interrupts it"),
		  BY(OUTSIDE, "interrupt") },

		{ NAMED("load-private", "a LOAD that reads it"),
		  BY(OUTSIDE, "guard-call-at", CALL_LOAD, 5, private), .stopped = INVALID },
		{ NAMED("call-middle", "a call of a function that is no entry"),
		  BY(OUTSIDE, "middle") },
		{ NAMED("call-alias", "its call of itself at an address that the kernel mapped"),
		  BY(OUTSIDE, "alias"), .stopped = SECRET },
		{ NAMED("jump-after-entry", "a jump to an entry's second instruction"),
		  BY(OUTSIDE, "after-entry") },
		{ NAMED("return-into", "a return into it"), BY(OUTSIDE, "return-into") },
		{ NAMED("iret-into", "an IRET into it"), BY(OUTSIDE, "iret") },
		{ NAMED("far-return-into", "a far return into it"), BY(OUTSIDE, "far-return") },
		{ NAMED("sysret-into", "a SYSRET into it, which goes to ring 3"),
		  BY(OUTSIDE, "ring-3", BY_SYSRET, CLOSED), .stopped = PROTECTED },
		{ NAMED("iret-ring-3", "an IRET to ring 3"),
		  BY(OUTSIDE, "ring-3", BY_IRET, CLOSED), .stopped = PROTECTED },
		{ NAMED("sysret-entry", "a SYSRET to an entry that ring 3 may fetch"),
		  BY(OUTSIDE, "ring-3", BY_SYSRET, OPEN) },
		{ NAMED("iret-entry", "an IRET to it"), BY(OUTSIDE, "ring-3", BY_IRET, OPEN) },
		{ NAMED("fault-after-entry", "a fixup in it"), BY(OUTSIDE, "fault-after-entry") },
		{ NAMED("call-from", "a call with a return address in it"),
		  BY(OUTSIDE, "call-from") },
		{ NAMED("replay", "a return of a call that was not made"), BY(OUTSIDE, "replay") },
		{ NAMED("replay-after-call", "a second return of a call"),
		  BY(OUTSIDE, "replay-after-call") },
		{ NAMED("other-stack", "a return on another place of the stack"),
		  BY(OUTSIDE, "elsewhere") },
		{ NAMED("forged-gs", "a return with a false GS base"), BY(OUTSIDE, "forged-gs") },
		{ NAMED("forged-gs-entry", "an entry with a false GS base"),
		  BY(OUTSIDE, "forged-gs-entry") },
		{ NAMED("remap", "another page at the address of an entry"),
		  BY(OUTSIDE, "remap") },
		{ NAMED("exchange", "two pages of the text exchanged"), BY(OUTSIDE, "exchange"),
		  .stopped = SECRET },
		{ NAMED("patch-int3", "INT3 in its text"), BY(OUTSIDE, "patch", 0xcc),
		  .stopped = SECRET },
		{ NAMED("patch-return", "a return in its text"), BY(OUTSIDE, "patch", 0xc3),
		  .stopped = SECRET },
		{ NAMED("patch-ioremap", "returns, by ioremap() of its frame"),
		  BY_US(patch_by_ioremap), .stopped = SECRET },
		{ NAMED("patch-poke", "a return, by text_poke()"), BY(OUTSIDE, "poke", 0xc3),
		  .stopped = SECRET },
		{ NAMED("hook-kprobe", "hits of a kprobe"), BY(OUTSIDE, "kprobe") },
		{ NAMED("hook-ftrace", "ftrace leads its caller elsewhere"),
		  BY(OUTSIDE, "ftrace"), .stopped = SECRET },
		{ NAMED("hook-livepatch", "a live patch"), BY_US(livepatched),
		  .stopped = SECRET },
		{ NAMED("entry-flags", "DF at an entry"), BY_US(entry_flags) },
		{ NAMED("entry-step", "TF at an entry: the steps"), BY(OUTSIDE, "step") },
		{ NAMED("entry-cr0", "CR0 without WP"), BY(OUTSIDE, "control"),
		  .stopped = 0x10000 },
		{ NAMED("entry-cr4", "CR4 without SMEP"), BY(OUTSIDE, "control", 1),
		  .stopped = 0x100000 },
		{ NAMED("entry-dr7", "breakpoints in DR7"), BY(OUTSIDE, "control", 2),
		  .stopped = 0x400 },
		{ NAMED("registers-in-call", "registers changed in a call"),
		  BY(OUTSIDE, "clobber"), .stopped = SECRET },
		{ NAMED("registers-in-interrupt", "registers changed in an interrupt"),
		  BY(OUTSIDE, "interrupt", 1), .stopped = SECRET },
		{ NAMED("activations", "more entries than activations"), BY_US(is_full) },
	};

	attacks_make(attacks, COUNT(attacks), names);
}

/* How many entries the guard's log has about configuration space after a write of the kernel's. */
static unsigned long long refused_config(const char *word, unsigned int where)
{
	static unsigned long long index;
	struct dune_guard_entry entry = { .index = index };
	unsigned long long count = 0;

	while (!ioctl(guard, DUNE_GUARD_GET_LOG, &entry))
		entry.index++;
	run(word, EDU, where, 0x12345678);
	for (; !ioctl(guard, DUNE_GUARD_GET_LOG, &entry); entry.index++)
		count += entry.kind == DUNE_GUARD_LOG_PCI;
	index = entry.index;
	return count;
}

/*
 * To a function that a device with one function may also be. QEMU has nothing there, and what reads
 * as ones is refused a BAR anyway: so this is a register after the header.
 */
static unsigned long long write_sibling(void)
{
	return refused_config("config-sibling", 0xf0);
}

/* To what follows the capability for MSI of the device, which has addresses of 64 bits. */
static unsigned long long write_after_capability(void)
{
	unsigned int at = run("config-read", EDU, 0x34, 0) & 0xfc;

	if ((run("config-read", EDU, at, 0) & 0x18000ff) != 0x800005)
		bail("the device has another capability");
	return refused_config("config", 0x400 + at + MSI_SIZE);
}

static void on_privileges(char **names)
{
	unsigned long long bar = run("bar", EDU, 0, 0), other = run("bar", OTHER_EDU, 0, 0);
	unsigned long long nic = run("bar", NIC, 1, 0);
	unsigned long long window = run("config-read", OTHER_BRIDGE, 0x20, 0);
	unsigned long long buses = run("config-read", OTHER_BRIDGE, 0x18, 0);
	unsigned long long bus = run("config-read", BRIDGE, 0x18, 0) >> 8 & 0xff;
	unsigned long long line = run("config-read", EDU, 0x3c, 0);
	const struct attack attacks[] = {
		{ NAMED("device-read", "its device by the kernel"), BY(OUTSIDE, "k-read", EDU),
		  .stopped = ONES },
		{ NAMED("device-ioremap", "by ioremap()"), BY(ATTACKER, "registers", bar),
		  .stopped = ONES },
		{ NAMED("device-dev-mem", "by a program, through /dev/mem"), BY_US(map_device),
		  .stopped = ONES },
		{ NAMED("device-resource", "through the device's file in sysfs"),
		  BY_US(map_resource), .stopped = ONES },
		{ NAMED("device-large", "a BAR of 32 MB"), BY(OUTSIDE, "k-read", SHARED, 0x1000),
		  .stopped = ONES },
		{ NAMED("device-alias", "by another mapping"), BY(OUTSIDE, "k-alias", EDU),
		  .stopped = ONES },
		{ NAMED("device-by-code", "by its own code without the privilege"),
		  BY(OUTSIDE, "l-read", SHARED, 0x1000), .stopped = ~0ULL },
		{ NAMED("device-write", "a write"), BY_US(write_to_device), .stopped = INVERTED },
		{ NAMED("device-add", "a locked addition"), BY_US(add_to_device),
		  .stopped = INVERTED },
		{ NAMED("device-write-by-code", "a write by its own code"),
		  BY_US(write_without_privilege), .stopped = INVERTED },

		{ NAMED("load-device", "a LOAD that reads it"),
		  BY(OUTSIDE, "guard-call-at", CALL_LOAD, 5, bar), .stopped = INVALID },
		{ NAMED("bar-move", "its BAR moved"),
		  BY(OUTSIDE, "config", EDU, 0x410, 0xd0000000), .stopped = bar },
		{ NAMED("bar-size", "its size asked for"), BY(OUTSIDE, "config", EDU, 0x410, ONES),
		  .stopped = bar },
		{ NAMED("bar-byte", "one byte of it"), BY(OUTSIDE, "config", EDU, 0x213, 0xd0),
		  .stopped = bar },
		{ NAMED("bar-string", "by OUTS"), BY(OUTSIDE, "config-string", EDU, 0x10),
		  .stopped = 1 },
		{ NAMED("bar-every-way", "registers changed by every port and size"),
		  BY(OUTSIDE, "config-fuzz", EDU) },
		{ NAMED("bridge-every-way", "those of its bridge"),
		  BY(OUTSIDE, "config-fuzz", BRIDGE) },
		{ NAMED("config-reserved", "with reserved bits in CF8h"),
		  BY(OUTSIDE, "config-reserved", EDU, 0x3c, line ^ 5), .stopped = line },
		{ NAMED("config-sibling", "its registers, as those of another function"),
		  BY_US(write_sibling), .stopped = 1 },
		{ NAMED("config-after", "registers after a capability"),
		  BY_US(write_after_capability), .stopped = 1 },
		{ NAMED("memory-off", "its memory turned off"), BY_US(turn_memory_off),
		  .stopped = 2 },
		{ NAMED("bar-over", "another device laid over it"),
		  BY(OUTSIDE, "config", OTHER_EDU, 0x410, bar), .stopped = other },
		{ NAMED("window-over", "another bridge's window"),
		  BY(OUTSIDE, "config", OTHER_BRIDGE, 0x420, (bar & 0xfff00000) | bar >> 16),
		  .stopped = window },
		{ NAMED("bus-over", "another bridge's bus"),
		  BY(OUTSIDE, "config", OTHER_BRIDGE, 0x418, bus << 16 | bus << 8),
		  .stopped = buses },

		{ NAMED("port-read", "its port by the kernel"), BY(OUTSIDE, "k-in", nic, 4),
		  .stopped = ONES },
		{ NAMED("port-overlap", "a read that overlaps it"), BY_US(read_overlapping),
		  .stopped = 0xffff },
		{ NAMED("port-read-string", "by INS"), BY(OUTSIDE, "k-in-string", nic),
		  .stopped = 1 },
		{ NAMED("port-write", "a write: NMIs"), BY_US(arm_watchdog_by_byte) },
		{ NAMED("port-write-string", "by OUTS: NMIs"), BY_US(arm_watchdog_by_string) },
		{ NAMED("msr-read", "its MSR by the kernel"), BY_US(read_msr) },
		{ NAMED("msr-write", "a write to it"), BY_US(write_to_msr), .stopped = VALUE },
	};

	if (!run("devices", 0, 0, 0)) {
		skip("the machine has no devices for it", "attacks on devices");
		return;
	}
	run("m-write", EDU, EDU_INVERT, 0x12345678);
	run("m-write", SHARED, 0x1000, 0x77);
	attacks_make(attacks, COUNT(attacks), names);
}

static void on_secrets(char **names)
{
	const struct attack attacks[] = {
		{ NAMED("secret-read", "private pages by all mappings"), BY(KEEPER, "private") },
		{ NAMED("secret-write", "the same after writes"), BY(KEEPER, "private", 1) },
		{ NAMED("secret-jump", "a jump into the text"), BY(KEEPER, "jump"),
		  .stopped = REFUSED_CALL },
		{ NAMED("secret-jump-stub", "a jump to the stub"), BY(KEEPER, "jump-stub"),
		  .stopped = REFUSED_CALL },
		{ NAMED("secret-replay", "a second return from an interrupt"),
		  BY(KEEPER, "replay"), .stopped = REFUSED_CALL },
		{ NAMED("secret-resume-elsewhere", "a return from an interrupt to another place"),
		  BY(KEEPER, "spin", MANY_ROUNDS, 3), .stopped = REFUSED_CALL },
		{ NAMED("secret-leave", "an interrupt that never returns"),
		  BY(KEEPER, "spin", MANY_ROUNDS, 4), .stopped = REFUSED_CALL },
		{ NAMED("secret-tamper", "an interrupt that changes registers"),
		  BY(KEEPER, "spin", MANY_ROUNDS, 1), .stopped = 1 },
		{ NAMED("secret-tamper-flags", "and flags"), BY(KEEPER, "spin", MANY_ROUNDS, 2),
		  .stopped = 1 },
		{ NAMED("secret-arguments", "registers that are no arguments"),
		  BY(KEEPER, "enter", SECRET_ARGUMENTS) },
		{ NAMED("secret-forge", "an entry on a stack that others write"),
		  BY(KEEPER, "forge", SECRET_CHECK), .stopped = 1 },
		{ NAMED("secret-patch", "a return in the text"), BY(KEEPER, "patch", 0xc3),
		  .stopped = 1 },
		{ NAMED("secret-patch-constant", "another constant"), BY(KEEPER, "patch-constant"),
		  .stopped = 0x1234 },
		{ NAMED("secret-probe", "hits of a kprobe in it"), BY(KEEPER, "probe") },
		{ NAMED("secret-registers", "registers after a return"),
		  BY_US(registers_after_returns) },
		{ NAMED("secret-interrupted", "registers in interrupts"),
		  BY_US(registers_in_interrupts) },
		{ NAMED("secret-interrupted-flags", "flags in interrupts"),
		  BY_US(flags_in_interrupts) },
		{ NAMED("secret-interrupted-place", "RIP and RSP in interrupts"),
		  BY_US(place_in_interrupts) },
		{ NAMED("secret-residue", "a stack after a death"), BY_US(residue) },
		{ NAMED("secret-search", "secrets in all memory"), BY(KEEPER, "search") },
	};

	attacks_make(attacks, COUNT(attacks), names);
}

/* These end registrations: the last ones. */
static void on_registration(char **names)
{
	const struct attack attacks[] = {
		{ NAMED("all-before", "the module's own page after all that"), BY(OUTSIDE, "read"),
		  .stopped = SECRET },
		{ NAMED("all-before-s", "and the secret of the module of class S"),
		  BY(KEEPER, "enter", SECRET_CHECK), .stopped = 1 },
		{ NAMED("end-early", "an end while CPUs have not flushed"),
		  BY(OUTSIDE, "thaw-early", NUMBER), .stopped = (unsigned long long)-EBUSY },
		{ NAMED("end-registration", "the private page after the end"),
		  BY_US(end_registration) },
		{ NAMED("calls", "VMMCALL with all numbers and arguments, and other RAX"),
		  BY_US(all_calls) },
	};

	attacks_make(attacks, COUNT(attacks), names);
}

static void prepare(void)
{
	char with[20];

	attack_load();
	is(guard_request(guard, DUNE_GUARD_LAUNCH), 0, "a launch");
	outside_load("");
	snprintf(with, sizeof(with), "%d", run("devices", 0, 0, 0) ? WITH_ALL : 0);
	if (file_write(WITH, with))
		bail("%s cannot be written", WITH);
	if (module_insert("dune-guard-inside", "") || (int)run("armed", 0, 0, 0))
		bail("the module is not guarded: %d", (int)run("armed", 0, 0, 0));
	if (module_insert("dune-guard-secret", "") ||
	    ask_module("dune-guard-secret", "arm", 0, 0, 0))
		bail("the module of class S is not guarded");
	is(ask_module("dune-guard-secret", "enter", SECRET_STORE, 0, 0), 0,
	   "the module of class S has a secret");
	is(guard_request(guard, DUNE_GUARD_SEAL), 0, "the seal (%s)", guard_answer.text);
}

int main(int argc, char **argv)
{
	struct klog log;

	pin_to(usable_cpu(0));
	guard = guard_begin(300, &log);
	prepare();
	argv++;
	on_guard(argv);
	on_module(argv);
	on_privileges(argv);
	on_secrets(argv);
	on_registration(argv);
	attacks_end(argv);
	klog_end(&log);
	return done();
}
