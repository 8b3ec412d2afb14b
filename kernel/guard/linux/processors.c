// SPDX-License-Identifier: GPL-2.0-only
/*
 * The processors that the firmware started. Linux can have fewer CPUs (nr_cpus, maxcpus, nosmp, a
 * kernel that is built for few): code in ring 0 could start the others, which have no guard.
 */
#include <linux/acpi.h>
#include <linux/cpumask.h>
#include <linux/smp.h>

#include "guard/linux/guard.h"

static bool is_on_line(u32 apic_id)
{
	unsigned int cpu;

	for_each_online_cpu(cpu)
		if (cpu_physical_id(cpu) == apic_id)
			return true;
	return false;
}

/* Whether an entry of the table is a processor that is ready to run and that Linux does not run. */
static bool is_missing(const struct acpi_subtable_header *entry)
{
	const struct acpi_madt_local_apic *local = (void *)entry;
	const struct acpi_madt_local_x2apic *wide = (void *)entry;

	/* An ID of ones is that of no processor. */
	if (entry->type == ACPI_MADT_TYPE_LOCAL_APIC && entry->length >= sizeof(*local))
		return local->lapic_flags & ACPI_MADT_ENABLED && local->id != 0xff &&
		       !is_on_line(local->id);
	if (entry->type == ACPI_MADT_TYPE_LOCAL_X2APIC && entry->length >= sizeof(*wide))
		return wide->lapic_flags & ACPI_MADT_ENABLED && wide->local_apic_id != ~0u &&
		       !is_on_line(wide->local_apic_id);
	return false;
}

/*
 * How many of the processors in the firmware's table (MADT) are not on line, or -ENOENT without the
 * table. For a time at which no CPU comes or goes, or for an estimate.
 */
int guard_processors_missing(void)
{
	const struct acpi_subtable_header *entry;
	struct acpi_table_header *madt;
	const void *at, *end;
	int missing = 0;

	if (ACPI_FAILURE(acpi_get_table(ACPI_SIG_MADT, 0, &madt)))
		return -ENOENT;
	end = (void *)madt + madt->length;
	for (at = (void *)madt + sizeof(struct acpi_table_madt); at + sizeof(*entry) <= end;
	     at += entry->length) {
		entry = at;
		if (entry->length < sizeof(*entry) || at + entry->length > end)
			break;
		missing += is_missing(entry);
	}
	acpi_put_table(madt);
	return missing;
}
