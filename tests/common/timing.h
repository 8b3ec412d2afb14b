/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * A test program's time: the watchdog over all of it, limits, the clock; and the
 * variables of the environment that set such limits.
 */
#ifndef DUNE_TESTS_TIMING_H
#define DUNE_TESTS_TIMING_H

#include <stdbool.h>

/*
 * Call first: a watchdog of @seconds over the whole program, which bails out. (The programs of
 * tests/libdune have a parent as their watchdog: lib/limit.c.)
 */
void begin(unsigned int seconds);

/*
 * Scales @time, a limit in any unit, to this machine (TEST_TIME_FACTOR). The limits in
 * the tests are written for a fast machine; an emulated one is slower.
 */
unsigned int time_limit(unsigned int time);

/* Microseconds on the monotonic clock. */
unsigned long now_us(void);
void sleep_ms(unsigned int ms);

/* Wait until @condition holds, for time_limit(@seconds) at most. Whether it holds. */
#define WAIT_FOR(condition, seconds) ({						\
	unsigned long end_ = now_us() + time_limit(seconds) * 1000000UL;	\
	bool holds_;								\
										\
	while (!(holds_ = (condition)) && now_us() < end_)			\
		sleep_ms(1);							\
	holds_;									\
})

/* A number from the environment, else @otherwise. */
long env_number(const char *name, long otherwise);

#endif
