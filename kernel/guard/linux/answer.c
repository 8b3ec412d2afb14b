// SPDX-License-Identifier: GPL-2.0-only
/*
 * The reason for which a request is refused, in words for the user.
 */
#include <linux/kernel.h>

#include "guard/linux/guard.h"

int guard_refuse(struct dune_guard_answer *answer, int err, const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	vscnprintf(answer->text, sizeof(answer->text), format, arguments);
	va_end(arguments);
	return err;
}
