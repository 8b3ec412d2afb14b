// SPDX-License-Identifier: MIT OR Apache-2.0
/* Vectors and messages. See attack.h. */
#define _GNU_SOURCE
#include "attack.h"

#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

struct iovec *vector(u64 count)
{
	struct iovec *v = take(count * sizeof(*v));
	u64 i;

	for (i = 0; i < count; i++) {
		v[i].iov_base = (void *)(one_in(3) ? in_decoy() :
					 one_in(3) ? below_range() : buffer());
		v[i].iov_len = one_in(3) ? number() : 1 + below(64);
	}
	return v;
}

static void message(struct msghdr *m)
{
	u64 count = 1 + below(12);
	size_t len = CMSG_SPACE(16 * 4);
	struct cmsghdr *c = take(len);

	fill((u64 *)m, sizeof(*m) / 8);
	if (!one_in(6)) {
		m->msg_iov = vector(count);
		m->msg_iovlen = count;
	}
	if (!one_in(3)) {
		m->msg_name = (void *)pointer();
		m->msg_namelen = below(130);
	}
	if (one_in(2)) {
		fill((u64 *)c, len / 8);
		c->cmsg_len = CMSG_LEN(4 * below(16));
		c->cmsg_level = one_in(2) ? SOL_SOCKET : (int)below(300);
		c->cmsg_type = below(64);
		m->msg_control = c;
		m->msg_controllen = c->cmsg_len;
	} else if (one_in(2)) {
		m->msg_control = NULL;
	}
}

void do_message(void)
{
	static const short calls[] = { SYS_sendmsg, SYS_recvmsg, SYS_sendmmsg, SYS_recvmmsg };
	static const short vectors[] = {
		SYS_readv, SYS_writev, SYS_preadv, SYS_pwritev, SYS_preadv2, SYS_pwritev2,
		SYS_vmsplice, SYS_process_vm_readv,
	};
	u64 n = 1 + below(20), i;

	if (one_in(3)) {
		call(PICK(vectors), file(), one_in(8) ? below_range() : (u64)vector(n), n,
		     below(4096), 0, below(64));
		return;
	}
	struct mmsghdr *m = take(n * sizeof(*m));

	for (i = 0; i < n; i++)
		message(&m[i].msg_hdr);
	switch (below(4)) {
	case 0:
		/* the last of them at the range's edge */
		memcpy((void *)(super_base - 64), m, 64);
		m = (void *)(super_base - 64);
		break;
	case 1:
		write(file(), m, 64);
		break;
	}
	call(PICK(calls), file(), (u64)m, one_in(2) ? n : number() & 0xff,
	     one_in(2) ? MSG_DONTWAIT : number(), one_in(2) ? 0 : pointer(), 0);
}
