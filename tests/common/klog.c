// SPDX-License-Identifier: MIT OR Apache-2.0
/* Reading the kernel log: see klog.h. */
#include "klog.h"
#include "tap.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

void klog_begin(struct klog *log)
{
	memset(log, 0, sizeof(*log));
	log->fd = open("/dev/kmsg", O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	if (log->fd < 0)
		bail("/dev/kmsg: %s (the tests of the module want root)", strerror(errno));
	lseek(log->fd, 0, SEEK_END);
}

void klog_read(struct klog *log)
{
	/*
	 * A test is often run without the suite, which checks the whole log by a
	 * list of its own (tools/machine/src/log.rs).
	 */
	static const char *const bad[] = {
		"BUG", "WARNING", "Oops", "general protection", "Call Trace",
		"self-detected", "blocked for more than", "lockup", "possible recursive",
		"circular locking", "KASAN", "sleeping function", "scheduling while atomic",
		"unchecked MSR", "Bad page", "bad pmd", "leak",
	};
	char buf[8192];
	int n;

	for (;;) {
		n = read(log->fd, buf, sizeof(buf) - 1);
		if (n < 0 && errno == EPIPE) {	/* overrun: many lines indeed */
			log->lines += 1000;
			continue;
		}
		if (n <= 0)
			return;
		buf[n] = 0;
		log->lines++;
		for (unsigned int i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
			char *text = strchr(buf, ';');

			if (!text || !strstr(text, bad[i]) || log->has_error)
				continue;
			log->has_error = true;
			strncpy(log->first, text + 1, sizeof(log->first) - 1);
		}
	}
}

void klog_end(struct klog *log)
{
	klog_read(log);
	close(log->fd);
	if (!ok(!log->has_error, "the kernel log has no error"))
		diag("%s", log->first);
}
