// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * faults_under_signals timer: the runtime's own faults, while a timer's signals come.
 * faults_under_signals sent: a program's faults, while others send it the same signals.
 * faults_under_signals own: the runtime's own faults, while others send the program such signals.
 *
 * Prints what happened. faults.bash fails when that differs between the native run and the one
 * in the sandbox: a call fails, or a signal is lost, looks like another or finds another mask.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

static volatile unsigned long alarms;

static void on_alarm(int sig)
{
	alarms++;
}

#define ALARMS	3000
#define STACK	(4UL << 20)

/*
 * Calls whose vector the runtime must touch before the kernel does: on a stack
 * that has not grown so far, which succeeds, and where nothing may be read. All
 * the while signals come, whose handler blocks @mask.
 */
static void under_timer(const sigset_t *mask)
{
	struct sigaction act = { .sa_handler = on_alarm, .sa_flags = SA_RESTART, .sa_mask = *mask };
	struct itimerval often = { { 0, 300 }, { 0, 300 } }, off = { 0 };
	unsigned long failed = 0, read = 0, at;
	int null = open("/dev/null", O_RDWR);

	alarms = 0;
	sigaction(SIGALRM, &act, NULL);
	setitimer(ITIMER_REAL, &often, NULL);
	while (alarms < ALARMS) {
		char *low = mmap(NULL, 2 * STACK, PROT_NONE,
				 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
		volatile char *top = low + 2 * STACK - 4096;

		/* a stack needs room to grow, and a gap below */
		munmap(low, 2 * STACK);
		if (mmap((void *)top, 4096, PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_GROWSDOWN,
			 -1, 0) == MAP_FAILED) {
			perror("mmap");
			break;
		}
		*top = 0;
		for (at = 4096; at < STACK && alarms < ALARMS; at += 4096) {
			failed += writev(null, (void *)(top - at), 1) != 0;
			read += writev(null, (void *)4096, 1) != -1 || errno != EFAULT;
		}
		munmap(low, 2 * STACK);
	}
	setitimer(ITIMER_REAL, &off, NULL);
	close(null);
	printf("vectors on a growing stack: %lu failed; where nothing is: %lu read\n", failed,
	       read);
}

static volatile long count, odd, masked;
static volatile long *sent, *lost;	/* SIGSEGV and SIGBUS: shared with their senders */

static void of_others(int sig, siginfo_t *info, void *context)
{
	ucontext_t *uc = context;
	const unsigned char *at = (void *)uc->uc_mcontext.gregs[REG_RIP];

	if (sig == SIGILL) {
		count++;
		odd += info->si_code <= 0 || at[0] != 0x0f || at[1] != 0x0b;
		uc->uc_mcontext.gregs[REG_RIP] += 2;
	} else {
		sent[sig == SIGBUS]++;
		odd += info->si_code != SI_USER;
		masked += *(unsigned long *)&uc->uc_sigmask != 0;
	}
}

/* One at a time: the next when the handler has run, or after five seconds. */
static void send(pid_t to, int bus)
{
	int i;

	for (;;) {
		long before = sent[bus];

		if (kill(to, bus ? SIGBUS : SIGSEGV))
			_exit(0);
		for (i = 0; i < 100000 && sent[bus] == before; i++)
			usleep(50);
		lost[bus] += sent[bus] == before;
	}
}

static void own_fault(void)
{
	__asm__ volatile("ud2");
}

/* Where nothing is, the runtime has the fault before the kernel has it. */
static void fault_of_runtime(void)
{
	count += writev(1, (void *)4096, 1) == -1 && errno == EFAULT;
}

static const struct faulting {
	const char *name;
	void (*fault)(void);
	long faults, signals;	/* of each kind, at least */
} kinds[] = {
	{ "sent", own_fault, 20000, 50 },
	{ "own", fault_of_runtime, 5000, 1000 },
};

static int enough(int bus, long signals)
{
	return sent[bus] + lost[bus] >= signals || lost[bus] > 2;
}

/*
 * Two processes send SIGSEGV and SIGBUS, whose handlers let both in again, to
 * one that has faults of its own: none is lost, and no signal looks like another.
 */
static void under_signals(const struct faulting *k)
{
	struct sigaction sa = { .sa_sigaction = of_others, .sa_flags = SA_SIGINFO | SA_NODEFER };
	pid_t me = getpid(), sender[2];
	long i;

	sent = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	lost = sent + 2;
	sigaction(SIGILL, &sa, NULL);
	sigaction(SIGSEGV, &sa, NULL);
	sigaction(SIGBUS, &sa, NULL);
	for (i = 0; i < 2; i++) {
		sender[i] = fork();
		if (!sender[i])
			send(me, i);
	}
	for (i = 0; i < k->faults || !enough(0, k->signals) || !enough(1, k->signals); i++)
		k->fault();
	for (i = 0; i < 2; i++) {
		kill(sender[i], SIGKILL);
		waitpid(sender[i], NULL, 0);
	}
	printf("faults (%s) while signals are sent: all %s, %ld odd, %ld lost, %ld other masks\n",
	       k->name, count >= k->faults ? "came" : "did not come", odd, lost[0] + lost[1],
	       masked);
}

int main(int argc, char **argv)
{
	sigset_t mask;

	for (unsigned int i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		if (argc > 1 && !strcmp(argv[1], kinds[i].name)) {
			under_signals(&kinds[i]);
			return 0;
		}
	}
	sigemptyset(&mask);
	under_timer(&mask);
	sigfillset(&mask);
	under_timer(&mask);
	return 0;
}
