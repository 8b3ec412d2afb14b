/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The module that plays the kernel around a guarded one: inside/outside.c. */
#ifndef DUNE_TESTS_OUTSIDE_H
#define DUNE_TESTS_OUTSIDE_H

#include "../inside/lies.h"

/* What the private page of the guarded module has: SECRET of inside/inside.h. */
#define SECRET	0x5ec2e7ULL

/* By the guard's numbers (enum hv_crossing). */
enum { REFUSED, IN_CALL, IN_RET, IN_RTI, OUT_CALL, OUT_RET, OUT_INT, CROSSINGS };

/* By the numbers of the guard's calls (hv.h). */
enum {
	CALL_REGISTER = 5, CALL_ARM = 7, CALL_THAW = 9, CALL_DESCRIBE = 12, CALL_UNDESCRIBE,
	CALL_LOAD, CALL_RANDOM = 0x40, CALL_COUNTER,
};

/*
 * Loads it, and mounts debugfs. Bails out if it cannot be loaded. With the parameter "arm=0" the
 * other module will not be guarded.
 */
void outside_load(const char *parameters);

/* Has a module of the tests do something, by its file in debugfs. Returns its answer. */
unsigned long long ask_module(const char *name, const char *word, unsigned long long a,
			      unsigned long long b, unsigned long long c);

/*
 * Loads a module of class S (secret/), and has it guarded. Bails out if that fails. Its commands
 * "exchange" and "private-at" have as their results where its pages are.
 */
void secrets_load(void);

/* Has it do something, by a word and two numbers, and returns its answer. */
unsigned long long outside(const char *word, unsigned long long a, unsigned long long b);

/*
 * Loads the described module again, and has the kernel lie about it once, with a value. Returns the
 * guard's answer: an errno, or 0.
 */
int outside_lie(enum lie which, unsigned long value);

/* Writes a copy of the described module's file there, with one bit changed in its text. */
void outside_make_changed(const char *path);

/* What the guarded module's entry "read" returns while a live patch replaces it. */
unsigned long long livepatched(void);

/* How often a crossing has happened, on all CPUs. */
unsigned long long crossings(int which);

#endif
