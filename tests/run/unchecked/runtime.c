// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * The part of dune-run-unchecked that dune-run does not have. Nothing of run/ is compiled anew for
 * it: the linker puts these functions around two of run/'s (--wrap). It checks nothing, and looks
 * at its own memory after each call. See unchecked.h.
 */
#include "calls.h"
#include "check.h"
#include "hidden.h"
#include "layout.h"
#include "sys.h"
#include "unchecked.h"

#include <dune_copies.h>
#include <dune_runtime.h>
#include <asm/unistd.h>

void __real_check_syscall(struct dune_tf *tf);
void __wrap_check_syscall(struct dune_tf *tf);
bool __wrap_is_hidden(u64 fd);
void __real_dune_runtime_close(void);
void __wrap_dune_runtime_close(void);

bool control_call(struct dune_tf *tf, u32 nr);

#define CALLS_BETWEEN_REPORTS	64
#define CALLS_BETWEEN_SUMS	64
#define WINDOW_WORDS		8
#define WINDOW_WORD		0xd0d0d0d0d0d0d0d0UL

/* run/image.ld */
extern const u8 dune_code_end[];
extern const struct dune_image_head dune_image_head;	/* at the beginning of the image */

/* The secret in three places of the runtime, and a pattern in the window. */
u64 unchecked_data[SECRET_WORDS] = { 1 };
static u64 in_bss[SECRET_WORDS];
static u64 *in_stack, *in_window;
u64 unchecked_sum;
static u64 calls;
static bool ready;

static void report(u64 what, u64 a, u64 b, u64 c)
{
	static const char text[] = "FOUND the runtime's memory or ring 0 is not as it was\n";

	SYS6(__NR_getpid, REPORT, what, a, b, c, 0);
	if (what == REPORT_CALLS)
		return;
	sys_write(2, text, sizeof(text) - 1);
	for (;;)
		SYS1(__NR_exit_group, 99);
}

static u64 sum(void)
{
	const u64 *p = (const u64 *)&dune_image_head;
	u64 s = 0;

	for (; p < (const u64 *)dune_code_end; p++)
		s = (s ^ *p) * 0x100000001b3UL;
	return s;
}

static bool in_code(u64 rip)
{
	return rip - (u64)&dune_image_head < (u64)dune_code_end - (u64)&dune_image_head;
}

/* Ring 0 faults at its own instructions only: where it copies from or to the program. */
static void trap(struct dune_tf *tf)
{
	if (!(tf->cs & 3) && !in_code(tf->rip))
		report(REPORT_RING0, tf->vector, tf->rip, tf->error);
	dune_trap_default(tf);
}

static u64 timestamp(void)
{
	u32 low, high;

	asm volatile("rdtsc" : "=a" (low), "=d" (high));
	return (u64)high << 32 | low;
}

/*
 * The secret comes from RDTSC: a result of getrandom() would have been in memory of the process
 * first.
 */
static void start(void)
{
	u64 word = secret_next(timestamp());
	unsigned int i;

	in_stack = (u64 *)(((u64)__builtin_frame_address(0) & ~(BLOCK_SIZE - 1UL)) +
			   RING0_STACK_BOTTOM + RING0_STACK_GUARD);
	for (i = 0; i < SECRET_WORDS; i++) {
		unchecked_data[i] = word;
		in_bss[i] = word;
		in_stack[i] = word;
		word = secret_next(word);
	}
	for (i = 0; i < WINDOW_WORDS; i++)
		in_window[i] = WINDOW_WORD;
	unchecked_sum = sum();
	for (i = 0; i < 32; i++)
		dune_trap_set(i, trap, 0);
	ready = true;
}

static void look(u32 nr)
{
	u64 word = in_bss[0];
	unsigned int i;

	for (i = 0; i < SECRET_WORDS; i++) {
		if (in_bss[i] != word || unchecked_data[i] != word || in_stack[i] != word)
			report(REPORT_CHANGED, i, nr, calls);
		word = secret_next(word);
	}
	for (i = 0; i < WINDOW_WORDS; i++)
		if (in_window[i] != WINDOW_WORD)
			report(REPORT_CHANGED, 100 + i, nr, calls);
	if (calls % CALLS_BETWEEN_SUMS == 0 && sum() != unchecked_sum)
		report(REPORT_CODE, nr, calls, 0);
	if (++calls % CALLS_BETWEEN_REPORTS == 0)
		report(REPORT_CALLS, CALLS_BETWEEN_REPORTS, nr, 0);
}

/*
 * The calls that ring 0 or libdune has to make itself, since a program would not work without:
 * those that concern its signals, its children, its end, and its own FS and GS.
 */
static bool is_mechanism(u32 nr)
{
	switch (nr) {
	case __NR_rt_sigaction:
	case __NR_rt_sigreturn:
	case __NR_rt_sigsuspend:
	case __NR_sigaltstack:
	case __NR_ppoll:
	case __NR_pselect6:
	case __NR_epoll_pwait:
	case __NR_epoll_pwait2:
	case __NR_sched_setaffinity:
	case __NR_arch_prctl:
	case __NR_clone:
	case __NR_clone3:
	case __NR_fork:
	case __NR_vfork:
	case __NR_execve:
	case __NR_execveat:
	case __NR_exit:
	case __NR_exit_group:
		return true;
	}
	return false;
}

/* control.c has another one, which carries out some calls. */
__attribute__((weak)) bool control_call(struct dune_tf *tf, u32 nr)
{
	return false;
}

/* What is taken before the program begins is kept for its children, too. */
void __wrap_dune_runtime_close(void)
{
	in_window = dune_window_get(WINDOW_WORDS * sizeof(u64));
	__real_dune_runtime_close();
}

bool __wrap_is_hidden(u64 fd)
{
	return false;
}

void __wrap_check_syscall(struct dune_tf *tf)
{
	u32 nr = tf->rax;

	if (unlikely(!ready))
		start();
	if (!control_call(tf, nr)) {
		if (is_mechanism(nr))
			__real_check_syscall(tf);
		else
			dune_syscall_result(tf, dune_forward_tf(tf, nr & ~RAW_BIT));
	}
	look(nr);
}
