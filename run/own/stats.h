/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Counters of a tree of processes. */
#ifndef DUNE_RUN_STATS_H
#define DUNE_RUN_STATS_H

#include "types.h"

/* Begin to count; @file: where the report goes, NULL: to standard error. */
void stats_create(const char *file);
/* Take over the descriptors that were open across execve (load/exec.c). */
void stats_adopt(int stats, int report, bool report_to_file);
/* Whether the report goes to a file. */
bool stats_to_file(void);
/* Count one process more: to be called in the parent, after a fork. */
void stats_new_process(void);
/* To be called before and after a fork() that copies this process's memory. */
void stats_before_copy(void);
void stats_after_copy(void);
/* The process or its program ends: add what its vCPU counted. */
void stats_end_process(void);
/* At the end of a process: write the sums, if it is the first one or they go to a file. */
void stats_report(void);

#endif /* DUNE_RUN_STATS_H */
