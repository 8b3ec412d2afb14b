/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * TAP for the tests of libdune, and running a function in ring 3. Every test
 * program takes "native" as argument: then the same body runs without Dune,
 * which tests the test.
 */
#ifndef TAP_H
#define TAP_H

#include <dune.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define GPR_ONLY __attribute__((target("general-regs-only")))

static int tap_count, tap_failed;
static const char *tap_where = "";

__attribute__((format(printf, 2, 3)))
static inline int ok(int good, const char *fmt, ...)
{
	va_list ap;

	printf("%sok %d - %s", good ? "" : "not ", ++tap_count, tap_where);
	va_start(ap, fmt);
	vprintf(fmt, ap);
	va_end(ap);
	printf("\n");
	fflush(stdout);
	tap_failed += !good;
	return good;
}

/* Equal numbers; says both where they are not. */
static inline int is(long got, long want, const char *what)
{
	if (!ok(got == want, "%s", what)) {
		printf("# got %ld (0x%lx), want %ld (0x%lx)\n", got, got, want,
		       want);
		fflush(stdout);
		return 0;
	}
	return 1;
}

/* A test that this machine cannot make, and why. */
static inline void skip(const char *reason, const char *what)
{
	printf("ok %d - %s%s # SKIP %s\n", ++tap_count, tap_where, what, reason);
	fflush(stdout);
}

static inline int tap_end(void)
{
	printf("1..%d\n", tap_count);
	fflush(stdout);
	return tap_failed != 0;
}

static inline void tap_enter_as(const struct dune_config *cfg)
{
	int err = dune_enter(cfg);

	if (err) {
		printf("Bail out! dune_enter: %s: %s\n", strerror(-err),
		       dune_enter_error());
		exit(1);
	}
}

static inline void tap_enter(void)
{
	tap_enter_as(NULL);
}

#define NR_LEAVE 0xd00d

GPR_ONLY static void ring3_syscall(struct dune_tf *tf)
{
	if (tf->rax == NR_LEAVE)
		dune_ring3_leave(tf->rdi);
	dune_syscall_pass(tf);
}

static inline void ring3_start(void (*fn)(void))
{
	fn();
	__asm__ volatile("syscall" : : "a" (NR_LEAVE), "D" (42));
}

/* Returns 42 if all went well. */
static inline long in_ring3(void (*fn)(void))
{
	size_t size = 1 << 20;
	char *stack = mmap(NULL, size, PROT_READ | PROT_WRITE,
			   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct dune_tf tf = {
		.rip = (uint64_t)ring3_start,
		.rdi = (uint64_t)fn,
		.rsp = (uint64_t)stack + size - 8,
	};
	long ret;

	dune_syscall_set(ring3_syscall);
	ret = dune_ring3(&tf);
	dune_syscall_set(NULL);
	return ret;
}

/* The body natively, or in ring 0 and in ring 3. */
static inline int tap_main(int argc, char **argv, void (*body)(void))
{
	struct dune_config cfg = {
		.size = sizeof(cfg),
		.flags = DUNE_ENTER_RING3_SIGNALS,
	};

	if (argc > 1 && !strcmp(argv[1], "native")) {
		tap_where = "native: ";
		body();
		return tap_end();
	}
	tap_enter_as(&cfg);
	dune_irq_enable();	/* the body's handlers run in ring 0, too */
	tap_where = "ring 0: ";
	body();
	tap_where = "ring 3: ";
	is(in_ring3(body), 42, "ran in ring 3");
	return tap_end();
}

#endif /* TAP_H */
