// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * execve by a guest whose vCPU was bound with DUNE_STUB_TEMPLATE. Fails when the process does not
 * begin in the guest with the private memory and the registers that <linux/dune.h> describes; when
 * it has something else in its memory, or a stack that cannot grow to its limit; when another file
 * is executed, or wrong arguments are accepted; when a child, or a process with a signal, cannot do
 * the same; when a process that cannot begin is not killed, or leaves something, or a lock held;
 * and when a process gets the rights of the file that it says it executes, or what the kernel opens
 * for an interpreter.
 */
#define _GNU_SOURCE
#include "by_fork.h"
#include "child.h"
#include "klog.h"
#include "maps.h"
#include "modules.h"
#include "proc.h"
#include "private.h"
#include "tap.h"
#include "timing.h"
#include "x86.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <linux/userfaultfd.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>

#define LARGE_PAGE	(2UL << 20)
#define ROOM		(16 * 4096UL)	/* what the process has at the stub and after it */
#define PATTERN		0x55aa
#define MB		(1UL << 20)

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
	"	mov 0x48(%rbp), %rsi\n"			/* the end of the stack */
	"	sub 0x20(%rbp), %rsi\n"
	"	mov 0x40(%rbp), %rax\n"			/* the end of the room */
	"	add 0x28(%rbp), %rax\n"
	"	mov $104, %edi\n"
	"	cmp %rax, %rsi\n"
	"	jb 9f\n"
	"	mov $1, %eax\n"				/* write() of a byte there */
	"	mov 0x10(%rbp), %rdi\n"
	"	mov $1, %edx\n"
	"	call 8f\n"
	"	mov $105, %edi\n"
	"	cmp $1, %rax\n"
	"	jne 9f\n"
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
		u64 pattern, vendor, pipe, own_file, below, room;
		u64 zero[506];
	} data;
	u64 pml4[512], pdpt[512], pd[512];
} made __attribute__((aligned(4096)));

_Static_assert(PATTERN == 0x55aa && ROOM == 0x10000 && DUNE_FIND_VDSO == 0x900000000 &&
	       (DUNE_HOSTCALL | SYS_execveat) == 0x100000142 && AT_EMPTY_PATH == 0x1000,
	       "exec_code has the same");

static int own_file, other_file, to_parent;
static u64 below;	/* the strings: where the guest reads the stack, in bytes */
static u64 room = ROOM;

/* Puts the code, its data and a page table for them into private memory. */
static void make_private(void)
{
	struct dune_private code = {
		.size = sizeof(code), .flags = DUNE_PRIVATE_SEALED, .pages = 1,
		.address = (u64)exec_code,
	}, other = {
		.size = sizeof(other), .pages = sizeof(made) / 4096, .address = (u64)&made,
	};
	struct dune_state state = alone_guest.state;
	struct dune_regs *regs = &alone_guest.run->regs;
	u64 at;

	if (ioctl(alone_guest.fd, DUNE_ADD_PRIVATE, &code))
		child_fails("DUNE_ADD_PRIVATE: %s", strerror(errno));
	at = code.guest + 4096;
	made.data.pattern = PATTERN;
	made.data.vendor = alone_guest.info.vendor;
	made.data.pipe = to_parent;
	made.data.own_file = own_file;
	made.data.below = below;
	made.data.room = room;
	state.cr3 = at + offsetof(struct made, pml4);
	made.pml4[PRIVATE_AT >> 39 & 511] = (at + offsetof(struct made, pdpt)) | PTE_P | PTE_W;
	made.pdpt[0] = (at + offsetof(struct made, pd)) | PTE_P | PTE_W;
	made.pd[0] = (code.guest & -LARGE_PAGE) | PTE_P | PTE_W | PTE_PS;
	if (ioctl(alone_guest.fd, DUNE_ADD_PRIVATE, &other) || other.guest != at)
		child_fails("DUNE_ADD_PRIVATE: %s", strerror(errno));
	private_show(&alone_guest, code.guest & -LARGE_PAGE);
	regs->r12 = alone_guest.state.cr3;
	regs->r13 = regs->rip;
	regs->rip = (u64)private_at(code.guest);
	regs->rdi = 0;
	if (guest_set_state(&alone_guest, &state))
		child_fails("DUNE_SET_STATE: %s", strerror(errno));
}

static void start(void *fn)
{
	own_file = open("/proc/self/exe", O_PATH);
	other_file = open("/bin/false", O_RDONLY);
	alone_before_bind = make_private;
	alone_flags = DUNE_STUB_TEMPLATE;
	alone_start(0, (u64 (*)(void *))fn, NULL);
}

/* ---- a process with another limit of its stack, and more at the stub and after it */

static const struct stack {
	u64 limit, room;
} stacks[] = {
	/* With the room that exec.c keeps for both and for the gap below a stack, 126 MB. */
	{ 63 * MB, 62 * MB }, { 62 * MB, 63 * MB }, { 8 * MB, 117 * MB },
	/* With more. */
	{ 63 * MB, 63 * MB }, { 8 * MB, 117 * MB + 8192 }, { 63 * MB, 100 * MB },
	{ 100 * MB, ROOM }, { 8 * MB, 256 * MB },
};

static void start_with_stack(void *fn)
{
	struct rlimit limit;

	getrlimit(RLIMIT_STACK, &limit);
	limit.rlim_cur = below + 4096;
	if (setrlimit(RLIMIT_STACK, &limit))
		child_fails("RLIMIT_STACK: %s", strerror(errno));
	start(fn);
}

/* ---- a process with a signal that it gets while the kernel reads its arguments */

static char *second_word = "two";

/* In another process: sends the signal when the kernel reads the word, and then shows the word. */
static void serve_word(int fd, char *at)
{
	static char page[4096] __attribute__((aligned(4096))) = "two";
	struct uffdio_copy copy = { .dst = (u64)at, .src = (u64)page, .len = sizeof(page) };
	struct uffd_msg message;

	_exit(read(fd, &message, sizeof(message)) != sizeof(message) ||
	      message.event != UFFD_EVENT_PAGEFAULT || kill(getppid(), SIGWINCH) ||
	      ioctl(fd, UFFDIO_COPY, &copy));
}

static void start_with_signal(void *fn)
{
	struct uffdio_api api = { .api = UFFD_API };
	struct uffdio_register range = { .mode = UFFDIO_REGISTER_MODE_MISSING };
	int fd = syscall(SYS_userfaultfd, O_CLOEXEC);

	second_word = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	range.range.start = (u64)second_word;
	range.range.len = 4096;
	if (fd < 0 || ioctl(fd, UFFDIO_API, &api) || ioctl(fd, UFFDIO_REGISTER, &range))
		child_fails("userfaultfd: %s", strerror(errno));
	if (!checked_fork())
		serve_word(fd, second_word);
	start(fn);
}

/* ---- a process that says it executes another file */

#define PRIVILEGED_FILE	"/tmp/dune-stub-exec"
#define MATCHED_FILE	"/tmp/dune-stub-exec-matched"
#define MISC		"/proc/sys/fs/binfmt_misc"
#define USER		1000

/* Replaces the mappings of this program by anonymous memory with the same contents. */
static void leave_file(void)
{
	struct mapping maps[16], *m = maps;
	FILE *list = open_mappings();
	char own[256];
	ssize_t length = readlink("/proc/self/exe", own, sizeof(own) - 1);

	if (length < 0)
		child_fails("readlink: %s", strerror(errno));
	own[length] = 0;
	while (next_mapping(list, m))
		if (!strcmp(m->name, own) && ++m == maps + 16)
			child_fails("this program has too many mappings");
	while (m-- > maps) {
		unsigned long size = m->end - m->start;
		int rights = PROT_READ | (m->rights[1] == 'w' ? PROT_WRITE : 0) |
			     (m->rights[2] == 'x' ? PROT_EXEC : 0);
		void *copy = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
				  -1, 0);

		if (copy == MAP_FAILED || !memcpy(copy, (void *)m->start, size) ||
		    mprotect(copy, size, rights) ||
		    mremap(copy, size, size, MREMAP_MAYMOVE | MREMAP_FIXED, m->start) ==
		    MAP_FAILED)
			child_fails("replacing a mapping: %s", strerror(errno));
	}
}

/* In a user namespace of its own, with the memory of its parent. */
static int take_file(void *arg)
{
	struct prctl_mm_map map = {
		.start_code = 1UL << 28, .end_code = (1UL << 28) + 1,
		.start_data = 1UL << 28, .end_data = (1UL << 28) + 1,
		.start_brk = 1UL << 28, .brk = 1UL << 28, .start_stack = 1UL << 28,
		.arg_start = 1UL << 28, .arg_end = 1UL << 28,
		.env_start = 1UL << 28, .env_end = 1UL << 28, .exe_fd = own_file,
	};

	return prctl(PR_SET_MM, PR_SET_MM_MAP, &map, sizeof(map), 0) ? errno : 0;
}

static void start_as_user(void *fn)
{
	static char stack[65536];
	int pid, status;

	if (setresgid(USER, USER, USER) || setresuid(USER, USER, USER) ||
	    prctl(PR_SET_DUMPABLE, 1))
		child_fails("becoming another user: %s", strerror(errno));
	own_file = open(PRIVILEGED_FILE, O_RDONLY);
	leave_file();
	pid = clone(take_file, stack + sizeof(stack), CLONE_VM | CLONE_NEWUSER | SIGCHLD, NULL);
	if (pid < 0 || waitpid(pid, &status, 0) != pid || status)
		child_fails("PR_SET_MM_MAP: status %x, %s", status, strerror(errno));
	alone_before_bind = make_private;
	alone_flags = DUNE_STUB_TEMPLATE;
	alone_start(0, (u64 (*)(void *))fn, NULL);
}

/* ---- in the guest */

static long execute(int fd, u64 size)
{
	static char *argv[] = { "one", NULL, NULL }, *envp[] = { "env", NULL };

	argv[1] = second_word;
	return hypercall(DUNE_HOSTCALL | SYS_execveat, fd, (long)"", (long)argv, (long)envp,
			 AT_EMPTY_PATH, size);
}

static void keep_vcpu(void)
{
	hypercall3(SYS_fcntl, alone_guest.fd, F_SETFD, 0);
}

/* Returns 10 plus the error. */
static u64 execute_own(u64 size)
{
	keep_vcpu();
	return 10 - execute(own_file, size);
}

static u64 become_file(void *arg)
{
	return execute_own(room);
}

static u64 become(void *arg)
{
	if (execute(other_file, ROOM) != -EPERM)
		return 1;
	if (execute(own_file, ROOM + 1) != -EINVAL || execute(own_file, 0) != -EINVAL)
		return 2;
	/* The changes of the first process are not in the template. */
	*(volatile u64 *)(PRIVATE_AT + 4096) = 1;
	return execute_own(ROOM);
}

/* Nothing has caught the signal when the guest begins again, so it is ignored then. */
static u64 become_with_signal(void *arg)
{
	alone_stack();
	if (alone_catch(SIGWINCH, 0))
		return 1;
	return execute_own(ROOM);
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
	return execute_own(1UL << 47);
}

static u64 close_vcpu(void *arg)
{
	return 10 - execute(own_file, ROOM);
}

/* ---- the cases */

/* Reads what needs the locks that an execve takes. */
static void read_about(void *pid)
{
	static const char *const names[] = { "stat", "io", "syscall", "maps" };
	char path[64], text[4096];

	for (unsigned int i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		snprintf(path, sizeof(path), "/proc/%d/%s", *(int *)pid, names[i]);
		file_read(path, text, sizeof(text));
	}
}

static struct outcome run(void (*begin)(void *fn), u64 (*fn)(void *arg), char *strings)
{
	struct outcome o;
	siginfo_t end;
	int ends[2], pid;

	if (pipe(ends))
		bail("pipe: %s", strerror(errno));
	to_parent = ends[1];
	pid = checked_fork();
	if (!pid) {
		begin((void *)fn);
		_exit(1);
	}
	waitid(P_PID, pid, &end, WEXITED | WNOWAIT);
	o = in_child(read_about, &pid, 10);
	ok(outcome_is(o, 0), "a process that has ended holds no lock (%s)", outcome_text(o));
	o = wait_child(pid, 30);
	close(ends[1]);
	memset(strings, 0, 12);
	if (read(ends[0], strings, 12) < 0)
		bail("read: %s", strerror(errno));
	close(ends[0]);
	return o;
}

static void begins(const char *name, void (*begin)(void *fn), u64 (*fn)(void *arg), int code)
{
	char strings[12];
	struct outcome o = run(begin, fn, strings);

	ok(o.code == code, "%s (%s)", name, outcome_text(o));
	ok(!memcmp(strings, "one\0two\0env", 12), "and has its arguments");
	is(dune_users_left(), 0, "and leaves no reference to the module");
}

static void has_stack(const struct stack *s)
{
	char name[128];

	/* The strings are in the highest page of the stack. */
	below = s->limit - 4096;
	room = s->room;
	snprintf(name, sizeof(name), "a stack of %lu MB can grow, with %lu KB from the stub on",
		 s->limit / MB, s->room / 1024);
	begins(name, start_with_stack, become_file, 42);
	below = 0;
	room = ROOM;
}

static void is_killed(const char *name, u64 (*fn)(void *arg))
{
	char strings[12];
	struct outcome o = run(start, fn, strings);

	ok(o.signal == SIGSEGV, "%s (%s)", name, outcome_text(o));
	is(dune_users_left(), 0, "and leaves no reference to the module");
}

static u64 become_matched(void *arg)
{
	static char *argv[] = { "one", NULL }, *envp[] = { NULL };

	keep_vcpu();
	return 10 - hypercall(DUNE_HOSTCALL | SYS_execveat, AT_FDCWD, (long)MATCHED_FILE,
			      (long)argv, (long)envp, 0, ROOM);
}

/*
 * A user's process says that it executes a file, and executes it. The file has @mode, the owner and
 * the group @id, and a capability if @capable.
 */
static void gets_rights(const char *name, int signal, mode_t mode, int id, bool capable)
{
	struct vfs_cap_data caps = {
		.magic_etc = VFS_CAP_REVISION_2 | VFS_CAP_FLAGS_EFFECTIVE,
		.data[0].permitted = 1 << CAP_NET_RAW,
	};
	int fd = open(PRIVILEGED_FILE, O_CREAT | O_TRUNC | O_RDWR, 0700);
	char strings[12];
	struct outcome o;

	if (fd < 0 || write(fd, "none", 4) != 4 || fchown(fd, id, id) || fchmod(fd, mode) ||
	    (capable && fsetxattr(fd, "security.capability", &caps, sizeof(caps), 0)))
		bail("%s: %s", PRIVILEGED_FILE, strerror(errno));
	close(fd);
	o = run(start_as_user, become_file, strings);
	ok(signal ? o.signal == signal : o.code == 42, "%s (%s)", name, outcome_text(o));
	ok(!strings[0] == !!signal, "and executes %s", signal ? "nothing" : "the template");
	is(dune_users_left(), 0, "and leaves no reference to the module");
	unlink(PRIVILEGED_FILE);
}

/*
 * The process says that it executes the interpreter of a handler (binfmt_misc) for which the kernel
 * opens files (flag O). binfmt_misc is asked first if it is loaded after this module.
 */
static void is_no_interpreter(void)
{
	static const char handler[] = ":dune-test:M::\\x01dune::" PRIVILEGED_FILE ":O",
		refused[] = "a user does not become an interpreter";
	int fd = open(MATCHED_FILE, O_CREAT | O_TRUNC | O_RDWR, 0700);
	char strings[12];
	struct outcome o;

	if (fd < 0 || write(fd, "\1dune", 5) != 5 || fchmod(fd, 0711))
		bail("%s: %s", MATCHED_FILE, strerror(errno));
	close(fd);
	if (system("modprobe binfmt_misc; mountpoint -q " MISC
		   " || mount -t binfmt_misc none " MISC) ||
	    file_write(MISC "/register", handler)) {
		skip("no binfmt_misc", refused);
		return;
	}
	close(open(PRIVILEGED_FILE, O_CREAT | O_RDWR, 0755));
	o = run(start_as_user, become_matched, strings);
	ok(o.code == 10 + EPERM, "%s (%s)", refused, outcome_text(o));
	file_write(MISC "/dune-test", "-1");
	unlink(PRIVILEGED_FILE);
	unlink(MATCHED_FILE);
}

int main(void)
{
	struct klog log;

	begin(120);
	klog_begin(&log);
	if (!alone_vcpus())
		return done();
	begins("a guest executes its program twice", start, become, 42);
	begins("so does a child of a guest", start, become_as_child, 0);
	begins("so does one with a signal", start_with_signal, become_with_signal, 42);
	for (unsigned int i = 0; i < sizeof(stacks) / sizeof(stacks[0]); i++)
		has_stack(&stacks[i]);
	is_killed("a process without its memory is killed", need_too_much);
	is_killed("so is one without its descriptor", close_vcpu);
	if (chmod("/dev/dune", 0666))
		bail("/dev/dune: %s", strerror(errno));
	gets_rights("a user executes a plain file of root's", 0, 0755, 0, false);
	gets_rights("he is killed if it is set-uid", SIGSEGV, 04755, 0, false);
	gets_rights("or set-gid", SIGSEGV, 02755, 0, false);
	gets_rights("or has a capability", SIGSEGV, 0755, 0, true);
	gets_rights("but not if it is set-uid for himself", 0, 04755, USER, false);
	is_no_interpreter();
	klog_end(&log);
	return done();
}
