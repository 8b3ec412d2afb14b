// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * ring3: a sandbox for code that is not trusted. It runs in ring 3, where by
 * default nothing is allowed: all memory belongs to the supervisor, except the
 * pages that main() gives to ring 3, and all system calls are denied, except
 * those that the monitor carries out itself. With an argument ("read", "code",
 * "table", "write", "kill") the code attacks in that way, and fails.
 *
 * Prints "ring3: ok" at the end. Fails (status 1) if the call that is allowed is not carried
 * out, or if an attack is neither denied nor ended by a fault. Status 2: there is no such
 * attack. Status 77: Dune is not available here.
 */
#include <dune.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define PAGE		4096UL
#define GREETING	"ring3: hello from ring 3\n"

/* ---- the code that is not trusted, and its memory ---------------------- */

/*
 * Ring 3 is given whole pages, so its code and its memory each fill theirs: otherwise it could
 * read, and with its own rights execute, what the linker has placed after them.
 */
#define UNTRUSTED	__attribute__((section("untrusted"), aligned(PAGE), noinline, \
				       no_stack_protector, no_reorder))

static struct box {
	char stack[16 * PAGE];
	char text[PAGE];
	const volatile char *attack;	/* an address outside the box, which guest() reads */
	volatile long *table;
	long call, argument;
} __attribute__((aligned(PAGE))) box;

UNTRUSTED static void guest(void)
{
	long ret;

	/* write(1, box.text, ...): the monitor does this one. */
	__asm__ volatile("syscall"
			 : "=a" (ret)
			 : "a" (SYS_write), "D" (1L), "S" (box.text), "d" (sizeof(GREETING) - 1)
			 : "rcx", "r11", "memory");
	if (box.attack)
		ret = *box.attack;
	if (box.table)
		*box.table |= DUNE_PTE_U;
	if (box.call)
		__asm__ volatile("syscall"
				 : "=a" (ret)
				 : "a" (box.call), "D" (1L), "S" (box.argument), "d" (16L)
				 : "rcx", "r11", "memory");
	__asm__ volatile("syscall" : : "a" (SYS_exit), "D" (ret));
}

/* Fills the last page; no_reorder keeps it after the code. */
__asm__(".pushsection untrusted, \"ax\"; .balign 4096; .popsection");

extern char __start_untrusted[], __stop_untrusted[];	/* the linker's */

/* ---- the monitor, in ring 0 -------------------------------------------- */

static char secret[16] = "do not tell";
static int allowed, denied, faults;

/* Returns whether [p, p + n) is in the box. (dune_user_ok() does not know what was given.) */
static int in_box(uint64_t p, uint64_t n)
{
	return p >= (uint64_t)&box && n <= sizeof(box) && p - (uint64_t)&box <= sizeof(box) - n;
}

/*
 * Uses neither FPU nor libc: the FPU's registers and the FS base, which is libc's
 * TLS, have ring 3's values. It does not use dune_syscall_pass() either, which makes any
 * call without a check.
 */
__attribute__((target("general-regs-only"), no_stack_protector))
static void on_syscall(struct dune_tf *tf)
{
	switch (tf->rax) {
	case SYS_write:
		if (tf->rdi == 1 && in_box(tf->rsi, tf->rdx)) {
			allowed++;
			/*
			 * No copy is needed here: any bytes may be written, and the range
			 * was checked. A call that reads a structure needs one: ring 3
			 * could change it after the check.
			 */
			dune_syscall_result(tf, dune_syscall_forward(SYS_write, 1, tf->rsi,
								     tf->rdx, 0, 0, 0));
			return;
		}
		break;
	case SYS_exit:
		dune_ring3_leave(tf->rdi);
	}
	denied++;
	tf->rax = -EPERM;
}

/* A fault of ring 3 ends ring 3. A fault of ring 0 becomes the usual signal. */
__attribute__((target("general-regs-only"), no_stack_protector))
static void on_fault(struct dune_tf *tf)
{
	if ((tf->cs & 3) == 0) {
		dune_trap_default(tf);
		return;
	}
	faults++;
	dune_ring3_leave(-EFAULT);
}

/* Fails if @from and @size are not whole pages. */
static int give(const void *from, uint64_t size, uint64_t rights)
{
	return dune_pt_protect(dune_pt_root(), (uint64_t)from, size, rights);
}

/* The accesses and calls that guest() tries, by the name on the command line. */
static const struct attack {
	const char *name;
	const volatile char *read;	/* reads ring 0's memory at this address */
	bool table;			/* writes to the page table */
	long call;			/* makes this call, with this second argument */
	const char *argument;
} attacks[] = {
	{ .name = "read", .read = secret },
	{ .name = "code", .read = (const volatile char *)on_fault },
	{ .name = "table", .table = true },
	{ .name = "write", .call = SYS_write, .argument = secret },
	{ .name = "kill", .call = SYS_kill },
};

#define ATTACKS	(sizeof(attacks) / sizeof(attacks[0]))

static const struct attack *find_attack(const char *name)
{
	size_t i;

	for (i = 0; i < ATTACKS; i++)
		if (!strcmp(name, attacks[i].name))
			return &attacks[i];
	return NULL;
}

static void prepare(const struct attack *attack)
{
	strcpy(box.text, GREETING);
	if (!attack)
		return;
	box.attack = attack->read;
	if (attack->table)
		box.table = (long *)dune_pt_root();
	box.call = attack->call;
	box.argument = (long)attack->argument;
}

int main(int argc, char **argv)
{
	const struct attack *attack = argc > 1 ? find_attack(argv[1]) : NULL;
	/* This makes all memory ring 0's. */
	struct dune_config cfg = { .size = sizeof(cfg), .super_size = 1UL << 47 };
	struct dune_tf tf = {
		.rip = (uint64_t)guest,
		.rsp = (uint64_t)box.stack + sizeof(box.stack) - 8,
	};
	long result;
	int err, vector;

	if (argc > 1 && !attack) {
		fprintf(stderr, "ring3: unknown attack %s: try one of", argv[1]);
		for (size_t i = 0; i < ATTACKS; i++)
			fprintf(stderr, " %s", attacks[i].name);
		fprintf(stderr, "\n");
		return 2;
	}
	err = dune_enter(&cfg);
	if (err == -ENOENT || err == -ENODEV) {
		fprintf(stderr, "ring3: SKIP: %s\n", dune_enter_error());
		return 77;
	}
	if (err) {
		fprintf(stderr, "ring3: dune_enter: %s\n", dune_enter_error());
		return 1;
	}
	err = give(__start_untrusted, __stop_untrusted - __start_untrusted, DUNE_PT_RX);
	if (!err)
		err = give(&box, sizeof(box), DUNE_PT_RW);
	if (err) {
		fprintf(stderr, "ring3: cannot give pages to ring 3: error %d\n", -err);
		return 1;
	}
	prepare(attack);
	/* All vectors but those that cannot be handled; -EINVAL for these is right. */
	for (vector = 0; vector < 32; vector++)
		dune_trap_set(vector, on_fault, 0);
	dune_syscall_set(on_syscall);
	result = dune_ring3(&tf);
	printf("ring3: %d calls allowed, %d denied, %d faults, result %ld\n",
	       allowed, denied, faults, result);
	if (allowed != 1 || denied + faults != !!attack) {
		fprintf(stderr, "ring3: FAILED: expected 1 allowed, and %d denied or faulted\n",
			!!attack);
		return 1;
	}
	printf("ring3: ok\n");
	return 0;
}
