// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * dune_enter(): everything that a process needs to continue in ring 0 of a guest.
 *
 * Once for the process: the arena, the IDT, and the first page table with only
 * the entries that the switch itself needs (page faults add the others,
 * memory/table.c). For the thread: its block and vCPU. Then dune_host_switch()
 * returns to the caller in the guest, while the host half of the thread stays in
 * dune_host_loop() (loop.c).
 */
#include "cpuid.h"
#include "host.h"

struct dune_process dune_process;

#define ARENA_MIN	(4 * BLOCK_SIZE)
#define FLAGS		(DUNE_ENTER_SMAP | DUNE_ENTER_RING3_SIGNALS)

const char *dune_enter_error(void)
{
	return dune_process.reason;
}

/* Records @text as the reason of the error. Returns @err. */
static int refuse(int err, const char *text)
{
	dune_process.reason = text;
	return err;
}

static bool have_1g_pages(void)
{
	return cpuid(CPUID_EXTENDED, 0).edx & CPUID_EXTENDED_EDX_1G;
}

/* Sets up everything that threads share. Does nothing once that has succeeded. */
static int init_process(const struct dune_config *cfg)
{
	struct dune_process *p = &dune_process;

	if (p->ready)
		return 0;
	dune_page_init(cfg);
	p->super_base = cfg->super_base;
	p->super_size = cfg->super_size;
	p->flags = cfg->flags;
	p->handler = (u64)dune_host_handler;
	p->restorer = (u64)dune_host_restorer;
	if (cfg->flags & DUNE_ENTER_SMAP) {
		p->vcpu_flags = DUNE_VCPU_SMAP;
		p->smap = !!(p->info.features & DUNE_FEATURE_SMAP);
	}
	dune_pt_init(have_1g_pages());
	p->root = dune_pt_new();
	if (!p->root)
		return -ENOMEM;
	dune_idt_init(p->smap ? dune_stubs_smap : dune_stubs);
	p->ready = 1;
	return 0;
}

/* Fills the state in which the calling thread continues in the guest. */
static void init_state(struct dune_thread *t)
{
	u64 fs = 0;

	sys3(__NR_arch_prctl, ARCH_GET_FS, (long)&fs, 0);
	dune_state_init(t, &t->state);
	t->state.fs.base = fs;
	t->root = dune_process.root;
	t->state.cr3 = to_gpa((u64)t->root);
	sys3(__NR_sigaltstack, 0, (long)&t->altstack, 0);
}

static bool in_range(const struct dune_config *cfg, const void *p, u64 size)
{
	u64 at = (u64)p - cfg->super_base;

	return at <= cfg->super_size && size <= cfg->super_size - at;
}

static u64 arena_end(const struct dune_config *cfg)
{
	return (u64)cfg->arena + (cfg->arena_limit ?: cfg->arena_size);
}

/* Returns a text about the first error in @cfg, or NULL if @cfg is right. */
static const char *config_error(const struct dune_config *cfg)
{
	u64 arena = (u64)cfg->arena, any = 0;
	int i;

	if (cfg->size != sizeof(*cfg))
		return "size is not sizeof(struct dune_config)";
	for (i = 0; i < 3; i++)
		any |= cfg->reserved[i];
	if (any)
		return "reserved is not zero";
	if (cfg->flags & ~FLAGS)
		return "flags has an unknown bit";
	if (!arena && cfg->arena_size)
		return "arena_size without arena";
	if (arena & (BLOCK_SIZE - 1))
		return "arena is not aligned to 64 KB";
	if (arena && cfg->arena_size < ARENA_MIN)
		return "arena_size is less than 256 KB";
	if (cfg->arena_limit && !arena)
		return "arena_limit without arena";
	if (cfg->arena_limit && cfg->arena_limit < cfg->arena_size)
		return "arena_limit is less than arena_size";
	if (cfg->arena_limit && ((cfg->arena_limit | cfg->arena_size) & (ARENA_STEP - 1)))
		return "arena_size or arena_limit is not a multiple of 1 MB";
	if (cfg->arena_limit > GB - arena % GB)
		return "arena_limit ends in another gigabyte than the arena begins";
	if (cfg->arena_size > USER_TOP || arena > USER_TOP - cfg->arena_size)
		return "arena ends above the addresses of a process";
	if ((cfg->super_base | cfg->super_size) & (GB - 1))
		return "super_base or super_size is not a multiple of 1 GB";
	if (cfg->super_size > USER_TOP || cfg->super_base > USER_TOP - cfg->super_size)
		return "the supervisor range ends above 2^47";
	if ((cfg->flags & DUNE_ENTER_SMAP) && !cfg->super_size)
		return "DUNE_ENTER_SMAP without a supervisor range";
	if (!cfg->super_size)
		return cfg->super_base ? "super_base without super_size" : NULL;
	/* Ring 3 must not reach page tables, IDT, TSS and handlers. */
	if (!in_range(cfg, &dune_process, sizeof(dune_process)) ||
	    !in_range(cfg, dune_trap_table, sizeof(dune_trap_table)))
		return "the supervisor range leaves out data of libdune";
	/* The library's own arena: a part of its data, and a mapping (map_in_range()). */
	if (arena ? !in_range(cfg, cfg->arena, arena_end(cfg) - arena) :
		    cfg->super_base + cfg->super_size != USER_TOP)
		return "the supervisor range leaves out a part of the arena";
	return NULL;
}

/* Returns whether the process was set up with another configuration than @cfg. */
static bool differs(const struct dune_config *cfg)
{
	const struct dune_process *p = &dune_process;

	return p->ready && (p->super_base != cfg->super_base ||
			    p->super_size != cfg->super_size ||
			    p->flags != cfg->flags || (cfg->arena && !dune_in_arena(cfg->arena)));
}

/* Returns 0, or an error with its reason if dune_enter() cannot use @cfg. */
static int check(const struct dune_config *cfg)
{
	const char *error = config_error(cfg);

	if (error)
		return refuse(-EINVAL, error);
	if (differs(cfg))
		return refuse(-EBUSY, "the process was set up with another configuration");
	return 0;
}

/*
 * Returns whether a processor executes this, and not an interpreter such as valgrind: on
 * a processor CS is Linux's for user mode, or the guest's.
 */
static bool is_processor(void)
{
	u16 cs;

	__asm__ volatile("mov %%cs, %0" : "=r" (cs));
	return (cs & 3) == 3 || cs == KERNEL_CS;
}

/* Sets up the process, and makes a block with a vCPU for the calling thread. */
static int make_thread(const struct dune_config *cfg, struct dune_thread **made)
{
	struct dune_thread *t = NULL;
	const char *why;
	long dev = dune_device_open(&why);
	int err;

	if (dev < 0)
		return refuse(dev, why);
	err = init_process(cfg);
	if (!err) {
		t = dune_thread_new();
		err = t ? 0 : -ENOMEM;
	}
	if (err) {
		dune_device_close(dev);
		return refuse(err, "no memory in the arena");
	}

	t->sighand = &dune_process.sighand;
	init_state(t);
	err = dune_pt_touch_core(dune_process.root);
	/*
	 * The guest first uses the caller's stack. There its entries would cost a page fault, and
	 * on Intel two nested faults and an exit to user mode for its granule.
	 */
	if (!err)
		err = dune_pt_touch(dune_process.root, __builtin_frame_address(0), 1);
	if (err) {
		dune_device_close(dev);
		dune_thread_free(t);
		return refuse(err, "no memory or no granule for the first page table");
	}
	err = dune_vcpu_open(t, dev);
	if (err) {
		dune_thread_free(t);
		return refuse(err, "no vCPU could be made");
	}
	dune_actions_import();
	dune_process.reason = NULL;
	*made = t;
	return 0;
}

int dune_enter(const struct dune_config *cfg)
{
	/* On the stack: an entry reads no constants, whose page may not be mapped yet. */
	struct dune_config defaults = { .size = sizeof(defaults) };
	u32 *entering = &dune_process.entering;
	struct dune_thread *t = NULL;
	bool ring3_signals;
	int err;

	/* Written before anything in this page is read: one page fault. */
	WRITE_ONCE(dune_process.entered, 1);
	if (!is_processor())
		return refuse(-EOPNOTSUPP,
			      "the instructions are interpreted (by valgrind?), not executed");
	if (dune_active()) {
		err = cfg ? check(cfg) : 0;
		if (!err)
			dune_process.reason = NULL;
		return err;
	}
	/* One thread at a time. Others yield: the holder makes system calls. */
	while (__atomic_exchange_n(entering, 1, __ATOMIC_ACQUIRE))
		sys3(__NR_sched_yield, 0, 0, 0);
	err = cfg ? check(cfg) : 0;
	/* NULL stands for the process's configuration or, if it has none, the default. */
	if (!err)
		err = make_thread(cfg ? cfg : &defaults, &t);
	__atomic_store_n(entering, 0, __ATOMIC_RELEASE);
	if (err)
		return err;
	/* Read here: on Intel the guest's first access to this page is a nested fault. */
	ring3_signals = dune_process.flags & DUNE_ENTER_RING3_SIGNALS;
	dune_host_switch(t, t->run);
	/* Handlers wait until ring 3 runs. */
	if (ring3_signals)
		dune_irq_save();
	return 0;
}
