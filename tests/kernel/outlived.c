// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * A vCPU whose thread or process has ended, while a descriptor of it is open: it holds the module,
 * and can be used by nobody. Fails when such a vCPU can be run or its run page mapped, or when a
 * reference to the module is dropped too early or never.
 */
#define _GNU_SOURCE
#include "child.h"
#include "guest.h"
#include "klog.h"
#include "modules.h"
#include "tap.h"
#include "timing.h"

#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

static void *make_and_leave(void *arg)
{
	guest_open(arg);
	guest_call(arg, guest_return, (void *)1);
	return NULL;
}

/*
 * Closing a vCPU releases the task_struct of its thread. The task_struct of a later thread may then
 * have that address, by which the module identifies a vCPU's thread.
 */
static void threads(void)
{
	int refused = 0;

	for (int i = 0; i < 50; i++) {
		struct guest g;
		pthread_t t;

		if (pthread_create(&t, NULL, make_and_leave, &g))
			bail("a thread cannot be made");
		pthread_join(t, NULL);
		refused += guest_run(&g) == -EPERM;
		guest_close(&g);
	}
	ok(refused == 50, "a vCPU whose thread has ended cannot be run (%d of 50)", refused);
	ok(dune_users_left() == 0,
	   "nothing holds the module after vCPUs that outlived their threads");
}

/* A message of one byte, with a descriptor. */
struct message {
	char byte, control[CMSG_SPACE(sizeof(int))];
	struct iovec iov;
	struct msghdr header;
};

static void init_message(struct message *m)
{
	memset(m, 0, sizeof(*m));
	m->iov = (struct iovec){ &m->byte, 1 };
	m->header = (struct msghdr){
		.msg_iov = &m->iov, .msg_iovlen = 1,
		.msg_control = m->control, .msg_controllen = sizeof(m->control),
	};
}

static bool send_descriptor(int to, int fd)
{
	struct message m;

	init_message(&m);
	struct cmsghdr *part = CMSG_FIRSTHDR(&m.header);

	part->cmsg_level = SOL_SOCKET;
	part->cmsg_type = SCM_RIGHTS;
	part->cmsg_len = CMSG_LEN(sizeof(fd));
	memcpy(CMSG_DATA(part), &fd, sizeof(fd));
	return sendmsg(to, &m.header, 0) == 1;
}

/* -1 without one. */
static int received_descriptor(int from)
{
	struct message m;
	int fd = -1;

	init_message(&m);
	if (recvmsg(from, &m.header, MSG_DONTWAIT) == 1 && CMSG_FIRSTHDR(&m.header))
		memcpy(&fd, CMSG_DATA(CMSG_FIRSTHDR(&m.header)), sizeof(fd));
	return fd;
}

static void run_and_send(void *to)
{
	struct guest g;

	guest_open(&g);
	guest_call(&g, guest_return, NULL);
	if (!send_descriptor(*(int *)to, g.fd))
		child_fails("a vCPU's descriptor cannot be sent: %m");
}

/* The descriptor keeps the module, and not the memory of the process. */
static void processes(void)
{
	struct outcome o;
	int pair[2], fd;
	void *run;

	if (socketpair(AF_UNIX, SOCK_STREAM, 0, pair))
		bail("socketpair: %m");
	o = in_child(run_and_send, &pair[1], 20);
	fd = received_descriptor(pair[0]);
	ok(!o.code && fd >= 0, "a process that ends sends its vCPU to another one (%s)",
	   outcome_text(o));
	ok(raw_syscall(SYS_ioctl, fd, DUNE_RUN, 0, 0, 0, 0) == -EPERM,
	   "the other process cannot run the vCPU");
	run = mmap(NULL, 4096, PROT_READ, MAP_SHARED, fd, 0);
	ok(run == MAP_FAILED && errno != EBADF,
	   "the other process cannot map the vCPU's run page (%m)");
	ok(dune_users_now() > 0, "the vCPU's descriptor holds the module");
	close(fd);
	close(pair[0]);
	close(pair[1]);
	ok(dune_users_left() == 0,
	   "nothing holds the module once the other process has closed the descriptor");
}

int main(void)
{
	struct klog log;

	begin(120);
	klog_begin(&log);
	if (!dune_is_loaded())
		bail("the module is not loaded");
	if (dune_users_now() != 0)
		bail("the module is in use by another process");
	threads();
	processes();
	klog_end(&log);
	return done();
}
