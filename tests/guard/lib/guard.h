/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The device of dune-guard.ko. */
#ifndef DUNE_TESTS_GUARD_H
#define DUNE_TESTS_GUARD_H

#include <stdbool.h>

#include <linux/dune-guard.h>

struct klog;

/* The reason of the last request that failed, or "". */
extern struct dune_guard_answer guard_answer;

/*
 * The beginning of a test of that many seconds: guard_open() with the kernel's log watched. And its
 * end: guard_unload(), and what main() returns.
 */
int guard_begin(unsigned int seconds, struct klog *log);
int guard_end(int fd, struct klog *log);

/*
 * Unload dune.ko, which keeps SVM on, load dune-guard.ko, and open its device. Bails out if that
 * fails.
 */
int guard_open(void);
/* Close the device and unload the module, which stops the guard. 0 or -errno. */
int guard_unload(int fd);

/* DUNE_GUARD_CHECK, _LAUNCH, _SEAL or _STOP. 0 or -errno. */
int guard_request(int fd, unsigned long request);
/* One verdict: the request fails with this error, and its reason contains @text. */
bool guard_refuses(int fd, unsigned long request, int err, const char *text, const char *name);
/* Bails out without a status. */
struct dune_guard_status guard_status(int fd);

/* The CPUs of the machine that are on line, also those that tests do not use. */
int cpus_on_line(void);
/* Take @cpu off line, or bring it back. 0 or -errno. */
int cpu_set_on_line(int cpu, bool on);

#endif
