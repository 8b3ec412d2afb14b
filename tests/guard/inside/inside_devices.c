// SPDX-License-Identifier: GPL-2.0-only
/* What the guarded module of the tests does with its privileges: see inside.h. */
#include <linux/delay.h>

#include "edu.h"
#include "guard/hv/hv.h"
#include "inside.h"

u64 enter_read_memory(const void __iomem *at)
{
	return readl(at);
}

void enter_write_memory(void __iomem *at, u64 value)
{
	writel(value, at);
}

u64 enter_in(u64 port, u64 size)
{
	switch (size) {
	case 1:
		return inb(port);
	case 2:
		return inw(port);
	default:
		return inl(port);
	}
}

void enter_out(u64 port, u64 size, u64 value)
{
	switch (size) {
	case 1:
		outb(value, port);
		break;
	case 2:
		outw(value, port);
		break;
	default:
		outl(value, port);
	}
}

void enter_in_string(u64 port, u32 *to, unsigned long count)
{
	asm volatile("rep insl" : "+D" (to), "+c" (count) : "d" ((u16)port) : "memory");
}

u64 enter_read_msr(u64 msr)
{
	u32 low, high;

	asm volatile("rdmsr" : "=a" (low), "=d" (high) : "c" (msr));
	return low | (u64)high << 32;
}

void enter_write_msr(u64 msr, u64 value)
{
	asm volatile("1: wrmsr\n"
		     "2:\n" _ASM_EXTABLE(1b, 2b)
		     : : "c" (msr), "a" ((u32)value), "d" (value >> 32) : "memory");
}

void enter_random(u64 to[4])
{
	u64 result = HV_CALL + HV_CALL_RANDOM;

	asm volatile("vmmcall"
		     : "+a" (result), "=b" (to[0]), "=c" (to[1]), "=d" (to[2]), "=S" (to[3]));
}

u64 enter_counter(void)
{
	u64 result = HV_CALL + HV_CALL_COUNTER, value;

	asm volatile("vmmcall" : "+a" (result), "=b" (value));
	return result ? 0 : value;
}

#define TRIES		250

u64 enter_factorial(void __iomem *edu, u64 number)
{
	int tries = TRIES;

	writel(number, edu + EDU_FACTORIAL);
	while (readl(edu + EDU_STATUS) & EDU_BUSY && tries--)
		msleep(20);
	return readl(edu + EDU_FACTORIAL);
}

static bool transfer(void __iomem *edu, u64 from, u64 to, u64 size, u64 command)
{
	int tries = TRIES;

	edu_copy(edu, from, to, size, command);
	while (readl(edu + EDU_COMMAND) & EDU_START && tries--)
		msleep(20);
	return tries > 0;
}

u64 enter_dma(void __iomem *edu, u64 from, u64 to, u64 size)
{
	return transfer(edu, from, EDU_BUFFER, size, 0) &&
	       transfer(edu, EDU_BUFFER, to, size, EDU_TO_MEMORY);
}
