// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * Two threads in Dune mode, of which one closes all descriptors. Fails when it closes the
 * vCPU of the other one or its own, which ends the program, or when a descriptor of the
 * program is not closed.
 */
#define _GNU_SOURCE
#include <dune_runtime.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "rings.h"
#include "tap.h"

#define FIRST_VCPU	60	/* the lowest number of a vCPU's descriptor */

static pthread_barrier_t both;
static volatile long other_pid;

static bool is_closed(int fd)
{
	return fcntl(fd, F_GETFD) < 0;
}

static void test_each(void)
{
	int end = FIRST_VCPU + 100, vcpus = 0, closed = 0, replaced = 0, fd;

	for (fd = FIRST_VCPU; fd < end; fd++) {
		if (is_closed(fd))
			continue;
		vcpus++;
		closed += !close(fd) || errno != EBADF;
		if (fd != dune_vcpu_fd())
			replaced += dup2(0, fd) >= 0 || errno != EBADF;
	}
	is(vcpus, 2, "the process has two descriptors of vCPUs");
	is(closed, 0, "close() of a vCPU's descriptor: EBADF");
	is(replaced, 0, "dup2() to the number of another thread's vCPU: EBADF");
}

static void test_range(void)
{
	int low = dup(0), middle = fcntl(0, F_DUPFD, FIRST_VCPU), high;

	high = fcntl(0, F_DUPFD, FIRST_VCPU + 100);
	ok(low >= 0 && middle >= 0 && high >= 0, "the program opens three descriptors");
	is(syscall(SYS_close_range, 3, ~0U, 0), 0, "close_range() of all but 0 to 2 succeeds");
	ok(is_closed(low) && is_closed(middle) && is_closed(high),
	   "close_range() closes the program's descriptors on both sides of the vCPUs'");
}

static void *run_on(void *arg)
{
	if (dune_enter(NULL))
		bail("dune_enter() of the second thread failed");
	pthread_barrier_wait(&both);
	pthread_barrier_wait(&both);
	other_pid = getpid();
	return arg;
}

int main(void)
{
	pthread_t thread;

	pthread_barrier_init(&both, NULL, 2);
	if (pthread_create(&thread, NULL, run_on, NULL))
		bail("pthread_create() failed");
	must_enter(NULL);
	pthread_barrier_wait(&both);
	test_each();
	test_range();
	pthread_barrier_wait(&both);
	pthread_join(thread, NULL);
	is(other_pid, getpid(), "both threads continue");
	return done();
}
