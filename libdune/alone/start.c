// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * The start of a runtime in private memory: what the native start reads (struct dune_image_head),
 * and the first function that ring 0 executes.
 */
#include <dune_runtime.h>
#include "place.h"
#include "alone.h"
#include "start_state.h"

/* The linker's names of the parts of the image (run/image.ld). */
#define HIDDEN __attribute__((visibility("hidden")))
extern const u8 dune_constants_end[] HIDDEN, dune_code_end[] HIDDEN, dune_data_end[] HIDDEN;
extern const u8 dune_small_start[] HIDDEN, dune_small_end[] HIDDEN, dune_image_end[] HIDDEN;

struct dune_process dune_process __attribute__((section("dune_early.process")));
static struct dune_start dune_start __attribute__((section("dune_early.start")));
static struct dune_thread first_block
	__attribute__((section(".bss.dune_block"))) __aligned(BLOCK_SIZE);

/* Pages of the ring-0 stack that each process has from the start. */
#define STACK_PAGES	2

static void __noreturn start(u64 stub, u64 strings, u64 counts, u64 name, u64 secure, u64 vcpu);

const struct dune_image_head dune_image_head __attribute__((section("dune_head"), used)) = {
	.constants = { DUNE_IMAGE_BASE, (u64)dune_constants_end, DUNE_PTE_NX },
	.code = { (u64)dune_constants_end, (u64)dune_code_end, 0 },
	.data = { (u64)dune_code_end, (u64)dune_data_end, DUNE_PTE_W | DUNE_PTE_NX },
	.zero = {
		{ (u64)dune_small_start, (u64)dune_small_end, DUNE_PTE_W | DUNE_PTE_NX },
		{ (u64)&first_block, (u64)&first_block + PAGE, DUNE_PTE_W | DUNE_PTE_NX },
		{ (u64)&first_block + RING0_STACK_TOP - STACK_PAGES * PAGE,
		  (u64)&first_block + RING0_STACK_TOP, DUNE_PTE_W | DUNE_PTE_NX },
	},
	.end = (u64)dune_image_end,
	.start = (u64)&dune_start,
	.lstar = { (u64)dune_lstar_svm, (u64)dune_lstar_vmx },
	.state = {
		.size = sizeof(struct dune_state),
		.cs = { KERNEL_CS, SEG_ATTR_CODE, ~0U, 0 },
		.ss = { KERNEL_SS, SEG_ATTR_DATA, ~0U, 0 },
		.gs = { .base = (u64)&first_block },
		.tr = { TSS_SEL, SEG_ATTR_TSS, TSS_LIMIT, (u64)&first_block.tss },
		.gdtr = { .base = (u64)first_block.gdt, .limit = sizeof(first_block.gdt) - 1 },
		.idtr = { .base = (u64)dune_process.idt, .limit = sizeof(dune_process.idt) - 1 },
		.star = STAR,
		.sfmask = SFMASK,
	},
	.regs = {
		.rip = (u64)start,
		/* as after the CALL of a function */
		.rsp = (u64)&first_block + RING0_STACK_TOP - 8,
		.rflags = RFLAGS_RING0,
	},
};

static void init_block(struct dune_thread *t)
{
	t->self = t;
	t->ring0_top = (u64)t + RING0_STACK_TOP;
	t->last_table = NO_LAST_TABLE;
	t->altstack.flags = SS_DISABLE;
	dune_gdt_init(t);
}

/*
 * Records the signals that the process ignores, and gives the kernel the handlers of those that
 * probes of memory raise, and the stack for them. No other signal has a handler when a runtime
 * starts. All signals are blocked meanwhile: the last call here sets the old mask again, and after
 * it a second signal would overwrite the first one in the run page.
 */
static void take_signals(struct dune_thread *t)
{
	static const int probes[] = { SIGSEGV, SIGBUS };
	const struct ksigaction ign = { .handler = SIG_IGN }, action = {
		dune_process.handler, SA_SIGINFO | SA_ONSTACK | SA_RESTORER,
		dune_process.restorer, ~0ULL,
	};
	u64 mark = dune_copies_mark(), mask = 0, ignored, i;
	struct {
		u64 sp, flags, size;
	} stack = { t->frames, 0, t->frames_end - t->frames };
	long err;

	dune_alone_set_mask(~0ULL, &mask);
	err = dune_alone_call(__NR_sigaltstack, dune_alone_show(&stack, sizeof(stack)), 0, 0, 0);
	dune_copies_release(mark);
	ignored = dune_hypercall(DUNE_IGNORED_SIGNALS, 0, 0, 0, 0, 0, 0);
	for (; ignored; ignored &= ignored - 1)
		dune_set_action(&dune_process.sighand, __builtin_ctzll(ignored) + 1, &ign);
	for (i = 0; i < sizeof(probes) / sizeof(probes[0]) && !err; i++)
		err = dune_alone_action(probes[i], &action, NULL);
	if (err)
		dune_alone_fatal("the kernel refuses a handler of signals", err, SIGABRT);
	dune_process.imported = 1;
	dune_alone_set_mask(mask, NULL);
}

static void init_process(const struct dune_start *s)
{
	struct dune_process *p = &dune_process;

	p->info = s->info;
	dune_granule_init(s->info.granules);
	p->have_1g = s->have_1g;
	p->private_gpa = s->private_gpa;
	p->root = table_at(s->root);
	dune_idt_init(s->info.features & DUNE_FEATURE_SMAP ? dune_stubs_alone_smap :
							     dune_stubs_alone);
	p->flags = DUNE_ENTER_SMAP | DUNE_ENTER_RING3_SIGNALS;
	p->handler = s->stub + DUNE_STUB_SIGNAL;
	p->handler_flags = SA_ONSTACK;
	/* The kernel wants one. Nothing returns there. */
	p->restorer = p->handler;
	p->own.next = s->spare;
	p->own.spare = s->spares;
	p->tables = s->tables;
	dune_trap_table[VEC_SIGNAL] = dune_alone_signal;
	dune_trap_table[VEC_NESTED] = dune_alone_fault;
	p->ready = 1;
}

static void init_thread(struct dune_thread *t, const struct dune_start *s)
{
	t->vcpu = s->vcpu;
	t->root = dune_process.root;
	t->run = table_at(s->run);
	t->sighand = &dune_process.sighand;
	t->frames = s->frames;
	t->frames_end = s->frames_end;
	t->copies.window = table_at(s->window);
	t->copies.window_shown = s->stub + PAGE;
	t->copies.scratch = (u8 *)DUNE_SCRATCH_AT;
	t->copies.scratch_shown = s->scratch;
	dune_private_map(DUNE_SCRATCH_AT, s->scratch, DUNE_SCRATCH_SIZE);
	dune_process.threads = t;
}

void dune_runtime_refuse(u64 base, size_t size)
{
	dune_process.super_base = base;
	dune_process.super_size = size;
}

void dune_runtime_close(void)
{
	dune_self()->copies.start_mark = dune_copies_mark();
	if (!(dune_process.info.features & DUNE_FEATURE_SMAP))
		return;
	__asm__ volatile("clac" : : : "memory", "cc");
	dune_process.smap = 1;
}

/*
 * Memory of the process can be accessed from here on. dune_process.smap is still 0, so that
 * copy.S leaves AC as it is, while the entries of exceptions clear it and IRET restores it.
 */
static void open_memory(void)
{
	if (dune_process.info.features & DUNE_FEATURE_SMAP)
		__asm__ volatile("stac" : : : "memory", "cc");
}

/* After an execve: sets the members whose values differ from those of the first process. */
static void begin_again(struct dune_start *s, u64 stub)
{
	s->scratch += stub - s->stub;
	s->frames += stub - s->stub;
	s->frames_end += stub - s->stub;
	s->stub = stub;
	s->image = 0;
	s->image_end = 0;
	s->stack = NULL;
}

/*
 * Ring 0 begins here, at the top of the ring-0 stack. The arguments are those of an execve, as
 * <linux/dune.h> lists them (DUNE_STUB_TEMPLATE); in the first process they are 0.
 */
static void __noreturn start(u64 stub, u64 strings, u64 counts, u64 name, u64 secure, u64 vcpu)
{
	struct dune_start *s = &dune_start;
	struct dune_thread *t = &first_block;

	if (stub) {
		begin_again(s, stub);
		s->strings = strings;
		s->argc = (u32)counts;
		s->envc = counts >> 32;
		s->name = name;
		s->secure = secure;
		s->vcpu = vcpu;
	}
	init_block(t);
	init_process(s);
	init_thread(t, s);
	/* The native start has checked the vendor. */
	if (dune_alone_choose_calls(s->info.vendor))
		__builtin_trap();
	take_signals(t);
	t->migrations = -1;
	dune_alone_look_at_cpu(t);
	open_memory();
	dune_runtime_main(s);
}
