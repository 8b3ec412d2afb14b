// SPDX-License-Identifier: GPL-2.0-only
/*
 * Calls of the guarded module in all ways, and attacks by single fetches, exchanged pages and
 * patches. The commands are those of outside.c.
 */
#include <linux/io.h>
#include <linux/kthread.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/smp.h>
#include <linux/vmalloc.h>
#include <asm/msr.h>
#include <asm/pgtable.h>

#include "guard/linux/views.h"
#include "outside.h"

/* Since 6.16 the size is in the name. */
#ifndef rdmsrq
#define rdmsrq	rdmsrl
#define wrmsrq	wrmsrl
#endif

static const struct inside *inside;
static u64 *private;
static u64 back_rip, back_rsp;

/* What the module calls. */
static u64 plain(u64 argument)
{
	return argument + 1;
}

u64 (*outside_target)(const u64 *from);

/* The instruction of a function after the NOP for ftrace, which has 5 bytes. */
const void *outside_after_entry(const void *function)
{
	const u8 *code = function;

	return function + (code[0] == 0xf3 ? 9 : 5);
}

static u64 count_back(u64 argument)
{
	back_rip = (u64)__builtin_return_address(0);
	back_rsp = (u64)__builtin_frame_address(0);
	return argument + 1;
}

/* Jumps to @at, or replays a return there, with another GS base than the kernel's. */
static u64 with_forged_gs(const void *at, bool replays)
{
	unsigned long flags;
	u64 base, read;

	local_irq_save(flags);
	rdmsrq(MSR_GS_BASE, base);
	wrmsrq(MSR_GS_BASE, base + 64);
	read = replays ? outside_replay(at, private) : outside_jump(at, private);
	wrmsrq(MSR_GS_BASE, base);
	local_irq_restore(flags);
	return read;
}

/* Replaces the page with an entry point in the kernel's tables, and enters there. */
static u64 exchange(u64 frame)
{
	unsigned long at = (unsigned long)inside->read;
	pte_t *entry = outside_entry_of(at), was = *entry;
	u64 read;

	outside_catch_int3(true);
	preempt_disable();
	set_pte(entry, pfn_pte(frame >> PAGE_SHIFT, PAGE_KERNEL_EXEC));
	on_each_cpu(outside_flush, NULL, 1);
	read = outside_jump((void *)at, private);
	set_pte(entry, was);
	on_each_cpu(outside_flush, NULL, 1);
	preempt_enable();
	outside_catch_int3(false);
	return read;
}

/* The module reads at a physical address in the upper half of all, where M's page tables are. */
static u64 search_tables(void)
{
	u64 half = 1ULL << (min_t(u64, boot_cpu_data.x86_phys_bits, 48) - 1);
	u64 *page = vmalloc(PAGE_SIZE), read;
	pte_t *entry, was;

	if (!page)
		return -ENOMEM;
	WRITE_ONCE(*page, 0);
	entry = outside_entry_of((unsigned long)page);
	was = *entry;
	set_pte(entry, pfn_pte((half + 0x123456000) >> PAGE_SHIFT, PAGE_KERNEL));
	outside_flush(NULL);
	read = inside->fix_up(page);
	set_pte(entry, was);
	on_each_cpu(outside_flush, NULL, 1);
	vfree(page);
	return read;
}

/* The page is our own, and its code reads the private page, too. */
static u64 remap(void)
{
	static const u8 code[] = { 0x48, 0x8b, 0x07, 0xc3 };	/* mov (%rdi), %rax; ret */
	void *page = (void *)get_zeroed_page(GFP_KERNEL);
	u64 read;

	if (!page)
		return ~0ULL;
	memcpy(page + ((unsigned long)inside->read & ~PAGE_MASK), code, sizeof(code));
	read = exchange(virt_to_phys(page));
	free_page((unsigned long)page);
	return read;
}

static u64 patch(const void *at, u8 value)
{
	u8 was = outside_write_byte(at, value);
	u64 read;

	outside_catch_int3(true);
	read = *(const u8 *)at == value ? inside->read(private) : ~0ULL;
	outside_catch_int3(false);
	outside_write_byte(at, was);
	return read;
}

static void call_on_cpu(void *data)
{
	*(u64 *)data = inside->spin(100000, false);
}

/* Many threads spin inside, and sleep in a call: they are preempted, and change CPUs. */
static atomic_t threads, good;

static int thread(void *rounds)
{
	u64 i, ok = 1;

	for (i = 0; i < (u64)rounds; i++)
		ok &= inside->spin(300000, true) == SECRET && inside->sleep(1) == SECRET &&
		      inside->nest(3) == SECRET;
	atomic_add(ok, &good);
	atomic_dec(&threads);
	return 0;
}

static u64 crowd(u64 count, u64 rounds)
{
	u64 i;

	atomic_set(&threads, count);
	atomic_set(&good, 0);
	for (i = 0; i < count; i++)
		if (IS_ERR(kthread_run(thread, (void *)rounds, "inside/%llu", i)))
			atomic_dec(&threads);
	while (atomic_read(&threads))
		schedule_timeout_uninterruptible(1);
	return atomic_read(&good);
}

/* The key is switched while other CPUs are in M: a CPU that has it switched finds it so. */
static int look_at_key(void *unused)
{
	while (!kthread_should_stop()) {
		u64 is = inside->key();

		if (is != 1 && is != 2)
			atomic_inc(&threads);
		inside->spin(1000, true);
		cond_resched();
	}
	return 0;
}

static u64 switch_keys(u64 rounds)
{
	struct task_struct *task;
	u64 bad = 0, i;

	atomic_set(&threads, 0);
	task = kthread_run(look_at_key, NULL, "inside/key");
	if (IS_ERR(task))
		return ~0ULL;
	for (i = 0; i < rounds; i++) {
		inside->switch_key(!(i & 1));
		bad += inside->key() != (i & 1 ? 1 : 2);
	}
	inside->switch_key(false);
	kthread_stop(task);
	return bad + atomic_read(&threads);
}

/* Instructions, in counting mode. */
static u64 cost(u64 which)
{
	u64 best = ~0ULL, empty = ~0ULL, start, i;
	unsigned long flags;

	local_irq_save(flags);
	for (i = 0; i < 100; i++) {
		start = rdtsc_ordered();
		empty = min(empty, rdtsc_ordered() - start);
		start = rdtsc_ordered();
		if (which == 0)
			inside->nothing();
		else if (which == 1)
			inside->raw_call(plain, private, 0);
		else
			asm volatile("vmmcall" : : "a" (HV_CALL) : "memory");
		best = min(best, rdtsc_ordered() - start);
	}
	local_irq_restore(flags);
	return best - empty;
}

static u64 string(void)
{
	static const char from[] = "from the kernel to the module";
	char to[sizeof(from)] = "";
	u64 read = inside->string(to, from);

	return !strcmp(to, from) ? read : 0;
}

static u64 call(const char *word, u64 a, u64 b)
{
	u64 value = 0;

	if (!strcmp(word, "read"))
		return inside->read(private);
	if (!strcmp(word, "write")) {
		inside->write(private, a);
		return inside->read(private);
	}
	if (!strcmp(word, "call"))
		return inside->call(plain, a);
	if (!strcmp(word, "raw-call"))
		return inside->raw_call(plain, private, 0);
	if (!strcmp(word, "jumps-back")) {
		outside_target = inside->read;
		return inside->raw_call(outside_jumps_back, private, (u64)private);
	}
	if (!strcmp(word, "nest"))
		return inside->nest(a);
	if (!strcmp(word, "spin"))
		return inside->spin(a, b);
	if (!strcmp(word, "spin-on")) {
		smp_call_function_single(a, call_on_cpu, &value, 1);
		return value;
	}
	if (!strcmp(word, "warn"))
		return inside->warn();
	if (!strcmp(word, "fix-up"))
		return inside->fix_up((void *)0xdead000000000000);
	if (!strcmp(word, "fix-up-page"))
		return inside->fix_up((void *)0xffffffffff000000);
	if (!strcmp(word, "port")) {
		inside->port(a, b);
		return 0;
	}
	if (!strcmp(word, "user"))
		return inside->user((const u64 *)a);
	if (!strcmp(word, "string"))
		return string();
	if (!strcmp(word, "sleep"))
		return inside->sleep(a);
	if (!strcmp(word, "start")) {
		inside->start();
		return 0;
	}
	if (!strcmp(word, "stop")) {
		inside->stop();
		return 0;
	}
	if (!strcmp(word, "runs"))
		return inside->runs();
	if (!strcmp(word, "crowd"))
		return crowd(a, b);
	if (!strcmp(word, "keys"))
		return switch_keys(a);
	if (!strcmp(word, "init-again"))
		return outside_module()->init();
	if (!strcmp(word, "leaf"))
		return inside->leaf();
	if (!strcmp(word, "key"))
		return inside->key();
	if (!strcmp(word, "cost"))
		return cost(a);
	if (!strcmp(word, "middle"))
		return outside_jump(inside->middle, private);
	if (!strcmp(word, "after-entry"))
		return outside_jump(outside_after_entry(inside->read), private);
	if (!strcmp(word, "fault-after-entry"))
		return outside_jump(outside_after_entry(inside->fix_up), (void *)-0x1000000L);
	if (!strcmp(word, "return-into"))
		return outside_return_into(inside->middle, private);
	if (!strcmp(word, "call-from"))
		return outside_call_from(inside->nothing, private, inside->middle);
	if (!strcmp(word, "replay"))
		return outside_replay(inside->after_call, private);
	if (!strcmp(word, "replay-after-call")) {
		inside->raw_call(count_back, private, 0);
		return outside_replay((void *)inside->after_call, private);
	}
	if (!strcmp(word, "elsewhere"))
		return inside->raw_call(outside_elsewhere, private, 0);
	if (!strcmp(word, "direction"))
		return outside_with_direction(inside->flags);
	if (!strcmp(word, "forged-gs"))
		return with_forged_gs(inside->after_call, true);
	if (!strcmp(word, "forged-gs-entry"))
		return with_forged_gs(inside->read, false);
	if (!strcmp(word, "search-tables"))
		return search_tables();
	if (!strcmp(word, "remap"))
		return remap();
	if (!strcmp(word, "exchange"))
		return exchange(outside_frame_of((unsigned long)inside->other_page));
	if (!strcmp(word, "patch"))
		return patch(inside->read, a);
	if (!strcmp(word, "patch-site"))
		return patch(outside_after_entry(inside->read) - 5, a);
	if (!strcmp(word, "patch-middle"))
		return patch(outside_after_entry(inside->middle), a);
	return ~0ULL;
}

u64 outside_call(const struct inside *module, u64 *page, const char *word, u64 a, u64 b)
{
	inside = module;
	private = page;
	return call(word, a, b);
}
