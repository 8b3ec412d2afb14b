/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The names of C for all other files: integer types, attributes, barriers, and the two
 * functions that the compiler calls by itself. The library includes no header of libc.
 */
#ifndef LIBDUNE_COMPILER_H
#define LIBDUNE_COMPILER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef uint64_t u64;
typedef uint32_t u32;
typedef uint16_t u16;
typedef uint8_t u8;

#define __aligned(n)	__attribute__((aligned(n)))
#define __packed	__attribute__((packed))
#define __noreturn	__attribute__((noreturn))

/*
 * A variable that is written only while the process is set up, or by dune.h's functions that
 * install handlers. Each page table of a program has this section (arena/core.c).
 */
#define __ro_after_start __attribute__((section("dune_ro_after_start")))
#define noinline	__attribute__((noinline))
#define ALWAYS_INLINE	static inline __attribute__((always_inline))
#define likely(x)	__builtin_expect(!!(x), 1)
#define unlikely(x)	__builtin_expect(!!(x), 0)
#define barrier()	__asm__ volatile("" : : : "memory")
#define READ_ONCE(x)	(*(const volatile __typeof__(x) *)&(x))
#define WRITE_ONCE(x, v) (*(volatile __typeof__(x) *)&(x) = (v))

/*
 * The compiler may call these for copies and clears of structures. Under their
 * usual names they would replace libc's in programs that are linked with libdune.
 */
void *memcpy(void *dst, const void *src, size_t n) __asm__("dune_memcpy");
void *memset(void *dst, int c, size_t n) __asm__("dune_memset");

/* Checks that a number of layout.h is the offset of a structure's member. */
#define CHECK_OFFSET(type, member, number)				\
	_Static_assert(offsetof(type, member) == (number),		\
		       #number " is not the offset of " #type "." #member)

#endif /* LIBDUNE_COMPILER_H */
