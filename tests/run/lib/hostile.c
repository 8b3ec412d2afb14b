// SPDX-License-Identifier: MIT OR Apache-2.0
/* For the programs that attack the runtime: see hostile.h. */
#define _GNU_SOURCE
#include "hostile.h"
#include "maps.h"
#include "tap.h"

#include <dirent.h>
#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>
#include <sys/mman.h>
#include <unistd.h>

long call(long nr, long a, long b, long c, long d, long e, long f)
{
	long ret = syscall(nr, a, b, c, d, e, f);

	return ret == -1 ? -errno : ret;
}

int find_descriptors(const char *what, int *fds, int max)
{
	DIR *d = opendir("/proc/self/fd");
	struct dirent *e;
	char path[300], link[300];
	int found = 0;

	while (d && found < max && (e = readdir(d))) {
		ssize_t n;

		snprintf(path, sizeof(path), "/proc/self/fd/%s", e->d_name);
		n = readlink(path, link, sizeof(link) - 1);
		if (n < 0)
			continue;
		link[n] = 0;
		if (strstr(link, what))
			fds[found++] = atoi(e->d_name);
	}
	if (d)
		closedir(d);
	return found;
}

int hidden_fd(void)
{
	int fds[16], n = find_descriptors("dune", fds, 16);

	return n && fds[n - 1] > 2 ? fds[n - 1] : -1;
}

u64 super_base;

/* Before main(), since tests have addresses of the range in what they initialize. */
__attribute__((constructor)) static void find_range(void)
{
	super_base = mapping_start("[dune-stub]");
}

int other_mappings(void)
{
	FILE *mappings = open_mappings();
	struct mapping m;
	int n = 0;

	while (next_mapping(mappings, &m))
		n += strstr(m.name, "dune") && !strstr(m.name, "hostile") &&
		     m.start != super_base;
	return n;
}

static sigjmp_buf fault_jump;
volatile int fault_code, fault_error;
void *volatile fault_address;

static void on_fault(int sig, siginfo_t *info, void *uc)
{
	fault_code = info->si_code;
	fault_address = info->si_addr;
	fault_error = ((ucontext_t *)uc)->uc_mcontext.gregs[REG_ERR];
	siglongjmp(fault_jump, sig);
}

int fault_of(void (*f)(void *), void *arg)
{
	static char other_stack[65536];
	stack_t alt = { .ss_sp = other_stack, .ss_size = sizeof(other_stack) };
	struct sigaction act = { .sa_sigaction = on_fault, .sa_flags = SA_SIGINFO | SA_ONSTACK };
	int sig;

	sigaltstack(&alt, NULL);
	sigaction(SIGSEGV, &act, NULL);
	sigaction(SIGBUS, &act, NULL);
	sigaction(SIGILL, &act, NULL);
	sig = sigsetjmp(fault_jump, 1);
	if (!sig)
		f(arg);
	signal(SIGSEGV, SIG_DFL);
	signal(SIGBUS, SIG_DFL);
	signal(SIGILL, SIG_DFL);
	return sig;
}

void read_byte(void *p)
{
	(void)*(volatile char *)p;
}

void leave_session(void)
{
	setsid();
	signal(SIGPIPE, SIG_IGN);
	signal(SIGALRM, SIG_IGN);
}
