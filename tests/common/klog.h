/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The kernel log: did it grow, and does it report an error? */
#ifndef DUNE_TESTS_KLOG_H
#define DUNE_TESTS_KLOG_H

#include <stdbool.h>

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

#endif
