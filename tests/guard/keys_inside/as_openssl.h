/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The answers of /dev/guard-keys, compared with openssl's, which was loaded (openssl.h). */
#ifndef DUNE_TESTS_AS_OPENSSL_H
#define DUNE_TESTS_AS_OPENSSL_H

#include <stdbool.h>
#include <stdint.h>

/* Whether @cipher, whose secret this is, encrypts a text as openssl does, and decrypts it again. */
bool keys_crypt_as_openssl(int fd, uint64_t cipher, const unsigned char secret[32],
			   const unsigned char *text, uint32_t length, const void *extra,
			   uint32_t extra_length);

/* Whether @signer signs a text as openssl does, and verifies its signature. */
bool keys_sign_as_openssl(int fd, uint64_t signer, const unsigned char *secret,
			  uint32_t secret_length, const unsigned char *text, uint32_t length);

#endif
