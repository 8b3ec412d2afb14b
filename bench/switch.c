// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * A hypercall for tools/suite to trace, instruction by instruction: getpid from
 * ring 0, on a warm path. The instruction is executed once, at a label of its own
 * for each vendor; earlier calls are made at other places.
 */
#define _GNU_SOURCE
#include "dune_mode.h"

#include <fcntl.h>
#include <linux/dune.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

/* The first time @really is 0, which only makes the label's page present. */
#define TRACED(name, instruction)					\
	__attribute__((noinline, aligned(128)))				\
	static long name(long really)					\
	{								\
		long ret = SYS_getpid;					\
									\
		__asm__ volatile("test %1, %1\n\t"			\
				 "jz 1f\n"				\
				 ".globl " #name "_here\n"		\
				 #name "_here:\n\t"			\
				 instruction "\n"			\
				 "1:"					\
				 : "+a" (ret) : "r" (really)		\
				 : "memory", "cc");			\
		return ret;						\
	}

TRACED(trace_svm, "vmmcall")
TRACED(trace_vmx, "vmcall")

int main(void)
{
	struct dune_info info = { .size = sizeof(info) };
	int device = open("/dev/dune", O_RDWR), really, i;
	long pid = getpid(), result = 0;

	if (device < 0 || ioctl(device, DUNE_GET_INFO, &info))
		die("/dev/dune");
	close(device);
	enter_dune_mode();
	for (really = 0; really < 2; really++) {
		for (i = 0; i < 100; i++)
			dune_hypercall(SYS_getpid, 0, 0, 0, 0, 0, 0);
		if (info.vendor == DUNE_VENDOR_VMX)
			result = trace_vmx(really);
		else
			result = trace_svm(really);
	}
	return result != pid;
}
