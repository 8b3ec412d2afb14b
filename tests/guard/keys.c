// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * /dev/guard-keys from a program: answers as openssl's, each error, rights of files and users,
 * limits, storms of opening and closing, unloading, and what a hostile module finds in the memory
 * of keys. First without the guard: it finds those that are not forgotten. Then all again with the
 * guard: it finds nothing.
 */
#define _GNU_SOURCE
#include "as_openssl.h"
#include "attack.h"
#include "guard.h"
#include "klog.h"
#include "modules.h"
#include "openssl.h"
#include "proc.h"
#include "tap.h"
#include "timing.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/guard-keys.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define DEVICE		"/dev/guard-keys"
#define ANSWERS		100
#define STORM_SECONDS	3
#define USER		1000

static const unsigned char secret[64] = "a secret of this test, which nothing else in memory has";
static unsigned char text[GUARD_KEYS_TEXT], result[GUARD_KEYS_TEXT];

static int open_device(int flags)
{
	int fd = open(DEVICE, flags | O_CLOEXEC);

	if (fd < 0)
		bail("%s: %m", DEVICE);
	return fd;
}

/* 0 or -errno */
static int ask(int fd, unsigned long command, void *argument)
{
	return ioctl(fd, command, argument) ? -errno : 0;
}

static struct guard_keys_put new_put(int kind, int length)
{
	struct guard_keys_put put = {
		.key.kind = kind, .key.usage = kind == GUARD_KEYS_CIPHER ? 3 : 12, .length = length,
	};

	memcpy(put.secret, secret, length);
	return put;
}

static struct guard_keys_key new_key(int kind, const char *kept_name)
{
	struct guard_keys_key key = { .kind = kind, .usage = kind == GUARD_KEYS_CIPHER ? 3 : 12 };

	if (kept_name) {
		strcpy(key.name, kept_name);
		key.kept = 1;
	}
	return key;
}

/* A key for this file alone; its handle. */
static uint64_t put(int fd, int kind, int length)
{
	struct guard_keys_put put = new_put(kind, length);
	int err = ask(fd, GUARD_KEYS_PUT, &put);

	if (err)
		bail("no key: %s", strerror(-err));
	return put.key.handle;
}

static struct guard_keys_crypt new_crypt(uint64_t handle, uint32_t length)
{
	return (struct guard_keys_crypt){
		.handle = handle, .from = (uintptr_t)text, .to = (uintptr_t)result,
		.extra = (uintptr_t)secret, .length = length, .extra_length = length % 60,
	};
}

static int encrypt(int fd, uint64_t handle)
{
	struct guard_keys_crypt message = new_crypt(handle, 16);

	return ask(fd, GUARD_KEYS_ENCRYPT, &message);
}

static int forget(int fd, uint64_t handle)
{
	return ask(fd, GUARD_KEYS_FORGET, &handle);
}

static int count_keys(int fd)
{
	struct guard_keys_key key = { .index = 0 };
	int count = 0;

	for (; !ask(fd, GUARD_KEYS_LIST, &key); key.index++)
		count++;
	return count;
}

/* ---- answers ---- */

static void answers(int fd)
{
	uint64_t cipher = put(fd, GUARD_KEYS_CIPHER, 32), signer = put(fd, GUARD_KEYS_SIGNER, 64);
	int i, bad = 0;
	size_t at;

	for (at = 0; at < sizeof(text); at++)
		text[at] = random();
	for (i = 0; i < ANSWERS; i++) {
		uint32_t length = i == 0 ? 0 : i == 1 ? GUARD_KEYS_TEXT : random() % 5000;

		bad += !keys_crypt_as_openssl(fd, cipher, secret, text, length, secret,
					      length % 60);
		bad += !keys_sign_as_openssl(fd, signer, secret, 64, text, length);
	}
	is(bad, 0, "%d messages are encrypted and signed as openssl does", ANSWERS);
	is(forget(fd, cipher) | forget(fd, signer), 0, "both keys are forgotten");
}

/* ---- errors ---- */

static void wrong_keys(int fd)
{
	struct guard_keys_put put = new_put(GUARD_KEYS_CIPHER, 32);
	struct guard_keys_key key;

	put.reserved = 1;
	is(ask(fd, GUARD_KEYS_PUT, &put), -EINVAL, "a reserved field");
	put = new_put(GUARD_KEYS_CIPHER, 31);
	is(ask(fd, GUARD_KEYS_PUT, &put), -EINVAL, "a short secret");
	put = new_put(GUARD_KEYS_CIPHER, 32);
	put.secret[40] = 1;
	is(ask(fd, GUARD_KEYS_PUT, &put), -EINVAL, "more secret than its length");
	put.length = 65;
	is(ask(fd, GUARD_KEYS_PUT, &put), -EINVAL, "a secret that is too long");
	put.length = 0;
	is(ask(fd, GUARD_KEYS_PUT, &put), -EINVAL, "no secret");
	is(ask(fd, GUARD_KEYS_PUT, NULL), -EFAULT, "no memory");
	key = new_key(3, NULL);
	is(ask(fd, GUARD_KEYS_GENERATE, &key), -EINVAL, "an unknown kind");
	key = new_key(GUARD_KEYS_SIGNER, NULL);
	key.usage = GUARD_KEYS_CAN_SIGN | GUARD_KEYS_CAN_ENCRYPT;
	is(ask(fd, GUARD_KEYS_GENERATE, &key), -EINVAL, "a use of the other kind");
	key = new_key(GUARD_KEYS_SIGNER, "a b");
	is(ask(fd, GUARD_KEYS_GENERATE, &key), -EINVAL, "a name with a space");
	key = new_key(GUARD_KEYS_SIGNER, "");
	is(ask(fd, GUARD_KEYS_GENERATE, &key), -EINVAL, "a kept key without a name");
	key = new_key(GUARD_KEYS_SIGNER, NULL);
	memset(key.name, 'a', GUARD_KEYS_NAME);
	is(ask(fd, GUARD_KEYS_GENERATE, &key), -EINVAL, "a name without an end");
	key = new_key(GUARD_KEYS_SIGNER, NULL);
	key.index = 1;
	is(ask(fd, GUARD_KEYS_GENERATE, &key), -EINVAL, "a field that is not used");
	is(ask(fd, _IO('k', 99), NULL), -ENOTTY, "a request that does not exist");
	is(count_keys(fd), 0, "and there is no key");
}

static void wrong_results(int fd, void *read_only)
{
	struct guard_keys_put put = new_put(GUARD_KEYS_CIPHER, 32);
	struct guard_keys_key kept = new_key(GUARD_KEYS_CIPHER, "kept");

	/* The handle cannot be told, so there is no key. */
	memcpy(read_only, &put, sizeof(put));
	mprotect(read_only, 4096, PROT_READ);
	is(ask(fd, GUARD_KEYS_PUT, read_only), -EFAULT, "a key whose handle cannot be written");
	mprotect(read_only, 4096, PROT_READ | PROT_WRITE);
	memcpy(read_only, &kept, sizeof(kept));
	mprotect(read_only, 4096, PROT_READ);
	is(ask(fd, GUARD_KEYS_GENERATE, read_only), -EFAULT, "a kept one");
	is(count_keys(fd), 0, "they are forgotten");
}

static void wrong_messages(int fd, void *read_only)
{
	uint64_t cipher = put(fd, GUARD_KEYS_CIPHER, 32), signer = put(fd, GUARD_KEYS_SIGNER, 64);
	struct guard_keys_crypt crypt = new_crypt(cipher, 100);
	struct guard_keys_sign sign = { .handle = signer, .text = (uintptr_t)text, .length = 9 };

	is(encrypt(fd, signer), -EPERM, "a signer does not encrypt");
	is(encrypt(fd, cipher ^ 2), -ENOENT, "another handle");
	is(ask(fd, GUARD_KEYS_ENCRYPT, &crypt), 0, "a text is encrypted");
	crypt.from = (uintptr_t)result;
	crypt.tag[3] ^= 4;
	is(ask(fd, GUARD_KEYS_DECRYPT, &crypt), -EBADMSG, "a wrong tag");
	crypt.tag[3] ^= 4;
	result[99] ^= 1;
	is(ask(fd, GUARD_KEYS_DECRYPT, &crypt), -EBADMSG, "a wrong text");
	crypt.reserved = 1;
	is(ask(fd, GUARD_KEYS_DECRYPT, &crypt), -EINVAL, "a reserved field");
	crypt = new_crypt(cipher, GUARD_KEYS_TEXT + 1);
	is(ask(fd, GUARD_KEYS_ENCRYPT, &crypt), -EMSGSIZE, "a text that is too long");
	crypt = new_crypt(cipher, 16);
	crypt.extra_length = GUARD_KEYS_EXTRA + 1;
	is(ask(fd, GUARD_KEYS_ENCRYPT, &crypt), -EMSGSIZE, "too much additional data");
	crypt = new_crypt(cipher, 16);
	crypt.from = 8;
	is(ask(fd, GUARD_KEYS_ENCRYPT, &crypt), -EFAULT, "a text that cannot be read");
	crypt = new_crypt(cipher, 16);
	crypt.extra = ~0UL << 12;
	is(ask(fd, GUARD_KEYS_ENCRYPT, &crypt), -EFAULT, "additional data of the kernel's");
	crypt = new_crypt(cipher, 16);
	crypt.to = (uintptr_t)read_only;
	is(ask(fd, GUARD_KEYS_ENCRYPT, &crypt), -EFAULT, "a result that cannot be written");
	is(ask(fd, GUARD_KEYS_SIGN, &sign), 0, "a text is signed");
	sign.signature[0] ^= 1;
	is(ask(fd, GUARD_KEYS_VERIFY, &sign), -EKEYREJECTED, "a wrong signature");
	sign.reserved = 1;
	is(ask(fd, GUARD_KEYS_SIGN, &sign), -EINVAL, "a reserved field");
	sign.reserved = 0;
	sign.length = GUARD_KEYS_TEXT + 1;
	is(ask(fd, GUARD_KEYS_SIGN, &sign), -EMSGSIZE, "a message that is too long");
	sign.length = 1;
	sign.handle = cipher;
	is(ask(fd, GUARD_KEYS_SIGN, &sign), -EPERM, "a cipher does not sign");
	is(forget(fd, cipher) | forget(fd, signer), 0, "both keys are forgotten");
	is(forget(fd, cipher), -ENOENT, "but not twice");
}

static void errors(int fd)
{
	void *read_only = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
			       -1, 0);

	wrong_keys(fd);
	wrong_results(fd, read_only);
	wrong_messages(fd, read_only);
	munmap(read_only, 4096);
}

/* ---- rights ---- */

/* The result of a function in a child of another user, with a file of its own. */
static int as_user(int (*work)(int fd, uint64_t handle), uint64_t handle)
{
	int status, pid = fork();

	if (!pid) {
		if (setresgid(USER, USER, USER) || setresuid(USER, USER, USER))
			_exit(255);
		_exit(work(open(DEVICE, O_RDWR), handle));
	}
	if (pid < 0 || waitpid(pid, &status, 0) != pid || !WIFEXITED(status))
		bail("a child of another user failed");
	return WEXITSTATUS(status);
}

static int cannot_use(int fd, uint64_t handle)
{
	return encrypt(fd, handle) != -ENOENT || forget(fd, handle) != -ENOENT || count_keys(fd);
}

static int fills(int fd, uint64_t unused)
{
	int i, err = 0;

	for (i = 0; !err; i++) {
		struct guard_keys_key key = new_key(GUARD_KEYS_SIGNER, NULL);

		err = ask(fd, GUARD_KEYS_GENERATE, &key);
	}
	return err == -EDQUOT ? i - 1 : 100;
}

static void rights(int fd)
{
	int other = open_device(O_RDWR), reader = open_device(O_RDONLY), status, pid;
	int writer = open_device(O_WRONLY);
	struct guard_keys_key key = new_key(GUARD_KEYS_CIPHER, "disk");
	uint64_t own = put(fd, GUARD_KEYS_CIPHER, 32);

	is(encrypt(other, own), -ENOENT, "another file cannot use the key");
	is(forget(other, own), -ENOENT, "nor forget it");
	is(ask(writer, GUARD_KEYS_GENERATE, &key), 0, "a key is kept, by a file for writing");
	is(count_keys(fd), 2, "a file sees its own key and what its user keeps");
	is(count_keys(other), 1, "another one what its user keeps");
	is(encrypt(reader, key.handle), 0, "a file for reading can use the key");
	is(forget(reader, key.handle), -EBADF, "but not forget it");
	is(encrypt(writer, key.handle), -EBADF, "a file for writing cannot use it");
	is(ask(other, GUARD_KEYS_GENERATE, &(struct guard_keys_key){
		.kind = 1, .usage = 1, .kept = 1, .name = "disk" }), -EEXIST, "its name is taken");

	pid = fork();
	if (!pid)
		_exit(encrypt(fd, own) != 0);
	is(waitpid(pid, &status, 0) == pid ? status : -1, 0, "a child has its parent's key");
	chmod(DEVICE, 0666);
	is(as_user(cannot_use, own), 0, "another user cannot use the key");
	is(as_user(cannot_use, key.handle), 0, "nor the kept one");
	is(as_user(fills, 0), GUARD_KEYS_PER_USER, "keys of another user");
	chmod(DEVICE, 0600);

	close(other);
	close(reader);
	close(writer);
	is(encrypt(fd, key.handle), 0, "a kept key is there after its file was closed");
	is(forget(fd, key.handle) | forget(fd, own), 0, "both are forgotten");
	is(count_keys(fd), 0, "there is no key");
}

static void limits(void)
{
	int fd = open_device(O_RDWR), i, err = 0;

	for (i = 0; !err; i++) {
		struct guard_keys_key key = new_key(GUARD_KEYS_CIPHER, NULL);

		err = ask(fd, GUARD_KEYS_GENERATE, &key);
	}
	is(err, -ENOSPC, "there is no room for another key");
	is(i - 1, GUARD_KEYS_MAX, "keys at once");
	close(fd);
	fd = open_device(O_RDWR);
	forget(fd, put(fd, GUARD_KEYS_CIPHER, 32));
	ok(true, "there is room after the file was closed");
	close(fd);
}

/* ---- storms, unloading ---- */

static void storm(void)
{
	unsigned long end = now_us() + STORM_SECONDS * 1000000UL;
	int i, status, bad = 0;

	for (i = 0; i < 6; i++) {
		if (fork())
			continue;
		while (now_us() < end) {
			int fd = open(DEVICE, O_RDWR), j;

			for (j = 0; j < 20; j++) {
				struct guard_keys_key key = new_key(1 + j % 2, NULL);
				int err = ask(fd, GUARD_KEYS_GENERATE, &key);

				if (err && err != -ENOSPC)
					_exit(1);
				if (!err && j % 2 == 0 && encrypt(fd, key.handle))
					_exit(2);
				if (!err && j % 3 == 0 && forget(fd, key.handle))
					_exit(3);
			}
			close(fd);
		}
		_exit(0);
	}
	while (wait(&status) > 0)
		bad += status != 0;
	is(bad, 0, "processes of a storm that had a wrong result");
}

static void unloading(void)
{
	struct guard_keys_key key = new_key(GUARD_KEYS_CIPHER, "pins");
	int fd = open_device(O_RDWR);

	is(module_unload("guard_keys"), -EWOULDBLOCK, "no unloading while the device is open");
	is(ask(fd, GUARD_KEYS_GENERATE, &key), 0, "a key is kept");
	close(fd);
	is(module_users_left("guard_keys"), 1, "users of the module");
	is(module_unload("guard_keys"), -EWOULDBLOCK, "no unloading while a key is kept");
	fd = open_device(O_RDWR);
	is(forget(fd, key.handle), 0, "it is forgotten");
	close(fd);
	is(module_users_left("guard_keys"), 0, "users of the module");
	is(module_unload("guard_keys"), 0, "unloading");
	is(module_load("guard-keys", ""), 0, "loading");
}

/* ---- memory ---- */

/* Bytes in kernel memory, or places of a word there. */
static unsigned long search(unsigned long at, unsigned long length, unsigned long word)
{
	long err = attack("search", at, length, word);

	if (err)
		bail("the hostile module cannot search: %s", strerror(-err));
	return found;
}

static unsigned long keys, stacks, pool, exchange;

static void find_memory(void)
{
	keys = kernel_address("keys_table");
	stacks = kernel_address("keys_stacks");
	pool = kernel_address("keys_pool");
	exchange = kernel_address("keys_exchange");
	if (!keys || !stacks || !pool || !exchange)
		bail("the module's memory was not found in /proc/kallsyms");
}

static const unsigned long table = 65536, shared = 4096 + GUARD_KEYS_TEXT;

static void guarded_memory(int fd)
{
	uint64_t cipher = put(fd, GUARD_KEYS_CIPHER, 32), signer = put(fd, GUARD_KEYS_SIGNER, 64);
	unsigned long end = kernel_address("keys_private_end"), word;

	find_memory();
	memcpy(&word, secret, 8);
	memcpy(text, secret, 64);
	is(encrypt(fd, cipher), 0, "a key is used");
	ok(end > keys, "the private section is found");
	is(search(stacks, end - stacks, 0), 0, "bytes in the private section");
	is(search(exchange, shared, word), 0, "the secret in the exchange");
	is(encrypt(fd, cipher), 0, "the key is used again");
	is(forget(fd, cipher) | forget(fd, signer), 0, "both keys are forgotten");
}

static void memory(int fd)
{
	struct guard_keys_key named = new_key(GUARD_KEYS_CIPHER, "findable");
	unsigned long word, name;
	uint64_t cipher, signer;

	find_memory();
	memcpy(&word, secret, 8);
	memcpy(&name, "findable", 8);
	cipher = put(fd, GUARD_KEYS_CIPHER, 32);
	signer = put(fd, GUARD_KEYS_SIGNER, 64);
	memcpy(text, secret, 64);
	is(ask(fd, GUARD_KEYS_GENERATE, &named) | encrypt(fd, cipher), 0, "keys are used");
	is(search(keys, table, name), 1, "the hostile module finds a key by its name");
	ok(search(keys, table, 0) > 1000, "it finds expanded keys");
	is(search(stacks, keys + table - stacks, word), 0, "but not the secret itself");
	is(search(exchange, shared, word), 0, "nor in the exchange");
	forget(fd, cipher);
	forget(fd, signer);
	forget(fd, named.handle);
	is(search(keys, table, 0), 0, "bytes of forgotten keys");
	is(search(stacks, pool - stacks, 0), 0, "bytes on the private stacks");
	is(search(pool + 32, keys - pool - 32, 0), 0, "bytes of texts and requests");
	is(search(exchange, shared, 0), 0, "bytes in the exchange");
	ok(search(pool, 32, 0) > 16, "but the pool has some");
}

static bool is_guarded(int fd)
{
	struct guard_keys_status status;

	if (ask(fd, GUARD_KEYS_GET_STATUS, &status))
		bail("the module's status: %m");
	return status.guarded;
}

static int loaded_device(void)
{
	is(module_load("guard-keys", ""), 0, "the module is loaded");
	return open_device(O_RDWR);
}

static void guarded(const char *problem)
{
	int guard = guard_open(), fd = open_device(O_RDWR), writer;
	uint64_t cipher;

	is(ask(fd, GUARD_KEYS_GUARD, NULL), -ENODEV, "without a guard no keys are guarded");
	is(guard_request(guard, DUNE_GUARD_LAUNCH), 0, "the guard is launched");
	cipher = put(fd, GUARD_KEYS_CIPHER, 32);
	is(ask(fd, GUARD_KEYS_GUARD, NULL), -ENOTEMPTY, "nor keys that there are");
	is(encrypt(fd, cipher), 0, "which stay");
	is(forget(fd, cipher), 0, "and are forgotten");
	writer = open_device(O_RDONLY);
	is(ask(writer, GUARD_KEYS_GUARD, NULL), -EBADF, "nor by a file for reading");
	close(writer);
	is(ask(fd, GUARD_KEYS_GUARD, NULL), 0, "the keys are guarded");
	ok(is_guarded(fd), "the status tells it");
	is(ask(fd, GUARD_KEYS_GUARD, NULL), -EALREADY, "not twice");
	tap_where = "guarded: ";
	if (problem)
		skip(problem, "openssl's answers");
	else
		answers(fd);
	errors(fd);
	rights(fd);
	guarded_memory(fd);
	close(fd);
	limits();
	storm();
	guard_refuses(guard, DUNE_GUARD_STOP, EBUSY, "guard-keys has secrets", "no stop");
	is(module_unload("dune_guard"), -EWOULDBLOCK, "no unloading of the guard");
	unloading();
	fd = open_device(O_RDWR);
	ok(is_guarded(fd), "the keys are guarded when the module is loaded");
	close(fd);
	tap_where = "";
	is(module_unload("guard_keys"), 0, "unloading");
	is(guard_request(guard, DUNE_GUARD_STOP), 0, "the guard is stopped");
	is(guard_unload(guard), 0, "and unloaded");
	fd = loaded_device();
	ok(!is_guarded(fd), "the keys are not guarded");
	answers(fd);
	close(fd);
}

int main(void)
{
	struct guard_keys_status status;
	const char *problem = openssl_load();
	struct klog log;
	int fd;

	begin(300);
	klog_begin(&log);
	attack_load();
	if (!module_is_loaded("guard_keys"))
		is(module_load("guard-keys", ""), 0, "the module is loaded");
	fd = open_device(O_RDWR);
	is(ask(fd, GUARD_KEYS_GET_STATUS, &status), 0, "its status");
	ok(status.version == GUARD_KEYS_VERSION && !status.guarded, "version; it is not guarded");
	is(count_keys(fd), 0, "there is no key");
	if (problem)
		skip(problem, "openssl's answers");
	else
		answers(fd);
	errors(fd);
	rights(fd);
	memory(fd);
	close(fd);
	limits();
	storm();
	unloading();
	guarded(problem);
	is(module_unload("dune_guard_attack"), 0, "the hostile module is unloaded");
	klog_end(&log);
	return done();
}
