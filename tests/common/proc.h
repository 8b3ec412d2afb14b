/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Reading what the kernel reports in /proc and /sys, and writing there. */
#ifndef DUNE_TESTS_PROC_H
#define DUNE_TESTS_PROC_H

#include <stdbool.h>

/*
 * Read a file of less than @size bytes into @buf, with a 0 at the end. Its length, or -errno if it
 * cannot be opened.
 */
int file_read(const char *path, char *buf, int size);
/* A number in a file of /proc or /sys; -1 without one. */
long file_number(const char *path);
/* A line "Key: number" of /proc/meminfo, /proc/self/status, ... */
long file_key(const char *path, const char *key);
/* KB of memory that is free or could be, to some MB; drops the caches to find out. */
long memory_available(void);
/* Whether the kernel has a symbol of this name, which shows how it was built. */
bool kernel_has(const char *symbol);
/* Its address; 0 without one. */
unsigned long kernel_address(const char *symbol);
/* Write a string to a file; 0 or -errno. */
int file_write(const char *path, const char *text);

/* Whether @pid sleeps in a way that a signal ends. */
bool proc_sleeps(int pid);

#endif
