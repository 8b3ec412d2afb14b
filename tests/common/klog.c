// SPDX-License-Identifier: MIT OR Apache-2.0
/* Reading the kernel log: see klog.h. */
#include "klog.h"
#include "tap.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
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

/* Made of tools/machine/src/kernel_errors.txt, which describes them: tests/common/programs.mk. */
static const char *const errors[] = {
#include "kernel_errors.h"
};

static bool is_error(const char *message)
{
	for (unsigned int i = 0; i < sizeof(errors) / sizeof(errors[0]); i++) {
		const char *text = errors[i];

		if (text[0] == '^' ? !strncmp(message, text + 1, strlen(text + 1)) :
		    !!strstr(message, text))
			return true;
	}
	return false;
}

/*
 * A record is "PRIORITY,NUMBER,TIME,FLAGS;MESSAGE", and more lines, which are not the message.
 * The kernel's own messages have priorities below 8; any program may write others.
 */
static void read_record(struct klog *log, char *record)
{
	char *message = strchr(record, ';');

	log->lines++;
	if (!message || atoi(record) >= 8 || log->has_error)
		return;
	message++;
	message[strcspn(message, "\n")] = 0;
	if (!is_error(message))
		return;
	log->has_error = true;
	snprintf(log->first, sizeof(log->first), "%s", message);
}

void klog_read(struct klog *log)
{
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
		read_record(log, buf);
	}
}

void klog_end(struct klog *log)
{
	klog_read(log);
	close(log->fd);
	if (!ok(!log->has_error, "the kernel log has no error"))
		diag("%s", log->first);
}
