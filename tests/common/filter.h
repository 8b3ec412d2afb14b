/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Seccomp filters of a test or its children. A process that cannot install one exits with 1. */
#ifndef DUNE_TESTS_FILTER_H
#define DUNE_TESTS_FILTER_H

#include <linux/filter.h>
#include <linux/seccomp.h>

#define FILTER_LEN(code)	(sizeof(code) / sizeof((code)[0]))

/*
 * Installs a filter of @len instructions. @flags: SECCOMP_FILTER_FLAG_*. Returns 0, or the
 * descriptor of the listener that a flag asks for.
 */
int filter_install(struct sock_filter *code, unsigned short len, unsigned int flags);

/*
 * The filter's answer to calls of number @nr is @action (SECCOMP_RET_*), and it permits all others.
 * Otherwise as filter_install().
 */
int filter_call(long nr, unsigned int action, unsigned int flags);

/*
 * Installs @policy of @len instructions, and filters that run before it for all calls of number
 * @nr: some 24,000 instructions, which decide nothing. A tracer can come meanwhile.
 */
void filter_slowly(struct sock_filter *policy, unsigned short len, long nr);

#endif
