// SPDX-License-Identifier: MIT OR Apache-2.0
/* A caller of the inside: see caller.h. */
#include "caller.h"

#include <string.h>

void begin_request(void)
{
	memset(&request, 0, sizeof(request));
	request.file = FILE_A;
	request.user = USER;
}

long ask(u32 op)
{
	request.op = op;
	return keys_enter();
}

static u64 add(u32 op, u32 kind)
{
	request.kind = kind;
	request.usage = all_uses(kind);
	memset(request.seed, 0x5e, KEYS_SEED);
	return ask(op) ? 0 : request.handle;
}

u64 put(u32 kind, const u8 *secret, u32 length)
{
	begin_request();
	memcpy(request.secret, secret, length);
	request.secret_length = length;
	return add(KEYS_PUT, kind);
}

u64 generate(u32 kind)
{
	begin_request();
	return add(KEYS_GENERATE, kind);
}

long forget(u64 handle)
{
	begin_request();
	request.handle = handle;
	return ask(KEYS_FORGET);
}

long use(u32 op, u64 handle, u32 length, u32 extra_length)
{
	request.handle = handle;
	request.file = FILE_A;
	request.user = USER;
	request.text_length = length;
	request.extra_length = extra_length;
	return ask(op);
}
