// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * The hypercall instruction is VMMCALL on AMD and VMCALL on Intel, and either
 * raises #UD on the other vendor's processors. So all code that contains it
 * exists twice. When the module has named the vendor, the right code is chosen:
 * the entry of SYSCALL by the address in LSTAR, the functions by pointers. The C
 * source of a call is the same in both cases.
 *
 * The alternative is to write the right instruction over the wrong one. It needs
 * text that is writable for a moment, which SELinux, MDWE and seccomp filters
 * rightly refuse, and a private copy of the page in each process.
 */
#include <linux/dune.h>
#include <linux/errno.h>
#include "dune_runtime.h"
#include "hypercall.h"

/* guest/entry.S and hypercall.S */
#define DECLARE(vendor)							\
	extern const char dune_lstar_##vendor[];			\
	extern const char dune_lstar_call_##vendor[];			\
	extern const char dune_lstar_popf_##vendor[];			\
	extern const char dune_lstar_end_##vendor[];			\
	extern const char dune_forward_call_##vendor[];			\
	extern const char dune_forward_tf_call_##vendor[];		\
	dune_call_fn dune_hypercall_##vendor, dune_forward_##vendor;	\
	dune_call_tf_fn dune_forward_tf_##vendor

#define CALLS(vendor) {							\
	.lstar = dune_lstar_##vendor,					\
	.lstar_call = dune_lstar_call_##vendor,				\
	.lstar_popf = dune_lstar_popf_##vendor,				\
	.lstar_end = dune_lstar_end_##vendor,				\
	.forward_call = dune_forward_call_##vendor,			\
	.forward_tf_call = dune_forward_tf_call_##vendor,		\
}

DECLARE(svm);
DECLARE(vmx);

/*
 * AMD's are chosen at first, so that a program writes nothing here on AMD: a page that is never
 * written needs no copy of its own. (alone/calls.c chooses other functions for a runtime.)
 */
struct dune_calls dune_calls __ro_after_start = CALLS(svm);
long (*dune_hypercall)(long nr, long a0, long a1, long a2, long a3, long a4,
		       long a5) __ro_after_start = dune_hypercall_svm;
long (*dune_syscall_forward)(long nr, long a0, long a1, long a2, long a3, long a4,
			     long a5) __ro_after_start = dune_forward_svm;
long (*dune_forward_tf)(struct dune_tf *tf, long nr) __ro_after_start = dune_forward_tf_svm;

/*
 * Chooses the code for the vendor of dune_info, before the first entry. Returns -EPROTO
 * if the vendor is unknown.
 */
int dune_calls_choose(u32 vendor)
{
	switch (vendor) {
	case DUNE_VENDOR_SVM:
		return 0;
	case DUNE_VENDOR_VMX:
		dune_calls = (struct dune_calls)CALLS(vmx);
		dune_hypercall = dune_hypercall_vmx;
		dune_syscall_forward = dune_forward_vmx;
		dune_forward_tf = dune_forward_tf_vmx;
		return 0;
	default:
		return -EPROTO;
	}
}
