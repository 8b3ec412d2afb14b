/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The name by which a program or script is executed. */
#ifndef DUNE_RUN_SCRIPT_H
#define DUNE_RUN_SCRIPT_H

#include "types.h"

/*
 * Record the name by which the next exec_program() was asked for, as the kernel forms
 * bprm->filename: @name, or "/dev/fd/DIR/NAME" if @dir is a descriptor and @name is
 * relative ("/dev/fd/DIR" if it is empty). @closes: @dir closes on execve, so no
 * interpreter can open that name (-ENOENT for a script).
 */
void script_set_name(int dir, const char *name, bool closes);

#endif /* DUNE_RUN_SCRIPT_H */
