/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Opening a file to execute it. */
#ifndef DUNE_RUN_EXECUTABLE_H
#define DUNE_RUN_EXECUTABLE_H

#include "types.h"

/* Open a file to execute it. Returns a descriptor, or the error that execve() would give. */
long executable_open(int dir, const char *path, u64 flags);

#endif /* DUNE_RUN_EXECUTABLE_H */
