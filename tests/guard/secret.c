// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * A module of class S (secret/), whose secret is in its registers, on its stack and in its private
 * memory while a hostile kernel calls it, interrupts it, lets it die, and looks for the secret.
 * Fails if the kernel finds it in a register or in any memory, if the module is entered or resumed
 * in a wrong way, if it reaches anything that is not its own, or if it loses a value.
 */
#define _GNU_SOURCE
#include "cpu.h"
#include "debugfs.h"
#include "guard.h"
#include "klog.h"
#include "modules.h"
#include "outside.h"
#include "tap.h"
#include "timing.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "secret/secret.h"

#define REFUSED	0xbad
#define DIED	((unsigned long long)-EIO)

/* So many that an interrupt comes meanwhile, however busy the computer is: less than a second. */
#define MANY_ROUNDS	100000000

static unsigned long long run(const char *word, unsigned long long a, unsigned long long b)
{
	return ask_module("dune-guard-secret", word, a, b, 0);
}

/* One verdict on a command that has to return @want. */
static void returns(const char *word, unsigned long long a, unsigned long long b,
		    unsigned long long want, const char *what)
{
	unsigned long long got = run(word, a, b);

	ok(got == want, "%s: %s(%llx, %llx) is %llx (%llx)", what, word, a, b, want, got);
}

/* What the kernel has found in registers, in all calls and interrupts so far. */
static void nothing_found(const char *when)
{
	returns("found", 0, 0, 0, when);
	returns("found", 1, 0, 0, "other registers that are not 0");
	returns("found", 2, 0, 0, "registers of the caller that have changed");
	returns("found", 3, 0, 0, "flags");
	returns("interrupts-saw", 0, 0, 0, "interrupts saw registers that are not 0");
	returns("interrupts-saw", 1, 0, 0, "and flags");
	returns("interrupts-saw", 2, 0, 0, "and another place than the stub");
	returns("interrupts-saw", 3, 0, 0, "and another stack pointer than the caller's");
}

static void calls(void)
{
	unsigned long long before = run("interrupted", 0, 0);

	returns("enter", SECRET_NOTHING, 0, 0, "an entry that does nothing");
	returns("enter", SECRET_ARGUMENTS, 0, 0, "the module finds its arguments only");
	/* CF, PF, AF, ZF, SF and OF are its own, and IF the kernel's. */
	ok(!(run("enter", SECRET_FLAGS, 0) & ~0xad7ULL), "and clean flags");
	returns("enter", SECRET_CONSTANT, 0, 0x1234, "and its constants");
	returns("enter", SECRET_STORE, 0, 0, "it leaves its secret everywhere");
	returns("enter", SECRET_CHECK, 0, 1, "it finds the secret again");
	returns("spin", MANY_ROUNDS, 0, 1, "it is interrupted");
	ok(run("interrupted", 0, 0) > before, "%llu times", run("interrupted", 0, 0) - before);
	nothing_found("secrets in registers");
}

static void attacks(void)
{
	returns("spin", MANY_ROUNDS, 1, 1, "interrupts change the registers that they see");
	returns("spin", MANY_ROUNDS, 2, 1, "and the flags");
	returns("jump", 0, 0, REFUSED, "a jump into the text");
	returns("jump-stub", 0, 0, REFUSED, "a jump to the stub");
	returns("jump-everywhere", 0, 0, 0, "places of the text that let the kernel in");
	returns("replay", 0, 0, REFUSED, "a second return from an interrupt");
	returns("spin", MANY_ROUNDS, 3, REFUSED, "an interrupt returns elsewhere into the text");
	returns("spin", MANY_ROUNDS, 4, REFUSED, "an interrupt never returns");
	returns("enter", SECRET_CHECK, 0, 1, "the module still has its secret");
	returns("forge", SECRET_CHECK, 0, 1, "an entry with another stack");
	returns("patch", 0xcc, 0, 1, "INT3 in the text");
	returns("patch", 0xc3, 0, 1, "a return in the text");
	returns("patch-constant", 0, 0, 0x1234, "another constant");
	returns("probe", 0, 0, 0, "a kprobe in the text");
	if (cpus_on_line() > 1)
		ok(run("twice", 0, 0), "two CPUs have two stacks");
	else
		skip("there is one CPU", "two CPUs have two stacks");
	returns("private", 0, 0, 0, "the kernel reads the private pages");
	returns("private", 1, 0, 0, "the kernel writes them");
	returns("enter", SECRET_CHECK, 0, 1, "the module still has its secret");
	nothing_found("secrets in registers after that");
}

static void deaths(void)
{
	int i;

	returns("reach", SECRET_READ, 0, DIED, "the module reads the kernel's memory");
	returns("reach", SECRET_WRITE, 0, DIED, "it writes it");
	returns("reach-other", SECRET_READ, 0, DIED, "it reads its own by the kernel's mapping");
	returns("reach", SECRET_CALL, 0, DIED, "it calls a place of the kernel's");
	for (i = 0; i < SECRET_INSTRUCTIONS; i++)
		returns("enter", SECRET_EXECUTE, i, DIED, "it executes what it must not");
	returns("enter", SECRET_BAD_RETURN, 0, DIED, "it returns on another place of its stack");
	returns("enter", SECRET_RESIDUE, 0, 0, "the next one finds nothing on a stack of the dead");
	returns("enter", SECRET_CHECK, 0, 1, "the module still has its secret");
	returns("enter", SECRET_STORE, 0, 0, "it stores it");
	ok(run("enter", SECRET_RESIDUE, 0), "what one leaves that returned is still there");
	nothing_found("secrets in registers after the deaths");
}

int main(void)
{
	struct dune_guard_status status;
	struct klog log;
	int fd, err;

	begin(400);
	klog_begin(&log);
	fd = guard_open();
	debugfs_mount();
	err = module_insert("dune-guard-secret", "");
	if (err)
		bail("dune-guard-secret.ko cannot be loaded: %s", strerror(-err));
	returns("arm", 0, 0, (unsigned long long)-ENODEV, "no guard is launched");
	is(guard_request(fd, DUNE_GUARD_LAUNCH), 0, "a launch");
	status = guard_status(fd);
	returns("plant", 1, 0, 0, "the kernel has the secret");
	ok(run("search", status.address, status.memory) > 0, "the search finds it");
	returns("plant", 0, 0, 0, "it has it no more");
	ok(run("private", 1, 0), "not guarded, the kernel writes the private pages");

	returns("arm", 0, 0, 0, "the module is guarded");
	returns("enter", SECRET_RESIDUE, 0, 0, "what the kernel has put there is gone");
	diag("entry and return: %llu", run("cost", 0, 0));
	calls();
	attacks();
	deaths();
	returns("search", status.address, status.memory, 0, "secrets in all memory");
	ok(guard_request(fd, DUNE_GUARD_STOP) == -EBUSY &&
	   strstr(guard_answer.text, "dune-guard-secret"), "no stop (%s)", guard_answer.text);
	returns("disarm", 0, 0, 0, "it is not guarded any more");
	returns("private", 0, 0, 0, "there is nothing in its pages");
	returns("search", status.address, status.memory, 0, "nor in all memory");
	returns("arm", 0, 0, 0, "it is guarded again");
	returns("enter", SECRET_STORE, 0, 0, "it stores the secret");

	err = guard_request(fd, DUNE_GUARD_SEAL);
	ok(!err, "the seal (%s)", guard_answer.text);
	calls();
	attacks();
	deaths();
	returns("spin", MANY_ROUNDS, 4, REFUSED, "an interrupt never returns");
	returns("search", 0, 0, 0, "secrets in all memory");
	returns("port-4", 0x80000400, 0, 0, "a write of PCI's address");
	returns("enter", SECRET_CHECK, 0, 1, "it is no reset: the module still has its secret");
	returns("port-2", 0x400, 0, 0, "a write of two bytes, which is taken for a reset");
	returns("enter", SECRET_CHECK, 0, REFUSED, "from then on the module is not entered");
	is(module_unload("dune_guard_secret"), 0, "the module is unloaded");
	err = module_insert("dune-guard-secret", "");
	is(err, 0, "it is loaded again");
	returns("search", 0, 0, 0, "secrets in all memory");
	returns("enter", SECRET_STORE, 0, 0, "the module, not guarded any more, has a secret");
	ok(run("private", 0, 0), "the kernel reads it");
	ok(run("search", 0, 0) > 10, "and finds it");
	returns("arm", 0, 0, (unsigned long long)-EPERM, "after the seal it is not guarded");
	is(module_unload("dune_guard_secret"), 0, "the module is unloaded");
	klog_end(&log);
	return done();
}
