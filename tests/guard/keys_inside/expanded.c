// SPDX-License-Identifier: MIT OR Apache-2.0
/* A key as the inside has it in memory, once it was expanded: see expanded.h. */
#include "guard/keys/inside/aes.h"

#include "expanded.h"

#define ROUND	2

void expanded_key(const unsigned char secret[32], unsigned long long complements[3])
{
	struct aes_key key;
	u32 i;

	aes_set_key(&key, secret);
	for (i = 0; i < 3; i++)
		complements[i] = ~key.round[ROUND][i];
	clear(&key, sizeof(key));
}
