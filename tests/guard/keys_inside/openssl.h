/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* openssl's answers, to compare with. */
#ifndef DUNE_TESTS_OPENSSL_H
#define DUNE_TESTS_OPENSSL_H

/* Load libcrypto. Returns the reason why that failed, or NULL. */
const char *openssl_load(void);

/* AES-256-GCM; @text becomes the encrypted text. Aborts if openssl refuses. */
void openssl_encrypt(const unsigned char secret[32], const unsigned char nonce[12],
		     const unsigned char *extra, int extra_length, unsigned char *text, int length,
		     unsigned char tag[16]);

/* HMAC-SHA-256. Aborts if openssl refuses. */
void openssl_sign(const unsigned char *secret, int secret_length, const unsigned char *text,
		  int length, unsigned char signature[32]);

#endif
