// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * Calls before dune_enter(), wrong configurations, a second dune_enter(), and a
 * program that valgrind interprets. Fails when one of them crashes instead of
 * returning its documented error, or when dune_enter_error() does not name the
 * member of the configuration that is wrong, or what does not fit about the module.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/dune.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include "child.h"
#include "filter.h"
#include "rings.h"
#include "tap.h"
#include "x86.h"

static char arena[1 << 20] __attribute__((aligned(65536)));

static int nothing(dune_pte *e, uint64_t va, uint64_t size, void *arg)
{
	(void)e;
	(void)va;
	(void)size;
	(void)arg;
	return 0;
}

static void with_fpu(struct dune_tf *tf)
{
	__asm__ volatile("pxor %%xmm9, %%xmm9" : : : "xmm9");
	tf->rip += 2;
}

static void test_calls(void)
{
	dune_pte *root = dune_pt_root();
	struct dune_tf tf = { .rip = PAGE };
	struct dune_stats stats;

	ok(!root, "dune_pt_root() before dune_enter(): NULL");
	is(dune_pt_map(root, 0, PAGE, 0, DUNE_PT_RW), -EPERM,
	   "dune_pt_map() before dune_enter(): EPERM");
	is(dune_pt_unmap(root, 0, PAGE), -EPERM, "dune_pt_unmap() before dune_enter(): EPERM");
	is(dune_pt_protect(root, 0, 2 * PAGE, 0), -EPERM,
	   "dune_pt_protect() before dune_enter(): EPERM");
	is(dune_pt_split(root, 0, PAGE, PAGE), -EPERM,
	   "dune_pt_split() before dune_enter(): EPERM");
	is(dune_pt_walk(root, 0, PAGE, nothing, NULL), -EPERM,
	   "dune_pt_walk() before dune_enter(): EPERM");
	ok(!dune_pt_entry(root, 0, NULL), "dune_pt_entry() before dune_enter(): NULL");
	ok(!dune_pt_clone(root), "dune_pt_clone() before dune_enter(): NULL");
	is(dune_pt_free(root), -EPERM, "dune_pt_free() before dune_enter(): EPERM");
	is(dune_pt_load(root, 0), -EPERM, "dune_pt_load() before dune_enter(): EPERM");
	is(dune_tlb_pcid(1), -EPERM, "dune_tlb_pcid() before dune_enter(): EPERM");
	dune_tlb_page(0);
	dune_tlb_all();
	ok(!dune_page_alloc(1), "dune_page_alloc() before dune_enter(): NULL");
	is(dune_ring3(&tf), -EPERM, "dune_ring3() before dune_enter(): EPERM");
	dune_stats(&stats);
	is(stats.arena_bytes, 0, "dune_stats() before dune_enter(): zero");
	is(dune_trap_set(X86_TRAP_UD, with_fpu, DUNE_TRAP_FPU), 0,
	   "dune_trap_set works before dune_enter()");
}

static void wrong(struct dune_config cfg, const char *what)
{
	const char *why;

	if (!cfg.size)
		cfg.size = sizeof(cfg);
	is(dune_enter(&cfg), -EINVAL, "dune_enter() with a wrong configuration (%s): EINVAL",
	   what);
	why = dune_enter_error();
	ok(why && strstr(why, what), "dune_enter_error() has the reason: %s", why ? why : "NULL");
}

static void test_configuration(void)
{
	void *p = arena;

	ok(!dune_enter_error(), "dune_enter_error() is NULL before any error");
	wrong((struct dune_config){ .size = 7 }, "size");
	wrong((struct dune_config){ .flags = 0x80 }, "flags");
	wrong((struct dune_config){ .reserved = { 0, 0, 1 } }, "reserved");
	wrong((struct dune_config){ .arena = (char *)p + PAGE, .arena_size = GB },
	      "arena is not aligned");
	wrong((struct dune_config){ .arena = p, .arena_size = PAGE }, "arena_size");
	wrong((struct dune_config){ .arena_size = GB }, "arena_size without");
	wrong((struct dune_config){ .arena = p, .arena_size = 1UL << 48 }, "arena ends");
	wrong((struct dune_config){ .super_base = PAGE, .super_size = GB }, "super_base");
	wrong((struct dune_config){ .super_base = GB }, "super_base without");
	wrong((struct dune_config){ .super_base = GB, .super_size = PAGE }, "super_size");
	wrong((struct dune_config){ .super_base = GB, .super_size = 1UL << 47 },
	      "supervisor range ends");
	wrong((struct dune_config){ .super_base = 1UL << 46, .super_size = GB },
	      "leaves out data");
	wrong((struct dune_config){ .super_size = (1UL << 47) - GB },
	      "leaves out a part of the arena");
	ok(!dune_active(), "the process is not in Dune mode after the errors");
}

/* A module that is pretended: how it answers DUNE_GET_INFO, and what dune_enter() then returns. */
struct module {
	int error;		/* 0: it fills the structure, with @bits */
	unsigned int bits;
	int want;
	const char *why;	/* a part of dune_enter_error() */
};

/* The listener of the filter of the thread that calls dune_enter(); -1: there is none yet. */
static int listener = -1;

/* Answers the first ioctl of the other thread as the module @arg does. */
static void *answer(void *arg)
{
	const struct module *module = arg;
	struct seccomp_notif call = { 0 };
	struct seccomp_notif_resp response = { .error = -module->error };
	struct dune_info *info;
	int fd;

	while ((fd = __atomic_load_n(&listener, __ATOMIC_ACQUIRE)) < 0)
		usleep(1000);
	if (ioctl(fd, SECCOMP_IOCTL_NOTIF_RECV, &call))
		child_fails("SECCOMP_IOCTL_NOTIF_RECV: %m");
	if (call.data.args[1] != DUNE_GET_INFO)
		child_fails("dune_enter() does not start with DUNE_GET_INFO");
	info = (struct dune_info *)call.data.args[2];
	info->api_version = DUNE_API_VERSION;
	info->vendor = DUNE_VENDOR_SVM;
	info->address_bits = module->bits;
	response.id = call.id;
	if (ioctl(fd, SECCOMP_IOCTL_NOTIF_SEND, &response))
		child_fails("SECCOMP_IOCTL_NOTIF_SEND: %m");
	return NULL;
}

static void enter_on(void *arg)
{
	const struct module *module = arg;
	pthread_t thread;
	const char *why;
	int err, fd;

	if (pthread_create(&thread, NULL, answer, arg))
		child_fails("pthread_create() failed");
	fd = filter_call(SYS_ioctl, SECCOMP_RET_USER_NOTIF, SECCOMP_FILTER_FLAG_NEW_LISTENER);
	__atomic_store_n(&listener, fd, __ATOMIC_RELEASE);
	err = dune_enter(NULL);
	if (err != module->want)
		child_fails("dune_enter() returned %d, not %d", err, module->want);
	why = dune_enter_error();
	if (!why || !strstr(why, module->why))
		child_fails("dune_enter_error(): %s", why ? why : "NULL");
	_exit(0);
}

/* Modules and processors that do not fit, for each of which /dev/dune can be opened. */
static void test_modules(void)
{
	static struct module modules[] = {
		{ ENOTTY, 0, -EPROTO, "another version" },
		{ EINVAL, 0, -EPROTO, "another version" },
		{ EPERM, 0, -EPERM, "DUNE_GET_INFO failed" },
		{ 0, 40, -ENODEV, "too few bits" },
	};

	for (unsigned int i = 0; i < sizeof(modules) / sizeof(modules[0]); i++) {
		struct outcome o = in_child(enter_on, &modules[i], 10);

		ok(outcome_is(o, 0), "DUNE_GET_INFO with error %d, %u bits: %s (%s)",
		   modules[i].error, modules[i].bits, modules[i].why, outcome_text(o));
	}
}

/* Run this program again as "enter", by another way. */
static int status_of(const char *how)
{
	char command[256];

	snprintf(command, sizeof(command), "%s /proc/%d/exe enter", how, getpid());
	return system(command);
}

static void test_valgrind(void)
{
	int status;

	if (system("command -v valgrind >/dev/null")) {
		skip("valgrind is not installed", "dune_enter under valgrind");
		return;
	}
	status = status_of("valgrind -q");
	is(WIFEXITED(status) ? WEXITSTATUS(status) : -1, EOPNOTSUPP,
	   "dune_enter under valgrind: EOPNOTSUPP");
}

static void test_twice(void)
{
	struct dune_config cfg = {
		.size = sizeof(cfg), .super_size = 1UL << 47
	};

	is(dune_enter(NULL), 0, "dune_enter() again without a configuration succeeds");
	is(dune_enter(&cfg), 0, "dune_enter() again with the same configuration succeeds");
	cfg.super_base = 1UL << 30;
	cfg.super_size -= 1UL << 30;
	is(dune_enter(&cfg), -EBUSY, "dune_enter() again with another supervisor range: EBUSY");
	ok(dune_enter_error() && strstr(dune_enter_error(), "another"),
	   "dune_enter_error() names the supervisor range");
	cfg.super_base = 0;
	cfg.super_size = 1UL << 47;
	cfg.arena = arena;
	cfg.arena_size = sizeof(arena);
	is(dune_enter(&cfg), -EBUSY, "dune_enter() again with another arena: EBUSY");
	cfg.arena = NULL;
	cfg.arena_size = 0;
	cfg.flags = DUNE_ENTER_RING3_SIGNALS;
	is(dune_enter(&cfg), -EBUSY, "dune_enter() again with other flags: EBUSY");
	cfg.flags = 0;
	is(dune_enter(&cfg), 0, "dune_enter() again with the same configuration succeeds");
	ok(!dune_enter_error(), "dune_enter_error() is NULL after that success");
}

int main(int argc, char **argv)
{
	struct dune_config cfg = {
		.size = sizeof(cfg), .super_size = 1UL << 47
	};
	unsigned long before = 0x1234567, after;

	if (argc > 1 && !strcmp(argv[1], "enter"))
		return -dune_enter(NULL);
	test_calls();
	test_configuration();
	test_valgrind();
	test_modules();
	must_enter(&cfg);
	ok(!dune_enter_error(), "dune_enter_error() is NULL after a success");
	test_twice();
	__asm__ volatile("movq %1, %%xmm9; ud2; movq %%xmm9, %0"
			 : "=r" (after) : "r" (before) : "xmm9", "memory");
	is(after, before, "a handler that was set before dune_enter() keeps the FPU registers");
	return done();
}
