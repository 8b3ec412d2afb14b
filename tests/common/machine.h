/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The machine that a test runs in: children with a time limit, the time, numbers
 * of /proc and /sys, the kernel log, CPUs.
 * Nothing here knows about Dune; guest.h does. Functions that return no error call bail().
 */
#ifndef DUNE_TESTS_MACHINE_H
#define DUNE_TESTS_MACHINE_H

#include <stdbool.h>

/* Call first: a watchdog of @seconds over the whole program. */
void begin(unsigned int seconds);

/* A number from the environment, else @otherwise. */
long env_number(const char *name, long otherwise);

/*
 * A time limit of @time, in any unit, for the machine that this is: limits are
 * written for a fast one, and one that is emulated on a busy host is slower.
 */
unsigned int time_limit(unsigned int time);

/* The end of a child. */
struct outcome {
	bool hung;	/* did not end within its time and was killed */
	int code;	/* exit status, or -1 */
	int signal;	/* signal that ended it, or 0 */
};

/* "exit status 3", "signal 11" or "killed after its time limit". Valid until the next call. */
const char *outcome_text(struct outcome o);

/*
 * Run fn(arg) in a forked child and wait @seconds for it at most. A child
 * that does not even die of SIGKILL ends the program: the kernel is broken.
 */
struct outcome in_child(void (*fn)(void *arg), void *arg, unsigned int seconds);

/* Wait for @pid, @seconds at most. */
struct outcome wait_child(int pid, unsigned int seconds);

/* Zeroed memory that this process shares with its children. */
void *shared_alloc(unsigned long size);

/* Microseconds on the monotonic clock. */
unsigned long now_us(void);
void sleep_ms(unsigned int ms);

/* A number in a file of /proc or /sys; -1 without one. */
long file_number(const char *path);
/* A line "Key: number" of /proc/meminfo, /proc/self/status, ... */
long file_key(const char *path, const char *key);
/* KB of memory that is free or could be, to some MB; drops the caches to find out. */
long memory_available(void);
/* Whether the kernel has a symbol of this name, which shows how it was built. */
bool kernel_has(const char *symbol);
/* Write a string to a file; 0 or -errno. */
int file_write(const char *path, const char *text);

/*
 * The kernel log since klog_begin(): the number of lines, and whether one of
 * them reports an error of the kernel itself.
 */
struct klog {
	int fd;
	unsigned int lines;
	bool has_error;
	char first[256];	/* the first error */
};

void klog_begin(struct klog *log);
void klog_read(struct klog *log);
/* klog_read() for the last time, and the verdict that it has no error. */
void klog_end(struct klog *log);

/*
 * The number of the @n-th CPU (from 0) that this process may use, or the last
 * one: 0 need not be among them.
 */
int usable_cpu(int n);

/* Run on this CPU alone. */
void pin_to(int cpu);

#endif
