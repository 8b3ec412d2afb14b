/* SPDX-License-Identifier: GPL-2.0-only */
/* Accesses of the image to I/O ports, of 1, 2 or 4 bytes. */
#ifndef GUARD_HV_PORT_H
#define GUARD_HV_PORT_H

#include <linux/types.h>

static inline u32 hv_in(u16 port, u32 size)
{
	u32 value = 0;

	if (size == 1)
		asm volatile("inb %w1, %b0" : "+a" (value) : "d" (port));
	else if (size == 2)
		asm volatile("inw %w1, %w0" : "+a" (value) : "d" (port));
	else
		asm volatile("inl %w1, %0" : "=a" (value) : "d" (port));
	return value;
}

static inline void hv_out(u16 port, u32 size, u32 value)
{
	if (size == 1)
		asm volatile("outb %b0, %w1" : : "a" (value), "d" (port));
	else if (size == 2)
		asm volatile("outw %w0, %w1" : : "a" (value), "d" (port));
	else
		asm volatile("outl %0, %w1" : : "a" (value), "d" (port));
}

#endif /* GUARD_HV_PORT_H */
