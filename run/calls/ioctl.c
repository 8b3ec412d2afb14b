// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * ioctl. Its number does not show whether the argument points to a structure with
 * pointers, so the numbers that are forwarded are listed one by one: a type all of
 * whose numbers are harmless today gets numbers with pointers in a future kernel.
 * A number in the list is flat for every driver that knows it: its argument is a
 * value, or a structure without pointers and descriptors, whose start is checked as
 * that of any pointer (P in syscalls.def). The few numbers whose argument is a
 * descriptor, or has a pointer or descriptors inside, are in call_ioctl(): the
 * descriptors are checked, and a structure is checked and forwarded as a copy. All others
 * give ENOTTY, as from a driver that does not have them.
 */
#include "calls.h"
#include "copies.h"
#include "hidden.h"
#include "page.h"
#include "super_range.h"
#include "user_memory.h"

#include <asm/ioctls.h>
#include <asm/termbits.h>
#include <linux/blkpg.h>
#include <linux/cdrom.h>
#include <linux/fiemap.h>
#include <linux/fs.h>
#include <linux/fuse.h>
#include <linux/hdreg.h>
#include <linux/if.h>
#include <linux/if_tun.h>
#include <linux/input.h>
#include <linux/ioctl.h>
#include <linux/kd.h>
#include <linux/loop.h>
#include <linux/nsfs.h>
#include <linux/random.h>
#include <linux/rtc.h>
#include <linux/sockios.h>
#include <linux/vt.h>
#include <linux/watchdog.h>

struct range {
	u32 first;
	u32 last;
};

/* The numbers of one type from @from to @to. */
#define RANGE(from, to) {						\
	.first = (from),						\
	.last = (to) + 0 * sizeof(struct {				\
		char unused;						\
		_Static_assert((from) <= (to), "an empty range");	\
		_Static_assert(_IOC_TYPE(from) == _IOC_TYPE(to),	\
			       "a range over several types");		\
	}),								\
}

/*
 * Numbers from before sizes were part of them. Every number of a range is
 * defined in Linux 6.1 and in all since.
 */
static const struct range plain[] = {
	RANGE(FIBMAP, FIGETBSZ),
	RANGE(HDIO_GETGEO, HDIO_GETGEO),
	RANGE(BLKROSET, BLKSSZGET),		/* values */
	RANGE(BLKDISCARD, BLKZEROOUT),
	RANGE(KIOCSOUND, KDGKBTYPE),		/* consoles */
	RANGE(KDSETMODE, KDGETMODE),
	RANGE(KDGKBMODE, KDSKBSENT),
	RANGE(KDGKBMETA, KDSKBLED),
	RANGE(LOOP_CLR_FD, LOOP_GET_STATUS64),
	RANGE(LOOP_SET_CAPACITY, LOOP_SET_BLOCK_SIZE),
	RANGE(LOOP_CTL_ADD, LOOP_CTL_GET_FREE),
	RANGE(CDROM_DRIVE_STATUS, CDROM_DRIVE_STATUS),
	RANGE(TCGETS, TIOCCONS),		/* terminals */
	RANGE(TIOCPKT, TCSBRKP),
	RANGE(TIOCSBRK, TIOCGSID),
	RANGE(TIOCGPTPEER, TIOCGPTPEER),	/* opens the other end */
	RANGE(FIONCLEX, FIOASYNC),		/* with FIOCLEX between them */
	RANGE(TIOCGLCKTRMIOS, TIOCSLCKTRMIOS),
	RANGE(TIOCSERGETLSR, TIOCSERGETLSR),
	RANGE(TIOCMIWAIT, TIOCGICOUNT),
	RANGE(FIOQSIZE, FIOQSIZE),
	RANGE(VT_OPENQRY, VT_SETACTIVATE),	/* virtual terminals */
	RANGE(RTC_AIE_ON, RTC_PIE_OFF),		/* values */
	RANGE(FIOSETOWN, SIOCGSTAMPNS_OLD),	/* sockets */
	RANGE(SIOCGIFNAME, SIOCSIFLINK),
	RANGE(SIOCGIFFLAGS, SIOCSIFMEM),
	RANGE(SIOCGIFMTU, SIOCGIFHWADDR),
	RANGE(SIOCGIFSLAVE, SIOCGIFSLAVE),
	RANGE(SIOCSIFSLAVE, SIOCGIFCOUNT),
	RANGE(SIOCGIFTXQLEN, SIOCSIFTXQLEN),
	RANGE(SIOCOUTQNSD, SIOCGSKNS),		/* SIOCGSKNS returns a name space */
	RANGE(SIOCDARP, SIOCSARP),
	RANGE(SIOCGIFMAP, SIOCSIFMAP),
	RANGE(NS_GET_USERNS, NS_GET_OWNER_UID),	/* name spaces */
};

/*
 * Numbers that encode direction and size. Those that the uapi headers of Linux 6.1 lack
 * have their names in comments: newer headers define the names.
 */
static const u32 singles[] = {
	FIFREEZE, FITHAW, FITRIM,
	FS_IOC_GETFLAGS, FS_IOC_SETFLAGS, FS_IOC_GETVERSION, FS_IOC_SETVERSION,
	FS_IOC_FSGETXATTR, FS_IOC_FSSETXATTR,
	FS_IOC_GETFSLABEL, FS_IOC_SETFSLABEL,
	_IOR(0x15, 0, u8[17]),	/* FS_IOC_GETFSUUID, since 6.9 */
	_IOR(0x15, 1, u8[129]),	/* FS_IOC_GETFSSYSFSPATH, since 6.9 */
	_IOR('f', 3, long),	/* EXT4_IOC_GETVERSION */
	_IOW('f', 4, long),	/* EXT4_IOC_SETVERSION */
	BLKBSZGET, BLKBSZSET, BLKGETSIZE64, BLKGETDISKSEQ,
	WDIOC_GETSUPPORT, WDIOC_GETSTATUS, WDIOC_GETBOOTSTATUS, WDIOC_GETTEMP,
	WDIOC_SETOPTIONS, WDIOC_KEEPALIVE, WDIOC_SETTIMEOUT, WDIOC_GETTIMEOUT,
	WDIOC_SETPRETIMEOUT, WDIOC_GETPRETIMEOUT, WDIOC_GETTIMELEFT,
	RTC_ALM_READ, RTC_ALM_SET, RTC_RD_TIME, RTC_SET_TIME, RTC_IRQP_READ,
	RTC_IRQP_SET, RTC_EPOCH_READ, RTC_EPOCH_SET, RTC_WKALM_SET, RTC_WKALM_RD,
	RTC_VL_READ,
	EVIOCGVERSION, EVIOCGID, EVIOCGREP, EVIOCSREP, EVIOCGKEYCODE,
	EVIOCGKEYCODE_V2, EVIOCSKEYCODE, EVIOCSKEYCODE_V2, EVIOCRMFF,
	EVIOCGEFFECTS, EVIOCGRAB, EVIOCREVOKE, EVIOCSCLOCKID,
	TIOCGPTN, TIOCSPTLCK, TIOCGDEV, TIOCGPKT, TIOCGPTLCK, TIOCGEXCL,
	TCGETS2, TCSETS2, TCSETSW2, TCSETSF2, TIOCSIG,
	RNDGETENTCNT, RNDADDTOENTCNT, RNDZAPENTCNT, RNDCLEARPOOL, RNDRESEEDCRNG,
	TUNSETIFF, TUNSETPERSIST, TUNSETOWNER, TUNSETGROUP, TUNGETFEATURES, TUNSETOFFLOAD,
	TUNGETIFF,
	SIOCGSTAMPNS_NEW, SIOCGSTAMP_NEW,
	_IOR(0x8a, 2, u64),	/* EPIOCGPARAMS, since 6.9 */
	_IOW(0x8a, 1, u64),	/* EPIOCSPARAMS, since 6.9 */
	_IOR(NSIO, 5, u64),	/* NS_GET_MNTNS_ID, since 6.10 */
	_IOR(NSIO, 6, int),	/* NS_GET_PID_FROM_PIDNS, since 6.11 */
	_IOR(NSIO, 7, int),	/* NS_GET_TGID_FROM_PIDNS, since 6.11 */
	_IOR(NSIO, 8, int),	/* NS_GET_PID_IN_PIDNS, since 6.11 */
	_IOR(NSIO, 9, int),	/* NS_GET_TGID_IN_PIDNS, since 6.11 */
};

/* PIDFD_GET_INFO, since 6.13, without its size. */
#define PIDFD_INFO	_IOC(_IOC_READ | _IOC_WRITE, 0xff, 11, 0)

/*
 * Numbers whose size the program chooses (up to 16 KB), by direction, type and
 * number. These calls read or write at most as many bytes as the number contains.
 */
static const struct range sized[] = {
	RANGE(EVIOCGNAME(0), EVIOCGMTSLOTS(0)),	/* NAME, PHYS, UNIQ, PROP, MTSLOTS */
	RANGE(EVIOCGKEY(0), EVIOCGSW(0)),		/* KEY, LED, SND, SW */
	RANGE(EVIOCGBIT(0, 0), EVIOCGBIT(EV_MAX, 0)),
	RANGE(_IOC(_IOC_READ, 'E', 0x40, 0), _IOC(_IOC_READ, 'E', 0x7f, 0)),	/* EVIOCGABS */
	RANGE(_IOC(_IOC_WRITE, 'E', 0xc0, 0), _IOC(_IOC_WRITE, 'E', 0xff, 0)),	/* EVIOCSABS */
	RANGE(PIDFD_INFO, PIDFD_INFO),
};

/* These read their number of items (32 bits) from memory. */
#define REACH_BYTES	(1UL << 32)
#define REACH_EXTENTS	(REACH_BYTES * sizeof(struct fiemap_extent))

static bool in_ranges(const struct range *ranges, size_t n, u32 cmd)
{
	size_t i;

	for (i = 0; i < n; i++)
		if (cmd >= ranges[i].first && cmd <= ranges[i].last)
			return true;
	return false;
}

static bool is_flat(u32 cmd)
{
	size_t i;

	if (in_ranges(plain, ARRAY_LEN(plain), cmd))
		return true;
	for (i = 0; i < ARRAY_LEN(singles); i++)
		if (cmd == singles[i])
			return true;
	return in_ranges(sized, ARRAY_LEN(sized), cmd & ~(u32)(_IOC_SIZEMASK << _IOC_SIZESHIFT));
}

#define COPY_BYTES	sizeof(struct loop_config)	/* the largest structure below */

/* Assert that a copy holds @type, and that its @member begins with an aligned @word. */
#define ASSERT_FITS(type, member, word)					\
	_Static_assert(sizeof(type) <= COPY_BYTES &&			\
		       offsetof(type, member) % sizeof(word) == 0 &&	\
		       offsetof(type, member) + sizeof(word) <= sizeof(type), #type)

/*
 * A structure with a pointer at a known offset: copy it in, check the pointer, forward the
 * call with the copy, copy it out.
 */
static void forward_copy(struct dune_tf *tf, u32 size, u32 pointer, u64 reach)
{
	u8 copy[COPY_BYTES] __attribute__((aligned(8)));
	u64 passed;
	long ret;

	if (user_read(copy, ARG2(tf), size) ||
	    meets_super_range(*(u64 *)(copy + pointer), reach)) {
		refuse(tf, -EFAULT);
		return;
	}
	passed = scratched(copy, size);
	ret = dune_syscall_forward(tf->rax, ARG0(tf), ARG1(tf), passed, 0, 0, 0);
	if (ret >= 0 && user_write(ARG2(tf), (const void *)passed, size))
		ret = -EFAULT;
	dune_syscall_result(tf, ret);
}

#define FORWARD_COPY(tf, type, member, reach)				\
do {									\
	ASSERT_FITS(type, member, u64);					\
	forward_copy(tf, sizeof(type), offsetof(type, member), reach);	\
} while (0)

/* The argument is a descriptor: the file to clone from, or of a loop device. */
static void forward_fd(struct dune_tf *tf)
{
	if (is_hidden(ARG2(tf)))
		refuse(tf, -EBADF);
	else
		dune_syscall_result(tf, forward(tf));
}

/*
 * A structure that the kernel only reads, with a descriptor in 32 bits at a known offset:
 * copy it in, check the descriptor, forward the call with the copy.
 */
static void forward_with_fd(struct dune_tf *tf, u32 size, u32 descriptor)
{
	u8 copy[COPY_BYTES] __attribute__((aligned(8)));

	if (user_read(copy, ARG2(tf), size))
		refuse(tf, -EFAULT);
	else if (is_hidden(*(const u32 *)(copy + descriptor)))
		refuse(tf, -EBADF);
	else
		dune_syscall_result(tf, dune_syscall_forward(tf->rax, ARG0(tf), ARG1(tf),
							     scratched(copy, size), 0, 0, 0));
}

#define FORWARD_WITH_FD(tf, type, member)				\
do {									\
	ASSERT_FITS(type, member, u32);					\
	forward_with_fd(tf, sizeof(type), offsetof(type, member));	\
} while (0)

/*
 * FIDEDUPERANGE has a descriptor in each element of an array, to which the kernel writes
 * the results. It takes no more than a page.
 */
static void forward_dedupe(struct dune_tf *tf)
{
	struct file_dedupe_range *copy;
	u64 count, bytes, i;
	long ret;

	copy = dune_scratch_get(PAGE_BYTES);
	if (!copy) {
		refuse(tf, -ENOMEM);
		return;
	}
	if (user_read(copy, ARG2(tf), sizeof(*copy))) {
		refuse(tf, -EFAULT);
		return;
	}
	/* In the scratch it may change: it is read once. */
	count = *(volatile u16 *)&copy->dest_count;
	bytes = count * sizeof(copy->info[0]);
	if (sizeof(*copy) + bytes > PAGE_BYTES) {
		refuse(tf, -ENOMEM);
		return;
	}
	if (user_read(copy->info, ARG2(tf) + sizeof(*copy), bytes)) {
		refuse(tf, -EFAULT);
		return;
	}
	for (i = 0; i < count; i++) {
		if (is_hidden(copy->info[i].dest_fd)) {
			refuse(tf, -EBADF);
			return;
		}
	}
	ret = dune_syscall_forward(tf->rax, ARG0(tf), ARG1(tf), dune_kernel_at(copy), 0, 0, 0);
	if (ret >= 0 && user_write(ARG2(tf), copy, sizeof(*copy) + bytes))
		ret = -EFAULT;
	dune_syscall_result(tf, ret);
}

static void forward_reaching(struct dune_tf *tf, u64 reach)
{
	if (meets_super_range(ARG2(tf), reach))
		refuse(tf, -EFAULT);
	else
		dune_syscall_result(tf, forward(tf));
}

void call_ioctl(struct dune_tf *tf)
{
	u32 cmd = ARG1(tf);

	switch (cmd) {
	case FICLONE:
	case LOOP_SET_FD:
	case LOOP_CHANGE_FD:
		forward_fd(tf);
		return;
	case FICLONERANGE:
		FORWARD_WITH_FD(tf, struct file_clone_range, src_fd);
		return;
	case FIDEDUPERANGE:
		forward_dedupe(tf);
		return;
	case LOOP_CONFIGURE:
		FORWARD_WITH_FD(tf, struct loop_config, fd);
		return;
	case FUSE_DEV_IOC_CLONE:
		forward_with_fd(tf, sizeof(u32), 0);
		return;
	case FS_IOC_FIEMAP:
		forward_reaching(tf, REACH_EXTENTS);
		return;
	case RNDADDENTROPY:
		forward_reaching(tf, REACH_BYTES);
		return;
	case SIOCGIFCONF:
		FORWARD_COPY(tf, struct ifconf, ifc_ifcu, REACH_BYTES);
		return;
	case SIOCETHTOOL:
		FORWARD_COPY(tf, struct ifreq, ifr_ifru, REACH_BYTES);
		return;
	case BLKPG:
		FORWARD_COPY(tf, struct blkpg_ioctl_arg, data, 1 << 20);
		return;
	}
	if (likely(is_flat(cmd)))
		dune_syscall_result(tf, forward(tf));
	else
		refuse(tf, -ENOTTY);
}
