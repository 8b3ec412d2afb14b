/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Tracepoints: entry, exit, nested page fault and hypercall of a vCPU, and a kick of
 * all vCPUs that are in the guest. The tracepoint of a hypercall comes before the thread's
 * seccomp filters, which may refuse the call; sys_enter of Linux comes after them.
 */
#undef TRACE_SYSTEM
#define TRACE_SYSTEM dune

#if !defined(DUNE_TRACE_H) || defined(TRACE_HEADER_MULTI_READ)
#define DUNE_TRACE_H

#include <linux/tracepoint.h>

TRACE_EVENT(dune_entry,
	TP_PROTO(const void *vcpu, u64 tlb_gen),
	TP_ARGS(vcpu, tlb_gen),
	TP_STRUCT__entry(
		__field(const void *, vcpu)
		__field(u64, tlb_gen)
	),
	TP_fast_assign(
		__entry->vcpu = vcpu;
		__entry->tlb_gen = tlb_gen;
	),
	TP_printk("vcpu=%p tlb_gen=%llu", __entry->vcpu, __entry->tlb_gen)
);

TRACE_EVENT(dune_exit,
	TP_PROTO(u64 code, u64 rip, u64 info1, u64 info2),
	TP_ARGS(code, rip, info1, info2),
	TP_STRUCT__entry(
		__field(u64, code)
		__field(u64, rip)
		__field(u64, info1)
		__field(u64, info2)
	),
	TP_fast_assign(
		__entry->code = code;
		__entry->rip = rip;
		__entry->info1 = info1;
		__entry->info2 = info2;
	),
	TP_printk("code=0x%llx rip=0x%llx info1=0x%llx info2=0x%llx",
		  __entry->code, __entry->rip, __entry->info1, __entry->info2)
);

TRACE_EVENT(dune_fault,
	TP_PROTO(u64 gpa, u32 flags),
	TP_ARGS(gpa, flags),
	TP_STRUCT__entry(
		__field(u64, gpa)
		__field(u32, flags)
	),
	TP_fast_assign(
		__entry->gpa = gpa;
		__entry->flags = flags;
	),
	TP_printk("gpa=0x%llx flags=0x%x", __entry->gpa, __entry->flags)
);

TRACE_EVENT(dune_hypercall,
	TP_PROTO(unsigned long nr),
	TP_ARGS(nr),
	TP_STRUCT__entry(
		__field(unsigned long, nr)
	),
	TP_fast_assign(
		__entry->nr = nr;
	),
	TP_printk("nr=%lu", __entry->nr)
);

TRACE_EVENT(dune_kick,
	TP_PROTO(unsigned int cpus, u64 tlb_gen),
	TP_ARGS(cpus, tlb_gen),
	TP_STRUCT__entry(
		__field(unsigned int, cpus)
		__field(u64, tlb_gen)
	),
	TP_fast_assign(
		__entry->cpus = cpus;
		__entry->tlb_gen = tlb_gen;
	),
	TP_printk("cpus=%u tlb_gen=%llu", __entry->cpus, __entry->tlb_gen)
);

#endif /* DUNE_TRACE_H */

#undef TRACE_INCLUDE_PATH
#define TRACE_INCLUDE_PATH dune/trace
#undef TRACE_INCLUDE_FILE
#define TRACE_INCLUDE_FILE trace
#include <trace/define_trace.h>
