// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * A vCPU's state as dune.h describes it: DUNE_SET_STATE and DUNE_GET_STATE. Fails when the module
 * accepts a size, a reserved field, a ring or a task register that it must refuse, when it
 * trusts a pointer, when an address that is not canonical harms a run or the one after it, or
 * when the state that is read is not the one that was set.
 */
#define _GNU_SOURCE
#include "guest.h"
#include "tap.h"
#include "timing.h"
#include "uapi.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>

static struct guest g;

static void refused_states(void)
{
	static const u16 tss[] = { 0, 0x0b, 0x89, 0x83, 0x9b };
	static const u32 sizes[] = { 0, 4, 311, 313, 4096 };
	struct dune_state s;

	for (unsigned int i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		s = g.state;
		s.size = sizes[i];
		ok(call(g.fd, DUNE_SET_STATE, &s) == -EINVAL, "DUNE_SET_STATE with size %u: EINVAL",
		   sizes[i]);
		s.size = sizes[i];
		ok(call(g.fd, DUNE_GET_STATE, &s) == -EINVAL, "DUNE_GET_STATE with size %u: EINVAL",
		   sizes[i]);
	}
	for (int i = 0; i < 8; i += 7) {
		s = g.state;
		s.reserved[i] = 1;
		ok(call(g.fd, DUNE_SET_STATE, &s) == -EINVAL,
		   "DUNE_SET_STATE with reserved[%d]: EINVAL", i);
	}
	s = g.state;
	s.cpl = 4;
	ok(call(g.fd, DUNE_SET_STATE, &s) == -EINVAL, "DUNE_SET_STATE with cpl 4: EINVAL");
	for (unsigned int i = 0; i < sizeof(tss) / sizeof(tss[0]); i++) {
		s = g.state;
		s.tr.attributes = tss[i];
		ok(call(g.fd, DUNE_SET_STATE, &s) == -EINVAL,
		   "DUNE_SET_STATE with a TR that is no busy TSS (%#x): EINVAL", tss[i]);
	}
	ok(call(g.fd, DUNE_SET_STATE, NULL) == -EFAULT, "DUNE_SET_STATE at 0: EFAULT");
	ok(call(g.fd, DUNE_GET_STATE, (void *)0xffffffff81000000) == -EFAULT,
	   "DUNE_GET_STATE at a kernel address: EFAULT");
}

/*
 * Addresses that are not canonical are accepted: SVM makes them canonical (APM vol. 2,
 * 15.5.1), and the module does so for VMX. A run with one ends, and the next guest works.
 */
static void non_canonical_addresses(void)
{
	struct dune_state s;
	struct { const char *name; size_t offset; } addresses[] = {
		{ "fs.base", offsetof(struct dune_state, fs.base) },
		{ "gs.base", offsetof(struct dune_state, gs.base) },
		{ "tr.base", offsetof(struct dune_state, tr.base) },
		{ "ldtr.base", offsetof(struct dune_state, ldtr.base) },
		{ "gdtr.base", offsetof(struct dune_state, gdtr.base) },
		{ "idtr.base", offsetof(struct dune_state, idtr.base) },
		{ "lstar", offsetof(struct dune_state, lstar) },
		{ "cstar", offsetof(struct dune_state, cstar) },
		{ "kernel_gs_base", offsetof(struct dune_state, kernel_gs_base) },
		{ "sysenter_esp", offsetof(struct dune_state, sysenter_esp) },
		{ "sysenter_eip", offsetof(struct dune_state, sysenter_eip) },
	};

	for (unsigned int i = 0; i < sizeof(addresses) / sizeof(addresses[0]); i++) {
		guest_prepare(&g, 0, return_42, NULL);
		s = g.state;
		*(u64 *)((char *)&s + addresses[i].offset) = 0x8000000000000000;
		int err = call(g.fd, DUNE_SET_STATE, &s);

		is(err, 0, "DUNE_SET_STATE with a non-canonical %s", addresses[i].name);
		do
			err = guest_run(&g);
		while (err == -EINTR);
		is(err, 0, "DUNE_RUN with a non-canonical %s", addresses[i].name);
		enum guest_end end = guest_call(&g, return_42, NULL);

		ok(end == GUEST_DONE && g.value == 42,
		   "the guest runs after a non-canonical %s (%s)", addresses[i].name,
		   guest_end_name(&g, end));
	}
}

static void state_is_kept(void)
{
	struct dune_state a = g.state, b;

	a.cr2 = 0x1234567000;
	a.kernel_gs_base = 0x7f0012340000;
	a.sysenter_eip = 0x400123;
	a.cstar = 0x400456;
	a.sfmask = 0x4700;
	a.es.selector = 0x23;
	a.ldtr = (struct dune_segment){ 0x50, 0x82, 0xfff, 0x7f0000001000 };
	ok(!call(g.fd, DUNE_SET_STATE, &a), "DUNE_SET_STATE succeeds");
	memset(&b, 0xa5, sizeof(b));
	b.size = sizeof(b);
	ok(!call(g.fd, DUNE_GET_STATE, &b), "DUNE_GET_STATE into a structure that was not cleared");
	ok(!memcmp(&a, &b, sizeof(a)),
	   "DUNE_GET_STATE reads back what was set, reserved fields zero");
	if (memcmp(&a, &b, sizeof(a))) {
		for (unsigned int i = 0; i < sizeof(a) / 8; i++) {
			if (((u64 *)&a)[i] != ((u64 *)&b)[i])
				diag("offset %u: set %#lx read %#lx", i * 8, ((u64 *)&a)[i],
				     ((u64 *)&b)[i]);
		}
	}
	call(g.fd, DUNE_SET_STATE, &g.state);
}

int main(void)
{
	begin(60);
	guest_open(&g);
	refused_states();
	non_canonical_addresses();
	state_is_kept();
	guest_close(&g);
	return done();
}
