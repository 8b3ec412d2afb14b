// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * A child that shares memory with its parent (vfork) dies at a chosen place in a call of
 * the library: at an instruction, or at a system call that the library makes. Fails
 * when a call of the parent does not work then.
 */
#define _GNU_SOURCE
#include <dune.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include "child.h"
#include "filter.h"
#include "rings.h"
#include "step.h"
#include "tap.h"
#include "x86.h"

#define LIMIT		300		/* seconds for a case */
#define MB		(1UL << 20)
#define ARENA		((char *)0x210000000000)
#define MANY		(MB / PAGE)	/* more pages than an arena has before it grows */
/* Addresses that nothing else uses. */
#define WINDOW		0x300000000000UL
/* Each table that is filled takes some thousand steps. */
#define PAGE_STRIDE	3
#define MAP_STRIDE	61

/* Returns the status of a child that shares memory and runs @fn. */
static int status_of(int (*fn)(void *), void *arg, int flags)
{
	static char stack[65536] __attribute__((aligned(16)));
	int status;
	pid_t pid = clone(fn, stack + sizeof(stack), CLONE_VM | CLONE_VFORK | flags | SIGCHLD,
			  arg);

	if (pid < 0 || waitpid(pid, &status, 0) != pid)
		child_fails("clone() or waitpid() failed");
	return status;
}

/* ---- at a system call ---- */

struct call {
	const struct dune_config *config;
	int nr;			/* of the system call that kills the child */
};

/* Returns how many of MANY pages there are. */
static unsigned long take_pages(void)
{
	unsigned long i;
	char *page;

	for (i = 0; i < MANY; i++) {
		page = dune_page_alloc(1);
		if (!page)
			break;
		*page = 1;
	}
	return i;
}

static int use_up(void *arg)
{
	const struct call *call = arg;

	filter_call(call->nr, SECCOMP_RET_KILL_PROCESS, 0);
	_exit(take_pages() != MANY);
}

/* The arena grows in the child. An arena of the library's own does so before. */
static void grow(void *arg)
{
	const struct call *call = arg;
	int status;

	if (dune_enter(call->config))
		child_fails("dune_enter() failed");
	status = status_of(use_up, arg, 0);
	if (call->config && (!WIFSIGNALED(status) || WTERMSIG(status) != SIGSYS))
		child_fails("the child was not killed while the arena grew");
	if (take_pages() != MANY)
		child_fails("the parent's arena does not grow");
	_exit(0);
}

static void test_grow(void)
{
	static const struct dune_config in_place = {
		.size = sizeof(in_place), .arena = ARENA, .arena_size = MB, .arena_limit = 8 * MB,
	};
	struct call calls[] = {
		{ NULL, SYS_mmap }, { NULL, SYS_madvise },
		{ &in_place, SYS_mmap }, { &in_place, SYS_madvise },
	};
	struct outcome end;
	unsigned int i;

	if (mmap(ARENA, MB, PROT_READ | PROT_WRITE,
		 MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0) != ARENA)
		bail("the arena's place is in use");
	for (i = 0; i < sizeof(calls) / sizeof(calls[0]); i++) {
		end = in_child(grow, &calls[i], LIMIT);
		ok(!end.code, "the arena grows %s after a child's death at its %s() (%s)",
		   calls[i].config ? "in place" : "elsewhere",
		   calls[i].nr == SYS_mmap ? "mmap" : "madvise", outcome_text(end));
	}
}

static volatile int handled;

static void on_child(int sig)
{
	(void)sig;
	handled++;
}

static int ignore_children(void *arg)
{
	(void)arg;
	filter_call(SYS_rt_sigaction, SECCOMP_RET_KILL_PROCESS, 0);
	signal(SIGCHLD, SIG_DFL);
	_exit(0);
}

/* Linux ignores SIGCHLD by default. */
static void change_action(void *arg)
{
	(void)arg;
	signal(SIGCHLD, on_child);
	if (dune_enter(NULL))
		child_fails("dune_enter() failed");
	if (!WIFSIGNALED(status_of(ignore_children, NULL, CLONE_SIGHAND)))
		child_fails("the child was not killed in rt_sigaction()");
	kill(getpid(), SIGCHLD);
	signal(SIGCHLD, on_child);
	handled = 0;
	kill(getpid(), SIGCHLD);
	_exit(handled != 1);
}

/* ---- at an instruction ---- */

static volatile int steps, at_step;
static volatile unsigned long address;

/*
 * At a REP STOSB, of which each iteration is a step, carries out half of those that are left.
 * So a page that is cleared takes some 12 steps instead of 4,096, and a child can still die
 * in the middle.
 */
GPR_ONLY static void halve_iterations(struct dune_tf *tf)
{
	const unsigned char *insn = (const unsigned char *)tf->rip;
	unsigned long n = tf->rcx / 2;

	if (insn[0] != 0xf3 || insn[1] != 0xaa)
		return;
	tf->rcx -= n;
	__asm__ volatile("rep stosb" : "+D" (tf->rdi), "+c" (n) : "a" (tf->rax) : "memory");
}

GPR_ONLY static void on_step(struct dune_tf *tf)
{
	halve_iterations(tf);
	if (++steps == at_step)
		kill(getpid(), SIGKILL);
}

static int stepped(void *arg)
{
	void (*call)(void) = arg;

	steps = 0;
	step_on();
	call();
	step_off();
	_exit(0);
}

/*
 * Kills a child at every @stride'th instruction of @call, and calls @check after each death.
 * Returns the number of deaths.
 */
static int kill_at_steps(void (*call)(void), int stride, void (*check)(void))
{
	int deaths = 0;

	dune_trap_set(X86_TRAP_DB, on_step, 0);
	for (at_step = 1; ; at_step += stride) {
		if (!WIFSIGNALED(status_of(stepped, call, 0)))
			return deaths;
		deaths++;
		check();
	}
}

static void take_page(void)
{
	dune_page_free(dune_page_alloc(1), 1);
}

static void check_page(void)
{
	char *page = dune_page_alloc(1);

	if (!page || *page)
		child_fails("dune_page_alloc() failed after the child's death");
	*page = 1;
	dune_page_free(page, 1);
}

static void page_stepped(void *arg)
{
	(void)arg;
	if (dune_enter(NULL))
		child_fails("dune_enter() failed");
	_exit(kill_at_steps(take_page, PAGE_STRIDE, check_page) < 10);
}

static void map_pages(void)
{
	if (dune_pt_map(dune_pt_root(), address, 2 * PAGE, (uint64_t)ARENA, DUNE_PT_RW))
		child_fails("dune_pt_map() failed");
}

/* The next child splits other large pages. */
static void check_map(void)
{
	map_pages();
	if (*(char *)address || *(char *)(address + PAGE))
		child_fails("dune_pt_map() has mapped other memory");
	check_page();
	address += MB2;
}

static void map_stepped(void *arg)
{
	(void)arg;
	address = WINDOW;
	if (dune_enter(NULL))
		child_fails("dune_enter() failed");
	_exit(kill_at_steps(map_pages, MAP_STRIDE, check_map) < 10);
}

int main(void)
{
	struct outcome end;

	test_grow();
	end = in_child(change_action, NULL, LIMIT);
	ok(!end.code, "SIGCHLD, after a child's death while it changes the action (%s)",
	   outcome_text(end));
	end = in_child(page_stepped, NULL, LIMIT);
	ok(!end.code, "pages, after deaths while children take one (%s)", outcome_text(end));
	end = in_child(map_stepped, NULL, LIMIT);
	ok(!end.code, "mappings, after deaths while children map pages (%s)", outcome_text(end));
	return done();
}
