/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Copies from and to the program's memory, which survive faults. */
#ifndef DUNE_RUN_USER_MEMORY_H
#define DUNE_RUN_USER_MEMORY_H

#include "types.h"

/*
 * Copy @len bytes from the program's address @from (user_write: to @to). Returns 0, or -EFAULT
 * for an address that is in the supervisor range, is no user address, or faults. May sleep.
 */
long user_read(void *to, u64 from, u64 len);
long user_write(u64 to, const void *from, u64 len);
/*
 * Copy a structure of which the program has a version of @size bytes, and @to one of @known, as
 * copy_struct_from_user() of the kernel does. The program's is at least @least bytes and at most
 * a page; the rest of @to is not changed. Returns 0, -EINVAL or -E2BIG for the size, -E2BIG if
 * a byte that @to does not have is not zero, or -EFAULT.
 */
long user_read_struct(void *to, u64 known, u64 least, u64 from, u64 size);

/*
 * Copy a string with its NUL. Never touches the page after the one in which the string ends.
 * Returns its length, -EFAULT, or -ENAMETOOLONG if there is no NUL in @size bytes.
 */
long user_string(char *to, u64 from, u64 size);

#endif /* DUNE_RUN_USER_MEMORY_H */
