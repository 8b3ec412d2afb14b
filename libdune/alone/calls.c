// SPDX-License-Identifier: MIT OR Apache-2.0
/* The functions of a process without a host half that make hypercalls: see common/hypercall.c. */
#include <dune_runtime.h>
#include "alone.h"

struct calls {
	dune_call_fn *call, *forward;
	dune_call_tf_fn *forward_tf;
	long (*clone)(long make, struct dune_child *child);
};

/* common/hypercall.S and child.S */
#define DECLARE(vendor)							\
	dune_call_fn dune_alone_call_##vendor, dune_alone_forward_##vendor; \
	dune_call_tf_fn dune_alone_forward_tf_##vendor;			\
	long dune_alone_clone_##vendor(long make, struct dune_child *child)

#define CALLS(vendor) {							\
	.call = dune_alone_call_##vendor,				\
	.forward = dune_alone_forward_##vendor,				\
	.forward_tf = dune_alone_forward_tf_##vendor,			\
	.clone = dune_alone_clone_##vendor,				\
}

DECLARE(svm);
DECLARE(vmx);

static const struct calls svm = CALLS(svm), vmx = CALLS(vmx);

long (*dune_alone_clone)(long make, struct dune_child *child) __ro_after_start;

/* Chooses them for the vendor of dune_info. Returns 0 or -EPROTO if the vendor is unknown. */
int dune_alone_choose_calls(u32 vendor)
{
	const struct calls *calls = vendor == DUNE_VENDOR_SVM ? &svm : &vmx;
	int err = dune_calls_choose(vendor);

	if (err)
		return err;
	dune_hypercall = calls->call;
	dune_syscall_forward = calls->forward;
	dune_forward_tf = calls->forward_tf;
	dune_alone_clone = calls->clone;
	return 0;
}
