// SPDX-License-Identifier: GPL-2.0-only
/*
 * A hostile module for the tests of the guard. It attacks when a program writes a command to
 * /sys/kernel/debug/dune-guard-attack: a word, and up to three numbers. Reading the file then gives
 * what the attack found: an error, a number, and how often it has seen what it wants.
 * tests/guard/sealed.c and tests/guard/demo.c have the commands' meaning.
 */
#include <linux/acpi.h>
#include <linux/cpu.h>
#include <linux/debugfs.h>
#include <linux/hw_breakpoint.h>
#include <linux/io.h>
#include <linux/ioport.h>
#include <linux/kdebug.h>
#include <linux/kprobes.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/notifier.h>
#include <linux/objtool.h>
#include <linux/perf_event.h>
#include <linux/reboot.h>
#include <linux/smp.h>
#include <linux/uaccess.h>
#include <linux/vmalloc.h>
#include <asm/irq_regs.h>
#include <asm/msr.h>
#include <asm/nospec-branch.h>
#include <asm/pgtable.h>

/* Since 6.16 the size is in the name. */
#ifndef rdmsrq
#define rdmsrq_safe	rdmsrl_safe
#define wrmsrq_safe	wrmsrl_safe
#endif

/* By the number of a command's first argument. */
#define WAY_DIRECT	0	/* the kernel's direct map */
#define WAY_VMAP	1	/* a mapping of the page */
#define WAY_OWN		2	/* a page-table entry of our own */
#define WAY_AS_IT_IS	3	/* the address that the module itself has */
#define WAY_IOREMAP	4	/* a device's memory, which Linux is made to believe that it is */

#define GUARD_CALL	0x64756e6500000000

static struct dentry *file;
static long error;
static u64 found;

/*
 * What the attacker wants, three words one after the other, which are the complements of these: it
 * must not find its own copy. And how often it has seen that.
 */
static u64 wanted[3], seen;

/*
 * An instruction that may fault: -EFAULT if it does. An instruction of SVM's gets @rax; VMMCALL
 * also RBX and RCX.
 */
#define TRY(instruction, rax, b, c) ({						\
	u64 a_ = (rax), b_ = (b), c_ = (c), d_ = 0, si_ = 0, di_;		\
										\
	asm volatile("mov $1, %%edi\n"						\
		     "1: " instruction "\n\t"					\
		     "xor %%edi, %%edi\n"					\
		     "2:\n"							\
		     _ASM_EXTABLE(1b, 2b)					\
		     : "+a" (a_), "+b" (b_), "+c" (c_), "+d" (d_), "+S" (si_),	\
		       "=&D" (di_) : : "memory", "cc");				\
	found = a_;								\
	di_ ? -EFAULT : 0;							\
})

/* Linux maps no memory so, except for pages that are reserved. */
static void *map_as_device(struct page *page)
{
	void *address;

	SetPageReserved(page);
	address = (void __force *)ioremap(page_to_phys(page), PAGE_SIZE);
	ClearPageReserved(page);
	return address;
}

static void *map(int way, u64 physical)
{
	struct page *page = pfn_to_page(physical >> PAGE_SHIFT);

	switch (way) {
	case WAY_DIRECT:
		return phys_to_virt(physical & PAGE_MASK);
	case WAY_VMAP:
		return vmap(&page, 1, VM_MAP, PAGE_KERNEL);
	case WAY_IOREMAP:
		return map_as_device(page);
	default:
		/* A page of vmalloc's, whose entry is then changed to lead to the frame. */
		return vmalloc(PAGE_SIZE);
	}
}

static void unmap(int way, void *address)
{
	if (way == WAY_VMAP)
		vunmap(address);
	else if (way == WAY_IOREMAP)
		iounmap((void __iomem __force *)address);
	else if (way == WAY_OWN)
		vfree(address);
}

static pte_t *own_entry(void *address)
{
	pgd_t *pgd = __va(read_cr3_pa());
	p4d_t *p4d;
	pud_t *pud;
	pmd_t *pmd;

	pgd += pgd_index((unsigned long)address);
	p4d = p4d_offset(pgd, (unsigned long)address);
	pud = pud_offset(p4d, (unsigned long)address);
	pmd = pmd_offset(pud, (unsigned long)address);
	return pte_offset_kernel(pmd, (unsigned long)address);
}

static void flush(void *unused)
{
	u64 cr3 = __read_cr3(), cr4 = __read_cr4();

	asm volatile("mov %0, %%cr4" : : "r" (cr4 & ~X86_CR4_PGE) : "memory");
	asm volatile("mov %0, %%cr4" : : "r" (cr4) : "memory");
	asm volatile("mov %0, %%cr3" : : "r" (cr3) : "memory");
}

/* A page of memory, as it is mapped in one of the ways. */
struct page_view {
	void *address;
	int way;
	pte_t *entry, was;
};

static long open_page(struct page_view *view, int way, u64 physical)
{
	*view = (struct page_view){ .way = way, .address = map(way, physical) };
	if (!view->address)
		return -ENOMEM;
	if (way != WAY_OWN)
		return 0;
	*(volatile u64 *)view->address = 1;
	view->entry = own_entry(view->address);
	view->was = *view->entry;
	set_pte(view->entry, pfn_pte(physical >> PAGE_SHIFT, PAGE_KERNEL));
	on_each_cpu(flush, NULL, 1);
	return 0;
}

static void close_page(struct page_view *view)
{
	if (view->entry) {
		set_pte(view->entry, view->was);
		on_each_cpu(flush, NULL, 1);
	}
	unmap(view->way, view->address);
}

/* Reads the 8 bytes at a physical address; with @write, writes @value there before. */
static long access(int way, u64 physical, bool write, u64 value)
{
	struct page_view view;
	u64 *word;
	long err = open_page(&view, way, physical);

	if (err)
		return err;
	word = view.address + (physical & ~PAGE_MASK);
	if (write)
		err = copy_from_kernel_nofault(&found, word, 8);
	if (write)
		asm volatile("1: mov %[value], %[word]\n"
			     "2:\n" _ASM_EXTABLE(1b, 2b)
			     : [word] "=m" (*word) : [value] "r" (value));
	if (!err)
		err = copy_from_kernel_nofault(&found, word, 8);
	close_page(&view);
	return err;
}

/* ---- /dev/mem ---- */

static noinline int allowed(unsigned long page)
{
	return 1;
}

static int on_question(struct kprobe *probe, struct pt_regs *regs)
{
	regs->ip = (unsigned long)allowed;
	return 1;
}

static struct kprobe question;

/* From now on a program may read and map all memory by /dev/mem, or it may so no more. */
static long open_dev_mem(bool open)
{
	if (!open) {
		unregister_kprobe(&question);
		return 0;
	}
	question = (struct kprobe){
		.symbol_name = "devmem_is_allowed", .pre_handler = on_question,
	};
	return register_kprobe(&question);
}

/* ---- secrets of other modules ---- */

static long want(u64 a, u64 b, u64 c)
{
	wanted[0] = a;
	wanted[1] = b;
	wanted[2] = c;
	return 0;
}

#define WORDS	(PAGE_SIZE / sizeof(u64))

static void look_at_page(const u64 *page)
{
	u64 first = wanted[0];
	u32 i;

	for (i = 0; i < WORDS - 2; i++)
		if (unlikely(~READ_ONCE(page[i]) == first))
			seen += ~page[i + 1] == wanted[1] && ~page[i + 2] == wanted[2];
}

static u64 count_words(const u64 *page)
{
	u64 count = 0;
	u32 i;

	for (i = 0; i < WORDS; i++)
		count += !!READ_ONCE(page[i]);
	return count;
}

/* found: the words that are not 0 in a part of a module's memory, which is whole pages. */
static long look(int way, u64 start, u64 size)
{
	struct page_view view;
	u64 at;
	long err;

	for (at = start; at < start + size; at += PAGE_SIZE) {
		if (way == WAY_AS_IT_IS) {
			found += count_words((u64 *)at);
			look_at_page((u64 *)at);
			continue;
		}
		err = open_page(&view, way, page_to_phys(vmalloc_to_page((void *)at)));
		if (err)
			return err;
		found += count_words(view.address);
		look_at_page(view.address);
		close_page(&view);
	}
	return 0;
}

/* found: the pages of all memory, in which the attacker looks. */
static long hunt(void)
{
	struct resource *resource;
	u64 at;

	for (resource = iomem_resource.child; resource; resource = resource->sibling) {
		if (!resource->name || strcmp(resource->name, "System RAM"))
			continue;
		for (at = PAGE_ALIGN(resource->start); at + PAGE_SIZE <= resource->end + 1;
		     at += PAGE_SIZE) {
			if (!pfn_valid(at >> PAGE_SHIFT))
				continue;
			look_at_page(phys_to_virt(at));
			found++;
			if (!(at & 0xffffff))
				cond_resched();
		}
	}
	return 0;
}

/* Ticks of the clock, and what they see of the code at these addresses that they interrupt. */
static struct {
	u64 start, size, interrupts, registers;
} spy;

static int on_tick(struct kprobe *probe, struct pt_regs *unused)
{
	const struct pt_regs *regs = get_irq_regs();
	const unsigned long *reg;

	if (!regs || regs->ip - spy.start >= spy.size)
		return 0;
	spy.interrupts++;
	for (reg = &regs->r15; reg <= &regs->di; reg++)
		spy.registers += !!*reg;
	return 0;
}

static struct kprobe clock;

static long begin_spying(u64 start, u64 size)
{
	spy.start = start;
	spy.size = size;
	spy.interrupts = 0;
	spy.registers = 0;
	clock = (struct kprobe){ .symbol_name = "update_process_times", .pre_handler = on_tick };
	return register_kprobe(&clock);
}

/* found: interrupts inside; seen: registers that were not 0 then. */
static long end_spying(void)
{
	unregister_kprobe(&clock);
	found = spy.interrupts;
	seen = spy.registers;
	return 0;
}

/* Writes a byte of code by a mapping of our own. found: what was there; seen: what is there. */
static long patch(u64 address, u64 value)
{
	struct page_view view;
	u8 *byte;
	long err = open_page(&view, WAY_VMAP, page_to_phys(vmalloc_to_page((void *)address)));

	if (err)
		return err;
	byte = view.address + offset_in_page(address);
	found = *byte;
	WRITE_ONCE(*byte, value);
	seen = READ_ONCE(*(u8 *)address);
	close_page(&view);
	return 0;
}

/* ---- jumps into other modules ---- */

/* Where jump() continues after its call, and the stack pointer then. */
void dune_guard_attack_return(void);
unsigned long dune_guard_attack_sp;

static bool jumps, is_refused;
static u64 jump_target;

static int on_refusal(struct notifier_block *block, unsigned long event, void *data)
{
	struct pt_regs *regs = ((struct die_args *)data)->regs;

	if (event != DIE_GPF || !jumps || regs->ip != jump_target)
		return NOTIFY_DONE;
	is_refused = true;
	regs->ip = (unsigned long)dune_guard_attack_return;
	regs->sp = dune_guard_attack_sp;
	return NOTIFY_STOP;
}

static struct notifier_block refusal_block = { .notifier_call = on_refusal };

/* Calls code at any address, with arguments. -EFAULT: that raises #GP; found: what it returns. */
static noinline long jump(u64 target, u64 a, u64 b, u64 c)
{
	long err = register_die_notifier(&refusal_block);

	if (err)
		return err;
	jump_target = target;
	is_refused = false;
	WRITE_ONCE(jumps, true);
	preempt_disable();
	asm volatile("mov %%rsp, dune_guard_attack_sp(%%rip)\n\t"
		     ANNOTATE_RETPOLINE_SAFE
		     "call *%%rax\n"
		     "dune_guard_attack_return:\n\t"
		     ANNOTATE_NOENDBR
		     : "+a" (target), "+D" (a), "+S" (b), "+d" (c)
		     : : "rcx", "r8", "r9", "r10", "r11", "memory", "cc");
	preempt_enable();
	WRITE_ONCE(jumps, false);
	unregister_die_notifier(&refusal_block);
	found = target;
	return READ_ONCE(is_refused) ? -EFAULT : 0;
}

/*
 * Jumps to after the first instruction of e1000_rar_set(), a function of the driver that the kernel
 * does not know: it would tell the card that the computer has another address.
 */
static long change_filter(u64 function, u64 bar)
{
	/* The beginning of the driver's struct e1000_hw. */
	struct {
		void __iomem *registers;
		u64 others[2];
		u32 mac_type;
	} hw = { .mac_type = 5 };
	u8 station[8] = { 2 };
	/* ENDBR64, or NOPs in its place; else a call of ftrace's, or NOPs. */
	bool has_ibt = *(u8 *)function == 0xf3 || *(u8 *)function == 0x66;
	long err;

	hw.registers = ioremap(bar, 0x20000);
	if (!hw.registers)
		return -ENOMEM;
	err = jump(function + (has_ibt ? 4 : 5), (u64)&hw, (u64)station, 0);
	iounmap(hw.registers);
	return err;
}

/*
 * Counts the pages in these @size bytes that do not read as zeros; with @write, after ones were
 * written to them. found: their number.
 */
static long scan(u64 physical, u64 size, bool write)
{
	u64 bad = 0, at, i, *page;

	for (at = 0; at < size; at += PAGE_SIZE) {
		page = phys_to_virt(physical + at);
		if (write)
			for (i = 0; i < 512; i += 64)
				WRITE_ONCE(page[i], ~0ULL);
		for (i = 0; i < 512; i++)
			if (READ_ONCE(page[i]))
				break;
		bad += i < 512;
	}
	found = bad;
	return 0;
}

/* Writes to one page by REP STOS, LOCK XADD, POP and BTS. */
static long fill(u64 physical)
{
	void *page = phys_to_virt(physical & PAGE_MASK);
	u64 *word = page + 64, i, addend = 1;
	unsigned long count = 512;

	asm volatile("rep stosq" : "+D" (page), "+c" (count) : "a" (~0ULL) : "memory");
	asm volatile("lock xaddq %1, %0; push %2; pop %0; btsq $3, %0"
		     : "+m" (*word), "+r" (addend) : "r" (5ULL) : "memory", "cc");
	page = phys_to_virt(physical & PAGE_MASK);
	found = 0;
	for (i = 0; i < 512; i++)
		found |= ((u64 *)page)[i];
	return 0;
}

/*
 * A store whose first bytes are in the guard's page at @physical, and whose last ones are in a page
 * that is not present: the store raises #PF. found: TF and IF that were not the same afterwards.
 */
static long cross(u64 physical)
{
	void *address = map(WAY_OWN, physical);
	u64 before, after = 0;
	pte_t *entry, was;
	long fault;

	if (!address)
		return -ENOMEM;
	*(volatile u64 *)address = 1;
	entry = own_entry(address);
	was = *entry;
	set_pte(entry, pfn_pte(physical >> PAGE_SHIFT, PAGE_KERNEL));
	on_each_cpu(flush, NULL, 1);
	asm volatile("pushf; pop %[before]\n\t"
		     "mov $1, %[fault]\n"
		     "1: movq $-1, (%[at])\n\t"
		     "xor %[fault], %[fault]\n"
		     "2: pushf; pop %[after]\n"
		     _ASM_EXTABLE(1b, 2b)
		     : [before] "=&r" (before), [after] "=&r" (after), [fault] "=&r" (fault)
		     : [at] "r" (address + PAGE_SIZE - 4) : "memory", "cc");
	set_pte(entry, was);
	on_each_cpu(flush, NULL, 1);
	unmap(WAY_OWN, address);
	found = (before ^ after) & (X86_EFLAGS_TF | X86_EFLAGS_IF);
	return fault ? -EFAULT : 0;
}

/* ---- the guard's memory in tables of our own ---- */

#define LARGE_SIZE	(1UL << PMD_SHIFT)

/* Memory of which one entry of a page directory leads to nothing but itself. */
struct spread {
	void *pages;
	unsigned long at;
	pmd_t *entry, was;
};

static long spread_begin(struct spread *spread)
{
	unsigned long address;
	pgd_t *pgd;

	spread->pages = vmalloc(2 * LARGE_SIZE);
	if (!spread->pages)
		return -ENOMEM;
	address = round_up((unsigned long)spread->pages, LARGE_SIZE);
	*(u64 *)address = 1;
	spread->at = address;
	pgd = (pgd_t *)__va(read_cr3_pa()) + pgd_index(address);
	spread->entry = pmd_offset(pud_offset(p4d_offset(pgd, address), address), address);
	spread->was = *spread->entry;
	return pmd_leaf(spread->was) ? -EINVAL : 0;
}

/* Reads the first word of it with this entry: -EFAULT if that raises an exception. */
static long spread_read(struct spread *spread, u64 entry)
{
	unsigned long flags;
	long fault = 1;

	local_irq_save(flags);
	set_pmd(spread->entry, __pmd(entry));
	flush(NULL);
	asm volatile("1: mov (%[at]), %[found]\n\t"
		     "xor %k[fault], %k[fault]\n"
		     "2:\n"
		     _ASM_EXTABLE(1b, 2b)
		     : [found] "=&r" (found), [fault] "+&r" (fault) : [at] "r" (spread->at)
		     : "memory", "cc");
	set_pmd(spread->entry, spread->was);
	flush(NULL);
	local_irq_restore(flags);
	if (fault)
		found = 0;
	return fault ? -EFAULT : 0;
}

static void spread_end(struct spread *spread)
{
	on_each_cpu(flush, NULL, 1);
	vfree(spread->pages);
}

/* Reads the first word of the guard's memory by a large page. */
static long huge(u64 physical)
{
	struct spread spread;
	long err = spread_begin(&spread);

	if (!err)
		err = spread_read(&spread, physical | pgprot_val(PAGE_KERNEL) | _PAGE_PSE);
	spread_end(&spread);
	return err;
}

/*
 * Uses a page of the guard's memory as a page table. Writes an entry there that leads to a page of
 * this module's, which contains 0x7ab1e, and reads by that entry.
 */
static long table(u64 physical)
{
	u64 *entry = phys_to_virt(physical), *ours = (u64 *)get_zeroed_page(GFP_KERNEL);
	struct spread spread;
	u64 was = *entry;
	long err;

	if (!ours)
		return -ENOMEM;
	*ours = 0x7ab1e;
	WRITE_ONCE(*entry, virt_to_phys(ours) | pgprot_val(PAGE_KERNEL));
	err = spread_begin(&spread);
	if (!err)
		err = spread_read(&spread, physical | _KERNPG_TABLE);
	spread_end(&spread);
	WRITE_ONCE(*entry, was);
	free_page((unsigned long)ours);
	return err;
}

/*
 * Writes a function to the end of a page of the guard's, and executes it by a mapping of our own.
 * found: its result, 0x600d; or 0, from the page after it, if there are zeros instead, which are
 * additions to the byte at RAX.
 */
static long execute(u64 physical)
{
	static const u8 code[] = { 0xb8, 0x0d, 0x60, 0, 0, 0xc3 };	/* mov $0x600d, %eax; ret */
	static const u8 next[] = { 0x31, 0xc0, 0xc3 };			/* xor %eax, %eax; ret */
	void *guards = phys_to_virt(physical) + PAGE_SIZE - sizeof(code);
	void *ours = (void *)get_zeroed_page(GFP_KERNEL), *pages = vmalloc(2 * PAGE_SIZE);
	u8 was[sizeof(code)], scratch = 0;
	pte_t *entry, entries[2];
	u64 result;

	if (!ours || !pages) {
		vfree(pages);
		free_page((unsigned long)ours);
		return -ENOMEM;
	}
	memset(pages, 0, 2 * PAGE_SIZE);
	memcpy(ours, next, sizeof(next));
	memcpy(was, guards, sizeof(was));
	memcpy(guards, code, sizeof(code));
	entry = own_entry(pages);
	entries[0] = entry[0];
	entries[1] = *own_entry(pages + PAGE_SIZE);
	set_pte(entry, pfn_pte(physical >> PAGE_SHIFT, PAGE_KERNEL_EXEC));
	set_pte(own_entry(pages + PAGE_SIZE),
		pfn_pte(page_to_pfn(virt_to_page(ours)), PAGE_KERNEL_EXEC));
	on_each_cpu(flush, NULL, 1);
	asm volatile(ANNOTATE_RETPOLINE_SAFE
		     "call *%[code]"
		     : "=a" (result)
		     : [code] "r" (pages + PAGE_SIZE - sizeof(code)), "a" (&scratch)
		     : "memory", "cc");
	set_pte(entry, entries[0]);
	set_pte(own_entry(pages + PAGE_SIZE), entries[1]);
	on_each_cpu(flush, NULL, 1);
	memcpy(guards, was, sizeof(was));
	vfree(pages);
	free_page((unsigned long)ours);
	found = result;
	return 0;
}

/*
 * Tries to make a page of this module's the host save area. found: whether the processor has
 * written to it at a VMMCALL.
 */
static long save_area(void)
{
	u64 *ours = (u64 *)get_zeroed_page(GFP_KERNEL), all = 0;
	unsigned long flags;
	long err;
	int i;

	if (!ours)
		return -ENOMEM;
	local_irq_save(flags);
	err = wrmsrq_safe(0xc0010117, virt_to_phys(ours));
	asm volatile("vmmcall" : : "a" (GUARD_CALL) : "memory");
	local_irq_restore(flags);
	for (i = 0; i < 512; i++)
		all |= READ_ONCE(ours[i]);
	found = !!all;
	/* The processor may go on to use the page: it is not given back. */
	return err;
}

/*
 * While trap() wants traps, it adds to @found where they were, from trap_from on, by a digit each.
 */
static bool traps_wanted;
static u64 trap_from;

static void add_trap(const struct pt_regs *regs)
{
	found = found << 4 | ((regs->ip - trap_from) & 0xf);
}

static int on_step(struct notifier_block *block, unsigned long event, void *data)
{
	if (event != DIE_DEBUG || !traps_wanted)
		return NOTIFY_DONE;
	add_trap(((struct die_args *)data)->regs);
	return NOTIFY_STOP;
}

static struct notifier_block step_block = { .notifier_call = on_step };

static void on_breakpoint(struct perf_event *event, struct perf_sample_data *data,
			  struct pt_regs *regs)
{
	if (traps_wanted)
		add_trap(regs);
}

/* A breakpoint on all CPUs. */
static struct perf_event * __percpu *set_breakpoint(u64 address)
{
	struct perf_event_attr attr;

	hw_breakpoint_init(&attr);
	attr.bp_addr = address;
	attr.bp_len = sizeof(long);
	attr.bp_type = HW_BREAKPOINT_X;
	return register_wide_hw_breakpoint(&attr, on_breakpoint, NULL);
}

/*
 * NOP, RDMSR, NOP and POPF, with @flag set in RFLAGS until POPF. Returns where they begin. Out of
 * line, so that they are at one place.
 */
static noinline u64 execute_traps(u32 msr, u64 flag)
{
	u64 a, d, from;

	asm volatile("lea 1f(%%rip), %[from]\n\t"
		     "pushf\n\t"
		     "pushf\n\t"
		     "or %[flag], (%%rsp)\n\t"
		     "popf\n"
		     "1: nop\n\t"
		     "rdmsr\n\t"
		     "nop\n\t"
		     "popf\n"
		     : "=a" (a), "=d" (d), [from] "=&r" (from)
		     : "c" (msr), [flag] "r" (flag) : "memory", "cc");
	return from;
}

/*
 * Reads @msr by single steps, or, with @breakpoints, with a breakpoint on RDMSR and one on the next
 * NOP. found: where traps were: 0 is the first NOP, 1 RDMSR, 3 the second NOP, 4 POPF, 5 its end.
 */
static long trap(u64 msr, u64 breakpoints)
{
	struct perf_event * __percpu *events[2];
	unsigned long flags;
	long err = 0;
	int i;

	trap_from = execute_traps(msr, 0);
	for (i = 0; breakpoints && i < 2; i++) {
		events[i] = set_breakpoint(trap_from + 1 + 2 * i);
		if (IS_ERR_VALUE((unsigned long)events[i]))
			return (long)events[i];
	}
	err = register_die_notifier(&step_block);
	local_irq_save(flags);
	WRITE_ONCE(traps_wanted, true);
	execute_traps(msr, breakpoints ? 0 : X86_EFLAGS_TF);
	WRITE_ONCE(traps_wanted, false);
	local_irq_restore(flags);
	unregister_die_notifier(&step_block);
	for (i = 0; breakpoints && i < 2; i++)
		unregister_wide_hw_breakpoint(events[i]);
	return err;
}

/*
 * Executes an instruction of bytes and then SAR of CL by 1. Whoever continues after the first two
 * bytes executes others, of which none changes CL. Returns whether CL was changed.
 */
#define AND_THEN_SAR(bytes, msr) ({						\
	u64 a_ = 0, c_ = (msr), d_ = 0;						\
										\
	asm volatile(".byte " bytes "; sar $1, %%cl"				\
		     : "+a" (a_), "+c" (c_), "+d" (d_) : : "memory", "cc");	\
	(u8)c_ == (u8)((s8)(msr) >> 1);						\
})

/* WRMSR with a prefix, as Linux has it (asm/msr.h, wrmsrns()), and RDMSR with three. */
static long prefixes(u32 msr)
{
	bool write = AND_THEN_SAR("0x3e, 0x0f, 0x30", msr);

	return write && AND_THEN_SAR("0x66, 0x3e, 0x48, 0x0f, 0x32", msr) ? 0 : -EFAULT;
}

static long write_msr(u32 msr, u64 value)
{
	long err = wrmsrq_safe(msr, value);

	if (rdmsrq_safe(msr, &found))
		found = 0;
	return err;
}

/* Writes a register's own value with these bits flipped. */
static long flip_msr(u32 msr, u64 bits)
{
	u64 old, now;
	long err;

	if (rdmsrq_safe(msr, &old))
		return -ENXIO;
	err = wrmsrq_safe(msr, old ^ bits);
	rdmsrq_safe(msr, &now);
	if (now != old)
		wrmsrq_safe(msr, old);
	found = now ^ old;
	return err;
}

static long instruction(u64 which, u64 rax, u64 rcx)
{
	unsigned long flags;
	long err = -EINVAL;

	local_irq_save(flags);
	switch (which) {
	case 0:
		err = TRY("vmrun", rax, 0, rcx);
		break;
	case 1:
		err = TRY("vmload", rax, 0, rcx);
		break;
	case 2:
		err = TRY("vmsave", rax, 0, rcx);
		break;
	case 3:
		err = TRY("stgi", rax, 0, rcx);
		break;
	case 4:
		err = TRY("clgi", rax, 0, rcx);
		break;
	case 5:
		err = TRY(".byte 0x0f, 0x01, 0xde", rax, 0, rcx);	/* SKINIT */
		break;
	case 6:
		err = TRY("invlpga", rax, 0, rcx);
		break;
	case 7:
		err = TRY("invd", rax, 0, rcx);
		break;
	}
	local_irq_restore(flags);
	return err;
}

/* Ways to write the register of sleep. */
enum { SLEEP_WORD, SLEEP_BYTE, SLEEP_LONG, SLEEP_STRING };

/*
 * Writes @type as SLP_TYP, with SLP_EN, to PM1a_CNT, and then what it was. found: the register's
 * value in between.
 */
static long sleep(u64 way, u64 type)
{
	u16 port = acpi_gbl_FADT.xpm1a_control_block.address, was = inw(port);
	u32 value = (was & ~0x3c00) | type << 10 | 1 << 13;
	const void *from = &value;
	long err = 0;

	switch (way) {
	case SLEEP_WORD:
		outw(value, port);
		break;
	case SLEEP_BYTE:
		outb(value >> 8, port + 1);
		break;
	case SLEEP_LONG:
		outl(value, port);
		break;
	default:
		err = -EFAULT;
		asm volatile("1: outsw\n\t"
			     "xor %[err], %[err]\n"
			     "2:\n"
			     _ASM_EXTABLE(1b, 2b)
			     : [err] "+r" (err), "+S" (from) : "d" (port) : "memory", "cc");
	}
	found = inw(port);
	outw(was, port);
	return err;
}

/* Reads a port by 1, 2 and 4 bytes, with RAX full of ones. found: RAX, XORed with what was read. */
static long in_port(u16 port, u64 size)
{
	found = ~0ULL;
	if (size == 1)
		asm volatile("inb %w1, %b0" : "+a" (found) : "d" (port));
	else if (size == 2)
		asm volatile("inw %w1, %w0" : "+a" (found) : "d" (port));
	else
		asm volatile("inl %w1, %k0" : "+a" (found) : "d" (port));
	return 0;
}

/* Reads one page of a device's, and claims it before, as the device's driver does. */
static long device(u64 physical)
{
	struct resource *claimed = request_mem_region(physical, PAGE_SIZE, "dune-guard-attack");
	void __iomem *page;
	long err = -ENOMEM;

	if (!claimed)
		return -EBUSY;
	page = ioremap(physical, PAGE_SIZE);
	if (page) {
		err = copy_from_kernel_nofault(&found, (void __force *)page, 8);
		iounmap(page);
	}
	/* It stays claimed, until the machine is booted again. */
	return err;
}

/* Reads 4 bytes of a device that somebody else has. */
static long registers(u64 physical)
{
	void __iomem *page = ioremap(physical & PAGE_MASK, PAGE_SIZE);

	if (!page)
		return -ENOMEM;
	found = readl(page + (physical & ~PAGE_MASK));
	iounmap(page);
	return 0;
}

/* Writes 4 bytes of such a device. found: what it then reads. */
static long program(u64 physical, u64 value)
{
	void __iomem *page = ioremap(physical & PAGE_MASK, PAGE_SIZE);

	if (!page)
		return -ENOMEM;
	writel(value, page + (physical & ~PAGE_MASK));
	found = readl(page + (physical & ~PAGE_MASK));
	iounmap(page);
	return 0;
}

/* Writes PCI's configuration space; @at: the function, << 8, and the register. found: it then. */
static long configure(u64 at, u64 value)
{
	unsigned long flags;

	local_irq_save(flags);
	outl(BIT(31) | at, 0xcf8);
	outl(value, 0xcfc);
	found = inl(0xcfc);
	local_irq_restore(flags);
	return 0;
}

/* VMMCALL with this RAX, and a pattern of arguments. found: RAX. */
static long call(u64 rax, u64 b, u64 c)
{
	unsigned long flags;
	long err;

	local_irq_save(flags);
	err = TRY("vmmcall", rax, b, c);
	local_irq_restore(flags);
	return err;
}

/*
 * Makes this CPU leave the guard, as the guard's own module does, which does not learn of it.
 * found: the answer.
 */
static long leave(void)
{
	static u64 rbp;
	static u16 ds, es;
	unsigned long flags;

	local_irq_save(flags);
	asm volatile("mov %%ds, %[ds]; mov %%es, %[es]\n\t"
		     "mov %%rbp, %[rbp]\n\t"
		     "vmmcall\n\t"
		     "mov %[rbp], %%rbp\n\t"
		     "test %%rax, %%rax; jnz 1f\n\t"
		     "mov %[ds], %%ds; mov %[es], %%es\n\t"
		     "stgi\n"
		     "1:"
		     : "=a" (found), [ds] "+m" (ds), [es] "+m" (es), [rbp] "+m" (rbp)
		     : "a" (GUARD_CALL + 1)
		     : "rbx", "rcx", "rdx", "rsi", "rdi", "r8", "r9", "r10", "r11", "r12", "r13",
		       "r14", "r15", "memory", "cc");
	local_irq_restore(flags);
	return 0;
}

/* Calls the guard's reboot notifier alone, as if the computer went down. */
static long reboot_notifier(void)
{
	struct kprobe probe = { .symbol_name = "kallsyms_lookup_name" };
	unsigned long (*look_up)(const char *name);
	notifier_fn_t notifier;
	long err = register_kprobe(&probe);

	if (err)
		return err;
	look_up = (void *)probe.addr;
	unregister_kprobe(&probe);
	notifier = (void *)look_up("dune_guard:reboot_event");
	if (!notifier)
		return -ENOENT;
	notifier(NULL, SYS_RESTART, NULL);
	return 0;
}

/* found: the kernel's state before it is @state. */
static long set_state(u64 state)
{
	found = system_state;
	system_state = state;
	return 0;
}

/* All numbers up to @count, except for stop and seal, with arguments of all kinds. */
static long call_many(u64 count)
{
	static const u64 values[] = { 0, 1, 7, 8, 255, 1ULL << 31, ~0ULL, 1ULL << 63, 0x1000 };
	u64 number, i, j;

	for (number = 0; number < count; number++) {
		if (number == 1 || number == 2)
			continue;
		for (i = 0; i < ARRAY_SIZE(values); i++)
			for (j = 0; j < ARRAY_SIZE(values); j++)
				if (call(GUARD_CALL + number, values[i], values[j]))
					return -EFAULT;
	}
	for (i = 0; i < ARRAY_SIZE(values); i++)
		if (call(values[i], 1, 2) != -EFAULT)
			return -EINVAL;
	return 0;
}

/*
 * found: the least time in ticks of the TSC of a VMMCALL that does nothing, or of a write to this
 * physical address.
 */
static long cost(u64 physical)
{
	u64 *word = phys_to_virt(physical);
	u64 best = ~0ULL, empty = ~0ULL, start, i;
	unsigned long flags;

	local_irq_save(flags);
	for (i = 0; i < 100; i++) {
		start = rdtsc_ordered();
		empty = min(empty, rdtsc_ordered() - start);
		start = rdtsc_ordered();
		if (physical)
			WRITE_ONCE(*word, i);
		else
			asm volatile("vmmcall" : : "a" (GUARD_CALL) : "memory");
		best = min(best, rdtsc_ordered() - start);
	}
	local_irq_restore(flags);
	found = best - empty;
	return 0;
}

/*
 * Looks for 8 bytes in the kernel's own memory, at any of @length virtual addresses from @start on;
 * for the value 0, looks for bytes that are not 0. found: their number.
 */
static long search(u64 start, u64 length, u64 value)
{
	u64 count = 0, at, word;

	for (at = start; at < start + length; at++) {
		if (copy_from_kernel_nofault(&word, (void *)at, value ? 8 : 1))
			return -EFAULT;
		count += value ? word == value : (u8)word != 0;
	}
	found = count;
	return 0;
}

static long attack(const char *word, u64 a, u64 b, u64 c)
{
	if (!strcmp(word, "read"))
		return access(a, b, false, 0);
	if (!strcmp(word, "write"))
		return access(a, b, true, c);
	if (!strcmp(word, "scan"))
		return scan(a, b, c);
	if (!strcmp(word, "dev-mem"))
		return open_dev_mem(a);
	if (!strcmp(word, "search"))
		return search(a, b, c);
	if (!strcmp(word, "want"))
		return want(a, b, c);
	if (!strcmp(word, "look"))
		return look(a, b, c);
	if (!strcmp(word, "hunt"))
		return hunt();
	if (!strcmp(word, "spy"))
		return begin_spying(a, b);
	if (!strcmp(word, "spied"))
		return end_spying();
	if (!strcmp(word, "patch"))
		return patch(a, b);
	if (!strcmp(word, "jump"))
		return jump(a, b, c, 0);
	if (!strcmp(word, "filter"))
		return change_filter(a, b);
	if (!strcmp(word, "program"))
		return program(a, b);
	if (!strcmp(word, "config"))
		return configure(a, b);
	if (!strcmp(word, "fill"))
		return fill(a);
	if (!strcmp(word, "cross"))
		return cross(a);
	if (!strcmp(word, "huge"))
		return huge(a);
	if (!strcmp(word, "table"))
		return table(a);
	if (!strcmp(word, "execute"))
		return execute(a);
	if (!strcmp(word, "save-area"))
		return save_area();
	if (!strcmp(word, "trap"))
		return trap(a, b);
	if (!strcmp(word, "prefixes"))
		return prefixes(a);
	if (!strcmp(word, "msr"))
		return write_msr(a, b);
	if (!strcmp(word, "flip"))
		return flip_msr(a, b);
	if (!strcmp(word, "instruction"))
		return instruction(a, b, c);
	if (!strcmp(word, "call"))
		return call(a, b, c);
	if (!strcmp(word, "device"))
		return device(a);
	if (!strcmp(word, "registers"))
		return registers(a);
	if (!strcmp(word, "leave"))
		return leave();
	if (!strcmp(word, "reboot"))
		return reboot_notifier();
	if (!strcmp(word, "state"))
		return set_state(a);
	if (!strcmp(word, "sleep"))
		return sleep(a, b);
	if (!strcmp(word, "in"))
		return in_port(a, b);
	if (!strcmp(word, "out")) {
		outb(b, a);
		return 0;
	}
	if (!strcmp(word, "outl")) {
		outl(b, a);
		return 0;
	}
	if (!strcmp(word, "cost"))
		return cost(a);
	if (!strcmp(word, "calls"))
		return call_many(a);
	return -EINVAL;
}

static ssize_t file_write(struct file *unused, const char __user *user, size_t count, loff_t *at)
{
	char text[120] = "", word[20] = "";
	u64 a = 0, b = 0, c = 0;

	if (count >= sizeof(text) || copy_from_user(text, user, count))
		return -EINVAL;
	if (sscanf(text, "%19s %llx %llx %llx", word, &a, &b, &c) < 1)
		return -EINVAL;
	found = 0;
	seen = 0;
	error = attack(word, a, b, c);
	return count;
}

static ssize_t file_read(struct file *unused, char __user *user, size_t count, loff_t *at)
{
	char text[80];
	int length = scnprintf(text, sizeof(text), "%ld %llx %llx\n", error, found, seen);

	return simple_read_from_buffer(user, count, at, text, length);
}

static const struct file_operations file_operations = {
	.owner = THIS_MODULE,
	.read = file_read,
	.write = file_write,
};

static int __init attack_init(void)
{
	file = debugfs_create_file("dune-guard-attack", 0600, NULL, NULL, &file_operations);
	return PTR_ERR_OR_ZERO(file);
}

static void __exit attack_exit(void)
{
	debugfs_remove(file);
}

module_init(attack_init);
module_exit(attack_exit);
MODULE_DESCRIPTION("Attacks on Dune's guard, for its tests");
MODULE_LICENSE("GPL v2");
