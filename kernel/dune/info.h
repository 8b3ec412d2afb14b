/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The answers to DUNE_GET_INFO and DUNE_IGNORED_SIGNALS: info.c.
 */
#ifndef DUNE_INFO_H
#define DUNE_INFO_H

#include <linux/compiler.h>

struct dune_info;

long info_get(struct dune_info __user *argument);
u64 info_ignored_signals(void);

#endif /* DUNE_INFO_H */
