// SPDX-License-Identifier: GPL-2.0-only
/* The end of a module's secrets, in its private memory and in what the guard has saved. */
#include <linux/types.h>

#include "guard/hv/views.h"

void hv_clear_secrets(const struct hv_guarded *guarded)
{
	struct hv_saved *saved = &hv_saved[guarded->first];
	u32 i;

	for (i = 0; i < guarded->copy->private_count; i++)
		hv_clear_page(hv_guest_memory(guarded->privates[i]));
	for (i = 0; i < guarded->pool_size && hv_is_secret(guarded); i++)
		saved[i] = (struct hv_saved){};
}
