// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * The host half's probe of an address at which the guest has faulted. Fails when a probe accesses
 * memory although a signal is queued: the signal's mask may block the probe's own signal, and
 * the kernel would end the process although the program handles it.
 */
#include <sys/mman.h>
#include "internals.h"
#include "tap.h"

int main(void)
{
	static const uint32_t none, one = 1;
	char *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (page == MAP_FAILED)
		bail("mmap() failed");
	*page = 7;
	is(dune_host_probe_read(page, &none), 0, "a probe reads memory that may be read");
	is(dune_host_probe_write(page, &none), 0, "a probe writes memory that may be written");
	is(*page, 7, "the memory is unchanged");
	mprotect(page, 4096, PROT_NONE);
	is(dune_host_probe_read(page, &one), -1, "a queued signal prevents a probe that reads");
	is(dune_host_probe_write(page, &one), -1, "a queued signal prevents a probe that writes");
	return done();
}
