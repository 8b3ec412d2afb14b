// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * An audit rule for a system call logs it when a guest makes it. Rules are set by
 * netlink as auditctl does. Fails when a call of an audited thread is not logged with
 * its arguments and its result, or when calls of new threads stay on the slow path
 * under the rule "task, never".
 */
#define _GNU_SOURCE
#include "child.h"
#include "guest.h"
#include "tap.h"
#include "timing.h"

#include <errno.h>
#include <linux/audit.h>
#include <linux/netlink.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#define CALLS 5

static int sock = -1;

static int request(u16 type, const void *payload, u32 size)
{
	struct {
		struct nlmsghdr h;
		char data[8192];
	} m = { .h = { .nlmsg_len = NLMSG_LENGTH(size), .nlmsg_type = type,
		       .nlmsg_flags = NLM_F_REQUEST | NLM_F_ACK, .nlmsg_seq = 1 } };
	struct pollfd pfd = { sock, POLLIN, 0 };

	memcpy(m.data, payload, size);
	if (send(sock, &m, m.h.nlmsg_len, 0) < 0)
		return -errno;
	while (poll(&pfd, 1, 30000) > 0) {
		if (recv(sock, &m, sizeof(m), 0) < 0)
			return -errno;
		if (m.h.nlmsg_type == NLMSG_ERROR)
			return ((struct nlmsgerr *)m.data)->error;
	}
	return -ETIME;
}

static int listen_log(void)
{
	struct sockaddr_nl a = { .nl_family = AF_NETLINK,
				 .nl_groups = 1 << (AUDIT_NLGRP_READLOG - 1) };
	int s = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_AUDIT);

	if (s >= 0 && bind(s, (struct sockaddr *)&a, sizeof(a))) {
		close(s);
		return -1;
	}
	return s;
}

static u64 calls(void *arg)
{
	for (int i = 0; i < CALLS; i++)
		hypercall(SYS_getpriority, 0x4711, 0x1234, 0, 0, 0, 0);
	return 0;
}

static int gate[2];

static void child(void)
{
	struct guest g;
	char c;

	(void)!read(gate[0], &c, 1);
	guest_open(&g);
	if (guest_call(&g, calls, NULL) != GUEST_DONE)
		child_fails("the guest did not return");
}

static void fast_again(void *arg)
{
	struct guest g;

	guest_open(&g);
	if (guest_call(&g, calls, NULL) != GUEST_DONE)
		child_fails("the guest did not return");
	if (g.run->counters[DUNE_COUNT_SYSCALL_FAST] != CALLS)
		child_fails("%llu of %d calls were fast",
			    (unsigned long long)g.run->counters[DUNE_COUNT_SYSCALL_FAST], CALLS);
}

/* A rule that logs the calls of getpriority by @pid. */
static void log_getpriority(struct audit_rule_data *rule, int pid)
{
	rule->mask[AUDIT_WORD(SYS_getpriority)] |= AUDIT_BIT(SYS_getpriority);
	rule->field_count = 2;
	rule->fields[0] = AUDIT_ARCH;
	rule->values[0] = AUDIT_ARCH_X86_64;
	rule->fieldflags[0] = AUDIT_EQUAL;
	rule->fields[1] = AUDIT_PID;
	rule->values[1] = pid;
	rule->fieldflags[1] = AUDIT_EQUAL;
}

/* How many calls of @pid the log has, with their arguments and result. */
static int logged_calls(int log, int pid)
{
	struct pollfd pfd = { log, POLLIN, 0 };
	int logged = 0;

	while (poll(&pfd, 1, logged < CALLS ? 30000 : 500) > 0) {
		struct {
			struct nlmsghdr h;
			char text[9000];
		} m = {0};
		char want[32];

		if (recv(log, &m, sizeof(m) - 1, MSG_DONTWAIT) <= 0)
			break;
		snprintf(want, sizeof(want), " pid=%d ", pid);
		if (m.h.nlmsg_type == AUDIT_SYSCALL && strstr(m.text, " syscall=140 ") &&
		    strstr(m.text, want) && strstr(m.text, "a0=4711 a1=1234") &&
		    strstr(m.text, "exit=-22"))
			logged++;
	}
	return logged;
}

int main(void)
{
	struct audit_status status = { .mask = AUDIT_STATUS_ENABLED, .enabled = 1 };
	struct audit_rule_data rule = { .flags = AUDIT_FILTER_EXIT, .action = AUDIT_ALWAYS };
	int err, log, pid;

	begin(60);
	sock = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_AUDIT);
	if (sock < 0) {
		skip("kernel without audit", "audit");
		return done();
	}
	err = request(AUDIT_SET, &status, sizeof(status));
	log = listen_log();
	if (err || log < 0) {
		skip("audit cannot be enabled here", "audit (%s)", strerror(err ? -err : errno));
		return done();
	}
	if (pipe(gate))
		bail("pipe: %m");
	/* Threads are audited that were made after audit was enabled. */
	pid = checked_fork();
	if (!pid) {
		child();
		_exit(0);
	}
	log_getpriority(&rule, pid);
	err = request(AUDIT_ADD_RULE, &rule, sizeof(rule));
	ok(!err, "a rule that audits getpriority is added (%s)", strerror(-err));
	(void)!write(gate[1], "x", 1);

	struct outcome o = wait_child(pid, 20);

	ok(!o.code, "the guest runs under audit (%s)", outcome_text(o));

	int logged = logged_calls(log, pid);

	ok(logged == CALLS, "each of %d calls is logged with arguments and result (%d)", CALLS,
	   logged);
	request(AUDIT_DEL_RULE, &rule, sizeof(rule));
	status.enabled = 0;
	request(AUDIT_SET, &status, sizeof(status));

	/*
	 * Once enabled, audit watches every new thread, which takes the slow path
	 * even after audit is disabled, unless a rule is "task, never". A test that
	 * runs in this machine afterwards may need the fast path.
	 */
	struct audit_rule_data never = { .flags = AUDIT_FILTER_TASK, .action = AUDIT_NEVER };

	err = request(AUDIT_ADD_RULE, &never, sizeof(never));
	ok(!err, "a rule that new threads are never audited (%s)", strerror(-err));
	o = in_child(fast_again, NULL, 20);
	ok(!o.code, "the calls of new threads are fast under the rule 'task, never' (%s)",
	   outcome_text(o));
	return done();
}
