// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * Tracing sees a guest's system calls: raw_syscalls:sys_enter and sys_exit,
 * switched on while the guest runs. And the module's own tracepoints report
 * entries and exits. Fails when the fast path runs past a tracepoint, and when
 * an exit is reported with another reason than the processor's.
 */
#define _GNU_SOURCE
#include "guest.h"
#include "machine.h"
#include "tap.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define CALLS 25

#define EXIT_VMCALL	0x12	/* Intel's and AMD's reason for an exit by a hypercall */
#define EXIT_VMMCALL	0x81

static struct shared {
	volatile int phase;
	volatile u64 rip;	/* of the hypercall instruction in ring 3 */
	volatile int code;	/* EXIT_* */
} *shared;

static u64 calls(void *arg)
{
	(void)arg;
	for (int i = 0; i < 10; i++)
		hypercall0(SYS_getpgrp);
	shared->phase = 1;
	while (shared->phase == 1)
		;
	for (int i = 0; i < CALLS; i++)
		hypercall0(SYS_getpgrp);
	shared->phase = 3;
	while (shared->phase == 3)
		;
	for (int i = 0; i < 10; i++)
		hypercall0(SYS_getpgrp);
	return 0;
}

/* There is no such instruction in ring 3. */
static u64 hypercall_in_ring3(void *arg)
{
	(void)arg;
	if (guest_vmx)
		asm volatile("vmcall" : : "a" (SYS_getpgrp) : "memory");
	else
		asm volatile("vmmcall" : : "a" (SYS_getpgrp) : "memory");
	return 0;
}

static char dir[64];

static int put(const char *file, const char *text)
{
	char path[200];

	snprintf(path, sizeof(path), "%s/%s", dir, file);
	return file_write(path, text);
}

/* Lines of the trace that contain @word. */
static int count(const char *word)
{
	char path[200], line[1000];
	int n = 0;
	FILE *f;

	snprintf(path, sizeof(path), "%s/trace", dir);
	f = fopen(path, "r");
	if (!f)
		return -1;
	while (fgets(line, sizeof(line), f))
		n += line[0] != '#' && strstr(line, word);
	fclose(f);
	return n;
}

static void truncate_trace(void)
{
	char path[200];

	snprintf(path, sizeof(path), "%s/trace", dir);
	close(open(path, O_WRONLY | O_TRUNC));
}

/* What the processor reports for a hypercall in ring 3 is what the trace shows. */
static void trace_ring3(void)
{
	char pid_text[20], line[100];
	int pid;

	shared->phase = 0;
	pid = fork();
	if (!pid) {
		struct guest g;

		while (!shared->phase)
			sleep_ms(1);
		guest_open(&g);
		if (guest_call3(&g, hypercall_in_ring3, NULL) != GUEST_TRAP)
			_exit(1);
		shared->rip = g.frame->rip;
		shared->code = guest_vmx ? EXIT_VMCALL : EXIT_VMMCALL;
		_exit(g.frame->vector == 6 ? 0 : 1);
	}
	snprintf(pid_text, sizeof(pid_text), "%d", pid);
	put("set_event_pid", pid_text);
	truncate_trace();
	put("events/dune/dune_exit/enable", "1");
	shared->phase = 1;

	struct outcome o = wait_child(pid, 20);

	put("events/dune/dune_exit/enable", "0");
	ok(o.code == 0, "a hypercall in ring 3 is #UD (%d, %d)", o.code, o.signal);
	snprintf(line, sizeof(line), " dune_exit: code=0x%x rip=0x%llx ",
		 shared->code, (unsigned long long)shared->rip);
	ok(count(line) == 1, "the trace has it as a hypercall, once (%d):%s", count(line), line);
}

static void run_phase(int from, int to)
{
	shared->phase = from;
	while (shared->phase != to)
		sleep_ms(1);
}

int main(void)
{
	static const char *const places[] = { "/sys/kernel/tracing", "/sys/kernel/debug/tracing" };
	struct stat st;
	char pid_text[20], path[200];

	begin(40);
	shared = shared_alloc(sizeof(*shared));
	mount("tracefs", places[0], "tracefs", 0, NULL);
	for (int i = 0; i < 2 && !dir[0]; i++) {
		snprintf(path, sizeof(path), "%s/events/raw_syscalls", places[i]);
		if (!stat(path, &st))
			strcpy(dir, places[i]);
	}
	if (!dir[0]) {
		skip("no tracefs with system call tracepoints", "system call tracepoints");
		return done();
	}

	/*
	 * Both on one processor: switching a tracepoint on changes code, and
	 * QEMU's TCG lets another one execute it half changed.
	 */
	pin_to(usable_cpu(0));

	int pid = fork();

	if (!pid) {
		struct guest g;

		guest_open(&g);
		_exit(guest_call(&g, calls, NULL) == GUEST_DONE ? 0 : 1);
	}
	while (shared->phase != 1)
		sleep_ms(1);
	snprintf(pid_text, sizeof(pid_text), "%d", pid);
	put("options/record-cmd", "0");	/* patches the scheduler, each time */
	put("tracing_on", "1");
	put("set_event_pid", pid_text);
	truncate_trace();
	ok(!put("events/raw_syscalls/sys_enter/filter", "id == 111") &&
	   !put("events/raw_syscalls/sys_exit/filter", "id == 111"), "filters");
	ok(!put("events/raw_syscalls/sys_enter/enable", "1") &&
	   !put("events/raw_syscalls/sys_exit/enable", "1"), "the tracepoints are switched on while a guest runs");
	run_phase(2, 3);
	put("events/raw_syscalls/sys_enter/enable", "0");
	put("events/raw_syscalls/sys_exit/enable", "0");

	int enter = count("sys_enter: NR 111"), exit = count("sys_exit: NR 111");

	ok(enter == CALLS, "sys_enter fires for each of %d calls (%d)", CALLS, enter);
	ok(exit == CALLS, "sys_exit too (%d)", exit);
	put("events/raw_syscalls/sys_enter/filter", "0");
	put("events/raw_syscalls/sys_exit/filter", "0");

	/* The module's own. */
	truncate_trace();
	snprintf(path, sizeof(path), "%s/events/dune", dir);
	ok(!stat(path, &st), "the module has tracepoints");
	put("events/dune/enable", "1");
	shared->phase = 4;

	struct outcome o = wait_child(pid, 20);

	put("events/dune/enable", "0");
	ok(o.code == 0, "the guest ends well (%d, %d)", o.code, o.signal);

	DIR *d = opendir(path);
	int events = 0;

	for (struct dirent *e; d && (e = readdir(d));) {
		char name[300];

		if (e->d_type != DT_DIR || e->d_name[0] == '.')
			continue;
		snprintf(name, sizeof(name), " %s:", e->d_name);
		int n = count(name);

		diag("tracepoint %s: %d", e->d_name, n);
		events += n > 0;
	}
	ok(events >= 3, "at least entry, exit and hypercall were traced (%d kinds)", events);
	trace_ring3();
	put("set_event_pid", "");
	truncate_trace();
	return done();
}
