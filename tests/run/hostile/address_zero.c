// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * A program in the sandbox has memory at address 0, which root may map: control data and a
 * file's name are there. Fails when the runtime takes that address for "none", so that a hidden
 * descriptor is sent or /proc/self/exe is dune-run, or when such a call does not work.
 */
#define _GNU_SOURCE
#include "hostile.h"
#include "tap.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

static char *zero;	/* address 0; for the compiler, an address like any other */

static void test_control_data(int hidden)
{
	struct { struct cmsghdr c; int fd; int pad; } rights = {
		.c = { .cmsg_len = CMSG_LEN(sizeof(int)), .cmsg_level = SOL_SOCKET,
		       .cmsg_type = SCM_RIGHTS },
		.fd = hidden,
	};
	char text[] = "x";
	struct iovec byte = { text, 1 };
	struct mmsghdr mm = { .msg_hdr = { .msg_iov = &byte, .msg_iovlen = 1,
					   .msg_controllen = sizeof(rights) } };
	int sk[2];

	if (socketpair(AF_UNIX, SOCK_DGRAM, 0, sk))
		bail("socketpair: %s", strerror(errno));
	memcpy(zero, &rights, sizeof(rights));
	is(call(SYS_sendmsg, sk[0], (long)&mm, MSG_DONTWAIT, 0, 0, 0), -EBADF,
	   "sendmsg of a hidden descriptor in control data at address 0: EBADF");
	is(call(SYS_sendmmsg, sk[0], (long)&mm, 1, MSG_DONTWAIT, 0, 0), -EBADF,
	   "sendmmsg of a hidden descriptor in control data at address 0: EBADF");
	rights.fd = open("/dev/null", O_RDONLY);
	memcpy(zero, &rights, sizeof(rights));
	is(call(SYS_sendmsg, sk[0], (long)&mm, MSG_DONTWAIT, 0, 0, 0), 1,
	   "sendmsg of the program's own descriptor in control data at address 0: 1");
	mm.msg_hdr.msg_control = &rights;
	rights.fd = -1;
	is(call(SYS_recvmsg, sk[1], (long)&mm, MSG_DONTWAIT, 0, 0, 0), 1,
	   "control data that was sent from address 0 is received");
	ok(fcntl(rights.fd, F_GETFD) >= 0, "a descriptor that was sent from address 0 is open");
	close(sk[0]);
	close(sk[1]);
}

static void test_name(void)
{
	static const char name[] = "/proc/self/exe";
	char link[300] = "";

	memcpy(zero, name, sizeof(name));
	ok(call(SYS_readlink, 0, (long)link, sizeof(link) - 1, 0, 0, 0) > 0 &&
	   strstr(link, "/address_zero"), "/proc/self/exe by a name at address 0 is the program");
}

int main(void)
{
	int hidden;

	leave_session();
	if (find_descriptors("dune-vcpu", &hidden, 1) != 1)
		bail("the vCPU's descriptor cannot be seen in /proc");
	zero = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED,
		    -1, 0);
	if (zero == MAP_FAILED) {
		skip(strerror(errno), "control data and a name at address 0");
		return done();
	}
	test_control_data(hidden);
	test_name();
	return done();
}
