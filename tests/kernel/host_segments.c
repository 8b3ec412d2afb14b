// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * After each run the segment state has the host's values again: segment registers, LDTR,
 * TR, descriptor tables, the bases of FS and GS, also those that the thread set itself.
 * Fails when the module does not restore one of them, or restores a value that is not the
 * thread's.
 */
#define _GNU_SOURCE
#include "host.h"
#include "tap.h"

#include <asm/prctl.h>
#include <sys/syscall.h>

#define THREAD_GS_BASE	0x5500001000

static struct guest g;

/* The thread's GS: a 64-bit process does not use it, so an error would go unnoticed. */
static void gs_base(void)
{
	u64 gs = 0;

	raw_syscall(SYS_arch_prctl, ARCH_SET_GS, THREAD_GS_BASE, 0, 0, 0, 0);
	guest_call(&g, load_bases, &g);
	asm volatile("rdgsbase %0" : "=r"(gs));
	ok(gs == THREAD_GS_BASE,
	   "the thread's GS base is its own after a guest's SWAPGS and WRGSBASE (%#lx)", gs);
	host_call_long(&g, load_bases);
	asm volatile("rdgsbase %0" : "=r"(gs));
	ok(gs == THREAD_GS_BASE,
	   "the thread's GS base is its own after switches during a guest (%#lx)", gs);
	raw_syscall(SYS_arch_prctl, ARCH_SET_GS, 0, 0, 0, 0, 0);
}

/* modify_ldt: a process with an LDT finds it after a guest with another. */
static void ldt(void)
{
	struct {
		u32 entry, base, limit, flags;
	} d = { 1, 0x1000, 0xfff, 0x51 };
	u16 selector = 0;

	if (raw_syscall(SYS_modify_ldt, 1, (long)&d, sizeof(d), 0, 0, 0)) {
		skip("no modify_ldt", "the process's LDT");
		return;
	}
	guest_call(&g, load_ldt, &g);
	host_call_long(&g, load_ldt);
	asm volatile("mov %1, %%gs; mov %%gs, %0; mov %2, %%gs"
		     : "=&r"(selector) : "r"(0xf), "r"(0));
	ok(selector == 0xf, "the process's LDT is loaded after a guest with its own");
}

int main(void)
{
	host_begin(&g);
	host_open_msrs();
	host_check(&g, "nothing", guest_return);
	host_check(&g, "segment registers", load_segments);
	host_check(&g, "an LDTR", load_ldt);
	host_check(&g, "a TR", load_tr);
	host_check(&g, "descriptor tables", load_tables);
	host_check(&g, "FS and GS bases", load_bases);
	gs_base();
	ldt();
	return host_end();
}
