/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * What the parts of dune-run share. Read main.c (start), elf.c (the program's
 * image), check.c with syscalls.def (every system call), and from there the file
 * whose function syscalls.def names for a call.
 *
 * dune-run and everything it allocates live in the supervisor range, a gigabyte
 * of the address space (protect.h) whose entry in the guest's page table is for
 * the supervisor only: the program in ring 3 cannot touch it. It remains to keep
 * the kernel from touching it on the program's behalf, which is the purpose of the
 * checks.
 * Two facts make them short:
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

#define ARENA_BASE	(RUNTIME_BASE + 0x10000000UL)
#define ARENA_SIZE	0x00100000UL	/* at first */
#define ARENA_LIMIT	0x10000000UL
#define VECTOR_BASE	(RUNTIME_BASE + 0x20000000UL)	/* exec.c: argv, envp */
#define STATS_BASE	(RUNTIME_BASE + 0x30000000UL)
#define USER_END	0x7ffffffff000UL		/* Linux's TASK_SIZE */
#define PAGE_BYTES	4096UL

#define PATH_BYTES	4096	/* PATH_MAX with its NUL */

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
size_t text_len(const char *s);
bool text_equal(const char *a, const char *b);
bool text_starts(const char *s, const char *prefix);
const char *text_last(const char *s, char c);
char *text_append(char *to, const char *end, const char *s);
char *text_number(char *to, const char *end, u64 value);
bool text_to_number(const char *s, const char **rest, u64 *value);
const char *text_errno(long err);
void say(const char *what, const char *detail, const char *advice);
void die(int status, const char *what, const char *detail, const char *advice)
	__attribute__((noreturn));

/* user.c: copies from and to the program's memory, which survive faults */
long user_read(void *to, u64 from, u64 len);
long user_write(u64 to, const void *from, u64 len);
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

long elf_probe(int fd);
long elf_load(int fd, struct image *image);

/* start.c: argument vector, auxiliary vector, memory areas */
struct start {
	u64 *argc;		/* what the kernel put on the stack */
	char **argv;
	char **envp;
	u64 *auxv;
	u64 *auxv_end;		/* after AT_NULL */
};

void start_find(struct start *s, u64 *stack);
u64 *start_aux(const struct start *s, u64 type);
u64 start_stack(struct start *s, unsigned int drop, const char *name,
		const struct image *image);
bool start_randomized(void);
long start_areas(const struct start *s, const struct image *image);
void start_guard_region(void);
void start_patch_vdso(const struct start *s);
void start_seal(void);

/* check.c: the checks of syscalls.def, and passing a call on */
void check_syscall(struct dune_tf *tf);
long forward(struct dune_tf *tf);
void refuse(struct dune_tf *tf, long err);

/* scratch.c: memory for copies of the program's structures */
void scratch_reset(void);
void *scratch_get(u64 bytes);

/* files.c: hidden descriptors, files that nobody may open */
enum hidden { HIDDEN_VCPU, HIDDEN_SELF, HIDDEN_STATS, HIDDEN_REPORT, HIDDEN_MAX };

/* the numbers that hidden descriptors have in one table of descriptors */
struct files_table {
	int hidden[HIDDEN_MAX];
};

void files_init(void);
long files_hide(enum hidden which, int fd);
int files_hidden(enum hidden which);
bool files_is_hidden(u64 fd);
bool files_is_self(int fd);
void files_save(struct files_table *to);
void files_restore(const struct files_table *from);
void files_set_program(int fd);
const char *files_program(void);
bool files_names_program(u64 path);

/* exec.c: one program becomes another */
long exec_program(int fd, u64 argv, u64 envp);
long exec_open(int dir, const char *path, u64 flags);
void exec_name(const char *name);
void exec_resume(const char *list, int *image);

/* mem.c */
void mem_after_vfork(void);

/* stats.c: counters of a tree of processes */
void stats_create(const char *file);
void stats_adopt(int memory, int report, bool to_file);
bool stats_to_file(void);
bool stats_mapped(void);
void stats_new_process(void);
void stats_end_process(void);
void stats_report(void);

#endif /* DUNE_RUN_H */
