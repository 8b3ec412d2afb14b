// SPDX-License-Identifier: MIT OR Apache-2.0
#include "debugfs.h"

#include <stddef.h>
#include <sys/mount.h>
#include <unistd.h>

void debugfs_mount(void)
{
	if (access(DEBUGFS "/tracing", F_OK))
		mount("debugfs", DEBUGFS, "debugfs", 0, NULL);
}
