/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Declarations shared by the parts of dune-run. Read main.c (start), elf.c (the program's
 * image), check.c with syscalls.def (every system call), and from there the file
 * whose function syscalls.def names for a call.
 *
 * dune-run and everything it allocates live in the supervisor range, a gigabyte
 * of the address space (protect.h) whose entry in the guest's page table is for
 * the supervisor only: the program in ring 3 cannot touch it. The checks keep the
 * kernel from touching it on the program's behalf. Two facts make them short:
 *
 * - The range begins with the guard region: GUARD_REGION_SIZE bytes that cannot be
 *   accessed. Reads and writes of the kernel in ascending order from an address
 *   below the range stop there with EFAULT, and so do those of a structure shorter
 *   than the guard region: for these only the start of the object is checked.
 * - A mapping call whose result would lie in the range is undone (mem.c), so the
 *   program never owns memory there.
 */
#ifndef DUNE_RUN_H
#define DUNE_RUN_H

#include <linux/errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <dune_runtime.h>

typedef uint8_t u8;
typedef uint16_t u16;
typedef int16_t s16;
typedef int32_t s32;
typedef uint32_t u32;
typedef uint64_t u64;

#include "protect.h"

/* main.c, from entry.S: @stack is as the kernel made it */
void run_main(uint64_t *stack) __attribute__((noreturn));

#define ARENA_BASE	(SUPER_BASE + 0x10000000UL)
#define ARENA_SIZE	0x00100000UL	/* at first */
#define ARENA_LIMIT	0x10000000UL
#define VECTOR_BASE	(SUPER_BASE + 0x20000000UL)	/* exec.c: argv, envp */
#define STATS_BASE	(SUPER_BASE + 0x30000000UL)
#define USER_END	0x7ffffffff000UL		/* Linux's TASK_SIZE */
#define PAGE_BYTES	4096UL
#define PAGE_DOWN(x)	((x) & ~(PAGE_BYTES - 1))
#define PAGE_UP(x)	PAGE_DOWN((x) + PAGE_BYTES - 1)

#define PATH_BYTES	4096	/* PATH_MAX with its NUL */
#define IOV_LIMIT	1024	/* the kernel's UIO_MAXIOV */

extern char _end[];	/* the linker's: end of dune-run's bss */

#define ARRAY_LEN(a)	(sizeof(a) / sizeof((a)[0]))
#define likely(x)	__builtin_expect(!!(x), 1)
#define unlikely(x)	__builtin_expect(!!(x), 0)

/* The arguments of a system call as they stand in the trap frame. */
#define ARG0(tf)	((tf)->rdi)
#define ARG1(tf)	((tf)->rsi)
#define ARG2(tf)	((tf)->rdx)
#define ARG3(tf)	((tf)->r10)
#define ARG4(tf)	((tf)->r8)
#define ARG5(tf)	((tf)->r9)

/* sys.c: system calls of dune-run itself, before and after entering */
long sys(long nr, u64 a0, u64 a1, u64 a2, u64 a3, u64 a4, u64 a5);

#define SYS0(nr)		sys(nr, 0, 0, 0, 0, 0, 0)
#define SYS1(nr, a)		sys(nr, (u64)(a), 0, 0, 0, 0, 0)
#define SYS2(nr, a, b)		sys(nr, (u64)(a), (u64)(b), 0, 0, 0, 0)
#define SYS3(nr, a, b, c)	sys(nr, (u64)(a), (u64)(b), (u64)(c), 0, 0, 0)
#define SYS4(nr, a, b, c, d)	\
	sys(nr, (u64)(a), (u64)(b), (u64)(c), (u64)(d), 0, 0)
#define SYS5(nr, a, b, c, d, e)	\
	sys(nr, (u64)(a), (u64)(b), (u64)(c), (u64)(d), (u64)(e), 0)
#define SYS6(nr, a, b, c, d, e, f)	\
	sys(nr, (u64)(a), (u64)(b), (u64)(c), (u64)(d), (u64)(e), (u64)(f))

/* string.c: the compiler's */
void *memcpy(void *to, const void *from, size_t n);
void *memset(void *to, int c, size_t n);

/* text.c: strings, and messages to people */

/* The number of characters before the NUL. */
size_t text_len(const char *s);
bool text_equal(const char *a, const char *b);
/* Whether @s begins with @prefix. */
bool text_starts(const char *s, const char *prefix);
/* The part of @s after the last @c, or all of it. */
const char *text_last(const char *s, char c);
/* Append @s at @to, cut off so that its NUL is before @end. Returns where the NUL is. */
char *text_append(char *to, const char *end, const char *s);
/* The same for @value as a decimal number. */
char *text_number(char *to, const char *end, u64 value);
/*
 * The decimal number of at most 18 digits at the beginning of @s. Stores where it
 * ends in @rest. Returns whether there is a digit; @value is 0 where there is none.
 */
bool text_to_number(const char *s, const char **rest, u64 *value);
/* The message of an error, positive or negative; valid until the next call. */
const char *text_errno(long err);
/* Print "dune-run: WHAT: DETAIL: ADVICE" to stderr; DETAIL and ADVICE may be NULL. */
void message(const char *what, const char *detail, const char *advice);
/* message(), then end the process with @status. Before and after entering. */
void die(int status, const char *what, const char *detail, const char *advice)
	__attribute__((noreturn));

/* user.c: copies from and to the program's memory, which survive faults */

/*
 * Copy @len bytes from the program's address @from (user_write: to @to). Returns 0,
 * or -EFAULT for an address in the supervisor range or outside of user memory, or one that
 * faults. May sleep.
 */
long user_read(void *to, u64 from, u64 len);
long user_write(u64 to, const void *from, u64 len);
/*
 * Copy a string with its NUL. Never touches the page after the one in which the
 * string ends. Returns its length, -EFAULT, or -ENAMETOOLONG when there is no
 * NUL in @size bytes.
 */
long user_string(char *to, u64 from, u64 size);

/* elf.c: the program's image */
struct image {
	u64 entry;		/* where to start: the interpreter's if any */
	u64 program_entry;	/* AT_ENTRY */
	u64 program_headers;	/* AT_PHDR */
	u64 header_count;	/* AT_PHNUM */
	u64 interpreter_base;	/* AT_BASE */
	u64 start_code, end_code, start_data, end_data;
	u64 brk;		/* end of bss, before it is randomized */
	bool has_interpreter;
	bool is_dynamic;	/* ET_DYN */
	bool stack_executable;
};

/* Whether dune-run can execute the file: 0, or the error that execve() would give. */
long elf_probe(int fd);
/* Map the program in @fd and its loader, after elf_probe() returned 0. 0 or -errno. */
long elf_load(int fd, struct image *image);

/* start.c: argument vector, auxiliary vector, memory areas */
struct start {
	u64 *argc;		/* what the kernel put on the stack */
	char **argv;
	char **envp;
	u64 *auxv;
	u64 *auxv_end;		/* after AT_NULL */

	/* start_stack()'s notes for what follows elf_load() */
	u64 arg_start, arg_end, env_start, env_end;
	/* values in the auxiliary vector; NULL: none */
	u64 *program_headers, *header_count, *interpreter_base, *program_entry;
};

/* Find the vectors on the stack that the kernel made. */
void start_find(struct start *s, u64 *stack);
/* The value of an auxiliary entry, for reading and writing; NULL: none. */
u64 *start_aux(const struct start *s, u64 type);
/*
 * Make argv[drop] the first argument, and @name the program's name in the auxiliary
 * vector. Returns the stack pointer. Before elf_load(): from then on the vectors and
 * strings are the program's, and the runtime reads them no more.
 */
u64 start_stack(struct start *s, unsigned int drop, const char *name);
/* Describe @image in the auxiliary vector. */
void start_describe(const struct start *s, const struct image *image);
/* Whether this process's addresses are random. Before start_areas(). */
bool start_randomized(void);
/* Set the kernel's record of the program's heap, arguments and other areas. 0 or -errno. */
long start_areas(const struct start *s, const struct image *image);
/* Map the guard region, or end the process. First of all. */
void start_guard_region(void);
/* Make the vDSO fit for the guest, or hide it. Before elf_load(), too. */
void start_patch_vdso(const struct start *s);
/*
 * Make data that does not change from now on read-only, or end the process: dune-run's
 * tables before elf_load(), and the rest, which dune_enter() still changes, after it.
 */
void start_seal_tables(void);
void start_seal(void);

/*
 * check.c: the checks of syscalls.def, and passing a call on.
 *
 * A function that handles a call (calls.h) ends in exactly one of these:
 * - refuse(): dune-run found the error; @err is positive (EFAULT);
 * - dune_syscall_result(): @tf gets what the kernel returned, which may be
 *   DUNE_AGAIN, or a result or negative error in its place;
 * - dune_syscall_pass() or dune_syscall_clone3(): libdune stores the result.
 * Other functions that can fail return a negative error.
 */

/* The handler of the program's system calls (dune_syscall_set()). */
void check_syscall(struct dune_tf *tf);
/* Make the call of @tf as it is. Returns the kernel's value, for dune_syscall_result(). */
long forward(struct dune_tf *tf);
void refuse(struct dune_tf *tf, long err);

/* scratch.c: memory for copies of the program's structures */
#define SCRATCH_BYTES	(160 * 1024)

/* Empty the pool, before the first copy that a call makes. */
void scratch_reset(void);
/* NULL when the pool has no room for it. */
void *scratch_get(u64 bytes);

/*
 * files.c: hidden descriptors, and files that the program must not open.
 *
 * The hidden descriptors. Those before HIDDEN_OWNED have a slot in the table;
 * libdune has the vCPU's descriptor.
 */
enum hidden {
	HIDDEN_SELF, HIDDEN_STATS, HIDDEN_REPORT, HIDDEN_OWNED, HIDDEN_VCPU = HIDDEN_OWNED
};

/* the numbers that hidden descriptors have in one table of descriptors */
struct files_table {
	int hidden[HIDDEN_OWNED];	/* -1: none */
};

/* To be called when the hidden descriptors have their numbers. */
void files_init(void);
/*
 * Hide @fd, which is not the vCPU's. It keeps its number if that is HIDDEN_FLOOR or
 * above (after execve), or if no such number is free. Returns its number.
 */
long files_hide(enum hidden which, int fd);
/* The descriptor, or -1. */
int files_hidden(enum hidden which);
/*
 * Whether @fd is one that the program must get EBADF for. Checks the low 32 bits, as
 * the kernel.
 */
bool files_is_hidden(u64 fd);
/* Whether this descriptor is still open, on dune-run's own file. */
bool files_is_self(int fd);
/* The record of hidden descriptors, around a vfork child. */
void files_save(struct files_table *to);
void files_restore(const struct files_table *from);
/* Record the program's file: what /proc/self/exe would name without dune-run. */
void files_set_program(int fd);
/* Its name; empty if it is not known. */
const char *files_program(void);
/*
 * Whether the string at @path is /proc/self/exe in one of its forms, and the name of
 * the program's file is known.
 */
bool files_names_program(u64 path);

/* exec.c: one program becomes another */

/*
 * Become the program or script that is open as @fd and was named by
 * exec_set_name(), with the vectors at @argv and @envp. Closes @fd. Returns only
 * with an error.
 */
long exec_program(int fd, u64 argv, u64 envp);
/* Open a file to execute it. Returns a descriptor, or the error that execve() would give. */
long exec_open(int dir, const char *path, u64 flags);
/* The name by which the next exec_program() was asked for. */
void exec_set_name(const char *name);
/* After execve: take over the descriptors of --tree=LIST; @image: the program's file. */
void exec_resume(const char *list, int *image);

/* mem.c: mapping calls, which must not reach the supervisor range */

/*
 * Called in the parent when a vfork child has ended: remove the mapping that a
 * killed child left in the supervisor range.
 */
void mem_after_vfork(void);

/* stats.c: counters of a tree of processes */

/* Begin to count; @file: where the report goes, NULL: to standard error. */
void stats_create(const char *file);
/* Take over the descriptors that execve passed on (exec.c). */
void stats_adopt(int memory, int report, bool to_file);
/* Whether the report goes to a file. */
bool stats_to_file(void);
/* Whether the page at STATS_BASE is mapped. */
bool stats_mapped(void);
/* In the parent, after a fork. */
void stats_new_process(void);
/* Around a fork() that copies this process's memory. */
void stats_before_copy(void);
void stats_after_copy(void);
/* The process ends, or its program does: add what its vCPU counted. */
void stats_end_process(void);
/* At the end of a process: write the sums, if it is the first one or they go to a file. */
void stats_report(void);

#endif /* DUNE_RUN_H */
