// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * Every system call of the program arrives here, in ring 0, from libdune's
 * system-call entry. syscalls.def describes its arguments and what becomes of it:
 * it is forwarded to the kernel, passed to libdune, made by a function of dune-run, or
 * refused.
 */
#include "check.h"
#include "calls.h"
#include "copies.h"
#include "hidden.h"
#include "nospec.h"
#include "program.h"
#include "super_range.h"

/* How check_syscall() treats a number. */
enum call_how {
	CALL_UNKNOWN,	/* 0, refused: syscalls.def lacks the number */
	CALL_FORWARD,	/* forwarded, nothing to check */
	CALL_FUNCTION,	/* its function is called, nothing to check before */
	CALL_CHECK,	/* its arguments are checked; then as one of the two above */
	CALL_DENY,	/* refused */
};

/* One system call. The masks have bit i for argument i. */
struct call {
	void (*fn)(struct dune_tf *tf);
	u8 how;		/* enum call_how */
	u8 pointers;
	u8 buffers;
	u8 descriptors;
	u8 names;
	u8 ranges;
	u8 ints;	/* buffers whose length is an int */
	u8 item;	/* bytes of what a buffer's length counts */
	s16 error;	/* of CALL_DENY */
};

/* The letters of syscalls.def, a bit for each. */
#define KIND_V	0
#define KIND_P	1
#define KIND_B	2
#define KIND_F	4
#define KIND_N	8
#define KIND_R	16
#define KIND_A8	32
#define KIND_I	64
#define KIND_I6	128
#define KIND_I8	256
#define KIND_I12	512
#define KIND_ANY	1023	/* every kind but KIND_V */

/* The length is an int. */
#define KIND_INT	(KIND_I | KIND_I6 | KIND_I8 | KIND_I12)
/* The next argument is the length. */
#define KIND_SIZED	(KIND_B | KIND_R | KIND_A8 | KIND_INT)

#define BIT_IF(kind, kinds, i)	((kind) & (kinds) ? 1 << (i) : 0)

#define MASK(k, a, b, c, d, e, f)					\
	(BIT_IF(KIND_##a, k, 0) | BIT_IF(KIND_##b, k, 1) |		\
	 BIT_IF(KIND_##c, k, 2) | BIT_IF(KIND_##d, k, 3) |		\
	 BIT_IF(KIND_##e, k, 4) | BIT_IF(KIND_##f, k, 5))

/*
 * 0, after asserting what this file assumes about the arguments of a row. Bit 6 is after
 * the last argument.
 */
#define ASSERTED(a, b, c, d, e, f)	(0 * sizeof(struct {		\
	char unused;							\
	_Static_assert(!(MASK(KIND_SIZED, a, b, c, d, e, f) << 1 &	\
			 (MASK(KIND_ANY, a, b, c, d, e, f) | 1 << 6)),	\
		       "a length is the next argument, and a value");	\
	_Static_assert(MASK(KIND_N, a, b, c, d, e, f) < 3,		\
		       "a row has one name, which is argument 0 or 1");	\
	_Static_assert(!!MASK(KIND_B | KIND_I | KIND_R, a, b, c, d, e, f) +	\
		       !!MASK(KIND_I6, a, b, c, d, e, f) +		\
		       !!MASK(KIND_A8 | KIND_I8, a, b, c, d, e, f) +	\
		       !!MASK(KIND_I12, a, b, c, d, e, f) < 2,		\
		       "a row has items of one size");			\
}))

#define ENTRY(unchecked, function, a, b, c, d, e, f) {			\
	.fn = function,							\
	.how = MASK(KIND_ANY, a, b, c, d, e, f) ? CALL_CHECK : (unchecked),	\
	.pointers = MASK(KIND_P | KIND_N | KIND_SIZED, a, b, c, d, e, f),	\
	.buffers = MASK(KIND_SIZED, a, b, c, d, e, f),			\
	.descriptors = MASK(KIND_F, a, b, c, d, e, f),			\
	.names = MASK(KIND_N, a, b, c, d, e, f),			\
	.ranges = MASK(KIND_R, a, b, c, d, e, f),			\
	.ints = MASK(KIND_INT, a, b, c, d, e, f),			\
	.item = ASSERTED(a, b, c, d, e, f) +				\
		(MASK(KIND_I6, a, b, c, d, e, f) ? 6 :			\
		 MASK(KIND_A8 | KIND_I8, a, b, c, d, e, f) ? 8 :	\
		 MASK(KIND_I12, a, b, c, d, e, f) ? 12 : 1),		\
}

#define FORWARD(nr, name, a, b, c, d, e, f)				\
	[nr] = ENTRY(CALL_FORWARD, NULL, a, b, c, d, e, f),
#define LIBDUNE(nr, name, a, b, c, d, e, f)				\
	[nr] = ENTRY(CALL_FUNCTION, dune_syscall_pass, a, b, c, d, e, f),
#define FUNCTION(nr, name, function, a, b, c, d, e, f)			\
	[nr] = ENTRY(CALL_FUNCTION, function, a, b, c, d, e, f),
#define DENY(nr, name, err)						\
	[nr] = { .how = CALL_DENY, .error = -(err) },

static const struct call call_table[] = {
#include "syscalls.def"
};

long forward(struct dune_tf *tf)
{
	return dune_forward_tf(tf, tf->rax);
}

void refuse(struct dune_tf *tf, long err)
{
	tf->rax = err;
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
 * Whether the kernel can reach the supervisor range by the buffer that is argument @i, whose whole
 * length meets it. Of a length that is an int the kernel takes the lower half, and it refuses a
 * negative one before it touches the buffer. By any other buffer it transfers at most
 * TRANSFER_LIMIT bytes or items. A range of mappings counts whole.
 */
static bool reaches_super_range(const struct call *call, const struct dune_tf *tf, unsigned int i)
{
	u64 p = argument(tf, i), len = argument(tf, i + 1);

	if (call->ints >> i & 1)
		len = (int)len < 0 ? 0 : (u32)len;
	else if (!(call->ranges >> i & 1) && len > TRANSFER_LIMIT)
		len = TRANSFER_LIMIT;
	return meets_super_range(p, bytes_of(len, call->item));
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

		if (likely(!in_super_range(p) &&
			   (!(call->buffers >> i & 1) ||
			    !meets_super_range(p, bytes_of(argument(tf, i + 1), call->item)) ||
			    !reaches_super_range(call, tf, i))))
			continue;
		return call->ranges >> i & 1 ? -ENOMEM : -EFAULT;
	}
	for (todo = call->descriptors; todo; todo &= todo - 1)
		if (is_hidden(argument(tf, __builtin_ctz(todo))))
			return -EBADF;
	return 0;
}

/* Calls a function, and gives back the copies that it has made. */
static void call_function(const struct call *call, struct dune_tf *tf)
{
	u64 mark = dune_copies_mark();

	call->fn(tf);
	dune_copies_release(mark);
}

static inline void make_call(const struct call *call, struct dune_tf *tf)
{
	if (call->fn)
		call_function(call, tf);
	else
		dune_syscall_result(tf, forward(tf));
}

/* Make the call, with the program's own name where its argument is /proc/self/exe. */
static void make_named_call(const struct call *call, struct dune_tf *tf)
{
	u64 *name = call->names & 1 ? &ARG0(tf) : &ARG1(tf);
	u64 old = *name;

	if (likely(!names_program(old))) {
		make_call(call, tf);
		return;
	}
	*name = program_shown();
	make_call(call, tf);
	*name = old;
}

/* All calls that are not just forwarded. Not inline, to keep check_syscall() short. */
static __attribute__((noinline)) void check_call(const struct call *call, struct dune_tf *tf)
{
	if (call->how == CALL_CHECK) {
		long err = check_arguments(call, tf);

		if (unlikely(err))
			refuse(tf, err);
		else if (call->names)
			make_named_call(call, tf);
		else
			make_call(call, tf);
	} else if (call->how == CALL_FUNCTION) {
		call_function(call, tf);
	} else {
		refuse(tf, call->how == CALL_DENY ? call->error : -ENOSYS);
	}
}

void check_syscall(struct dune_tf *tf)
{
	u32 nr = (u32)tf->rax;

	if (unlikely(nr >= ARRAY_LEN(call_table))) {
		refuse(tf, -ENOSYS);
		return;
	}
	tf->rax = nr;
	nr = index_nospec(nr, ARRAY_LEN(call_table));
	if (likely(call_table[nr].how == CALL_FORWARD))
		dune_syscall_result(tf, forward(tf));
	else
		check_call(&call_table[nr], tf);
}
