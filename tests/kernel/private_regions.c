// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * Guests with private memory on two CPUs, while regions of 512 GB, each an entry of the top
 * level of the process's page table, come and go below both of them, and the process forks.
 * Each guest maps regions by hypercalls, and reads those of the other one. Fails when a guest
 * reads something old, when it does not find its own memory, or when its private memory is
 * not as it left it. Without root_refresh() (kernel/dune/memory/root.c) it fails, or the
 * machine dies, within seconds. REGION_SECONDS is how long it runs.
 */
#define _GNU_SOURCE
#include "child.h"
#include "cpu.h"
#include "guest_calls.h"
#include "private.h"
#include "random.h"
#include "tap.h"
#include "timing.h"
#include "x86.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define REGION		(1UL << 39)
#define FIRST		8	/* regions that no other mapping is in */
#define REGIONS		(g_info.granules && g_info.granules < 256 ? 8 : 64)
#define MOST_REGIONS	64
#define LARGE		(2UL << 20)
#define FAULTED		0xdeaddeaddeaddeadUL

/* One of the two guests, and its thread. */
struct side {
	struct guest g;
	int n;
	u64 seed;
	enum guest_end end;
	/* The region that it has now. @changes is odd while there is one. */
	volatile u64 place, changes;
	volatile u64 rounds, reads, stale, lost, private_lost;
	volatile u64 old_value, old_changes;
};

static struct side sides[2];
static struct dune_info g_info;
static volatile int stop, ready;

static u64 random_number(struct side *s)
{
	s->seed = next_random(s->seed);
	return s->seed;
}

/* ---- in the guests ---- */

extern const char peek_load[], peek_end[];

/* The word at @p, or FAULTED: serve() makes it of a fault here. */
static __attribute__((noinline, noclone)) u64 peek(volatile u64 *p)
{
	u64 v;

	asm volatile(".globl peek_load, peek_end\n"
		     "peek_load: movq (%1), %0\n"
		     "peek_end:" : "=a"(v) : "D"(p) : "memory");
	return v;
}

/*
 * Read a word of the other side's region. What it may be is known only if the region has
 * not changed meanwhile: with odd @changes their number, or 0 before it is written.
 * While there is no region, there is a fault.
 */
static void look(struct side *s, struct side *other)
{
	u64 place = other->place, changes = other->changes, v;

	if (other->place != place || !place)
		return;
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	v = peek((volatile u64 *)place);
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	if (changes != other->changes || place != other->place)
		return;
	s->reads++;
	if (v == FAULTED || (changes & 1 && (!v || v == changes)))
		return;
	s->stale++;
	s->old_value = v;
	s->old_changes = changes;
}

static long map(u64 at, u64 size)
{
	return hypercall(SYS_mmap, at, size, PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE |
			 (at ? MAP_FIXED : MAP_POPULATE), -1, 0);
}

/* One region comes and goes. The tables that it leaves are used for something else. */
static long one_round(struct side *s, struct side *other)
{
	u64 n = FIRST + random_number(s) % (REGIONS / 2) * 2 + s->n;
	u64 size = random_number(s) & 1 ? REGION : LARGE;
	volatile u64 *p;
	long ret, other_use;

	s->place = n * REGION + (random_number(s) & 0x1ff000);
	p = (volatile u64 *)s->place;
	/* From here on there may be a region. */
	s->changes++;
	ret = map(n * REGION, size);
	if (ret != (long)(n * REGION))
		return ret;
	s->lost += !!*p;
	*p = s->changes;
	for (int i = random_number(s) % 32; i; i--)
		look(s, other);
	s->lost += *p != s->changes;
	ret = hypercall3(SYS_munmap, n * REGION, size, 0);
	if (ret)
		return ret;
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	s->changes++;
	other_use = map(0, 65536);
	if (other_use < 0)
		return other_use;
	for (int i = random_number(s) % 64; i; i--)
		look(s, other);
	return hypercall3(SYS_munmap, other_use, 65536, 0);
}

static u64 work(void *arg)
{
	struct side *s = arg, *other = &sides[!s->n];
	volatile u64 *private = (u64 *)PRIVATE_AT;
	long ret = 0;

	private[0] = s->n;
	private[512] = 0;
	while (!stop && !ret) {
		ret = one_round(s, other);
		s->private_lost += private[0] != (u64)s->n || private[512] != s->rounds;
		s->rounds++;
		private[512] = s->rounds;
	}
	return ret;
}

/* ---- outside ---- */

/* Run the guest to its end. A fault of peek() is no error. */
static enum guest_end serve(struct side *s)
{
	struct dune_run *run = s->g.run;

	for (;;) {
		int err = guest_run_to_exit(&s->g);

		if (err)
			return GUEST_ERROR;
		if (run->exit_reason == DUNE_EXIT_FAULT && run->regs.rip == (u64)peek_load) {
			run->regs.rax = FAULTED;
			run->regs.rip = (u64)peek_end;
		} else if (run->exit_reason == DUNE_EXIT_SYSCALL) {
			run->regs.rax = raw_syscall(run->regs.rax, run->regs.rdi, run->regs.rsi,
						    run->regs.rdx, run->regs.r10,
						    run->regs.r8, run->regs.r9);
		} else {
			s->g.value = run->regs.rdi;
			return run->exit_reason == DUNE_EXIT_HOSTCALL &&
			       run->regs.rax == GUEST_CALL_DONE ? GUEST_DONE : GUEST_EXIT;
		}
	}
}

/* The guest's page table leads to the first 2 MB of each region. */
static void show_regions(struct guest *g)
{
	for (u64 n = FIRST; n < FIRST + (u64)REGIONS; n++) {
		u64 *pdpt = mmap(NULL, 8192, PROT_READ | PROT_WRITE,
				 MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
		u64 *pd = pdpt + 512;

		pd[0] = guest_gpa(g, n * REGION) | PTE_P | PTE_W | PTE_U | PTE_PS | PTE_A | PTE_D;
		pdpt[0] = guest_gpa(g, (u64)pd) | PTE_P | PTE_W | PTE_U;
		g->mem->pml4[n] = guest_gpa(g, (u64)pdpt) | PTE_P | PTE_W | PTE_U;
	}
}

static void *runner(void *arg)
{
	struct side *s = arg;
	u64 gpa = 0;

	pin_to(usable_cpu(s->n));
	guest_open(&s->g);
	show_regions(&s->g);
	int err = private_add(&s->g, 4, &gpa);

	if (err)
		bail("no private memory is added: %s", strerror(-err));
	private_show(&s->g, gpa);
	__atomic_add_fetch(&ready, 1, __ATOMIC_SEQ_CST);
	while (ready < 2)
		sleep_ms(1);
	guest_prepare(&s->g, 0, work, s);
	s->end = serve(s);
	stop = 1;
	return NULL;
}

static void fork_and_exec(void)
{
	int status, pid = checked_fork();

	if (!pid)
		_exit(0);
	if (waitpid(pid, &status, 0) != pid || status)
		bail("a child of fork() did not exit with 0");
	pid = vfork();
	if (!pid) {
		execl("/bin/true", "true", NULL);
		_exit(127);
	}
	if (pid < 0 || waitpid(pid, &status, 0) != pid || status)
		bail("a child of vfork() was not made, or did not execute /bin/true");
}

static void verdict(struct side *s)
{
	ok(s->end == GUEST_DONE && !s->g.value && s->rounds, "guest %d maps regions: %lu (%s)",
	   s->n, s->rounds, guest_end_name(&s->g, s->end));
	ok(!s->stale, "guest %d reads nothing old: %lu of %lu reads (value %#lx at change %#lx)",
	   s->n, s->stale, s->reads, s->old_value, s->old_changes);
	ok(!s->lost, "guest %d finds its own memory (%lu times not)", s->n, s->lost);
	ok(!s->private_lost, "guest %d finds its private memory (%lu times not)", s->n,
	   s->private_lost);
}

int main(void)
{
	unsigned long end, seconds = env_number("REGION_SECONDS", 10);
	pthread_t threads[2];
	struct guest g;
	bool exists = private_begin(&g, seconds + 120);

	g_info = g.info;
	guest_close(&g);
	if (!exists)
		return private_end();
	for (int i = 0; i < 2; i++) {
		sides[i].n = i;
		sides[i].seed = 88172645463325252UL + i * 977;
		pthread_create(&threads[i], NULL, runner, &sides[i]);
	}
	end = now_us() + seconds * 1000000;
	while (now_us() < end && !stop) {
		fork_and_exec();
		sleep_ms(50);
	}
	stop = 1;
	for (int i = 0; i < 2; i++) {
		pthread_join(threads[i], NULL);
		verdict(&sides[i]);
	}
	return private_end();
}
