/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* One program becomes another. */
#ifndef DUNE_RUN_EXEC_H
#define DUNE_RUN_EXEC_H

#include "types.h"

/*
 * Become the program or script that is open as @fd and was named by
 * script_set_name(), with the vectors at @argv and @envp. Closes @fd. Returns only
 * with an error.
 */
long exec_program(int fd, u64 argv, u64 envp);
/*
 * Unmap the copies of the vectors. Called in the parent when a vfork child has ended: if the
 * child executed a program, they are still mapped in the parent's memory.
 */
void exec_free_vectors(void);
/*
 * After execve: take over the descriptors of --tree=LIST. Returns that of the program's
 * file, or -1 if LIST has none. Stores the number of the program's arguments in @count.
 */
int exec_resume(const char *list, int *count);

#endif /* DUNE_RUN_EXEC_H */
