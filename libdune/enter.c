// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * dune_enter(): all that a process needs to go on in ring 0 of a guest.
 *
 * Once for the process: arena, IDT, the first page table with just what the
 * switch itself touches (the rest comes by page faults, pgtable.c). For the
 * thread: its block and vCPU. Then dune_host_switch() leaves the caller in the
 * guest, and its host half in dune_host_loop() (host.c).
 */
#include "internal.h"

struct dune_process dune_process;

#define GB		(1ULL << 30)

/* CPUID: 1-GByte pages are available (bit 26 of EDX). */
static int have_1g_pages(void)
{
	u32 eax = 0x80000001, ebx, ecx, edx;

	__asm__ volatile("cpuid"
			 : "+a" (eax), "=b" (ebx), "=c" (ecx), "=d" (edx));
	return edx >> 26 & 1;
}

static int init_process(const struct dune_config *cfg)
{
	struct dune_process *p = &dune_process;
	int err;

	if (p->ready)
		return 0;
	err = dune_page_init(cfg);
	if (err)
		return err;
	p->super_base = cfg->super_base;
	p->super_size = cfg->super_size;
	if (cfg->flags & DUNE_ENTER_SMAP) {
		p->vcpu_flags = DUNE_VCPU_SMAP;
		p->smap = !!(p->info.features & DUNE_FEATURE_SMAP);
	}
	dune_pt_init(have_1g_pages());
	p->root = dune_pt_new();
	if (!p->root)
		return -ENOMEM;
	dune_idt_init();
	p->ready = 1;
	return 0;
}

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

static int check(const struct dune_config *cfg)
{
	u64 any = 0;
	int i;

	for (i = 0; i < 3; i++)
		any |= cfg->reserved[i];
	if (cfg->size != sizeof(*cfg) || any || (cfg->flags & ~DUNE_ENTER_SMAP) ||
	    ((cfg->super_base | cfg->super_size) & (GB - 1)))
		return -EINVAL;
	if ((cfg->flags & DUNE_ENTER_SMAP) && !cfg->super_size)
		return -EINVAL;
	return 0;
}

int dune_enter(const struct dune_config *cfg)
{
	static const struct dune_config defaults = { .size = sizeof(defaults) };
	struct dune_thread *t = NULL;
	long dev, err;

	if (dune_active())
		return 0;
	if (!cfg)
		cfg = &defaults;
	/* Written before anything in this page is read: one page fault. */
	WRITE_ONCE(dune_process.entered, 1);
	err = check(cfg);
	if (err)
		return err;
	dev = dune_device_open();
	if (dev < 0)
		return dev;
	err = init_process(cfg);
	if (!err) {
		t = dune_thread_new();
		err = t ? 0 : -ENOMEM;
	}
	if (err) {
		sys3(__NR_close, dev, 0, 0);
		return err;
	}

	t->sighand = &dune_process.sighand;
	init_state(t);
	dune_pt_touch_core(dune_process.root);
	err = dune_vcpu_open(t, dev);
	if (err) {
		dune_thread_free(t);
		return err;
	}
	dune_host_import();
	return dune_host_switch(t, t->run);
}
