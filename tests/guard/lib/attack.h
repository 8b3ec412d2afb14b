/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The hostile module, attack/dune-guard-attack.c. */
#ifndef DUNE_TESTS_ATTACK_H
#define DUNE_TESTS_ATTACK_H

/* What the last attack found, and how often it has seen what it wants. */
extern unsigned long long found, seen;

/* Load the module, and mount debugfs. Bails out if that fails. */
void attack_load(void);
/* Make an attack, by a word and three numbers. Returns its error. */
long attack(const char *word, unsigned long a, unsigned long b, unsigned long c);

#endif
