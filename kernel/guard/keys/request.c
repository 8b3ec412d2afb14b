// SPDX-License-Identifier: GPL-2.0-only
/*
 * The ioctls of /dev/guard-keys. Each copies its arguments to the exchange, enters the inside, and
 * copies the results from the exchange. The inside decides which file may use which key; here are
 * the limits and rights that need no key.
 */
#include <linux/build_bug.h>
#include <linux/ctype.h>
#include <linux/err.h>
#include <linux/fs.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/random.h>
#include <linux/string.h>
#include <linux/uaccess.h>
#include <linux/guard-keys.h>

#include "guard/keys/inside/exchange.h"
#include "guard/keys/outside.h"

static struct keys_request *const request = &keys_exchange.request;

static_assert(GUARD_KEYS_MAX == KEYS_MAX && GUARD_KEYS_PER_USER == KEYS_PER_USER &&
	      GUARD_KEYS_NAME == KEYS_NAME && GUARD_KEYS_SECRET == KEYS_SECRET &&
	      GUARD_KEYS_TEXT == KEYS_TEXT && GUARD_KEYS_EXTRA == KEYS_EXTRA &&
	      GUARD_KEYS_CIPHER == KEYS_CIPHER && GUARD_KEYS_SIGNER == KEYS_SIGNER &&
	      GUARD_KEYS_CAN_ENCRYPT == KEYS_CAN_ENCRYPT &&
	      GUARD_KEYS_CAN_DECRYPT == KEYS_CAN_DECRYPT &&
	      GUARD_KEYS_CAN_SIGN == KEYS_CAN_SIGN && GUARD_KEYS_CAN_VERIFY == KEYS_CAN_VERIFY);

/*
 * For the exchange, and the inside. It is held for as long as the inside works, and not while user
 * memory is copied, which can take for ever.
 */
static DEFINE_MUTEX(exchange_lock);

static void lock(void)
{
	mutex_lock(&exchange_lock);
}

/* Clears the exchange: nothing of one file's request reaches the next one's. */
static void unlock(u32 length)
{
	memzero_explicit(request, sizeof(*request));
	memzero_explicit(keys_exchange.extra, sizeof(keys_exchange.extra));
	memzero_explicit(keys_exchange.text, length);
	mutex_unlock(&exchange_lock);
}

/* Under the lock. */
static long enter(const struct keys_file *file, u32 op)
{
	request->op = op;
	request->file = file->number;
	request->user = file->user;
	return keys_enter();
}

/* ---- keys ---- */

static bool is_good_name(const char name[KEYS_NAME])
{
	u32 length = strnlen(name, KEYS_NAME), i;

	for (i = 0; i < length; i++)
		if (!isascii(name[i]) || (!isalnum(name[i]) && !strchr("-_.", name[i])))
			return false;
	return length < KEYS_NAME && !memchr_inv(name + length, 0, KEYS_NAME - length);
}

static long forget(const struct keys_file *file, u64 handle)
{
	bool was_kept;
	long err;

	lock();
	request->handle = handle;
	err = enter(file, KEYS_FORGET);
	was_kept = !err && request->kept;
	unlock(0);
	if (was_kept)
		module_put(THIS_MODULE);
	return err;
}

/* Adds a key, with this secret or with a new one, and tells @user its handle. */
static long add(const struct keys_file *file, struct guard_keys_key *key, const u8 *secret,
		u32 length, void __user *user)
{
	long err;

	if (key->handle || key->index || key->uses || !is_good_name(key->name))
		return -EINVAL;
	lock();
	request->kind = key->kind;
	request->usage = key->usage;
	request->kept = key->kept;
	memcpy(request->name, key->name, KEYS_NAME);
	memcpy(request->secret, secret, length);
	request->secret_length = length;
	get_random_bytes(request->seed, KEYS_SEED);
	err = enter(file, length ? KEYS_PUT : KEYS_GENERATE);
	key->handle = request->handle;
	/* The caller has a file of the module's open, so the module stays. */
	if (!err && key->kept)
		__module_get(THIS_MODULE);
	unlock(0);
	if (!err && copy_to_user(user, key, sizeof(*key))) {
		forget(file, key->handle);
		err = -EFAULT;
	}
	return err;
}

static long put_key(const struct keys_file *file, void __user *user)
{
	struct guard_keys_put put;
	long err = -EINVAL;

	if (copy_from_user(&put, user, sizeof(put)))
		return -EFAULT;
	if (!put.reserved && put.length && put.length <= KEYS_SECRET &&
	    !memchr_inv(put.secret + put.length, 0, KEYS_SECRET - put.length))
		err = add(file, &put.key, put.secret, put.length, user);
	memzero_explicit(&put, sizeof(put));
	return err;
}

static long generate_key(const struct keys_file *file, void __user *user)
{
	struct guard_keys_key key;

	if (copy_from_user(&key, user, sizeof(key)))
		return -EFAULT;
	return add(file, &key, NULL, 0, user);
}

static long list_key(const struct keys_file *file, void __user *user)
{
	struct guard_keys_key key;
	long err;

	if (copy_from_user(&key, user, sizeof(key)))
		return -EFAULT;
	lock();
	request->index = key.index;
	err = enter(file, KEYS_LIST);
	key.handle = request->handle;
	key.kind = request->kind;
	key.usage = request->usage;
	key.kept = request->kept;
	key.index = request->index;
	key.uses = request->uses;
	memcpy(key.name, request->name, KEYS_NAME);
	unlock(0);
	if (err)
		return err;
	return copy_to_user(user, &key, sizeof(key)) ? -EFAULT : 0;
}

static long forget_key(const struct keys_file *file, void __user *user)
{
	u64 handle;

	if (copy_from_user(&handle, user, sizeof(handle)))
		return -EFAULT;
	return forget(file, handle);
}

static const struct keys_file nobody;

/* Under the lock: the inside has new memory. */
static void stir(void)
{
	get_random_bytes(request->seed, KEYS_SEED);
	enter(&nobody, KEYS_STIR);
}

/*
 * Makes the inside guarded. An existing key would be lost, and the kernel could have read it
 * already: so this is refused while there is one.
 */
static long become_guarded(void)
{
	long err;

	lock();
	err = enter(&nobody, KEYS_STATUS);
	if (!err && request->guarded)
		err = -EALREADY;
	if (!err && request->index)
		err = -ENOTEMPTY;
	if (!err)
		err = keys_guarded_begin();
	if (!err)
		stir();
	unlock(0);
	return err;
}

static bool keys_are_guarded(void)
{
	bool are_guarded;

	lock();
	are_guarded = !enter(&nobody, KEYS_STATUS) && request->guarded;
	unlock(0);
	return are_guarded;
}

void keys_tell(void)
{
	if (keys_are_guarded())
		pr_notice("guard-keys: guarded: the kernel cannot read keys\n");
	else
		pr_notice("guard-keys: NOT guarded: the kernel can read all keys\n");
}

void keys_start(void)
{
	if (!become_guarded())
		return;
	lock();
	stir();
	unlock(0);
}

void keys_close(const struct keys_file *file)
{
	lock();
	enter(file, KEYS_FORGET_FILE);
	unlock(0);
}

/* ---- messages ---- */

static long crypt(const struct keys_file *file, void __user *user, u32 op)
{
	struct guard_keys_crypt message;
	u8 extra[KEYS_EXTRA], *text;
	long err;

	if (copy_from_user(&message, user, sizeof(message)))
		return -EFAULT;
	if (message.reserved)
		return -EINVAL;
	if (message.length > KEYS_TEXT || message.extra_length > KEYS_EXTRA)
		return -EMSGSIZE;
	if (copy_from_user(extra, u64_to_user_ptr(message.extra), message.extra_length))
		return -EFAULT;
	text = vmemdup_user(u64_to_user_ptr(message.from), message.length);
	if (IS_ERR(text))
		return PTR_ERR(text);

	lock();
	memcpy(keys_exchange.text, text, message.length);
	memcpy(keys_exchange.extra, extra, message.extra_length);
	request->handle = message.handle;
	request->text_length = message.length;
	request->extra_length = message.extra_length;
	memcpy(request->nonce, message.nonce, KEYS_NONCE);
	memcpy(request->tag, message.tag, KEYS_TAG);
	err = enter(file, op);
	memcpy(text, keys_exchange.text, message.length);
	memcpy(message.nonce, request->nonce, KEYS_NONCE);
	memcpy(message.tag, request->tag, KEYS_TAG);
	unlock(message.length);

	if (!err && (copy_to_user(u64_to_user_ptr(message.to), text, message.length) ||
		     copy_to_user(user, &message, sizeof(message))))
		err = -EFAULT;
	kvfree_sensitive(text, message.length);
	return err;
}

static long sign(const struct keys_file *file, void __user *user, u32 op)
{
	struct guard_keys_sign message;
	u8 *text;
	long err;

	if (copy_from_user(&message, user, sizeof(message)))
		return -EFAULT;
	if (message.reserved)
		return -EINVAL;
	if (message.length > KEYS_TEXT)
		return -EMSGSIZE;
	text = vmemdup_user(u64_to_user_ptr(message.text), message.length);
	if (IS_ERR(text))
		return PTR_ERR(text);

	lock();
	memcpy(keys_exchange.text, text, message.length);
	request->handle = message.handle;
	request->text_length = message.length;
	memcpy(request->signature, message.signature, KEYS_SIGNATURE);
	err = enter(file, op);
	memcpy(message.signature, request->signature, KEYS_SIGNATURE);
	unlock(message.length);

	kvfree_sensitive(text, message.length);
	if (err)
		return err;
	return copy_to_user(user, &message, sizeof(message)) ? -EFAULT : 0;
}

static long get_status(void __user *user)
{
	const struct guard_keys_status status = {
		.version = GUARD_KEYS_VERSION, .guarded = keys_are_guarded(),
	};

	return copy_to_user(user, &status, sizeof(status)) ? -EFAULT : 0;
}

static long guard_and_tell(void)
{
	long err = become_guarded();

	if (!err)
		keys_tell();
	return err;
}

/* A request, and what the file must have been opened for. */
long keys_request(const struct keys_file *file, unsigned int command, void __user *user)
{
	bool may_add = file->mode & FMODE_WRITE, may_use = file->mode & FMODE_READ;

	switch (command) {
	case GUARD_KEYS_GET_STATUS:
		return get_status(user);
	case GUARD_KEYS_GUARD:
		if (!capable(CAP_SYS_ADMIN))
			return -EPERM;
		return may_add ? guard_and_tell() : -EBADF;
	case GUARD_KEYS_PUT:
		return may_add ? put_key(file, user) : -EBADF;
	case GUARD_KEYS_GENERATE:
		return may_add ? generate_key(file, user) : -EBADF;
	case GUARD_KEYS_FORGET:
		return may_add ? forget_key(file, user) : -EBADF;
	case GUARD_KEYS_ENCRYPT:
		return may_use ? crypt(file, user, KEYS_ENCRYPT) : -EBADF;
	case GUARD_KEYS_DECRYPT:
		return may_use ? crypt(file, user, KEYS_DECRYPT) : -EBADF;
	case GUARD_KEYS_SIGN:
		return may_use ? sign(file, user, KEYS_SIGN) : -EBADF;
	case GUARD_KEYS_VERIFY:
		return may_use ? sign(file, user, KEYS_VERIFY) : -EBADF;
	case GUARD_KEYS_LIST:
		return may_use ? list_key(file, user) : -EBADF;
	default:
		return -ENOTTY;
	}
}
