// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * Attacks on a sealed guard that knows a module by its content: the kernel loads another one, lies
 * about where it is, and patches it and a leaf of it. Each has a name and a verdict. Fails if a
 * module that is not the registered one is guarded, or if a patch reaches one that is. With
 * arguments, the attacks with these names alone, as in attacks.c; tests/guard/enforced.c has more
 * of them.
 */
#define _GNU_SOURCE
#include "attack.h"
#include "command.h"
#include "debugfs.h"
#include "guard.h"
#include "klog.h"
#include "modules.h"
#include "named.h"
#include "outside.h"
#include "proc.h"
#include "tap.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#define TOML	"/tmp/dune_guard_inside.toml"
#define CHANGED	"/tmp/attacks_changed.ko"

/* A function of the kernel's that the module executes itself. */
#define LEAF	"napi_schedule_prep"

/* One that only returns, in the place of each return of the module's. */
#define RETURN	"srso_return_thunk"

/* One that the module does not refer to. */
#define OTHER	"prepare_to_wait"

/* How often the module's guard ends while it is entered. */
#define ROUNDS	30

/* The numbers of other registrations; the ports of the one are also the first module's. */
#define OTHER_MODULE	1
#define PORTS		2
#define PORT		"[[privilege]]\nkind = \"ports\"\nfirst = 0x300\n"

#define DENIED	((unsigned long long)-EPERM)

static int guard;
/* The module was loaded before it was registered, and not since. */
static bool is_live;

static void unload(void)
{
	module_unload("dune_guard_inside");
	is_live = false;
}

static void load_again(void)
{
	int err;

	unload();
	err = module_insert("dune-guard-inside", "");
	if (err)
		bail("the module cannot be loaded: %s", strerror(-err));
}

/* By a command of the kernel's around the module, which was loaded anew. */
#define AFTER_A_LOAD(...)	BY(OUTSIDE, __VA_ARGS__), .before = load_again

/* Of the guard's state of the module, as the kernel's log of the guard has it: armed, or not. */
static unsigned long long is_guarded(const char *name)
{
	char line[100];

	if (dunectl_guard("status"))
		bail("dunectl guard status: %s", command_output);
	snprintf(line, sizeof(line), "module  %-15s loaded, and guarded\n", name);
	return !!strstr(command_output, line);
}

/* The module with one bit of its text changed. */
static unsigned long long changed(void)
{
	outside_make_changed(CHANGED);
	unload();
	if (command_run("insmod " CHANGED " 2>&1"))
		bail("the changed module cannot be loaded: %s", command_output);
	return is_guarded("dune_guard_inside");
}

/* A call of ftrace's, for which the description has a place. Returns what the entry gives. */
static unsigned long long hook_by_livepatch(void)
{
	load_again();
	return livepatched();
}

/* Another function in the place of a leaf, which returns 0. Returns what the module gets. */
static unsigned long long with_other_leaf(void)
{
	static const unsigned char other[] = { 0x31, 0xc0, 0xc3 };
	unsigned long address = kernel_address(LEAF);
	unsigned char was[sizeof(other)];
	unsigned long long got;
	unsigned int i;

	for (i = 0; i < sizeof(other); i++) {
		if (attack("patch", address + i, other[i], 0) || seen != other[i])
			bail(LEAF "() cannot be patched");
		was[i] = found;
	}
	got = outside("leaf", 0, 0);
	for (i = 0; i < sizeof(other); i++)
		attack("patch", address + i, was[i], 0);
	return got;
}

static unsigned long long patch_leaf(void)
{
	load_again();
	return with_other_leaf();
}

/* The same after another module with the same leaf has come and gone. */
static unsigned long long leave_shared(void)
{
	load_again();
	if (module_insert("dune-guard-edu", "") || !is_guarded("dune_guard_edu") ||
	    module_unload("dune_guard_edu"))
		bail("the other module has not come and gone: %s", command_output);
	return with_other_leaf();
}

/* The entries into init of a module that was live when it was registered. */
static unsigned long long enter_init(void)
{
	unsigned long long before;

	if (!is_live)
		bail("this has to be the first attack");
	before = crossings(IN_CALL);
	outside("init-again", 0, 0);
	return crossings(IN_CALL) - before;
}

/*
 * The kernel loads the module while its large page around the leaf leads to the module's frames.
 * What the private page then has, to which the module's own code would write there.
 */
static unsigned long long call_beside(void)
{
	unsigned long long got;
	int err, tries = 0;

	/* The place of the leaf itself is taken. */
	do {
		err = outside_lie(BESIDE_LEAF, kernel_address(LEAF));
	} while (err == EAGAIN && ++tries < 20);
	if (err)
		bail("the module is not guarded: %s", strerror(err));
	got = outside("call-beside", 0, 0);
	outside("kernel-writes", SECRET, 0);
	module_unload("dune_guard_inside");
	return got;
}

/* The module's frames replace 2 MB of the kernel's text for a while. */
static const char *needs_what_is_beside(void)
{
	return kernel_address("kasan_report") ? "KASAN's kernel needs that memory" : NULL;
}

/* How many writes of the kernel's the guard has logged: to the text, or to its own memory. */
static unsigned int writes_logged(unsigned int kind)
{
	struct dune_guard_entry entry = { .index = 0 };
	unsigned int count = 0;

	for (; !ioctl(guard, DUNE_GUARD_GET_LOG, &entry); entry.index++)
		count += entry.kind == kind;
	return count;
}

/*
 * The kernel writes 8 bytes by one instruction: a patch site of 5 bytes, which it does not change,
 * and the 3 bytes of code after it. Returns whether the guard logs that.
 */
static unsigned long long patch_wide(void)
{
	unsigned int before;

	load_again();
	before = writes_logged(DUNE_GUARD_LOG_PATCH);
	if (outside("patch-wide", 0, 0) != 0xcccccc)
		bail("the kernel does not read what it has written");
	return writes_logged(DUNE_GUARD_LOG_PATCH) > before;
}

/* One instruction writes to the guard's memory and to the text. Returns whether both are logged. */
static unsigned long long write_both(unsigned int text_first)
{
	unsigned int text, guards;

	load_again();
	text = writes_logged(DUNE_GUARD_LOG_PATCH);
	guards = writes_logged(DUNE_GUARD_LOG_WRITE);
	if (outside("patch-beside", guard_status(guard).address, text_first) != 0x90909090)
		bail("the kernel does not read what it has written");
	return writes_logged(DUNE_GUARD_LOG_PATCH) > text &&
	       writes_logged(DUNE_GUARD_LOG_WRITE) > guards;
}

/* The kernel patches a site, and takes that back, while the module runs. Is that logged? */
static unsigned long long patch_briefly(void)
{
	unsigned int before, tries = 0;

	load_again();
	do {
		before = writes_logged(DUNE_GUARD_LOG_PATCH);
	} while (!outside("patch-brief", 0, 0) && ++tries < 10);
	if (tries == 10)
		bail("the module has always returned meanwhile");
	return writes_logged(DUNE_GUARD_LOG_PATCH) > before;
}

/* The last one: whether the module is guarded any more after one try. */
static unsigned long long search_tables(void)
{
	load_again();
	if (!is_guarded("dune_guard_inside"))
		bail("the module is not guarded");
	outside("search-tables", 0, 0);
	load_again();
	return is_guarded("dune_guard_inside");
}

static unsigned long long undescribe(void)
{
	unload();
	return outside("guard-call", CALL_UNDESCRIBE, 0);
}

/* Registers the module in a file. Its binding has these lines, and the first one's leaves. */
static void enroll(const char *path, const char *name, const char *lines)
{
	char command[1200];

	snprintf(command, sizeof(command),
		 "cd /; guard='%s/bin/dunectl guard'; ( $guard describe %s -o /tmp/%s.toml && "
		 "$guard bind --force /tmp/%s.toml && ( printf '%s'; $guard leaves " TOML " ) "
		 ">>/etc/dune/guard.d/%s.toml && $guard register /tmp/%s.toml ) 2>&1",
		 build_directory(), path, name, name, lines, name, name);
	if (command_run(command))
		bail("%s cannot be registered: %s", name, command_output);
}

static void prepare(char **names)
{
	const struct attack first[] = {
		{ NAMED("end-entered", "the end of its guard while another CPU enters it"),
		  BY_LIE(FORGOTTEN, ROUNDS) },
		{ NAMED("patch-brief", "a patch that is taken back while the module runs"),
		  BY_US(patch_briefly), .stopped = 1 },
	};

	debugfs_mount();
	is(guard_request(guard, DUNE_GUARD_LAUNCH), 0, "a launch");
	outside_load("arm=0");
	attack_load();
	/* The kernel is believed that init has run. */
	if (cpus_on_line() > 1) {
		enroll(module_file("dune-guard-inside"), "dune_guard_inside", "");
		attacks_make(first, COUNT(first), names);
		unload();
		dunectl_guard("unregister dune_guard_inside");
	}
	load_again();
	is_live = true;
	enroll(module_file("dune-guard-inside"), "dune_guard_inside",
	       "[[privilege]]\nkind = \"monitor\"\n" PORT);
	enroll(module_file("dune-guard-edu"), "dune_guard_edu", "");
	enroll("$(modinfo -n dummy)", "dummy", PORT);
	ok(outside("is-large", kernel_address(LEAF), 0), "the leaf is in a large page");
	is(guard_request(guard, DUNE_GUARD_SEAL), 0, "the seal (%s)", guard_answer.text);
}

static void attack_content(char **names)
{
	unsigned long long guards = guard_status(guard).address;
	const struct attack attacks[] = {
		{ NAMED("init-live", "entries into an init that has run"), BY_US(enter_init) },
		{ NAMED("changed", "a module with one bit changed"), BY_US(changed) },
		{ NAMED("other-page", "a page with other bytes"), BY_LIE(OTHER_PAGE),
		  .stopped = ENOEXEC },
		{ NAMED("same-page", "a copy of a page, to which no address leads"),
		  BY_LIE(SAME_PAGE), .stopped = ENOEXEC },
		{ NAMED("swapped-pages", "two pages in another order"), BY_LIE(SWAPPED_PAGES),
		  .stopped = ENOEXEC },
		{ NAMED("guards-page", "a page of the guard's"), BY_LIE(PAGE_AT, guards),
		  .stopped = EINVAL },
		{ NAMED("init-ran", "an init that has run, they say"), BY_LIE(IS_LIVE),
		  .stopped = EINVAL },
		{ NAMED("exchanged-page", "a page that is exchanged before the comparison"),
		  BY_LIE(EXCHANGED), .stopped = ENOEXEC },
		{ NAMED("no-flush", "a CPU that has not flushed"), BY_LIE(NO_FLUSH),
		  .stopped = EBUSY },
		{ NAMED("patch-site", "a patch that the module's tables do not have"),
		  AFTER_A_LOAD("patch-site", 0xc3), .stopped = SECRET },
		{ NAMED("release-early", "init's frames released before the module is armed"),
		  BY_LIE(RELEASED_EARLY), .stopped = EINVAL },
		{ NAMED("described-livepatch", "a live patch of the module"),
		  BY_US(hook_by_livepatch), .stopped = SECRET },
		{ NAMED("into-leaf", "calls of another function that lead to a leaf"),
		  BY_LIE(OTHER_SYMBOL, kernel_address(LEAF)), .stopped = ENOEXEC },
		{ NAMED("other-symbol", "calls of a function that lead to another one"),
		  BY_LIE(OTHER_SYMBOL, kernel_address(OTHER)), .stopped = ENOEXEC },
		{ NAMED("other-patch", "a call of a function in the place of ftrace's"),
		  BY_LIE(OTHER_PATCH, kernel_address(OTHER)), .stopped = ENOEXEC },
		{ NAMED("patch-leaf", "a leaf that the kernel has changed"), BY_US(patch_leaf),
		  .stopped = 1 },
		{ NAMED("leave-shared", "that leaf, of which another module was unloaded"),
		  BY_US(leave_shared), .stopped = 1 },
		{ NAMED("near-leaf", "another memory in the large page of a leaf"),
		  AFTER_A_LOAD("read-near", kernel_address(LEAF)) },
		{ NAMED("beside-leaf", "the module's frames, executable there"),
		  BY_US(call_beside), .stopped = SECRET, .lacks = needs_what_is_beside },
		{ NAMED("patch-waiting", "a patch between two instructions of a site"),
		  AFTER_A_LOAD("patch-waiting"), .stopped = SECRET },
		{ NAMED("patch-target", "instructions in the target of a call"),
		  AFTER_A_LOAD("patch-target"), .stopped = SECRET },
		{ NAMED("patch-wide", "a write of a site and of more"), BY_US(patch_wide),
		  .stopped = 1 },
		{ NAMED("guards-and-text", "a write of the guard's memory and of the text"),
		  BY_US_WITH(write_both, 0), .stopped = 1 },
		{ NAMED("text-and-guards", "the same in the other order"),
		  BY_US_WITH(write_both, 1), .stopped = 1 },
		{ NAMED("frame-of-leaf", "a page that is a leaf's frame"),
		  BY_LIE(LEAF_FRAME, kernel_address(LEAF)), .stopped = EINVAL },
		{ NAMED("return-by-leaf", "an entry that returns to a leaf"),
		  AFTER_A_LOAD("return-by-leaf", kernel_address(RETURN)) },
		{ NAMED("return-by-table", "an entry on a stack that M has elsewhere"),
		  AFTER_A_LOAD("return-by-table") },
		{ NAMED("return-by-slot", "on one that a new entry of the top level leads to"),
		  AFTER_A_LOAD("return-by-slot") },
		{ NAMED("return-by-load", "on one for which a LOAD that fails makes M's tables"),
		  AFTER_A_LOAD("return-by-load", PORTS) },
		{ NAMED("return-by-frame", "on one in a frame that is frozen"),
		  AFTER_A_LOAD("return-by-frame", OTHER_MODULE) },
		{ NAMED("call-undescribe", "the end of a description"), BY_US(undescribe),
		  .stopped = DENIED },
		{ NAMED("search-tables", "a search for M's page tables, after one miss"),
		  BY_US(search_tables) },
	};

	attacks_make(attacks, COUNT(attacks), names);
}

int main(int argc, char **argv)
{
	struct klog log;

	guard = guard_begin(400, &log);
	argv++;
	prepare(argv);
	attack_content(argv);
	attacks_end(argv);
	module_unload("dune_guard_inside");
	klog_end(&log);
	return done();
}
