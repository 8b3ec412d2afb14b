// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * openssl's answers. The library is loaded when the program runs, so that building the tests does
 * not need its headers.
 */
#include "openssl.h"

#include <dlfcn.h>
#include <stdlib.h>

/* Of <openssl/evp.h>. */
#define SET_IVLEN	9
#define GET_TAG		16

static void *(*cipher_ctx_new)(void);
static void (*cipher_ctx_free)(void *ctx);
static const void *(*aes_256_gcm)(void);
static const void *(*sha256)(void);
static int (*encrypt_init)(void *ctx, const void *cipher, void *engine, const unsigned char *key,
			   const unsigned char *iv);
static int (*encrypt_update)(void *ctx, unsigned char *out, int *done, const unsigned char *in,
			     int length);
static int (*encrypt_final)(void *ctx, unsigned char *out, int *done);
static int (*cipher_ctrl)(void *ctx, int what, int number, void *pointer);
static unsigned char *(*hmac)(const void *md, const void *key, int key_length,
			      const unsigned char *text, unsigned long length,
			      unsigned char *digest, unsigned int *digest_length);

static const struct {
	const char *name;
	void *function;
} functions[] = {
	{ "EVP_CIPHER_CTX_new", &cipher_ctx_new }, { "EVP_CIPHER_CTX_free", &cipher_ctx_free },
	{ "EVP_aes_256_gcm", &aes_256_gcm }, { "EVP_sha256", &sha256 },
	{ "EVP_EncryptInit_ex", &encrypt_init }, { "EVP_EncryptUpdate", &encrypt_update },
	{ "EVP_EncryptFinal_ex", &encrypt_final }, { "EVP_CIPHER_CTX_ctrl", &cipher_ctrl },
	{ "HMAC", &hmac },
};

const char *openssl_load(void)
{
	void *library = dlopen("libcrypto.so.3", RTLD_NOW);
	unsigned int i;

	if (!library)
		return dlerror();
	for (i = 0; i < sizeof(functions) / sizeof(functions[0]); i++) {
		*(void **)functions[i].function = dlsym(library, functions[i].name);
		if (!*(void **)functions[i].function)
			return dlerror();
	}
	return NULL;
}

void openssl_encrypt(const unsigned char secret[32], const unsigned char nonce[12],
		     const unsigned char *extra, int extra_length, unsigned char *text, int length,
		     unsigned char tag[16])
{
	void *ctx = cipher_ctx_new();
	int done;

	if (!ctx || !encrypt_init(ctx, aes_256_gcm(), NULL, NULL, NULL) ||
	    !cipher_ctrl(ctx, SET_IVLEN, 12, NULL) ||
	    !encrypt_init(ctx, NULL, NULL, secret, nonce) ||
	    !encrypt_update(ctx, NULL, &done, extra, extra_length) ||
	    !encrypt_update(ctx, text, &done, text, length) ||
	    !encrypt_final(ctx, text + length, &done) || !cipher_ctrl(ctx, GET_TAG, 16, tag))
		abort();
	cipher_ctx_free(ctx);
}

void openssl_sign(const unsigned char *secret, int secret_length, const unsigned char *text,
		  int length, unsigned char signature[32])
{
	unsigned int done;

	if (!hmac(sha256(), secret, secret_length, text, length, signature, &done) || done != 32)
		abort();
}
