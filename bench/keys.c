// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * guard-keys.ko: 4 KB encrypted and signed by the device, compared with the same code (the inside)
 * in this program, which has no system call and no copies of the kernel's.
 */
#include "bench.h"

#include <fcntl.h>
#include <linux/guard-keys.h>
#include <string.h>
#include <sys/ioctl.h>

#include "guard/keys/inside/exchange.h"

#define LENGTH	4096

static unsigned char text[LENGTH];

/* A key of this kind in the program; its handle. */
static u64 key_here(u32 kind)
{
	keys_exchange.request = (struct keys_request){
		.op = KEYS_GENERATE, .kind = kind, .usage = kind == KEYS_CIPHER ? 3 : 12, .file = 1,
	};
	if (keys_enter())
		die("no key");
	return keys_exchange.request.handle;
}

static uint64_t here(u32 op, u32 kind)
{
	u64 handle = key_here(kind);
	long bad = 0;
	uint64_t cost;

	cost = MEASURE(keys_exchange.request.op = op;
		       keys_exchange.request.handle = handle;
		       keys_exchange.request.text_length = LENGTH;
		       bad |= keys_enter());
	if (bad)
		die("the inside");
	return cost;
}

static __u64 key_there(int fd, int kind)
{
	struct guard_keys_key key = { .kind = kind, .usage = kind == GUARD_KEYS_CIPHER ? 3 : 12 };

	if (ioctl(fd, GUARD_KEYS_GENERATE, &key))
		die("GUARD_KEYS_GENERATE");
	return key.handle;
}

int main(void)
{
	struct guard_keys_crypt crypt = {
		.from = (uintptr_t)text, .to = (uintptr_t)text, .length = LENGTH,
	};
	struct guard_keys_sign sign = { .text = (uintptr_t)text, .length = LENGTH };
	int fd = open("/dev/guard-keys", O_RDWR), bad = 0;
	uint64_t cost;

	if (fd < 0)
		die("/dev/guard-keys");
	memset(text, 1, sizeof(text));
	crypt.handle = key_there(fd, GUARD_KEYS_CIPHER);
	sign.handle = key_there(fd, GUARD_KEYS_SIGNER);
	cost = MEASURE(bad |= ioctl(fd, GUARD_KEYS_ENCRYPT, &crypt));
	figure("keys_encrypt_4k", here(KEYS_ENCRYPT, KEYS_CIPHER), cost, NO_FIGURE);
	cost = MEASURE(bad |= ioctl(fd, GUARD_KEYS_SIGN, &sign));
	figure("keys_sign_4k", here(KEYS_SIGN, KEYS_SIGNER), cost, NO_FIGURE);
	if (bad)
		die("the device");
	return 0;
}
