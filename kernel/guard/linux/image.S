/* SPDX-License-Identifier: GPL-2.0-only */
/* The resident part (guard/hv/), which Kbuild links, as data: load.c copies it. */
#include <linux/linkage.h>

	.section .rodata, "a"
	.balign 16
SYM_DATA_START(guard_image)
	.incbin HV_IMAGE
SYM_DATA_END_LABEL(guard_image, SYM_L_GLOBAL, guard_image_end)
