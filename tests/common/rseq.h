/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#ifndef DUNE_TESTS_RSEQ_H
#define DUNE_TESTS_RSEQ_H

/*
 * Unregisters the restartable sequences that libc has registered for the calling thread: with
 * them no stub runs a vCPU (struct dune_stub in <linux/dune.h>). Its children have none either. A
 * second call of the process does nothing.
 */
void rseq_drop(void);

#endif
