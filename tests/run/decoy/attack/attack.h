/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * A program in the sandbox that tries to make the kernel touch the decoy: in each
 * case a process makes some hundred system calls, all chosen by a seed, with
 * addresses in the decoy or right below it wherever a word may be one. It knows
 * kinds of calls, but nothing of what run/ checks.
 *
 * In the sandbox without checks (../unchecked/unchecked.h) there is no decoy: super_base is that of
 * the real supervisor range, and addresses of the runtime in private memory come as often. Many
 * calls are raw.
 *
 *	cases.c		the cases, one process each: read this first
 *	values.c	values that the seed chooses: numbers, addresses, structures, names
 *	files.c		descriptors of all kinds
 *	calls.c		any call of syscalls.def
 *	commands.c	ioctl, socket options, and other calls with many meanings
 *	messages.c	vectors and messages
 *	processes.c	clone, execve, and the end of a process
 *	images.c	signal frames and images of programs
 *	memory.c	memory policy
 *	findings.c	looks for descriptors and mappings that must not be in reach
 */
#ifndef DUNE_DECOY_ATTACK_H
#define DUNE_DECOY_ATTACK_H

#include "decoy.h"
#include "kinds.h"
#include "unchecked.h"
#include "x86.h"

#include <stddef.h>
#include <sys/uio.h>

#define LOW_SIZE	(16UL << 20)	/* the program's, right below the supervisor range */
#define LOW_BASE	(super_base - LOW_SIZE)
#define POOL_SIZE	(1UL << 20)

/* values.c */
extern char *pool;	/* memory for structures, used again and again */

/* Begin the sequence of choices; the same seed gives the same. */
void choose_from(u64 seed);
u64 any(void);
u64 below(u64 n);
bool one_in(u64 n);
#define PICK(array) ((array)[below(ARRAY_LEN(array))])

u64 in_decoy(void);
/* An address right below the supervisor range: an object there may reach into it. */
u64 below_range(void);
u64 number(void);
/* @size bytes of the pool. */
void *take(size_t size);
/* Write a structure of so many words. */
void fill(u64 *to, size_t words);
/* A structure at some depth; now and then one that ends at the supervisor range. */
u64 buffer(void);
u64 name(void);
u64 pointer(void);
/* An argument that is no pointer, in most cases. */
u64 value(void);

/* files.c: number 2 is where messages go */
extern int files[64], files_used;

void open_files(void);
void keep(int fd);
u64 file(void);
void do_fanotify(void);

/* findings.c */

/* The runtime is the one without checks. */
extern bool unchecked;

static inline u64 decoy_base(void)
{
	return super_base + STUB_SIZE;
}

/* Sets super_base and @unchecked. */
void find_range(void);
/* Looks for memory of the runtime without checks in what calls have returned. */
void scan_memory(void);
/* The numbers of devices that must not be in reach, before any case runs. */
void find_devices(void);
/* The seed that the following findings are of. */
void findings_of(u64 seed);
void found(const char *what, const char *detail, u64 n);
void scan_descriptors(void);
void scan_mappings(void);
void check_confined(const char *who);

/* Without libc: a child that shares memory has no thread-local storage. */
static inline long raw(long nr, u64 a, u64 b, u64 c, u64 d, u64 e, u64 f)
{
	register u64 r10 __asm__("r10") = d;
	register u64 r8 __asm__("r8") = e;
	register u64 r9 __asm__("r9") = f;
	long ret = nr;

	__asm__ volatile("syscall" : "+a" (ret)
			 : "D" (a), "S" (b), "d" (c), "r" (r10), "r" (r8), "r" (r9)
			 : "rcx", "r11", "memory");
	return ret;
}

#define RAW(nr, a, b, c) raw(nr, (u64)(a), (u64)(b), (u64)(c), 0, 0, 0)

/* calls.c */
/* The entry of syscalls.def for call @nr; the first one where it has none. */
const struct entry *entry_of(long nr);
/* A system call. Keeps the descriptor that it may have returned. */
long call(u64 nr, u64 a, u64 b, u64 c, u64 d, u64 e, u64 f);
/* A handler that does nothing. */
void tick(int sig);
/* A call that waits is interrupted soon, as often as it is called again. */
void keep_ticking(void);
void do_any(void);

/* commands.c */
void do_ioctl(void);
void do_option(void);
void do_command(void);

/* messages.c */
struct iovec *vector(u64 count);
void do_message(void);

/* processes.c */
extern const char *own_path;	/* of this program */

void nap(u64 microseconds);
void do_clone(void);
void do_exec(void);
void do_end(void);

/* images.c */
void do_signal(void);
void do_image(void);

/* memory.c */
void do_numa(void);
/* A kind of its own: takes memory and a while. */
void wide_move(void);

#endif /* DUNE_DECOY_ATTACK_H */
