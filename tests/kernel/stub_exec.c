// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * execve by a guest whose vCPU was bound with DUNE_STUB_TEMPLATE. Fails when the process does not
 * begin in the guest with the private memory and the registers that <linux/dune.h> describes; when
 * it has something else in its memory; when another file is executed, or wrong arguments are
 * accepted; when a child cannot do the same; and when a process that cannot begin is not killed, or
 * leaves something.
 */
#define _GNU_SOURCE
#include "by_fork.h"
#include "child.h"
#include "klog.h"
#include "modules.h"
#include "private.h"
#include "tap.h"
#include "timing.h"
#include "x86.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stddef.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#define LARGE_PAGE	(2UL << 20)
#define ROOM		(16 * 4096UL)	/* what the process has at the stub and after it */
#define PATTERN		0x55aa

/*
 * The guest's code, at PRIVATE_AT + code_at. In the first process (RDI is 0) it only changes to the
 * page table R12 and continues at R13. Otherwise it tells the pipe what it has found, and executes
 * the program again, with no arguments. In a third process it ends. RBP: the page after it, struct
 * data.
 */
asm(".section .rodata\n"
	".balign 4096\n"
	".globl exec_code\n"
	"exec_code:\n"
	"	test %rdi, %rdi\n"
	"	jnz 1f\n"
	"	mov %r12, %cr3\n"
	"	jmp *%r13\n"
	"1:	lea exec_code+4096(%rip), %rbp\n"
	"	lea 4096(%rbp), %rsp\n"
	"	mov %rdi, 0x40(%rbp)\n"
	"	mov %rsi, 0x48(%rbp)\n"
	"	mov %rdx, 0x50(%rbp)\n"
	"	mov %rcx, 0x58(%rbp)\n"
	"	mov %r8, 0x60(%rbp)\n"
	"	mov %r9, 0x68(%rbp)\n"
	"	mov %r9, %rbx\n"
	"	mov $101, %edi\n"
	"	cmpq $0x55aa, (%rbp)\n"
	"	jne 9f\n"
	"	movq $0, (%rbp)\n"
	"	mov $102, %edi\n"
	"	movabs $0x900000000, %rax\n"		/* DUNE_FIND_VDSO */
	"	call 8f\n"
	"	test %rax, %rax\n"
	"	jnz 9f\n"
	"	mov $42, %edi\n"
	"	cmpl $1, 0x50(%rbp)\n"
	"	je 9f\n"
	"	mov $1, %eax\n"				/* write() of the strings */
	"	mov 0x10(%rbp), %rdi\n"
	"	mov 0x48(%rbp), %rsi\n"
	"	mov $12, %edx\n"
	"	call 8f\n"
	"	mov $72, %eax\n"			/* fcntl(F_SETFD) of the vCPU */
	"	mov %rbx, %rdi\n"
	"	mov $2, %esi\n"
	"	xor %edx, %edx\n"
	"	call 8f\n"
	"	movabs $0x100000142, %rax\n"		/* execveat() */
	"	mov 0x18(%rbp), %rdi\n"
	"	mov 0x48(%rbp), %rsi\n"
	"	add $3, %rsi\n"				/* "" */
	"	xor %edx, %edx\n"
	"	xor %r10d, %r10d\n"
	"	mov $0x1000, %r8d\n"
	"	mov $0x10000, %r9d\n"
	"	call 8f\n"
	"	mov $103, %edi\n"
	"9:	mov $231, %eax\n"
	"	call 8f\n"
	"8:	cmpq $1, 8(%rbp)\n"
	"	jne 7f\n"
	"	vmmcall\n"
	"	ret\n"
	"7:	vmcall\n"
	"	ret\n"
	".text\n");
extern const char exec_code[];

static struct made {
	struct {
		u64 pattern, vendor, pipe, own_file;
		u64 zero[508];
	} data;
	u64 pml4[512], pdpt[512], pd[512];
} made __attribute__((aligned(4096)));

_Static_assert(PATTERN == 0x55aa && ROOM == 0x10000, "exec_code has the same");

static int own_file, other_file, to_parent;

/* Puts the code, its data and a page table for them into private memory. */
static void make_private(void)
{
	struct dune_private code = {
		.size = sizeof(code), .flags = DUNE_PRIVATE_SEALED, .pages = 1,
		.address = (u64)exec_code,
	}, other = {
		.size = sizeof(other), .pages = sizeof(made) / 4096, .address = (u64)&made,
	};
	struct dune_state state = event_guest.state;
	struct dune_regs *regs = &event_guest.run->regs;
	u64 at;

	if (ioctl(event_guest.fd, DUNE_ADD_PRIVATE, &code))
		child_fails("DUNE_ADD_PRIVATE: %s", strerror(errno));
	at = code.guest + 4096;
	made.data.pattern = PATTERN;
	made.data.vendor = event_guest.info.vendor;
	made.data.pipe = to_parent;
	made.data.own_file = own_file;
	state.cr3 = at + offsetof(struct made, pml4);
	made.pml4[PRIVATE_AT >> 39 & 511] = (at + offsetof(struct made, pdpt)) | PTE_P | PTE_W;
	made.pdpt[0] = (at + offsetof(struct made, pd)) | PTE_P | PTE_W;
	made.pd[0] = (code.guest & -LARGE_PAGE) | PTE_P | PTE_W | PTE_PS;
	if (ioctl(event_guest.fd, DUNE_ADD_PRIVATE, &other) || other.guest != at)
		child_fails("DUNE_ADD_PRIVATE: %s", strerror(errno));
	private_show(&event_guest, code.guest & -LARGE_PAGE);
	regs->r12 = event_guest.state.cr3;
	regs->r13 = regs->rip;
	regs->rip = PRIVATE_AT + code.guest % LARGE_PAGE;
	regs->rdi = 0;
	if (guest_set_state(&event_guest, &state))
		child_fails("DUNE_SET_STATE: %s", strerror(errno));
}

static void start(void *fn)
{
	own_file = open("/proc/self/exe", O_PATH);
	other_file = open("/bin/false", O_RDONLY);
	event_before_bind = make_private;
	event_flags = DUNE_STUB_TEMPLATE;
	event_start(0, (u64 (*)(void *))fn, NULL);
}

/* ---- in the guest */

static long execute(int fd, u64 room)
{
	static char *argv[] = { "one", "two", NULL }, *envp[] = { "env", NULL };

	return hypercall(DUNE_HOSTCALL | SYS_execveat, fd, (long)"", (long)argv, (long)envp,
			 AT_EMPTY_PATH, room);
}

static long keep_vcpu(void)
{
	return hypercall3(SYS_fcntl, event_guest.fd, F_SETFD, 0);
}

static u64 become(void *arg)
{
	if (execute(other_file, ROOM) != -EPERM)
		return 1;
	if (execute(own_file, ROOM + 1) != -EINVAL || execute(own_file, 0) != -EINVAL)
		return 2;
	/* The changes of the first process are not in the template. */
	*(volatile u64 *)(PRIVATE_AT + 4096) = 1;
	keep_vcpu();
	return 10 - execute(own_file, ROOM);
}

static u64 become_as_child(void *arg)
{
	if (!child_fork(SIGCHLD))
		child_exit(become(arg));
	return child_wait(-1) == 42 << 8 ? 0 : 1;
}

/* The kernel cannot map that much. */
static u64 need_too_much(void *arg)
{
	keep_vcpu();
	return 10 - execute(own_file, 1UL << 47);
}

static u64 close_vcpu(void *arg)
{
	return 10 - execute(own_file, ROOM);
}

/* ---- the cases */

static struct outcome run(u64 (*fn)(void *arg), char *strings)
{
	struct outcome o;
	int ends[2];

	if (pipe(ends))
		bail("pipe: %s", strerror(errno));
	to_parent = ends[1];
	o = in_child(start, (void *)fn, 30);
	close(ends[1]);
	memset(strings, 0, 12);
	if (read(ends[0], strings, 12) < 0)
		bail("read: %s", strerror(errno));
	close(ends[0]);
	return o;
}

static void begins(const char *name, u64 (*fn)(void *arg), int code)
{
	char strings[12];
	struct outcome o = run(fn, strings);

	ok(o.code == code, "%s (%s)", name, outcome_text(o));
	ok(!memcmp(strings, "one\0two\0env", 12), "and has its arguments");
	is(dune_users_left(), 0, "and leaves no reference to the module");
}

static void is_killed(const char *name, u64 (*fn)(void *arg))
{
	char strings[12];
	struct outcome o = run(fn, strings);

	ok(o.signal == SIGSEGV, "%s (%s)", name, outcome_text(o));
	is(dune_users_left(), 0, "and leaves no reference to the module");
}

int main(void)
{
	struct klog log;

	begin(120);
	klog_begin(&log);
	if (!event_vcpus())
		return done();
	begins("a guest executes its program twice", become, 42);
	begins("so does a child of a guest", become_as_child, 0);
	is_killed("a process without its memory is killed", need_too_much);
	is_killed("so is one without its descriptor", close_vcpu);
	klog_end(&log);
	return done();
}
