/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* debugfs, in which the modules of the tests have their files. */
#ifndef DUNE_TESTS_GUARD_DEBUGFS_H
#define DUNE_TESTS_GUARD_DEBUGFS_H

#define DEBUGFS	"/sys/kernel/debug"

void debugfs_mount(void);

#endif
