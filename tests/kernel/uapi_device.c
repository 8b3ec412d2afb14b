// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * /dev/dune as dune.h describes it: layouts and numbers, the device's node, what DUNE_GET_INFO
 * reports, and requests that the device does not have. Fails when a size, an offset or a number
 * is not the published one, when a reported value is impossible, or when the module accepts
 * another size, a pointer that it cannot write to, or an unknown request.
 */
#define _GNU_SOURCE
#include "guest.h"
#include "tap.h"
#include "timing.h"
#include "uapi.h"
#include "x86.h"

#include <asm/processor-flags.h>
#include <errno.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

static struct guest g;

static void layouts(void)
{
	ok(sizeof(struct dune_info) == 80, "struct dune_info has 80 bytes (%zu)",
	   sizeof(struct dune_info));
	ok(sizeof(struct dune_create_vcpu) == 24, "struct dune_create_vcpu has 24 bytes");
	ok(sizeof(struct dune_segment) == 16, "struct dune_segment has 16 bytes");
	ok(sizeof(struct dune_state) == 312, "struct dune_state has 312 bytes (%zu)",
	   sizeof(struct dune_state));
	ok(sizeof(struct dune_regs) == 144, "struct dune_regs has 144 bytes");
	ok(offsetof(struct dune_run, flags) == 144 &&
	   offsetof(struct dune_run, fault_address) == 168 &&
	   offsetof(struct dune_run, counters) == 264 &&
	   offsetof(struct dune_run, signal) == 392 && sizeof(struct dune_run) == 568,
	   "struct dune_run has its members in place (%zu)", sizeof(struct dune_run));
	ok(sizeof(struct dune_private) == 32 && DUNE_ADD_PRIVATE == 0xc020de15,
	   "struct dune_private has 32 bytes");
	ok(sizeof(struct dune_stub) == 176 && DUNE_SET_STUB == 0xc0b0de16,
	   "struct dune_stub has 176 bytes (%zu)", sizeof(struct dune_stub));
	ok(DUNE_GET_INFO == 0xc050de00 && DUNE_CREATE_VCPU == 0x4018de01 && DUNE_RUN == 0xde10,
	   "request numbers are as published");
}

static void device_node(void)
{
	struct stat st;

	ok(!stat("/dev/dune", &st) && S_ISCHR(st.st_mode), "/dev/dune is a character device");
	ok((st.st_mode & 0777) == 0666 || (st.st_mode & 0777) == 0660 ||
	   (st.st_mode & 0777) == 0600,
	   "the mode of /dev/dune is 666, 660 or 600 (%o)", st.st_mode & 0777);

	char c;

	ok(read(g.dev, &c, 1) < 0 && write(g.dev, &c, 1) < 0,
	   "the device cannot be read nor written");
	ok(mmap(NULL, 4096, PROT_READ, MAP_SHARED, g.dev, 0) == MAP_FAILED,
	   "the device cannot be mapped");
}

static void info(void)
{
	const u64 cr0 = X86_CR0_PE | X86_CR0_WP | X86_CR0_PG;
	const u64 efer = EFER_SCE | EFER_LME | EFER_LMA | EFER_NX;
	struct dune_info info = { .size = sizeof(info) };

	ok(!call(g.dev, DUNE_GET_INFO, &info), "DUNE_GET_INFO succeeds");
	ok(info.size == sizeof(info) && info.api_version == DUNE_API_VERSION,
	   "DUNE_GET_INFO reports its size and version %u", info.api_version);
	ok(info.vendor == DUNE_VENDOR_SVM || info.vendor == DUNE_VENDOR_VMX,
	   "DUNE_GET_INFO reports vendor %u", info.vendor);
	ok(info.address_bits >= 36 && info.address_bits <= 47,
	   "DUNE_GET_INFO reports an address width of %u", info.address_bits);
	ok((info.guest_cr0 & cr0) == cr0, "the guest's CR0 %#llx has PE, WP, PG",
	   info.guest_cr0);
	ok((info.guest_cr4 & X86_CR4_PAE) &&
	   !(info.guest_cr4 & (X86_CR4_SMEP | X86_CR4_SMAP)),
	   "the guest's CR4 %#llx has PAE, no SMEP, no SMAP",
	   info.guest_cr4);
	ok((info.guest_efer & efer) == efer, "the guest's EFER %#llx has SCE, LME, LMA, NXE",
	   info.guest_efer);
	ok(info.run_size == 4096, "the run page is a page");
	ok(info.vendor == DUNE_VENDOR_SVM ? !info.granules :
	   info.granules >= 2 && (u64)info.granules << 30 <= 1UL << info.address_bits,
	   "the number of granules is right for the vendor: %u", info.granules);
	ok(!info.reserved, "the reserved field is zero");
	ok(!(info.features & ~(DUNE_FEATURE_FAST_SYSCALL | DUNE_FEATURE_PCID | DUNE_FEATURE_SMEP |
			       DUNE_FEATURE_SMAP)), "DUNE_GET_INFO reports no unknown feature");
}

static void info_refused(void)
{
	struct dune_info info;
	static const u32 sizes[] = { 0, 4, 72, 79, 81, 4096, 0xffffffff };

	for (unsigned int i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		info.size = sizes[i];
		ok(call(g.dev, DUNE_GET_INFO, &info) == -EINVAL,
		   "DUNE_GET_INFO with size %u: EINVAL", sizes[i]);
	}
	ok(call(g.dev, DUNE_GET_INFO, NULL) == -EFAULT, "DUNE_GET_INFO at 0: EFAULT");
	ok(call(g.dev, DUNE_GET_INFO, (void *)0xffff888000000000) == -EFAULT,
	   "DUNE_GET_INFO at a kernel address: EFAULT");
	ok(call(g.dev, DUNE_GET_INFO, (void *)0x8000000000000000) == -EFAULT,
	   "DUNE_GET_INFO at a non-canonical address: EFAULT");

	char *page = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	munmap(page + 4096, 4096);
	struct dune_info *edge = (void *)(page + 4096 - 16);

	edge->size = sizeof(*edge);
	ok(call(g.dev, DUNE_GET_INFO, edge) == -EFAULT,
	   "DUNE_GET_INFO over the end of a mapping: EFAULT");
	edge = (void *)(page + 64);
	edge->size = sizeof(*edge);
	mprotect(page, 4096, PROT_READ);
	ok(call(g.dev, DUNE_GET_INFO, edge) == -EFAULT,
	   "DUNE_GET_INFO into read-only memory: EFAULT");
	munmap(page, 4096);
}

static void unknown_requests(void)
{
	static const unsigned int unknown[] = { 0xde02, 0xc038de03, 0x4018de00, 0xde00, 0xae00, 0,
						0xffffffff,
						0x5413, DUNE_RUN, DUNE_GET_STATE };
	struct dune_info info;

	for (unsigned int i = 0; i < sizeof(unknown) / sizeof(unknown[0]); i++) {
		int err = call(g.dev, unknown[i], &info);

		ok(err == -ENOTTY, "request %#x on the device: ENOTTY (%s)", unknown[i],
		   strerror(-err));
	}
}

int main(void)
{
	begin(60);
	layouts();
	guest_open(&g);
	device_node();
	info();
	info_refused();
	unknown_requests();
	guest_close(&g);
	return done();
}
