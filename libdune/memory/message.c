// SPDX-License-Identifier: MIT OR Apache-2.0
/* Messages about memory that the library cannot use. */
#include "memory.h"
#include "place.h"

/* Prints that no granule is left for the gigabyte around @va. */
void dune_print_no_granule(u64 va)
{
	struct dune_line line = { .n = 0 };

	dune_text(&line, "dune: with ");
	dune_text_number(&line, dune_process.info.address_bits);
	dune_text(&line, " physical address bits for guests, libdune can use memory in at most ");
	dune_text_number(&line, dune_process.granules - 1);
	dune_text(&line, " different gigabytes, and ");
	dune_text_hex(&line, va);
	dune_text(&line, " is in one more: place mappings closer together\n");
	dune_text_print(&line);
}

/* Prints that no page is left for a page table for the gigabyte around @va. */
void dune_print_no_pages(u64 va)
{
	struct dune_line line = { .n = 0 };

	dune_text(&line, "dune: " PAGES_OF " is full (");
	dune_text_number(&line, dune_page_bytes() / 1024);
	dune_text(&line, " KB in use), and the first access to the gigabyte around ");
	dune_text_hex(&line, va);
	dune_text(&line, " takes a page for its page table: " PAGES_ADVICE "\n");
	dune_text_print(&line);
}
