/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * What the files of libdune have from each other, in the order of the story:
 * entering, host half, traps, system calls, signals, memory.
 *
 * "guest" and "host" tell on which side of the hypercall a function runs.
 */
#ifndef LIBDUNE_INTERNAL_H
#define LIBDUNE_INTERNAL_H

#include "thread.h"
#include "hypercall.h"

/* thread.c: blocks and vCPUs; outside the guest */
struct dune_thread *dune_thread_new(void);
void dune_thread_free(struct dune_thread *t);
long dune_device_open(void);
long dune_vcpu_open(struct dune_thread *t, long dev);
long dune_vcpu_renew(struct dune_thread *t);

/* A vCPU's descriptor that came by execve, for dune_enter() to use; -1: none */
extern int dune_vcpu_inherited;

/* hypercall.c: addresses in the code that has the vendor's hypercalls */
struct dune_calls {
	const char *lstar, *lstar_call, *lstar_popf, *lstar_end;
	const char *forward_call, *forward_tf_call;
};

extern const struct dune_calls *dune_calls;
extern long (*dune_forward_tf)(struct dune_tf *tf, long nr);
int dune_calls_choose(u32 vendor);

/* gdt.c */
void dune_gdt_init(struct dune_thread *t);
void dune_gdt_set_cpu(struct dune_thread *t);
void dune_idt_init(void);
void dune_state_init(struct dune_thread *t, struct dune_state *s);
void dune_state_move(struct dune_thread *t, struct dune_state *s);

/* host_entry.S: host */
long dune_host_switch(struct dune_thread *t, struct dune_run *run);
void dune_host_start(struct dune_thread *t) __noreturn;
long dune_host_syscall(struct dune_thread *t, long nr, long a0, long a1,
		       long a2, long a3, long a4, long a5);
long dune_host_clone(struct dune_thread *t, long nr, long a0, long a1, long a2,
		     long a3, long a4);
long dune_host_probe_read(const void *p);
long dune_host_probe_write(void *p);
void dune_host_restorer(void);
extern const char dune_host_abort_begin[], dune_host_abort_insn[];
extern const char dune_host_abort_done[], dune_host_abort[];
extern const char dune_host_clone_begin[], dune_host_clone_insn[];
extern const char dune_host_probe_read_insn[], dune_host_probe_write_insn[];
extern const char dune_host_probe_fail[];

/* host.c: host */
void dune_host_loop(struct dune_thread *t) __noreturn;
void dune_host_fatal(struct dune_thread *t, const char *what, int sig)
	__noreturn;
void dune_host_die(int sig) __noreturn;

/* text.c: append to a line; the new length */
u64 dune_text(char *to, u64 n, const char *s);
u64 dune_text_hex(char *to, u64 n, u64 v);
u64 dune_text_number(char *to, u64 n, u32 v);

/* host_fault.c: host */
void dune_host_fault(struct dune_thread *t);
void dune_host_no_granule(struct dune_thread *t, u64 va);
void dune_host_no_pages(struct dune_thread *t, u64 va);
int dune_host_readable(struct dune_thread *t, const void *p, size_t n);

/* host_signal.c: host */
void dune_host_handler(int sig, struct ksiginfo *info, struct kucontext *uc);
long dune_host_install(int sig, const struct ksigaction *act);
void dune_host_import(void);
void dune_host_clear(struct dune_sighand *sh);
void dune_host_send_held(struct dune_thread *t);
void dune_host_before_exec(struct dune_thread *t, int undo);
void dune_real_action(int sig, const struct ksigaction *act,
		      struct ksigaction *real);

/* host_process.c: host */
long dune_host_fork(struct dune_thread *t, struct dune_clone *c);
void dune_host_child(struct dune_thread *t) __noreturn;

/* entry.S: guest */
extern const char dune_stubs[], dune_stubs_smap[], dune_tf_resume[];
long dune_ring3_enter(const struct dune_tf *tf);
extern dune_syscall_fn dune_syscall_handler;

/* trap.c: guest */
extern dune_trap_fn dune_trap_table[VEC_GATES];
void dune_bad_stack(void) __noreturn;
void dune_die(int sig) __noreturn;
int dune_pf_early(u64 address);
int dune_trap_saves_fpu(u64 vector);

/* syscall.c: guest */
extern const u64 dune_special[SYSCALL_MAX / 64];

/*
 * Around plain accesses of ring 0 to memory that ring 3 can reach, as copy.S
 * makes them for itself: SMAP makes such accesses fault outside (SDM volume 3,
 * 4.6.1). The addresses must have been checked.
 */
ALWAYS_INLINE void user_access_begin(void)
{
	if (dune_process.smap)
		__asm__ volatile("stac" : : : "memory", "cc");
}

ALWAYS_INLINE void user_access_end(void)
{
	if (dune_process.smap)
		__asm__ volatile("clac" : : : "memory", "cc");
}

/* copy.S: guest */
long dune_probe_write(void *p);
long dune_xrstor(const void *p, u64 features);
long dune_fxrstor(const void *p);
extern const char dune_copy_insn[], dune_copy_fail[];
extern const char dune_probe_insn[], dune_probe_fail[];
extern const char dune_xrstor_insn[], dune_xrstor_fail[];
extern const char dune_fxrstor_insn[], dune_fxrstor_fail[];

/* fixup.c: either side; where to go on after a fault at rip, or 0 */
u64 dune_fixup(u64 rip);

/* fpu.c: guest */
u32 dune_fpu_size(void);
u64 dune_fpu_features(void);
void dune_fpu_save(void *area);

/* signal.c: guest */
void dune_signal_irq(struct dune_tf *tf);
void dune_signal_fault(struct dune_tf *tf, int sig, int code, u64 addr);
long dune_sys_sigaction(struct dune_tf *tf);
long dune_sys_sigaltstack(struct dune_tf *tf);
void dune_sys_sigreturn(struct dune_tf *tf);

/* sigframe.c: guest */
struct dune_sigreturn {
	struct kucontext uc;
	u64 frame;		/* where it was found */
};

int dune_sigframe_push(struct dune_thread *t, struct dune_tf *tf,
		       const struct dune_sigentry *e);
int dune_sigframe_read(struct dune_tf *tf, struct dune_sigreturn *sr);
int dune_sigframe_restore(struct dune_thread *t, struct dune_tf *tf,
			  const struct dune_sigreturn *sr);

/* altstack.c: guest */
u32 dune_altstack_flags(const struct dune_thread *t, u64 rsp);
long dune_set_altstack(struct dune_thread *t, const struct kstack *to, u64 rsp);

/* process.c: guest */
long dune_sys_clone(struct dune_tf *tf);
long dune_sys_arch_prctl(struct dune_tf *tf);

/* fd.c: guest */
long dune_sys_fd(struct dune_tf *tf);

/* page.c */
void dune_page_init(const struct dune_config *cfg);
int dune_page_touch(dune_pte *root);
void *dune_page_take(unsigned int count, int *dirty);
int dune_in_arena(const void *p);
u64 dune_page_bytes(void);

/* pgtable.c */
void dune_pt_init(int have_1g);
dune_pte *dune_pt_new(void);
int dune_pt_touch(dune_pte *root, u64 va);
int dune_pt_touch_reserved(u64 first, u64 last, dune_pte *pages, u32 count);
int dune_pt_touch_core(dune_pte *root);
u64 dune_pt_state(const dune_pte *root);
u64 dune_pt_bytes(void);

/* tlb.c: guest */
void dune_tlb_is_clean(void);

/* granule.c: guest-physical addresses where they are not the process's own */
#define NO_GPA		(~0ULL)

void dune_granule_init(u32 granules);
u64 dune_granule_gpa(u64 va);
u64 dune_granule_va(u64 gpa);
long dune_granule_tell_all(int vcpu);
long dune_granule_tell(int vcpu, u64 gpa);
int dune_granule_touch(dune_pte *root);

/* NO_GPA: no granule is left */
ALWAYS_INLINE u64 to_gpa(u64 va)
{
	return likely(!dune_process.granules) ? va : dune_granule_gpa(va);
}

/* Of an address that to_gpa() returned. */
ALWAYS_INLINE u64 to_va(u64 gpa)
{
	return likely(!dune_process.granules) ? gpa : dune_granule_va(gpa);
}

ALWAYS_INLINE u64 rdmsr(u32 msr)
{
	u32 lo, hi;

	__asm__ volatile("rdmsr" : "=a" (lo), "=d" (hi) : "c" (msr));
	return (u64)hi << 32 | lo;
}

ALWAYS_INLINE void wrmsr(u32 msr, u64 v)
{
	__asm__ volatile("wrmsr" : : "c" (msr), "a" ((u32)v), "d" ((u32)(v >> 32)));
}

#define MSR_FS_BASE		0xc0000100
#define MSR_GS_BASE		0xc0000101
#define MSR_KERNEL_GS_BASE	0xc0000102

/* User addresses of Linux with 4-level tables end a page below 2^47. */
#define USER_END		0x7ffffffff000ULL

#endif /* LIBDUNE_INTERNAL_H */
