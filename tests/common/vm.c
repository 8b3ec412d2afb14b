// SPDX-License-Identifier: MIT OR Apache-2.0
/* The host's side of the KVM guest: see vm.h. */
#define _GNU_SOURCE
#include "tap.h"
#include "timing.h"
#include "vm.h"
#include "x86.h"

#include <asm/processor-flags.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/kvm.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#define CPUIDS	200	/* more than KVM supports */

struct vm_cpu vm_cpus[VM_CPUS];
struct vm_shared vm_shared;

/* The linker's symbols for the begin and the end of the program's image. */
extern char __executable_start[], _end[];

struct thread {
	pthread_t thread;
	unsigned int number;
	int fd;
	struct kvm_run *run;
	int run_size;
	volatile enum vm_check failure;
	char text[200];
	uint64_t reported;	/* the last round by VM_PORT_ROUND */
};

static struct thread threads[VM_CPUS];
static unsigned int nr_cpus;
static int kvm = -1, vm = -1;
static volatile bool stop;
static pthread_t replacer;

int vm_available(void)
{
	int fd = open("/dev/kvm", O_RDWR | O_CLOEXEC);

	if (fd < 0)
		return -errno;
	close(fd);
	return 0;
}

/* Its only effect is that KVM_RUN returns. */
static void kicked(int sig)
{
}

static void make_tables(struct vm_cpu *c)
{
	memset(c->alias_directory, 0, sizeof(c->alias_directory));
	c->pml4[0] = (uint64_t)c->pdpt | PTE_P | PTE_W;
	c->pdpt[0] = (uint64_t)c->low | PTE_P | PTE_W;
	for (uint64_t i = 0; i < 512; i++)
		c->low[i] = i << 21 | PTE_P | PTE_W | PTE_PS;
	c->pdpt[VM_ALIAS >> 30] = (uint64_t)c->alias_directory | PTE_P | PTE_W;
	c->alias_directory[0] = (uint64_t)c->alias_table | PTE_P | PTE_W;
	c->alias_table[0] = (uint64_t)c->pattern[0] | PTE_P | PTE_W;
}

static int set_registers(struct thread *t, struct vm_cpu *c)
{
	struct kvm_sregs s;
	struct kvm_regs r = {
		.rip = (uint64_t)vm_guest,
		.rdi = (uint64_t)c,
		.rsp = (uint64_t)(c->stack + 1024) - 8,
		.rflags = X86_EFLAGS_FIXED,
	};

	if (ioctl(t->fd, KVM_GET_SREGS, &s))
		return -errno;
	struct kvm_segment data = {
		.limit = 0xffffffff, .selector = 0x10, .type = 3,
		.present = 1, .db = 1, .s = 1, .g = 1,
	};
	struct kvm_segment code = data;

	code.selector = 8;
	code.type = 11;
	code.db = 0;
	code.l = 1;
	s.cs = code;
	s.ds = data;
	s.es = data;
	s.fs = data;
	s.gs = data;
	s.ss = data;
	s.idt.limit = 0;
	s.gdt.limit = 0;
	s.cr3 = (uint64_t)c->pml4;
	s.cr4 = X86_CR4_PAE | X86_CR4_OSFXSR | X86_CR4_OSXMMEXCPT;
	s.cr0 = X86_CR0_PG | X86_CR0_AM | X86_CR0_WP | X86_CR0_NE | X86_CR0_ET | X86_CR0_MP |
		X86_CR0_PE;
	s.efer = EFER_LMA | EFER_LME | EFER_SCE;
	if (ioctl(t->fd, KVM_SET_SREGS, &s) || ioctl(t->fd, KVM_SET_REGS, &r))
		return -errno;
	return 0;
}

static int set_cpuid(struct thread *t, struct vm_cpu *c)
{
	struct kvm_cpuid2 *ids = calloc(1, sizeof(*ids) + CPUIDS * sizeof(ids->entries[0]));
	int err = 0;

	if (!ids)
		return -ENOMEM;
	ids->nent = CPUIDS;
	if (ioctl(kvm, KVM_GET_SUPPORTED_CPUID, ids) || ioctl(t->fd, KVM_SET_CPUID2, ids))
		err = -errno;
	c->has_tsc_aux = false;
	for (unsigned int i = 0; !err && i < ids->nent; i++) {
		if (ids->entries[i].function == 0x80000001)
			c->has_tsc_aux = ids->entries[i].edx >> 27 & 1;
	}
	free(ids);
	return err;
}

static int make_cpu(struct thread *t)
{
	struct vm_cpu *c = &vm_cpus[t->number];
	int err;

	memset(c, 0, sizeof(*c));
	c->number = t->number + 1;
	t->failure = VM_OK;
	t->reported = 0;
	t->fd = ioctl(vm, KVM_CREATE_VCPU, t->number);
	if (t->fd < 0)
		return -errno;
	t->run_size = ioctl(kvm, KVM_GET_VCPU_MMAP_SIZE, 0);
	t->run = mmap(NULL, t->run_size, PROT_READ | PROT_WRITE, MAP_SHARED, t->fd, 0);
	if (t->run == MAP_FAILED)
		return -errno;
	/* A child's copy would keep the machine. */
	madvise(t->run, t->run_size, MADV_DONTFORK);
	err = set_cpuid(t, c);
	if (err)
		return err;
	make_tables(c);
	return set_registers(t, c);
}

static void port(struct thread *t)
{
	struct kvm_run *run = t->run;
	uint32_t *data = (uint32_t *)((char *)run + run->io.data_offset);
	struct vm_cpu *c = &vm_cpus[t->number];

	switch (run->io.port) {
	case VM_PORT_ROUND:
		if (*data != (uint32_t)(t->reported + 1)) {
			t->failure = VM_ECHO;
			snprintf(t->text, sizeof(t->text), "round %u is reported after %lu",
				 *data, t->reported);
		}
		t->reported++;
		break;
	case VM_PORT_ECHO:
		*data = t->reported * 3;
		break;
	default:
		t->failure = *data;
		snprintf(t->text, sizeof(t->text), "check %u fails in round %lu: %#lx, %#lx", *data,
			 c->round + 1, c->detail[0], c->detail[1]);
	}
}

static void *run_cpu(void *arg)
{
	struct thread *t = arg;

	while (!stop && !t->failure) {
		if (ioctl(t->fd, KVM_RUN, 0)) {
			if (errno == EINTR || errno == EAGAIN)
				continue;
			t->failure = VM_HOST;
			snprintf(t->text, sizeof(t->text), "KVM_RUN: %s", strerror(errno));
			break;
		}
		if (t->run->exit_reason == KVM_EXIT_IO) {
			port(t);
		} else if (t->run->exit_reason == KVM_EXIT_HLT) {
			/* Other threads want the CPU too, and each switch is a test. */
			sleep_ms(1);
		} else {
			struct kvm_regs r = { 0 };

			ioctl(t->fd, KVM_GET_REGS, &r);
			t->failure = VM_HOST;
			snprintf(t->text, sizeof(t->text),
				 "exit reason %u, hardware's %#llx, at %#llx", t->run->exit_reason,
				 t->run->hw.hardware_exit_reason, r.rip);
		}
	}
	return NULL;
}

/* A page of the guest's memory is replaced again and again. */
static void *replace(void *arg)
{
	for (uint64_t n = vm_shared.published + 1; !stop; n++) {
		uint64_t *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE,
				      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

		if (page == MAP_FAILED)
			bail("mmap: %s", strerror(errno));
		page[0] = n;
		if (mremap(page, 4096, 4096, MREMAP_MAYMOVE | MREMAP_FIXED,
			   vm_shared.stamp) == MAP_FAILED)
			bail("mremap: %s", strerror(errno));
		vm_shared.published = n;
		sleep_ms(5);
	}
	return NULL;
}

unsigned int vm_usable_cpus(void)
{
	cpu_set_t set;

	if (sched_getaffinity(0, sizeof(set), &set))
		bail("sched_getaffinity: %s", strerror(errno));
	return CPU_COUNT(&set) < VM_CPUS ? CPU_COUNT(&set) : VM_CPUS;
}

/* On the CPUs that the calling thread may use: not on all in every machine. */
void vm_pin(bool pinned)
{
	int numbers[CPU_SETSIZE], n = 0;
	cpu_set_t all, one;

	if (sched_getaffinity(0, sizeof(all), &all))
		bail("sched_getaffinity: %s", strerror(errno));
	for (int cpu = 0; cpu < CPU_SETSIZE; cpu++) {
		if (CPU_ISSET(cpu, &all))
			numbers[n++] = cpu;
	}
	for (unsigned int i = 0; i < nr_cpus; i++) {
		CPU_ZERO(&one);
		CPU_SET(numbers[i % n], &one);
		pthread_setaffinity_np(threads[i].thread, sizeof(one), pinned ? &one : &all);
	}
}

static int make_machine(unsigned int cpus)
{
	uint64_t begin = (uint64_t)__executable_start & -4096UL;
	struct kvm_userspace_memory_region image = {
		.guest_phys_addr = begin,
		.userspace_addr = begin,
		.memory_size = (((uint64_t)_end + 4095) & -4096UL) - begin,
	};
	int err = 0;

	kvm = open("/dev/kvm", O_RDWR | O_CLOEXEC);
	if (kvm < 0)
		return -errno;
	vm = ioctl(kvm, KVM_CREATE_VM, 0);
	if (vm < 0)
		return -errno;
	/*
	 * On Intel KVM needs guest-physical pages for a TSS, at an address that the
	 * guest does not use.
	 */
	if (ioctl(vm, KVM_SET_TSS_ADDR, 0xfffbd000) && errno != ENOTTY)
		return -errno;
	if (ioctl(vm, KVM_SET_USER_MEMORY_REGION, &image))
		return -errno;
	for (unsigned int i = 0; i < cpus && !err; i++) {
		threads[i].number = i;
		threads[i].fd = -1;
		err = make_cpu(&threads[i]);
	}
	return err;
}

int vm_start(unsigned int cpus)
{
	struct sigaction sa = { .sa_handler = kicked };
	int err;

	sigaction(SIGUSR1, &sa, NULL);
	stop = false;
	nr_cpus = 0;
	err = make_machine(cpus);
	if (err) {
		vm_stop();
		return err;
	}
	for (unsigned int i = 0; i < cpus; i++) {
		if (pthread_create(&threads[i].thread, NULL, run_cpu, &threads[i]))
			bail("pthread_create");
		nr_cpus++;
	}
	vm_pin(true);
	if (pthread_create(&replacer, NULL, replace, NULL))
		bail("pthread_create");
	return 0;
}

void vm_stop(void)
{
	stop = true;
	for (unsigned int i = 0; i < nr_cpus; i++) {
		/* A kick that comes before KVM_RUN is caught by this. */
		threads[i].run->immediate_exit = 1;
		pthread_kill(threads[i].thread, SIGUSR1);
		pthread_join(threads[i].thread, NULL);
	}
	if (nr_cpus)
		pthread_join(replacer, NULL);
	for (unsigned int i = 0; i < VM_CPUS; i++) {
		if (threads[i].run && threads[i].run != MAP_FAILED)
			munmap(threads[i].run, threads[i].run_size);
		threads[i].run = NULL;
		if (threads[i].fd > 0)
			close(threads[i].fd);
		threads[i].fd = -1;
	}
	nr_cpus = 0;
	if (vm >= 0)
		close(vm);
	if (kvm >= 0)
		close(kvm);
	vm = -1;
	kvm = -1;
}

uint64_t vm_rounds(void)
{
	uint64_t sum = 0;

	for (unsigned int i = 0; i < nr_cpus; i++)
		sum += vm_cpus[i].round;
	return sum;
}

static const char *vm_failure(void)
{
	static char text[240];

	for (unsigned int i = 0; i < nr_cpus; i++) {
		if (!threads[i].failure)
			continue;
		snprintf(text, sizeof(text), "vCPU %u: %s", i, threads[i].text);
		return text;
	}
	return "too slow";
}

bool vm_moves(void)
{
	bool good = nr_cpus;

	for (unsigned int i = 0; i < nr_cpus; i++) {
		uint64_t before = vm_cpus[i].round;

		good &= WAIT_FOR(vm_cpus[i].round >= before + 2 || threads[i].failure, 5);
		good &= !threads[i].failure;
	}
	if (!good)
		diag("KVM's guest: %s", vm_failure());
	return good;
}
