// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * A guest that never leaves is to RCU what a program in a loop is: grace
 * periods of RCU tasks, for which ftrace, kprobes and live patches wait, end
 * while it runs. Fails in a fully preemptible kernel (--mode preempt) when the
 * run loop does not tell RCU of the guest.
 */
#define _GNU_SOURCE
#include "guest.h"
#include "tap.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define TRACING		"/sys/kernel/tracing"
#define INSTANCE	TRACING "/instances/dune-rcu"
#define PATIENCE	90	/* seconds; a grace period takes a few */

static volatile u64 *spinning;

static u64 spin(void *arg)
{
	(void)arg;
	for (;;)
		++*spinning;
	return 0;
}

static int store(const char *file, const char *text)
{
	int fd = open(file, O_WRONLY | O_TRUNC | O_CLOEXEC), err = 0;

	if (fd < 0)
		return -errno;
	if (write(fd, text, strlen(text)) < 0)
		err = -errno;
	close(fd);
	return err;
}

static int spinner(void)
{
	int pid = fork();
	struct guest g;

	if (pid)
		return pid;
	pin_to(usable_cpu(0));
	guest_open(&g);
	guest_call(&g, spin, NULL);
	_exit(1);
}

/* The kernel waits for RCU tasks before it frees the tracer's trampoline. */
static int untracer(void)
{
	int pid = fork();

	if (pid)
		return pid;
	_exit(store(INSTANCE "/current_tracer", "nop") ? 1 : 0);
}

int main(void)
{
	struct klog log;
	int guest, pid, ms, status = -1;

	begin(300);
	klog_begin(&log);
	if (usable_cpu(0) == usable_cpu(1)) {
		skip("one CPU", "grace periods while a guest spins");
		return done();
	}
	mount("tracefs", TRACING, "tracefs", 0, NULL);
	if (mkdir(INSTANCE, 0700) && errno != EEXIST) {
		skip("no tracefs", "grace periods while a guest spins");
		return done();
	}
	spinning = shared_alloc(sizeof(*spinning));
	pin_to(usable_cpu(1));
	guest = spinner();
	for (ms = 0; !*spinning && ms < 20000; ms++)
		sleep_ms(1);
	ok(*spinning, "a guest spins");
	ok(!store(INSTANCE "/set_ftrace_filter", "vfs_fsync") &&
	   !store(INSTANCE "/current_tracer", "function"), "a function is traced");
	pid = untracer();
	/* It may not die of a signal before the grace period is over. */
	for (ms = 0; !waitpid(pid, &status, WNOHANG) && ms < PATIENCE * 1000; ms += 10)
		sleep_ms(10);
	ok(!status, "tracing ends while the guest spins");
	ok(*spinning && !kill(guest, 0), "which it does all the time");
	kill(guest, SIGKILL);
	ok(wait_child(guest, 20).signal == SIGKILL, "the guest is killed");
	if (status)
		waitpid(pid, NULL, 0);
	rmdir(INSTANCE);
	klog_read(&log);
	ok(!log.complaint, "the kernel log has no complaint %s", log.first);
	return done();
}
