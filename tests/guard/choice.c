// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * What happens on suspicious activity around a guarded module is what its binding has chosen: the
 * kernel enters it elsewhere than at an entry point, writes to its code, and loads another one in
 * its place, under each choice. Fails if something else happens than was chosen: to log nothing, to
 * log it, to stop the module for good. With arguments, the verdicts with these names alone; those
 * that begin with "panic-" are made only then, since they end the machine (panic/).
 */
#define _GNU_SOURCE
#include "attack.h"
#include "command.h"
#include "driver.h"
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

#include "secret/secret.h"

#define TOML		"/tmp/choice.toml"
#define BINDING		"/etc/dune/guard.d/dune_guard_inside.toml"
#define CHANGED		"/tmp/choice_changed.ko"
#define PARAMETER(name)	"/sys/module/dune_guard_outside/parameters/" name
#define OF_SECRETS	"/sys/module/dune_guard/parameters/secrets_on_suspicion"

static const char *const words[] = { NULL, "lower", "log", "stop", "panic" };

static int guard;
static unsigned long long log_end;

/* What was not as it was chosen; the verdicts' results are a sum of these. */
enum {
	WRONG_RESULT = 1, WRONG_LOG = 2, NOT_COUNTED = 4, WRONG_STATE = 8, WRONG_BORDER = 16,
	WRONG_STATE_AGAIN = 32, NOT_SHOWN = 64, WRONG_CHOICE_LOGGED = 128,
};

/* ---- the guard's answers ---- */

static void run_dunectl(const char *line)
{
	if (dunectl_guard(line))
		bail("dunectl guard %s: %s", line, command_output);
}

/* The entries about suspicious activity since the last call; @wrong: some have another choice. */
static unsigned int logged(unsigned int choice, bool *wrong)
{
	struct dune_guard_entry entry = { .index = log_end };
	unsigned int count = 0;

	*wrong = false;
	for (; !ioctl(guard, DUNE_GUARD_GET_LOG, &entry); entry.index++) {
		if (entry.kind != DUNE_GUARD_LOG_ENTER && entry.kind != DUNE_GUARD_LOG_EXIT &&
		    entry.kind != DUNE_GUARD_LOG_PATCH && entry.kind != DUNE_GUARD_LOG_CONTENT)
			continue;
		count++;
		*wrong |= entry.choice != choice;
	}
	log_end = entry.index;
	return count;
}

/* The registration's state, and << 16 its choice; and its error. */
static unsigned int state(int *error)
{
	struct dune_guard_registration registration = { .index = 0 };

	if (ioctl(guard, DUNE_GUARD_GET_REGISTRATION, &registration))
		bail("no registration: %m");
	*error = registration.error;
	return registration.state | registration.on_suspicion << 16;
}

static bool is_in(unsigned int wanted, unsigned int choice)
{
	int error;

	return state(&error) == (wanted | choice << 16);
}

/* ---- the module ---- */

static void load(const char *file)
{
	char command[200];

	snprintf(command, sizeof(command), "insmod %s 2>&1", file);
	if (command_run(command))
		bail("%s: %s", command, command_output);
}

static void unload(void)
{
	if (module_is_loaded("dune_guard_inside"))
		module_unload("dune_guard_inside");
}

static const char *right_file(void)
{
	return module_file("dune-guard-inside");
}

/* Binds and registers the module anew. */
static void enroll(unsigned int choice)
{
	char line[200];
	bool wrong;

	unload();
	dunectl_guard("unregister dune_guard_inside");
	snprintf(line, sizeof(line), "bind --force --on-suspicion %s " TOML, words[choice]);
	run_dunectl(line);
	run_dunectl("register " TOML);
	logged(0, &wrong);
}

/* Whether the kernel's call of the module crosses its border. */
static bool enters(void)
{
	unsigned long long before = crossings(IN_CALL);

	outside("read", 0, 0);
	return crossings(IN_CALL) > before;
}

/* ---- verdicts ---- */

/*
 * The log has these entries, with this choice. Where all is logged there may be more: if an
 * interrupt comes after a jump, its return to that place is suspicious, too.
 */
static unsigned long long log_has(unsigned int choice, unsigned int wanted)
{
	bool wrong;
	unsigned int count = logged(choice, &wrong);
	bool is_right = count == wanted ||
			(choice == DUNE_GUARD_LOG && wanted && count > wanted);

	if (!is_right)
		diag("%u entries in the log, not %u", count, wanted);
	return (is_right ? 0 : WRONG_LOG) | (wrong ? WRONG_CHOICE_LOGGED : 0);
}

/* After the suspicion: what dunectl shows, whether the module is entered, now and loaded again. */
static unsigned long long lasting(unsigned int choice)
{
	bool stops = choice == DUNE_GUARD_STOP_MODULE;
	unsigned long long wrong = 0;
	char line[100];
	int error;

	if (!is_in(stops ? DUNE_GUARD_STOPPED : DUNE_GUARD_ARMED, choice))
		wrong |= WRONG_STATE;
	if (enters() == stops)
		wrong |= WRONG_BORDER;
	/* A stopped module is refused in silence. */
	wrong |= log_has(choice, 0);
	snprintf(line, sizeof(line), "choice  %-15s on suspicious activity: %s\n",
		 "dune_guard_inside", words[choice]);
	run_dunectl("status");
	if (!strstr(command_output, line) ||
	    (stops && !strstr(command_output, "loaded, and stopped for good")))
		wrong |= NOT_SHOWN;
	snprintf(line, sizeof(line), "\"on-suspicion\":\"%s\"", words[choice]);
	run_dunectl("status --json");
	if (!strstr(command_output, line))
		wrong |= NOT_SHOWN;
	unload();
	load(right_file());
	if (state(&error) != ((stops ? DUNE_GUARD_FAILED : DUNE_GUARD_ARMED) | choice << 16) ||
	    (stops && error != -EACCES) || enters() == stops)
		wrong |= WRONG_STATE_AGAIN;
	unload();
	return wrong;
}

/* How many of @count suspicions are logged: all, none, or the one that stops the module. */
static unsigned int of(unsigned int count, unsigned int choice)
{
	return choice == DUNE_GUARD_LOWER ? 0 : choice == DUNE_GUARD_LOG ? count : 1;
}

/* The kernel jumps to a place that is no entry point, twice. */
static unsigned long long entered(unsigned int choice)
{
	unsigned long long refused = crossings(REFUSED), wrong = 0;

	if (outside("after-entry", 0, 0) != SECRET || outside("after-entry", 0, 0) != SECRET)
		wrong |= WRONG_RESULT;
	if (crossings(REFUSED) < refused + 2)
		wrong |= NOT_COUNTED;
	run_dunectl("log");
	if (choice > DUNE_GUARD_LOWER && !strstr(command_output, "; on suspicious activity: "))
		wrong |= NOT_SHOWN;
	return wrong | log_has(choice, of(2, choice));
}

static unsigned long long enter_under(unsigned int choice)
{
	enroll(choice);
	load(right_file());
	return entered(choice) | lasting(choice);
}

/* The kernel writes to the module's code, and writes back what was there. */
static unsigned long long write_under(unsigned int choice)
{
	unsigned long long wrong = 0;

	enroll(choice);
	load(right_file());
	/* Once it is stopped, it executes what the kernel writes. */
	if (outside("patch-middle", 0xcc, 0) != SECRET && choice != DUNE_GUARD_STOP_MODULE)
		wrong |= WRONG_RESULT;
	wrong |= log_has(choice, of(2, choice));
	return wrong | lasting(choice);
}

/* The kernel loads another module in its place, and then the right one. */
static unsigned long long content_under(unsigned int choice)
{
	bool stops = choice == DUNE_GUARD_STOP_MODULE;
	unsigned long long wrong = 0;

	enroll(choice);
	load(CHANGED);
	if (!is_in(DUNE_GUARD_DIFFERS, choice) || enters())
		wrong |= WRONG_STATE;
	wrong |= log_has(choice, of(1, choice));
	unload();
	load(right_file());
	if (!is_in(stops ? DUNE_GUARD_FAILED : DUNE_GUARD_ARMED, choice) || enters() == stops)
		wrong |= WRONG_STATE_AGAIN;
	unload();
	return wrong;
}

/* The kernel lies about where the module is, and then tells the truth. */
static unsigned long long lie_under(unsigned int choice)
{
	bool stops = choice == DUNE_GUARD_STOP_MODULE;
	unsigned long long wrong = 0;

	enroll(choice);
	if (outside_lie(PAGE_AT, guard_status(guard).address) != EINVAL)
		wrong |= WRONG_RESULT;
	wrong |= log_has(choice, of(1, choice));
	if (!is_in(stops ? DUNE_GUARD_FAILED : DUNE_GUARD_ARMED, choice) || enters() == stops)
		wrong |= WRONG_STATE;
	unload();
	return wrong;
}

/* A module with a private page: what it has after the kernel has jumped into it. */
static unsigned long long private_under(unsigned int choice)
{
	char text[10];
	unsigned long long jumped, read;

	unload();
	dunectl_guard("unregister dune_guard_inside");
	snprintf(text, sizeof(text), "%u", choice);
	file_write(PARAMETER("choice"), text);
	file_write(PARAMETER("arm"), "1");
	load(right_file());
	file_write(PARAMETER("arm"), "0");
	if (outside("armed", 0, 0) || outside("read", 0, 0) != SECRET)
		bail("the module is not guarded");
	jumped = outside("middle", 0, 0);
	read = outside("read", 0, 0);
	file_write(PARAMETER("arm"), "1");
	unload();
	file_write(PARAMETER("arm"), "0");
	/* The page is cleared in the end: the kernel gives it the secret again. */
	outside("kernel-writes", SECRET, 0);
	return jumped << 32 | read;
}

/* What a registration with this choice gets for an answer. */
static unsigned long long choice_is(unsigned int choice)
{
	char text[10];
	unsigned long long err;

	unload();
	dunectl_guard("unregister dune_guard_inside");
	snprintf(text, sizeof(text), "%u", choice);
	file_write(PARAMETER("choice"), text);
	file_write(PARAMETER("arm"), "1");
	load(right_file());
	err = outside("armed", 0, 0);
	file_write(PARAMETER("arm"), "0");
	unload();
	return err;
}

/* A binding with an unknown word: the exit status and the lines of the answer. */
static unsigned long long wrong_word(void)
{
	int status;

	enroll(DUNE_GUARD_LOG);
	run_dunectl("unregister dune_guard_inside");
	command_run("sed -i 's/^on-suspicion = .*/on-suspicion = \"reboot\"/' " BINDING);
	status = dunectl_guard("register " TOML);
	if (!strstr(command_output, "unknown variant `reboot`, expected one of `lower`, `log`"))
		diag("%s", command_output);
	return status << 8 | command_lines();
}

/* A binding that an administrator has edited, and one without the key. */
static unsigned long long edited(void)
{
	unsigned long long wrong = 0;

	enroll(DUNE_GUARD_LOG);
	run_dunectl("unregister dune_guard_inside");
	command_run("sed -i 's/^on-suspicion = .*/on-suspicion = \"stop\"/' " BINDING);
	run_dunectl("register " TOML);
	if (!is_in(DUNE_GUARD_WAITING, DUNE_GUARD_STOP_MODULE))
		wrong |= WRONG_STATE;
	run_dunectl("unregister dune_guard_inside");
	command_run("sed -i '/^on-suspicion/d' " BINDING);
	run_dunectl("register " TOML);
	if (!is_in(DUNE_GUARD_WAITING, DUNE_GUARD_LOG))
		wrong |= WRONG_STATE_AGAIN;
	return wrong;
}

static unsigned long long sealed_stop(void)
{
	enroll(DUNE_GUARD_STOP_MODULE);
	if (guard_request(guard, DUNE_GUARD_SEAL))
		bail("the seal: %s", guard_answer.text);
	load(right_file());
	return entered(DUNE_GUARD_STOP_MODULE) | lasting(DUNE_GUARD_STOP_MODULE);
}

/* ---- the end of the machine ---- */

#define SURVIVED	1

static unsigned long long panic_enter(void)
{
	enroll(DUNE_GUARD_PANIC);
	if (guard_request(guard, DUNE_GUARD_SEAL))
		bail("the seal: %s", guard_answer.text);
	load(right_file());
	outside("after-entry", 0, 0);
	return SURVIVED;
}

static unsigned long long panic_write(void)
{
	enroll(DUNE_GUARD_PANIC);
	load(right_file());
	outside("patch-middle", 0xcc, 0);
	return SURVIVED;
}

static unsigned long long panic_content(void)
{
	enroll(DUNE_GUARD_PANIC);
	load(CHANGED);
	return SURVIVED;
}

/*
 * Of class S. Until the seal the kernel can read what the guard has saved of an interrupted module:
 * so it sees whether that is cleared. The hostile module looks when the kernel panics.
 */
static unsigned long long panic_secret(void)
{
	unsigned long long before;

	if (file_write(OF_SECRETS, "nonsense") != -EINVAL || file_write(OF_SECRETS, "panic"))
		bail("the choice for class S cannot be written");
	secrets_load();
	ask_module("dune-guard-secret", "enter", SECRET_STORE, 0, 0);
	ask_module("dune-guard-secret", "plant", 0, 0, 0);
	ask_module("dune-guard-secret", "leave-holding", 0, 0, 0);
	before = ask_module("dune-guard-secret", "search", 0, 0, 0);
	ask_module("dune-guard-secret", "watch-panic", before, 0, 0);
	ask_module("dune-guard-secret", "jump", 0, 0, 0);
	return SURVIVED;
}

int main(int argc, char **argv)
{
	static const struct attack verdicts[] = {
		{ NAMED("enter-lower", "a jump into the module, unlogged"),
		  BY_US_WITH(enter_under, DUNE_GUARD_LOWER) },
		{ NAMED("enter-log", "a jump into the module, logged"),
		  BY_US_WITH(enter_under, DUNE_GUARD_LOG) },
		{ NAMED("enter-stop", "a jump that stops the module"),
		  BY_US_WITH(enter_under, DUNE_GUARD_STOP_MODULE) },
		{ NAMED("write-lower", "a write to its code, unlogged"),
		  BY_US_WITH(write_under, DUNE_GUARD_LOWER) },
		{ NAMED("write-log", "a write to its code, logged"),
		  BY_US_WITH(write_under, DUNE_GUARD_LOG) },
		{ NAMED("write-stop", "a write that stops the module"),
		  BY_US_WITH(write_under, DUNE_GUARD_STOP_MODULE) },
		{ NAMED("content-lower", "another module, unlogged"),
		  BY_US_WITH(content_under, DUNE_GUARD_LOWER) },
		{ NAMED("content-log", "another module, logged"),
		  BY_US_WITH(content_under, DUNE_GUARD_LOG) },
		{ NAMED("content-stop", "another module, for which the right one is stopped"),
		  BY_US_WITH(content_under, DUNE_GUARD_STOP_MODULE) },
		{ NAMED("lie-lower", "a lie about where it is, unlogged"),
		  BY_US_WITH(lie_under, DUNE_GUARD_LOWER) },
		{ NAMED("lie-log", "a lie, logged"), BY_US_WITH(lie_under, DUNE_GUARD_LOG) },
		{ NAMED("lie-stop", "a lie that stops the module"),
		  BY_US_WITH(lie_under, DUNE_GUARD_STOP_MODULE) },
		{ NAMED("private-lower", "what a jump reads, and then the module itself"),
		  BY_US_WITH(private_under, DUNE_GUARD_LOWER), .stopped = SECRET },
		{ NAMED("private-stop", "the same of a module that is stopped"),
		  BY_US_WITH(private_under, DUNE_GUARD_STOP_MODULE) },
		{ NAMED("none", "a registration without a choice"),
		  BY_US_WITH(choice_is, 0),
		  .stopped = (unsigned long long)-EINVAL },
		{ NAMED("unknown", "a registration with an unknown choice"),
		  BY_US_WITH(choice_is, DUNE_GUARD_PANIC + 1),
		  .stopped = (unsigned long long)-EINVAL },
		{ NAMED("wrong-word", "a binding with an unknown word gives one line"),
		  BY_US(wrong_word), .stopped = 1 << 8 | 1 },
		{ NAMED("edited", "a binding that was edited, and one without the key"),
		  BY_US(edited) },
		{ NAMED("sealed-stop", "a jump that stops the module after the seal"),
		  BY_US(sealed_stop) },
	};
	static const struct attack panics[] = {
		{ NAMED("panic-enter", "a jump at which the kernel panics"),
		  BY_US(panic_enter) },
		{ NAMED("panic-write", "a write at which the kernel panics"),
		  BY_US(panic_write) },
		{ NAMED("panic-content", "another module at which the kernel panics"),
		  BY_US(panic_content) },
		{ NAMED("panic-secret", "a jump into class S at which the kernel panics"),
		  BY_US(panic_secret) },
	};
	struct klog log;
	char line[600];

	guard = guard_begin(400, &log);
	module_unload("dune_guard_inside");
	is(guard_request(guard, DUNE_GUARD_LAUNCH), 0, "a launch");
	snprintf(line, sizeof(line), "describe %s -o " TOML, right_file());
	run_dunectl(line);
	outside_make_changed(CHANGED);
	outside_load("arm=0");
	argv++;
	attacks_make(verdicts, COUNT(verdicts), argv);
	if (*argv)
		attacks_make(panics, COUNT(panics), argv);
	attacks_end(argv);
	unload();
	module_unload("dune_guard_outside");
	klog_end(&log);
	return done();
}
