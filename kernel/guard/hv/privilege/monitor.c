// SPDX-License-Identifier: GPL-2.0-only
/*
 * The privilege "monitor": two services of the guard's, by VMMCALL in M. Border control raises and
 * lowers it by its own mask, which is empty in K.
 *
 * Random numbers come from a pool, which the loader has filled by Linux's generator, and into which
 * each call mixes RDRAND, where the processor has it, and the time-stamp counter. The
 * result of a call can be computed neither from other results nor from a later pool. To predict it,
 * one has to know the pool at launch, when Linux is trusted, and the numbers of RDRAND.
 */
#include <linux/types.h>
#include <uapi/asm-generic/errno.h>

#include "guard/hv/lock.h"
#include "guard/hv/sha256.h"
#include "guard/hv/views.h"
#include "x86/registers.h"
#include "x86/svm/vmcb.h"

#define CPUID_FEATURES	1
#define FEATURE_RDRAND	BIT(30)		/* in ECX */
#define RDRAND_TRIES	10

static u8 lock;
static u8 pool[SHA256_SIZE];
static bool has_rdrand;

/* Of each registration; a later module with the same number continues where one has ended. */
static u64 counters[HV_REGISTRATIONS];

static u64 processors_random(void)
{
	u64 value = 0;
	u32 i;
	bool valid = false;

	for (i = 0; has_rdrand && i < RDRAND_TRIES && !valid; i++)
		asm volatile("rdrand %0" : "=r" (value), "=@ccc" (valid));
	return value;
}

static void hash(const u8 *from, u64 size, u8 *to)
{
	struct sha256 sha;

	sha256_begin(&sha);
	sha256_add(&sha, from, size);
	sha256_end(&sha, to);
}

/* The number and the next pool are two hashes of the mixed pool, which is forgotten. */
static void draw(u8 number[SHA256_SIZE])
{
	struct {
		u8 pool[SHA256_SIZE];
		u64 fresh[5];
	} mixed;
	u32 low, high, i;

	asm volatile("rdtsc" : "=a" (low), "=d" (high));
	hv_lock(&lock);
	for (i = 0; i < SHA256_SIZE; i++)
		mixed.pool[i] = pool[i];
	for (i = 0; i < 4; i++)
		mixed.fresh[i] = processors_random();
	mixed.fresh[4] = low | (u64)high << 32;
	hash((u8 *)&mixed, sizeof(mixed), mixed.pool);
	mixed.fresh[0] = 0;
	hash((u8 *)&mixed, SHA256_SIZE + 1, number);
	mixed.fresh[0] = 1;
	hash((u8 *)&mixed, SHA256_SIZE + 1, pool);
	hv_unlock(&lock);
}

static void random(struct hv_cpu *cpu)
{
	u64 number[SHA256_SIZE / sizeof(u64)];

	draw((u8 *)number);
	cpu->regs[REGS_RBX / 8] = number[0];
	cpu->regs[REGS_RCX / 8] = number[1];
	cpu->regs[REGS_RDX / 8] = number[2];
	cpu->regs[REGS_RSI / 8] = number[3];
}

bool hv_monitor_call(struct hv_cpu *cpu)
{
	struct vmcb *m = hv_vmcb(cpu);
	u64 number = m->save.rax - HV_CALL;

	if (!(cpu->border.raised & BIT(HV_PRIVILEGE_MONITOR)) || m->save.cpl)
		return false;
	if (number == HV_CALL_RANDOM)
		random(cpu);
	else if (number == HV_CALL_COUNTER)
		cpu->regs[REGS_RBX / 8] = __atomic_add_fetch(&counters[hv_current(cpu)->number], 1,
							     __ATOMIC_RELAXED);
	else
		return false;
	m->save.rax = 0;
	hv_skip_to(cpu, m->control.next_rip ?: m->save.rip + VMMCALL_LENGTH);
	return true;
}

void hv_monitor_start(void)
{
	u32 a = CPUID_FEATURES, b, c = 0, d, i;
	u8 *seed = (u8 *)hv_config.seed;

	asm volatile("cpuid" : "+a" (a), "=b" (b), "+c" (c), "=d" (d));
	has_rdrand = c & FEATURE_RDRAND;
	for (i = 0; i < SHA256_SIZE; i++) {
		pool[i] = seed[i];
		__atomic_store_n(&seed[i], 0, __ATOMIC_RELAXED);
	}
}
