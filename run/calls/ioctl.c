// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * ioctl. Its number does not show whether the argument points to a structure with
 * pointers, so the numbers that may pass are listed one by one: a type all of
 * whose numbers are harmless today gets numbers with pointers in a future kernel.
 * A number in the list is flat for every driver that knows it: its argument is a
 * value, or a structure without pointers, shorter than the guard region (so that
 * the check of its start in syscalls.def was enough). The few with a pointer or a
 * descriptor inside are made with a copy. All others give ENOTTY, as from a driver
 * that does not have them.
 */
#include "calls.h"
#include "hidden.h"
#include "super_range.h"
#include "user_memory.h"

#include <linux/blkpg.h>
#include <linux/fiemap.h>
#include <linux/fs.h>
#include <linux/if.h>
#include <linux/input.h>
#include <linux/ioctl.h>
#include <linux/loop.h>
#include <linux/random.h>
#include <linux/rtc.h>
#include <linux/sockios.h>
#include <linux/watchdog.h>

struct range {
	u32 first;
	u32 last;
};

/*
 * Numbers from before sizes were part of them. Every number of a range is
 * defined in Linux 6.1 and in all since.
 */
static const struct range plain[] = {
	{ 0x0001, 0x0002 },	/* FIBMAP, FIGETBSZ */
	{ 0x0301, 0x0301 },	/* HDIO_GETGEO */
	{ 0x125d, 0x1268 },	/* BLKROSET to BLKSSZGET: values */
	{ 0x1277, 0x127f },	/* BLKDISCARD to BLKZEROOUT */
	{ 0x4b2f, 0x4b33 },	/* consoles: KIOCSOUND to KDGKBTYPE */
	{ 0x4b3a, 0x4b3b },	/* KDSETMODE, KDGETMODE */
	{ 0x4b44, 0x4b49 },	/* KDGKBMODE to KDSKBSENT */
	{ 0x4b62, 0x4b65 },	/* KDGKBMETA to KDSKBLED */
	{ 0x4c01, 0x4c05 },	/* loop devices: LOOP_CLR_FD to LOOP_GET_STATUS64 */
	{ 0x4c07, 0x4c09 },	/* LOOP_SET_CAPACITY to LOOP_SET_BLOCK_SIZE */
	{ 0x4c80, 0x4c82 },	/* LOOP_CTL_* */
	{ 0x5326, 0x5326 },	/* CDROM_DRIVE_STATUS */
	{ 0x5401, 0x541d },	/* terminals: TCGETS to TIOCCONS */
	{ 0x5420, 0x5425 },	/* TIOCPKT to TCSBRKP */
	{ 0x5427, 0x5429 },	/* TIOCSBRK to TIOCGSID */
	{ 0x5441, 0x5441 },	/* TIOCGPTPEER: opens the other end */
	{ 0x5450, 0x5452 },	/* FIONCLEX, FIOCLEX, FIOASYNC */
	{ 0x5456, 0x5457 },	/* TIOCGLCKTRMIOS, TIOCSLCKTRMIOS */
	{ 0x5459, 0x5459 },	/* TIOCSERGETLSR */
	{ 0x545c, 0x545d },	/* TIOCMIWAIT, TIOCGICOUNT */
	{ 0x5460, 0x5460 },	/* FIOQSIZE */
	{ 0x5600, 0x560f },	/* virtual terminals: VT_OPENQRY to VT_SETACTIVATE */
	{ 0x7001, 0x7006 },	/* RTC_AIE_ON to RTC_PIE_OFF: values */
	{ 0x8901, 0x8907 },	/* sockets: FIOSETOWN to SIOCGSTAMPNS */
	{ SIOCGIFNAME, SIOCSIFLINK },
	{ SIOCGIFFLAGS, SIOCSIFMEM },
	{ SIOCGIFMTU, SIOCGIFHWADDR },
	{ SIOCGIFSLAVE, SIOCGIFSLAVE },
	{ SIOCSIFSLAVE, SIOCGIFCOUNT },
	{ SIOCGIFTXQLEN, SIOCSIFTXQLEN },
	{ 0x894b, 0x894c },	/* SIOCOUTQNSD; SIOCGSKNS: returns a name space */
	{ SIOCDARP, SIOCSARP },
	{ SIOCGIFMAP, SIOCSIFMAP },
	{ 0xb701, 0xb704 },	/* name spaces: NS_GET_USERNS to NS_GET_OWNER_UID */
};

/* numbers that encode direction and size */
static const u32 singles[] = {
	FICLONERANGE, FIDEDUPERANGE, FIFREEZE, FITHAW, FITRIM,
	FS_IOC_GETFLAGS, FS_IOC_SETFLAGS, FS_IOC_GETVERSION, FS_IOC_SETVERSION,
	FS_IOC_FSGETXATTR, FS_IOC_FSSETXATTR,
	FS_IOC_GETFSLABEL, FS_IOC_SETFSLABEL,
	0x80111500,	/* FS_IOC_GETFSUUID, since 6.9 */
	0x80811501,	/* FS_IOC_GETFSSYSFSPATH, since 6.9 */
	0x80086603,	/* EXT4_IOC_GETVERSION */
	0x40086604,	/* EXT4_IOC_SETVERSION */
	BLKBSZGET, BLKBSZSET, BLKGETSIZE64,
	0x80081280,	/* BLKGETDISKSEQ */
	WDIOC_GETSUPPORT, WDIOC_GETSTATUS, WDIOC_GETBOOTSTATUS, WDIOC_GETTEMP,
	WDIOC_SETOPTIONS, WDIOC_KEEPALIVE, WDIOC_SETTIMEOUT, WDIOC_GETTIMEOUT,
	WDIOC_SETPRETIMEOUT, WDIOC_GETPRETIMEOUT, WDIOC_GETTIMELEFT,
	RTC_ALM_READ, RTC_ALM_SET, RTC_RD_TIME, RTC_SET_TIME, RTC_IRQP_READ,
	RTC_IRQP_SET, RTC_EPOCH_READ, RTC_EPOCH_SET, RTC_WKALM_SET, RTC_WKALM_RD,
	RTC_VL_READ,
	EVIOCGVERSION, EVIOCGID, EVIOCGREP, EVIOCSREP, EVIOCGKEYCODE,
	EVIOCGKEYCODE_V2, EVIOCSKEYCODE, EVIOCSKEYCODE_V2, EVIOCRMFF,
	EVIOCGEFFECTS, EVIOCGRAB, EVIOCREVOKE, EVIOCSCLOCKID,
	0x80045430,	/* TIOCGPTN */
	0x40045431,	/* TIOCSPTLCK */
	0x80045432,	/* TIOCGDEV */
	0x80045438,	/* TIOCGPKT */
	0x80045439,	/* TIOCGPTLCK */
	0x80045440,	/* TIOCGEXCL */
	0x802c542a,	/* TCGETS2 */
	0x402c542b,	/* TCSETS2 */
	0x402c542c,	/* TCSETSW2 */
	0x402c542d,	/* TCSETSF2 */
	0x40045436,	/* TIOCSIG */
	RNDGETENTCNT, RNDADDTOENTCNT, RNDZAPENTCNT, RNDCLEARPOOL, RNDRESEEDCRNG,
	0x400454ca,	/* TUNSETIFF */
	0x400454cb,	/* TUNSETPERSIST */
	0x400454cc,	/* TUNSETOWNER */
	0x400454ce,	/* TUNSETGROUP */
	0x800454cf,	/* TUNGETFEATURES */
	0x400454d0,	/* TUNSETOFFLOAD */
	0x800454d2,	/* TUNGETIFF */
	0x8004e500,	/* FUSE_DEV_IOC_CLONE */
	0x80108907,	/* SIOCGSTAMPNS with 64-bit time */
	0x80108906,	/* SIOCGSTAMP with 64-bit time */
	0x80088a02,	/* EPIOCGPARAMS */
	0x40088a01,	/* EPIOCSPARAMS */
	0x8008b705,	/* NS_GET_MNTNS_ID, since 6.10 */
	0x8004b706,	/* NS_GET_PID_FROM_PIDNS to NS_GET_TGID_IN_PIDNS, since 6.11 */
	0x8004b707, 0x8004b708, 0x8004b709,
};

/*
 * Numbers whose size the program chooses (up to 16 KB), by direction, type and
 * number. These calls write as many bytes as the number contains.
 */
static const struct range sized[] = {
	{ EVIOCGNAME(0), EVIOCGMTSLOTS(0) },	/* NAME, PHYS, UNIQ, PROP, MTSLOTS */
	{ EVIOCGKEY(0), EVIOCGSW(0) },		/* KEY, LED, SND, SW */
	{ EVIOCGBIT(0, 0), EVIOCGBIT(EV_MAX, 0) },
	{ _IOC(_IOC_READ, 'E', 0x40, 0), _IOC(_IOC_READ, 'E', 0x7f, 0) },	/* EVIOCGABS */
	{ _IOC(_IOC_WRITE, 'E', 0xc0, 0), _IOC(_IOC_WRITE, 'E', 0xff, 0) },	/* EVIOCSABS */
	/* PIDFD_GET_INFO, since 6.13 */
	{ _IOC(_IOC_READ | _IOC_WRITE, 0xff, 11, 0), _IOC(_IOC_READ | _IOC_WRITE, 0xff, 11, 0) },
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

/*
 * A structure of at most 64 bytes with a pointer at a known offset: copy it in,
 * check the pointer, pass the copy on, copy it out.
 */
static void forward_copy(struct dune_tf *tf, u32 size, u32 pointer, u64 reach)
{
	u8 copy[64] __attribute__((aligned(8)));
	long ret;

	if (user_read(copy, ARG2(tf), size) ||
	    meets_super_range(*(u64 *)(copy + pointer), reach)) {
		refuse(tf, EFAULT);
		return;
	}
	ret = dune_syscall_forward(tf->rax, ARG0(tf), ARG1(tf), (u64)copy, 0, 0, 0);
	if (ret >= 0 && user_write(ARG2(tf), copy, size))
		ret = -EFAULT;
	dune_syscall_result(tf, ret);
}

/* The argument is a descriptor: the file to clone from, or of a loop device. */
static void forward_fd(struct dune_tf *tf)
{
	if (is_hidden(ARG2(tf)))
		refuse(tf, EBADF);
	else
		dune_syscall_result(tf, forward(tf));
}

static void forward_loop_config(struct dune_tf *tf)
{
	struct loop_config config;

	if (user_read(&config, ARG2(tf), sizeof(config)))
		refuse(tf, EFAULT);
	else if (is_hidden(config.fd))
		refuse(tf, EBADF);
	else
		dune_syscall_result(tf, dune_syscall_forward(tf->rax, ARG0(tf), ARG1(tf),
							     (u64)&config, 0, 0, 0));
}

static void forward_reaching(struct dune_tf *tf, u64 reach)
{
	if (meets_super_range(ARG2(tf), reach))
		refuse(tf, EFAULT);
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
	case 0x4c0a:	/* LOOP_CONFIGURE */
		forward_loop_config(tf);
		return;
	case FS_IOC_FIEMAP:
		forward_reaching(tf, REACH_EXTENTS);
		return;
	case RNDADDENTROPY:
		forward_reaching(tf, REACH_BYTES);
		return;
	case SIOCGIFCONF:
		forward_copy(tf, sizeof(struct ifconf), offsetof(struct ifconf, ifc_ifcu),
			     REACH_BYTES);
		return;
	case SIOCETHTOOL:
		forward_copy(tf, sizeof(struct ifreq), offsetof(struct ifreq, ifr_ifru),
			     REACH_BYTES);
		return;
	case BLKPG:
		forward_copy(tf, sizeof(struct blkpg_ioctl_arg),
			     offsetof(struct blkpg_ioctl_arg, data), GUARD_REGION_SIZE);
		return;
	}
	if (likely(is_flat(cmd)))
		dune_syscall_result(tf, forward(tf));
	else
		refuse(tf, ENOTTY);
}
