// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * The stub (struct dune_stub in <linux/dune.h>) of a runtime that asks for it by
 * dune_stub_use(): one page of the arena, which all vCPUs of the process use. dune_host_loop()
 * calls it instead of DUNE_RUN.
 */
#include "host.h"

static bool wanted;

void dune_stub_use(void)
{
	wanted = true;
}

static long bind(int vcpu)
{
	struct dune_stub stub = {
		.size = sizeof(stub),
		.address = (u64)dune_process.stub,
	};

	return sys3(__NR_ioctl, vcpu, DUNE_SET_STUB, (long)&stub);
}

/*
 * Binds a new vCPU of the calling thread to the process's stub, if a stub is wanted. The page is
 * mapped already if the memory is that of a parent, which waits. In a child with a copy of the
 * memory its place is a hole, as in dune_run_map(). Returns 0 or an error; the page then stays
 * mapped, because unmapping it ends the process.
 */
long dune_stub_start(int vcpu)
{
	long at, err;

	if (!wanted)
		return 0;
	if (!dune_process.stub)
		dune_process.stub = dune_page_alloc(1);
	if (!dune_process.stub)
		return -ENOMEM;
	err = bind(vcpu);
	if (err != -EINVAL)
		return err;
	at = sys6(__NR_mmap, (long)dune_process.stub, PAGE, PROT_READ, MAP_SHARED | MAP_FIXED,
		  vcpu, DUNE_STUB_OFFSET);
	return is_error(at) ? at : bind(vcpu);
}
