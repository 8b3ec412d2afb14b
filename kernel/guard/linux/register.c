// SPDX-License-Identifier: GPL-2.0-only
/*
 * Registrations: modules that are known by their content. A description (guard/hv/content.h) names
 * a module, and the resident part has a copy of it. When Linux has loaded the module, the resident
 * part is told where, after all that Linux patches at that time and before its init runs; it then
 * freezes, compares and arms it. A module that is loaded already is guarded when it is registered.
 *
 * Once the guard is sealed, the resident part believes nothing of this: any code in ring 0 can make
 * the same calls.
 */
#define pr_fmt(fmt) "dune-guard: " fmt

#include <linux/bitmap.h>
#include <linux/kobject.h>
#include <linux/list.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/notifier.h>
#include <linux/printk.h>
#include <linux/slab.h>
#include <linux/string.h>
#include <linux/uaccess.h>
#include <linux/utsname.h>
#include <linux/vmalloc.h>

#include "guard/linux/guard.h"
#include "guard/linux/views.h"

/* The most other modules that a registered one may refer to. */
#define MOST_NEEDED	32

/**
 * struct registration - a description and what became of its module
 * @in_list:	in registrations
 * @name:	of the module
 * @number:	of the resident part's
 * @size:	of the description
 * @entries:	that it has
 * @privileges:	how many the module is to have
 * @has_tally:	its crossings are counted by function
 * @leaves:	how many functions of the kernel's it executes
 * @state:	DUNE_GUARD_WAITING, ...; the resident part knows whether ARMED is still true
 * @has_init:	the memory of init is guarded, too
 * @error:	of DUNE_GUARD_FAILED
 * @finding:	of DUNE_GUARD_DIFFERS
 * @choice:	for suspicious activity
 * @needed:	the modules to which it refers; they stay loaded, since their addresses are known
 */
struct registration {
	struct list_head in_list;
	char name[CONTENT_NAME];
	unsigned int number;
	u32 size;
	u32 entries;
	u32 privileges;
	bool has_tally;
	u32 leaves;
	u32 state;
	bool has_init;
	int error;
	struct content_finding finding;
	enum border_choice choice;
	struct module *needed[MOST_NEEDED];
	unsigned int needed_count;
};

/*
 * All registrations and their fields, under the lock. It is taken after the one of state.c, and by
 * the notifier without that.
 */
static DEFINE_MUTEX(registrations_lock);
static LIST_HEAD(registrations);
static DECLARE_BITMAP(numbers, HV_REGISTRATIONS);

/* The interface has the description's numbers. */
static_assert(DUNE_GUARD_NAME == CONTENT_NAME);
static_assert(DUNE_GUARD_PRIVILEGES == HV_PRIVILEGES);
static_assert(DUNE_GUARD_MONITOR == HV_PRIVILEGE_MONITOR);
static_assert(sizeof(struct dune_guard_privilege) == sizeof(struct hv_privilege));
static_assert(DUNE_GUARD_LEAVES == HV_LEAVES);
static_assert(sizeof(struct dune_guard_leaf) == sizeof(struct hv_leaf));
static_assert(DUNE_GUARD_CONTENT_PLACE == (int)CONTENT_PLACE);
static_assert(DUNE_GUARD_IN_RTI == BORDER_IN_RTI - 1);
static_assert(DUNE_GUARD_OUT_INT == BORDER_OUT_INT - 1);
static_assert(DUNE_GUARD_LOWER == (int)CHOICE_LOWER);
static_assert(DUNE_GUARD_LOG == (int)CHOICE_LOG);
static_assert(DUNE_GUARD_STOP_MODULE == (int)CHOICE_STOP);
static_assert(DUNE_GUARD_PANIC == (int)CHOICE_PANIC);

static struct registration *find(const char *name)
{
	struct registration *one;

	list_for_each_entry(one, &registrations, in_list)
		if (!strcmp(one->name, name))
			return one;
	return NULL;
}

/* ---- guarding ---- */

static const char *const verdicts[CONTENT_VERDICTS] = {
	[CONTENT_NO_REGION] = "no memory for the section",
	[CONTENT_BYTES] = "other bytes in the section",
	[CONTENT_RELOCATION] = "a relocation leads elsewhere",
	[CONTENT_SITE] = "a patch that its tables do not allow",
	[CONTENT_GAP] = "bytes between its sections",
	[CONTENT_PLACE] = "other memory than at its address",
};

static const char *const regions[CONTENT_REGIONS] = {
	[CONTENT_TEXT] = "text",
	[CONTENT_RODATA] = "rodata",
	[CONTENT_RO_AFTER_INIT] = "ro-after-init",
	[CONTENT_DATA] = "data",
	[CONTENT_INIT_TEXT] = "init-text",
	[CONTENT_INIT_RODATA] = "init-rodata",
	[CONTENT_INIT_DATA] = "init-data",
	[CONTENT_PER_CPU] = "per-cpu",
};

static const char *reason(int err)
{
	switch (err) {
	case -ENOMEM:
		return "there is not enough memory for it";
	case -E2BIG:
		return "it is too large";
	case -EOPNOTSUPP:
		return "this computer has too many CPUs or too long addresses";
	case -EBUSY:
		return "a CPU has not acknowledged";
	case -ENXIO:
		return "a privilege is not allowed, its BAR has moved, or a bridge is missing";
	case -EADDRINUSE:
		return "another module has one of its privileges";
	case -ENOSPC:
		return "too many devices and bridges are locked";
	case -EACCES:
		return "it was stopped for good, after suspicious activity";
	default:
		return "its memory is not its own";
	}
}

/* The caller keeps @mod loaded and, if @has_init, the memory of its init. */
static void protect(struct registration *one, const struct module *mod, bool has_init)
{
	struct hv_load *load = (void *)get_zeroed_page(GFP_KERNEL);
	u64 finding = 0;

	one->has_init = has_init;
	one->error = load ? guard_views_find(mod, has_init, load) : -ENOMEM;
	if (!one->error)
		one->error = guard_views_load(one->number, load, &finding);
	free_page((unsigned long)load);
	one->finding.verdict = finding & 0xff;
	one->finding.region = finding >> 8 & 0xff;
	one->finding.offset = finding >> 32;
	if (!one->error) {
		one->state = DUNE_GUARD_ARMED;
		pr_info("%s: loaded, and guarded%s\n", one->name,
			has_init ? "" : " (its init ran before that)");
	} else if (one->error == -ENOEXEC && one->finding.verdict < CONTENT_VERDICTS &&
		   one->finding.region < CONTENT_REGIONS) {
		one->state = DUNE_GUARD_DIFFERS;
		pr_err("%s: loaded, and not the registered module: %s at %s+%#x\n", one->name,
		       verdicts[one->finding.verdict], regions[one->finding.region],
		       one->finding.offset);
	} else {
		one->state = DUNE_GUARD_FAILED;
		pr_err("%s: loaded, and not guarded, since %s (%d)\n", one->name,
		       reason(one->error), one->error);
	}
}

/* The module is about to be freed, or not to be guarded any more. */
static void expose(struct registration *one)
{
	int err = one->state == DUNE_GUARD_ARMED ? guard_views_disarm(one->number) : 0;

	if (err)
		pr_err("%s: it stays frozen, since a CPU has not acknowledged (%d): reboot\n",
		       one->name, err);
	one->state = DUNE_GUARD_WAITING;
}

/* Init has returned, and Linux frees its memory next. A module may have none. */
static void release_init(const struct registration *one)
{
	int err = guard_views_release(one->number);

	if (err && err != -EINVAL)
		pr_err("%s: its init stays frozen, but Linux frees it (%d): unload the module\n",
		       one->name, err);
}

static int module_event(struct notifier_block *notifier, unsigned long event, void *data)
{
	const struct module *mod = data;
	struct registration *one;

	mutex_lock(&registrations_lock);
	one = find(mod->name);
	if (one) {
		switch (event) {
		case MODULE_STATE_COMING:
			protect(one, mod, true);
			break;
		case MODULE_STATE_LIVE:
			/* It was registered while it was loaded, after the event before. */
			if (one->state == DUNE_GUARD_WAITING)
				protect(one, mod, false);
			else if (one->state == DUNE_GUARD_ARMED && one->has_init)
				release_init(one);
			break;
		case MODULE_STATE_GOING:
			expose(one);
			pr_info("%s: unloaded\n", one->name);
			break;
		}
	}
	mutex_unlock(&registrations_lock);
	return NOTIFY_DONE;
}

/* After all others: they patch static calls and jump labels, for instance. */
static struct notifier_block module_notifier = {
	.notifier_call = module_event,
	.priority = INT_MIN,
};

/*
 * A module that is loaded and not about to be unloaded, with a reference; NULL if there is no such
 * module.
 */
static struct module *get_module(const char *name)
{
	struct kobject *kobject = kset_find_obj(THIS_MODULE->mkobj.kobj.kset, name);
	struct module *mod;

	if (!kobject)
		return NULL;
	/* The module's memory stays while there is a reference to the kobject in it. */
	mod = container_of(kobject, struct module_kobject, kobj)->mod;
	if (mod && (mod->state != MODULE_STATE_LIVE || !try_module_get(mod)))
		mod = NULL;
	kobject_put(kobject);
	return mod;
}

static bool has_any(const struct module *mod, const u64 *addresses, u32 count)
{
	while (count--)
		if (within_module(addresses[count], mod))
			return true;
	return false;
}

static void unpin(struct registration *one)
{
	while (one->needed_count)
		module_put(one->needed[--one->needed_count]);
}

/* Keeps the modules loaded that have these addresses: loaded again, they would have others. */
static int pin(struct registration *one, const u64 *addresses, u32 count)
{
	struct kset *modules = THIS_MODULE->mkobj.kobj.kset;
	struct kobject *kobject;
	struct module *mod;
	int err = 0;

	/* The module's memory stays while the kobject in it is in the list. */
	spin_lock(&modules->list_lock);
	list_for_each_entry(kobject, &modules->list, entry) {
		mod = container_of(kobject, struct module_kobject, kobj)->mod;
		if (!mod || mod == THIS_MODULE || !strcmp(mod->name, one->name) ||
		    !has_any(mod, addresses, count))
			continue;
		if (one->needed_count == MOST_NEEDED || !try_module_get(mod)) {
			err = -EAGAIN;
			break;
		}
		one->needed[one->needed_count++] = mod;
	}
	spin_unlock(&modules->list_lock);
	if (err)
		unpin(one);
	return err;
}

/* ---- requests ---- */

/*
 * Hands the description over, with the first number that no other module has: modules of class S
 * have numbers, too.
 */
static int hand_over(struct registration *one, const void *description,
		     const struct hv_privilege *privileges, const struct hv_leaf_list *leaves,
		     u64 *which)
{
	int err;

	for_each_clear_bit(one->number, numbers, HV_REGISTRATIONS) {
		err = guard_views_describe(one->number, description, one->size, privileges,
					   one->privileges, one->has_tally, one->choice, leaves,
					   which);
		if (err != -EBUSY)
			return err;
	}
	return -ENOSPC;
}

/* The resident part verifies the description; here its names are of interest. */
static int describe(struct registration *one, const struct content_header *header,
		    const struct hv_privilege *privileges, const struct hv_leaf_list *leaves,
		    struct dune_guard_answer *answer)
{
	u64 which = 0;
	int err;

	if (header->magic != CONTENT_MAGIC || header->version != CONTENT_VERSION ||
	    strnlen(header->name, CONTENT_NAME) == CONTENT_NAME ||
	    strnlen(header->kernel, CONTENT_NAME) == CONTENT_NAME)
		return guard_refuse(answer, -EINVAL, "the description is damaged");
	if (strcmp(header->kernel, init_utsname()->release))
		return guard_refuse(answer, -EINVAL, "%s is described for the kernel %s, not %s",
				    header->name, header->kernel, init_utsname()->release);
	if (find(header->name))
		return guard_refuse(answer, -EEXIST,
				    "%s is registered already: unregister it first",
				    header->name);
	err = hand_over(one, header, privileges, leaves, &which);
	switch (err) {
	case 0:
		strscpy(one->name, header->name, sizeof(one->name));
		one->entries = header->entries;
		/* The resident part has found so many addresses after the header. */
		err = pin(one, (const u64 *)(header + 1), header->symbols + header->targets);
		if (!err)
			return 0;
		guard_views_undescribe(one->number);
		return guard_refuse(answer, err,
				    "%s refers to a module that is about to be unloaded, or to more than %u",
				    one->name, MOST_NEEDED);
	case -ENOSPC:
		return guard_refuse(answer, err, "there are %u guarded modules already",
				    HV_REGISTRATIONS);
	case -ENOMEM:
		return guard_refuse(answer, err, "the guard has no memory left for %s (%u KB)",
				    header->name, one->size >> 10);
	case -EOPNOTSUPP:
		return guard_refuse(answer, err,
				    "%s is of class S: such a module registers its parts itself, when it is loaded",
				    header->name);
	case -EINVAL:
		return guard_refuse(answer, err, "the description is damaged");
	case -ENOEXEC:
		return guard_refuse(answer, err,
				    "%ps() is not the function that the binding has: bind it again, by dunectl guard leaves",
				    (void *)(unsigned long)leaves->leaves[which].address);
	default:
		return guard_refuse(answer, err, "the guard takes no description (%d)", err);
	}
}

static void add(struct registration *one)
{
	struct module *mod;

	list_add_tail(&one->in_list, &registrations);
	__set_bit(one->number, numbers);
	mod = get_module(one->name);
	if (mod) {
		protect(one, mod, false);
		module_put(mod);
	} else {
		pr_info("%s: registered, and not loaded\n", one->name);
	}
}

static int register_module(struct dune_guard_registration *request,
			   struct dune_guard_answer *answer)
{
	struct hv_privilege *privileges;
	struct hv_leaf_list *leaves;
	struct registration *one;
	void *description;
	int err = -ENOMEM;

	if (request->size > CONTENT_MAX_SIZE || request->size < sizeof(struct content_header))
		return guard_refuse(answer, -EINVAL, "the description is damaged");
	if (request->privilege_count > HV_PRIVILEGES)
		return guard_refuse(answer, -EINVAL, "a module can have %u privileges",
				    HV_PRIVILEGES);
	if (request->leaf_count > HV_LEAVES)
		return guard_refuse(answer, -EINVAL,
				    "a module can execute %u functions of the kernel's",
				    HV_LEAVES);
	if (request->flags & ~DUNE_GUARD_COUNT_CROSSINGS)
		return guard_refuse(answer, -EINVAL, "a flag of the registration is not known");
	if (!choice_is_known(request->on_suspicion))
		return guard_refuse(answer, -EINVAL,
				    "%u is no choice for suspicious activity: see DUNE_GUARD_LOWER",
				    request->on_suspicion);
	one = kzalloc(sizeof(*one), GFP_KERNEL);
	description = vmalloc(request->size);
	privileges = (void *)get_zeroed_page(GFP_KERNEL);
	leaves = (void *)get_zeroed_page(GFP_KERNEL);
	if (!one || !description || !privileges || !leaves)
		goto out;
	one->size = request->size;
	one->privileges = request->privilege_count;
	one->has_tally = request->flags & DUNE_GUARD_COUNT_CROSSINGS;
	one->choice = request->on_suspicion;
	one->leaves = request->leaf_count;
	leaves->count = one->leaves;
	err = -EFAULT;
	if (copy_from_user(description, u64_to_user_ptr(request->description), one->size) ||
	    copy_from_user(privileges, u64_to_user_ptr(request->privileges),
			   one->privileges * sizeof(*privileges)) ||
	    copy_from_user(leaves->leaves, u64_to_user_ptr(request->leaves),
			   one->leaves * sizeof(leaves->leaves[0])))
		goto out;
	err = describe(one, description, privileges, leaves, answer);
	if (err)
		goto out;
	strscpy(request->name, one->name, sizeof(request->name));
	add(one);
	one = NULL;
out:
	free_page((unsigned long)leaves);
	free_page((unsigned long)privileges);
	vfree(description);
	kfree(one);
	return err;
}

static void forget(struct registration *one)
{
	expose(one);
	guard_views_undescribe(one->number);
	unpin(one);
	list_del(&one->in_list);
	__clear_bit(one->number, numbers);
	kfree(one);
}

static int unregister(const char *name, struct dune_guard_answer *answer)
{
	struct registration *one = find(name);

	if (!one)
		return guard_refuse(answer, -ENOENT, "%s is not registered", name);
	pr_info("%s: not registered any more\n", name);
	forget(one);
	return 0;
}

/* Of a module that was armed: the resident part may have ended that. */
static u32 state_of(unsigned int number)
{
	s64 state = guard_views_state(number);

	if (state == REGISTRATION_ARMED || state == REGISTRATION_SEALED)
		return DUNE_GUARD_ARMED;
	return state >= 0 && state & HV_STATE_STOPPED ? DUNE_GUARD_STOPPED : DUNE_GUARD_ENDED;
}

static struct registration *find_index(u32 index)
{
	struct registration *one;

	list_for_each_entry(one, &registrations, in_list)
		if (!index--)
			return one;
	return NULL;
}

static int show(struct dune_guard_registration *request)
{
	struct registration *one = find_index(request->index);

	if (!one)
		return -ENOENT;
	strscpy(request->name, one->name, sizeof(request->name));
	request->size = one->size;
	request->state = one->state;
	if (one->state == DUNE_GUARD_ARMED)
		request->state = state_of(one->number);
	request->error = one->error;
	request->finding = one->finding.verdict;
	request->region = one->finding.region;
	request->offset = one->finding.offset;
	request->entries = one->entries;
	request->privilege_count = one->privileges;
	request->leaf_count = one->leaves;
	request->flags = one->has_tally ? DUNE_GUARD_COUNT_CROSSINGS : 0;
	request->on_suspicion = one->choice;
	return 0;
}

/* The next row that is used. */
static int count(struct dune_guard_crossings *crossings)
{
	const struct registration *one = find_index(crossings->index);
	u64 words[HV_TALLY_WORDS], sum;
	unsigned int i;
	int err;

	if (!one)
		return -ENOENT;
	if (!one->has_tally)
		return -ENODATA;
	for (;; crossings->row++) {
		err = guard_views_tally(one->number, crossings->row, words);
		if (err)
			return err;
		/* The address, and by enum border_crossing. */
		for (sum = 0, i = 0; i < DUNE_GUARD_CROSSINGS; i++) {
			crossings->crossings[i] = words[1 + BORDER_IN_CALL + i];
			sum += crossings->crossings[i];
		}
		crossings->address = words[0];
		if (sum)
			return 0;
	}
}

long guard_registration_crossings(void __user *user, int state)
{
	struct dune_guard_crossings crossings;
	int err;

	if (state == DUNE_GUARD_OFF)
		return -EINVAL;
	if (copy_from_user(&crossings, user, sizeof(crossings)))
		return -EFAULT;
	mutex_lock(&registrations_lock);
	err = count(&crossings);
	mutex_unlock(&registrations_lock);
	if (err)
		return err;
	return copy_to_user(user, &crossings, sizeof(crossings)) ? -EFAULT : 0;
}

static int answer_request(unsigned int command, struct dune_guard_registration *request,
			  int state, struct dune_guard_answer *answer)
{
	if (command == DUNE_GUARD_GET_REGISTRATION)
		return show(request);
	if (state == DUNE_GUARD_OFF)
		return guard_refuse(answer, -EINVAL,
				    "the guard is not launched: dunectl guard launch");
	if (state == DUNE_GUARD_SEALED)
		return guard_refuse(answer, -EPERM, "the guard is sealed: its registrations stay");
	if (command == DUNE_GUARD_UNREGISTER)
		return unregister(request->name, answer);
	return register_module(request, answer);
}

long guard_registration_request(unsigned int command, void __user *user, int state)
{
	struct dune_guard_registration request;
	struct dune_guard_answer answer = {};
	int err;

	if (copy_from_user(&request, user, sizeof(request)))
		return -EFAULT;
	request.name[sizeof(request.name) - 1] = 0;
	mutex_lock(&registrations_lock);
	err = answer_request(command, &request, state, &answer);
	mutex_unlock(&registrations_lock);
	if (answer.text[0])
		pr_err("%s\n", answer.text);
	memcpy(request.text, answer.text, sizeof(request.text));
	return copy_to_user(user, &request, sizeof(request)) ? -EFAULT : err;
}

void guard_registrations_drop(void)
{
	struct registration *one, *next;

	mutex_lock(&registrations_lock);
	list_for_each_entry_safe(one, next, &registrations, in_list)
		forget(one);
	mutex_unlock(&registrations_lock);
}

int guard_registrations_init(void)
{
	return register_module_notifier(&module_notifier);
}

void guard_registrations_cleanup(void)
{
	unregister_module_notifier(&module_notifier);
}
