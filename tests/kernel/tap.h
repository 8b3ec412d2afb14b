/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Verdict lines for prove (the Test Anything Protocol), children with a time
 * limit, and the kernel log. Nothing here knows about Dune; guest.h does.
 */
#ifndef DUNE_TESTS_TAP_H
#define DUNE_TESTS_TAP_H

#include <stdbool.h>

#define PRINTF(f, a) __attribute__((format(printf, f, a)))

/* One verdict. Returns @good. */
bool ok(bool good, const char *fmt, ...) PRINTF(2, 3);

/* One test that this machine cannot make, and what it lacks. */
void skip(const char *reason, const char *fmt, ...) PRINTF(2, 3);

/* A line for the reader. */
void diag(const char *fmt, ...) PRINTF(1, 2);

/* Nothing further can be tested: print why and exit. */
void bail(const char *fmt, ...) PRINTF(1, 2) __attribute__((noreturn));

/* Call first: a watchdog of @seconds over the whole program. */
void begin(unsigned int seconds);

/* Print the plan; the exit status of main(). */
int done(void);

/* A number from the environment, else @otherwise. */
long env_number(const char *name, long otherwise);

/* What became of a child. */
struct outcome {
	bool hung;	/* did not end within its time and was killed */
	int code;	/* exit status, or -1 */
	int signal;	/* signal that ended it, or 0 */
};

/*
 * Run fn(arg) in a forked child and wait @seconds for it at most. A child
 * that does not even die of SIGKILL ends the program: the kernel is broken.
 */
struct outcome in_child(void (*fn)(void *arg), void *arg, unsigned int seconds);

/* Wait for @pid, @seconds at most. */
struct outcome wait_child(int pid, unsigned int seconds);

/* Memory that children share with us; zeroed. */
void *shared_alloc(unsigned long size);

/* Microseconds on the monotonic clock. */
unsigned long now_us(void);
void sleep_ms(unsigned int ms);

/* A number in a file of /proc or /sys; -1 without one. */
long file_number(const char *path);
/* A line "Key: number" of /proc/meminfo, /proc/self/status, ... */
long file_key(const char *path, const char *key);
/* KB of memory that is free or could be; drops the caches to know. Good to some MB. */
long memory_available(void);
/* Whether the kernel has a symbol of this name: what it was built with. */
bool kernel_has(const char *symbol);
/* Write a string to a file; 0 or -errno. */
int file_write(const char *path, const char *text);

/*
 * The kernel log from now on: lines written since, and whether one of them
 * is a complaint of the kernel about itself.
 */
struct klog {
	int fd;
	unsigned int lines;
	bool complaint;
	char first[256];	/* the first complaint */
};

void klog_begin(struct klog *log);
void klog_read(struct klog *log);

/*
 * The number of the @n-th CPU (from 0) that this process may use, or the last
 * one: 0 need not be among them.
 */
int usable_cpu(int n);

/* Run on this CPU alone. */
void pin_to(int cpu);

#endif
