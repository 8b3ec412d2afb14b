// SPDX-License-Identifier: GPL-2.0-only
/*
 * The log of what the guest tried: a ring, which the guest reads by VMMCALLs (call.c).
 */
#include <linux/types.h>

#include "guard/hv/hv.h"
#include "guard/hv/lock.h"

static struct {
	u64 next;
	struct {
		u64 time, cpu_and_kind, value;
	} entries[HV_LOG_ENTRIES];
} log;

static u8 log_lock;

/*
 * Adds an entry. The lock decides on the order of entries of several CPUs; the time is read before.
 */
static void add(struct hv_cpu *cpu, enum hv_log_kind kind, u8 choice, u64 value)
{
	u32 low, high;
	u64 at;

	asm volatile("rdtsc" : "=a" (low), "=d" (high));
	hv_lock(&log_lock);
	at = log.next++ % HV_LOG_ENTRIES;
	log.entries[at].time = low | (u64)high << 32;
	log.entries[at].cpu_and_kind = cpu->number | (u64)kind << 32 | (u64)choice << 56;
	log.entries[at].value = value;
	hv_unlock(&log_lock);
}

void hv_log(struct hv_cpu *cpu, enum hv_log_kind kind, u64 value)
{
	add(cpu, kind, 0, value);
}

void hv_log_suspicion(struct hv_cpu *cpu, enum hv_log_kind kind, u8 choice, u64 value)
{
	add(cpu, kind, choice, value);
}

bool hv_log_read(u64 *index, u64 *time, u64 *cpu_and_kind, u64 *value)
{
	bool exists;
	u64 at;

	hv_lock(&log_lock);
	if (log.next > HV_LOG_ENTRIES && *index < log.next - HV_LOG_ENTRIES)
		*index = log.next - HV_LOG_ENTRIES;
	exists = *index < log.next;
	if (exists) {
		at = *index % HV_LOG_ENTRIES;
		*time = log.entries[at].time;
		*cpu_and_kind = log.entries[at].cpu_and_kind;
		*value = log.entries[at].value;
	}
	hv_unlock(&log_lock);
	return exists;
}
