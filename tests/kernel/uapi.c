// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * The interface by its letter: layouts, sizes, flags, reserved fields, file
 * descriptors, threads and processes, mappings. Fails when the module ignores
 * fields or flags that it does not know, or trusts a pointer or an owner.
 */
#define _GNU_SOURCE
#include "guest.h"
#include "machine.h"
#include "tap.h"
#include "x86.h"

#include <asm/processor-flags.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static struct guest g;

static int call(int fd, unsigned long request, void *arg)
{
	return ioctl(fd, request, arg) < 0 ? -errno : 0;
}

static u64 return_42(void *arg)
{
	return 42;
}

static void layouts(void)
{
	ok(sizeof(struct dune_info) == 72, "struct dune_info has 72 bytes (%zu)",
	   sizeof(struct dune_info));
	ok(sizeof(struct dune_create_vcpu) == 24, "struct dune_create_vcpu has 24 bytes");
	ok(sizeof(struct dune_segment) == 16, "struct dune_segment has 16 bytes");
	ok(sizeof(struct dune_state) == 312, "struct dune_state has 312 bytes (%zu)",
	   sizeof(struct dune_state));
	ok(sizeof(struct dune_regs) == 144, "struct dune_regs has 144 bytes");
	ok(offsetof(struct dune_run, flags) == 144 &&
	   offsetof(struct dune_run, fault_address) == 168 &&
	   offsetof(struct dune_run, counters) == 264 && sizeof(struct dune_run) == 392,
	   "struct dune_run has its members in place (%zu)", sizeof(struct dune_run));
	ok(DUNE_GET_INFO == 0xc048de00 && DUNE_CREATE_VCPU == 0x4018de01 && DUNE_RUN == 0xde10,
	   "request numbers are as published");
}

static void device(void)
{
	struct stat st;

	ok(!stat("/dev/dune", &st) && S_ISCHR(st.st_mode), "/dev/dune is a character device");
	ok((st.st_mode & 0777) == 0666 || (st.st_mode & 0777) == 0660 ||
	   (st.st_mode & 0777) == 0600,
	   "the mode of /dev/dune is 666, 660 or 600 (%o)", st.st_mode & 0777);

	const u64 cr0 = X86_CR0_PE | X86_CR0_WP | X86_CR0_PG;
	const u64 efer = EFER_SCE | EFER_LME | EFER_LMA | EFER_NX;
	struct dune_info info = { .size = sizeof(info) };

	ok(!call(g.dev, DUNE_GET_INFO, &info), "DUNE_GET_INFO succeeds");
	ok(info.size == sizeof(info) && info.api_version == DUNE_API_VERSION,
	   "DUNE_GET_INFO reports its size and version %u", info.api_version);
	ok(info.vendor == DUNE_VENDOR_SVM || info.vendor == DUNE_VENDOR_VMX,
	   "DUNE_GET_INFO reports vendor %u", info.vendor);
	ok(info.address_bits >= 36 && info.address_bits <= 52,
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
	ok(!(info.features & ~(DUNE_FEATURE_FAST_SYSCALL | DUNE_FEATURE_PCID | DUNE_FEATURE_SMEP |
			       DUNE_FEATURE_SMAP)), "DUNE_GET_INFO reports no unknown feature");

	static const u32 sizes[] = { 0, 4, 56, 63, 65, 4096, 0xffffffff };

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

	static const unsigned int unknown[] = { 0xde02, 0xc038de03, 0x4018de00, 0xde00, 0xae00, 0,
						0xffffffff,
						0x5413, DUNE_RUN, DUNE_GET_STATE };

	for (unsigned int i = 0; i < sizeof(unknown) / sizeof(unknown[0]); i++) {
		int err = call(g.dev, unknown[i], page);

		ok(err == -ENOTTY, "request %#x on the device: ENOTTY (%s)", unknown[i],
		   strerror(-err));
	}
	char c;

	ok(read(g.dev, &c, 1) < 0 && write(g.dev, &c, 1) < 0,
	   "the device cannot be read nor written");
	ok(mmap(NULL, 4096, PROT_READ, MAP_SHARED, g.dev, 0) == MAP_FAILED,
	   "the device cannot be mapped");
}

static void create(void)
{
	struct dune_create_vcpu c = { .size = sizeof(c) };
	static const u32 sizes[] = { 0, 8, 23, 25, 4096 };

	for (unsigned int i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		c.size = sizes[i];
		ok(call(g.dev, DUNE_CREATE_VCPU, &c) == -EINVAL,
		   "DUNE_CREATE_VCPU with size %u: EINVAL", sizes[i]);
	}
	c.size = sizeof(c);
	for (int bit = 1; bit < 32; bit += 5) {
		c.flags = 1U << bit;
		ok(call(g.dev, DUNE_CREATE_VCPU, &c) == -EINVAL,
		   "DUNE_CREATE_VCPU with flag %d: EINVAL", bit);
	}
	c.flags = 0;
	for (int i = 0; i < 2; i++) {
		c.reserved[i] = 1UL << 63;
		ok(call(g.dev, DUNE_CREATE_VCPU, &c) == -EINVAL,
		   "DUNE_CREATE_VCPU with reserved[%d]: EINVAL", i);
		c.reserved[i] = 0;
	}
	ok(call(g.dev, DUNE_CREATE_VCPU, NULL) == -EFAULT, "DUNE_CREATE_VCPU at 0: EFAULT");

	int fd = ioctl(g.dev, DUNE_CREATE_VCPU, &c);

	ok(fd >= 0, "a thread makes a second vCPU");
	ok(fcntl(fd, F_GETFD) & FD_CLOEXEC, "a vCPU's descriptor is close-on-exec");
	close(fd);
}

static void vcpu(void)
{
	static const unsigned int unknown[] = { 0xde11, 0xde13, 0xc138de10, 0xde14,
						DUNE_CREATE_VCPU, 0xae80 };
	struct dune_state s;

	for (unsigned int i = 0; i < sizeof(unknown) / sizeof(unknown[0]); i++) {
		int err = call(g.fd, unknown[i], &s);

		ok(err == -ENOTTY, "request %#x on a vCPU: ENOTTY (%s)", unknown[i],
		   strerror(-err));
	}
	ok(call(g.fd, DUNE_RUN, &s) == -EINVAL, "DUNE_RUN with an argument: EINVAL");
}

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
 * MSRs that hold addresses must be canonical: VMLOAD and WRMSR of a bad one
 * would fault in the host.
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

		if (!err)
			guest_run(&g);
		ok(err == -EINVAL || !err, "non-canonical %s: refused, or a run survives it",
		   addresses[i].name);
		call(g.fd, DUNE_SET_STATE, &g.state);
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

static void mappings(void)
{
	ok(mmap(NULL, 4096, PROT_READ, MAP_SHARED, g.fd, 4096) == MAP_FAILED,
	   "mmap of a vCPU at offset 4096 fails");
	ok(mmap(NULL, 8192, PROT_READ, MAP_SHARED, g.fd, 0) == MAP_FAILED,
	   "mmap of two pages of a vCPU fails");
	ok(mmap(NULL, 4096, PROT_READ, MAP_SHARED, g.fd, 1UL << 40) == MAP_FAILED,
	   "mmap of a vCPU at offset 2^40 fails");
	ok(mmap(NULL, 4096, PROT_READ, MAP_PRIVATE, g.fd, 0) == MAP_FAILED,
	   "a private mapping of a vCPU fails");

	ok(mmap(NULL, 4096, PROT_READ, MAP_SHARED, g.fd, 0) == MAP_FAILED && errno == EBUSY,
	   "a second mapping of the run page: EBUSY");
	ok(mremap(g.run, 4096, 8192, MREMAP_MAYMOVE) == MAP_FAILED,
	   "the mapping of the run page cannot be grown");
}

static int run_bits(void)
{
	guest_prepare(&g, 0, return_42, NULL);
	return 0;
}

static void run(void)
{
	struct dune_run *r = g.run;

	for (int bit = 1; bit < 32; bit += 6) {
		run_bits();
		r->flags = 1U << bit;
		ok(guest_run(&g) == -EINVAL, "DUNE_RUN with flag %d: EINVAL", bit);
	}
	r->flags = 0;
	run_bits();
	r->reserved0 = 1;
	ok(guest_run(&g) == -EINVAL, "DUNE_RUN with reserved0: EINVAL");
	r->reserved0 = 0;
	r->reserved1[7] = 1;
	ok(guest_run(&g) == -EINVAL, "DUNE_RUN with reserved1: EINVAL");
	r->reserved1[7] = 0;

	static const u32 vectors[] = { 1, 2, 31, 256, 0x80000020 };

	for (unsigned int i = 0; i < sizeof(vectors) / sizeof(vectors[0]); i++) {
		r->irq_vector = vectors[i];
		ok(guest_run(&g) == -EINVAL, "DUNE_RUN with vector %#x: EINVAL", vectors[i]);
	}
	r->irq_vector = 0;
	enum guest_end end = guest_call(&g, return_42, NULL);

	ok(end == GUEST_DONE && g.value == 42, "after all refusals the guest runs (%s)",
	   guest_end_name(&g, end));
	/* All that is promised about flags is that the guest cannot own the host's. */
	guest_prepare(&g, 0, return_42, NULL);
	r->regs.rflags = ~0UL;
	end = guest_resume(&g);
	diag("all flags set: %s", guest_end_name(&g, end));
	ok(!guest_set_state(&g, &g.state), "the state can be set after a run with all flags set");
	end = guest_call(&g, return_42, NULL);
	ok(end == GUEST_DONE && g.value == 42, "the guest runs after a run with all flags set");
}

static void *thread(void *arg)
{
	struct dune_create_vcpu c = { .size = sizeof(c) };
	struct dune_state s = { .size = sizeof(s) };
	int *result = arg;

	result[0] = call(g.fd, DUNE_RUN, NULL);
	result[1] = call(g.fd, DUNE_GET_STATE, &s);
	s = g.state;
	result[2] = call(g.fd, DUNE_SET_STATE, &s);
	result[3] = ioctl(g.dev, DUNE_CREATE_VCPU, &c);
	result[4] = raw_syscall(SYS_mmap, 0, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, g.fd, 0);
	return NULL;
}

static void threads(void)
{
	int result[5];
	pthread_t t;

	guest_prepare(&g, 0, return_42, NULL);
	pthread_create(&t, NULL, thread, result);
	pthread_join(t, NULL);
	ok(result[0] == -EPERM, "another thread cannot run the vCPU: EPERM");
	ok(result[1] == -EPERM && result[2] == -EPERM,
	   "another thread cannot read or write the vCPU's state: EPERM");
	ok(result[4] == -EPERM, "another thread cannot map the vCPU's run page: EPERM");
	ok(result[3] >= 0, "another thread makes a vCPU of its own in the same address space");
	guest_prepare(&g, 0, return_42, NULL);
	ok(ioctl(result[3], DUNE_RUN, 0) < 0 && errno == EPERM,
	   "DUNE_RUN on the vCPU of a thread that has ended gives EPERM");
	close(result[3]);
}

static void child(void *arg)
{
	struct dune_create_vcpu c = { .size = sizeof(c) };
	struct dune_state s = g.state;
	struct guest own;
	int bits = 0;

	bits |= (call(g.fd, DUNE_RUN, NULL) == -EPERM) << 0;
	bits |= (call(g.fd, DUNE_SET_STATE, &s) == -EPERM) << 1;
	bits |= (call(g.fd, DUNE_GET_STATE, &s) == -EPERM) << 2;
	bits |= (call(g.dev, DUNE_CREATE_VCPU, &c) == -EPERM) << 3;
	/* VM_DONTCOPY: the run page is not here. */
	bits |= (syscall(SYS_mincore, g.run, 4096, &c) < 0 && errno == ENOMEM) << 4;
	/* Mapping the parent's run page anew may work, but does not let the child run the vCPU. */
	if (!guest_try_open(&own)) {
		bits |= 1 << 5;
		bits |= (guest_call(&own, return_42, NULL) == GUEST_DONE && own.value == 42) << 6;
	}
	_exit(bits);
}

static void processes(void)
{
	struct outcome o = in_child(child, NULL, 20);

	ok(o.code >= 0 && (o.code & 1), "a child after fork cannot run the parent's vCPU: EPERM");
	ok(o.code >= 0 && (o.code & 6) == 6,
	   "a child after fork cannot read or write the vCPU's state: EPERM");
	ok(o.code >= 0 && (o.code & 8),
	   "a child after fork cannot make a vCPU on the parent's device: EPERM");
	ok(o.code >= 0 && (o.code & 16), "a child after fork does not inherit the run page");
	ok(o.code >= 0 && (o.code & 96) == 96,
	   "a child after fork opens the device and runs a guest of its own");
	guest_prepare(&g, 0, return_42, NULL);
	ok(guest_resume(&g) == GUEST_DONE && g.value == 42,
	   "the parent's guest runs after the child has tried");
}

/*
 * An inherited vCPU becomes one of the caller's, at its number; the guest runs
 * in it. No descriptor is free meanwhile.
 */
static bool renewed(int fd)
{
	struct dune_renew_vcpu r = { .size = sizeof(r), .fd = fd };
	struct dune_info info = { .size = sizeof(info) };
	struct rlimit limit, none;
	struct guest own;
	bool good;

	getrlimit(RLIMIT_NOFILE, &limit);
	none = limit;
	none.rlim_cur = 0;
	setrlimit(RLIMIT_NOFILE, &none);
	good = !call(fd, DUNE_GET_INFO, &info) && info.api_version == DUNE_API_VERSION &&
	       !call(fd, DUNE_RENEW_VCPU, &r) && call(fd, DUNE_RENEW_VCPU, &r) == -EPERM &&
	       fcntl(fd, F_GETFD) == FD_CLOEXEC;
	setrlimit(RLIMIT_NOFILE, &limit);
	return good && !guest_adopt(&own, fd) && guest_call(&own, return_42, NULL) == GUEST_DONE &&
	       own.value == 42;
}

static void renew_child(void *arg)
{
	struct dune_renew_vcpu r = { .size = sizeof(r), .fd = g.fd };
	int bits = 0, null = open("/dev/null", O_RDWR);

	r.size = 8;
	bits |= (call(g.fd, DUNE_RENEW_VCPU, &r) == -EINVAL) << 0;
	r.size = sizeof(r);
	r.flags = 2;
	bits |= (call(g.fd, DUNE_RENEW_VCPU, &r) == -EINVAL) << 1;
	r.flags = 0;
	r.reserved = 1;
	bits |= (call(g.fd, DUNE_RENEW_VCPU, &r) == -EINVAL &&
		 call(g.fd, DUNE_RENEW_VCPU, NULL) == -EFAULT) << 2;
	r.reserved = 0;
	r.fd = null;
	bits |= (call(g.fd, DUNE_RENEW_VCPU, &r) == -EBADF) << 3;
	r.fd = -1;
	bits |= (call(g.fd, DUNE_RENEW_VCPU, &r) == -EBADF) << 4;
	r.fd = 1 << 20;
	bits |= (call(g.fd, DUNE_RENEW_VCPU, &r) == -EBADF) << 5;
	bits |= renewed(g.fd) << 6;
	_exit(bits);
}

static void renew(void)
{
	struct dune_renew_vcpu r = { .size = sizeof(r), .fd = g.fd };
	struct outcome o;

	ok(sizeof(r) == 16 && DUNE_RENEW_VCPU == 0x4010de14, "struct dune_renew_vcpu has 16 bytes");
	ok(call(g.fd, DUNE_RENEW_VCPU, &r) == -EPERM,
	   "DUNE_RENEW_VCPU on the caller's own vCPU: EPERM");
	ok(call(g.dev, DUNE_RENEW_VCPU, &r) == -ENOTTY, "DUNE_RENEW_VCPU on the device: ENOTTY");
	o = in_child(renew_child, NULL, 20);
	ok(o.code >= 0 && (o.code & 7) == 7,
	   "DUNE_RENEW_VCPU with a wrong size, flag, reserved field or address");
	ok(o.code >= 0 && (o.code & 0x38) == 0x38,
	   "DUNE_RENEW_VCPU with a number that is not the vCPU's: EBADF");
	ok(o.code >= 0 && (o.code & 0x40),
	   "a child makes the inherited descriptor its own, with no number free (%#x, %d)",
	   o.code, o.signal);
	guest_prepare(&g, 0, return_42, NULL);
	ok(guest_resume(&g) == GUEST_DONE && g.value == 42,
	   "the parent's vCPU runs after the child has renewed its copy");
}

/* Descriptors that survive exec (dup clears close-on-exec) name an address space that is gone. */
static void exec_child(void *arg)
{
	char fd[12], dev[12];

	snprintf(fd, sizeof(fd), "%d", dup(g.fd));
	snprintf(dev, sizeof(dev), "%d", dup(g.dev));
	execl("/proc/self/exe", "uapi.t", "--after-exec", fd, dev, NULL);
	_exit(99);
}

static void exec_self(void *arg)
{
	char fd[12], dev[12];
	struct guest own;

	guest_open(&own);
	if (guest_call(&own, return_42, NULL) != GUEST_DONE)
		_exit(98);
	snprintf(fd, sizeof(fd), "%d", dup(own.fd));
	snprintf(dev, sizeof(dev), "%d", dup(own.dev));
	execl("/proc/self/exe", "uapi.t", "--after-exec", fd, dev, NULL);
	_exit(99);
}

static int after_exec(int fd, int dev)
{
	struct dune_create_vcpu c = { .size = sizeof(c) };
	int bits = 0;

	bits |= (call(fd, DUNE_RUN, NULL) == -EPERM) << 0;
	bits |= (call(dev, DUNE_CREATE_VCPU, &c) == -EPERM) << 1;
	bits |= renewed(fd) << 2;
	return bits;
}

int main(int argc, char **argv)
{
	if (argc == 4 && !strcmp(argv[1], "--after-exec"))
		return after_exec(atoi(argv[2]), atoi(argv[3]));

	begin(60);
	layouts();
	guest_open(&g);
	device();
	create();
	vcpu();
	refused_states();
	non_canonical_addresses();
	state_is_kept();
	mappings();
	run();
	threads();
	processes();
	renew();

	struct outcome o = in_child(exec_self, NULL, 20);

	ok(o.code >= 0 && (o.code & 1), "after exec the old vCPU does not run: EPERM (%s)",
	   outcome_text(o));
	ok(o.code >= 0 && (o.code & 2), "after exec the old device makes no vCPU: EPERM");
	ok(o.code >= 0 && (o.code & 4), "after exec the old vCPU's descriptor becomes a new one's");
	o = in_child(exec_child, NULL, 20);
	ok(o.code >= 0 && (o.code & 3) == 3,
	   "after fork and exec the parent's descriptors run and make no vCPU: EPERM (%s)",
	   outcome_text(o));

	/* Order of closing is free. */
	struct guest h;

	guest_open(&h);
	close(h.dev);
	h.dev = -1;
	ok(guest_call(&h, return_42, NULL) == GUEST_DONE,
	   "a vCPU runs after the device's descriptor was closed");
	guest_close(&h);
	guest_open(&h);
	int fd = h.fd;

	h.fd = -1;
	close(fd);
	h.run->regs.rax = 7;
	ok(h.run->regs.rax == 7, "the run page works after the vCPU's descriptor was closed");
	guest_close(&h);
	guest_close(&g);
	return done();
}
