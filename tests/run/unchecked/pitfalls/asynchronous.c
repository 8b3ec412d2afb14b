// SPDX-License-Identifier: MIT OR Apache-2.0
/* Asynchronous access. See pitfalls.h. */
#define _GNU_SOURCE
#include "pitfalls.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/io_uring.h>
#include <linux/userfaultfd.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

/* The module refuses each of them, so nothing asynchronous can be tried. */
void row_io_uring(void)
{
	struct io_uring_params params = { .flags = IORING_SETUP_SQPOLL };

	if (RAW(SYS_io_uring_setup, 16, &params, 0) >= 0 ||
	    RAW6(SYS_io_uring_enter, 0, 0, 0, 0, 0, 0) != -1 || errno != EPERM ||
	    RAW6(SYS_io_uring_register, 0, 0, 0, 0, 0, 0) != -1 || errno != EPERM)
		dprintf(2, "FOUND a call of io_uring that was not refused\n");
}

void row_aio(void)
{
	u64 context = 0, block[8] = { 0 }, *list = block;
	int file = memfd_create("file", 0);
	unsigned int i;

	write(file, sled, sizeof(buffer));
	RAW(SYS_io_setup, 8, &context, 0);
	for (i = 0; i < TARGETS; i++) {
		block[2] = 0;			/* IOCB_CMD_PREAD */
		block[2] |= (u64)file << 32;
		block[3] = target(i);
		block[4] = PAGE;
		RAW(SYS_io_submit, context, 1, &list);
		RAW6(SYS_io_getevents, context, 0, 8, target(i + 1), 0, 0);
		work(1);
	}
	RAW6(SYS_mremap, context, PAGE, PAGE, MREMAP_MAYMOVE | MREMAP_FIXED, SCRATCH, 0);
	work(2);
}

/* A child answers the faults of its parent's scratch and frames, with a sled. */
void row_userfaultfd(void)
{
	int fd = RAW(SYS_userfaultfd, O_CLOEXEC | (rand() & 1 ? UFFD_USER_MODE_ONLY : 0), 0, 0);
	struct uffdio_api api = { .api = UFFD_API };
	u64 parts[] = { STUB, WINDOW, SCRATCH, FRAMES };
	u64 sizes[] = { PAGE, STUB_SIZE - PAGE, SCRATCH_SIZE, FRAMES_SIZE };
	pid_t parent = getpid();
	unsigned int i;

	ioctl(fd, UFFDIO_API, &api);
	for (i = 0; i < 4; i++) {
		struct uffdio_register r = {
			.range = { parts[i], sizes[i] }, .mode = UFFDIO_REGISTER_MODE_MISSING,
		};

		ioctl(fd, UFFDIO_REGISTER, &r);
	}
	if (!fork()) {
		struct uffd_msg m;

		while (getppid() == parent && read(fd, &m, sizeof(m)) == sizeof(m)) {
			struct uffdio_copy c = {
				.dst = m.arg.pagefault.address & ~(PAGE - 1), .src = (u64)sled,
				.len = PAGE,
			};

			ioctl(fd, UFFDIO_COPY, &c);
			for (i = 0; i < 4; i++) {
				c.dst = parts[i];
				ioctl(fd, UFFDIO_COPY, &c);
			}
		}
		_exit(0);
	}
	for (i = 0; i < 200; i++) {
		madvise((void *)parts[2 + i % 2], sizes[2 + i % 2], MADV_DONTNEED);
		work_attacked(1);
	}
}
