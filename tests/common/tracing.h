/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The kernel's tracing, through tracefs. */
#ifndef DUNE_TESTS_TRACING_H
#define DUNE_TESTS_TRACING_H

#include <stdbool.h>

#define TRACING	"/sys/kernel/tracing/"

/* Mount tracefs where it is not mounted yet. Whether it has @file. */
bool trace_mount(const char *file);
/* Write a string to a file of tracefs; 0 or -errno. */
int trace_write(const char *file, const char *text);
/* Forget all events that were traced so far. */
void trace_clear(void);
/* The lines of the trace that contain @text; -1 if it cannot be read. */
int trace_count(const char *text);

#endif
