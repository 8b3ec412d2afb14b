// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * The native start of dune-run, which the kernel executes: it puts the runtime's image into private
 * memory, and enters it there, in ring 0 of the guest (main.c). All else that dune-run does, it
 * does there, and first it unmaps this program. So of dune-run only the supervisor range
 * is left in the process (super_range.h).
 *
 * Private memory in the order of its pages: the sealed part of the image (constants, code); the
 * page tables; the data; pages that are zero, some of them spare; the window (dune_copies.h); the
 * page of struct dune_run.
 *
 * This is the start of the first process of a tree only. A program that is executed later begins
 * with a copy of this private memory, which the module has kept (DUNE_STUB_TEMPLATE).
 */
#include "memcpy.h"
#include "message.h"
#include "page.h"
#include "super_range.h"
#include "sys.h"
#include "text.h"
#include "vdso_tables.h"

#include <dune_copies.h>
#include <dune_runtime.h>
#include <asm/unistd.h>
#include <linux/auxvec.h>
#include <linux/fcntl.h>
#include <linux/mman.h>
#include <linux/resource.h>

#define GB		(1UL << 30)

#define ENTRIES		512
#define TABLE_BITS	(DUNE_PTE_P | DUNE_PTE_W | DUNE_PTE_A)
#define PAGE_BITS	(DUNE_PTE_P | DUNE_PTE_A | DUNE_PTE_D)

_Static_assert(STUB_SIZE == PAGE_BYTES + DUNE_WINDOW_SIZE && SCRATCH_SIZE == DUNE_SCRATCH_SIZE &&
	       STUB_SIZE + SCRATCH_SIZE + FRAMES_SIZE == SUPER_SIZE, "super_range.h");

#define STACK_ROOM	(126UL << 20)
#define DATA_PAGES	16	/* at most */
#define SPARE_PAGES	2	/* the program's page tables take some at once */

/* From entry.S: @stack is as the kernel made it. */
void start_main(u64 *stack) __attribute__((noreturn));

/* entry.S; the head is at its beginning */
extern const u8 runtime_image[], runtime_image_end[];
/* the linker's */
extern u8 __executable_start[], _end[];

/* The pages with contents that are made here, in the order of private memory. */
static struct made {
	u64 root[ENTRIES];
	u64 top[ENTRIES];		/* the 512 GB from DUNE_PRIVATE_BASE on */
	u64 middle[ENTRIES];		/* the gigabyte of the image */
	u64 image[ENTRIES];		/* its first 2 MB */
	u64 direct[ENTRIES];		/* all private memory, without pages of 1 GB */
	u8 data[DATA_PAGES * PAGE_BYTES];
} made __attribute__((aligned(4096)));

static void *made_at(u64 offset)
{
	return (u8 *)&made + offset;
}

static const char usage[] =
	"usage: dune-run [--stats] [--stats=FILE] [--argv0=NAME] -- PATH ARGS...\n"
	"Runs a Linux program in a sandbox of Dune. Use `dunectl run` instead: it finds\n"
	"the program, and a machine if this computer has no /dev/dune.\n";

static const struct dune_image_head *head(void)
{
	return (const void *)runtime_image;
}

static u64 pages_of(const struct dune_image_part *part)
{
	return (part->end - part->start) / PAGE_BYTES;
}

static void __attribute__((noreturn)) cannot_use(long err)
{
	const char *advice = "`dunectl check` shows what this computer lacks";

	if (err == -ENOENT || err == -ENODEV)
		advice = "load dune.ko; `dunectl check` shows what this computer lacks";
	else if (err == -EACCES)
		advice = "join the group dune, or ask an administrator for access to "
			 "/dev/dune (docs/install.md)";
	else if (err == -EMFILE)
		advice = "raise the limit on open files (ulimit -n)";
	else if (err == -EPROTO)
		advice = "load the dune.ko that belongs to this dune-run";
	die(126, "cannot use /dev/dune", NULL, err, advice);
}

static long check(long err)
{
	if (err < 0)
		cannot_use(err);
	return err;
}

static void help(const u64 *stack)
{
	const char *const *argv = (const void *)(stack + 1);
	u64 i;

	for (i = 1; i < *stack && !text_equal(argv[i], "--"); i++)
		if (text_equal(argv[i], "--help")) {
			SYS3(__NR_write, 1, usage, sizeof(usage) - 1);
			SYS1(__NR_exit_group, 0);
		}
}

/*
 * Gives @fd a number from DUNE_HIGH_FD on. Returns it, or @fd itself if there is none. Like
 * get_info() and have_1g_pages() below, this is a copy of what host/ has, since this program is not
 * linked with libdune.
 */
static int move_high(int fd)
{
	long high = SYS3(__NR_fcntl, fd, F_DUPFD_CLOEXEC, DUNE_HIGH_FD);

	if (high < 0)
		return fd;
	SYS1(__NR_close, fd);
	return high;
}

static void get_info(int fd, struct dune_info *info)
{
	long err;

	info->size = sizeof(*info);
	err = SYS3(__NR_ioctl, fd, DUNE_GET_INFO, info);
	/* A version whose structure has another size does not know this request or this size. */
	if (err == -ENOTTY || err == -EINVAL || (!err && info->api_version != DUNE_API_VERSION) ||
	    (!err && info->vendor != DUNE_VENDOR_SVM && info->vendor != DUNE_VENDOR_VMX))
		cannot_use(-EPROTO);
	check(err);
	if (!info->private_pages)
		die(126, "cannot use /dev/dune", NULL, 0,
		    "guest-physical addresses of this processor have too few bits");
}

/* Makes a vCPU. Returns its descriptor, and what the module reports in @info. */
static int make_vcpu(struct dune_info *info)
{
	struct dune_create_vcpu create = { .size = sizeof(create), .flags = DUNE_VCPU_SMAP };
	int device, vcpu;

	device = check(SYS4(__NR_openat, AT_FDCWD, "/dev/dune", O_RDWR | O_CLOEXEC, 0));
	get_info(device, info);
	vcpu = move_high(check(SYS3(__NR_ioctl, device, DUNE_CREATE_VCPU, &create)));
	SYS1(__NR_close, device);
	return vcpu;
}

/* Adds @count pages to private memory. Returns the guest-physical address of the first one. */
static u64 add_private(int vcpu, u64 count, const void *contents, u32 flags)
{
	struct dune_private private = {
		.size = sizeof(private),
		.flags = flags,
		.pages = count,
		.address = (u64)contents,
	};

	check(SYS3(__NR_ioctl, vcpu, DUNE_ADD_PRIVATE, &private));
	return private.guest;
}

/* Maps @part of the image to the pages from @gpa on. Returns the address after the last one. */
static u64 map_part(const struct dune_image_part *part, u64 gpa)
{
	u64 at;

	for (at = part->start; at < part->end; at += PAGE_BYTES, gpa += PAGE_BYTES)
		made.image[(at - DUNE_IMAGE_BASE) / PAGE_BYTES] = gpa | PAGE_BITS | part->rights;
	return gpa;
}

static bool have_1g_pages(void)
{
	u32 eax = 0x80000001, ebx, ecx, edx;

	asm volatile("cpuid" : "+a" (eax), "=b" (ebx), "=c" (ecx), "=d" (edx));
	return edx & (1 << 26);
}

/*
 * Makes the tables above the last level, which are at @tables. Only ring 0 may use what they map.
 */
static void make_tables(u64 tables, u64 private_gpa, bool have_1g)
{
	u64 direct = private_gpa | PAGE_BITS | DUNE_PTE_W | DUNE_PTE_NX | DUNE_PTE_PS;
	u64 i;

#define TABLE(name) ((tables + offsetof(struct made, name)) | TABLE_BITS)
	made.root[DUNE_PRIVATE_BASE >> 39 & (ENTRIES - 1)] = TABLE(top);
	made.top[0] = have_1g ? direct : TABLE(direct);
	made.top[1] = TABLE(middle);
	made.middle[0] = TABLE(image);
#undef TABLE
	for (i = 0; i < ENTRIES; i++)
		made.direct[i] = direct + (i << 21);
}

/*
 * Puts the image into private memory. The addresses of all parts are computed before the data is
 * added, since the runtime's copy of @s is in the data: also that of the page of struct dune_run,
 * which DUNE_SET_STUB adds after the window.
 */
static void make_memory(struct dune_start *s)
{
	const struct dune_image_head *h = head();
	u64 sealed = pages_of(&h->constants) + pages_of(&h->code), zeros = SPARE_PAGES;
	u64 gpa, tables, contents, i;

	s->have_1g = have_1g_pages();
	gpa = add_private(s->vcpu, sealed, runtime_image, DUNE_PRIVATE_SEALED);
	s->private_gpa = gpa & ~(GB - 1);
	tables = gpa + sealed * PAGE_BYTES;
	/* The last table is left out where it is not needed. */
	contents = offsetof(struct made, direct) + (s->have_1g ? 0 : PAGE_BYTES);
	s->tables = contents / PAGE_BYTES;
	s->root = tables;
	make_tables(tables, s->private_gpa, s->have_1g);

	map_part(&h->code, map_part(&h->constants, gpa));
	gpa = map_part(&h->data, tables + contents);
	for (i = 0; i < ARRAY_LEN(h->zero); i++) {
		zeros += pages_of(&h->zero[i]);
		gpa = map_part(&h->zero[i], gpa);
	}
	s->spare = gpa;
	s->spares = SPARE_PAGES;
	s->window = gpa + SPARE_PAGES * PAGE_BYTES;
	s->run = s->window + DUNE_WINDOW_SIZE;

	memcpy(made_at(contents), runtime_image + (h->data.start - DUNE_IMAGE_BASE),
	       h->data.end - h->data.start);
	memcpy(made_at(contents + h->start - h->data.start), s, sizeof(*s));
	contents += h->data.end - h->data.start;
	add_private(s->vcpu, contents / PAGE_BYTES, &made, 0);
	add_private(s->vcpu, zeros, NULL, 0);
	add_private(s->vcpu, DUNE_WINDOW_SIZE / PAGE_BYTES, NULL, DUNE_PRIVATE_SHOWN);
}

/*
 * Returns where the supervisor range is to be: between the stack and the mappings, in the room of
 * at least 128 MB that the kernel leaves for the stack to grow. Nothing else is placed there.
 * Returns 0, which means any place, if the stack may grow that far.
 */
static u64 place(const u64 *stack)
{
	struct rlimit64 limit = { .rlim_cur = RLIM64_INFINITY };

	SYS4(__NR_prlimit64, 0, RLIMIT_STACK, NULL, &limit);
	return limit.rlim_cur <= STACK_ROOM / 2 ? PAGE_DOWN((u64)stack) - STACK_ROOM : 0;
}

static u64 map(u64 at, u64 size, int rights, int flags, int fd, u64 offset)
{
	long ret = SYS6(__NR_mmap, at, size, rights, flags, fd, offset);

	if (ret < 0)
		die(126, "cannot get memory for the runtime", NULL, ret,
		    "raise the limit on address space (ulimit -v)");
	return ret;
}

/* Maps the supervisor range. Without MAP_FIXED the kernel takes another place if one is taken. */
static void make_mappings(struct dune_start *s)
{
	s->stub = map(place(s->stack), SUPER_SIZE, PROT_READ | PROT_WRITE,
		      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	map(s->stub, STUB_SIZE, PROT_READ, MAP_SHARED | MAP_FIXED, s->vcpu, DUNE_STUB_OFFSET);
	s->scratch = s->stub + STUB_SIZE;
	s->frames = s->scratch + SCRATCH_SIZE;
	s->frames_end = s->stub + SUPER_SIZE;
}

/*
 * Counts the words on the stack, and keeps what the kernel tells the process, for those that
 * are executed later, too.
 */
static void read_stack(struct dune_start *s)
{
	const u64 *from = s->stack + *s->stack + 2;
	u64 i = 0;

	s->argc = *s->stack;
	while (*from++)
		s->envc++;
	for (s->auxc = 1; from[0] != AT_NULL; from += 2, s->auxc++) {
		if (from[0] == AT_EXECFN)
			s->name = from[1];
		if (from[0] == AT_SECURE)
			s->secure = from[1];
		if (i == DUNE_AUXV_WORDS - 2)
			continue;
		s->auxv[i++] = from[0];
		s->auxv[i++] = from[1];
		if (from[0] == AT_PLATFORM)
			text_copy(s->platform, sizeof(s->platform), (const char *)from[1]);
		if (from[0] == AT_SYSINFO_EHDR) {
			s->vdso_is_above = from[1] > (u64)s->stack;
			vdso_find(from[1], s);
		}
	}
	s->auxv[i] = AT_NULL;
	/* The sysctl may make all addresses random but the heap's. */
	s->heap_is_random = SYS1(__NR_brk, 0) != (long)s->image_end;
}

/* Binds the vCPU to the stub, and enters the image. */
static void __attribute__((noreturn)) enter(const struct dune_start *s)
{
	const struct dune_image_head *h = head();
	struct dune_state state = h->state;
	struct dune_stub stub = {
		.size = sizeof(stub),
		.flags = DUNE_STUB_TEMPLATE,
		.address = s->stub,
		.irq_vector = DUNE_VECTOR_SIGNAL,
		.regs = h->regs,
	};
	register u64 vcpu asm("rbx") = s->vcpu;

	state.cr3 = s->root;
	state.lstar = h->lstar[s->info.vendor == DUNE_VENDOR_VMX];
	check(SYS3(__NR_ioctl, s->vcpu, DUNE_SET_STATE, &state));
	check(SYS3(__NR_ioctl, s->vcpu, DUNE_SET_STUB, &stub));
	if (stub.run != s->run)
		cannot_use(-EPROTO);
	asm volatile("jmp *%1" : : "r" (vcpu), "r" (s->stub), "D" (s->vcpu), "d" (0UL) : "memory");
	__builtin_unreachable();
}

void start_main(u64 *stack)
{
	struct dune_start start = {
		.image = (u64)__executable_start,
		.image_end = PAGE_UP((u64)_end),
		.stack = stack,
	};

	help(stack);
	read_stack(&start);
	start.vcpu = make_vcpu(&start.info);
	make_mappings(&start);
	make_memory(&start);
	enter(&start);
}
