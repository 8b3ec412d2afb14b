// SPDX-License-Identifier: GPL-2.0-only
/*
 * The ports that a sealed guard watches (hv/io.c): those of sleep and of reset. ACPI's fixed table
 * (FADT) has the registers of sleep. Sections are those of ACPI 6.5.
 */
#include <linux/acpi.h>

#include "guard/linux/guard.h"

/* A sleep type that no register has: without an S5 each one is dropped. */
#define NO_TYPE	0xff

/* A register of sleep; its @byte has SLP_TYP and SLP_EN. */
struct sleep_register {
	const struct acpi_generic_address *place;
	u8 byte;
	u8 off;
};

static void get_registers(struct sleep_register registers[HV_SLEEP_PORTS])
{
	u8 a, b;

	if (ACPI_FAILURE(acpi_get_sleep_type_data(ACPI_STATE_S5, &a, &b))) {
		a = NO_TYPE;
		b = NO_TYPE;
	}
	/* The PM1 control registers (4.8.3.2.1) and the sleep control register (4.8.3.7). */
	registers[0] = (struct sleep_register){ &acpi_gbl_FADT.xpm1a_control_block, 1, a };
	registers[1] = (struct sleep_register){ &acpi_gbl_FADT.xpm1b_control_block, 1, b };
	registers[2] = (struct sleep_register){ &acpi_gbl_FADT.sleep_control, 0, a };
}

/* Whether the firmware has a register of sleep that is no port. */
bool guard_ports_lack_sleep(void)
{
	struct sleep_register registers[HV_SLEEP_PORTS];
	int i;

	get_registers(registers);
	for (i = 0; i < HV_SLEEP_PORTS; i++)
		if (registers[i].place->address &&
		    registers[i].place->space_id != ACPI_ADR_SPACE_SYSTEM_IO)
			return true;
	return false;
}

/* Tells the image. */
void guard_ports_fill(struct hv_config *config)
{
	struct sleep_register registers[HV_SLEEP_PORTS];
	int i;

	get_registers(registers);
	for (i = 0; i < HV_SLEEP_PORTS; i++) {
		if (!registers[i].place->address ||
		    registers[i].place->space_id != ACPI_ADR_SPACE_SYSTEM_IO)
			continue;
		config->sleep[i].port = registers[i].place->address + registers[i].byte;
		config->sleep[i].off = registers[i].off;
	}
}
