/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The return stack buffer at the end of a run. x86/return_buffer.h describes why guests
 * make this necessary.
 */
#ifndef X86_LINUX_RETURN_BUFFER_H
#define X86_LINUX_RETURN_BUFFER_H

/* Overwrites the return stack buffer if the processor needs it. For any context. */
void return_buffer_fill(void);

#endif /* X86_LINUX_RETURN_BUFFER_H */
