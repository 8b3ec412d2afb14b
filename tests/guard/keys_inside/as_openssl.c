// SPDX-License-Identifier: MIT OR Apache-2.0
/* The answers of /dev/guard-keys, compared with openssl's: see as_openssl.h. */
#include "as_openssl.h"
#include "openssl.h"

#include <linux/guard-keys.h>
#include <string.h>
#include <sys/ioctl.h>

bool keys_crypt_as_openssl(int fd, uint64_t cipher, const unsigned char secret[32],
			   const unsigned char *text, uint32_t length, const void *extra,
			   uint32_t extra_length)
{
	static unsigned char result[GUARD_KEYS_TEXT], wanted[GUARD_KEYS_TEXT];
	struct guard_keys_crypt message = {
		.handle = cipher, .from = (uintptr_t)text, .to = (uintptr_t)result,
		.extra = (uintptr_t)extra, .length = length, .extra_length = extra_length,
	};
	unsigned char tag[16];

	memcpy(wanted, text, length);
	if (ioctl(fd, GUARD_KEYS_ENCRYPT, &message))
		return false;
	openssl_encrypt(secret, message.nonce, extra, extra_length, wanted, length, tag);
	if (memcmp(wanted, result, length) || memcmp(tag, message.tag, 16))
		return false;
	message.from = message.to;
	return !ioctl(fd, GUARD_KEYS_DECRYPT, &message) && !memcmp(result, text, length);
}

bool keys_sign_as_openssl(int fd, uint64_t signer, const unsigned char *secret,
			  uint32_t secret_length, const unsigned char *text, uint32_t length)
{
	struct guard_keys_sign message = {
		.handle = signer, .text = (uintptr_t)text, .length = length,
	};
	unsigned char wanted[32];

	openssl_sign(secret, secret_length, text, length, wanted);
	return !ioctl(fd, GUARD_KEYS_SIGN, &message) && !memcmp(wanted, message.signature, 32) &&
	       !ioctl(fd, GUARD_KEYS_VERIFY, &message);
}
