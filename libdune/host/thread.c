// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * Blocks of threads, and the run pages that vCPUs (vcpu.c) have in them. All of this
 * runs outside the guest: in dune_enter(), and in the host half for children.
 */
#include "host.h"
#include "tlb.h"

/*
 * Returns a new block without a vCPU, which is in the list of threads, or NULL if the
 * arena is full.
 */
struct dune_thread *dune_thread_new(void)
{
	struct dune_thread *t;
	u64 flags;
	bool dirty;

	t = dune_page_take(BLOCK_SIZE / PAGE, &dirty);
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
	dune_gdt_set_limit(t, dune_gdt_cpu());

	flags = dune_lock(&dune_process.locks[LOCK_THREADS]);
	t->next = dune_process.threads;
	barrier();		/* the list is valid at each instruction (lock.h) */
	dune_process.threads = t;
	dune_unlock(&dune_process.locks[LOCK_THREADS], flags);
	return t;
}

/*
 * Adds the counters of @run to those of closed vCPUs, before the page is unmapped. LOCK_THREADS is
 * held.
 */
static void keep_counters(const struct dune_run *run)
{
	int i;

	dune_assert_held(&dune_process.locks[LOCK_THREADS]);
	for (i = 0; i < DUNE_COUNT_MAX; i++)
		dune_process.old_counters[i] += run->counters[i];
}

static unsigned int run_pages(void)
{
	return (dune_process.info.run_size + PAGE - 1) / PAGE;
}

/*
 * Maps the run page of @vcpu. Returns its address or an error. The kernel chooses the
 * place, unless there is a supervisor range: then the run page covers pages of the arena,
 * where ring 3 cannot reach it. After fork the child has a hole in its place
 * (VM_DONTCOPY), until it maps its own run page there.
 */
long dune_run_map(struct dune_thread *t, int vcpu)
{
	int fixed = 0;

	if (dune_process.super_size) {
		if (!t->run_place)
			t->run_place = dune_page_alloc(run_pages());
		if (!t->run_place)
			return -ENOMEM;
		fixed = MAP_FIXED;
	}
	return sys6(__NR_mmap, (long)t->run_place, run_pages() * PAGE,
		    PROT_READ | PROT_WRITE, MAP_SHARED | fixed, vcpu, 0);
}

/*
 * Maps ordinary memory (MAP_PRIVATE) where @t's run page is or was, so that the arena has no
 * hole there. Returns whether it is mapped: a limit of the process may not allow it.
 */
static bool cover_run_place(const struct dune_thread *t, int rights)
{
	return sys6(__NR_mmap, (long)t->run_place, run_pages() * PAGE, rights,
		    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0) ==
	       (long)t->run_place;
}

/*
 * Unmaps the run page @run, and gives its place back to the arena. A limit on data may
 * not allow ordinary memory there. Then memory without access stays in the place, which
 * is not given back. Returns false where a limit on all memory does not allow that
 * either: the run page, or a hole, stays there. Only dune_run_map() of the same thread
 * can use such a place again.
 */
bool dune_run_unmap(struct dune_thread *t, void *run)
{
	void *place = t->run_place;

	if (!place) {
		sys3(__NR_munmap, (long)run, run_pages() * PAGE, 0);
		return true;
	}
	if (!cover_run_place(t, PROT_READ | PROT_WRITE))
		return cover_run_place(t, PROT_NONE);
	/*
	 * A child that another thread forks now must not cover a page that is given back
	 * (dune_thread_cover_others()).
	 */
	WRITE_ONCE(t->run_place, NULL);
	barrier();
	dune_page_free(place, run_pages());
	return true;
}

/*
 * Covers the holes in the arena of a child with memory of its own: it has no copy of the
 * run pages of all threads but @t (VM_DONTCOPY), and the kernel could place mappings of
 * the program in their places. Nothing uses these places again, so the memory there has
 * no access, and no limit on data counts it.
 */
void dune_thread_cover_others(const struct dune_thread *t)
{
	const struct dune_thread *other;

	for (other = dune_process.threads; other; other = other->next) {
		if (other != t && other->run_place && !cover_run_place(other, PROT_NONE))
			dune_host_fatal(NULL, "a child could not fill holes in the arena", 0,
					SIGKILL);
	}
}

/*
 * Takes a block, whose vCPU is closed or belongs to another process, out of the list, and
 * frees all of it but the block itself. Its counters stay. A child that was killed while it
 * started may have a run page that is not in t->run yet. If the run page cannot be unmapped,
 * this returns false, and the block stays in the list, so that dune_thread_cover_others()
 * knows of the page.
 */
static bool remove_thread(struct dune_thread *t)
{
	struct dune_thread **link;
	struct dune_run *run = t->run;
	u64 flags;

	flags = dune_lock(&dune_process.locks[LOCK_THREADS]);
	if (run)
		keep_counters(run);
	t->run = NULL;
	dune_unlock(&dune_process.locks[LOCK_THREADS], flags);
	if ((run || t->run_place) && !dune_run_unmap(t, run))
		return false;

	flags = dune_lock(&dune_process.locks[LOCK_THREADS]);
	for (link = &dune_process.threads; *link; link = &(*link)->next) {
		if (*link == t) {
			*link = t->next;
			break;
		}
	}
	dune_unlock(&dune_process.locks[LOCK_THREADS], flags);
	dune_page_free(t->pcid_generations, PCID_GENERATIONS_PAGES);
	return true;
}

/* Frees a block, if its run page can be unmapped (remove_thread()). */
void dune_thread_free(struct dune_thread *t)
{
	if (remove_thread(t))
		dune_page_free(t, BLOCK_SIZE / PAGE);
}

/*
 * Ends the calling thread, which gives back its vCPU and its block @t. All signals are blocked,
 * since their handler would run on the block's stack and needs the run page.
 */
void dune_thread_exit(struct dune_thread *t, long status)
{
	int vcpu = t->vcpu;

	/* A file of another thread may get the number, which must not be hidden then. */
	WRITE_ONCE(t->vcpu, -1);
	sys3(__NR_close, vcpu, 0, 0);
	if (remove_thread(t))
		dune_page_free_and_exit(t, BLOCK_SIZE / PAGE, status);
	sys3(__NR_exit, status, 0, 0);
	__builtin_unreachable();
}
