#!/bin/bash
# SPDX-License-Identifier: MIT OR Apache-2.0
# At the edge of what a process may have (limits.c).

. "$(dirname "$0")/lib.bash"

same "fork with no descriptor free, and below a lower limit" "$bin/limits" descriptors

# whoever gives up root could not open the device again
mode=$(stat -c %a /dev/dune)
chmod 600 /dev/dune
chmod 755 "$top"
same "fork and execve without /dev/dune: other namespace, other user, empty root" "$bin/limits" no-device
chmod "$mode" /dev/dune

same "RLIMIT_DATA of 10 MB" "$bin/limits" data
same "a page in each of 5000 gigabytes" "$bin/limits" gigabytes 5000
same "a thousand children by vfork" "$bin/limits" borrowers
finish
