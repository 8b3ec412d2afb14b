// SPDX-License-Identifier: GPL-2.0-only
/*
 * Ports that exit, in K and in M. The ports of sleep, power-off and reset exit once the guard is
 * sealed. Sleep is not carried out: it would leave memory as it is, and take the guard away from
 * each CPU. The ports of a module (privilege/ports.c) read as ones and ignore writes outside of the
 * module, byte by byte. Those of PCI's configuration space exit from the first lock of a function
 * on (privilege/pci.c).
 */
#include <linux/types.h>
#include <asm/trapnr.h>

#include "guard/hv/lock.h"
#include "guard/hv/port.h"
#include "guard/hv/views.h"
#include "x86/svm/vmcb.h"

/* Of the byte with SLP_TYP and SLP_EN (ACPI 6.5, 4.8.3.2.1 and 4.8.3.7). */
#define SLEEP_ENABLE	BIT(5)
#define SLEEP_TYPE(b)	((b) >> 2 & 7)

#define PCI_ENABLE	BIT(31)		/* in the address */

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
	int i;

	switch (port) {
	case HV_PORT_RESET:
		return byte & BIT(2);
	case HV_PORT_CONTROL:
		return byte & BIT(0);
	case HV_PORT_KEYBOARD:
		/*
		 * F0h and above pulse lines that have a 0, and bit 0 is the reset. After D1h the
		 * next byte at port 60h has the same lines; it is not looked at.
		 */
		return (byte & 0xf1) == 0xf0 || byte == 0xd1;
	}
	/* A sleep register's byte that still has SLP_EN switches the computer off. */
	for (i = 0; i < HV_SLEEP_PORTS; i++)
		if (hv_config.sleep[i].port == port)
			return byte & SLEEP_ENABLE;
	return false;
}

static bool is_watched(u32 port)
{
	return hv_config.iopm[port / 8] & 1 << port % 8;
}

/* A bit for each byte of an access to a port that is a module's, but not the current one's. */
static u32 taken_bytes(const struct hv_cpu *cpu, u32 port, u32 size)
{
	u32 i, taken = 0;

	for (i = 0; i < size; i++)
		if (hv_is_taken(cpu, HV_PRIVILEGE_PORTS, port + i))
			taken |= 1 << i;
	return taken;
}

static u32 read_port(struct hv_cpu *cpu, u32 port, u32 size)
{
	u32 i, value = 0, taken = taken_bytes(cpu, port, size);

	if (!taken)
		return hv_in(port, size);
	hv_log(cpu, HV_LOG_PORT, port);
	for (i = 0; i < size; i++)
		value |= (taken >> i & 1 ? 0xff : hv_in(port + i, 1)) << 8 * i;
	return value;
}

static void write_port(struct hv_cpu *cpu, u32 port, u32 size, u32 value)
{
	u32 i, at, byte, was = value, taken = taken_bytes(cpu, port, size);
	bool off = false;

	for (i = 0; i < size; i++) {
		at = port + i;
		if (!is_watched(at) || taken >> i & 1)
			continue;
		byte = allowed_byte(at, value >> 8 * i);
		value = (value & ~(0xffu << 8 * i)) | byte << 8 * i;
		off |= ends(at, byte);
	}
	if (value != was || taken)
		hv_log(cpu, HV_LOG_PORT, port);
	if (off)
		hv_before_reset();
	if (!taken)
		hv_out(port, size, value);
	for (i = 0; i < size && taken; i++)
		if (!(taken >> i & 1))
			hv_out(port + i, 1, value >> 8 * i);
}

/*
 * A write that has a part of port CFCh. The processor divides it where it crosses a multiple of 4;
 * so only four bytes at CF8h itself select a register.
 */
static void write_pci(struct hv_cpu *cpu, u32 port, u32 size, u32 value)
{
	u32 before = port < HV_PORT_PCI_DATA ? HV_PORT_PCI_DATA - port : 0;
	u32 after = port + size > HV_PORT_PCI_END ? port + size - HV_PORT_PCI_END : 0, i;

	for (i = 0; i < before; i++)
		write_port(cpu, port + i, 1, value >> 8 * i & 0xff);
	hv_pci_write(cpu, port + before - HV_PORT_PCI_DATA, size - before - after,
		     value >> 8 * before);
	for (i = size - after; i < size; i++)
		write_port(cpu, port + i, 1, value >> 8 * i & 0xff);
}

static void write_any(struct hv_cpu *cpu, u32 port, u32 size, u32 value)
{
	/* The second byte is not the port of reset here. */
	if (port == HV_PORT_PCI_ADDRESS && size == 4)
		hv_out(port, size, value);
	else if (port + size > HV_PORT_PCI_DATA && port < HV_PORT_PCI_END && hv_pci_is_guarded() &&
		 hv_in(HV_PORT_PCI_ADDRESS, 4) & PCI_ENABLE)
		write_pci(cpu, port, size, value);
	else
		write_port(cpu, port, size, value);
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
	/* Also for the two accesses to configuration space of the guard's own. */
	hv_lock(&hv_views_lock);
	if (info & SVM_IOIO_TYPE_MASK) {
		value = read_port(cpu, port, size);
		if (size < 4)
			value |= vmcb->save.rax & (~0ULL << 8 * size);
		vmcb->save.rax = value;
	} else {
		write_any(cpu, port, size, vmcb->save.rax);
	}
	hv_unlock(&hv_views_lock);
	hv_skip_to(cpu, vmcb->control.exit_info_2);
}
