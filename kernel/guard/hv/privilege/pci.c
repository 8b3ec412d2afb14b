// SPDX-License-Identifier: GPL-2.0-only
/*
 * The lock of PCI configuration space, without which a guarded BAR means nothing: the kernel could
 * move it, move the window of a bridge, or lay another device over it. docs/guard-privileges.md
 * goes through the registers. PCI is the PCI Local Bus Specification 3.0, and BRIDGE the PCI-to-PCI
 * Bridge Architecture Specification 1.2, and EXPRESS the PCI Express Base Specification 4.0.
 *
 * Of a locked function the kernel writes what Linux's functions for drivers need, and all else
 * keeps the value that it had at the registration. Of every other function it writes anything that
 * makes no claim to a guarded address.
 *
 * Port CF8h selects the register that port CFCh has, for the whole computer (PCI 3.2.2.3.2). Each
 * access of any CPU exits while something is locked, and is carried out with the lock held.
 */
#include <linux/types.h>
#include <uapi/asm-generic/errno.h>

#include "guard/hv/port.h"
#include "guard/hv/views.h"

#define ENABLE		BIT(31)
/*
 * Of CF8h: reserved, and with AMD more bits of the register's number. QEMU adds the lowest two to
 * the place of an access.
 */
#define RESERVED	0x7f000003u

/* Registers, at multiples of 4 bytes (PCI 6.1, BRIDGE 3.2). */
#define REG_ID		0x00
#define REG_COMMAND	0x04
#define REG_HEADER	0x0c
#define REG_BARS	0x10
#define REG_BARS_END	0x28
#define REG_ROM		0x30
#define REG_CAPABILITIES 0x34
#define REG_LINE	0x3c
#define HEADER_SIZE	0x40
/* Of a bridge. */
#define REG_BUSES	0x18
#define REG_IO		0x1c
#define REG_MEMORY	0x20
#define REG_PREFETCH	0x24
#define REG_BASE_HIGH	0x28
#define REG_LIMIT_HIGH	0x2c
#define REG_BRIDGE_ROM	0x38
#define ROM_ENABLED	BIT(0)
/* Of QEMU's q35, function 0: where ECAM is. */
#define REG_ECAM	0x60
#define VENDOR_INTEL	0x8086

#define DECODES		3		/* I/O and memory, in the command register */
#define HAS_CAPABILITIES BIT(20)	/* in the status register */
#define IS_MULTIPLE	BIT(23)		/* in the header type: a device with several functions */
#define IS_IO		BIT(0)		/* in a BAR */
#define IS_64		BIT(2)

#define CAPABILITY_PM	0x01
#define CAPABILITY_MSI	0x05
#define MSI_64		BIT(23)
#define MSI_MASKS	BIT(24)
#define CAPABILITY_PCIE	0x10
#define PCIE_VERSION	0xf0000
#define PCIE_VERSION_1	0x10000
#define PCIE_TYPE	0xf00000
#define PCIE_ROOT_PORT	0x400000	/* 600000h: a switch's downstream port */
#define PCIE_CONTROL_2	0x28
#define CAPABILITY_MSIX	0x11
#define CAPABILITY_EA	0x14
#define MOST_CAPABILITIES 48

/**
 * struct lock - a function, or a bridge above one
 * @owner:	NULL: unused
 * @function:	its bus, device and function
 * @is_bridge:	it is a bridge above a function
 * @is_port:	the bus beneath it is a link of PCI Express
 * @writable:	a bit for each register that the kernel may write
 * @words:	its header at the registration
 */
static struct lock {
	const struct hv_guarded *owner;
	u32 function;
	bool is_bridge;
	bool is_port;
	u64 writable;
	u32 words[HEADER_SIZE / 4];
} locks[HV_LOCKS];

static u32 read(u32 function, u32 reg)
{
	hv_out(HV_PORT_PCI_ADDRESS, 4, ENABLE | function << 8 | reg);
	return hv_in(HV_PORT_PCI_DATA, 4);
}

static void write(u32 function, u32 reg, u32 value)
{
	hv_out(HV_PORT_PCI_ADDRESS, 4, ENABLE | function << 8 | reg);
	hv_out(HV_PORT_PCI_DATA, 4, value);
}

/* The number of registrations for which configuration space is guarded. */
static u32 users;

bool hv_pci_is_guarded(void)
{
	return users;
}

static bool is_link(u32 bus)
{
	u32 i;

	for (i = 0; i < HV_LOCKS; i++)
		if (locks[i].owner && locks[i].is_port &&
		    (locks[i].words[REG_BUSES / 4] >> 8 & 0xff) == bus)
			return true;
	return false;
}

/*
 * A device with one function may answer to the numbers of all eight (PCI 3.2.2.3.4). At a link
 * there is one device, which may answer to all 32 numbers. What keeps 31 of them from it is the
 * port, as long as ARI Forwarding is off (EXPRESS 7.3.1, 7.5.3.16). That cannot be turned on any
 * more, but may have been before.
 */
static bool answers(const struct lock *lock, u32 function)
{
	u32 ignored = is_link(lock->function >> 8) ? 0xf8 : 0;

	if (!(lock->function & 7) && !(lock->words[REG_HEADER / 4] & IS_MULTIPLE))
		ignored |= 7;
	return !((lock->function ^ function) & ~ignored);
}

static const struct lock *find(u32 function)
{
	u32 i;

	for (i = 0; i < HV_LOCKS; i++)
		if (locks[i].owner && answers(&locks[i], function))
			return &locks[i];
	return NULL;
}

/* ---- a BAR, and what it claims ---- */

/* Where a BAR's register is: of the upper half of a BAR, that of the lower one. */
static u32 first_register(u32 function, u32 reg)
{
	u32 at = REG_BARS, value;

	while (at < reg && reg < REG_BARS_END) {
		value = read(function, at);
		if (!(value & IS_IO) && value & IS_64) {
			if (at + 4 == reg)
				return at;
			at += 4;
		}
		at += 4;
	}
	return reg;
}

/*
 * How many addresses a BAR has: the bits that stay 0 (PCI 6.2.5.1). All else is as before, and the
 * function claims nothing meanwhile.
 */
static u64 size_of(u32 function, u32 reg, u32 flags, bool is_64)
{
	u32 low = read(function, reg), high = is_64 ? read(function, reg + 4) : 0;
	u32 command = read(function, REG_COMMAND) & 0xffff;
	u64 mask = ~0ULL << 32;

	write(function, REG_COMMAND, command & ~DECODES);
	write(function, reg, ~0u);
	mask |= read(function, reg) & ~flags;
	write(function, reg, low);
	if (is_64) {
		write(function, reg + 4, ~0u);
		mask &= (u64)read(function, reg + 4) << 32 | ~0u;
		write(function, reg + 4, high);
	}
	write(function, REG_COMMAND, command);
	return mask << 32 ? ~mask + 1 : is_64 && mask ? ~mask + 1 : 0;
}

/* Whether a BAR would claim a guarded address if the register had this value. */
static bool bar_claims(u32 function, u32 reg, u32 value)
{
	u32 first = first_register(function, reg), low = read(function, first);
	bool is_rom = reg == REG_ROM || reg == REG_BRIDGE_ROM;
	bool is_io = !is_rom && low & IS_IO, is_64 = !is_rom && !is_io && low & IS_64;
	u32 flags = is_rom ? 0x7ff : is_io ? 3 : 0xf;
	u64 size, at;

	if (is_rom && !(value & ROM_ENABLED))
		return false;
	size = size_of(function, first, flags, is_64);
	at = (reg == first ? value : low) & ~flags;
	if (is_64)
		at |= (u64)(reg == first ? read(function, reg + 4) : value) << 32;
	if (is_io)
		size &= 0xffff;
	/* The function ignores lower bits. */
	at &= -size;
	return hv_privilege_taken(is_io ? HV_PRIVILEGE_PORTS : HV_PRIVILEGE_MMIO,
				  is_io ? at & 0xffff : at, size, NULL);
}

static bool range_claims(u32 kind, u64 base, u64 limit)
{
	return base <= limit && hv_privilege_taken(kind, base, limit - base + 1, NULL);
}

/* The same for a bridge's windows (BRIDGE 3.2.5), and for the buses beneath it. */
static bool bridge_claims(u32 function, u32 reg, u32 value)
{
	u32 words[HEADER_SIZE / 4], i, bus;

	for (i = 0; i < HEADER_SIZE / 4; i++)
		words[i] = i * 4 == reg ? value : read(function, i * 4);
	for (i = 0; i < HV_LOCKS && reg == REG_BUSES; i++) {
		bus = locks[i].function >> 8;
		if (locks[i].owner && bus && bus >= (value >> 8 & 0xff) &&
		    bus <= (value >> 16 & 0xff))
			return true;
	}
	return range_claims(HV_PRIVILEGE_MMIO, (words[REG_MEMORY / 4] & 0xfff0) << 16,
			    words[REG_MEMORY / 4] | 0xfffff) ||
	       range_claims(HV_PRIVILEGE_MMIO,
			    (u64)words[REG_BASE_HIGH / 4] << 32 |
			    (words[REG_PREFETCH / 4] & 0xfff0) << 16,
			    (u64)words[REG_LIMIT_HIGH / 4] << 32 |
			    words[REG_PREFETCH / 4] | 0xfffff) ||
	       range_claims(HV_PRIVILEGE_PORTS, (words[REG_IO / 4] & 0xf0) << 8,
			    (words[REG_IO / 4] & 0xf000) | 0xfff);
}

/* The same for all BARs and windows, as they are. */
static bool all_claim(u32 function, bool is_bridge)
{
	u32 reg, rom = is_bridge ? REG_BRIDGE_ROM : REG_ROM;

	if (is_bridge && bridge_claims(function, REG_ID, read(function, REG_ID)))
		return true;
	for (reg = REG_BARS; reg < (is_bridge ? REG_BUSES : REG_BARS_END); reg += 4)
		if (bar_claims(function, reg, read(function, reg)))
			return true;
	return bar_claims(function, rom, read(function, rom));
}

/*
 * Whether a function that is not locked would claim a guarded address. A function that decodes
 * nothing may have any BARs, as while the kernel asks for their sizes; then they count when it
 * decodes again.
 */
static bool claims(u32 function, u32 reg, u32 value)
{
	u32 type = read(function, REG_HEADER) >> 16 & 0x7f;
	u32 command = read(function, REG_COMMAND);

	if (!function && (reg & ~4u) == REG_ECAM && hv_config.ecam_size)
		return (read(function, REG_ID) & 0xffff) == VENDOR_INTEL;
	if (reg == REG_COMMAND)
		return value & ~command & DECODES && (type > 1 || all_claim(function, type));
	if (reg < REG_BARS || reg >= REG_LINE)
		return false;
	/* CardBus, which nobody has: its windows are not looked at, here and above. */
	if (type > 1)
		return true;
	if (type && reg >= REG_BUSES && reg != REG_BRIDGE_ROM)
		return bridge_claims(function, reg, value);
	return (reg < REG_BARS_END || reg == REG_ROM || reg == REG_BRIDGE_ROM) &&
	       command & DECODES && bar_claims(function, reg, value);
}

/* ---- locked functions ---- */

/* The bits of a register that hold addresses. Others change, or are cleared by writing them. */
static u32 address_bits(const struct lock *lock, u32 reg)
{
	return lock->is_bridge && reg == REG_IO ? 0xffff : ~0u;
}

static bool has_moved(const struct lock *lock, u32 reg)
{
	return (read(lock->function, reg) ^ lock->words[reg / 4]) & address_bits(lock, reg);
}

/* The registers that hold addresses have the registered values again, as before a reset. */
static void restore(const struct lock *lock)
{
	u32 reg;

	for (reg = REG_BARS; reg < REG_LINE; reg += 4)
		if (has_moved(lock, reg))
			write(lock->function, reg,
			      lock->words[reg / 4] & address_bits(lock, reg));
}

/*
 * Decides on a write to a locked function; @mask has the bytes that are written. A BAR never has
 * half of an address: either all registers with addresses are as registered, or, after a reset of
 * the function, it decodes nothing. Returns whether to write *@value.
 */
static bool may_write(const struct lock *lock, u32 reg, u32 mask, u32 old, u32 *value)
{
	if (!(lock->writable >> reg / 4 & 1)) {
		if (reg < HEADER_SIZE && !((*value ^ lock->words[reg / 4]) & mask))
			restore(lock);
		return false;
	}
	if (reg == REG_COMMAND) {
		*value |= old & DECODES;
		if (*value & DECODES)
			restore(lock);
	}
	return true;
}

void hv_pci_write(struct hv_cpu *cpu, u32 offset, u32 size, u32 data)
{
	u32 address = hv_in(HV_PORT_PCI_ADDRESS, 4);
	u32 function = address >> 8 & 0xffff, reg = address & 0xfc;
	u32 mask = (size == 4 ? ~0u : BIT(8 * size) - 1) << 8 * offset;
	u32 old, wanted, value, i;
	const struct lock *lock = find(function);
	bool may;

	old = read(function, reg);
	wanted = (old & ~mask) | (data << 8 * offset & mask);
	value = wanted;
	/* With reserved bits, another register is written than the one that is looked at here. */
	may = !(address & RESERVED) &&
	      (lock ? may_write(lock, reg, mask, old, &value) : !claims(function, reg, value));
	/* Writing what is registered changes nothing, and is no attack. */
	if (value != wanted ||
	    (!may && (address & RESERVED || ((value ^ read(function, reg)) & mask))))
		hv_log(cpu, HV_LOG_PCI, function << 8 | reg);
	hv_out(HV_PORT_PCI_ADDRESS, 4, address);
	if (!may)
		return;
	value >>= 8 * offset;
	if (size != 3)
		hv_out(HV_PORT_PCI_DATA + offset, size, value);
	for (i = 0; i < size && size == 3; i++)
		hv_out(HV_PORT_PCI_DATA + offset + i, 1, value >> 8 * i);
}

/* ---- the registration ---- */

static void allow(struct lock *lock, u32 first, u32 size)
{
	u32 reg;

	for (reg = first; reg < first + size && reg < 256; reg += 4)
		lock->writable |= BIT_ULL(reg / 4);
}

/*
 * The size of a capability, whose first word is @word (PCI 6.8.1, EXPRESS 7.5.3). What follows it
 * may be another one.
 */
static u32 size_of_msi(u32 word)
{
	return 12 + (word & MSI_64 ? 4 : 0) + (word & MSI_MASKS ? 8 : 0);
}

/* Of a bridge, the part before Device Control 2, which has ARI Forwarding. */
static u32 size_of_pcie(u32 word, bool is_bridge)
{
	if ((word & PCIE_VERSION) == PCIE_VERSION_1)
		return 20;
	return is_bridge ? PCIE_CONTROL_2 : 60;
}

/* Returns false if an address is in a capability. */
static bool allow_capabilities(struct lock *lock)
{
	u32 at = lock->words[REG_CAPABILITIES / 4] & 0xfc, i, word;

	if (!(lock->words[REG_COMMAND / 4] & HAS_CAPABILITIES))
		return true;
	for (i = 0; i < MOST_CAPABILITIES && at >= HEADER_SIZE; i++) {
		word = read(lock->function, at);
		switch (word & 0xff) {
		case CAPABILITY_PM:
			allow(lock, at, 8);
			break;
		case CAPABILITY_MSI:
			allow(lock, at, size_of_msi(word));
			break;
		case CAPABILITY_PCIE:
			allow(lock, at, size_of_pcie(word, lock->is_bridge));
			lock->is_port = lock->is_bridge &&
					(word & PCIE_TYPE & ~0x200000u) == PCIE_ROOT_PORT;
			break;
		case CAPABILITY_MSIX:
			allow(lock, at, 4);
			break;
		case CAPABILITY_EA:
			return false;
		}
		at = word >> 8 & 0xfc;
	}
	return true;
}

/* Whether the list has a BAR of this function at this address. */
static bool lists(const struct hv_guarded *guarded, u32 function, u32 kind, u64 first)
{
	const struct hv_privilege *one = guarded->privileges;
	u32 i;

	for (i = 0; i < guarded->privilege_count; i++)
		if (one[i].kind == kind && one[i].function == function && one[i].first == first)
			return true;
	return false;
}

static bool lists_bars(const struct hv_guarded *guarded, const struct lock *lock)
{
	u32 reg, low;
	u64 at;

	for (reg = REG_BARS; reg < REG_BARS_END; reg += 4) {
		low = lock->words[reg / 4];
		at = low & ~(low & IS_IO ? 3u : 0xfu);
		if (!(low & IS_IO) && low & IS_64) {
			reg += 4;
			at |= (u64)lock->words[reg / 4] << 32;
		}
		if (at && !lists(guarded, lock->function,
				 low & IS_IO ? HV_PRIVILEGE_PORTS : HV_PRIVILEGE_MMIO, at))
			return false;
	}
	return true;
}

/* Whether the list has the bridge to this bus; bus 0 needs none. */
static bool has_bridge(const struct hv_guarded *guarded, u32 bus)
{
	const struct hv_privilege *one = guarded->privileges;
	u32 i;

	for (i = 0; i < guarded->privilege_count; i++)
		if (one[i].kind == HV_PRIVILEGE_BRIDGE &&
		    (read(one[i].function, REG_BUSES) >> 8 & 0xff) == bus)
			return true;
	return !bus;
}

static s64 lock_one(const struct hv_guarded *guarded, const struct hv_privilege *one)
{
	struct lock *lock;
	u32 reg;

	for (lock = locks; lock->owner; lock++) {
		if (lock->owner == guarded && lock->function == one->function)
			return 0;
		if (lock == &locks[HV_LOCKS - 1])
			return -ENOSPC;
	}
	lock->function = one->function;
	lock->is_bridge = one->kind == HV_PRIVILEGE_BRIDGE;
	lock->is_port = false;
	lock->writable = 0;
	for (reg = 0; reg < HEADER_SIZE; reg += 4)
		lock->words[reg / 4] = read(one->function, reg);
	allow(lock, REG_COMMAND, 4);
	allow(lock, REG_HEADER, 4);
	/* A bridge has a reset of all beneath it there. */
	if (!lock->is_bridge)
		allow(lock, REG_LINE, 4);
	if (one->function >> 16 || (lock->words[REG_HEADER / 4] >> 16 & 0x7f) != lock->is_bridge ||
	    !has_bridge(guarded, one->function >> 8) || !allow_capabilities(lock) ||
	    (!lock->is_bridge && !lists_bars(guarded, lock)))
		return -EINVAL;
	lock->owner = guarded;
	return 0;
}

static void unlock(struct hv_guarded *guarded)
{
	u32 i;

	for (i = 0; i < HV_LOCKS; i++)
		if (locks[i].owner == guarded)
			locks[i].owner = NULL;
}

/*
 * Of all functions and bridges of the list. If it has none, but ports: a device that is moved over
 * them takes them from an older one, which only decodes what nobody else does.
 */
static s64 lock_all(struct hv_guarded *guarded)
{
	const struct hv_privilege *one = guarded->privileges;
	u32 address, i;
	s64 err = 0;

	/*
	 * First, so that no other CPU selects a register meanwhile. The ports continue to exit
	 * after the last unlock; accesses are then carried out as they are.
	 */
	hv_ports_watch(HV_PORT_PCI_ADDRESS, HV_PORT_PCI_END - HV_PORT_PCI_ADDRESS);
	address = hv_in(HV_PORT_PCI_ADDRESS, 4);
	for (i = 0; i < guarded->privilege_count && !err; i++)
		if (one[i].function != HV_NO_FUNCTION)
			err = lock_one(guarded, &one[i]);
	hv_out(HV_PORT_PCI_ADDRESS, 4, address);
	if (err)
		unlock(guarded);
	else if (!users++)
		hv_mmio_close_window();
	return err;
}

static void unlock_all(struct hv_guarded *guarded)
{
	unlock(guarded);
	if (!--users)
		hv_mmio_open_window();
}

/*
 * A CPU that had ECAM in its TLB could write there until it has flushed: M is entered only if the
 * registers are then as they were registered. Without a locked function the ports do not exit, and
 * another CPU may be using them.
 */
bool hv_pci_stays(const struct hv_guarded *guarded)
{
	u32 address, i, reg;
	bool stays = true;

	for (i = 0; i < HV_LOCKS; i++) {
		if (locks[i].owner != guarded)
			continue;
		address = hv_in(HV_PORT_PCI_ADDRESS, 4);
		for (reg = REG_BARS; reg < REG_LINE; reg += 4)
			stays &= !has_moved(&locks[i], reg);
		hv_out(HV_PORT_PCI_ADDRESS, 4, address);
	}
	return stays;
}

void hv_pci_start(void)
{
	const struct hv_privilege_functions functions = { .init = lock_all, .deinit = unlock_all };

	hv_privilege_register(HV_PRIVILEGE_BRIDGE, &functions);
}
