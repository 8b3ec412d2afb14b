#!/bin/bash
# SPDX-License-Identifier: MIT OR Apache-2.0
# Programs of other projects, which `make decoy` runs under the decoy's runtime for some
# minutes each while it changes calls of their children: trinity knows the kinds of
# arguments, stress-ng's stressors try invalid and misplaced ones and everything else,
# Python's tests all its modules. Stressors that take processors and memory away only
# have the kernel complain.
#
#   others.bash         prints the names of those that are installed, one a line
#   others.bash NAME    runs one of them

case ${1-} in
'')
	if [ -x /usr/bin/trinity ]; then
		echo trinity
	else
		echo "skipped: trinity is not installed (package trinity)" >&2
	fi
	if [ -x /usr/bin/stress-ng ]; then
		printf '%s\n' stress-ng-arguments stress-ng-os
	else
		echo "skipped: stress-ng is not installed (package stress-ng)" >&2
	fi
	if /usr/bin/python3 -c 'import test.test_json' 2>/dev/null; then
		echo python
	else
		echo "skipped: Python's tests are not installed (package libpython3.11-testsuite)" >&2
	fi
	;;
trinity)
	mkdir -p /tmp/t && chmod 777 /tmp/t && cd /tmp/t &&
		exec setpriv --reuid=65534 --regid=65534 --clear-groups \
			trinity -q -C 4 -N 1000000 -a 64 -l off -T DIE,WARN \
			--enable-fds=pipes,epoll,eventfd,timerfd,memfd
	;;
stress-ng-arguments)
	cd /tmp && exec stress-ng --temp-path /tmp --timeout 90s --sysinval 1 --sysbadaddr 1
	;;
stress-ng-os)
	cd /tmp && exec stress-ng --temp-path /tmp --sequential 1 --class os \
		--exclude reboot,watchdog,cpu-online,memhotplug --timeout 1
	;;
python)
	modules=${BASH_SOURCE[0]%/*}/modules.py
	cd /tmp && exec /usr/bin/python3 "$modules" 200 \
		test_posix test_os test_socket test_fcntl test_ioctl test_select test_poll \
		test_epoll test_mmap test_signal test_resource test_pty test_shutil \
		test_tempfile test_fileio test_io test_wait4 test_openpty test_kqueue \
		test_eintr test_selectors test_mailbox test_glob test_pathlib test_zipfile \
		test_subprocess
	;;
*)
	echo "others.bash: there is no program $1" >&2
	exit 64
	;;
esac
