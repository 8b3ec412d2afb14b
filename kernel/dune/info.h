/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The answer to DUNE_GET_INFO: info.c.
 */
#ifndef DUNE_INFO_H
#define DUNE_INFO_H

#include <linux/compiler.h>

struct dune_info;

long info_get(struct dune_info __user *argument);

#endif /* DUNE_INFO_H */
