// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * Sockets: message headers with their vectors and control data, and the
 * options. A protocol or an option that could hold pointers which are not checked
 * here looks like one that the kernel was built without.
 */
#include "calls.h"

#include <asm/socket.h>
#include <asm/unistd.h>
#include <linux/icmpv6.h>
#include <linux/if_packet.h>
#include <linux/in.h>
#include <linux/in6.h>
#include <linux/socket.h>
#include <linux/tcp.h>
#include <linux/time_types.h>
#include <linux/uio.h>

/* the C library's names for numbers that the uapi headers do not have */
#define AF_UNIX		1
#define AF_INET		2
#define AF_INET6	10
#define AF_NETLINK	16
#define AF_PACKET	17
#define AF_VSOCK	40

#define SOL_IP		0
#define SOL_TCP		6
#define SOL_UDP		17
#define SOL_IPV6	41
#define SOL_ICMPV6	58
#define SOL_RAW		255
#define SOL_PACKET	263
#define SOL_NETLINK	270

#define SCM_RIGHTS	1
#define MSG_DONTWAIT	0x40
#define MSG_WAITFORONE	0x10000

/*
 * The last option of each level that was read for pointers in its value: one that a
 * later kernel has is refused. Numbers that the uapi headers of Linux 6.1 lack are
 * defined here.
 */
#define SO_LAST			83	/* SO_PASSRIGHTS, Linux 6.16 */
#define SO_DEVMEM_LINEAR	78	/* device memory, since 6.12 */
#define SO_DEVMEM_DONTNEED	80
#define TCP_LAST		43	/* TCP_IS_MPTCP */
#define TCP_AO_ADD_KEY		38
#define TCP_AO_GET_KEYS		41
#define UDP_LAST		104	/* UDP_GRO */
#define PACKET_LAST		24	/* PACKET_VNET_HDR_SZ */
#define NETLINK_LAST		12	/* NETLINK_GET_STRICT_CHK */
#define VSOCK_LAST		8	/* SO_VM_SOCKETS_CONNECT_TIMEOUT_NEW */
#define ICMP_FILTER		1	/* its header needs that of the C library */

/* The firewall's tables: IPT_BASE_CTL, IP6T_BASE_CTL; IP6T_SO_ORIGINAL_DST. */
#define TABLES_FIRST		64
#define TABLES6_SECOND		65	/* IP6T_SO_SET_ADD_COUNTERS, IP6T_SO_GET_ENTRIES */
#define TABLES6_DESTINATION	80

#define CONTROL_LIMIT	65536	/* above any net.core.optmem_max in use */
#define BATCH		16	/* messages of one sendmmsg or recvmmsg */

struct message {		/* struct user_msghdr */
	u64 name;
	s32 name_len;
	u32 pad;
	u64 iov;
	u64 iov_len;
	u64 control;
	u64 control_len;
	u32 flags;
	u32 pad2;
};

struct batch_message {		/* struct mmsghdr */
	struct message m;
	u32 len;
	u32 pad;
};

struct control {		/* struct cmsghdr */
	u64 len;
	s32 level;
	s32 type;
};

/* The families whose messages and options this file knows. */
void call_socket(struct dune_tf *tf)
{
	switch ((int)ARG0(tf)) {
	case AF_UNIX:
	case AF_INET:
	case AF_INET6:
	case AF_NETLINK:
	case AF_PACKET:
	case AF_VSOCK:
		dune_syscall_result(tf, forward(tf));
		return;
	}
	refuse(tf, EAFNOSUPPORT);
}

/* A hidden descriptor sent to oneself would come back under a new number. */
static bool sends_hidden(const u8 *control, u64 len)
{
	u64 at = 0;

	while (len - at >= sizeof(struct control)) {
		const struct control *c = (const void *)(control + at);
		u64 step;

		if (c->len < sizeof(*c) || c->len > len - at)
			return false;	/* the kernel refuses it */
		if (c->level == SOL_SOCKET && c->type == SCM_RIGHTS) {
			const int *fds = (const int *)(c + 1);
			u64 n = (c->len - sizeof(*c)) / sizeof(int);

			while (n--)
				if (files_is_hidden(fds[n]))
					return true;
		}
		step = (c->len + 7) & ~7UL;
		if (step > len - at)
			return false;
		at += step;
	}
	return false;
}

/*
 * Check the header in @m, which is a copy, and give it copies of what it
 * points to: the vector, and for sending the control data. -ENOBUFS when the
 * pool is full. Only the length decides whether there is control data: the kernel
 * sends it from address 0 as from any other address, and a program with
 * CAP_SYS_RAWIO can have memory there.
 */
static long take_message(struct message *m, bool sending)
{
	struct iovec *iov;
	u64 i;

	if (m->iov_len > IOV_LIMIT)
		return -EMSGSIZE;
	if (m->name && in_super_range(m->name))
		return -EFAULT;
	iov = scratch_get(m->iov_len * sizeof(*iov));
	if (!iov)
		return -ENOBUFS;
	if (user_read(iov, m->iov, m->iov_len * sizeof(*iov)))
		return -EFAULT;
	for (i = 0; i < m->iov_len; i++)
		if (iov[i].iov_len && meets_super_range((u64)iov[i].iov_base, iov[i].iov_len))
			return -EFAULT;
	m->iov = (u64)iov;
	if (!m->control_len)
		return 0;
	if (meets_super_range(m->control, m->control_len))
		return -EFAULT;
	if (sending) {
		u8 *control;

		if (m->control_len > CONTROL_LIMIT)
			return -ENOBUFS;
		control = scratch_get(m->control_len);
		if (!control)
			return -ENOBUFS;
		if (user_read(control, m->control, m->control_len))
			return -EFAULT;
		if (sends_hidden(control, m->control_len))
			return -EBADF;
		m->control = (u64)control;
	}
	return 0;
}

void call_sendmsg(struct dune_tf *tf)
{
	struct message m;
	long err;

	scratch_reset();
	if (user_read(&m, ARG1(tf), sizeof(m))) {
		refuse(tf, EFAULT);
		return;
	}
	err = take_message(&m, true);
	if (err) {
		refuse(tf, -err);
		return;
	}
	dune_syscall_result(tf, dune_syscall_forward(tf->rax, ARG0(tf), (u64)&m, ARG2(tf),
						     0, 0, 0));
}

/* The members that the kernel changes in a header when it receives. */
static long give_message(u64 to, const struct message *m)
{
	if (user_write(to + offsetof(struct message, name_len), &m->name_len,
		       sizeof(m->name_len)) ||
	    user_write(to + offsetof(struct message, control_len), &m->control_len,
		       sizeof(m->control_len)) ||
	    user_write(to + offsetof(struct message, flags), &m->flags,
		       sizeof(m->flags)))
		return -EFAULT;
	return 0;
}

void call_recvmsg(struct dune_tf *tf)
{
	struct message m;
	long ret;

	scratch_reset();
	if (user_read(&m, ARG1(tf), sizeof(m))) {
		refuse(tf, EFAULT);
		return;
	}
	ret = take_message(&m, false);
	if (!ret) {
		ret = dune_syscall_forward(tf->rax, ARG0(tf), (u64)&m, ARG2(tf), 0, 0, 0);
		if (ret >= 0 && give_message(ARG1(tf), &m))
			ret = -EFAULT;
	}
	dune_syscall_result(tf, ret);
}

/*
 * Copy up to BATCH headers, as many as the pool holds: fewer messages than
 * asked for is an answer that both calls may give.
 */
static long take_batch(struct batch_message *batch, u64 from, u64 count, bool sending)
{
	u64 i;

	scratch_reset();
	if (count > BATCH)
		count = BATCH;
	for (i = 0; i < count; i++) {
		long err = -EFAULT;

		if (!user_read(&batch[i], from + i * sizeof(*batch), sizeof(*batch)))
			err = take_message(&batch[i].m, sending);
		if (err)
			return i ? (long)i : err;
	}
	return i;
}

void call_sendmmsg(struct dune_tf *tf)
{
	struct batch_message batch[BATCH];
	long ret, i;

	ret = take_batch(batch, ARG1(tf), (u32)ARG2(tf), true);
	if (ret >= 0)
		ret = dune_syscall_forward(tf->rax, ARG0(tf), (u64)batch, ret,
					   ARG3(tf), 0, 0);
	for (i = 0; i < ret; i++)
		if (user_write(ARG1(tf) + i * sizeof(*batch) +
			       offsetof(struct batch_message, len),
			       &batch[i].len, sizeof(batch[i].len)))
			ret = -EFAULT;
	dune_syscall_result(tf, ret);
}

/*
 * Without MSG_WAITFORONE the kernel waits until all messages have arrived. Where
 * the batch is smaller than the program's number, it waits for the batch only.
 */
void call_recvmmsg(struct dune_tf *tf)
{
	struct batch_message batch[BATCH];
	long ret, i;

	ret = take_batch(batch, ARG1(tf), (u32)ARG2(tf), false);
	if (ret >= 0)
		ret = dune_syscall_forward(tf->rax, ARG0(tf), (u64)batch, ret,
					   ARG3(tf), ARG4(tf), 0);
	for (i = 0; i < ret; i++) {
		u64 to = ARG1(tf) + i * sizeof(*batch);

		if (give_message(to, &batch[i].m) ||
		    user_write(to + offsetof(struct batch_message, len),
			       &batch[i].len, sizeof(batch[i].len)))
			ret = -EFAULT;
	}
	dune_syscall_result(tf, ret);
}

/*
 * Options without pointers in their values: each level has a limit, and below it
 * the options that are known to hold a pointer are excluded: socket filters
 * (SO_ATTACH_*), the firewall's tables (64 and above in SOL_IP and SOL_IPV6),
 * TCP_ZEROCOPY_RECEIVE, the fanout data of packet sockets.
 */
static bool option_is_flat(int level, int name, bool set)
{
	switch (level) {
	case SOL_SOCKET:
		switch (name) {
		case SO_ATTACH_FILTER:	/* SO_GET_FILTER when read */
		case SO_ATTACH_BPF:
		case SO_ATTACH_REUSEPORT_CBPF:
		case SO_ATTACH_REUSEPORT_EBPF:
		case SO_DEVMEM_LINEAR ... SO_DEVMEM_DONTNEED:
			return !set && name == SO_GET_FILTER;
		}
		return name > 0 && name <= SO_LAST;
	case SOL_IP:
		return name > 0 && name < TABLES_FIRST;
	case SOL_IPV6:
		return name > 0 && (name < TABLES_FIRST ||
				    (name > TABLES6_SECOND && name < TABLES6_DESTINATION));
	case SOL_TCP:
		/*
		 * TCP_AO_GET_KEYS stores items at a distance that the program
		 * chooses; the other options of TCP-AO are of no use without it.
		 */
		return name > 0 && name != TCP_ZEROCOPY_RECEIVE &&
		       (name < TCP_AO_ADD_KEY || (name > TCP_AO_GET_KEYS && name <= TCP_LAST));
	case SOL_UDP:
		return name > 0 && name <= UDP_LAST;
	case SOL_ICMPV6:
		return name == ICMPV6_FILTER;
	case SOL_RAW:
		return name == ICMP_FILTER;
	case SOL_PACKET:
		return name > 0 && name <= PACKET_LAST && name != PACKET_FANOUT_DATA;
	case SOL_NETLINK:
		return name > 0 && name <= NETLINK_LAST;
	case AF_VSOCK:
		return name >= 0 && name <= VSOCK_LAST;
	}
	return false;
}

/* The classic filter of SO_ATTACH_FILTER: { u16 length, pointer }. */
static void attach_filter(struct dune_tf *tf)
{
	struct { u64 len; u64 filter; } program;

	if (ARG4(tf) != sizeof(program)) {
		refuse(tf, EINVAL);
		return;
	}
	if (user_read(&program, ARG3(tf), sizeof(program)) || in_super_range(program.filter)) {
		refuse(tf, EFAULT);
		return;
	}
	dune_syscall_result(tf, dune_syscall_forward(tf->rax, ARG0(tf), ARG1(tf), ARG2(tf),
						     (u64)&program, sizeof(program), 0));
}

void call_setsockopt(struct dune_tf *tf)
{
	if ((int)ARG1(tf) == SOL_SOCKET && (int)ARG2(tf) == SO_ATTACH_FILTER)
		attach_filter(tf);
	else if (option_is_flat(ARG1(tf), ARG2(tf), true))
		dune_syscall_result(tf, forward(tf));
	else
		refuse(tf, ENOPROTOOPT);
}

void call_getsockopt(struct dune_tf *tf)
{
	if (option_is_flat(ARG1(tf), ARG2(tf), false))
		dune_syscall_result(tf, forward(tf));
	else
		refuse(tf, ENOPROTOOPT);
}
