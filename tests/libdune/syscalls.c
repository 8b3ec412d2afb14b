// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * System calls that wait, and what signals do to them (signal(7)), natively, in
 * ring 0 and in ring 3. Fails when a call is not interrupted or is not restarted as
 * Linux does it, when a mask that holds only during the call stays, when a signal
 * or a byte is lost, when a program can close the vCPU's descriptor, or when a dup2()
 * to its number that fails leaves a second descriptor of the vCPU.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include "child.h"
#include "rings.h"
#include "tap.h"

/*
 * Where a call has to be interrupted, the signal comes again and again: on a
 * busy machine the first may come before the call.
 */
static volatile int count;
static volatile int *shared_count;	/* the same, for children to see */
static sigset_t mask_in_handler;

static void note(int sig)
{
	(void)sig;
	sigprocmask(SIG_BLOCK, NULL, &mask_in_handler);
	count++;
	*shared_count = count;
}

static void install(int sig, int flags)
{
	struct sigaction sa = { .sa_handler = note, .sa_flags = flags };

	sigaction(sig, &sa, NULL);
	count = 0;
	*shared_count = 0;
}

/* SIGALRM every @ms; 0: no more. */
static void alarms_ms(int ms)
{
	struct itimerval it = { { 0, ms * 1000 }, { 0, ms * 1000 } };

	setitimer(ITIMER_REAL, &it, NULL);
}

static void test_read(void)
{
	int p[2];
	char c = 0;
	long n;
	int err;
	pid_t pid;

	if (pipe(p))
		bail("pipe: %s", strerror(errno));
	install(SIGALRM, 0);
	alarms_ms(50);
	errno = 0;
	n = read(p[0], &c, 1);
	err = errno;
	alarms_ms(0);
	is(n, -1, "a read that is interrupted fails");
	is(err, EINTR, "a read that is interrupted: EINTR");
	ok(count >= 1, "a read that is interrupted: the handler ran");

	install(SIGALRM, SA_RESTART);
	pid = fork();
	if (!pid) {
		while (*shared_count < 3)
			usleep(1000);
		if (write(p[1], "x", 1) != 1)
			child_fails("write() in the child failed");
		_exit(0);
	}
	alarms_ms(50);
	is(read(p[0], &c, 1), 1, "a read with SA_RESTART continues");
	alarms_ms(0);
	ok(count >= 3, "a read with SA_RESTART: the handler ran before the data came");
	is(c, 'x', "a read with SA_RESTART: the data");
	waitpid(pid, NULL, 0);
	close(p[0]);
	close(p[1]);
}

static void test_sleep(void)
{
	struct timespec t = { 1000, 0 }, rest = { 0, 0 };
	struct timespec a, b;
	pid_t pid;
	long ms;
	int ret, err;

	install(SIGALRM, SA_RESTART);
	alarms_ms(50);
	errno = 0;
	ret = nanosleep(&t, &rest);
	err = errno;
	alarms_ms(0);
	is(ret, -1, "nanosleep fails when it is interrupted, even with SA_RESTART");
	is(err, EINTR, "nanosleep that is interrupted: EINTR");
	ok(rest.tv_sec >= 900 && rest.tv_sec < 1000,
	   "nanosleep that is interrupted: time left: %ld s",
	   (long)rest.tv_sec);

	/* Stopped and continued without a handler: sleeps on. */
	clock_gettime(CLOCK_MONOTONIC, &a);
	pid = fork();
	if (!pid) {
		t = (struct timespec){ 0, 400000000 };
		_exit(nanosleep(&t, NULL) ? 1 : 0);
	}
	usleep(100000);
	kill(pid, SIGSTOP);
	usleep(50000);
	kill(pid, SIGCONT);
	int status = -1;

	waitpid(pid, &status, 0);
	clock_gettime(CLOCK_MONOTONIC, &b);
	ms = (b.tv_sec - a.tv_sec) * 1000 + (b.tv_nsec - a.tv_nsec) / 1000000;
	is(status, 0, "nanosleep over SIGSTOP and SIGCONT: no error");
	ok(ms >= 400, "nanosleep over SIGSTOP and SIGCONT: the whole time (%ld ms)", ms);
}

static void test_suspend(void)
{
	sigset_t block, wait, now;
	struct timespec t = { 100, 0 };
	struct epoll_event ev;
	int ep = epoll_create1(0), ret, err;

	sigemptyset(&block);
	sigaddset(&block, SIGUSR1);
	sigprocmask(SIG_BLOCK, &block, NULL);
	sigfillset(&wait);
	sigdelset(&wait, SIGUSR1);

#define WAITS(call, name) do {						\
	install(SIGUSR1, SA_RESTART);					\
	kill(getpid(), SIGUSR1);					\
	is(count, 0, name ": blocked before");				\
	errno = 0;							\
	ret = call;							\
	err = errno;							\
	is(ret, -1, name);						\
	is(err, EINTR, name ": EINTR");					\
	is(count, 1, name ": handler ran");				\
	ok(sigismember(&mask_in_handler, SIGUSR1) == 1 &&		\
	   sigismember(&mask_in_handler, SIGUSR2) == 1,			\
	   name ": the handler had the call's mask");			\
	sigprocmask(SIG_BLOCK, NULL, &now);				\
	ok(sigismember(&now, SIGUSR1) == 1 &&				\
	   sigismember(&now, SIGUSR2) == 0,				\
	   name ": the old mask is back");				\
} while (0)

	WAITS(sigsuspend(&wait), "sigsuspend");
	WAITS(ppoll(NULL, 0, &t, &wait), "ppoll");
	WAITS(pselect(0, NULL, NULL, NULL, &t, &wait), "pselect");
	WAITS(epoll_pwait(ep, &ev, 1, 100000, &wait), "epoll_pwait");
	sigprocmask(SIG_UNBLOCK, &block, NULL);
	close(ep);

	t.tv_sec = 0;
	t.tv_nsec = 1000000;
	is(ppoll(NULL, 0, &t, NULL), 0, "ppoll without a mask");
	ret = syscall(SYS_ppoll, NULL, 0, &t, (void *)8, 8);
	err = errno;
	is(ret, -1, "ppoll with a bad mask fails");
	is(err, EFAULT, "ppoll with a bad mask: EFAULT");
}

static void test_pause(void)
{
	struct itimerval it = { { 0, 20000 }, { 0, 20000 } };
	struct itimerval off = { { 0, 0 }, { 0, 0 } };
	int i;

	install(SIGALRM, 0);
	setitimer(ITIMER_REAL, &it, NULL);
	for (i = 0; i < 5; i++)
		pause();
	setitimer(ITIMER_REAL, &off, NULL);
	is(i, 5, "pause returns for each signal");
}

static void test_child(void)
{
	struct sigaction sa = { .sa_handler = note, .sa_flags = SA_NOCLDWAIT };
	int status = 0;
	pid_t pid;

	install(SIGCHLD, 0);
	pid = fork();
	if (!pid)
		_exit(7);
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	is(WEXITSTATUS(status), 7, "SIGCHLD: the child's exit status");
	is(count, 1, "SIGCHLD: the handler ran once");
	sigaction(SIGCHLD, &sa, NULL);
	count = 0;
	pid = fork();
	if (!pid)
		_exit(7);
	while ((pid = wait(&status)) < 0 && errno == EINTR)
		;
	ok(pid == -1 && errno == ECHILD, "SA_NOCLDWAIT: nothing to wait for");
	signal(SIGCHLD, SIG_DFL);
}

static void test_wait_for(void)
{
	struct signalfd_siginfo si;
	struct timespec t = { 100, 0 };
	siginfo_t info;
	sigset_t set;
	int fd;

	sigemptyset(&set);
	sigaddset(&set, SIGUSR2);
	sigprocmask(SIG_BLOCK, &set, NULL);
	kill(getpid(), SIGUSR2);
	is(sigtimedwait(&set, &info, &t), SIGUSR2, "sigtimedwait() returns the pending signal");
	is(info.si_pid, getpid(), "sigtimedwait() returns the sender's si_pid");
	kill(getpid(), SIGUSR2);
	fd = signalfd(-1, &set, 0);
	is(read(fd, &si, sizeof(si)), sizeof(si), "a signalfd is read for a pending signal");
	is(si.ssi_signo, SIGUSR2, "a signalfd shows the pending signal");
	close(fd);
	sigprocmask(SIG_UNBLOCK, &set, NULL);
}

/* Signals from outside at every point of calls; no one lost, no mask left. */
static void test_storm(void)
{
	sigset_t usr1, old, now;
	int wrong = 0, n = 0, err, status = -1, p[2];
	pid_t pid, parent = getpid();
	long r;
	char c;

	if (pipe(p))
		bail("pipe: %s", strerror(errno));
	install(SIGUSR1, SA_RESTART);
	sigemptyset(&usr1);
	sigaddset(&usr1, SIGUSR1);
	pid = fork();
	if (!pid) {
		for (n = 0; n < 300; n++) {
			if (kill(parent, SIGUSR1))
				child_fails("kill() of the parent failed");
			if (write(p[1], "x", 1) != 1)
				child_fails("write() in the child failed");
			if (n % 10 == 0)
				usleep(1000);
		}
		_exit(0);
	}
	close(p[1]);
	for (;;) {
		errno = 0;
		r = read(p[0], &c, 1);
		err = errno;
		if (r != 1)
			break;
		n++;
		sigprocmask(SIG_BLOCK, &usr1, &old);
		if (sigismember(&old, SIGUSR1))
			wrong++;
		sigprocmask(SIG_SETMASK, &old, NULL);
		sigprocmask(SIG_BLOCK, NULL, &now);
		if (memcmp(&now, &old, 8))
			wrong++;
	}
	waitpid(pid, &status, 0);
	if (n != 300)
		diag("read: %ld, errno %d, after %d bytes and %d signals",
		     r, err, n, count);
	is(status, 0, "a storm of signals: the sender ends normally");
	is(n, 300, "a storm of signals: no byte lost");
	is(wrong, 0, "a storm of signals: no mask changed");
	ok(count > 0 && count <= 300, "a storm of signals: %d handlers ran", count);
	close(p[0]);
}

/* A signal just before a call that waits must interrupt it. */
static void test_no_lost_wakeup(void)
{
	int i, p[2], lost = 0;

	if (pipe(p))
		bail("pipe: %s", strerror(errno));
	install(SIGALRM, 0);
	for (i = 1; i <= 40; i++) {
		struct itimerval it = { .it_value = { 0, 200 + i * 37 } };
		int before = count;
		struct pollfd pfd = { .fd = p[0], .events = POLLIN };

		setitimer(ITIMER_REAL, &it, NULL);
		while (count == before) {
			/* Either the handler ran already, or poll ends. */
			if (poll(&pfd, 1, 2000) == 0) {
				if (count == before)
					lost++;
				break;
			}
		}
	}
	is(lost, 0, "no signal waits for a call to end");
	close(p[0]);
	close(p[1]);
}

static void test_fds(void)
{
	char path[32];
	int i, fd, bad = 0;

	for (i = 900; i < 1024; i++)
		close(i);
	is(getpid(), syscall(SYS_getpid), "getpid works after the numbers from 900 on were closed");
	is(syscall(SYS_close_range, 100, ~0U, 0), 0, "close_range of the descriptors from 100 on");
	fd = open("/dev/null", O_RDWR);
	for (i = 990; i < 1023; i++) {
		if (dup2(fd, i) != i)
			bad++;
	}
	is(bad, 0, "dup2 to high numbers");
	for (i = 990; i < 1023; i++) {
		if (close(i))
			bad++;
	}
	is(bad, 0, "closing these high numbers");
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	is(access(path, F_OK), 0,
	   "a lower descriptor is still open after dup2 and close of high numbers");
	close(fd);
}

/* Returns how many descriptors of vCPUs the process has, and stores the last one. */
static int vcpu_fds(int *last)
{
	char path[32], target[64];
	int fd, found = 0;
	long n;

	for (fd = 0; fd < 1024; fd++) {
		snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
		n = readlink(path, target, sizeof(target) - 1);
		target[n > 0 ? n : 0] = 0;
		if (strstr(target, "dune-vcpu")) {
			*last = fd;
			found++;
		}
	}
	return found;
}

/* A dup2() or dup3() to the number that the vCPU has: any free one natively. */
static void test_dup_to_vcpu(void)
{
	int guest = strcmp(tap_where, "native: ") != 0;
	int fd = 100, null = open("/dev/null", O_RDWR), ret, err;

	is(vcpu_fds(&fd), guest,
	   "the process has one descriptor of a vCPU in Dune mode, and natively none");
	ret = dup2(-1, fd);
	err = errno;
	is(ret, -1, "dup2 of a bad descriptor to the vCPU's number fails");
	is(err, EBADF, "dup2 of a bad descriptor to the vCPU's number: EBADF");
	is(vcpu_fds(&fd), guest, "descriptors of vCPUs after this dup2");
	ret = dup3(null, fd, ~0);
	err = errno;
	is(ret, -1, "dup3 with bad flags to the vCPU's number fails");
	is(err, EINVAL, "dup3 with bad flags to the vCPU's number: EINVAL");
	is(vcpu_fds(&fd), guest, "descriptors of vCPUs after this dup3");
	ret = dup2(null, fd);
	is(ret, fd, "dup2 of a file to the vCPU's number");
	is(close(ret), 0, "a file at the vCPU's number can be closed");
	is(vcpu_fds(&fd), guest, "descriptors of vCPUs after this close");
	close(null);
}

static void body(void)
{
	test_read();
	test_sleep();
	test_suspend();
	test_pause();
	test_child();
	test_wait_for();
	test_storm();
	test_no_lost_wakeup();
	test_fds();
	test_dup_to_vcpu();
}

int main(int argc, char **argv)
{
	shared_count = shared_alloc(sizeof(*shared_count));
	return in_all_rings(argc, argv, body);
}
