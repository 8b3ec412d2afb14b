// SPDX-License-Identifier: MIT OR Apache-2.0
/* Children with a time limit, the kernel log, CPUs: see machine.h. */
#define _GNU_SOURCE
#include "machine.h"
#include "tap.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

unsigned int time_limit(unsigned int time)
{
	return time * env_number("TEST_TIME_FACTOR", 4);
}

static void watchdog(int sig)
{
	static const char text[] = "Bail out! out of time\n";

	(void)!write(1, text, sizeof(text) - 1);
	_exit(254);
}

void begin(unsigned int seconds)
{
	setvbuf(stdout, NULL, _IOLBF, 0);
	/* A timer of its own: alarm() and SIGALRM are the tests' to use. */
	struct sigevent ev = { .sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGRTMAX };
	struct itimerspec its = { .it_value.tv_sec = time_limit(seconds) };
	timer_t t;

	signal(SIGRTMAX, watchdog);
	if (timer_create(CLOCK_MONOTONIC, &ev, &t) || timer_settime(t, 0, &its, NULL))
		bail("timer_create: %s", strerror(errno));
}

long env_number(const char *name, long otherwise)
{
	const char *text = getenv(name);

	return text && *text ? strtol(text, NULL, 0) : otherwise;
}

const char *outcome_text(struct outcome o)
{
	static char text[32];

	if (o.hung)
		return "killed after its time limit";
	if (o.signal)
		snprintf(text, sizeof(text), "signal %d", o.signal);
	else
		snprintf(text, sizeof(text), "exit status %d", o.code);
	return text;
}

struct outcome wait_child(int pid, unsigned int seconds)
{
	struct outcome o = { .code = -1 };
	struct pollfd pfd = { .events = POLLIN };
	int status;

	pfd.fd = syscall(SYS_pidfd_open, pid, 0);
	if (pfd.fd < 0)
		bail("pidfd_open: %s", strerror(errno));
	unsigned long end = now_us() + time_limit(seconds) * 1000000UL;

	for (;;) {
		long left = (long)(end - now_us()) / 1000;
		int n = poll(&pfd, 1, left < 0 ? 0 : left);

		if (n > 0)
			break;
		if (n < 0 && errno == EINTR)
			continue;
		if (o.hung)
			bail("process %d survives SIGKILL", pid);
		o.hung = true;
		kill(pid, SIGKILL);
		end = now_us() + time_limit(20) * 1000000UL;
	}
	close(pfd.fd);
	if (waitpid(pid, &status, 0) != pid)
		bail("waitpid: %s", strerror(errno));
	if (WIFEXITED(status))
		o.code = WEXITSTATUS(status);
	else
		o.signal = WTERMSIG(status);
	return o;
}

struct outcome in_child(void (*fn)(void *arg), void *arg, unsigned int seconds)
{
	int pid;

	fflush(stdout);
	pid = fork();
	if (pid < 0)
		bail("fork: %s", strerror(errno));
	if (!pid) {
		fn(arg);
		_exit(0);
	}
	return wait_child(pid, seconds);
}

void *shared_alloc(unsigned long size)
{
	void *p = mmap(NULL, size, PROT_READ | PROT_WRITE,
		       MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED)
		bail("mmap: %s", strerror(errno));
	return p;
}

unsigned long now_us(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * 1000000UL + ts.tv_nsec / 1000;
}

void sleep_ms(unsigned int ms)
{
	struct timespec ts = { ms / 1000, ms % 1000 * 1000000L };

	while (nanosleep(&ts, &ts) && errno == EINTR)
		;
}

static int slurp(const char *path, char *buf, int size)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	int n, len = 0;

	if (fd < 0)
		return -errno;
	while (len < size - 1 && (n = read(fd, buf + len, size - 1 - len)) > 0)
		len += n;
	close(fd);
	buf[len] = 0;
	return len;
}

long file_number(const char *path)
{
	char buf[64];

	return slurp(path, buf, sizeof(buf)) > 0 ? strtol(buf, NULL, 0) : -1;
}

long file_key(const char *path, const char *key)
{
	static char buf[16384];
	size_t n = strlen(key);

	if (slurp(path, buf, sizeof(buf)) <= 0)
		return -1;
	for (char *p = buf; p; p = strchr(p, '\n')) {
		if (*p == '\n')
			p++;
		if (!strncmp(p, key, n) && p[n] == ':')
			return strtol(p + n + 1, NULL, 10);
	}
	return -1;
}

/* KB of free pages that processors keep for themselves, dozens of MB since 6.7. */
static long kept_by_cpus(void)
{
	FILE *f = fopen("/proc/zoneinfo", "r");
	long pages, kb = 0;
	char line[256];

	while (f && fgets(line, sizeof(line), f))
		if (sscanf(line, " count: %ld", &pages) == 1)
			kb += pages * 4;
	if (f)
		fclose(f);
	return kb;
}

long memory_available(void)
{
	file_write("/proc/sys/vm/drop_caches", "3");
	/* RCU frees some of it later. */
	sleep_ms(100);
	return file_key("/proc/meminfo", "MemAvailable") + kept_by_cpus();
}

bool kernel_has(const char *symbol)
{
	char line[300], name[200];
	FILE *f = fopen("/proc/kallsyms", "r");
	bool found = false;

	while (f && !found && fgets(line, sizeof(line), f))
		found = sscanf(line, "%*x %*c %199s", name) == 1 && !strcmp(name, symbol);
	if (f)
		fclose(f);
	return found;
}

int file_write(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);
	int err = 0;

	if (fd < 0)
		return -errno;
	if (write(fd, text, strlen(text)) < 0)
		err = -errno;
	close(fd);
	return err;
}

void klog_begin(struct klog *log)
{
	memset(log, 0, sizeof(*log));
	log->fd = open("/dev/kmsg", O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	if (log->fd < 0)
		bail("/dev/kmsg: %s (the tests of the module want root)", strerror(errno));
	lseek(log->fd, 0, SEEK_END);
}

void klog_read(struct klog *log)
{
	/*
	 * A test is often run without the suite, which judges the whole log by a
	 * list of its own (tools/machine/src/log.rs).
	 */
	static const char *const bad[] = {
		"BUG", "WARNING", "Oops", "general protection", "Call Trace",
		"self-detected", "blocked for more than", "lockup", "possible recursive",
		"circular locking", "KASAN", "sleeping function", "scheduling while atomic",
		"unchecked MSR", "Bad page", "bad pmd", "leak",
	};
	char buf[8192];
	int n;

	for (;;) {
		n = read(log->fd, buf, sizeof(buf) - 1);
		if (n < 0 && errno == EPIPE) {	/* overrun: many lines indeed */
			log->lines += 1000;
			continue;
		}
		if (n <= 0)
			return;
		buf[n] = 0;
		log->lines++;
		for (unsigned int i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
			char *text = strchr(buf, ';');

			if (!text || !strstr(text, bad[i]) || log->has_error)
				continue;
			log->has_error = true;
			strncpy(log->first, text + 1, sizeof(log->first) - 1);
		}
	}
}

void klog_end(struct klog *log)
{
	klog_read(log);
	close(log->fd);
	ok(!log->has_error, "the kernel log has no error %s", log->first);
}

int usable_cpu(int n)
{
	cpu_set_t set;
	int last = 0;

	if (sched_getaffinity(0, sizeof(set), &set))
		bail("sched_getaffinity: %s", strerror(errno));
	for (int cpu = 0; cpu < CPU_SETSIZE && n >= 0; cpu++) {
		if (!CPU_ISSET(cpu, &set))
			continue;
		last = cpu;
		n--;
	}
	return last;
}

void pin_to(int cpu)
{
	cpu_set_t one;

	CPU_ZERO(&one);
	CPU_SET(cpu, &one);
	if (sched_setaffinity(0, sizeof(one), &one))
		bail("sched_setaffinity to CPU %d: %s", cpu, strerror(errno));
}
