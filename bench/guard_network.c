// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * What the guard costs a driver: Debian's e1000, which nobody changed, sends and receives a file by
 * TCP. First without the guard, and then as a guarded module, without and with the leaves that
 * `dunectl guard leaves` proposes: instructions and crossings for each MB (10^6 bytes). Transfers
 * of their own count the crossings for each packet by function, since counting costs, too.
 *
 * While no process has anything to do, counting mode lets time pass until the next timer. So a
 * process of the lowest priority, which counts its own instructions, runs then, and the figures are
 * without these.
 *
 * Prints nothing on a processor without SVM. With the argument "send" or "fetch", the program does
 * that once.
 */
#define _GNU_SOURCE
#include "bench.h"
#include "command.h"
#include "driver.h"
#include "modules.h"
#include "network.h"
#include "outside.h"
#include "proc.h"
#include "timing.h"

#include <cpuid.h>
#include <fcntl.h>
#include <limits.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

/* CPUID 80000001h, ECX (AMD64 Architecture Programmer's Manual, vol. 3, appendix E.4.2) */
#define HAS_SVM		(1U << 2)

#define MB		1e6
#define TRANSFERS	5
#define COPY		"/dev/shm/dune-bench-network"

static const struct driver driver = { "e1000", "e1000", "0x80860x100e", 0, NULL };

static void must(int failed, const char *what)
{
	if (!failed)
		return;
	fprintf(stderr, "guard_network: %s: %s\n", what, command_output);
	exit(1);
}

/* ---- the file ---- */

static char file[PATH_MAX];
static char hash[65];
static long size;

/* The other side reads the file itself, and this one a copy in memory. */
static void copy_file(void)
{
	char command[PATH_MAX + 100];
	struct stat data;

	snprintf(file, sizeof(file), "%s/libexec/dune-agent", build_directory());
	snprintf(command, sizeof(command), "cp %s " COPY, file);
	must(command_run(command), command);
	network_hash(COPY, hash);
	if (stat(COPY, &data))
		die(COPY);
	size = data.st_size;
}

static void fetch(void)
{
	int fd = open("/dev/null", O_WRONLY | O_CLOEXEC);

	must(network_fetch(file, fd) != size, "the file was not fetched");
	close(fd);
}

static void send_file(void)
{
	int fd = open(COPY, O_RDONLY | O_CLOEXEC);
	char got[65] = "";

	must(network_send(fd, got) != size || strcmp(got, hash), "the file was not sent");
	close(fd);
}

/* ---- the idle process ---- */

static volatile uint64_t *turns;
static pid_t idle_process;

static void begin_idling(void)
{
	const struct sched_param none = {};

	if (!turns)
		turns = mmap(NULL, sizeof(*turns), PROT_READ | PROT_WRITE,
			     MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (turns == MAP_FAILED)
		die("memory");
	idle_process = fork();
	if (idle_process)
		return;
	if (sched_setscheduler(0, SCHED_IDLE, &none))
		_exit(1);
	/* Two instructions for each turn. */
	__asm__ volatile("1: incq %0\n\t"
			 "jmp 1b" : "+m" (*turns));
	__builtin_unreachable();
}

static void end_idling(void)
{
	int status;

	kill(idle_process, SIGKILL);
	if (waitpid(idle_process, &status, 0) != idle_process || !WIFSIGNALED(status))
		die("the idle process");
}

/* The ticks in which the processor was busy. */
static uint64_t busy(void)
{
	uint64_t idle = *turns;

	return now() - 2 * idle;
}

/* ---- what is measured ---- */

/* For each MB. */
struct cost {
	double instructions, crossings;
};

struct costs {
	struct cost sent, received;
};

static uint64_t all_crossings(bool is_guarded)
{
	uint64_t sum = 0;
	int i;

	for (i = IN_CALL; is_guarded && i < CROSSINGS; i++)
		sum += crossings(i);
	return sum;
}

static int by_instructions(const void *a, const void *b)
{
	const struct cost *x = a, *y = b;

	return x->instructions < y->instructions ? -1 : x->instructions > y->instructions;
}

/* The transfer in the middle. */
static struct cost cost_of(void (*transfer)(void), bool is_guarded)
{
	struct cost costs[TRANSFERS];
	uint64_t begin, crossed;
	int i;

	for (i = 0; i < TRANSFERS; i++) {
		crossed = all_crossings(is_guarded);
		begin = busy();
		transfer();
		costs[i].instructions = (busy() - begin) / (size / MB);
		costs[i].crossings = (all_crossings(is_guarded) - crossed) / (size / MB);
	}
	qsort(costs, TRANSFERS, sizeof(costs[0]), by_instructions);
	return costs[TRANSFERS / 2];
}

static char interface[IFNAMSIZ];

static void load(bool is_guarded)
{
	char carrier[100];

	must(!modprobe("-q", driver.file, NULL), "e1000 cannot be loaded");
	must(is_guarded && !driver_is_guarded(&driver), "e1000 is not guarded");
	WAIT_FOR(network_find(interface), 20);
	must(!interface[0] || network_set(interface, true), "e1000 has no network");
	snprintf(carrier, sizeof(carrier), "/sys/class/net/%s/carrier", interface);
	WAIT_FOR(file_number(carrier) == 1, 20);
	begin_idling();
	/* It finds the other side, and TCP its window. */
	must(!network_fetches(file, COPY "-fetched", hash), "the file differs");
	unlink(COPY "-fetched");
	send_file();
}

static void unload(void)
{
	end_idling();
	must(network_set(interface, false), "e1000 stays on");
	must(!modprobe("-qr", driver.file, NULL), "e1000 cannot be unloaded");
}

static struct costs measure(bool is_guarded)
{
	struct costs costs;

	load(is_guarded);
	costs.received = cost_of(fetch, is_guarded);
	costs.sent = cost_of(send_file, is_guarded);
	unload();
	return costs;
}

static struct costs measure_guarded(bool leaves)
{
	struct costs costs;

	must(driver_enroll_with(&driver, leaves, ""), "e1000 cannot be registered");
	costs = measure(true);
	must(dunectl_guard("unregister e1000"), "e1000 stays registered");
	return costs;
}

/* ---- crossings for each packet ---- */

/* The parts of the table of dunectl guard crossings, as tools/suite/src/bench.rs has them. */
static const char *const parts[][2] = {
	{ "entry", "border-in by a call of" },
	{ "call", "border-out by a call of" },
	{ "interrupt", "border-out by an interrupt in" },
};

/* Prints a figure from that table: a row for each function. */
static void print_crossings(const char *id)
{
	unsigned long long there, back, sum = 0, packets = 0;
	const char *part = NULL, *comma = "";
	char *line, *rest = command_output, name[60];
	size_t i;

	must(sscanf(rest, "%llu packets", &packets) != 1 || !packets, "no packets");
	must(!strstr(rest, "all crossings"), "the table is too long");
	printf("{\"id\": \"%s\", \"unit\": \"crossings\", \"functions\": [", id);
	while ((line = strsep(&rest, "\n"))) {
		for (i = 0; i < sizeof(parts) / sizeof(parts[0]); i++)
			if (!strncmp(line, parts[i][1], strlen(parts[i][1])))
				part = parts[i][0];
		if (sscanf(line, "all crossings %llu", &sum) == 1)
			break;
		if (!part || line[0] != ' ' ||
		    sscanf(line, " %59s %llu %llu", name, &there, &back) != 3)
			continue;
		printf("%s{\"border\": \"%s\", \"function\": \"%s\", \"crossings\": %.4f}", comma,
		       part, name, (double)(there + back) / packets);
		comma = ", ";
	}
	printf("], \"dune\": %.2f}\n", (double)sum / packets);
	fflush(stdout);
}

static void count(const char *option, const char *what, const char *id)
{
	char words[PATH_MAX + 100];

	snprintf(words, sizeof(words), "crossings e1000 %s %s -- %s %s", option, interface,
		 own_path(), what);
	must(dunectl_guard(words), "crossings are not counted");
	print_crossings(id);
}

static void count_all(bool leaves)
{
	must(driver_enroll_with(&driver, leaves, "--count-crossings"),
	     "e1000 cannot be registered");
	load(true);
	count("--sent", "send", leaves ? "guard_sent_leaves" : "guard_sent");
	count("--received", "fetch", leaves ? "guard_received_leaves" : "guard_received");
	unload();
	must(dunectl_guard("unregister e1000"), "e1000 stays registered");
}

/* Its exits are the crossings. */
static void print(const char *id, struct cost plain, struct cost guarded)
{
	figure(id, (uint64_t)plain.instructions, (uint64_t)guarded.instructions,
	       (uint64_t)guarded.crossings);
}

int main(int argc, char **argv)
{
	struct costs plain, guarded, with_leaves;
	unsigned int a, b, c, d;

	if (!__get_cpuid(0x80000001, &a, &b, &c, &d) || !(c & HAS_SVM))
		return 0;
	copy_file();
	if (argc > 1) {
		if (!strcmp(argv[1], "send"))
			send_file();
		else
			fetch();
		return 0;
	}
	must(dune_unload(), "dune.ko cannot be unloaded");
	must(!module_is_loaded("dune_guard") && module_insert("dune-guard", ""),
	     "dune-guard.ko cannot be loaded");
	must(!*driver_device(&driver), "the machine has no card for e1000");
	plain = measure(false);
	must(dunectl_guard("launch"), "the guard cannot be launched");
	outside_load("arm=0");
	guarded = measure_guarded(false);
	with_leaves = measure_guarded(true);
	print("guard_send", plain.sent, guarded.sent);
	print("guard_send_leaves", plain.sent, with_leaves.sent);
	print("guard_receive", plain.received, guarded.received);
	print("guard_receive_leaves", plain.received, with_leaves.received);
	count_all(false);
	count_all(true);
	must(module_unload("dune_guard_outside"), "dune-guard-outside.ko stays");
	must(dunectl_guard("stop"), "the guard stays");
	must(dune_load(""), "dune.ko cannot be loaded");
	unlink(COPY);
	return 0;
}
