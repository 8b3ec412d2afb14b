// SPDX-License-Identifier: GPL-2.0-only
/*
 * The kernel around a guarded module that has devices, ports, an MSR and the guard's services: the
 * list of them, and attacks on them. The commands are those of outside.c.
 */
#include <linux/delay.h>
#include <linux/gfp.h>
#include <linux/io.h>
#include <linux/module.h>
#include <linux/pci.h>
#include <linux/smp.h>
#include <linux/vmalloc.h>
#include <asm/asm.h>
#include <asm/msr.h>
#include <asm/nmi.h>

#include "guard/linux/views.h"
#include "outside.h"

#define ADDRESS		0xcf8
#define DATA		0xcfc
#define ENABLE		0x80000000u

#define HEADER		16	/* words */
#define SECOND		4	/* the number of another registration */

/* What the module has: bits of the parameter. */
enum { WITH_EDU = 1, WITH_NIC = 2, WITH_SHARED = 4, WITH_PORTS = 8, WITH_MSR = 16,
	WITH_MONITOR = 32, WITH_SMBUS = 64 };

/* What is wrong with the list: numbers of the parameter. */
enum { NOTHING_WRONG, WRONG_KIND, WRONG_OVERFLOW, WRONG_EMPTY, WRONG_TWICE, WRONG_RAM, WRONG_HALF,
	WRONG_BAR_MISSING, WRONG_BRIDGE_MISSING, WRONG_FUNCTION, WRONG_PORT_PCI, WRONG_PORT_RESET,
	WRONG_PORT_END, WRONG_MSR, WRONG_MSR_FUNCTION, WRONG_MANY };

static uint with;
module_param(with, uint, 0600);
static uint wrong;
module_param(wrong, uint, 0600);
/* Another CPU moves the device's BAR while its module is being armed. */
static bool moves;
module_param(moves, bool, 0600);

/* The device edu behind a bridge, the one on bus 0, a network interface, and shared memory. */
static struct pci_dev *edu, *other_edu, *nic, *shared, *other_bridge, *smbus;
static void __iomem *edu_bar, *other_bar, *nic_bar, *shared_bar;
static u32 *page;
static atomic_t nmis;

static int on_nmi(unsigned int type, struct pt_regs *regs)
{
	atomic_inc(&nmis);
	return NMI_HANDLED;
}

/* ---- the list ---- */

static u32 function_of(const struct pci_dev *device)
{
	return device->bus->number << 8 | device->devfn;
}

static struct hv_privilege *add(struct hv_privilege *one, u32 kind, u32 function, u64 first,
				u64 size)
{
	*one = (struct hv_privilege){ kind, function, first, size };
	return one + 1;
}

static struct hv_privilege *add_device(struct hv_privilege *one, const struct pci_dev *device)
{
	const struct pci_dev *bridge;
	int bar;

	for (bar = 0; bar < PCI_STD_NUM_BARS; bar++) {
		if (!pci_resource_len(device, bar) ||
		    (wrong == WRONG_BAR_MISSING && bar == 1))
			continue;
		one = add(one, pci_resource_flags(device, bar) & IORESOURCE_IO ?
			  HV_PRIVILEGE_PORTS : HV_PRIVILEGE_MMIO,
			  function_of(device) + (wrong == WRONG_FUNCTION ? 8 : 0),
			  pci_resource_start(device, bar),
			  pci_resource_len(device, bar) >> (wrong == WRONG_HALF) |
			  (wrong == WRONG_HALF));
	}
	for (bridge = device->bus->self; bridge && wrong != WRONG_BRIDGE_MISSING;
	     bridge = bridge->bus->self)
		one = add(one, HV_PRIVILEGE_BRIDGE, function_of(bridge), 0, 0);
	return one;
}

static struct hv_privilege *add_wrong(struct hv_privilege *one)
{
	u32 i;

	switch (wrong) {
	case WRONG_KIND:
		return add(one, HV_PRIVILEGE_KINDS, HV_NO_FUNCTION, 0, 0);
	case WRONG_OVERFLOW:
		return add(one, HV_PRIVILEGE_PORTS, HV_NO_FUNCTION, 0x300, ~0ULL);
	case WRONG_EMPTY:
		return add(one, HV_PRIVILEGE_PORTS, HV_NO_FUNCTION, 0x300, 0);
	case WRONG_TWICE:
		one = add(one, HV_PRIVILEGE_PORTS, HV_NO_FUNCTION, 0x300, 4);
		return add(one, HV_PRIVILEGE_PORTS, HV_NO_FUNCTION, 0x303, 4);
	case WRONG_RAM:
		return add(one, HV_PRIVILEGE_MMIO, function_of(edu), virt_to_phys(page), 4096);
	case WRONG_PORT_PCI:
		return add(one, HV_PRIVILEGE_PORTS, HV_NO_FUNCTION, 0xcf0, 9);
	case WRONG_PORT_RESET:
		return add(one, HV_PRIVILEGE_PORTS, HV_NO_FUNCTION, 0x60, 8);
	case WRONG_PORT_END:
		return add(one, HV_PRIVILEGE_PORTS, HV_NO_FUNCTION, 0xfff0, 0x11);
	case WRONG_MSR:
		return add(one, HV_PRIVILEGE_MSR, HV_NO_FUNCTION, 0xc0000080, 1);
	case WRONG_MSR_FUNCTION:
		return add(one, HV_PRIVILEGE_MSR, function_of(edu), 0x1a0, 1);
	case WRONG_MANY:
		for (i = 0; i <= HV_PRIVILEGES; i++)
			one = add(one, HV_PRIVILEGE_PORTS, HV_NO_FUNCTION, 0x300 + i, 1);
		return one;
	}
	return one;
}

u32 outside_privileges(struct hv_privilege *list)
{
	struct hv_privilege *one = list;

	if (with & WITH_EDU)
		one = add_device(one, edu);
	if (with & WITH_NIC)
		one = add_device(one, nic);
	if (with & WITH_SHARED)
		one = add_device(one, shared);
	if (with & WITH_SMBUS)
		one = add_device(one, smbus);
	/* The watchdog ib700: the one port disarms it, the other one arms it. */
	if (with & WITH_PORTS) {
		one = add(one, HV_PRIVILEGE_PORTS, HV_NO_FUNCTION, 0x441, 1);
		one = add(one, HV_PRIVILEGE_PORTS, HV_NO_FUNCTION, 0x443, 1);
	}
	if (with & WITH_MSR)
		one = add(one, HV_PRIVILEGE_MSR, HV_NO_FUNCTION, MSR_IA32_MISC_ENABLE, 1);
	if (with & WITH_MONITOR)
		one = add(one, HV_PRIVILEGE_MONITOR, HV_NO_FUNCTION, 0, 0);
	return add_wrong(one) - list;
}

/* Another registration that wants @port and this MSR; its text is a page of the kernel's. */
static u64 second(u64 port, u64 msr)
{
	void *text;
	struct hv_registration *registration = outside_page_of_text(&text);
	struct hv_privilege *list;
	s64 err;

	if (!registration)
		return -ENOMEM;
	list = (void *)&registration->words[1];
	add(list, HV_PRIVILEGE_PORTS, HV_NO_FUNCTION, port, 1);
	add(list + 1, HV_PRIVILEGE_MSR, HV_NO_FUNCTION, msr, 1);
	registration->privilege_count = 2;
	err = guard_views_arm(SECOND, registration);
	if (!err)
		err = guard_views_disarm(SECOND);
	/* Its shadow is given back. */
	vfree(text);
	free_page((unsigned long)registration);
	return err;
}

/* The other module's functions: in (%dx) and rdmsr. */
#define SECOND_RDMSR	16

static const u8 second_text[] = {
	0x89, 0xfa,				/* mov %edi, %edx */
	0xed,					/* in (%dx), %eax */
	0xc3,					/* ret */
	[SECOND_RDMSR] = 0x89, 0xf9,		/* mov %edi, %ecx */
	0x0f, 0x32,				/* rdmsr */
	0xc3,					/* ret */
};

/* Returns whether it reads this port or this register, which is not zero, of @inside. */
static s64 second_reads(const struct inside *inside, struct hv_registration *registration, u16 port,
			u32 msr)
{
	const void *text = (const void *)registration->text;
	u32 (*in)(u64 port) = text;
	u32 (*read)(u64 msr) = text + SECOND_RDMSR;
	s64 err = guard_views_arm(SECOND, registration);
	bool reads;

	if (err)
		return err;
	inside->in(port, 4);
	reads = in(port) != ~0u || read(msr);
	return guard_views_disarm(SECOND) ?: reads;
}

/*
 * Whether another module reads a port or a register of @inside, which was entered on this CPU
 * before: bit 0, if it has a port and a register itself; bit 1, one without privileges in the
 * place of that one.
 */
static s64 reach_second(const struct inside *inside, u16 port, u32 msr)
{
	void *text;
	struct hv_registration *registration = outside_page_of_text(&text);
	struct hv_privilege *list;
	s64 with, without;
	pte_t *entry;

	if (!registration)
		return -ENOMEM;
	memcpy(text, second_text, sizeof(second_text));
	entry = outside_entry_of((unsigned long)text);
	set_pte(entry, pte_mkexec(*entry));
	on_each_cpu(outside_flush, NULL, 1);
	registration->entry_count = 2;
	registration->words[1] = 0;
	registration->words[2] = SECOND_RDMSR;
	list = (void *)&registration->words[3];
	add(list, HV_PRIVILEGE_PORTS, HV_NO_FUNCTION, 0x300, 1);
	add(list + 1, HV_PRIVILEGE_MSR, HV_NO_FUNCTION, 0xc0010073, 1);
	registration->privilege_count = 2;
	with = second_reads(inside, registration, port, msr);
	registration->privilege_count = 0;
	without = second_reads(inside, registration, port, msr);
	vfree(text);
	free_page((unsigned long)registration);
	if (with < 0 || without < 0)
		return min(with, without);
	return with | without << 1;
}

/* ---- configuration space, without Linux ---- */

static u32 config_read(u32 function, u32 reg)
{
	outl(ENABLE | function << 8 | (reg & 0xfc), ADDRESS);
	return inl(DATA);
}

static void out_any(u32 port, u32 size, u32 value)
{
	if (size == 1)
		outb(value, port);
	else if (size == 2)
		outw(value, port);
	else
		outl(value, port);
}

/* Writes to a port near CFCh. Returns the register's value then. */
static u64 config_write(u32 function, u32 reg, u32 port, u32 size, u32 value)
{
	unsigned long flags;
	u32 now;

	local_irq_save(flags);
	outl(ENABLE | function << 8 | (reg & 0xfc), ADDRESS);
	out_any(port, size, value);
	now = config_read(function, reg);
	local_irq_restore(flags);
	return now;
}

/* With bits of port CF8h that are reserved; QEMU ignores them. */
static u64 config_reserved(u32 function, u32 reg, u32 value)
{
	unsigned long flags;

	local_irq_save(flags);
	outl(ENABLE | 0x01000000 | function << 8 | reg, ADDRESS);
	outl(value, DATA);
	local_irq_restore(flags);
	return config_read(function, reg);
}

/* Between two registers: QEMU adds the lowest bits of port CF8h to the place of the access. */
static u64 config_between(u32 function, u32 reg, u32 value)
{
	unsigned long flags;

	local_irq_save(flags);
	outl(ENABLE | function << 8 | (reg - 1), ADDRESS);
	outl(value << 8, DATA);
	local_irq_restore(flags);
	return config_read(function, reg);
}

/* Where function 0 of q35 has the window of configuration space; 0 for another one. */
static u64 window(void)
{
	return config_read(0, 0) == 0x29c08086 ? config_read(0, 0x60) & 0xf0000000 : 0;
}

/* Writes through the window. Returns what a port reads then. */
static u64 config_window(u32 function, u32 reg, u32 value)
{
	void __iomem *at = ioremap(window() + ((u64)function << 12), PAGE_SIZE);

	if (!at)
		return ~0ULL;
	writel(value, at + reg);
	iounmap(at);
	return config_read(function, reg);
}

/* ---- a BAR that is moved while its module is being armed ---- */

static struct {
	void __iomem *bar;	/* in the window */
	bool is_ready, goes, is_done;
} late;

/* Uses the window by a translation from before the registration, and flushes then. */
static void move_late(void *unused)
{
	writel(readl(late.bar), late.bar);
	WRITE_ONCE(late.is_ready, true);
	while (!READ_ONCE(late.goes))
		cpu_relax();
	writel(0xd0000000, late.bar);
	outside_flush_guard(NULL);
	WRITE_ONCE(late.is_done, true);
}

static s64 arm_while_moving(u64 number, const struct hv_registration *registration)
{
	void __iomem *page = ioremap(window() + ((u64)function_of(edu) << 12), PAGE_SIZE);
	unsigned int other;
	u32 bar;
	s64 err;

	if (!page)
		return -ENOMEM;
	late.bar = page + PCI_BASE_ADDRESS_0;
	late.is_ready = false;
	late.goes = false;
	late.is_done = false;
	bar = readl(late.bar);
	other = cpumask_any_but(cpu_online_mask, get_cpu());
	smp_call_function_single(other, move_late, NULL, 0);
	while (!READ_ONCE(late.is_ready))
		cpu_relax();
	err = outside_guard_call(HV_CALL_REGISTER, number, virt_to_phys((void *)registration));
	WRITE_ONCE(late.goes, true);
	while (!READ_ONCE(late.is_done))
		cpu_relax();
	put_cpu();
	on_each_cpu(outside_flush_guard, NULL, 1);
	if (!err) {
		err = outside_guard_call(HV_CALL_ARM, number, 0);
		if (err)
			guard_views_disarm(number);
	}
	iounmap(page);
	config_write(function_of(edu), PCI_BASE_ADDRESS_0, DATA, 4, bar);
	return err;
}

int outside_arm(u64 number, const struct hv_registration *registration)
{
	return moves ? arm_while_moving(number, registration) :
		       guard_views_arm(number, registration);
}

/* OUTSL to CFCh. Returns whether it raises an exception, and the register is the same. */
static u64 config_string(u32 function, u32 reg)
{
	u32 value = 0x12345678, was = config_read(function, reg);
	const void *from = &value;
	unsigned long flags;
	long fault = 1;

	local_irq_save(flags);
	outl(ENABLE | function << 8 | reg, ADDRESS);
	asm volatile("1: outsl\n\t"
		     "xor %[fault], %[fault]\n"
		     "2:\n"
		     _ASM_EXTABLE(1b, 2b)
		     : [fault] "+r" (fault), "+S" (from) : "d" (DATA) : "memory", "cc");
	local_irq_restore(flags);
	return fault && config_read(function, reg) == was;
}

/*
 * Writes to each register but the command, by every size, and through each port that is a part of
 * it or overlaps it. Returns how many of the registers with addresses were ever changed.
 */
static u64 config_fuzz(u32 function)
{
	static const u32 values[] = { 0, ~0u, 0xe0000000, 0x12345678, 0xfebf0000 };
	u32 words[HEADER], bad = 0, reg, size, i, port, at;

	for (i = 0; i < HEADER; i++)
		words[i] = config_read(function, i * 4);
	for (reg = 0x10; reg < 0x3c; reg += 4)
		for (size = 1; size <= 4; size *= 2)
			for (port = DATA - 3; port < DATA + 4; port++)
				for (i = 0; i < ARRAY_SIZE(values); i++) {
					/* Not CF9h, by which the machine is reset. */
					if (port + size <= DATA || port <= ADDRESS + 1)
						continue;
					config_write(function, reg, port, size, values[i]);
					for (at = 4; at < 15; at++)
						bad += config_read(function, at * 4) != words[at];
				}
	return bad;
}

/* ---- the commands ---- */

static struct pci_dev *device_of(u64 number)
{
	/* The last but one stands for function 0; only the machine q35 has the last one. */
	struct pci_dev *devices[] = {
		edu, other_edu, nic, shared, edu->bus->self, other_bridge, NULL, smbus,
	};

	return devices[number % ARRAY_SIZE(devices)];
}

static void __iomem *bar_of(u64 number)
{
	void __iomem *bars[] = { edu_bar, other_bar, nic_bar, shared_bar };

	return bars[number % ARRAY_SIZE(bars)];
}

/* A read and write by one locked instruction: what it reads. */
static u64 exchange_add(void __iomem *at)
{
	u32 value = 1;

	asm volatile("lock xaddl %0, %1" : "+r" (value), "+m" (*(volatile u32 __force *)at));
	return value;
}

/* Through another mapping, with another type of memory. */
static u64 read_by_alias(u64 number, u64 offset)
{
	u64 physical = pci_resource_start(device_of(number), number == 3 ? 2 : 0);
	void *alias = memremap((physical + offset) & PAGE_MASK, PAGE_SIZE, MEMREMAP_WT);
	u64 value;

	if (!alias)
		return 0;
	value = READ_ONCE(*(u32 *)(alias + (offset & ~PAGE_MASK)));
	memunmap(alias);
	return value;
}

/* INSL. Returns whether it raises an exception, and gives nothing. */
static u64 in_string(u64 port)
{
	u32 value = 0x5a5a5a5a;
	void *to = &value;
	long fault = 1;

	asm volatile("1: insl\n\t"
		     "xor %[fault], %[fault]\n"
		     "2:\n"
		     _ASM_EXTABLE(1b, 2b)
		     : [fault] "+r" (fault), "+D" (to) : "d" ((u16)port) : "memory", "cc");
	return fault && value == 0x5a5a5a5a;
}

static u64 out_string(u64 port)
{
	u8 value = 0xf;
	const void *from = &value;
	long fault = 1;

	asm volatile("1: outsb\n\t"
		     "xor %[fault], %[fault]\n"
		     "2:\n"
		     _ASM_EXTABLE(1b, 2b)
		     : [fault] "+r" (fault), "+S" (from) : "d" ((u16)port) : "memory", "cc");
	return fault;
}

static u64 in_any(u64 port, u64 size)
{
	return size == 1 ? inb(port) : size == 2 ? inw(port) : inl(port);
}

static u64 read_msr(u64 rcx)
{
	u32 low, high;

	asm volatile("rdmsr" : "=a" (low), "=d" (high) : "c" (rcx));
	return low | (u64)high << 32;
}

static u64 write_msr(u64 rcx, u64 value)
{
	asm volatile("wrmsr" : : "c" (rcx), "a" ((u32)value), "d" (value >> 32) : "memory");
	return read_msr(rcx);
}

s64 outside_monitor_call(u64 number)
{
	u64 b = 0, c = 0, d, si;
	s64 result;

	asm volatile("vmmcall"
		     : "=a" (result), "+b" (b), "+c" (c), "=d" (d), "=S" (si)
		     : "a" (HV_CALL + number) : "memory");
	return b || c ? 1 : result;
}
EXPORT_SYMBOL_GPL(outside_monitor_call);

static u64 random(const struct inside *inside)
{
	u64 numbers[8] = {}, i, j;

	inside->random(numbers);
	inside->random(numbers + 4);
	for (i = 0; i < 8; i++)
		for (j = 0; j <= i; j++)
			if (!numbers[i] || (i != j && numbers[i] == numbers[j]))
				return 0;
	return 1;
}

/* The device copies a page of memory to itself, and back to another place. */
static u64 dma(const struct inside *inside)
{
	u32 i;

	for (i = 0; i < 256; i++) {
		page[i] = 0x1000 + i;
		page[i + 512] = 0;
	}
	if (!inside->dma(edu_bar, virt_to_phys(page), virt_to_phys(page + 512), 1024))
		return 0;
	for (i = 0; i < 256; i++)
		if (page[i + 512] != 0x1000 + i)
			return 0;
	return 1;
}

/* Instructions, in counting mode: the least of 100. */
static u64 cost(const struct inside *inside, u64 which)
{
	u64 best = ~0ULL, empty = ~0ULL, start, i, numbers[4];
	unsigned long flags;

	local_irq_save(flags);
	for (i = 0; i < 100; i++) {
		start = rdtsc_ordered();
		empty = min(empty, rdtsc_ordered() - start);
		start = rdtsc_ordered();
		switch (which) {
		case 0:
			inside->nothing();
			break;
		case 1:
			inside->counter();
			break;
		case 2:
			inside->random(numbers);
			break;
		case 3:
			readl(edu_bar);
			break;
		case 4:
			writel(0, edu_bar + 4);
			break;
		case 5:
			inb(0x443);
			break;
		case 6:
			outb(0, 0x443);
			break;
		case 7:
			read_msr(MSR_IA32_MISC_ENABLE);
			break;
		case 8:
			config_read(function_of(edu), 0);
			break;
		case 9:
			config_write(function_of(edu), 0x10, DATA, 4, 0);
			break;
		}
		best = min(best, rdtsc_ordered() - start);
	}
	local_irq_restore(flags);
	return best - empty;
}

/* What needs no module inside. */
static bool kernel_command(const char *word, u64 a, u64 b, u64 c, u64 *result)
{
	if (!strcmp(word, "devices"))
		*result = !!edu;
	else if (!strcmp(word, "second"))
		*result = second(a, b);
	else if (!strcmp(word, "nmis"))
		*result = atomic_read(&nmis);
	else if (!strcmp(word, "k-msr-read"))
		*result = read_msr(a);
	else if (!strcmp(word, "k-msr-write"))
		*result = write_msr(a, b);
	else if (!strcmp(word, "k-call"))
		*result = outside_monitor_call(a);
	else if (!strcmp(word, "k-in"))
		*result = in_any(a, b);
	else if (!strcmp(word, "k-out"))
		out_any(a, b, c);
	else if (!strcmp(word, "k-in-string"))
		*result = in_string(a);
	else if (!strcmp(word, "k-out-string"))
		*result = out_string(a);
	else
		return false;
	return true;
}

static bool kernel_device_command(const char *word, u64 a, u64 b, u64 c, u64 *result)
{
	struct pci_dev *device = device_of(a);
	u32 function = device ? function_of(device) : 0;

	if (!strcmp(word, "k-read"))
		*result = readl(bar_of(a) + b);
	else if (!strcmp(word, "k-write"))
		writel(c, bar_of(a) + b);
	else if (!strcmp(word, "k-xadd"))
		*result = exchange_add(bar_of(a) + b);
	else if (!strcmp(word, "k-alias"))
		*result = read_by_alias(a, b);
	else if (!strcmp(word, "bar"))
		*result = pci_resource_start(device_of(a), b);
	else if (!strcmp(word, "config-read"))
		*result = config_read(function, b);
	else if (!strcmp(word, "config"))
		*result = config_write(function, b & 0xff, DATA + (b & 3), b >> 8, c);
	else if (!strcmp(word, "config-sibling"))
		*result = config_write(function | 1, b, DATA, 4, c);
	else if (!strcmp(word, "config-other-device"))
		*result = config_write(function | 8, b, DATA, 4, c);
	else if (!strcmp(word, "config-string"))
		*result = config_string(function, b);
	else if (!strcmp(word, "config-reserved"))
		*result = config_reserved(function, b, c);
	else if (!strcmp(word, "config-between"))
		*result = config_between(function, b, c);
	else if (!strcmp(word, "config-window"))
		*result = config_window(function, b, c);
	else if (!strcmp(word, "window"))
		*result = window();
	else if (!strcmp(word, "move-window"))
		*result = config_write(0, 0x60, DATA, 4, a);
	else if (!strcmp(word, "config-fuzz"))
		*result = config_fuzz(function);
	else if (!strcmp(word, "pci-enable"))
		*result = pci_enable_device(device_of(a));
	else if (!strcmp(word, "pci-master"))
		pci_set_master(device_of(a));
	else if (!strcmp(word, "pci-disable"))
		pci_disable_device(device_of(a));
	else if (!strcmp(word, "pci-power"))
		*result = pci_set_power_state(device_of(a), b);
	else
		return false;
	return true;
}

static bool inside_command(const struct inside *inside, const char *word, u64 a, u64 b, u64 c,
			   u64 *result)
{
	if (!strcmp(word, "m-msr-read"))
		*result = inside->read_msr(a);
	else if (!strcmp(word, "m-msr-write"))
		inside->write_msr(a, b);
	else if (!strcmp(word, "m-in"))
		*result = inside->in(a, b);
	else if (!strcmp(word, "m-out"))
		inside->out(a, b, c);
	else if (!strcmp(word, "second-reads"))
		*result = reach_second(inside, a, b);
	else if (!strcmp(word, "m-counter"))
		*result = inside->counter();
	else if (!strcmp(word, "m-random"))
		*result = random(inside);
	else if (!edu)
		return false;
	else if (!strcmp(word, "m-read"))
		*result = inside->read_memory(bar_of(a) + b);
	else if (!strcmp(word, "m-write"))
		inside->write_memory(bar_of(a) + b, c);
	else if (!strcmp(word, "l-read"))
		*result = outside_jump(inside->middle, (void __force *)(bar_of(a) + b));
	else if (!strcmp(word, "l-write"))
		*result = outside_jump(outside_after_entry(inside->write_memory),
				       (void __force *)(bar_of(a) + b));
	else if (!strcmp(word, "m-in-string"))
		inside->in_string(a, (u32 *)result, 2);
	else if (!strcmp(word, "m-factorial"))
		*result = inside->factorial(edu_bar, a);
	else if (!strcmp(word, "m-dma"))
		*result = dma(inside);
	else if (!strcmp(word, "cost-of"))
		*result = cost(inside, a);
	else
		return false;
	return true;
}

bool outside_device_command(const struct inside *inside, const char *word, u64 a, u64 b, u64 c,
			    u64 *result)
{
	return kernel_command(word, a, b, c, result) ||
	       (edu && kernel_device_command(word, a, b, c, result)) ||
	       (inside && inside_command(inside, word, a, b, c, result));
}

/* ---- the devices ---- */

static void __iomem *map(struct pci_dev *device, int bar)
{
	return ioremap(pci_resource_start(device, bar),
		       min_t(u64, pci_resource_len(device, bar), 0x100000));
}

/* Machines without them have none of these tests. Returns false without memory. */
bool outside_find_devices(void)
{
	struct pci_dev *device = NULL;

	page = (void *)__get_free_page(GFP_KERNEL | GFP_DMA);
	if (!page)
		return false;
	register_nmi_handler(NMI_UNKNOWN, on_nmi, 0, "dune-guard-outside");
	while ((device = pci_get_device(0x1234, 0x11e8, device))) {
		/* Beneath a port of PCI Express, if there is one. */
		if (device->bus->self && edu && pci_is_pcie(edu->bus->self))
			continue;
		if (device->bus->self)
			edu = pci_dev_get(device);
		else
			other_edu = pci_dev_get(device);
	}
	nic = pci_get_device(PCI_VENDOR_ID_INTEL, 0x100e, NULL);
	smbus = pci_get_device(PCI_VENDOR_ID_INTEL, 0x2930, NULL);
	shared = pci_get_device(PCI_VENDOR_ID_REDHAT_QUMRANET, 0x1110, NULL);
	while ((device = pci_get_device(PCI_VENDOR_ID_REDHAT, 0x0001, device)))
		if (!edu || device != edu->bus->self)
			other_bridge = device;
	if (!edu || !other_edu || !nic || !shared || !other_bridge) {
		edu = NULL;
		return true;
	}
	edu_bar = map(edu, 0);
	other_bar = map(other_edu, 0);
	nic_bar = map(nic, 0);
	shared_bar = map(shared, 2);
	if (edu_bar && other_bar && nic_bar && shared_bar)
		return true;
	outside_forget_devices();
	return false;
}

void outside_forget_devices(void)
{
	void __iomem *bars[] = { edu_bar, other_bar, nic_bar, shared_bar };
	int i;

	for (i = 0; i < ARRAY_SIZE(bars); i++)
		if (bars[i])
			iounmap(bars[i]);
	pci_dev_put(edu);
	pci_dev_put(other_edu);
	pci_dev_put(nic);
	pci_dev_put(shared);
	unregister_nmi_handler(NMI_UNKNOWN, "dune-guard-outside");
	free_page((unsigned long)page);
}
