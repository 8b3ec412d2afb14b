// SPDX-License-Identifier: GPL-2.0-only
/*
 * The ports by which the computer sleeps, is switched off or reset. They exit once the guard is
 * sealed, and no other port does. Sleep would leave memory as it is and take the guard away from
 * each CPU, so it is the only access that is not carried out as it is.
 */
#include <linux/types.h>
#include <asm/svm.h>
#include <asm/trapnr.h>

#include "guard/hv/hv.h"

/* Of the byte with SLP_TYP and SLP_EN (ACPI 6.5, 4.8.3.2.1 and 4.8.3.7). */
#define SLEEP_ENABLE	BIT(5)
#define SLEEP_TYPE(b)	((b) >> 2 & 7)

/* HV_CALL_SEAL, on each CPU. */
void hv_io_watch(struct hv_cpu *cpu)
{
	struct vmcb_control_area *control = &hv_vmcb(cpu)->control;

	control->intercepts[INTERCEPT_IOIO_PROT / 32] |= BIT(INTERCEPT_IOIO_PROT % 32);
	control->clean = 0;
}

/* Returns what is written to a port instead of @byte. */
static u8 allowed_byte(u32 port, u8 byte)
{
	int i;

	for (i = 0; i < HV_SLEEP_PORTS; i++)
		if (hv_config.sleep[i].port == port && byte & SLEEP_ENABLE &&
		    SLEEP_TYPE(byte) != hv_config.sleep[i].off)
			byte &= ~SLEEP_ENABLE;
	return byte;
}

/* Whether this write resets the computer or switches it off; each is one byte. */
static bool ends(u32 port, u8 byte)
{
	switch (port) {
	case HV_PORT_RESET:
		return byte & BIT(2);
	case HV_PORT_CONTROL:
		return byte & BIT(0);
	case HV_PORT_KEYBOARD:
		/* Pulses lines that have a 0; bit 0 is the reset. */
		return (byte & 0xf1) == 0xf0;
	default:
		/* What is left of the sleep registers' values is the one for off. */
		return byte & SLEEP_ENABLE;
	}
}

/* PCI's address is written as a whole, and then includes the chipset's register of reset. */
static bool is_pci_address(u16 port, u32 size)
{
	return port == HV_PORT_PCI && size == 4;
}

static bool is_watched(u32 port)
{
	return hv_config.iopm[port / 8] & 1 << port % 8;
}

static u32 in(u16 port, u32 size)
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

static void out(u16 port, u32 size, u32 value)
{
	if (size == 1)
		asm volatile("outb %b0, %w1" : : "a" (value), "d" (port));
	else if (size == 2)
		asm volatile("outw %w0, %w1" : : "a" (value), "d" (port));
	else
		asm volatile("outl %0, %w1" : : "a" (value), "d" (port));
}

static void write_port(struct hv_cpu *cpu, u16 port, u32 size, u32 value)
{
	bool off = false;
	u32 i, at, byte, was = value;

	for (i = 0; i < size; i++) {
		at = port + i;
		if (!is_watched(at) || is_pci_address(port, size))
			continue;
		byte = allowed_byte(at, value >> 8 * i);
		value = (value & ~(0xffu << 8 * i)) | byte << 8 * i;
		off |= ends(at, byte);
	}
	if (value != was)
		hv_log(cpu, HV_LOG_PORT, port);
	if (off)
		hv_before_reset();
	out(port, size, value);
}

/* EXITINFO1 describes the instruction, and EXITINFO2 is the RIP after it (APM 15.10.2). */
void hv_io(struct hv_cpu *cpu)
{
	struct vmcb *vmcb = hv_vmcb(cpu);
	u32 info = vmcb->control.exit_info_1, size = (info & SVM_IOIO_SIZE_MASK) >> 4;
	u16 port = info >> 16;
	u64 value;

	cpu->counts[HV_COUNT_PORT]++;
	if (info & SVM_IOIO_STR_MASK) {
		/* Nothing uses INS and OUTS there; the data would be in the guest's memory. */
		hv_log(cpu, HV_LOG_PORT, port);
		hv_inject(cpu, X86_TRAP_GP, true);
		return;
	}
	if (info & SVM_IOIO_TYPE_MASK) {
		value = in(port, size);
		if (size < 4)
			value |= vmcb->save.rax & (~0ULL << 8 * size);
		vmcb->save.rax = value;
	} else {
		write_port(cpu, port, size, vmcb->save.rax);
	}
	hv_skip_to(cpu, vmcb->control.exit_info_2);
}
