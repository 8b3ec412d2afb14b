// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * Runs attack/, or any other program, under dune-run-decoy, and watches from
 * outside, as root in a machine of which nothing is needed afterwards:
 *
 * - touches of the decoy, which dune-run-decoy itself notes (runtime.c);
 * - faults of the kernel in the decoy, by a tracepoint, with the kernel's stack;
 * - files that are executed: all but dune-run-decoy would run natively;
 * - findings of attack/ itself (descriptors in reach, mappings in the supervisor range).
 *
 *	watch [--state FILE] [--seconds N] [--seed N] [--cases N] [--calls N]
 *	      [--kind NAME] [--limit SECONDS] [--runner NAME] [--mix N] [-- PROGRAM ARGS...]
 *
 * Without PROGRAM: cases of attack/, from the number in FILE on, until the
 * time is over or N cases were run. With --mix one of N calls is changed first
 * (runtime.c). Exit status 1: a touch, a fault, a native execution or a finding;
 * the first ones of each kind are printed as FOUND lines.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <getopt.h>
#include <limits.h>
#include <linux/capability.h>
#include <linux/uinput.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/fanotify.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "decoy.h"
#include "kinds.h"

#define TRACE		"/sys/kernel/tracing/instances/decoy"
#define SHOWN_MAX	2

static struct decoy_log *record;
static char folder[PATH_MAX - 64];
static char runner[PATH_MAX], attacker[PATH_MAX];
static int executions = -1;	/* the fanotify group */
static u64 found, at_exit, touches_seen;

static struct found_kind {
	char name[200];
	u64 count;
} kinds[64];

/*
 * A finding, of @kind; of each kind the first few are shown, and all counted.
 * @kind is what the findings of one way around the checks have in common.
 */
static __attribute__((format(printf, 2, 3))) void finding(const char *kind, const char *format, ...)
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

static void fail(const char *what)
{
	printf("Bail out! %s: %s\n", what, strerror(errno));
	exit(2);
}

static bool put(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_TRUNC);
	bool good = fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text);

	if (fd >= 0)
		close(fd);
	return good;
}

/* ---- set-up ---------------------------------------------------------------- */

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

/*
 * A device with everything that an input device may have: its ioctls are among
 * those with pointers. It exists as long as this process.
 */
static void make_input_device(void)
{
	struct uinput_setup setup = {
		.id = { BUS_VIRTUAL, 1, 1, 1 }, .name = "decoy", .ff_effects_max = 4,
	};
	static const int bits[][2] = {
		{ UI_SET_EVBIT, EV_KEY }, { UI_SET_KEYBIT, KEY_A }, { UI_SET_EVBIT, EV_REL },
		{ UI_SET_RELBIT, REL_X }, { UI_SET_EVBIT, EV_LED }, { UI_SET_LEDBIT, LED_NUML },
		{ UI_SET_EVBIT, EV_FF }, { UI_SET_FFBIT, FF_PERIODIC }, { UI_SET_FFBIT, FF_CUSTOM },
		{ UI_SET_FFBIT, FF_RUMBLE }, { UI_SET_EVBIT, EV_MSC }, { UI_SET_MSCBIT, MSC_SCAN },
	};
	int fd;
	size_t i;

	/* later the kernel shall not load any: those programs would run natively */
	system("modprobe -a uinput evdev tun fuse loop af_packet vsock inet_diag unix_diag "
	       "netlink_diag 2>/dev/null");
	put("/proc/sys/kernel/modprobe", "\n");
	fd = open("/dev/uinput", O_RDWR | O_CLOEXEC);
	for (i = 0; fd >= 0 && i < ARRAY_LEN(bits); i++)
		ioctl(fd, bits[i][0], bits[i][1]);
	if (fd < 0 || ioctl(fd, UI_DEV_SETUP, &setup) || ioctl(fd, UI_DEV_CREATE))
		printf("# no input device: %s\n", strerror(errno));
}

/* ---- a program ------------------------------------------------------------- */

/*
 * Capabilities that the sandbox does not restrict and with which a program could stop
 * or reconfigure the machine. The program runs without them.
 */
static const int dropped[] = {
	CAP_SYS_BOOT, CAP_SYS_MODULE, CAP_SYS_TIME, CAP_SYS_RAWIO, CAP_SYS_NICE, CAP_SYSLOG,
	CAP_SYS_PACCT, CAP_WAKE_ALARM, CAP_MKNOD,
};

static void become(char **argv, int out)
{
	static char *full[64];
	size_t i;

	mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL);
	mount("proc", "/proc", "proc", 0, NULL);
	for (i = 0; i < ARRAY_LEN(dropped); i++)
		prctl(PR_CAPBSET_DROP, dropped[i]);
	dup2(out, 1);
	dup2(out, 2);
	setsid();
	full[0] = runner;
	full[1] = "--";
	for (i = 0; argv[i] && i < 60; i++)
		full[2 + i] = argv[i];
	execv(runner, full);
	_exit(127);
}

static void see_executions(void)
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

static void see_touches(void)
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
static void judge_fault(const char *line, const char *stack)
{
	if (!line[0])
		return;
	if (strstr(stack, "mm_release") || strstr(stack, "futex_exit"))
		at_exit++;
	else
		finding(stack, "seed %lu: fault in the decoy:%s stack%s", record->seed, line,
			stack);
}

static void see_faults(void)
{
	static char line[1000], fault[1000], stack[2000];
	FILE *f = fopen(TRACE "/trace", "r");

	fault[0] = 0;
	while (f && fgets(line, sizeof(line), f)) {
		line[strcspn(line, "\n")] = 0;
		if (strstr(line, "page_fault_kernel:")) {
			judge_fault(fault, stack);
			strcpy(fault, line);
			stack[0] = 0;
		} else if (strstr(line, "=> ") && !strstr(line, "exc_page_fault") &&
			   !strstr(line, "trace_event_raw") &&
			   strlen(stack) + strlen(line) < sizeof(stack)) {
			strcat(stack, strstr(line, "=>") + 2);
		}
	}
	if (f)
		fclose(f);
	judge_fault(fault, stack);
	put(TRACE "/trace", "");
}

/* The program's output: lines with findings of attack/ are findings of this run. */
static void see_output(int fd)
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

static u64 now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec;
}

static int run(char **argv, u64 limit)
{
	u64 until = now() + limit;
	int out[2], status = 0;
	struct pollfd wait[2];
	pid_t pid;

	if (pipe2(out, O_CLOEXEC | O_NONBLOCK))
		fail("pipe");
	fflush(stdout);
	pid = syscall(SYS_clone, CLONE_NEWPID | CLONE_NEWNS | CLONE_NEWNET | CLONE_NEWIPC |
		      CLONE_NEWUTS | SIGCHLD, 0, 0, 0, 0);
	if (pid < 0)
		fail("clone");
	if (pid == 0) {
		fcntl(out[1], F_SETFL, 0);
		become(argv, out[1]);
	}
	close(out[1]);
	wait[0] = (struct pollfd){ .fd = executions, .events = POLLIN };
	wait[1] = (struct pollfd){ .fd = out[0], .events = POLLIN };
	while (waitpid(pid, &status, WNOHANG) == 0) {
		if (now() >= until) {
			/* with the first process of the name space all end */
			kill(pid, SIGKILL);
		}
		poll(wait, 2, 500);
		see_executions();
		see_output(out[0]);
	}
	see_output(out[0]);
	close(out[0]);
	see_executions();
	see_touches();
	see_faults();
	return status;
}

/* ---- cases ------------------------------------------------------------------ */

struct state {
	u64 seed, cases, calls, succeeded, seconds, found, at_exit;
};

#define STATE_FORMAT \
	"next seed %lu, cases %lu, calls %lu, succeeded %lu, seconds %lu, found %lu, at exit %lu"

static void load(const char *path, struct state *s)
{
	FILE *f = path ? fopen(path, "r") : NULL;

	if (!f)
		return;
	if (fscanf(f, STATE_FORMAT, &s->seed, &s->cases, &s->calls, &s->succeeded, &s->seconds,
		   &s->found, &s->at_exit) < 1)
		printf("# %s: not a state\n", path);
	fclose(f);
}

static void save(const char *path, const struct state *s)
{
	char new[PATH_MAX];
	FILE *f;

	if (!path)
		return;
	snprintf(new, sizeof(new), "%s.new", path);
	f = fopen(new, "w");
	if (!f)
		fail(new);
	fprintf(f, STATE_FORMAT "\n", s->seed, s->cases, s->calls, s->succeeded, s->seconds,
		s->found, s->at_exit);
	fclose(f);
	rename(new, path);
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *where)
{
	remove(path);
	return 0;
}

/* Not by a program: that would be seen as one that runs natively. */
static void clean_up(void)
{
	struct dirent *e;
	DIR *d = opendir("/tmp");
	char path[300];

	while (d && (e = readdir(d))) {
		snprintf(path, sizeof(path), "/tmp/%s", e->d_name);
		if (!strncmp(e->d_name, "attack-", 7))
			nftw(path, remove_one, 16, FTW_DEPTH | FTW_PHYS | FTW_MOUNT);
	}
	if (d)
		closedir(d);
}

/* The module's node for everybody. Cases of root's may have removed or replaced it. */
static void give_device(void)
{
	static dev_t number;
	struct stat st;
	bool there = !stat("/dev/dune", &st) && S_ISCHR(st.st_mode);

	if (!number && there)
		number = st.st_rdev;
	if (number && (!there || st.st_rdev != number)) {
		nftw("/dev/dune", remove_one, 16, FTW_DEPTH | FTW_PHYS | FTW_MOUNT);
		mknod("/dev/dune", S_IFCHR | 0666, number);
	}
	chmod("/dev/dune", 0666);
}

struct arguments {
	u64 seconds, cases, calls, limit, mix;
	char *state, *kind, *runner;
};

/* Cases of attack/, from that of the state on, in batches. */
static void attack(struct state *s, const struct arguments *a)
{
	u64 start = now(), last = UINT64_MAX;
	char first[24], count[24], most[24];
	char *argv[] = { attacker, first, count, most, a->kind, NULL };
	int again = 0;

	if (a->cases)
		last = s->seed + a->cases;
	while (s->seed < last && (!a->seconds || now() - start < a->seconds)) {
		u64 batch = 48, was = now(), old_found = found, old_exit = at_exit;
		u64 old_calls = record->calls, old_good = record->succeeded;
		int status;

		if (batch > last - s->seed)
			batch = last - s->seed;
		snprintf(first, sizeof(first), "%lu", s->seed);
		snprintf(count, sizeof(count), "%lu", batch);
		snprintf(most, sizeof(most), "%lu", a->calls);
		record->seed = s->seed;
		give_device();
		status = run(argv, 30 + 8 * batch);
		/* a case that ends the run is skipped, with a line */
		if (status && record->seed + 1 < s->seed + batch) {
			printf("# seed %lu ended the batch: status 0x%x\n", record->seed, status);
			batch = record->seed + 1 - s->seed;
			if (batch == 1 && ++again > 20)
				finding("start", "the attack does not start");
		} else {
			again = 0;
		}
		s->seed += batch;
		s->cases += batch;
		s->calls += record->calls - old_calls;
		s->succeeded += record->succeeded - old_good;
		s->seconds += now() - was;
		s->found += found - old_found;
		s->at_exit += at_exit - old_exit;
		save(a->state, s);
		if (again > 20)
			break;
		clean_up();
	}
}

/* ---- the command ------------------------------------------------------------ */

/* Returns false where an option is wrong. */
static bool parse_arguments(int argc, char **argv, struct arguments *a, struct state *s)
{
	static const struct option options[] = {
		{ "state", 1, NULL, 's' }, { "seconds", 1, NULL, 't' }, { "seed", 1, NULL, 'n' },
		{ "cases", 1, NULL, 'c' }, { "calls", 1, NULL, 'm' }, { "kind", 1, NULL, 'k' },
		{ "limit", 1, NULL, 'l' }, { "runner", 1, NULL, 'r' },
		{ "mix", 1, NULL, 'x' }, { NULL, 0, NULL, 0 },
	};
	int o;

	while ((o = getopt_long(argc, argv, "+", options, NULL)) != -1) {
		switch (o) {
		case 's':
			a->state = optarg;
			load(a->state, s);
			break;
		case 't':
			a->seconds = strtoul(optarg, NULL, 0);
			break;
		case 'n':
			s->seed = strtoul(optarg, NULL, 0);
			break;
		case 'c':
			a->cases = strtoul(optarg, NULL, 0);
			break;
		case 'm':
			a->calls = strtoul(optarg, NULL, 0);
			break;
		case 'k':
			a->kind = optarg;
			break;
		case 'r':
			a->runner = optarg;
			break;
		case 'x':
			a->mix = strtoul(optarg, NULL, 0);
			break;
		case 'l':
			a->limit = strtoul(optarg, NULL, 0);
			break;
		default:
			return false;
		}
	}
	return true;
}

/* All that has to exist before a program runs. */
static void set_up(const struct arguments *a)
{
	ssize_t n = readlink("/proc/self/exe", folder, sizeof(folder) - 1);

	folder[n > 0 ? n : 0] = 0;
	*strrchr(folder, '/') = 0;
	snprintf(attacker, sizeof(attacker), "%s/attack", folder);
	snprintf(runner, sizeof(runner), "%s/%s", folder, a->runner);
	give_device();
	make_log();
	record->mix = a->mix;
	make_input_device();
	trace_faults();
	watch_executions();
}

static void report(void)
{
	struct utsname uts;
	u64 i, numbers = 0;

	uname(&uts);
	for (i = 0; i < CALLS_MAX; i++)
		numbers += record->by_number[i] != 0;
	for (i = 0; i < ARRAY_LEN(kinds); i++)
		if (kinds[i].count > SHOWN_MAX)
			printf("# %lu times: %s\n", kinds[i].count, kinds[i].name);
	printf("Linux %s: %lu calls of %lu numbers, %lu succeeded; %lu found, "
	       "%lu faults at the end of a process\n",
	       uts.release, record->calls, numbers, record->succeeded, found, at_exit);
	/* for decoy.bash */
	printf("# counts: calls=%lu numbers=%lu succeeded=%lu found=%lu\n", record->calls,
	       numbers, record->succeeded, found);
}

int main(int argc, char **argv)
{
	struct arguments a = { .calls = 2400, .limit = 600, .runner = "dune-run-decoy" };
	struct state state = { .seed = 1 };

	if (!parse_arguments(argc, argv, &a, &state))
		return 2;
	set_up(&a);
	if (optind < argc)
		run(argv + optind, a.limit);
	else
		attack(&state, &a);
	report();
	if (optind >= argc)
		printf("in all: %lu cases, next seed %lu, %lu calls, %lu succeeded, %lu s, "
		       "%lu found\n", state.cases, state.seed, state.calls, state.succeeded,
		       state.seconds, state.found);
	return found != 0;
}
