/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What a guest without a host half executes: exec.c.
 */
#ifndef DUNE_EXEC_H
#define DUNE_EXEC_H

void exec_init(void);
void exec_cleanup(void);

#endif /* DUNE_EXEC_H */
