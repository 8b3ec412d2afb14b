/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Integer types, array length and branch hints. */
#ifndef DUNE_RUN_TYPES_H
#define DUNE_RUN_TYPES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef uint8_t u8;
typedef uint16_t u16;
typedef int16_t s16;
typedef int32_t s32;
typedef uint32_t u32;
typedef uint64_t u64;

#define ARRAY_LEN(a)	(sizeof(a) / sizeof((a)[0]))
#define likely(x)	__builtin_expect(!!(x), 1)
#define unlikely(x)	__builtin_expect(!!(x), 0)

#endif /* DUNE_RUN_TYPES_H */
