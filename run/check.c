// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * Every system call of the program arrives here, in ring 0, from libdune's
 * system-call entry. syscalls.def describes its arguments and what becomes of it:
 * it is passed on to the kernel, to libdune or to a function of dune-run, or it
 * is refused.
 */
#include "run.h"
#include "calls.h"

/* struct call's how. 0 is a number that syscalls.def does not have: refused */
#define CALL_PLAIN	1	/* passed on, nothing to check */
#define CALL_DENY	2
#define CALL_CHECK	4	/* some argument needs a look */
#define CALL_FUNCTION	8

/* One system call. The masks have bit i for argument i. */
struct call {
	void (*fn)(struct dune_tf *tf);
	u8 how;
	u8 pointers;
	u8 buffers;
	u8 descriptors;
	u8 names;
	u8 ranges;
	u8 item;	/* bytes of what a buffer's length counts */
	s16 error;
};

#define KIND_V	0
#define KIND_P	1
#define KIND_B	2
#define KIND_F	4
#define KIND_N	8
#define KIND_R	16
#define KIND_A6	32
#define KIND_A8	64
#define KIND_A12	128
#define KIND_A	(KIND_A6 | KIND_A8 | KIND_A12)

#define BIT_IF(kind, kinds, i)	((kind) & (kinds) ? 1 << (i) : 0)

#define MASK(k, a, b, c, d, e, f)					\
	(BIT_IF(KIND_##a, k, 0) | BIT_IF(KIND_##b, k, 1) |		\
	 BIT_IF(KIND_##c, k, 2) | BIT_IF(KIND_##d, k, 3) |		\
	 BIT_IF(KIND_##e, k, 4) | BIT_IF(KIND_##f, k, 5))

#define ENTRY(kind, function, a, b, c, d, e, f) {			\
	.fn = function,							\
	.how = MASK(255, a, b, c, d, e, f) ? CALL_CHECK : (kind),	\
	.pointers = MASK(KIND_P | KIND_B | KIND_N | KIND_R | KIND_A,	\
			 a, b, c, d, e, f),				\
	.buffers = MASK(KIND_B | KIND_R | KIND_A, a, b, c, d, e, f),		\
	.descriptors = MASK(KIND_F, a, b, c, d, e, f),			\
	.names = MASK(KIND_N, a, b, c, d, e, f),			\
	.ranges = MASK(KIND_R, a, b, c, d, e, f),			\
	.item = MASK(KIND_A6, a, b, c, d, e, f) ? 6 :			\
		MASK(KIND_A8, a, b, c, d, e, f) ? 8 :			\
		MASK(KIND_A12, a, b, c, d, e, f) ? 12 : 1,		\
}

#define PASS(nr, name, a, b, c, d, e, f)				\
	[nr] = ENTRY(CALL_PLAIN, NULL, a, b, c, d, e, f),
#define OWN(nr, name, a, b, c, d, e, f)					\
	[nr] = ENTRY(CALL_FUNCTION, dune_syscall_pass, a, b, c, d, e, f),
#define CALL(nr, name, function, a, b, c, d, e, f)			\
	[nr] = ENTRY(CALL_FUNCTION, function, a, b, c, d, e, f),
#define DENY(nr, name, err)						\
	[nr] = { .how = CALL_DENY, .error = -(err) },

static const struct call table[] = {
#include "syscalls.def"
};

long forward(struct dune_tf *tf)
{
	return dune_forward_tf(tf, tf->rax);
}

void refuse(struct dune_tf *tf, long err)
{
	tf->rax = -err;
}

/* Argument @i; a buffer's length is the argument after it. */
static u64 argument(const struct dune_tf *tf, unsigned int i)
{
	static const u8 place[6] = {
		offsetof(struct dune_tf, rdi), offsetof(struct dune_tf, rsi),
		offsetof(struct dune_tf, rdx), offsetof(struct dune_tf, r10),
		offsetof(struct dune_tf, r8), offsetof(struct dune_tf, r9),
	};

	return *(const u64 *)((const u8 *)tf + place[i]);
}

/* The bytes of @count items; a product above 64 bits covers all addresses. */
static u64 bytes_of(u64 count, u64 item)
{
	u64 bytes;

	return __builtin_mul_overflow(count, item, &bytes) ? ~0UL : bytes;
}

/*
 * The checks that the masks demand. Returns 0 or what the call must return.
 * Pointers are tested before descriptors. The kernel does it the other way round
 * in most calls, but if both are wrong either answer is right.
 */
static long check_arguments(const struct call *call, const struct dune_tf *tf)
{
	u32 todo;

	for (todo = call->pointers; todo; todo &= todo - 1) {
		unsigned int i = __builtin_ctz(todo);
		u64 p = argument(tf, i);

		if (likely(!in_runtime(p) &&
			   (!(call->buffers >> i & 1) ||
			    !meets_runtime(p, bytes_of(argument(tf, i + 1),
						       call->item)))))
			continue;
		return call->ranges >> i & 1 ? -ENOMEM : -EFAULT;
	}
	for (todo = call->descriptors; todo; todo &= todo - 1)
		if (files_is_hidden(argument(tf, __builtin_ctz(todo))))
			return -EBADF;
	return 0;
}

/* The call's name argument is /proc/self/exe: use the program's own name. */
static void forward_program(const struct call *call, struct dune_tf *tf)
{
	u64 name = (u64)files_program();

	if (call->names & 1) {
		u64 theirs = ARG0(tf);

		ARG0(tf) = name;
		if (call->fn)
			call->fn(tf);
		else
			dune_syscall_result(tf, forward(tf));
		ARG0(tf) = theirs;
	} else {
		u64 theirs = ARG1(tf);

		ARG1(tf) = name;
		if (call->fn)
			call->fn(tf);
		else
			dune_syscall_result(tf, forward(tf));
		ARG1(tf) = theirs;
	}
}

/* All calls that need more than passing on. Not inline, to keep check_syscall() short. */
static __attribute__((noinline)) void check_call(const struct call *call, struct dune_tf *tf)
{
	if (call->how & CALL_CHECK) {
		long err = check_arguments(call, tf);

		if (unlikely(err)) {
			tf->rax = err;
			return;
		}
		if (call->names &&
		    unlikely(files_names_program(call->names & 1 ? ARG0(tf) : ARG1(tf)))) {
			forward_program(call, tf);
			return;
		}
	}
	if (!call->how)
		tf->rax = -ENOSYS;
	else if (call->how & CALL_DENY)
		tf->rax = (long)call->error;
	else if (call->fn)
		call->fn(tf);
	else
		dune_syscall_result(tf, forward(tf));
}

void check_syscall(struct dune_tf *tf)
{
	u32 nr = (u32)tf->rax;

	if (unlikely(nr >= ARRAY_LEN(table))) {
		refuse(tf, ENOSYS);
		return;
	}
	tf->rax = nr;
	nr = index_nospec(nr, ARRAY_LEN(table));
	if (likely(table[nr].how == CALL_PLAIN))
		dune_syscall_result(tf, forward(tf));
	else
		check_call(&table[nr], tf);
}
