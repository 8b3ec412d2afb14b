/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The hostcalls (include/uapi/linux/dune.h) by which a guest of the tests ends
 * guest_resume(), for C and assembly. guest.c checks that they are hostcalls.
 */
#ifndef DUNE_TESTS_GUEST_CALLS_H
#define DUNE_TESTS_GUEST_CALLS_H

#define GUEST_CALL_DONE	0x100000001	/* the function returned; RDI: its value */
#define GUEST_CALL_TRAP	0x100000002	/* an exception; RDI: the stack's struct guest_frame */
#define GUEST_CALL_ASK	0x100000003	/* guest_ask(); RDI: its argument */

#endif
