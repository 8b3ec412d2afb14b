// SPDX-License-Identifier: MIT OR Apache-2.0
/* Children with hostile guests: see isolated.h. */
#define _GNU_SOURCE
#include "child.h"
#include "guest.h"
#include "isolated.h"
#include "klog.h"
#include "proc.h"
#include "tap.h"
#include "timing.h"

#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <unistd.h>

struct guest g;
u8 *page;

static struct guest health;
static struct klog log;
static const char *only;

void isolated_begin(int argc, char **argv, unsigned int seconds)
{
	only = argc > 1 ? argv[1] : NULL;
	begin(seconds);
	klog_begin(&log);
	/* Linux's own line for each SIGSEGV is not the module's. */
	file_write("/proc/sys/debug/exception-trace", "0");
	guest_open(&health);
}

static bool healthy(void)
{
	return guest_call(&health, guest_return, (void *)4711) == GUEST_DONE &&
	       health.value == 4711;
}

void isolated_case(const char *name, void (*fn)(void *arg), void *arg, int signal)
{
	struct outcome o;
	bool good, alive;

	if (only && strcmp(only, name))
		return;
	o = in_child(fn, arg, 30);
	good = signal == ANY_END ? !o.hung : outcome_is(o, signal);
	alive = healthy();
	if (!alive)
		diag("%s: the parent's own guest does not run any more", name);
	ok(good && alive, "%s (%s)", name, outcome_text(o));
}

int isolated_end(void)
{
	klog_end(&log);
	ok(log.lines <= 5, "the kernel log hardly grew (%u lines)", log.lines);
	guest_close(&health);
	return done();
}

static void run_guest(void *arg)
{
	const struct isolated *c = arg;

	guest_open(&g);
	c->fn();
}

int isolated_main(int argc, char **argv, const struct isolated *cases, unsigned int count)
{
	isolated_begin(argc, argv, 240);
	for (unsigned int i = 0; i < count; i++)
		isolated_case(cases[i].name, run_guest, (void *)&cases[i], cases[i].signal);
	return isolated_end();
}

void *map_page(int prot)
{
	void *p = mmap(NULL, 4096, prot, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED)
		child_fails("mmap() of a page failed");
	return p;
}

void end_after(unsigned int ms)
{
	struct itimerval it = { .it_value = { ms / 1000, ms % 1000 * 1000 } };

	signal(SIGALRM, SIG_DFL);
	setitimer(ITIMER_REAL, &it, NULL);
}

void must_end_within(unsigned int ms)
{
	end_after(time_limit(ms));
}

void use_vmcall(u8 *text, int len)
{
	for (int i = 0; guest_vmx && i + 3 <= len; i++)
		if (!memcmp(text + i, "\x0f\x01\xd9", 3))
			text[i + 2] = 0xc1;
}

void code(const void *bytes, int len)
{
	page = map_page(PROT_READ | PROT_WRITE | PROT_EXEC);
	memset(page, 0xcc, 4096);
	memcpy(page, bytes, len);
	use_vmcall(page, len);
}

void expect(enum guest_end end, bool good)
{
	if (!good)
		diag("%s", guest_end_name(&g, end));
	_exit(!good);
}

void go(u64 (*fn)(void *arg), void *arg)
{
	enum guest_end end;

	must_end_within(2000);
	end = guest_call(&g, fn, arg);
	expect(end, false);
}

u64 ud2(void *arg)
{
	asm volatile("ud2");
	return 0;
}

u64 read_byte(void *arg)
{
	return *(volatile u8 *)arg;
}

u64 write_byte(void *arg)
{
	*(volatile u8 *)arg = 1;
	return 0;
}

u64 five_getpids(void *arg)
{
	u64 sum = 0;

	for (int i = 0; i < 5; i++)
		sum += hypercall0(SYS_getpid);
	return sum;
}

void loop_of(const char *bytes, int len, int ring, u64 flags)
{
	u8 text[64];

	memcpy(text, bytes, len);
	text[len] = 0xeb;
	text[len + 1] = -(len + 2);
	code(text, len + 2);
	guest_prepare(&g, ring, guest_return, NULL);
	g.run->regs.rip = (u64)page;
	g.run->regs.rflags |= flags;
	g.run->regs.rdi = (u64)page;
	end_after(200);
	for (;;) {
		enum guest_end end = guest_resume(&g);

		/* HLT and the exceptions of a loop do not end it; the signal does. */
		if (end == GUEST_TRAP || (end == GUEST_EXIT && g.run->exit_reason == DUNE_EXIT_HLT))
			continue;
		expect(end, false);
	}
}
