// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * The kernel's actions of signals, where more than one changes: when a program enters (a runtime's
 * are in alone/start.c), when a process executes another program, or has shared its actions with a
 * child. SIGSEGV and SIGBUS always have the library's handler, for probes of memory.
 */
#include "probe.h"
#include "process.h"
#include "sigaction.h"
#include "thread.h"

/* Sets the kernel's action of @sig to the one that the library installs for @act. */
static void install(int sig, const struct ksigaction *act)
{
	struct ksigaction real;

	dune_real_action(sig, act, &real);
	dune_tell_kernel(sig, &real);
}

static void import(int sig)
{
	struct dune_sighand *sh = &dune_process.sighand;
	struct ksigaction act;

	if (dune_kernel_action(sig, NULL, &act))
		return;
	dune_set_action(sh, sig, &act);
	if (is_handler(&act) || (sigbit(sig) & PROBE_SIGNALS))
		install(sig, &act);
}

/*
 * Takes over the handlers that the process has now, which the module has reported
 * (dune_info), and SIGSEGV and SIGBUS in any case. Does nothing on later calls.
 */
void dune_actions_import(void)
{
	u64 handled = dune_process.info.handled_signals | PROBE_SIGNALS;

	if (dune_process.imported)
		return;
	dune_process.imported = 1;
	for (; handled; handled &= handled - 1)
		import(__builtin_ctzll(handled) + 1);
}

/* Forgets all but what is ignored, as the kernel has done (CLONE_CLEAR_SIGHAND). */
void dune_actions_clear(struct dune_sighand *sh)
{
	struct ksigaction cleared = { .handler = SIG_DFL };
	int sig;

	for (sig = 1; sig <= NSIG; sig++) {
		cleared.handler = sh->action[sig].handler == SIG_IGN ? SIG_IGN : SIG_DFL;
		dune_set_action(sh, sig, &cleared);
	}
	install(SIGSEGV, &sh->action[SIGSEGV]);
	install(SIGBUS, &sh->action[SIGBUS]);
}

/*
 * Makes the kernel ignore SIGSEGV and SIGBUS before execve if the program ignores them, so
 * that the next program does, too. Until now the kernel has the library's handler for them.
 */
void dune_actions_ignore_for_exec(struct dune_thread *t)
{
	const struct ksigaction ign = { .handler = SIG_IGN };
	int i;

	for (i = 0; i < 2; i++) {
		if (dune_action(t->sighand, dune_probe_signals[i]).handler == SIG_IGN)
			dune_tell_kernel(dune_probe_signals[i], &ign);
	}
}

/* Undoes dune_actions_ignore_for_exec() when execve has failed. */
void dune_actions_handle_again(struct dune_thread *t)
{
	struct ksigaction act;
	int i;

	for (i = 0; i < 2; i++) {
		act = dune_action(t->sighand, dune_probe_signals[i]);
		if (act.handler == SIG_IGN)
			install(dune_probe_signals[i], &act);
	}
}

/*
 * Repairs the action of @sig after a child changed it in the kernel. @sh's lock is held, so
 * no other thread changes the record meanwhile.
 */
static void repair_action(struct dune_sighand *sh, int sig)
{
	struct ksigaction act = dune_action(sh, sig), real;

	dune_assert_held(&sh->lock);
	if (dune_kernel_action(sig, NULL, &real) || real.handler == dune_process.handler)
		return;
	if (real.handler != act.handler) {
		act.handler = real.handler;
		dune_set_action(sh, sig, &act);
	}
	if (sigbit(sig) & PROBE_SIGNALS)
		install(sig, &act);
}

/*
 * Repairs the actions when a child with the same handlers (CLONE_SIGHAND) is gone. If it
 * executed a program, a SIGSEGV or SIGBUS that is ignored has no handler in the kernel
 * now (dune_actions_ignore_for_exec()). If it died by a fault, that signal has its default
 * action there (@die of services.h). Linux does the same if the signal was blocked or
 * ignored (force_sig_info_to_task()), and then the parent has the default action,
 * too. Only the library's handler for probes has to come back. If the child was killed between
 * its change of an action in the record and in the kernel, the kernel's action is the one that
 * holds.
 */
void dune_actions_repair(struct dune_thread *t)
{
	struct dune_sighand *sh = t->sighand;
	u64 flags = dune_lock(&sh->lock), signals;

	signals = sh->handled | PROBE_SIGNALS | (sh->changing ? sigbit(sh->changing) : 0);
	for (; signals; signals &= signals - 1)
		repair_action(sh, __builtin_ctzll(signals) + 1);
	dune_unlock(&sh->lock, flags);
}
