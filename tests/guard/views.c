// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * A guarded module (inside/), which alone has a page of memory: it is called in all ways in which a
 * kernel calls a module, and attacked. Fails if it loses its privilege while it runs, if the kernel
 * or code that came into the module by a wrong way has the privilege, or if the machine suffers.
 */
#define _GNU_SOURCE
#include "cpu.h"
#include "guard.h"
#include "klog.h"
#include "modules.h"
#include "outside.h"
#include "tap.h"
#include "timing.h"

#include <fcntl.h>
#include <string.h>
#include <unistd.h>

/* One verdict on a call that has to return @want. */
static void returns(const char *word, unsigned long long a, unsigned long long b,
		    unsigned long long want, const char *what)
{
	unsigned long long got = outside(word, a, b);

	ok(got == want, "%s: %s(%llx, %llx) is %llx (%llx)", what, word, a, b, want, got);
}

/* The port of PM1a_CNT's second byte, from ACPI's FADT. */
static unsigned int sleep_port(void)
{
	unsigned int port;
	int fd = open("/sys/firmware/acpi/tables/FACP", O_RDONLY);

	if (fd < 0 || pread(fd, &port, sizeof(port), 64) != sizeof(port))
		bail("the firmware's FADT: %m");
	close(fd);
	return port + 1;
}

/* SLP_EN, with the type of sleep in which memory keeps its contents. */
static void sleeps(int fd)
{
	unsigned long long before = guard_status(fd).exits[DUNE_GUARD_EXIT_PORT];

	returns("port", sleep_port(), 0x24, 0, "it writes to the register of sleep");
	is(guard_status(fd).exits[DUNE_GUARD_EXIT_PORT], before + 1, "and the guard drops it");
}

static void calls(void)
{
	unsigned long long refused = crossings(REFUSED), in = crossings(IN_RTI);
	unsigned long long user = SECRET;
	int cpu;

	returns("read", 0, 0, SECRET, "the module reads its page");
	returns("write", 0x77, 0, 0x77, "and writes it");
	returns("write", SECRET, 0, SECRET, "and writes it again");
	returns("call", 5, 0, 6, "it calls the kernel");
	returns("raw-call", 0, 0, SECRET, "it reads after a call");
	returns("jumps-back", 0, 0, SECRET, "what it calls jumps to one of its entry points");
	returns("nest", 0, 0, SECRET, "a call");
	returns("nest", 20, 0, SECRET, "20 calls, one within the other");
	returns("string", 0, 0, SECRET, "it reads and writes the kernel's memory");
	returns("user", (unsigned long)&user, 0, SECRET, "it reads a program's memory");
	returns("spin", 100000, 0, SECRET, "a loop without interrupts");
	returns("spin", 30000000, 1, SECRET, "a loop with interrupts");
	ok(crossings(IN_RTI) > in, "it was interrupted %llu times", crossings(IN_RTI) - in);
	for (cpu = 0; cpu < cpus_on_line(); cpu++)
		returns("spin-on", cpu, 0, SECRET, "in an interrupt");
	returns("sleep", 20, 0, SECRET, "it sleeps in a call");
	returns("warn", 0, 0, SECRET, "WARN");
	returns("fix-up", 0, 0, SECRET, "an exception with a fixup (#GP)");
	returns("fix-up-page", 0, 0, SECRET, "an exception with a fixup (#PF)");
	returns("crowd", 8, 20, 8, "8 threads");
	outside("start", 0, 0);
	WAIT_FOR(outside("runs", 0, 0) > 10, 20);
	ok(outside("runs", 0, 0) > 10, "a timer and a work item run with the privilege");
	is(crossings(REFUSED), refused, "nothing of that is suspicious");
	ok(crossings(IN_CALL) && crossings(IN_RET) && crossings(OUT_CALL) && crossings(OUT_RET) &&
	   crossings(OUT_INT), "all crossings occurred");
}

static void is_refused(const char *word, unsigned long long a, unsigned long long want,
		       const char *what)
{
	unsigned long long refused = crossings(REFUSED);

	returns(word, a, 0, want, what);
	ok(crossings(REFUSED) > refused, "it is counted");
	returns("read", 0, 0, SECRET, "the module still has its page");
}

static void attacks(void)
{
	returns("kernel-reads", 0, 0, 0, "the kernel reads the page");
	returns("kernel-writes", 0x1234, 0, 0, "the kernel writes it");
	returns("read", 0, 0, SECRET, "the module's value is the same");
	is_refused("middle", 0, 0, "a call of a function that is no entry");
	is_refused("after-entry", 0, 0, "a jump to the second instruction of an entry");
	is_refused("fault-after-entry", 0, 0, "an exception there");
	is_refused("return-into", 0, 0, "a return to it");
	is_refused("call-from", 0, 0, "a call with a return address in the text");
	is_refused("replay", 0, 0, "a return of a call that was not made");
	is_refused("replay-after-call", 0, 0, "a second return of a call");
	is_refused("elsewhere", 0, 0, "a return on another place of the stack");
	is_refused("forged-gs", 0, 0, "a return with a false GS base");
	is_refused("forged-gs-entry", 0, 0, "an entry with a false GS base");
	/* Its timer would also get the other page. */
	outside("stop", 0, 0);
	returns("remap", 0, 0, 0, "another page at the address of an entry");
	returns("read", 0, 0, SECRET, "the module still has its page");
	returns("exchange", 0, 0, SECRET, "another page of the text there");
	returns("patch", 0xcc, 0, SECRET, "INT3 in the module's text");
	returns("patch", 0xc3, 0, SECRET, "a return in the module's text");
	ok(!(outside("direction", 0, 0) & 0x500), "neither DF nor TF in the module");
}

static void load(int wanted)
{
	int err = module_insert("dune-guard-inside", "");

	is(err, 0, "the module is loaded");
	is(outside("armed", 0, 0), wanted, wanted ? "it is not armed" : "it is armed");
}

static void unload(void)
{
	is(module_unload("dune_guard_inside"), 0, "the module is unloaded");
	is(outside("armed", 0, 0), -2, "it is disarmed");
	returns("kernel-reads", 0, 0, 0, "its page is empty");
	outside("kernel-writes", SECRET, 0);
	returns("kernel-reads", 0, 0, SECRET, "and the kernel's");
}

int main(void)
{
	struct klog log;
	int fd, err, i;

	begin(300);
	klog_begin(&log);
	fd = guard_open();
	is(guard_request(fd, DUNE_GUARD_LAUNCH), 0, "a launch");
	outside_load("");
	for (i = 0; i < 3; i++) {
		load(0);
		/* Each activation that was ever used makes the search longer: first of all. */
		if (!i)
			diag("entry and return: %llu, with a call in it: %llu; VMMCALL: %llu",
			     outside("cost", 0, 0), outside("cost", 1, 0), outside("cost", 2, 0));
		calls();
		attacks();
		if (i == 2) {
			err = guard_request(fd, DUNE_GUARD_SEAL);
			ok(!err, "the seal (%s)", guard_answer.text);
			sleeps(fd);
			calls();
			attacks();
		}
		unload();
	}
	load(-1);
	returns("read", 0, 0, SECRET, "after the seal it is a module like any other");
	is(module_unload("dune_guard_inside"), 0, "the module is unloaded");
	is(module_unload("dune_guard_outside"), 0, "so is the other one");
	klog_end(&log);
	return done();
}
