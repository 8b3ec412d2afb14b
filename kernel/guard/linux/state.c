// SPDX-License-Identifier: GPL-2.0-only
/*
 * The guard's state, and the requests that change it or read it.
 */
#define pr_fmt(fmt) "dune-guard: " fmt

#include <linux/export.h>
#include <linux/kernel.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/printk.h>
#include <linux/spinlock.h>
#include <linux/uaccess.h>

#include "guard/linux/guard.h"
#include "guard/secret.h"

/* The interface has the image's numbers. */
static_assert(DUNE_GUARD_EXITS == HV_COUNTS);
static_assert(DUNE_GUARD_EXIT_PORT == HV_COUNT_PORT);
static_assert(DUNE_GUARD_LOG_PCI == HV_LOG_PCI);
static_assert(DUNE_GUARD_LOG_PATCH == HV_LOG_PATCH);

/* guard_lock protects these. */
static DEFINE_MUTEX(guard_lock);
static int state = DUNE_GUARD_OFF;
static bool going_down;
static struct guard_memory memory;

/*
 * The notifier of suspend runs under locks of sysfs, and the seal takes such locks when it reads
 * files. So the notifier does not wait for guard_lock: these two have a lock of their own.
 */
static DEFINE_SPINLOCK(sleep_lock);
static bool sleeping;
static int state_for_sleep = DUNE_GUARD_OFF;	/* launched already while it is being launched */

int guard_set_sleeping(bool sleeps)
{
	int now;

	spin_lock(&sleep_lock);
	now = state_for_sleep;
	sleeping = sleeps && now == DUNE_GUARD_OFF;
	spin_unlock(&sleep_lock);
	return now;
}

/* Returns false, and changes nothing, if the computer is about to suspend. */
static bool set_state_for_sleep(int next)
{
	bool may;

	spin_lock(&sleep_lock);
	may = !sleeping;
	if (may)
		state_for_sleep = next;
	spin_unlock(&sleep_lock);
	return may;
}

/* The guard is sealed: the module stays, and the block is never freed. */
static void keep(void)
{
	__module_get(THIS_MODULE);
	state = DUNE_GUARD_SEALED;
	set_state_for_sleep(state);
}

static int check(struct dune_guard_answer *answer)
{
	if (state != DUNE_GUARD_OFF)
		return guard_refuse(answer, -EALREADY, "the guard is launched already");
	if (READ_ONCE(sleeping))
		return guard_refuse(answer, -EBUSY, "the computer is about to suspend");
	/* The kernel's state tells it to a module that was loaded after the notifiers. */
	if (going_down || system_state > SYSTEM_RUNNING)
		return guard_refuse(answer, -EBUSY, "the computer is about to reboot");
	return guard_check(answer);
}

static int load_and_launch(struct dune_guard_answer *answer)
{
	int err = guard_load(&memory, answer);

	if (err)
		return err;
	err = guard_cpus_launch(&memory, answer);
	if (err)
		guard_unload(&memory);
	return err;
}

static int launch(struct dune_guard_answer *answer)
{
	int err = check(answer);

	if (err)
		return err;
	if (!set_state_for_sleep(DUNE_GUARD_LAUNCHED))
		return guard_refuse(answer, -EBUSY, "the computer is about to suspend");
	err = load_and_launch(answer);
	if (err) {
		set_state_for_sleep(DUNE_GUARD_OFF);
		return err;
	}
	state = DUNE_GUARD_LAUNCHED;
	pr_info("launched on %u CPUs\n", guard_cpus_launched());
	return 0;
}

/* Returns 0, or -EPERM with the reason in @answer. */
static int stop(struct dune_guard_answer *answer)
{
	guard_registrations_drop();
	guard_secrets_drop();
	guard_cpus_stop();
	if (guard_cpus_launched()) {
		keep();
		return guard_refuse(answer, -EPERM,
				    "code in the kernel has sealed the guard: only a reboot removes it");
	}
	guard_unload(&memory);
	state = DUNE_GUARD_OFF;
	set_state_for_sleep(state);
	pr_info("stopped\n");
	return 0;
}

static int try_stop(struct dune_guard_answer *answer)
{
	switch (state) {
	case DUNE_GUARD_OFF:
		return guard_refuse(answer, -EINVAL, "the guard is not launched");
	case DUNE_GUARD_SEALED:
		return guard_refuse(answer, -EPERM,
				    "the guard is sealed: only a reboot removes it");
	default:
		if (guard_secrets_name())
			return guard_refuse(answer, -EBUSY,
					    "%s has secrets, which would be lost: unload it first",
					    guard_secrets_name());
		return stop(answer);
	}
}

static int seal(struct dune_guard_answer *answer)
{
	int err;

	if (state == DUNE_GUARD_OFF)
		return guard_refuse(answer, -EINVAL,
				    "the guard is not launched: dunectl guard launch");
	if (state == DUNE_GUARD_SEALED)
		return guard_refuse(answer, -EALREADY, "the guard is sealed already");
	/* kexec cannot be allowed again: whatever else may refuse is asked first. */
	err = guard_cpus_can_seal(answer);
	if (!err)
		err = guard_kexec_disable(answer);
	if (!err)
		err = guard_cpus_seal(answer);
	if (guard_cpus_sealed())
		keep();
	if (!err)
		pr_info("sealed\n");
	return err;
}

int guard_secret_arm(const struct guard_secret *secret)
{
	int ret = -ENODEV;

	mutex_lock(&guard_lock);
	if (state == DUNE_GUARD_SEALED)
		ret = -EPERM;
	if (state == DUNE_GUARD_LAUNCHED)
		ret = guard_secrets_add(secret);
	mutex_unlock(&guard_lock);
	return ret;
}
EXPORT_SYMBOL_GPL(guard_secret_arm);

int guard_secret_disarm(int number)
{
	int err = 0;

	mutex_lock(&guard_lock);
	if (state != DUNE_GUARD_OFF)
		err = guard_secrets_remove(number);
	mutex_unlock(&guard_lock);
	return err;
}
EXPORT_SYMBOL_GPL(guard_secret_disarm);

void guard_stop_for_shutdown(void)
{
	struct dune_guard_answer answer;

	mutex_lock(&guard_lock);
	going_down = true;
	if (state == DUNE_GUARD_LAUNCHED && stop(&answer))
		pr_err("%s\n", answer.text);
	mutex_unlock(&guard_lock);
}

static int get_status(struct dune_guard_status __user *user)
{
	struct dune_guard_status status = {
		.version = DUNE_GUARD_VERSION,
		.state = state,
		.cpus = guard_cpus_launched(),
	};

	if (state != DUNE_GUARD_OFF) {
		status.address = memory.physical;
		status.memory = PAGE_SIZE << memory.order;
		status.memory_left = guard_cpus_pages_left() * PAGE_SIZE;
		guard_cpus_count(status.exits);
	}
	return copy_to_user(user, &status, sizeof(status)) ? -EFAULT : 0;
}

static int get_log(struct dune_guard_entry __user *user)
{
	struct dune_guard_entry entry;
	int err;

	if (state == DUNE_GUARD_OFF)
		return -EINVAL;
	if (copy_from_user(&entry, user, sizeof(entry)))
		return -EFAULT;
	err = guard_cpus_log(&entry);
	if (err)
		return err;
	return copy_to_user(user, &entry, sizeof(entry)) ? -EFAULT : 0;
}

static int request(unsigned int command, struct dune_guard_answer __user *user)
{
	struct dune_guard_answer answer = {};
	int err;

	switch (command) {
	case DUNE_GUARD_CHECK:
		err = check(&answer);
		break;
	case DUNE_GUARD_LAUNCH:
		err = launch(&answer);
		break;
	case DUNE_GUARD_SEAL:
		err = seal(&answer);
		break;
	case DUNE_GUARD_STOP:
		err = try_stop(&answer);
		break;
	default:
		return -ENOTTY;
	}
	if (!err)
		return 0;
	if (command != DUNE_GUARD_CHECK)
		pr_err("%s\n", answer.text);
	return copy_to_user(user, &answer, sizeof(answer)) ? -EFAULT : err;
}

long guard_request(unsigned int command, void __user *user)
{
	long ret;

	mutex_lock(&guard_lock);
	switch (command) {
	case DUNE_GUARD_GET_STATUS:
		ret = get_status(user);
		break;
	case DUNE_GUARD_GET_LOG:
		ret = get_log(user);
		break;
	case DUNE_GUARD_REGISTER:
	case DUNE_GUARD_UNREGISTER:
	case DUNE_GUARD_GET_REGISTRATION:
		ret = guard_registration_request(command, user, state);
		break;
	case DUNE_GUARD_GET_CROSSINGS:
		ret = guard_registration_crossings(user, state);
		break;
	default:
		ret = request(command, user);
	}
	mutex_unlock(&guard_lock);
	return ret;
}
