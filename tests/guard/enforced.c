// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * Registered modules, by an administrator's commands: they are described, bound and registered, and
 * then guarded whenever they are loaded, before and after the seal. Fails if a module that was
 * changed, or that is not where the kernel says, is armed; if the kernel's writes reach a module
 * that is guarded; if a module that is not changed loses its border; or if a command reports that
 * in more than one line.
 *
 * dune-guard-inside is the module that is attacked (inside/), by dune-guard-outside.
 */
#define _GNU_SOURCE
#include "command.h"
#include "debugfs.h"
#include "guard.h"
#include "klog.h"
#include "modules.h"
#include "outside.h"
#include "proc.h"
#include "tap.h"
#include "timing.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define TRACING	DEBUGFS "/tracing"

static int fd;
/* A function of the kernel's that the module executes; 0: there is none. */
static unsigned long leaf;

/* dunectl guard with these words, and an argument. */
static int dunectl(const char *words, const char *argument)
{
	char all[600];

	snprintf(all, sizeof(all), "%s %s", words, argument);
	return dunectl_guard(all);
}

/* One verdict: the status, and one line with this text. */
static void says(const char *words, const char *argument, int status, const char *text)
{
	int got = dunectl(words, argument);

	ok(got == status && command_lines() == 1 && strstr(command_output, text),
	   "dunectl guard %s %s: %d, %s", words, argument, got, command_output);
}

/* A verdict: what `dunectl guard status` has of the module. */
static void is_shown(const char *name, const char *state)
{
	char line[200];

	snprintf(line, sizeof(line), "module  %-15s %s", name, state);
	dunectl("status", "");
	ok(strstr(command_output, line), "%s: %s", name, state);
	if (!strstr(command_output, line))
		diag("%s", command_output);
}

/* Describes, binds and registers a module of ours. */
static void describe(const char *file, const char *toml)
{
	char words[600];

	snprintf(words, sizeof(words), "describe %s -o", module_file(file));
	is(dunectl(words, toml), 0, "a description");
}

static int load(void)
{
	return module_insert("dune-guard-inside", "");
}

static void unload(void)
{
	is(module_unload("dune_guard_inside"), 0, "the module is unloaded");
	is_shown("dune_guard_inside", "not loaded");
}

/* One verdict on a call that has to return @want. */
static void returns(const char *word, unsigned long long a, unsigned long long b,
		    unsigned long long want, const char *what)
{
	unsigned long long got = outside(word, a, b);

	ok(got == want, "%s: %s(%llx, %llx) is %llx (%llx)", what, word, a, b, want, got);
}

/* The module works, and inside of its border. */
static void works(void)
{
	unsigned long long refused = outside("crossings", REFUSED, 0);
	unsigned long long calls = outside("crossings", IN_CALL, 0);

	returns("read", 0, 0, SECRET, "it reads");
	returns("call", 5, 0, 6, "it calls the kernel");
	returns("nest", 20, 0, SECRET, "20 calls, one within the other");
	returns("spin", 3000000, 1, SECRET, "a loop with interrupts");
	returns("sleep", 20, 0, SECRET, "it sleeps in a call");
	returns("warn", 0, 0, SECRET, "WARN");
	returns("fix-up", 0, 0, SECRET, "an exception with a fixup");
	returns("crowd", 4, 5, 4, "4 threads");
	ok(outside("crossings", IN_CALL, 0) >= calls + 20, "it has a border");
	is(outside("crossings", REFUSED, 0), refused, "nothing of that is suspicious");
}

/* How many entries of this kind the guard's log has from @index on, which then is its end. */
static int logged(unsigned int kind, unsigned long long *index)
{
	struct dune_guard_entry entry = { .index = *index };
	int count = 0;

	for (; !ioctl(fd, DUNE_GUARD_GET_LOG, &entry); entry.index++)
		count += entry.kind == kind;
	*index = entry.index;
	return count;
}

/* What Linux patches reaches the module, if its description allows that, and else does not. */
static void patches(void)
{
	unsigned long long refused = outside("crossings", REFUSED, 0), at = 0;

	logged(0, &at);
	returns("keys", 20, 0, 0, "a jump label, switched while another CPU is inside");
	is(logged(DUNE_GUARD_LOG_PATCH, &at), 0, "nothing of that is refused");
	returns("patch-site", 0xcc, 0, SECRET, "INT3 at a patch site, written by the kernel");
	is(logged(DUNE_GUARD_LOG_PATCH, &at), 0, "a patch begins so");
	returns("patch-site", 0x90, 0, SECRET, "another instruction there");
	ok(logged(DUNE_GUARD_LOG_PATCH, &at) > 0, "it is logged");
	returns("patch-middle", 0xcc, 0, SECRET, "INT3 elsewhere");
	ok(logged(DUNE_GUARD_LOG_PATCH, &at) > 0, "it is logged");
	if (file_write(TRACING "/kprobe_events", "p:inside dune_guard_inside:inner_read")) {
		skip("the kernel has none", "a kprobe");
	} else {
		is(file_write(TRACING "/events/kprobes/inside/enable", "1"), 0, "a kprobe");
		returns("read", 0, 0, SECRET, "the module works");
		file_write(TRACING "/events/kprobes/inside/enable", "0");
		file_write(TRACING "/kprobe_events", "-:inside");
	}
	returns("string", 0, 0, SECRET, "the module works");
	is(outside("crossings", REFUSED, 0), refused, "nothing of that is suspicious");
}

static void is_armed(void)
{
	is(load(), 0, "the module is loaded");
	is_shown("dune_guard_inside", "loaded, and guarded\n");
	works();
	patches();
}

/* A verdict: the kernel tells a lie about the module, and gets this error. */
static void lies(enum lie which, unsigned long value, int err, const char *what)
{
	int got = outside_lie(which, value);

	ok(got == err, "%s: %s (%s)", what, strerror(err), strerror(got));
	/* A lie takes nothing from the truth. */
	is_shown("dune_guard_inside", "loaded, and guarded\n");
	returns("read", 0, 0, SECRET, "it is");
	is(module_unload("dune_guard_inside"), 0, "the module is unloaded");
}

static void all_lies(void)
{
	/* To which the module does not refer. */
	unsigned long other = kernel_address("prepare_to_wait");

	lies(OTHER_PAGE, 0, ENOEXEC, "a page with other bytes");
	lies(SAME_PAGE, 0, ENOEXEC, "a copy of a page, to which no address leads");
	lies(SWAPPED_PAGES, 0, ENOEXEC, "two pages in another order");
	lies(TWICE, 0, EINVAL, "a page in two places");
	lies(PAGE_AT, guard_status(fd).address, EINVAL, "a page of the guard's");
	lies(PAGE_AT, ask_module("dune-guard-secret", "exchange", 0, 0, 0), EINVAL,
	     "a page that a module of class S may write");
	lies(TABLE_AT, guard_status(fd).address + 0x10000, ENOEXEC, "a page table of the guard's");
	lies(DATA_AT, ask_module("dune-guard-secret", "private-at", 0, 0, 0), EINVAL,
	     "data at the address of its secrets");
	lies(DEVICE, 0, EINVAL, "a device's memory");
	lies(TOO_HIGH, 0, EINVAL, "nothing there");
	lies(IS_LIVE, 0, EINVAL, "init has run");
	lies(OTHER_ADDRESS, 0, ENOEXEC, "another address of the text");
	lies(IMAGE_ADDRESS, 0, EINVAL, "an address in the kernel's image");
	lies(OTHER_RODATA, 0, EINVAL, "constants at the data's address");
	lies(USER_ADDRESS, 0, EINVAL, "the user's half");
	lies(TOO_LARGE, 0, EINVAL, "an endless region");
	lies(OTHER_NUMBER, 1, EINVAL, "another registered module, whose init is not there");
	lies(OTHER_NUMBER, 7, ENOENT, "a module that is not registered");
	lies(OTHER_NUMBER, 8, EINVAL, "no such number");
	lies(EXCHANGED, 0, ENOEXEC, "a page that is exchanged between freeze and arm");
	lies(WRITTEN, 0, 0, "a byte that is written between freeze and arm");
	lies(NO_FLUSH, 0, EBUSY, "a CPU that has not flushed");
	lies(RELEASED_EARLY, 0, EINVAL, "a release of init before the module is armed");
	lies(LOADED_TWICE, 0, EBUSY, "a module that is guarded already");
	lies(LOADED_TWICE, 1, EINVAL, "and as another one");
	lies(OTHER_SYMBOL, other, ENOEXEC, "calls of one function lead to another one");
	lies(OTHER_PATCH, other, ENOEXEC, "a call of a function in the place of ftrace's");
	lies(OTHER_PATCH, kernel_address("ftrace_caller"), 0, "and one of ftrace's");
	if (leaf) {
		lies(OTHER_SYMBOL, leaf, ENOEXEC, "calls of another function lead to a leaf");
		lies(OTHER_SYMBOL, leaf + 1, ENOEXEC, "and to the middle of one");
	}
}

/* From the next registration on, the module executes the kernel's return thunk. */
static void add_leaves(void)
{
	char name[60];
	const char *at;

	is(dunectl("leaves", "/tmp/inside.toml | tee -a "
		   "/etc/dune/guard.d/dune_guard_inside.toml"), 0, "leaves");
	at = strstr(command_output, "symbol = ");
	if (at && sscanf(at, "symbol = \"%59[a-z0-9_]", name) == 1)
		leaf = kernel_address(name);
}

/*
 * Loads at many places take none of the guard's memory for good, neither if they fail in the
 * comparison nor if they fail for want of memory. Each place would take a page of each level of
 * each page table. The module itself is loaded, and guarded, each time, too.
 */
static void many_places(void)
{
	unsigned long long blocks = outside("blocks", 0, 0), i;
	unsigned int left = guard_status(fd).memory_left, round, failed;

	ok(blocks >= 8, "%llu blocks of memory", blocks);
	for (round = 0; round < 2; round++) {
		for (i = 0, failed = 0; i < blocks; i++) {
			failed += outside_lie(ELSEWHERE, i) == ENOEXEC;
			failed += !module_unload("dune_guard_inside");
		}
		is(failed, 2 * blocks, "other bytes at each place");
		is(outside_lie(TOO_MUCH, 0), ENOMEM, "more than the guard has memory for");
		is(module_unload("dune_guard_inside"), 0, "the module is unloaded");
		is(guard_status(fd).memory_left, left,
		   "the guard has as much memory left as before");
	}
}

/* A thread sleeps in a call of the module while its guard goes away. */
static void unregistered_inside(void)
{
	unsigned long long got = 0;
	int status;
	pid_t pid;

	is(load(), 0, "the module is loaded");
	pid = fork();
	if (!pid) {
		got = outside("sleep", 2000, 0);
		_exit(got != SECRET);
	}
	usleep(500000);
	says("unregister", "dune_guard_inside", 0, "dune_guard_inside is not registered any more");
	returns("read", 0, 0, SECRET, "a call of the module, which is one like any other");
	waitpid(pid, &status, 0);
	is(WEXITSTATUS(status), 0, "the thread returns");
	says("register", "/tmp/inside.toml", 0, "dune_guard_inside is registered");
	is_shown("dune_guard_inside", "loaded, and guarded\n");
	works();
	unload();
}

/* Loads the module with one bit changed in its text. */
static void changed(void)
{
	outside_make_changed("/tmp/changed.ko");
	is(command_run("insmod /tmp/changed.ko 2>&1"), 0, "a module with another bit is loaded");
	is_shown("dune_guard_inside", "loaded, and not the registered module: bytes at text+");
	returns("read", 0, 0, SECRET, "it works, like any other");
	unload();
}

static void other_registrations(void)
{
	char toml[] = "/tmp/attack.toml";

	describe("dune-guard-attack", toml);
	says("register", toml, 1, "is not bound: dunectl guard bind writes");
	says("bind", toml, 0, "/etc/dune/guard.d/dune_guard_attack.toml");
	says("bind", toml, 1, "exists already: --force replaces it");
	command_run("echo >>/tmp/attack.toml");
	says("register", toml, 1, "it is for another description of dune_guard_attack");
	says("bind --force", toml, 0, "is bound by");
	command_run("chmod 666 /etc/dune/guard.d/dune_guard_attack.toml");
	says("register", toml, 1, "others than root may write it");
	command_run("cd /etc/dune/guard.d; chmod 600 dune_guard_attack.toml; printf "
		    "'[[privilege]]\nkind = \"mmio\"\ndevice = \"0000:7f:1f.7\"\n' "
		    ">>dune_guard_attack.toml");
	says("register", toml, 1, "0000:7f:1f.7");
	says("bind --force", toml, 0, "is bound by");
	says("register", toml, 0, "dune_guard_attack is registered");
	says("register", toml, 1, "dune_guard_attack is registered already: unregister it first");
	says("unregister", "nonsense", 1, "nonsense is not registered");
}

int main(void)
{
	unsigned long long refused;
	struct klog log;

	begin(600);
	klog_begin(&log);
	fd = guard_open();
	debugfs_mount();
	module_unload("dune_guard_attack");
	describe("dune-guard-inside", "/tmp/inside.toml");
	says("bind --force", "/tmp/inside.toml", 0, "dune_guard_inside is bound by");
	says("register", "/tmp/inside.toml", 1, "the guard is not launched");
	is(guard_request(fd, DUNE_GUARD_LAUNCH), 0, "a launch");
	says("register", "/tmp/inside.toml", 1, "which no loaded module has: load that one first");
	outside_load("arm=0");

	says("register", "/tmp/inside.toml", 0, "dune_guard_inside is registered");
	is_armed();
	is(guard_request(fd, DUNE_GUARD_STOP), 0, "the guard is stopped");
	returns("read", 0, 0, SECRET, "the module works without it");
	is(module_unload("dune_guard_inside"), 0, "it is unloaded");
	is(module_unload("dune_guard_outside"), 0, "and so can be what it refers to");
	outside_load("arm=0");
	is(guard_request(fd, DUNE_GUARD_LAUNCH), 0, "another launch");
	add_leaves();
	says("register", "/tmp/inside.toml", 0, "dune_guard_inside is registered");
	other_registrations();
	is_shown("dune_guard_inside", "not loaded");
	refused = outside("crossings", REFUSED, 0);
	is_armed();
	if (leaf)
		returns("read-near", leaf, 0, 0, "the kernel's text near a leaf");
	unload();
	is(outside("crossings", REFUSED, 0), refused, "neither init nor exit is suspicious");
	unregistered_inside();
	changed();
	/* The kernel is believed in that, and in nothing else. */
	lies(IS_LIVE, 0, 0, "init has run");
	lies(OTHER_PAGE, 0, ENOEXEC, "a page with other bytes");
	lies(OTHER_NUMBER, 1, ENOEXEC, "another registered module");

	many_places();
	secrets_load();
	is(guard_request(fd, DUNE_GUARD_SEAL), 0, "the seal");
	says("register", "/tmp/inside.toml", 1, "the guard is sealed: its registrations stay");
	says("unregister", "dune_guard_inside", 1, "the guard is sealed: its registrations stay");
	returns("guard-call", CALL_REGISTER, 5, -EPERM, "a registration by ring 0");
	returns("guard-call", CALL_DESCRIBE, 5, -EPERM, "a description");
	returns("guard-call", CALL_UNDESCRIBE, 0, -EPERM, "the end of one");
	returns("guard-call", CALL_ARM, 0, -ENOENT, "arming a module that is not loaded");
	returns("guard-call", CALL_LOAD, 0, -EINVAL, "loading it from a page of zeros");
	is_armed();
	unload();
	changed();
	is_armed();
	unload();
	all_lies();
	many_places();
	is_armed();
	unload();
	ok(module_unload("dune_guard_outside"), "the other one, whose functions it calls, stays");
	klog_end(&log);
	return done();
}
