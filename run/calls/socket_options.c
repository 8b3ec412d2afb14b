// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * Families and options of sockets. A protocol or an option that could hold pointers
 * which are not checked here looks like one that the kernel was built without.
 */
#include "calls.h"
#include "copies.h"
#include "super_range.h"
#include "user_memory.h"

#include <asm/socket.h>
#include <linux/filter.h>
#include <linux/icmpv6.h>
#include <linux/if_packet.h>
#include <linux/in.h>
#include <linux/in6.h>
#include <linux/tcp.h>

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
#define ICMP_FILTER		1	/* the header that defines it needs the C library's */

/* The firewall's tables: IPT_BASE_CTL, IP6T_BASE_CTL; IP6T_SO_ORIGINAL_DST. */
#define TABLES_FIRST		64
#define TABLES6_SECOND		65	/* IP6T_SO_SET_ADD_COUNTERS, IP6T_SO_GET_ENTRIES */
#define TABLES6_DESTINATION	80

/* The families whose messages (socket_messages.c) and options are known here. */
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
	refuse(tf, -EAFNOSUPPORT);
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

/* The classic filter of SO_ATTACH_FILTER. */
static void attach_filter(struct dune_tf *tf)
{
	struct sock_fprog program;

	if ((u32)ARG4(tf) != sizeof(program)) {
		refuse(tf, -EINVAL);
		return;
	}
	if (user_read(&program, ARG3(tf), sizeof(program)) ||
	    in_super_range((u64)program.filter)) {
		refuse(tf, -EFAULT);
		return;
	}
	dune_syscall_result(tf, dune_syscall_forward(tf->rax, ARG0(tf), ARG1(tf), ARG2(tf),
						     scratched(&program, sizeof(program)),
						     sizeof(program), 0));
}

void call_setsockopt(struct dune_tf *tf)
{
	if ((int)ARG1(tf) == SOL_SOCKET && (int)ARG2(tf) == SO_ATTACH_FILTER)
		attach_filter(tf);
	else if (option_is_flat(ARG1(tf), ARG2(tf), true))
		dune_syscall_result(tf, forward(tf));
	else
		refuse(tf, -ENOPROTOOPT);
}

void call_getsockopt(struct dune_tf *tf)
{
	if (option_is_flat(ARG1(tf), ARG2(tf), false))
		dune_syscall_result(tf, forward(tf));
	else
		refuse(tf, -ENOPROTOOPT);
}
