// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * The part of dune-run-decoy that dune-run does not have. Nothing of run/ is compiled
 * anew for it: the linker puts these functions around two of run/'s (--wrap).
 *
 * The decoy is private anonymous memory without a page. mincore() shows a page
 * that the kernel brought in, by copying from or to it as well as by pinning
 * it, which raises no fault. Like the runtime's own memory it ends with the
 * address space: what the kernel does to it while the last process leaves
 * is harmless and is not seen. decoy.bash and watch fail when a page of the decoy is
 * present after a system call.
 */
#include "areas.h"
#include "calls.h"
#include "check.h"
#include "copies.h"
#include "decoy.h"
#include "message.h"
#include "page.h"
#include "sys.h"
#include "user_memory.h"

#include <linux/mman.h>
#include <asm/unistd.h>
#include <linux/fcntl.h>

void __real_check_syscall(struct dune_tf *tf);
void __wrap_check_syscall(struct dune_tf *tf);
void __real_areas_init(u64 name, bool heap);
void __wrap_areas_init(u64 name, bool heap);

/* libdune/private/place.h */
void dune_private_map(u64 to, u64 from, u64 size);

/* Where ring 0 finds the log: after the scratch. */
#define LOG_AT	(DUNE_SCRATCH_AT + 0x40000)

static struct decoy_log *record;

/*
 * mlockall() brings in all memory, which is no finding. A vfork child that is killed in it leaves
 * this set, for its parent.
 */
static bool locking;

/* The process that executed this image. */
static u32 first_process;

void __wrap_areas_init(u64 name, bool heap)
{
	long fd = sys_openat(AT_FDCWD, LOG_FILE, O_RDWR | O_CLOEXEC, 0);
	long at;

	super_base = SUPER_BASE;
	dune_runtime_refuse(SUPER_BASE, SUPER_SIZE);
	at = SYS6(__NR_mmap, SUPER_BASE, SUPER_SIZE, PROT_NONE,
		  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0);
	if (at >= 0)
		at = SYS3(__NR_mprotect, DECOY_BASE, DECOY_SIZE, PROT_READ | PROT_WRITE);
	if (at < 0)
		die(126, "cannot get memory for the decoy", NULL, at, "raise `ulimit -v`");
	/* one page at a time, and a core dump brings in none */
	SYS3(__NR_madvise, DECOY_BASE, DECOY_SIZE, MADV_NOHUGEPAGE);
	SYS3(__NR_madvise, DECOY_BASE, DECOY_SIZE, MADV_DONTDUMP);
	if (fd >= 0) {
		at = SYS6(__NR_mmap, LOG_BASE, LOG_SIZE, PROT_READ | PROT_WRITE,
			  MAP_SHARED | MAP_FIXED, fd, 0);
		if (at >= 0) {
			dune_private_map(LOG_AT, LOG_BASE, LOG_SIZE);
			record = (struct decoy_log *)LOG_AT;
		}
		SYS1(__NR_close, fd);
	}
	first_process = SYS0(__NR_getpid);
	__real_areas_init(name, heap);
}

static void clean(void)
{
	SYS2(__NR_munlock, DECOY_BASE, DECOY_SIZE);
	SYS3(__NR_madvise, DECOY_BASE, DECOY_SIZE, MADV_DONTNEED);
}

static void report(const u64 *call, u64 result, u64 page)
{
	struct touch touch = { .process = SYS0(__NR_getpid), .nr = call[0], .result = result };
	u64 words[PAGE_BYTES / sizeof(u64)] = {};
	u64 i, n;

	for (i = 0; i < ARRAY_LEN(touch.args); i++)
		touch.args[i] = call[1 + i];
	touch.address = page;
	if (page)
		dune_copy(words, (const void *)page, sizeof(words));
	for (i = 0; page && i < ARRAY_LEN(words); i++) {
		if (words[i]) {
			touch.address = page + i * sizeof(u64);
			touch.word = words[i];
			break;
		}
	}
	if (!record) {
		message("the decoy was touched", NULL, 0, "start this by watch");
		return;
	}
	touch.seed = record->seed;
	n = __atomic_fetch_add(&record->touches, 1, __ATOMIC_RELAXED);
	if (n < TOUCHES_MAX)
		record->touch[n] = touch;
}

static void look(const u64 *call, u64 result)
{
	u8 present[DECOY_SIZE / PAGE_BYTES] = {};
	u64 mark = dune_copies_mark(), room = result_room(sizeof(present)), i;
	long err = take_result(present, room, sizeof(present),
			       SYS3(__NR_mincore, DECOY_BASE, DECOY_SIZE, room));

	dune_copies_release(mark);
	if (err == -ENOMEM) {
		report(call, result, 0);
		return;
	}
	for (i = 0; i < sizeof(present); i++) {
		if (likely(!present[i]))
			continue;
		report(call, result, DECOY_BASE + i * PAGE_BYTES);
		clean();
		return;
	}
}

/* A word that was replaced until the call is over, and its replacement. */
struct planted {
	u64 *argument;
	u64 was;
	u64 at;		/* a word of the program's, 0: none */
	u64 word;
	u64 address;
};

/*
 * Whether the arguments of this call may be changed: not those of a call that may return
 * elsewhere or with other registers, since restore() could not undo the change.
 */
static bool may_change(const struct dune_tf *tf)
{
	switch ((u32)tf->rax) {
	case __NR_rt_sigreturn:
	case __NR_clone:
	case __NR_clone3:
	case __NR_fork:
	case __NR_vfork:
		return false;
	}
	return true;
}

/*
 * Programs of other people make sensible calls: put an address in the decoy in
 * place of an argument, or of a word of what one points to, or of what a word
 * of that points to. Only in children of the process that executed the image,
 * so that the program itself starts and continues. A process's number chooses.
 */
static void plant(struct dune_tf *tf, struct planted *p)
{
	u64 *const arguments[] = {
		&ARG0(tf), &ARG1(tf), &ARG2(tf), &ARG3(tf), &ARG4(tf), &ARG5(tf),
	};
	static u64 state;
	static u32 chosen_by;
	u32 process, draw, depth;

	p->argument = NULL;
	p->at = 0;
	if (!record || !record->mix || !may_change(tf))
		return;
	process = SYS0(__NR_getpid);
	if (process == first_process)
		return;
	if (process != chosen_by) {
		chosen_by = process;
		state = process;
	}
	state = state * 6364136223846793005UL + 1442695040888963407UL;
	draw = state >> 32;
	if (draw % record->mix)
		return;
	draw /= record->mix;
	p->address = DECOY_BASE + PAGE_BYTES * (1 + draw % 8);
	p->argument = arguments[draw / 8 % ARRAY_LEN(arguments)];
	p->was = *p->argument;
	depth = draw / 64 % 3;
	if (!depth) {
		*p->argument = p->address;
		return;
	}
	p->at = p->was + 8 * (draw / 256 % 12);
	if (user_read(&p->word, p->at, sizeof(p->word)))
		p->at = 0;
	if (p->at && depth == 2) {
		p->at = p->word + 8 * (draw / 4096 % 8);
		if (user_read(&p->word, p->at, sizeof(p->word)))
			p->at = 0;
	}
	if (p->at && user_write(p->at, &p->address, sizeof(p->address)))
		p->at = 0;
}

/* A word that the call itself has written stays. */
static void restore(const struct planted *p)
{
	u64 now;

	if (p->argument)
		*p->argument = p->was;
	if (p->at && !user_read(&now, p->at, sizeof(now)) && now == p->address)
		user_write(p->at, &p->word, sizeof(p->word));
}

static void checked(struct dune_tf *tf)
{
	const u64 call[] = {
		(u32)tf->rax, ARG0(tf), ARG1(tf), ARG2(tf), ARG3(tf), ARG4(tf), ARG5(tf),
	};

	if (record) {
		__atomic_fetch_add(&record->calls, 1, __ATOMIC_RELAXED);
		if (call[0] < CALLS_MAX)
			__atomic_fetch_add(&record->by_number[call[0]], 1, __ATOMIC_RELAXED);
	}
	if (call[0] == __NR_mlockall)
		locking = true;
	__real_check_syscall(tf);
	if (record && (long)tf->rax >= 0)
		__atomic_fetch_add(&record->succeeded, 1, __ATOMIC_RELAXED);
	if (likely(!locking)) {
		look(call, tf->rax);
	} else {
		clean();
		locking = false;
	}
}

void __wrap_check_syscall(struct dune_tf *tf)
{
	struct planted planted;

	plant(tf, &planted);
	checked(tf);
	restore(&planted);
}
