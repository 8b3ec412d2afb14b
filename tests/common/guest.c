// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * A guest without libdune (guest.h): its vCPU, its state, and the loop that runs it. Its tables
 * are made in guest_memory.c. The loop uses no floating point register (the guest's are the
 * thread's own) and no libc between two runs.
 */
#define _GNU_SOURCE
#include "guest.h"
#include "guest_calls.h"
#include "guest_memory.h"
#include "tap.h"
#include "x86.h"

#include <asm/prctl.h>
#include <asm/processor-flags.h>
#include <cpuid.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

_Static_assert(GUEST_CALL_DONE == (DUNE_HOSTCALL | 1), "guest_calls.h: not a hostcall");
_Static_assert(GUEST_CALL_TRAP == (DUNE_HOSTCALL | 2), "guest_calls.h: not a hostcall");
_Static_assert(GUEST_CALL_ASK == (DUNE_HOSTCALL | 3), "guest_calls.h: not a hostcall");

void (*guest_trap_handler)(struct guest_frame *frame);
bool guest_vmx;
bool guest_hides_run;
void (*guest_hypercall)(void) = guest_hypercall_svm;

long raw_syscall(long nr, long a, long b, long c, long d, long e, long f)
{
	register long r10 asm("r10") = d;
	register long r8 asm("r8") = e;
	register long r9 asm("r9") = f;
	long ret;

	asm volatile("syscall" : "=a"(ret)
		     : "0"(nr), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
		     : "rcx", "r11", "memory");
	return ret;
}

static int map_vcpu(struct guest *g)
{
	if (guest_hides_run)
		g->run = mmap(NULL, g->info.run_size, PROT_READ | PROT_WRITE,
			      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	else
		g->run = mmap(NULL, g->info.run_size, PROT_READ | PROT_WRITE, MAP_SHARED,
			      g->fd, 0);
	if (g->run == MAP_FAILED)
		return -errno;
	guest_vmx = g->info.vendor == DUNE_VENDOR_VMX;
	guest_hypercall = guest_vmx ? guest_hypercall_vmx : guest_hypercall_svm;
	return guest_map_granules(g);
}

int guest_vcpu(struct guest *g)
{
	struct dune_create_vcpu create = { .size = sizeof(create) };

	memset(g, 0, sizeof(*g));
	g->fd = -1;
	g->dev = open("/dev/dune", O_RDWR | O_CLOEXEC);
	if (g->dev < 0)
		return -errno;
	g->info.size = sizeof(g->info);
	if (ioctl(g->dev, DUNE_GET_INFO, &g->info))
		return -errno;
	g->fd = ioctl(g->dev, DUNE_CREATE_VCPU, &create);
	if (g->fd < 0)
		return -errno;
	return map_vcpu(g);
}

/* Attributes are bits 40 to 47 and 52 to 55 of the descriptor (APM vol. 2, 15.5.1). */
static struct dune_segment segment(u16 selector, u64 descriptor, u64 base)
{
	u16 attributes = (descriptor >> 40 & 0xff) | (descriptor >> 44 & 0xf00);

	return (struct dune_segment){ selector, attributes, 0xffffffff, base };
}

static int make_guest(struct guest *g)
{
	g->mem = mmap(NULL, sizeof(*g->mem), PROT_READ | PROT_WRITE,
		      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (g->mem == MAP_FAILED)
		return -errno;
	guest_make_tables(g);

	struct dune_state *s = &g->state;
	u64 fs = 0;

	raw_syscall(SYS_arch_prctl, ARCH_GET_FS, (long)&fs, 0, 0, 0, 0);
	s->size = sizeof(*s);
	if (ioctl(g->fd, DUNE_GET_STATE, s))
		return -errno;
	s->cpl = 0;
	s->cr3 = guest_gpa(g, (u64)g->mem->pml4);
	s->cs = segment(GUEST_CS0, DESC_CODE64_0, 0);
	s->ss = segment(GUEST_SS0, DESC_DATA_0, 0);
	s->ds = segment(0, DESC_DATA_0, 0);
	s->es = segment(0, DESC_DATA_0, 0);
	s->fs = segment(0, DESC_DATA_0, fs);
	s->gs = segment(0, DESC_DATA_0, 0);
	s->tr = segment(GUEST_TR, (DESC_P | DESC_TSS_BUSY) << 40, (u64)&g->mem->tss);
	s->tr.limit = sizeof(g->mem->tss) - 1;
	s->ldtr = segment(0, 0, 0);
	s->gdtr.base = (u64)g->mem->gdt;
	s->gdtr.limit = sizeof(g->mem->gdt) - 1;
	s->idtr.base = (u64)g->mem->idt;
	s->idtr.limit = sizeof(g->mem->idt) - 1;
	s->star = (u64)GUEST_CS0 << 32 | (u64)GUEST_CS32 << 48;
	s->lstar = (u64)guest_lstar0;
	s->sfmask = 0;
	return guest_set_state(g, s);
}

int guest_try_open(struct guest *g)
{
	int err = guest_vcpu(g);

	return err ? err : make_guest(g);
}

int guest_adopt(struct guest *g, int fd)
{
	int err;

	memset(g, 0, sizeof(*g));
	g->dev = -1;
	g->fd = fd;
	g->info.size = sizeof(g->info);
	if (ioctl(fd, DUNE_GET_INFO, &g->info))
		return -errno;
	err = map_vcpu(g);
	return err ? err : make_guest(g);
}

void guest_open(struct guest *g)
{
	int err = guest_try_open(g);

	if (err)
		bail("no guest: %s", strerror(-err));
}

void guest_close(struct guest *g)
{
	if (g->run && g->run != MAP_FAILED)
		munmap(g->run, g->info.run_size);
	if (g->mem && g->mem != MAP_FAILED)
		munmap(g->mem, sizeof(*g->mem));
	if (g->fd >= 0)
		close(g->fd);
	if (g->dev >= 0)
		close(g->dev);
}

int guest_get_state(struct guest *g, struct dune_state *s)
{
	memset(s, 0, sizeof(*s));
	s->size = sizeof(*s);
	return raw_syscall(SYS_ioctl, g->fd, DUNE_GET_STATE, (long)s, 0, 0, 0);
}

int guest_set_state(struct guest *g, struct dune_state *s)
{
	return raw_syscall(SYS_ioctl, g->fd, DUNE_SET_STATE, (long)s, 0, 0, 0);
}

int guest_run(struct guest *g)
{
	return raw_syscall(SYS_ioctl, g->fd, DUNE_RUN, 0, 0, 0, 0);
}

int guest_run_to_exit(struct guest *g)
{
	int err;

	/* After an error, the exit reason is that of the run before. */
	do
		err = guest_run(g);
	while (err == -EINTR || (!err && g->run->exit_reason == DUNE_EXIT_INTR));
	return err;
}

void guest_first_exit(struct guest *g, u64 (*fn)(void *arg), u64 arg)
{
	int err;

	guest_prepare(g, 0, fn, (void *)arg);
	err = guest_run_to_exit(g);
	if (err)
		bail("DUNE_RUN: %s", strerror(-err));
}

void guest_prepare_code(struct guest *g, const void *rip)
{
	struct dune_regs *r = &g->run->regs;
	u64 *sp = (u64 *)(g->mem->stack + sizeof(g->mem->stack));

	memset(r, 0, sizeof(*r));
	r->rip = (u64)rip;
	r->rsp = (u64)sp;
	r->rflags = X86_EFLAGS_FIXED;
	g->slow = 0;
	g->restarts = 0;
	g->intrs = 0;
	g->faults = 0;
	g->error = 0;
}

void guest_prepare(struct guest *g, unsigned int ring, u64 (*fn)(void *arg), void *arg)
{
	struct dune_state s = g->state;

	if (ring == 3) {
		s.cpl = 3;
		s.cs = segment(GUEST_CS3, DESC_CODE64_3, 0);
		s.ss = segment(GUEST_SS3, DESC_DATA_3, 0);
		s.lstar = (u64)guest_lstar3;
	}
	int err = guest_set_state(g, &s);

	if (err)
		bail("DUNE_SET_STATE: %s", strerror(-err));
	guest_prepare_code(g, ring == 3 ? guest_start3 : guest_start0);
	g->run->regs.rbx = (u64)fn;
	g->run->regs.rdi = (u64)arg;
}

/*
 * Access the faulting address in user mode, so that the stack grows or Linux
 * sends the signal. An instruction fetch or a guest-physical address cannot be
 * accessed in this way: send SIGSEGV.
 */
static void touch(const struct dune_run *run)
{
	u8 *p = (u8 *)run->fault_address;

	if (run->fault_flags & (DUNE_FAULT_EXEC | DUNE_FAULT_GUEST))
		raw_syscall(SYS_kill, raw_syscall(SYS_getpid, 0, 0, 0, 0, 0, 0), SIGSEGV,
			    0, 0, 0, 0);
	else if (run->fault_flags & DUNE_FAULT_WRITE)
		asm volatile("lock orb $0, (%0)" : : "r"(p) : "memory", "cc");
	else
		(void)*(volatile u8 *)p;
}

/* Make one system call for the guest, or continue one that was interrupted. */
static long serve(struct guest *g)
{
	struct dune_regs *r = &g->run->regs;
	long nr = r->rax;

	g->slow++;
	if (g->run->restart) {
		g->restarts++;
		if (g->run->restart == ERESTART_RESTARTBLOCK)
			nr = SYS_restart_syscall;
	}
	return raw_syscall(nr, r->rdi, r->rsi, r->rdx, r->r10, r->r8, r->r9);
}

/* After DUNE_EXIT_HOSTCALL: what the guest says by it, with g->value, and g->frame of a trap. */
static enum guest_end guest_hostcall(struct guest *g)
{
	g->value = g->run->regs.rdi;
	switch (g->run->regs.rax) {
	case GUEST_CALL_DONE:
		return GUEST_DONE;
	case GUEST_CALL_TRAP:
		g->frame = (struct guest_frame *)g->value;
		return GUEST_TRAP;
	case GUEST_CALL_ASK:
		return GUEST_ASK;
	}
	return GUEST_EXIT;
}

enum guest_end guest_resume(struct guest *g)
{
	struct dune_run *run = g->run;

	for (;;) {
		g->error = guest_run(g);
		/* A signal that came before the guest was entered. */
		if (g->error == -EINTR)
			continue;
		if (g->error)
			return GUEST_ERROR;
		switch (run->exit_reason) {
		case DUNE_EXIT_INTR:
			g->intrs++;
			break;
		case DUNE_EXIT_SYSCALL:
			run->regs.rax = serve(g);
			break;
		case DUNE_EXIT_FAULT:
			g->faults++;
			touch(run);
			break;
		case DUNE_EXIT_HOSTCALL:
			return guest_hostcall(g);
		default:
			return GUEST_EXIT;
		}
	}
}

u64 guest_load(void *address)
{
	return *(volatile u64 *)address;
}

u64 guest_return(void *value)
{
	return (u64)value;
}

enum guest_end guest_call(struct guest *g, u64 (*fn)(void *arg), void *arg)
{
	guest_prepare(g, 0, fn, arg);
	return guest_resume(g);
}

enum guest_end guest_call3(struct guest *g, u64 (*fn)(void *arg), void *arg)
{
	guest_prepare(g, 3, fn, arg);
	return guest_resume(g);
}

const char *guest_end_name(struct guest *g, enum guest_end end)
{
	static const char *const reasons[] = {
		[DUNE_EXIT_NONE] = "none",
		[DUNE_EXIT_INTR] = "intr",
		[DUNE_EXIT_SYSCALL] = "syscall",
		[DUNE_EXIT_HOSTCALL] = "hostcall",
		[DUNE_EXIT_FAULT] = "fault",
		[DUNE_EXIT_HLT] = "hlt",
		[DUNE_EXIT_SHUTDOWN] = "shutdown",
		[DUNE_EXIT_INVALID] = "invalid",
		[DUNE_EXIT_UNKNOWN] = "unknown",
	};
	static char text[120];
	u32 reason;

	switch (end) {
	case GUEST_DONE:
		snprintf(text, sizeof(text), "returned %#lx", g->value);
		break;
	case GUEST_ASK:
		snprintf(text, sizeof(text), "asked %#lx", g->value);
		break;
	case GUEST_TRAP:
		snprintf(text, sizeof(text), "exception %lu error %#lx at %#lx",
			 g->frame->vector, g->frame->error, g->frame->rip);
		break;
	case GUEST_EXIT:
		reason = g->run->exit_reason;
		snprintf(text, sizeof(text), "exit %s at %#lx, hardware code %#llx, %#llx, %#llx",
			 reason < sizeof(reasons) / sizeof(reasons[0]) ? reasons[reason] : "?",
			 (u64)g->run->regs.rip, g->run->hw_exit,
			 g->run->hw_info1, g->run->hw_info2);
		break;
	case GUEST_ERROR:
		snprintf(text, sizeof(text), "DUNE_RUN: %s", strerror(-g->error));
		break;
	}
	return text;
}

/* CPUID: OSXSAVE, without which XGETBV is not an instruction. */
u64 read_xcr0(void)
{
	u32 eax, ebx, ecx, edx, low, high;

	__cpuid(1, eax, ebx, ecx, edx);
	if (!(ecx & bit_OSXSAVE))
		return 0;
	asm volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
	return (u64)high << 32 | low;
}
