/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The watcher of the decoy:
 *
 *	watch.c		the command: read this first; the cases of attack/ in batches
 *	run.c		the machine around a program, and one run of one
 *	sensors.c	what must not happen: how it is noticed, counted and printed
 *	native.c	the same for the sandbox without checks (../unchecked/unchecked.h)
 */
#ifndef DUNE_DECOY_WATCH_H
#define DUNE_DECOY_WATCH_H

#include "decoy.h"

#include <limits.h>
#include <sys/types.h>

/* The log that dune-run-decoy writes to. */
extern struct decoy_log *record;

/* An error of the watcher itself, which ends it. */
void fail(const char *what) __attribute__((noreturn));
/* Write to a file of /proc or tracefs. */
bool put(const char *path, const char *text);

/* sensors.c */

extern u64 found, at_exit;	/* findings; faults at a process's end, which are none */

/*
 * A finding, of @kind; of each kind the first few are shown, and all counted.
 * @kind is what the findings of one way around the checks have in common.
 */
void finding(const char *kind, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* The kinds of which not all findings were shown. */
void report_kinds(void);

/* Call before a program runs. */
void sensors_start(void);
extern int executions;		/* readable when a file was executed */
/* While the program runs: what it executed, and its output on @fd. */
void see_executions(void);
void see_output(int fd);
/* After it has ended: touches of the decoy, and faults in it. */
void see_touches(void);
void see_faults(void);

/* native.c */

extern bool unchecked;		/* the runtime has no checks: the following are used */
extern bool unfiltered;		/* their calls take the paths of a process without a filter */
extern int native_calls;	/* readable when a process has made a call natively */
/* Call in the child that executes dune-run next, with a pipe to the watcher; and in the watcher. */
void native_confine(int out);
void native_listen(pid_t pid, int in);
/* While the program runs. */
void see_native(void);
/* After it has ended, for each file that it has left. */
void see_file(const char *path);

/* run.c */

/* The program that is watched: dune-run-decoy, or another build of dune-run. */
extern char runner[PATH_MAX];

u64 now(void);
/*
 * Load the modules that programs use, and make an input device. Call before
 * sensors_start(), since it executes modprobe natively.
 */
void prepare_machine(void);
/* The module's node for everybody. Cases of root's may have removed or replaced it. */
void give_device(void);
/* Run @argv below @runner for @limit seconds at most; its status. */
int run(char **argv, u64 limit);
/* Remove what cases have left. */
void clean_up(void);

#endif
