// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * The fuzzer of the sealed guard: code in ring 0 (inside/outside_fuzz.c) makes random VMMCALLs,
 * random writes to memory and registers that are the guard's, enters a guarded module with random
 * registers, and fetches its text at random places with random stacks, within its calls, too. Fails
 * if the module gives its secret where it must not or refuses it where it must not, if the kernel
 * reaches what is the module's or the guard's, if the module loses it, or if the machine suffers.
 *
 * Batches of one seed (FUZZ_SEED; 0: the clock): FUZZ_CHILDREN of them, from FUZZ_FIRST on, or as
 * many as FUZZ_SECONDS allow. An argument is the number of one batch.
 */
#define _GNU_SOURCE
#include "child.h"
#include "cpu.h"
#include "guard.h"
#include "klog.h"
#include "modules.h"
#include "outside.h"
#include "proc.h"
#include "tap.h"
#include "timing.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "secret/secret.h"

/* Steps of a batch, and batches without other wishes. */
#define STEPS		2000
#define BATCHES		20

#define WITH		"/sys/module/dune_guard_outside/parameters/with"
#define WITH_ALL	"63"

/* inside/outside_devices.c, and the device edu: a register that inverts what is written. */
enum { EDU };
#define EDU_INVERT	4
#define WRITTEN		0x12345678ULL
#define INVERTED	0xedcba987ULL
#define ONES		0xffffffffULL

static int guard;
static bool has_devices;
static unsigned long long fetches, crossed, calls;

static unsigned long number(const char *variable, unsigned long otherwise)
{
	const char *text = getenv(variable);

	return text && *text ? strtoul(text, NULL, 0) : otherwise;
}

static unsigned long long run(const char *word, unsigned long long a, unsigned long long b)
{
	return outside(word, a, b);
}

static unsigned long long secret(const char *word, unsigned long long a)
{
	return ask_module("dune-guard-secret", word, a, 0, 0);
}

static void prepare(void)
{
	struct dune_guard_status status;

	is(guard_request(guard, DUNE_GUARD_LAUNCH), 0, "a launch");
	outside_load("");
	has_devices = run("devices", 0, 0);
	if (has_devices && file_write(WITH, WITH_ALL))
		bail("%s cannot be written", WITH);
	if (module_insert("dune-guard-inside", "") || (int)run("armed", 0, 0))
		bail("the module is not guarded: %d", (int)run("armed", 0, 0));
	if (module_insert("dune-guard-secret", "") || secret("arm", 0) ||
	    secret("enter", SECRET_STORE))
		bail("the module of class S is not guarded");
	is(guard_request(guard, DUNE_GUARD_SEAL), 0, "the seal (%s)", guard_answer.text);
	status = guard_status(guard);
	run("fuzz-guard", status.address, status.memory);
	if (has_devices)
		ask_module("dune-guard-outside", "m-write", EDU, EDU_INVERT, WRITTEN);
}

/* Whether all is as before; says what is not. */
static bool is_intact(unsigned long batch)
{
	struct {
		const char *what;
		unsigned long long is, wanted;
	} facts[] = {
		{ "the module's secret", run("read", 0, 0), SECRET },
		{ "the private page, as the kernel reads it", run("kernel-reads", 0, 0), 0 },
		{ "the secret of the module of class S", secret("enter", SECRET_CHECK), 1 },
		{ "its private pages, as the kernel reads them", secret("private", 0), 0 },
		{ "the device, as the kernel reads it",
		  has_devices ? run("k-read", EDU, 0) : ONES, ONES },
		{ "what the module has written there",
		  has_devices ? run("m-read", EDU, EDU_INVERT) : INVERTED, INVERTED },
	};
	bool intact = true;
	unsigned int i;

	for (i = 0; i < sizeof(facts) / sizeof(facts[0]); i++) {
		if (facts[i].is == facts[i].wanted)
			continue;
		intact = false;
		diag("batch %lu: %s: %llx, not %llx", batch, facts[i].what, facts[i].is,
		     facts[i].wanted);
	}
	return intact;
}

/* Returns whether it has found nothing. */
static bool make_batch(unsigned long seed, unsigned long batch)
{
	unsigned long long bad = ask_module("dune-guard-outside", "fuzz",
					    seed << 32 | (batch & 0xffffffff), STEPS, 0);

	if (bad)
		diag("batch %lu: %llu steps had another outcome: the kernel's log has the first",
		     batch, bad);
	fetches += run("fuzzed", 0, 0);
	crossed += run("fuzzed", 1, 0);
	calls += run("fuzzed", 2, 0);
	return is_intact(batch) && !bad;
}

int main(int argc, char **argv)
{
	unsigned long seed = number("FUZZ_SEED", 1), first = number("FUZZ_FIRST", 0);
	unsigned long seconds = number("FUZZ_SECONDS", 0), batch, end, failed = 0;
	unsigned long count = seconds ? ~0UL : number("FUZZ_CHILDREN", BATCHES);
	bool says = number("FUZZ_SAY", 0);
	unsigned long start;
	struct klog log;

	if (argc > 1) {
		first = strtoul(argv[1], NULL, 0);
		count = 1;
	}
	if (!seed)
		seed = time(NULL);
	pin_to(usable_cpu(0));
	guard = guard_begin(300 + seconds, &log);
	diag("FUZZ_SEED=%lu FUZZ_FIRST=%lu", seed, first);
	prepare();
	start = now_us();
	end = count > ~0UL - first ? ~0UL : first + count;
	for (batch = first; batch < end && !failed; batch++) {
		if (seconds && now_us() - start >= seconds * 1000000)
			break;
		if (says) {
			diag("batch %lu", batch);
			fflush(stdout);
		}
		failed += !make_batch(seed, batch);
	}
	ok(!failed, "%lu batches of %d steps break no promise", batch - first, STEPS);
	ok(batch == first || (crossed && fetches > 2 * crossed && calls),
	   "%llu fetches, of which %llu cross the border; %llu calls", fetches, crossed, calls);
	diag("%lu ms", (now_us() - start) / 1000);
	diag("counts: next=%lu states=%llu runs=%llu ioctls=%llu", batch, fetches, crossed, calls);
	klog_end(&log);
	return done();
}
