// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * Blocks of threads and their vCPUs. All of this runs outside the guest: in
 * dune_enter(), and in the host half for children.
 */
#include "host.h"
#include "tlb.h"

/*
 * The descriptors of vCPUs have numbers that programs do not expect to get, but
 * none for which the kernel's table, of 64 at first, must grow.
 */
#define HIGH_FD		60

/*
 * Returns a new block without a vCPU, which is in the list of threads, or NULL if the
 * arena is full.
 */
struct dune_thread *dune_thread_new(void)
{
	struct dune_thread *t;
	u64 flags;
	bool dirty;

	t = dune_page_take(BLOCK_SIZE / 4096, &dirty);
	if (!t)
		return NULL;
	if (dirty) {
		/* The stacks and own_sighand are written before they are read. */
		memset(t, 0, IST_BOTTOM);
		memset(&t->state, 0, RING0_STACK_BOTTOM - HOST_STACK_TOP);
	}
	t->self = t;
	t->ring0_top = (u64)t + RING0_STACK_TOP;
	t->vcpu = -1;
	t->last_table = NO_LAST_TABLE;
	t->altstack.flags = SS_DISABLE;
	dune_gdt_init(t);

	flags = dune_lock(&dune_process.lock);
	t->next = dune_process.threads;
	dune_process.threads = t;
	dune_unlock(&dune_process.lock, flags);
	return t;
}

/* Add the vCPU's counters before its page is unmapped. */
static void keep_counters(const struct dune_run *run)
{
	int i;

	for (i = 0; i < DUNE_COUNT_MAX; i++)
		dune_process.old_counters[i] += run->counters[i];
}

static unsigned int run_pages(void)
{
	return (dune_process.info.run_size + 4095) / 4096;
}

/*
 * The kernel chooses the place of the run page, unless ring 3 must be kept from
 * it: then it covers pages of the arena. After fork the child has a hole in their
 * place (VM_DONTCOPY), until it maps its own run page there.
 */
static long map_run(struct dune_thread *t, int vcpu)
{
	int fixed = 0;

	if (dune_process.super_size) {
		if (!t->run_place)
			t->run_place = dune_page_alloc(run_pages());
		if (!t->run_place)
			return -ENOMEM;
		fixed = MAP_FIXED;
	}
	return sys6(__NR_mmap, (long)t->run_place, run_pages() * 4096UL,
		    PROT_READ | PROT_WRITE, MAP_SHARED | fixed, vcpu, 0);
}

/*
 * Map private memory where @t's run page is or was, so that the arena has no hole
 * there. Returns whether it is mapped: a limit of the process may not allow it.
 */
static bool cover_run_place(const struct dune_thread *t, int rights)
{
	return sys6(__NR_mmap, (long)t->run_place, run_pages() * 4096UL, rights,
		    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0) ==
	       (long)t->run_place;
}

/*
 * A limit on data may not allow the ordinary memory. Then memory without access stays
 * in this place, which is not given back to the arena. Returns false where a limit
 * on all memory does not allow that either: the run page, or a hole, stays there.
 * Only map_run() of the same thread can use such a place again.
 */
static bool unmap_run(struct dune_thread *t, void *run)
{
	if (!t->run_place) {
		sys3(__NR_munmap, (long)run, run_pages() * 4096UL, 0);
		return true;
	}
	/* ordinary memory of the arena again */
	if (!cover_run_place(t, PROT_READ | PROT_WRITE))
		return cover_run_place(t, PROT_NONE);
	dune_page_free(t->run_place, run_pages());
	t->run_place = NULL;
	return true;
}

/*
 * In a child with memory of its own: the run pages of all threads but @t are not in
 * it (VM_DONTCOPY). In such a hole the kernel could place a mapping of the
 * program's. Nothing uses these places again: no access, which no limit on
 * data counts.
 */
void dune_thread_cover_others(const struct dune_thread *t)
{
	const struct dune_thread *other;

	for (other = dune_process.threads; other; other = other->next) {
		if (other != t && other->run_place && !cover_run_place(other, PROT_NONE))
			dune_host_fatal(NULL, "a child could not fill holes in the arena", SIGKILL);
	}
}

/*
 * Free a block, whose vCPU is closed or is another process's. Its counters stay. A
 * child that was killed while it started may have a run page that is not in t->run
 * yet. The block stays in the list where the run page does, so that
 * dune_thread_cover_others() knows of it.
 */
void dune_thread_free(struct dune_thread *t)
{
	struct dune_thread **link;
	struct dune_run *run = t->run;
	u64 flags;

	flags = dune_lock(&dune_process.lock);
	if (run)
		keep_counters(run);
	t->run = NULL;
	dune_unlock(&dune_process.lock, flags);
	if ((run || t->run_place) && !unmap_run(t, run))
		return;

	flags = dune_lock(&dune_process.lock);
	for (link = &dune_process.threads; *link; link = &(*link)->next) {
		if (*link == t) {
			*link = t->next;
			break;
		}
	}
	dune_unlock(&dune_process.lock, flags);
	dune_page_free(t->pcid_states, PCID_STATES_PAGES);
	dune_page_free(t, BLOCK_SIZE / 4096);
}

/* A number from HIGH_FD on for @fd, or @fd itself if there is none. */
static int move_high(int fd)
{
	long high = sys3(__NR_fcntl, fd, F_DUPFD_CLOEXEC, HIGH_FD);

	if (high < 0)
		return fd;
	sys3(__NR_close, fd, 0, 0);
	return high;
}

static long get_info(int dev)
{
	struct dune_info *info = &dune_process.info;
	long err;

	if (info->size)
		return 0;
	info->size = sizeof(*info);
	err = sys3(__NR_ioctl, dev, DUNE_GET_INFO, (long)info);
	if (!err && info->api_version != DUNE_API_VERSION)
		err = -EPROTO;
	/* Then page tables hold addresses of the process, all of which must fit. */
	if (!err && !info->granules && info->address_bits < 47)
		err = -ENODEV;
	if (!err)
		err = dune_calls_choose(info->vendor);
	if (err)
		info->size = 0;
	else
		dune_granule_init(info->granules);
	return err;
}

/* Everything that a new descriptor needs to become a running vCPU. */
static long start_vcpu(struct dune_thread *t, int fd)
{
	long err, run = map_run(t, fd);

	if (run < 0 && run > -4096)
		return run;
	err = dune_granule_tell_all(fd);
	if (!err)
		err = sys3(__NR_ioctl, fd, DUNE_SET_STATE, (long)&t->state);
	if (err) {
		unmap_run(t, (void *)run);
		return err;
	}
	t->migrations = 0;
	t->run = (struct dune_run *)run;
	t->run->regs = t->regs;
	return 0;
}

static long make_vcpu(struct dune_thread *t, int dev)
{
	struct dune_create_vcpu create = {
		.size = sizeof(create),
		.flags = dune_process.vcpu_flags,
	};
	long fd, err;

	fd = sys3(__NR_ioctl, dev, DUNE_CREATE_VCPU, (long)&create);
	if (fd < 0)
		return fd;
	err = start_vcpu(t, fd);
	if (err)
		sys3(__NR_close, fd, 0, 0);
	else
		t->vcpu = move_high(fd);
	return err;
}

/* The vCPU's descriptor that came by execve and that dune_enter() renews, or -1 */
static int inherited = -1;

void dune_vcpu_inherit(int fd)
{
	inherited = fd;
}

/* A descriptor for dune_vcpu_open(); also fills dune_process.info. */
long dune_device_open(void)
{
	long dev = inherited;
	long err;

	if (dev < 0)
		dev = sys3(__NR_open, (long)"/dev/dune", O_RDWR | O_CLOEXEC, 0);
	if (dev < 0)
		return dev;
	err = get_info(dev);
	if (!err)
		return dev;
	dune_device_close(dev);
	return err;
}

/* Close a descriptor of dune_device_open(), whose number another file may get. */
void dune_device_close(long dev)
{
	if (dev == inherited)
		inherited = -1;
	sys3(__NR_close, dev, 0, 0);
}

/* A vCPU for the calling thread in the place of an inherited one, t->vcpu. */
long dune_vcpu_renew(struct dune_thread *t)
{
	struct dune_renew_vcpu renew = {
		.size = sizeof(renew),
		.flags = dune_process.vcpu_flags,
		.fd = t->vcpu,
	};
	long err = sys3(__NR_ioctl, t->vcpu, DUNE_RENEW_VCPU, (long)&renew);

	return err ? err : start_vcpu(t, t->vcpu);
}

/*
 * A vCPU for the calling thread, starting with t->state and t->regs. @dev, of
 * dune_device_open(), is closed or used; if it is an error, it is returned.
 */
long dune_vcpu_open(struct dune_thread *t, long dev)
{
	long err;

	if (dev < 0)
		return dev;
	if (dev == inherited) {
		t->vcpu = dev;
		inherited = -1;
		return dune_vcpu_renew(t);
	}
	err = make_vcpu(t, dev);
	dune_device_close(dev);
	return err;
}
