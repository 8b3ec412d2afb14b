// SPDX-License-Identifier: MIT OR Apache-2.0
/* The sensors: touches, faults, executions and the program's output. See watch.h. */
#define _GNU_SOURCE
#include "watch.h"
#include "kinds.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/fanotify.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define TRACE		"/sys/kernel/tracing/instances/decoy"
#define SHOWN_MAX	2

struct decoy_log *record;
int executions = -1;	/* the fanotify group */
u64 found, at_exit;
static u64 touches_seen;

static struct found_kind {
	char name[200];
	u64 count;
} kinds[64];

void finding(const char *kind, const char *format, ...)
{
	struct found_kind *k = kinds;
	char name[sizeof(k->name)];
	va_list args;
	size_t n = 0;

	found++;
	/* numbers of processes and descriptors make no difference */
	for (; *kind && n < sizeof(name) - 1; kind++)
		if (*kind < '0' || *kind > '9')
			name[n++] = *kind;
	name[n] = 0;
	while (k < kinds + ARRAY_LEN(kinds) - 1 && k->count && strcmp(k->name, name))
		k++;
	if (!k->count)
		strcpy(k->name, name);
	if (k->count++ >= SHOWN_MAX)
		return;
	va_start(args, format);
	printf("FOUND ");
	vprintf(format, args);
	printf("\n");
	va_end(args);
	fflush(stdout);
}

void report_kinds(void)
{
	for (size_t i = 0; i < ARRAY_LEN(kinds); i++)
		if (kinds[i].count > SHOWN_MAX)
			printf("# %lu times: %s\n", kinds[i].count, kinds[i].name);
}

/* ---- setting up ------------------------------------------------------------- */

static void make_log(void)
{
	int fd = open(LOG_FILE, O_RDWR | O_CREAT | O_TRUNC, 0666);

	if (fd < 0 || fchmod(fd, 0666) || ftruncate(fd, LOG_SIZE))
		fail(LOG_FILE);
	record = mmap(NULL, LOG_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (record == MAP_FAILED)
		fail(LOG_FILE);
	close(fd);
}

/* Only faults in the decoy come into the buffer, with the kernel's stack. */
static void trace_faults(void)
{
	char filter[200];

	if (mkdir(TRACE, 0755) && errno != EEXIST)
		fail(TRACE);
	snprintf(filter, sizeof(filter), "address >= 0x%lx && address < 0x%lx",
		 DECOY_BASE, DECOY_BASE + DECOY_SIZE);
	if (!put(TRACE "/events/exceptions/page_fault_kernel/filter", filter))
		fail("the filter of exceptions:page_fault_kernel");
	put(TRACE "/buffer_size_kb", "256");
	if (!put(TRACE "/options/stacktrace", "1") ||
	    !put(TRACE "/events/exceptions/page_fault_kernel/enable", "1"))
		fail("exceptions:page_fault_kernel");
}

/* Every file that is executed, where programs and dune-run-decoy are. */
static void watch_executions(void)
{
	const unsigned int mark = FAN_MARK_ADD | FAN_MARK_FILESYSTEM;

	executions = fanotify_init(FAN_CLASS_NOTIF | FAN_NONBLOCK | FAN_CLOEXEC |
				   FAN_UNLIMITED_QUEUE, O_RDONLY | O_CLOEXEC);
	if (executions < 0)
		fail("fanotify_init");
	if (fanotify_mark(executions, mark, FAN_OPEN_EXEC, AT_FDCWD, "/") ||
	    fanotify_mark(executions, mark, FAN_OPEN_EXEC, AT_FDCWD, runner))
		fail("fanotify_mark");
}

void sensors_start(void)
{
	make_log();
	trace_faults();
	watch_executions();
}

/* ---- reading ---------------------------------------------------------------- */

void see_executions(void)
{
	char events[8192], link[40], path[PATH_MAX];
	ssize_t n;

	while ((n = read(executions, events, sizeof(events))) > 0) {
		struct fanotify_event_metadata *e = (void *)events;

		for (; FAN_EVENT_OK(e, n); e = FAN_EVENT_NEXT(e, n)) {
			ssize_t len;

			if (e->fd < 0)
				continue;
			snprintf(link, sizeof(link), "/proc/self/fd/%d", e->fd);
			len = readlink(link, path, sizeof(path) - 1);
			path[len > 0 ? len : 0] = 0;
			close(e->fd);
			/* a program's loader comes after the program itself */
			if (strcmp(path, runner) && !strstr(path, "/ld-linux"))
				finding(path, "seed %lu: process %d executed %s natively",
					record->seed, e->pid, path);
		}
	}
}

static const struct entry table[] = {
#include "calls/syscalls.def"
};

static const char *name_of(u32 nr)
{
	size_t i;

	for (i = 0; i < ARRAY_LEN(table); i++)
		if ((u32)table[i].nr == nr)
			return table[i].name;
	return "a number not in the table";
}

void see_touches(void)
{
	u64 n = __atomic_load_n(&record->touches, __ATOMIC_RELAXED);

	for (; touches_seen < n; touches_seen++) {
		const struct touch *t = &record->touch[touches_seen];
		char kind[80];

		if (touches_seen >= TOUCHES_MAX) {
			found += n - touches_seen;
			touches_seen = n;
			break;
		}
		snprintf(kind, sizeof(kind), "touch seen after %s", name_of(t->nr));
		finding(kind, "seed %lu: %s decoy at +0x%lx (word 0x%lx), "
			"%s(%lx, %lx, %lx, %lx, %lx, %lx) = %ld by %u",
			t->seed, t->word ? "wrote the" : t->address ? "read the" : "unmapped the",
			t->address ? t->address - DECOY_BASE : 0, t->word, name_of(t->nr),
			t->args[0], t->args[1], t->args[2], t->args[3], t->args[4], t->args[5],
			(long)t->result, t->process);
	}
}

/* One fault: its line and its stack. What a process does at its end harms only itself. */
static void count_fault(const char *line, const char *stack)
{
	if (!line[0])
		return;
	if (strstr(stack, "mm_release") || strstr(stack, "futex_exit"))
		at_exit++;
	else
		finding(stack, "seed %lu: fault in the decoy:%s stack%s", record->seed, line,
			stack);
}

void see_faults(void)
{
	static char line[1000], fault[1000], stack[2000];
	FILE *f = fopen(TRACE "/trace", "r");

	if (!f)
		fail(TRACE "/trace");
	fault[0] = 0;
	while (fgets(line, sizeof(line), f)) {
		line[strcspn(line, "\n")] = 0;
		if (strstr(line, "page_fault_kernel:")) {
			count_fault(fault, stack);
			strcpy(fault, line);
			stack[0] = 0;
		} else if (strstr(line, "=> ") && !strstr(line, "exc_page_fault") &&
			   !strstr(line, "trace_event_raw") &&
			   strlen(stack) + strlen(line) < sizeof(stack)) {
			strcat(stack, strstr(line, "=>") + 2);
		}
	}
	fclose(f);
	count_fault(fault, stack);
	put(TRACE "/trace", "");
}

/* The program's output: lines with findings of attack/ are findings of this run. */
void see_output(int fd)
{
	static char rest[4096];
	static size_t kept;
	char *line, *end;
	ssize_t n;

	while ((n = read(fd, rest + kept, sizeof(rest) - 1 - kept)) > 0) {
		rest[kept + n] = 0;
		for (line = rest; (end = strchr(line, '\n')); line = end + 1) {
			*end = 0;
			if (!strncmp(line, "FOUND ", 6))
				finding(line, "%s", line + 6);
			else if (getenv("VERBOSE"))
				printf("# %s\n", line);
		}
		kept = strlen(line);
		if (kept > sizeof(rest) / 2)
			kept = 0;
		memmove(rest, line, kept);
	}
}
