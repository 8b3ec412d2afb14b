// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * A hostile module (attack/) against a guard, first unsealed, then sealed: it reads and writes the
 * guard's memory in three ways, executes SVM's instructions and VMMCALLs, and writes the registers
 * that can lay other memory over the guard's, or let the computer sleep. Fails when an attack on
 * the sealed guard has another outcome than docs/guard.md has, or when the machine suffers. Those
 * that the unsealed guard does not stop have to succeed there: otherwise the attack itself is
 * wrong. (Sleep is the exception, since the machine would sleep.)
 */
#define _GNU_SOURCE
#include "attack.h"
#include "child.h"
#include "cpu.h"
#include "guard.h"
#include "klog.h"
#include "modules.h"
#include "proc.h"
#include "tap.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/kexec.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/syscall.h>
#include <unistd.h>

#define CALL			0x64756e6500000000
#define CALL_STOP		1
#define PAGE			4096

#define KPAGEFLAGS_FREE		(1ULL << 10)	/* KPF_BUDDY */

/* The instructions, by the module's numbers. */
static const char *const instructions[] = {
	"VMRUN", "VMLOAD", "VMSAVE", "STGI", "CLGI", "SKINIT", "INVLPGA", "INVD",
};

enum { STGI = 3, INVD = 7 };

static const char *const ways[] = { "the direct map", "vmap", "a page-table entry of its own" };

/*
 * Two CPUs, if there are two, write and read all of the guard's memory at the same time: a dropped
 * write of one CPU must not let the other one write.
 */
static void both_write(const struct dune_guard_status *guard)
{
	unsigned long long bad = 0;
	int i, pid = checked_fork();

	if (!pid) {
		pin_to(usable_cpu(1));
		for (i = 0; i < 6; i++) {
			attack("scan", guard->address, guard->memory, 1);
			bad += found;
		}
		_exit(!!bad);
	}
	for (i = 0; i < 3; i++) {
		attack("scan", guard->address, guard->memory, 1);
		bad += found;
		attack("scan", guard->address, guard->memory, 0);
		bad += found;
	}
	ok(!wait_child(pid, 60).code, "two CPUs write the guard's memory at the same time");
	ok(!bad, "%llu pages had contents meanwhile", bad);
	attack("scan", guard->address, guard->memory, 0);
	ok(!found, "%llu pages have contents afterwards", found);
}

/* Memory, by each way: the first page (code) is read, and the last page written. */
static void memory(const struct dune_guard_status *guard, bool sealed)
{
	unsigned long last = guard->address + guard->memory - PAGE;
	unsigned int way;
	long err;

	for (way = 0; way < 3; way++) {
		err = attack("read", way, guard->address, 0);
		ok(!err && !found == sealed, "the guard's code by %s reads as %llx", ways[way],
		   found);
		err = attack("write", way, last, 0x1234567);
		ok(!err && found == (sealed ? 0 : 0x1234567ULL), "a write by %s leaves %llx",
		   ways[way], found);
	}
	attack("scan", guard->address, guard->memory, 0);
	ok(!found == sealed, "%llu pages of the guard's %llu have contents", found,
	   guard->memory / PAGE);
	if (!sealed)
		return;
	attack("scan", guard->address, guard->memory, 1);
	ok(!found, "%llu pages have contents after all were written", found);
	both_write(guard);
	attack("fill", guard->address, 0, 0);
	ok(!found, "a page is zero after REP STOS, LOCK XADD, POP and BTS (%llx)", found);
}

/* A write that faults in the guest itself: the guard's single step must end before the #PF. */
static void faulting_write(int fd)
{
	struct dune_guard_status before = guard_status(fd), after;
	long err = attack("cross", before.address, 0, 0);

	after = guard_status(fd);
	ok(err == -EFAULT && !found,
	   "a write that faults changes neither TF nor IF (%ld, %llx)", err, found);
	is(after.exits[DUNE_GUARD_EXIT_MEMORY], before.exits[DUNE_GUARD_EXIT_MEMORY] + 1,
	   "it was one nested fault");
	is(after.exits[DUNE_GUARD_EXIT_STEP], before.exits[DUNE_GUARD_EXIT_STEP],
	   "and no instruction was stepped to its end");
}

/* Registers that may overlay or change memory, with a bit that TCG accepts. */
static const struct {
	const char *name;
	unsigned int msr;
	unsigned long bit;
} registers[] = {
	{ "MTRRphysBase7", 0x20e, 0x1000 },
	{ "MTRRfix4K_F8000", 0x26f, 1 },
	{ "MTRRdefType", 0x2ff, 1 },
	{ "microcode (Intel's number)", 0x79, 0 },
	{ "SYSCFG", 0xc0010010, 1 << 18 },
	{ "IORRBase0", 0xc0010016, 0x1000 },
	{ "TOP_MEM", 0xc001001a, 1 << 23 },
	{ "TOP_MEM2", 0xc001001d, 1 << 23 },
	{ "PATCH_LOADER", 0xc0010020, 0 },
	{ "MMCONFIG", 0xc0010058, 1 },
	{ "SMM_ADDR", 0xc0010112, 1 << 17 },
	{ "SMM_MASK", 0xc0010113, 1 },
};

static void msrs(bool sealed)
{
	unsigned int i;

	for (i = 0; i < sizeof(registers) / sizeof(registers[0]); i++) {
		long err = attack("flip", registers[i].msr, registers[i].bit, 0);

		if (sealed)
			ok(err == -EIO && !found, "%s cannot be written (%ld, %llx)",
			   registers[i].name, err, found);
		else
			ok(!err, "%s can be written before the seal (%ld)", registers[i].name,
			   err);
	}
	if (sealed) {
		ok(attack("flip", 0x1b, 0x1000, 0) == -EIO && !found, "the APIC cannot be moved");
		is(attack("flip", 0x1b, 0, 0), 0, "the APIC's base may be written as it is");
	}
	/* Of HWCR, Linux changes the boost (25) and a counter (30); bit 0 locks SMM. */
	is(attack("flip", 0xc0010015, 1UL << 25 | 1UL << 30, 0), 0,
	   "HWCR: the boost may be changed");
	if (sealed)
		is(attack("flip", 0xc0010015, 1UL << 25 | 1, 0), -EIO, "but not SMMLOCK with it");
	/* The guard carries this write out, and gets #GP itself. */
	is(attack("msr", 0x6e1, 1UL << 32, 0), -EIO, "a register that the processor lacks");
	/* Outside of the permission map: each access exits. */
	is(attack("flip", 0xc0002000, 0, 0), 0, "a register of a machine-check bank");
	/* These have the same outcomes before the seal and after it. */
	ok(!attack("flip", 0xc0000080, 0x1000, 0) && !found,
	   "EFER.SVME stays set, without an error");
	ok(attack("flip", 0xc0000080, 0x2000, 0) == -EIO && !found,
	   "EFER takes no bit that it did not have (LMSLE)");
	ok(attack("flip", 0xc0000080, 0x100, 0) == -EIO && !found, "EFER.LME stays set");
	ok(!attack("msr", 0xc0010117, 0x100000, 0) && !found,
	   "VM_HSAVE_PA ignores writes, and reads as 0");
	ok(attack("msr", 0xc0010114, 0x10, 0) == -EIO, "VM_CR cannot be written");
}

/* Of VM_HSAVE_PA, the guard executes the read; of EFER, the processor does. */
static void debugging(void)
{
	static const unsigned int read[] = { 0xc0000080, 0xc0010117 };
	unsigned int i;

	for (i = 0; i < 2; i++) {
		attack("trap", read[i], 0, 0);
		is(found, 0x1345, "single steps over a read of register %x (%llx)", read[i],
		   found);
		attack("trap", read[i], 1, 0);
		is(found, 0x13, "breakpoints on the read and the next instruction (%llx)", found);
	}
	is(attack("prefixes", 0xc0010117, 0, 0), 0, "WRMSR and RDMSR with prefixes");
}

static void svm(const struct dune_guard_status *guard)
{
	int i;

	for (i = 0; i <= INVD; i++) {
		bool works = i == STGI || i == INVD;

		is(attack("instruction", i, guard->address, 1), works ? 0 : -EFAULT, "%s %s",
		   instructions[i], works ? "does no harm" : "raises an exception");
	}
	is(attack("calls", 300, 0, 0), 0,
	   "VMMCALL with all numbers up to 300 returns, and raises an exception without the guard's mark");
}

#define SLP_TYP(value)	((value) >> 10 & 7)

/* The ways to write the register of sleep, by the module's numbers. */
static const char *const sleep_ways[] = { "a word", "a byte", "four bytes", "OUTS" };

enum { SLEEP_WORD, SLEEP_OUTS = 3 };

/* The number of entries that the log has had. */
static unsigned long long log_end(int fd)
{
	struct dune_guard_entry entry = { 0 };

	while (!ioctl(fd, DUNE_GUARD_GET_LOG, &entry))
		entry.index++;
	return entry.index;
}

/* SLP_TYP 0 is S5 in these machines: the computer would be switched off. */
static void sleep_is_dropped(int fd)
{
	unsigned long long before = log_end(fd);
	unsigned int way, type;

	for (way = 0; way <= SLEEP_OUTS; way++) {
		for (type = 1; type < 8; type++) {
			long err = attack("sleep", way, type, 0);

			is(err, way == SLEEP_OUTS ? -EFAULT : 0, "no sleep of type %u by %s", type,
			   sleep_ways[way]);
			/* QEMU takes other sizes for a word with other contents. */
			if (way == SLEEP_WORD)
				is(SLP_TYP(found), type, "the rest of the register is written");
		}
	}
	is(log_end(fd) - before, way * 7, "the log has each attempt");
}

/* The ports of reset may be used; a read leaves the rest of RAX as it is. */
static void ports(int fd, bool sealed)
{
	unsigned long long before = guard_status(fd).exits[DUNE_GUARD_EXIT_PORT];
	unsigned int exits;

	attack("out", 0xcf9, 0, 0);
	attack("out", 0x64, 0xae, 0);
	attack("in", 0x64, 1, 0);
	is(found >> 8, ~0ULL >> 8, "IN of a byte changes AL alone (%llx)", found);
	attack("in", 0x64, 2, 0);
	is(found >> 16, ~0ULL >> 16, "IN of a word changes AX alone (%llx)", found);
	attack("in", 0x92, 4, 0);
	is(found >> 32, 0, "IN of four bytes clears the rest (%llx)", found);
	exits = guard_status(fd).exits[DUNE_GUARD_EXIT_PORT] - before;
	/* The keyboard's driver may use its port meanwhile. */
	ok(sealed ? exits >= 5 : !exits, "%u exits for ports", exits);
	attack("sleep", SLEEP_WORD, 7, 0);
	is(SLP_TYP(found), 7, "the register of sleep is the one that the test knows");
	if (sealed)
		sleep_is_dropped(fd);
}

static void sealed_state(int fd)
{
	int cpus = cpus_on_line();

	is(attack("call", CALL + CALL_STOP, 0, 0), 0, "a VMMCALL that asks to stop");
	ok(found == (unsigned long long)-EPERM, "is refused (%llx)", found);
	guard_refuses(fd, DUNE_GUARD_STOP, EPERM, "only a reboot", "a stop is refused");
	guard_refuses(fd, DUNE_GUARD_SEAL, EALREADY, "sealed already", "a second seal is refused");
	guard_refuses(fd, DUNE_GUARD_LAUNCH, EALREADY, "launched already", "a launch is refused");
	ok(guard_status(fd).state == DUNE_GUARD_SEALED &&
	   guard_status(fd).cpus == (unsigned int)cpus, "all CPUs are under the sealed guard");
	is(dune_insert(""), -EBUSY, "dune.ko gets no SVM");
	is(file_number("/proc/sys/kernel/kexec_load_disabled"), 1, "kexec can load no kernel");
	is(file_write("/sys/power/state", "freeze"), -EBUSY, "no suspend");
	if (cpus > 1) {
		is(cpu_set_on_line(cpus - 1, false), -EBUSY, "no CPU can go off line");
		is(cpus_on_line(), cpus, "all CPUs are on line");
	}
}

/* The allocator counts none of the guard's pages as free. */
static void not_free(const struct dune_guard_status *guard)
{
	int fd = open("/proc/kpageflags", O_RDONLY | O_CLOEXEC);
	unsigned long long flags, at, free = 0;

	if (fd < 0) {
		skip("no /proc/kpageflags", "the guard's pages are not free");
		return;
	}
	for (at = guard->address / PAGE; at < (guard->address + guard->memory) / PAGE; at++)
		if (pread(fd, &flags, 8, at * 8) != 8 || flags & KPAGEFLAGS_FREE)
			free++;
	close(fd);
	is(free, 0, "no page of the guard's is free for others");
}

/* The log has at least one entry of each of these kinds. */
static void log_of_attacks(int fd)
{
	struct dune_guard_entry entry = { 0 };
	unsigned int kinds = 0, entries = 0;

	for (; !ioctl(fd, DUNE_GUARD_GET_LOG, &entry); entry.index++) {
		kinds |= 1 << entry.kind;
		entries++;
	}
	ok(errno == ENOENT && entries && entries <= 64, "the log has %u entries", entries);
	ok(kinds & 1 << DUNE_GUARD_LOG_MSR_WRITE, "one of them is a refused register");
	ok(kinds & 1 << DUNE_GUARD_LOG_CALL, "one a refused VMMCALL (kinds %x)", kinds);
	ok(kinds & 1 << DUNE_GUARD_LOG_PORT, "and one a refused sleep");
}

/* A request from a process that has neither /proc nor /sys. 0 or -errno; bails out otherwise. */
static int request_without_files(int fd, unsigned long request)
{
	int pid = checked_fork();

	if (!pid) {
		if (unshare(CLONE_NEWNS) || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) ||
		    mount("none", "/proc", "tmpfs", 0, NULL) ||
		    mount("none", "/sys", "tmpfs", 0, NULL))
			_exit(255);
		_exit(-guard_request(fd, request));
	}
	int err = wait_child(pid, 20).code;

	if (err < 0 || err == 255)
		bail("a process without /proc and /sys: %m");
	return -err;
}

/* Loads a "kernel" of one page, or unloads it. 0 or -errno. */
static int load_kernel(bool load)
{
	static char page[PAGE];
	struct kexec_segment segment = {
		.buf = page, .bufsz = PAGE, .mem = (void *)0x1000000, .memsz = PAGE,
	};

	return syscall(SYS_kexec_load, 0x1000000, load, load ? &segment : NULL, 0) ? -errno : 0;
}

/* A caller that sees no files of the kernel seals as any other. */
static void seal(int fd)
{
	int err = load_kernel(true);

	if (err) {
		skip(strerror(-err), "a seal while a kernel is loaded for kexec");
	} else {
		is(request_without_files(fd, DUNE_GUARD_SEAL), -EBUSY,
		   "no seal while a kernel is loaded for kexec");
		is(load_kernel(false), 0, "the kernel is unloaded");
	}
	is(request_without_files(fd, DUNE_GUARD_SEAL), 0, "the seal");
	is(load_kernel(true), -EPERM, "no kernel can be loaded for kexec");
}

/* Two pages of what a mode lets the kernel reserve, far above all memory. */
#define FAR		0x2000000000UL
#define FAR_ARGUMENT	"memmap=1M$0x2000000000"

/* A device that Linux has found in reserved addresses before the launch. */
static void far_device(bool launched)
{
	char arguments[1024] = "";

	file_read("/proc/cmdline", arguments, sizeof(arguments));
	if (!strstr(arguments, FAR_ARGUMENT))
		return;
	is(attack("device", FAR + launched * PAGE, 0, 0), 0, "a device among reserved addresses %s",
	   launched ? "is mapped" : "is found");
}

int main(void)
{
	struct dune_guard_status guard;
	struct klog log;
	int fd, err;

	fd = guard_begin(240, &log);
	attack_load();
	far_device(false);
	is(guard_request(fd, DUNE_GUARD_LAUNCH), 0, "a launch");
	far_device(true);
	guard = guard_status(fd);
	memory(&guard, false);
	msrs(false);
	svm(&guard);
	debugging();
	ports(fd, false);

	seal(fd);
	guard = guard_status(fd);
	memory(&guard, true);
	ok(guard_status(fd).exits[DUNE_GUARD_EXIT_STEP] >= guard.memory / PAGE,
	   "each dropped write was a step of the guest");
	faulting_write(fd);
	attack("cost", guard.address, 0, 0);
	diag("a dropped write takes %llu ticks (instructions in counting mode)", found);
	not_free(&guard);
	svm(&guard);
	msrs(true);
	debugging();
	ports(fd, true);
	sealed_state(fd);
	log_of_attacks(fd);
	close(fd);
	err = syscall(SYS_delete_module, "dune_guard", O_NONBLOCK) ? -errno : 0;
	is(err, -EWOULDBLOCK, "the module cannot be unloaded");
	klog_end(&log);
	return done();
}
