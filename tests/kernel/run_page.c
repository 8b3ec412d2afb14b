// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * The run page is data, however it is mapped: a function in it can be called neither by
 * the process nor by its guest. Fails when the mapping or its page-table entry is
 * executable. A kernel that maps no anonymous inode for execution must refuse that here, too.
 */
#define _GNU_SOURCE
#include "child.h"
#include "guest.h"
#include "tap.h"
#include "timing.h"
#include "uapi.h"
#include "x86.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/personality.h>
#include <unistd.h>

#define CODE_OFFSET	2048	/* after struct dune_run */
#define RETURNED	42

static const struct mapping {
	const char *name;
	int rights;
	unsigned long personality;
} mappings[] = {
	{ "mapped for reading and writing", PROT_READ | PROT_WRITE, 0 },
	{ "mapped for execution, too", PROT_READ | PROT_WRITE | PROT_EXEC, 0 },
	{ "mapped under READ_IMPLIES_EXEC", PROT_READ | PROT_WRITE, READ_IMPLIES_EXEC },
};

/* Puts a function into the run page, which returns its argument. */
static u64 (*put_function(void *page))(void *arg)
{
	static const u8 code[] = { 0x48, 0x89, 0xf8, 0xc3 };	/* mov %rdi, %rax; ret */
	void *at = (u8 *)page + CODE_OFFSET;

	memcpy(at, code, sizeof(code));
	return (u64 (*)(void *))at;
}

static void *map_run_page(const struct mapping *mapping)
{
	struct dune_create_vcpu create = { .size = sizeof(create) };
	int dev = open("/dev/dune", O_RDWR | O_CLOEXEC);
	int fd = ioctl(dev, DUNE_CREATE_VCPU, &create);

	personality(mapping->personality);
	return mmap(NULL, PAGE, mapping->rights, MAP_SHARED, fd, 0);
}

static void call_natively(void *arg)
{
	void *page = map_run_page(arg);

	if (page == MAP_FAILED)
		child_fails("the run page cannot be mapped");
	_exit(put_function(page)((void *)RETURNED));
}

static void make_executable(void *arg)
{
	void *page = map_run_page(arg);

	if (page == MAP_FAILED)
		child_fails("the run page cannot be mapped");
	_exit(mprotect(page, PAGE, PROT_READ | PROT_EXEC) ? errno : 0);
}

static void map_only(void *arg)
{
	_exit(map_run_page(arg) == MAP_FAILED ? errno : 0);
}

/* guest_open() maps the page for reading and writing. */
static void call_in_guest(void *arg)
{
	const struct mapping *mapping = arg;
	struct guest g;

	personality(mapping->personality);
	guest_open(&g);
	personality(0);
	if (guest_call(&g, put_function(g.run), (void *)RETURNED) == GUEST_DONE)
		_exit(g.value);
	child_fails("the guest did not return from the call");
}

int main(void)
{
	begin(120);
	for (unsigned int i = 0; i < sizeof(mappings) / sizeof(mappings[0]); i++) {
		const struct mapping *mapping = &mappings[i];
		struct outcome outcome;

		if (mapping->rights & PROT_EXEC && maps_no_code()) {
			outcome = in_child(map_only, (void *)mapping, 20);
			ok(outcome.code == EPERM, "a run page that is %s: mmap() is EPERM (%s)",
			   mapping->name, outcome_text(outcome));
			skip("this kernel has no such mapping",
			     "a run page that is %s: mprotect() to executable is EACCES",
			     mapping->name);
			continue;
		}
		outcome = in_child(call_natively, (void *)mapping, 20);
		ok(outcome.signal == SIGSEGV, "a run page that is %s: calling it is a SIGSEGV (%s)",
		   mapping->name, outcome_text(outcome));
		outcome = in_child(make_executable, (void *)mapping, 20);
		ok(outcome.code == EACCES,
		   "a run page that is %s: mprotect() to executable is EACCES (%s)", mapping->name,
		   outcome_text(outcome));
		if (mapping->rights & PROT_EXEC)
			continue;	/* guest_open() chooses the rights itself */
		outcome = in_child(call_in_guest, (void *)mapping, 20);
		ok(outcome.signal == SIGSEGV,
		   "a run page that is %s: a guest's call of it is a SIGSEGV of the host half (%s)",
		   mapping->name, outcome_text(outcome));
	}
	return done();
}
