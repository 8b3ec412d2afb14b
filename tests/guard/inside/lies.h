/* SPDX-License-Identifier: GPL-2.0-only */
/* What the kernel lies about where a described module is: the module parameter "lie". */
#ifndef DUNE_TESTS_GUARD_INSIDE_LIES_H
#define DUNE_TESTS_GUARD_INSIDE_LIES_H

enum lie {
	NO_LIE,
	OTHER_PAGE,		/* a copy of a page of the text, with other bytes */
	SAME_PAGE,		/* a true copy of it, to which no address leads */
	SWAPPED_PAGES,		/* two pages of the text */
	TWICE,			/* one page of the text for two */
	PAGE_AT,		/* the first page is at the physical address lie_value */
	DEVICE,			/* where a graphics card has its memory */
	TOO_HIGH,		/* an address where nothing is */
	NO_INIT,		/* without the regions of init */
	IS_LIVE,		/* init has run, they say */
	OTHER_ADDRESS,		/* the text is elsewhere */
	OTHER_RODATA,		/* the constants are where the data are */
	USER_ADDRESS,		/* the text is in the user's half */
	TOO_LARGE,		/* a region that wraps */
	OTHER_NUMBER,		/* it is the module with the number lie_value */
	EXCHANGED,		/* between freeze and arm, the address leads to another page */
	WRITTEN,		/* between freeze and arm, the kernel writes to the text */
	NO_FLUSH,		/* it is armed before all CPUs have flushed */
	LOADED_TWICE,		/* the text of a module that is guarded already, as lie_value */
	DATA_AT,		/* the data are at the address lie_value */
	TABLE_AT,		/* and a page table of their address is at the physical lie_value */
	RELEASED_EARLY,		/* init's frames are released before the module is armed */
	ELSEWHERE,		/* the text is far away, and a page in a block: both of lie_value */
	TOO_MUCH,		/* the text is far away, and has pages of all blocks */
	OTHER_SYMBOL,		/* its calls of outside_deeper() lead to lie_value */
	OTHER_PATCH,		/* a NOP of ftrace's is a call of lie_value */
	IMAGE_ADDRESS,		/* the text is in the kernel's image */
	LEAF_FRAME,		/* the first page is where the kernel has its function lie_value */
	FORGOTTEN,		/* none, but its guard ends lie_value times while it is entered */
	BESIDE_LEAF,		/* near the leaf at lie_value are the module's frames */
};

#endif
