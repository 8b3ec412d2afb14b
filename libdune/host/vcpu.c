// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * The device and the vCPUs that come from it. All of this runs outside the guest, as thread.c.
 */
#include "host.h"

#include <dune_runtime.h>

/* Gives @fd a number from DUNE_HIGH_FD on. Returns it, or @fd itself if there is none. */
static int move_high(int fd)
{
	long high = sys3(__NR_fcntl, fd, F_DUPFD_CLOEXEC, DUNE_HIGH_FD);

	if (high < 0)
		return fd;
	sys3(__NR_close, fd, 0, 0);
	return high;
}

/*
 * Fills @info, and chooses the instructions of its vendor. Returns 0, or an error if the
 * module (-EPROTO) or the processor (-ENODEV) does not fit this library.
 */
static long read_info(int dev, struct dune_info *info)
{
	long err;

	info->size = sizeof(*info);
	err = sys3(__NR_ioctl, dev, DUNE_GET_INFO, (long)info);
	/* A version whose structure has another size does not know this request or this size. */
	if (err == -ENOTTY || err == -EINVAL)
		return -EPROTO;
	if (err)
		return err;
	if (info->api_version != DUNE_API_VERSION)
		return -EPROTO;
	/* Without granules page tables hold addresses of the process, all of which must fit. */
	if (!info->granules && info->address_bits < USER_BITS)
		return -ENODEV;
	return dune_calls_choose(info->vendor);
}

/*
 * Fills dune_process.info, and at the first time sets up what depends on it. Until the handlers
 * that it reports are taken over (dune_actions_import()), each call reads it anew: if dune_enter()
 * failed, the program may have set others since. Returns 0 or an error, with which the next call
 * tries again.
 */
static long get_info(int dev)
{
	struct dune_info *info = &dune_process.info;
	bool first = !info->size;
	struct dune_info now;
	long err;

	if (!first && dune_process.imported)
		return 0;
	err = read_info(dev, &now);
	if (err)
		return err;
	*info = now;
	if (first)
		dune_granule_init(info->granules);
	return 0;
}

/* Gives the vCPU of @fd granules and state. Returns 0 or an error. */
static long prepare(struct dune_thread *t, int fd)
{
	long err = dune_granule_tell_all(fd);

	return err ? err : sys3(__NR_ioctl, fd, DUNE_SET_STATE, (long)&t->state);
}

/* Gives the vCPU of @fd its run page, granules and state. Returns 0 or an error. */
static long start_vcpu(struct dune_thread *t, int fd)
{
	long run = dune_run_map(t, fd), err;

	if (is_error(run))
		return run;
	err = prepare(t, fd);
	if (err) {
		dune_run_unmap(t, (void *)run);
		return err;
	}
	t->migrations = 0;
	t->run = (struct dune_run *)run;
	t->run->regs = t->regs;
	return 0;
}

/* Makes a vCPU of @dev for @t. Returns 0 or an error. */
static long make_vcpu(struct dune_thread *t, int dev)
{
	struct dune_create_vcpu create = {
		.size = sizeof(create),
		.flags = dune_process.vcpu_flags,
	};
	long fd, err;

	fd = sys3(__NR_ioctl, dev, DUNE_CREATE_VCPU, (long)&create);
	if (fd < 0)
		return fd;
	err = start_vcpu(t, fd);
	if (err) {
		sys3(__NR_close, fd, 0, 0);
		return err;
	}
	t->vcpu = move_high(fd);
	return 0;
}

/* Returns a text about an error of get_info(). */
static const char *info_error(long err)
{
	switch (err) {
	case -EPROTO:
		return "dune.ko is of another version than this library";
	case -ENODEV:
		return "guest-physical addresses of this processor have too few bits";
	default:
		return "DUNE_GET_INFO failed";
	}
}

/*
 * Fills dune_process.info. Returns a descriptor for dune_vcpu_open(), or an error, with a text
 * about it in *@why.
 */
long dune_device_open(const char **why)
{
	/* On the stack, for the same reason as in dune_enter(). */
	char path[] = "/dev/dune";
	long dev = sys3(__NR_open, (long)path, O_RDWR | O_CLOEXEC, 0);
	long err;

	if (dev < 0) {
		*why = "/dev/dune cannot be opened";
		return dev;
	}
	err = get_info(dev);
	if (!err)
		return dev;
	*why = info_error(err);
	dune_device_close(dev);
	return err;
}

/* Closes a descriptor of dune_device_open(), whose number another file may get. */
void dune_device_close(long dev)
{
	sys3(__NR_close, dev, 0, 0);
}

/*
 * Makes the vCPU t->vcpu, which another process or program made, one of the calling
 * thread. Returns 0 or an error.
 */
long dune_vcpu_renew(struct dune_thread *t)
{
	struct dune_renew_vcpu renew = {
		.size = sizeof(renew),
		.flags = dune_process.vcpu_flags,
		.fd = t->vcpu,
	};
	long err = sys3(__NR_ioctl, t->vcpu, DUNE_RENEW_VCPU, (long)&renew);

	return err ? err : start_vcpu(t, t->vcpu);
}

/*
 * Gives the calling thread a vCPU that starts with t->state and t->regs. @dev is the
 * result of dune_device_open(); if it is an error, that is returned, else it is used or
 * closed. Returns 0 or an error.
 */
long dune_vcpu_open(struct dune_thread *t, long dev)
{
	long err;

	if (dev < 0)
		return dev;
	err = make_vcpu(t, dev);
	dune_device_close(dev);
	return err;
}
