// SPDX-License-Identifier: MIT OR Apache-2.0
/* The watchdog, limits, the clock: see timing.h. */
#define _GNU_SOURCE
#include "timing.h"
#include "tap.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
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

long env_number(const char *name, long otherwise)
{
	const char *text = getenv(name);

	return text && *text ? strtol(text, NULL, 0) : otherwise;
}
