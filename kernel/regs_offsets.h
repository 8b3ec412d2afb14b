/* SPDX-License-Identifier: GPL-2.0-only */
/* Offsets into struct dune_regs for assembly; svm_vcpu.c asserts them. */
#ifndef DUNE_REGS_OFFSETS_H
#define DUNE_REGS_OFFSETS_H

#define REGS_RAX	0
#define REGS_RCX	8
#define REGS_RDX	16
#define REGS_RBX	24
#define REGS_RBP	40
#define REGS_RSI	48
#define REGS_RDI	56
#define REGS_R8		64
#define REGS_R9		72
#define REGS_R10	80
#define REGS_R11	88
#define REGS_R12	96
#define REGS_R13	104
#define REGS_R14	112
#define REGS_R15	120

#endif /* DUNE_REGS_OFFSETS_H */
