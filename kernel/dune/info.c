// SPDX-License-Identifier: GPL-2.0-only
/*
 * The answers to DUNE_GET_INFO and DUNE_IGNORED_SIGNALS: what the module, the processor and the
 * calling process have for a runtime.
 */
#include <linux/sched/signal.h>
#include <linux/uaccess.h>
#include <asm/cpufeature.h>
#include <asm/fpu/xcr.h>

#include "dune/guest_state.h"
#include "dune/hypercall.h"
#include "dune/info.h"
#include "dune/memory/second_level.h"
#include "dune/vcpu_ops.h"

/*
 * Returns the signals that the process ignores, or, if @handled, those that have a handler. Inline,
 * so that the loop does not test @handled for each signal: a runtime asks at each start.
 */
static __always_inline u64 signals(bool handled)
{
	u64 found = 0;
	int i;

	spin_lock_irq(&current->sighand->siglock);
	for (i = 0; i < _NSIG; i++) {
		__sighandler_t handler = current->sighand->action[i].sa.sa_handler;
		bool has_handler = handler != SIG_IGN && handler != SIG_DFL;

		if (handled ? has_handler : handler == SIG_IGN)
			found |= BIT_ULL(i);
	}
	spin_unlock_irq(&current->sighand->siglock);
	return found;
}

/* Returns the signals that the process ignores; bit 0 is signal 1. For process context. */
u64 info_ignored_signals(void)
{
	return signals(false);
}

/* Carries out DUNE_GET_INFO. Returns 0, -EFAULT or -EINVAL. Called in process context. */
long info_get(struct dune_info __user *argument)
{
	struct dune_info info = { .size = sizeof(info) };
	u32 size;

	if (get_user(size, &argument->size))
		return -EFAULT;
	if (size != sizeof(info))
		return -EINVAL;
	info.api_version = DUNE_API_VERSION;
	info.run_size = PAGE_SIZE;
	info.handled_signals = signals(true);
	if (hypercall_is_fast())
		info.features |= DUNE_FEATURE_FAST_SYSCALL;
	if (boot_cpu_has(X86_FEATURE_SMEP))
		info.features |= DUNE_FEATURE_SMEP;
	if (boot_cpu_has(X86_FEATURE_SMAP))
		info.features |= DUNE_FEATURE_SMAP;
	info.vendor = vcpu_ops->vendor;
	/*
	 * If the processor has fewer address bits and no granules, the guest's page tables
	 * must not lead to process addresses above them: such an access faults, and such a
	 * CR3 is refused at the entry.
	 */
	info.address_bits = min_t(u32, guest_address_bits(), PROCESS_BITS);
	info.granules = second_level_granules();
	info.private_pages = second_level_private_pages();
	info.guest_cr0 = DUNE_GUEST_CR0;
	info.guest_cr4 = guest_cr4(false);
	info.guest_efer = vcpu_ops->efer;
	if (info.guest_cr4 & X86_CR4_PCIDE)
		info.features |= DUNE_FEATURE_PCID;
	if (boot_cpu_has(X86_FEATURE_OSXSAVE))
		info.xcr0 = xgetbv(XCR_XFEATURE_ENABLED_MASK);
	if (copy_to_user(argument, &info, sizeof(info)))
		return -EFAULT;
	return 0;
}
