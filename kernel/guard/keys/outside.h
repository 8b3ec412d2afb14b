/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What the files of guard/keys/ share: guard-keys.ko, which keeps keys, and encrypts and signs with
 * them. inside/ is the half that has the keys, and whose sections a guard can keep from the rest
 * of the kernel (docs/guard-keys.md). The other half is an ordinary module: device.c has the
 * device and its files, request.c the ioctls, which it takes to the inside by the exchange.
 */
#ifndef GUARD_KEYS_OUTSIDE_H
#define GUARD_KEYS_OUTSIDE_H

#include <linux/types.h>

/**
 * struct keys_file - an open file of the device
 * @number:	its name inside; no other file has had it since the module was loaded
 * @user:	whose kept keys it can use
 * @mode:	FMODE_READ: it can use keys; FMODE_WRITE: it can add and remove them
 */
struct keys_file {
	u64 number;
	u64 user;
	fmode_t mode;
};

/*
 * request.c: for process context; they sleep. keys_start() is for the time before there are files.
 * keys_request() returns 0 or a negative errno.
 */
void keys_start(void);
/* Tells in the kernel's log whether the keys are guarded. */
void keys_tell(void);
long keys_request(const struct keys_file *file, unsigned int command, void __user *user);
/* The file was closed: forgets its keys, except those that are kept. */
void keys_close(const struct keys_file *file);

/*
 * guarded.c: for process context, while no thread is inside. keys_guarded_begin() has a guard clear
 * the inside's memory and keep it from the kernel; keys_guarded_end() gives it back. -ENODEV: there
 * is no guard; -EPERM: it is sealed; or another negative errno.
 */
long keys_guarded_begin(void);
void keys_guarded_end(void);

/* return.S: no function to call */
void keys_return(void);

#endif /* GUARD_KEYS_OUTSIDE_H */
