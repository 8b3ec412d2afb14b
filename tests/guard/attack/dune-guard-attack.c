// SPDX-License-Identifier: GPL-2.0-only
/*
 * A hostile module for the tests of the guard. It attacks when a program writes a command to
 * /sys/kernel/debug/dune-guard-attack: a word, and up to three numbers. Reading the file then gives
 * what the attack found: an error, and a number. tests/guard/sealed.c has the commands' meaning.
 */
#include <linux/cpu.h>
#include <linux/debugfs.h>
#include <linux/io.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/smp.h>
#include <linux/uaccess.h>
#include <linux/vmalloc.h>
#include <asm/msr.h>
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

#define GUARD_CALL	0x64756e6500000000

static struct dentry *file;
static long error;
static u64 found;

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

static void *map(int way, u64 physical)
{
	struct page *page = pfn_to_page(physical >> PAGE_SHIFT);

	switch (way) {
	case WAY_DIRECT:
		return phys_to_virt(physical & PAGE_MASK);
	case WAY_VMAP:
		return vmap(&page, 1, VM_MAP, PAGE_KERNEL);
	default:
		/* A page of vmalloc's, whose entry is then changed to lead to the frame. */
		return vmalloc(PAGE_SIZE);
	}
}

static void unmap(int way, void *address)
{
	if (way == WAY_VMAP)
		vunmap(address);
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

/* Reads the 8 bytes at a physical address; with @write, writes @value there before. */
static long access(int way, u64 physical, bool write, u64 value)
{
	void *address = map(way, physical);
	pte_t *entry = NULL, was = {};
	u64 *word;
	long err = 0;

	if (!address)
		return -ENOMEM;
	if (way == WAY_OWN) {
		*(volatile u64 *)address = 1;
		entry = own_entry(address);
		was = *entry;
		set_pte(entry, pfn_pte(physical >> PAGE_SHIFT, PAGE_KERNEL));
		on_each_cpu(flush, NULL, 1);
	}
	word = address + (physical & ~PAGE_MASK);
	if (write)
		err = copy_from_kernel_nofault(&found, word, 8) ?: 0;
	if (write)
		asm volatile("1: mov %[value], %[word]\n"
			     "2:\n" _ASM_EXTABLE(1b, 2b)
			     : [word] "=m" (*word) : [value] "r" (value));
	if (!err)
		err = copy_from_kernel_nofault(&found, word, 8);
	if (entry) {
		set_pte(entry, was);
		on_each_cpu(flush, NULL, 1);
	}
	unmap(way, address);
	return err;
}

/*
 * Looks for pages of @size bytes at @physical that do not read as zeros, and, with @write, that are
 * not zeros after they were filled with ones. found: their number.
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

/* Fills one page by the instructions that the kernel itself uses: REP STOS, and a push. */
static long fill(u64 physical)
{
	void *page = phys_to_virt(physical & PAGE_MASK);
	u64 *word = page + 64, i;
	unsigned long count = 512;

	asm volatile("rep stosq" : "+D" (page), "+c" (count) : "a" (~0ULL) : "memory");
	asm volatile("lock xaddq %1, %0; push %2; pop %0; btsq $3, %0"
		     : "+m" (*word) : "r" (1ULL), "r" (5ULL) : "memory", "cc");
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
	if (!strcmp(word, "search"))
		return search(a, b, c);
	if (!strcmp(word, "fill"))
		return fill(a);
	if (!strcmp(word, "cross"))
		return cross(a);
	if (!strcmp(word, "msr"))
		return write_msr(a, b);
	if (!strcmp(word, "flip"))
		return flip_msr(a, b);
	if (!strcmp(word, "instruction"))
		return instruction(a, b, c);
	if (!strcmp(word, "call"))
		return call(a, b, c);
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
	error = attack(word, a, b, c);
	return count;
}

static ssize_t file_read(struct file *unused, char __user *user, size_t count, loff_t *at)
{
	char text[60];
	int length = scnprintf(text, sizeof(text), "%ld %llx\n", error, found);

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
