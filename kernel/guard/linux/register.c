// SPDX-License-Identifier: GPL-2.0-only
/*
 * Registrations: modules that are known by their content. A description (guard/hv/content.h) names
 * a module; when Linux has loaded it, its memory is compared with the description, once, after all
 * that Linux patches at that time and before its init runs. A module that is loaded already is
 * compared when it is registered.
 *
 * So far this is the comparison alone: it gives no privilege, and nothing prevents that the module
 * is changed afterwards. Therefore requests are accepted only with the parameter `registrations`,
 * which is for tests.
 */
#define pr_fmt(fmt) "dune-guard: " fmt

#include <linux/kobject.h>
#include <linux/list.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/moduleparam.h>
#include <linux/mutex.h>
#include <linux/notifier.h>
#include <linux/printk.h>
#include <linux/slab.h>
#include <linux/string.h>
#include <linux/uaccess.h>
#include <linux/utsname.h>

#include "guard/hv/content.h"
#include "guard/linux/guard.h"

#define MAX_REGISTRATIONS	16

static bool registrations_allowed;
module_param_named(registrations, registrations_allowed, bool, 0400);
MODULE_PARM_DESC(registrations,
		 "For tests: accept registrations, whose content is compared and not enforced");

/**
 * struct registration - a description and what became of its module
 * @in_list:	in registrations
 * @blob:	the description, which @content has open
 * @symbols:	for content_check()
 * @state:	DUNE_GUARD_WAITING, ...
 * @finding:	of the last comparison
 */
struct registration {
	struct list_head in_list;
	void *blob;
	struct content content;
	struct content_symbol *symbols;
	u32 state;
	struct content_finding finding;
};

/*
 * All registrations and their fields, under the lock. It is taken after the one of state.c, and by
 * the notifier without that.
 */
static DEFINE_MUTEX(registrations_lock);
static LIST_HEAD(registrations);
static unsigned int count;

/* The interface has the description's numbers. */
static_assert(DUNE_GUARD_NAME == CONTENT_NAME);
static_assert(DUNE_GUARD_CONTENT_GAP == (int)CONTENT_GAP);

static struct registration *find(const char *name)
{
	struct registration *one;

	list_for_each_entry(one, &registrations, in_list)
		if (!strcmp(one->content.header->name, name))
			return one;
	return NULL;
}

static void free_registration(struct registration *one)
{
	kvfree(one->symbols);
	kvfree(one->blob);
	kfree(one);
}

/* ---- a module's memory ---- */

static void set_region(struct content_memory *memory, enum content_region region, const void *base,
		       unsigned long size)
{
	memory[region].address = (unsigned long)base;
	memory[region].size = base ? PAGE_ALIGN(size) : 0;
}

#ifdef HAVE_MODULE_MEMORY
static void find_regions(const struct module *mod, struct content_memory *memory, bool has_init)
{
	static const enum content_region regions[MOD_MEM_NUM_TYPES] = {
		[MOD_TEXT] = CONTENT_TEXT,
		[MOD_DATA] = CONTENT_DATA,
		[MOD_RODATA] = CONTENT_RODATA,
		[MOD_RO_AFTER_INIT] = CONTENT_RO_AFTER_INIT,
		[MOD_INIT_TEXT] = CONTENT_INIT_TEXT,
		[MOD_INIT_DATA] = CONTENT_INIT_DATA,
		[MOD_INIT_RODATA] = CONTENT_INIT_RODATA,
	};
	int type;

	for (type = 0; type < MOD_MEM_NUM_TYPES; type++)
		if (has_init || !mod_mem_type_is_init(type))
			set_region(memory, regions[type], mod->mem[type].base,
				   mod->mem[type].size);
}
#else
/* Code, constants, data that is constant after init, and data; each size includes those before. */
static void find_layout(const struct module_layout *layout, struct content_memory *memory,
			enum content_region text, enum content_region rodata,
			enum content_region ro_after_init, enum content_region data)
{
	set_region(memory, text, layout->base, layout->text_size);
	set_region(memory, rodata, layout->base + layout->text_size,
		   layout->ro_size - layout->text_size);
	if (ro_after_init != data)
		set_region(memory, ro_after_init, layout->base + layout->ro_size,
			   layout->ro_after_init_size - layout->ro_size);
	set_region(memory, data, layout->base + layout->ro_after_init_size,
		   layout->size - layout->ro_after_init_size);
}

static void find_regions(const struct module *mod, struct content_memory *memory, bool has_init)
{
	find_layout(&mod->core_layout, memory, CONTENT_TEXT, CONTENT_RODATA, CONTENT_RO_AFTER_INIT,
		    CONTENT_DATA);
	if (has_init && mod->init_layout.base)
		find_layout(&mod->init_layout, memory, CONTENT_INIT_TEXT, CONTENT_INIT_RODATA,
			    CONTENT_INIT_DATA, CONTENT_INIT_DATA);
}
#endif

static const enum content_region compared[] = {
	CONTENT_TEXT, CONTENT_RODATA, CONTENT_INIT_TEXT, CONTENT_INIT_RODATA,
};

/* The addresses of all pages of the regions that are compared; NULL without memory. */
static const u8 **find_pages(struct content_memory *memory)
{
	unsigned long all = 0, page;
	const u8 **pages, **next;
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(compared); i++)
		all += memory[compared[i]].size / PAGE_SIZE;
	pages = kvmalloc_array(all + 1, sizeof(*pages), GFP_KERNEL);
	if (!pages)
		return NULL;
	next = pages;
	for (i = 0; i < ARRAY_SIZE(compared); i++) {
		struct content_memory *one = &memory[compared[i]];

		one->pages = next;
		for (page = 0; page < one->size / PAGE_SIZE; page++)
			*next++ = (const u8 *)(unsigned long)(one->address + page * PAGE_SIZE);
	}
	return pages;
}

/* ---- comparing ---- */

static const char *const verdicts[CONTENT_VERDICTS] = {
	[CONTENT_NO_REGION] = "no memory for the section",
	[CONTENT_BYTES] = "other bytes in the section",
	[CONTENT_RELOCATION] = "a relocation leads elsewhere",
	[CONTENT_SITE] = "a patch that its tables do not allow",
	[CONTENT_GAP] = "bytes between its sections",
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

/* @mod stays meanwhile, and so does the memory of its init if @has_init. */
static void compare(struct registration *one, const struct module *mod, bool has_init)
{
	struct content_memory memory[CONTENT_REGIONS] = {};
	const char *name = one->content.header->name;
	const u8 **pages;

	find_regions(mod, memory, has_init);
	/* Other variables follow in the same page. */
	memory[CONTENT_PER_CPU].address = (unsigned long)mod->percpu;
	memory[CONTENT_PER_CPU].size = mod->percpu_size;
	pages = find_pages(memory);
	if (!pages) {
		one->state = DUNE_GUARD_WAITING;
		pr_err("%s: not compared, since there is no memory\n", name);
		return;
	}
	one->finding = content_check(&one->content, memory, one->symbols);
	kvfree(pages);
	if (one->finding.verdict == CONTENT_MATCHES) {
		one->state = DUNE_GUARD_MATCHES;
		pr_info("%s: loaded, and its content is the registered one%s\n", name,
			has_init ? "" : " (without init, which is gone)");
	} else {
		one->state = DUNE_GUARD_DIFFERS;
		pr_err("%s: loaded, and not the registered module: %s at %s+%#x\n", name,
		       verdicts[one->finding.verdict], regions[one->finding.region],
		       one->finding.offset);
	}
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
			compare(one, mod, true);
			break;
		case MODULE_STATE_LIVE:
			/* It was registered while it was loaded, after the event before. */
			if (one->state == DUNE_GUARD_WAITING)
				compare(one, mod, false);
			break;
		case MODULE_STATE_GOING:
			one->state = DUNE_GUARD_WAITING;
			pr_info("%s: unloaded\n", mod->name);
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

/* A module that is loaded and not about to be unloaded, with a reference; NULL without one. */
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

/* ---- requests ---- */

static struct registration *copy_description(const struct dune_guard_registration *request,
					     struct dune_guard_answer *answer, int *err)
{
	struct registration *one;
	u32 size = request->size;

	*err = -ENOMEM;
	if (size > CONTENT_MAX_SIZE || size < sizeof(struct content_header)) {
		*err = guard_refuse(answer, -EINVAL, "the description is damaged");
		return NULL;
	}
	one = kzalloc(sizeof(*one), GFP_KERNEL);
	if (!one)
		return NULL;
	one->blob = kvmalloc(size, GFP_KERNEL);
	if (!one->blob)
		goto fail;
	*err = -EFAULT;
	if (copy_from_user(one->blob, u64_to_user_ptr(request->description), size))
		goto fail;
	if (!content_open(&one->content, one->blob, size)) {
		*err = guard_refuse(answer, -EINVAL, "the description is damaged");
		goto fail;
	}
	*err = -ENOMEM;
	one->symbols = kvcalloc(one->content.header->symbols + 1, sizeof(*one->symbols),
				GFP_KERNEL);
	if (!one->symbols)
		goto fail;
	return one;
fail:
	free_registration(one);
	return NULL;
}

static int add(struct registration *one, struct dune_guard_answer *answer)
{
	const struct content_header *header = one->content.header;
	struct module *mod;

	if (strcmp(header->kernel, init_utsname()->release))
		return guard_refuse(answer, -EINVAL, "%s is described for the kernel %s, not %s",
				    header->name, header->kernel, init_utsname()->release);
	if (find(header->name))
		return guard_refuse(answer, -EEXIST,
				    "%s is registered already: unregister it first",
				    header->name);
	if (count >= MAX_REGISTRATIONS)
		return guard_refuse(answer, -ENOSPC, "there are %u registrations already", count);
	list_add_tail(&one->in_list, &registrations);
	count++;
	mod = get_module(header->name);
	if (mod) {
		compare(one, mod, false);
		module_put(mod);
	} else {
		pr_info("%s: registered, and not loaded\n", header->name);
	}
	return 0;
}

static int remove(const char *name, struct dune_guard_answer *answer)
{
	struct registration *one = find(name);

	if (!one)
		return guard_refuse(answer, -ENOENT, "%s is not registered", name);
	pr_info("%s: not registered any more\n", name);
	list_del(&one->in_list);
	count--;
	free_registration(one);
	return 0;
}

static int show(struct dune_guard_registration *request)
{
	struct registration *one;
	u32 index = 0;

	list_for_each_entry(one, &registrations, in_list) {
		if (index++ != request->index)
			continue;
		strscpy(request->name, one->content.header->name, sizeof(request->name));
		request->size = one->content.header->size;
		request->state = one->state;
		request->class = one->content.header->class;
		request->finding = one->finding.verdict;
		request->region = one->finding.region;
		request->offset = one->finding.offset;
		request->entries = one->content.header->entries;
		return 0;
	}
	return -ENOENT;
}

static int answer_request(unsigned int command, struct dune_guard_registration *request,
			  int state, struct dune_guard_answer *answer)
{
	struct registration *one;
	int err;

	if (command == DUNE_GUARD_GET_REGISTRATION)
		return show(request);
	if (state == DUNE_GUARD_OFF)
		return guard_refuse(answer, -EINVAL,
				    "the guard is not launched: dunectl guard launch");
	if (state == DUNE_GUARD_SEALED)
		return guard_refuse(answer, -EPERM, "the guard is sealed: its registrations stay");
	if (command == DUNE_GUARD_UNREGISTER)
		return remove(request->name, answer);
	one = copy_description(request, answer, &err);
	if (!one)
		return err;
	err = add(one, answer);
	if (err)
		free_registration(one);
	else
		strscpy(request->name, one->content.header->name, sizeof(request->name));
	return err;
}

long guard_registration_request(unsigned int command, void __user *user, int state)
{
	struct dune_guard_registration request;
	struct dune_guard_answer answer = {};
	int err;

	if (!registrations_allowed)
		return -ENOTTY;
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
	list_for_each_entry_safe(one, next, &registrations, in_list) {
		list_del(&one->in_list);
		free_registration(one);
	}
	count = 0;
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
