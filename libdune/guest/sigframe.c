// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * Signal frames on the program's stack, in the kernel's layout, since programs,
 * unwinders and debuggers read them (arch/x86/kernel/signal_64.c and
 * fpu/signal.c). From high to low addresses: red zone, FPU state (64-byte
 * aligned), siginfo, ucontext, address of the restorer, to which the handler
 * returns.
 *
 * A handler of ring 0 that interrupts ring 3 gets its frame on ring 0's own
 * stack, below the call of dune_ring3(), and ring 0's FS base.
 */
#include "guest.h"

#define UC_FP_XSTATE		1
#define UC_SIGCONTEXT_SS	2
#define UC_STRICT_RESTORE_SS	4

#define FP_XSTATE_MAGIC1	0x46505853U
#define FP_XSTATE_MAGIC2	0x46505845U
#define FP_SW_OFFSET		464
#define FP_SSE			3ULL

/* FXSAVE's area (APM vol. 2, 11.4.4), and the registers' initial values. */
#define FXSAVE_MXCSR		24
#define FCW_INITIAL		0x37f
#define MXCSR_INITIAL		0x1f80
#define MXCSR_RESERVED		0xffff0000

struct sigframe {
	u64 restorer;
	struct kucontext uc;
	struct ksiginfo info;
};

/* Linux's record in the bytes of FXSAVE's area that the processor leaves alone. */
struct fp_sw_bytes {
	u32 magic1;
	u32 extended_size;
	u64 features;
	u32 size;
	u32 padding[7];
};

/* Returns whether [at, at + n) can be written with the rights of the handler's ring. */
static bool writable(bool ring3, u64 at, u64 n)
{
	u64 page;

	if (at + n > USER_END || at + n < at)
		return false;
	if (ring3 && !dune_user_ok((void *)at, n))
		return false;
	if (dune_probe_write((void *)at))
		return false;
	for (page = (at & ~(PAGE - 1)) + PAGE; page < at + n; page += PAGE) {
		if (dune_probe_write((void *)page))
			return false;
	}
	return true;
}

/* Returns the top of the handler's stack. @sp: where it would be without an alternate one. */
static u64 stack_for(const struct dune_thread *t, u64 sp, const struct dune_sigentry *e)
{
	const struct kstack *alt = &t->altstack;

	if ((e->action.flags & SA_ONSTACK) && !dune_altstack_flags(t, sp))
		sp = alt->sp + alt->size;
	return sp;
}

/* Returns whether a frame from @frame to @top leaves the alternate stack. @sp: as above. */
static bool overflows(const struct dune_thread *t, u64 sp, u64 top, u64 frame)
{
	const struct kstack *alt = &t->altstack;

	if (!alt->size || (alt->flags & SS_AUTODISARM && top == sp))
		return false;
	if (top <= alt->sp || top - alt->sp > alt->size)
		return false;		/* not on it */
	return frame <= alt->sp;
}

static void save_fpu(u64 at, u64 size)
{
	struct fp_sw_bytes *sw = (void *)(at + FP_SW_OFFSET);
	u64 features = dune_fpu_features();

	dune_fpu_save((void *)at);
	memset(sw, 0, sizeof(*sw));
	if (!features)
		return;
	/* The handler may change these registers even if they were in their initial state. */
	*(u64 *)(at + FXSAVE_SIZE) |= FP_SSE;
	sw->magic1 = FP_XSTATE_MAGIC1;
	sw->extended_size = size + 4;
	sw->features = features;
	sw->size = size;
	*(u32 *)(at + size) = FP_XSTATE_MAGIC2;
}

static void save_regs(struct ksigcontext *mc, const struct dune_tf *tf,
		      const struct dune_sigentry *e)
{
	mc->r8 = tf->r8;
	mc->r9 = tf->r9;
	mc->r10 = tf->r10;
	mc->r11 = tf->r11;
	mc->r12 = tf->r12;
	mc->r13 = tf->r13;
	mc->r14 = tf->r14;
	mc->r15 = tf->r15;
	mc->rdi = tf->rdi;
	mc->rsi = tf->rsi;
	mc->rbp = tf->rbp;
	mc->rbx = tf->rbx;
	mc->rdx = tf->rdx;
	mc->rax = tf->rax;
	mc->rcx = tf->rcx;
	mc->rsp = tf->rsp;
	mc->rip = tf->rip;
	mc->rflags = tf->rflags & ~RFLAGS_IOPL;
	mc->cs = tf->cs;
	mc->ss = tf->ss;
	mc->err = e->error;
	mc->trapno = e->trapno;
	mc->oldmask = e->oldmask;
	mc->cr2 = e->cr2;
}

/* Loads the initial state of all components of @features, but @mxcsr as MXCSR. */
static void load_initial_state(u64 features, u32 mxcsr)
{
	u8 image[FXSAVE_SIZE + XSAVE_HEADER] __aligned(64);

	memset(image, 0, sizeof(image));
	*(u16 *)image = FCW_INITIAL;
	*(u32 *)(image + FXSAVE_MXCSR) = mxcsr;
	if (dune_fpu_features())
		dune_xrstor(image, features);
	else
		dune_fxrstor(image);
}

/* Makes @tf start the handler in ring 0, with ring 0's FS base and flags. */
static void go_to_ring0(struct dune_thread *t, struct dune_tf *tf, struct ksigcontext *mc)
{
	mc->reserved[0] = rdmsr(MSR_FS_BASE);
	wrmsr(MSR_FS_BASE, t->ring0_fs);
	tf->cs = KERNEL_CS;
	tf->ss = KERNEL_SS;
	tf->rflags = RFLAGS_RING0 | RFLAGS_IF;
	tf->rcx = 0;		/* differs from RIP: the entry leaves by IRET */
}

/* Changes @tf from a handler in ring 0 to the ring 3 that it interrupted. */
static void go_to_ring3(struct dune_tf *tf, const struct ksigcontext *mc)
{
	wrmsr(MSR_FS_BASE, mc->reserved[0]);
	tf->cs = USER_CS;
	tf->ss = USER_SS;
	tf->rflags &= ~(u64)RFLAGS_IOPL;
}

/*
 * Makes the frame for @e, and lets @tf start the handler. Returns -EFAULT if the frame
 * cannot be written or leaves the alternate stack, if the handler's address is not a
 * user address, or if the action has no restorer.
 */
int dune_sigframe_push(struct dune_thread *t, struct dune_tf *tf, const struct dune_sigentry *e)
{
	bool crosses = from_ring3(tf) && !(dune_process.flags & DUNE_ENTER_RING3_SIGNALS);
	u64 sp = (crosses ? t->leave_rsp : tf->rsp) - RED_ZONE;
	u64 top = stack_for(t, sp, e);
	u64 size = dune_fpu_size();
	u64 fpu = (top - size - 4) & ~63ULL;
	u64 at = ((fpu - sizeof(struct sigframe)) & ~15ULL) - 8;
	struct sigframe *f = (struct sigframe *)at;

	if (!(e->action.flags & SA_RESTORER) || e->action.handler >= USER_END ||
	    overflows(t, sp, top, at) ||
	    !writable(from_ring3(tf) && !crosses, at, top - at))
		return -EFAULT;

	user_access_begin();
	save_fpu(fpu, size);
	f->restorer = e->action.restorer;
	f->info = e->info;
	memset(&f->uc, 0, sizeof(f->uc));
	f->uc.flags = UC_SIGCONTEXT_SS | UC_STRICT_RESTORE_SS;
	if (dune_fpu_features())
		f->uc.flags |= UC_FP_XSTATE;
	f->uc.stack = t->altstack;
	f->uc.sigmask = e->oldmask;
	save_regs(&f->uc.mc, tf, e);
	f->uc.mc.fpstate = fpu;
	user_access_end();
	/* As in Linux, each handler starts with a fresh FPU (fpu__clear_user_states()). */
	load_initial_state(dune_fpu_features(), MXCSR_INITIAL);
	if (t->altstack.flags & SS_AUTODISARM)
		t->altstack = (struct kstack){ .flags = SS_DISABLE };

	tf->rdi = e->info.signo;
	tf->rsi = (u64)&f->info;
	tf->rdx = (u64)&f->uc;
	tf->rax = 0;
	tf->rip = e->action.handler;
	tf->rsp = at;
	tf->rflags &= ~(u64)(RFLAGS_DF | RFLAGS_RF | RFLAGS_TF);
	if (crosses)
		go_to_ring0(t, tf, &f->uc.mc);
	return 0;
}

/*
 * Returns whether ring 3 can continue with the segments of @uc. As Linux does, this ignores
 * the privilege level in the selectors, and all of SS unless it is to be restored strictly.
 */
static bool user_segments(const struct kucontext *uc)
{
	return (uc->mc.cs | 3) == USER_CS &&
	       (!(uc->flags & UC_STRICT_RESTORE_SS) || (uc->mc.ss | 3) == USER_SS);
}

/*
 * Copies what rt_sigreturn restores of the frame to @uc. Returns -EFAULT if no frame can be
 * read there, or if ring 3 would continue with other segments than its own or at an address
 * that is not a user address.
 */
int dune_sigframe_read(struct dune_tf *tf, struct kucontext *uc)
{
	/* The handler's RET has popped the restorer's address. */
	if (dune_get_user(tf, uc, tf->rsp, sizeof(*uc)))
		return -EFAULT;
	if (from_ring3(tf) && !user_segments(uc))
		return -EFAULT;
	if (((tf->cs | uc->mc.cs) & 3) && uc->mc.rip >= USER_END)
		return -EFAULT;
	return 0;
}

static long restore_fpu(const struct dune_tf *tf, u64 at)
{
	u64 features = dune_fpu_features(), size = dune_fpu_size();
	struct fp_sw_bytes sw;
	u32 magic2, mxcsr;

	if (!at) {
		load_initial_state(features, MXCSR_INITIAL);
		return 0;
	}
	if (from_ring3(tf) && !dune_user_ok((void *)at, size + 4))
		return -EFAULT;
	if (dune_copy(&sw, (void *)(at + FP_SW_OFFSET), sizeof(sw)))
		return -EFAULT;
	if (features && sw.magic1 == FP_XSTATE_MAGIC1 && sw.size == size &&
	    !dune_copy(&magic2, (void *)(at + size), 4) &&
	    magic2 == FP_XSTATE_MAGIC2)
		return dune_xrstor((void *)at, features);
	/* A frame with FXSAVE state only: all other components get their initial state. */
	if (features & ~FP_SSE) {
		if (dune_copy(&mxcsr, (void *)(at + FXSAVE_MXCSR), 4))
			return -EFAULT;
		if (mxcsr & MXCSR_RESERVED)
			return -EFAULT;
		load_initial_state(features & ~FP_SSE, mxcsr);
	}
	return dune_fxrstor((void *)at);
}

/*
 * Loads @tf, the FPU and the alternate stack from @uc. Returns -EFAULT if the FPU's state
 * cannot be read or is bad.
 */
int dune_sigframe_restore(struct dune_thread *t, struct dune_tf *tf, const struct kucontext *uc)
{
	const struct ksigcontext *mc = &uc->mc;
	long err = restore_fpu(tf, mc->fpstate);

	if (err)
		return err;
	tf->r8 = mc->r8;
	tf->r9 = mc->r9;
	tf->r10 = mc->r10;
	tf->r11 = mc->r11;
	tf->r12 = mc->r12;
	tf->r13 = mc->r13;
	tf->r14 = mc->r14;
	tf->r15 = mc->r15;
	tf->rdi = mc->rdi;
	tf->rsi = mc->rsi;
	tf->rbp = mc->rbp;
	tf->rbx = mc->rbx;
	tf->rdx = mc->rdx;
	tf->rax = mc->rax;
	tf->rcx = mc->rcx;
	tf->rsp = mc->rsp;
	tf->rip = mc->rip;
	tf->rflags = (tf->rflags & ~(u64)RFLAGS_USER) | (mc->rflags & RFLAGS_USER) | RFLAGS_IF;
	if (!from_ring3(tf) && (mc->cs & 3))
		go_to_ring3(tf, mc);
	dune_set_altstack(t, &uc->stack, tf->rsp);
	return 0;
}
