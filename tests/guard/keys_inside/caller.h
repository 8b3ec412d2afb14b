/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* A caller of the inside, on the host. */
#ifndef DUNE_TESTS_CALLER_H
#define DUNE_TESTS_CALLER_H

#include "guard/keys/inside/exchange.h"

#define FILE_A	1000
#define FILE_B	1001
#define USER	1

#define request	(keys_exchange.request)

/* All uses of a key of this kind. */
static inline u32 all_uses(u32 kind)
{
	return kind == KEYS_CIPHER ? KEYS_CAN_ENCRYPT | KEYS_CAN_DECRYPT :
				     KEYS_CAN_SIGN | KEYS_CAN_VERIFY;
}

/* The next request is empty, but for the caller: FILE_A and USER. */
void begin_request(void);
/* Makes this request with what else is in the exchange. 0 or a negative errno. */
long ask(u32 op);
/* A key with all uses, for FILE_A alone. Its handle; 0 if it was refused. */
u64 put(u32 kind, const u8 *secret, u32 length);
u64 generate(u32 kind);
/* 0 or a negative errno. */
long forget(u64 handle);
/* With the text, the additional data, and the nonce, tag or signature in the exchange. */
long use(u32 op, u64 handle, u32 length, u32 extra_length);

#endif
