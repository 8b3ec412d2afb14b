// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * What the guard costs. Linux's own work, first without the guard and then with it; the exits of a
 * second in which nothing happens; and the border of a guarded module (tests/guard/inside): a
 * request to the guard that does nothing, as the cost of an exit; beyond that cost, a call of a
 * function that does nothing and of one that calls back; and an interrupt of the timer.
 *
 * Prints nothing on a processor without SVM. The compiler is copied to memory: while the processor
 * waits for a file of another computer, counting mode counts the time.
 */
#define _GNU_SOURCE
#include "bench.h"
#include "modules.h"
#include "outside.h"
#include "timing.h"

#include <cpuid.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/dune-guard.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

/* CPUID 80000001h, ECX (AMD64 Architecture Programmer's Manual, vol. 3, appendix E.4.2) */
#define HAS_SVM		(1U << 2)

static void must_succeed(int err, const char *what)
{
	if (!err)
		return;
	fprintf(stderr, "guard: %s: %s\n", what, strerror(-err));
	exit(1);
}

/* ---- Linux's own work ---- */

struct costs {
	uint64_t getpid, touch, change, fork, compile;
};

static void end_of(pid_t child)
{
	int status;

	if (child < 0 || waitpid(child, &status, 0) != child || status)
		die("a child");
}

static void fork_and_wait(void)
{
	pid_t child = fork();

	if (!child)
		_exit(0);
	end_of(child);
}

static uint64_t touch(void)
{
	uint64_t cost;
	char *pages;

	pages = mmap(NULL, ROUNDS * 4096L, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
		     0);
	if (pages == MAP_FAILED || madvise(pages, ROUNDS * 4096L, MADV_NOHUGEPAGE))
		die("memory");
	cost = MEASURE(pages[i * 4096L] = 1);
	munmap(pages, ROUNDS * 4096L);
	return cost;
}

/* To another process and back: each writes a byte and waits for one. There is one CPU. */
static uint64_t change(void)
{
	int there[2], back[2], bad = 0;
	uint64_t cost;
	pid_t child;
	char byte = 0;

	if (pipe(there) || pipe(back))
		die("pipe");
	child = fork();
	if (!child) {
		close(there[1]);
		while (read(there[0], &byte, 1) == 1)
			if (write(back[1], &byte, 1) != 1)
				break;
		_exit(0);
	}
	cost = MEASURE(bad |= write(there[1], &byte, 1) != 1 || read(back[0], &byte, 1) != 1);
	close(there[1]);
	end_of(child);
	if (bad)
		die("the other process");
	close(there[0]);
	close(back[0]);
	close(back[1]);
	return cost;
}

#define FILES "/dev/shm/dune-bench-guard/"

/* The compiler itself, with its libraries, and a program to compile. */
static void copy_compiler(void)
{
	static const char command[] =
		"mkdir -p " FILES " && cc1=$(gcc -print-prog-name=cc1) && cp -L $cc1 $(ldd $cc1 | "
		"grep -o '/[^ ]*') " FILES " && seq 100 | sed 's/.*/int f&(int a, int *b) "
		"{ int i; for (i = 0; i < a; i++) b[i] = b[i] * & + a; return b[0]; }/' >" FILES
		"program.c";
	int status = system(command);

	if (status)
		command_failed(command, status);
}

static void compile(void)
{
	pid_t child = fork();

	if (!child) {
		/* Without a locale, which would be files elsewhere. */
		execle(FILES "ld-linux-x86-64.so.2", "ld-linux-x86-64.so.2", "--library-path",
		       FILES, FILES "cc1", "-quiet", "-O2", FILES "program.c", "-o",
		       FILES "program.s", NULL, (char *[]){ NULL });
		_exit(1);
	}
	end_of(child);
}

static uint64_t compile_cost(void)
{
	uint64_t sample[5], t;
	int i;

	for (i = 0; i < 5; i++) {
		t = now();
		compile();
		sample[i] = now() - t;
	}
	return median(sample, 5);
}

static struct costs measure(void)
{
	struct costs costs;

	costs.getpid = MEASURE(syscall(SYS_getpid));
	costs.touch = touch();
	costs.change = change();
	costs.fork = MEASURE(fork_and_wait());
	costs.compile = compile_cost();
	return costs;
}

/* ---- the guard ---- */

static int device;

static void request(unsigned long number)
{
	struct dune_guard_answer answer = {};

	if (!ioctl(device, number, &answer))
		return;
	fprintf(stderr, "guard: %m: %s\n", answer.text);
	exit(1);
}

static void open_device(void)
{
	must_succeed(dune_unload(), "dune.ko cannot be unloaded");
	if (!module_is_loaded("dune_guard"))
		must_succeed(module_insert("dune-guard", ""), "dune-guard.ko cannot be loaded");
	device = open("/dev/dune-guard", O_RDWR | O_CLOEXEC);
	if (device < 0)
		die("/dev/dune-guard");
}

static struct dune_guard_status status(void)
{
	struct dune_guard_status status;

	if (ioctl(device, DUNE_GUARD_GET_STATUS, &status))
		die("the guard's status");
	return status;
}

static uint64_t all_exits(void)
{
	struct dune_guard_status now = status();
	uint64_t sum = 0;
	int i;

	for (i = 0; i < DUNE_GUARD_EXITS; i++)
		sum += now.exits[i];
	return sum;
}

/* Without those by which the counts are read. */
static uint64_t idle_exits(void)
{
	uint64_t first = all_exits(), second = all_exits();

	sleep(1);
	return all_exits() - second - (second - first);
}

/* ---- the border ---- */

#define ROUNDS_INSIDE	200000000ULL

/* Ticks of a loop in the module, with interrupts. */
static uint64_t spin(void)
{
	uint64_t t = now();

	if (outside("spin", ROUNDS_INSIDE, 1) != SECRET) {
		fprintf(stderr, "guard: the module has lost a register\n");
		exit(1);
	}
	return now() - t;
}

/* The guard has it, unless the other module's parameters are "arm=0". */
static void load_inside(const char *parameters)
{
	outside_load(parameters);
	must_succeed(module_insert("dune-guard-inside", ""), "dune-guard-inside.ko");
	if (!*parameters && outside("armed", 0, 0)) {
		fprintf(stderr, "guard: the module is not guarded\n");
		exit(1);
	}
}

static void unload_inside(void)
{
	must_succeed(module_unload("dune_guard_inside"), "dune-guard-inside.ko stays");
	must_succeed(module_unload("dune_guard_outside"), "dune-guard-outside.ko stays");
}

int main(void)
{
	unsigned int a, b, c, d;
	uint64_t alone, guarded, interrupts, call;
	struct costs without, with;

	if (!__get_cpuid(0x80000001, &a, &b, &c, &d) || !(c & HAS_SVM))
		return 0;
	copy_compiler();
	open_device();
	/* The first time fills the caches. */
	measure();
	without = measure();
	request(DUNE_GUARD_LAUNCH);
	with = measure();
	figure("guard_getpid", without.getpid, with.getpid, NO_FIGURE);
	figure("guard_touch", without.touch, with.touch, NO_FIGURE);
	figure("guard_change", without.change, with.change, NO_FIGURE);
	figure("guard_fork", without.fork, with.fork, NO_FIGURE);
	figure("guard_compile", without.compile, with.compile, NO_FIGURE);
	figure_of("guard_idle", "exits", NO_FIGURE, idle_exits(), NO_FIGURE, 0);

	load_inside("arm=0");
	alone = spin();
	unload_inside();
	load_inside("");
	call = outside("cost", 2, 0);
	figure("guard_call", NO_FIGURE, call, 1);
	figure("guard_entry", NO_FIGURE, outside("cost", 0, 0) - 2.0 * call, 2);
	figure("guard_entry_call", NO_FIGURE, outside("cost", 1, 0) - 4.0 * call, 4);
	interrupts = crossings(OUT_INT);
	guarded = spin();
	interrupts = crossings(OUT_INT) - interrupts;
	figure("guard_tick", NO_FIGURE, (double)(guarded - alone) / interrupts, 2);
	unload_inside();
	request(DUNE_GUARD_STOP);
	close(device);
	must_succeed(dune_load(""), "dune.ko cannot be loaded");
	return 0;
}
