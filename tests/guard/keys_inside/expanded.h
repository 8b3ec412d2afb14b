/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * How a cipher's key looks in the memory of the inside. It is not there as it was put, but
 * expanded and bit-sliced (kernel/guard/keys/inside/aes.h).
 */
#ifndef DUNE_TESTS_EXPANDED_H
#define DUNE_TESTS_EXPANDED_H

/* The complements of three words that follow each other in the key of this secret. */
void expanded_key(const unsigned char secret[32], unsigned long long complements[3]);

#endif
