// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * ioctl: nothing in its number says whether the argument points to pointers,
 * so what passes is listed. A number on the list is flat for every driver
 * that knows it: its argument is a value, or a structure without pointers,
 * shorter than the guard of the granule (so the table's check of its start
 * was enough). The few with a pointer inside are done on a copy. All others
 * give ENOTTY, as from a driver that does not have them.
 */
#include "calls.h"

#include <linux/blkpg.h>
#include <linux/fiemap.h>
#include <linux/fs.h>
#include <linux/if.h>
#include <linux/ioctl.h>
#include <linux/sockios.h>

struct range {
	u32 first;
	u32 last;
};

/* numbers from before sizes were part of them */
static const struct range plain[] = {
	{ 0x0001, 0x0001 },	/* FIBMAP */
	{ 0x0002, 0x0002 },	/* FIGETBSZ */
	{ 0x0301, 0x0301 },	/* HDIO_GETGEO */
	{ 0x125d, 0x1268 },	/* BLKROSET to BLKSSZGET: values */
	{ 0x126d, 0x126d },
	{ 0x1277, 0x127f },	/* BLKDISCARD to BLKZEROOUT */
	{ 0x4b2f, 0x4b34 },	/* consoles: KIOCSOUND to KDGETLED and KDSETLED */
	{ 0x4b3a, 0x4b3b },	/* KDSETMODE, KDGETMODE */
	{ 0x4b44, 0x4b45 },	/* KDGKBMODE, KDSKBMODE */
	{ 0x4b46, 0x4b49 },	/* KDGKBENT to KDSKBSENT */
	{ 0x4b62, 0x4b65 },	/* KDGKBMETA to KDSKBLED */
	{ 0x4c00, 0x4c0a },	/* loop devices */
	{ 0x4c80, 0x4c82 },
	{ 0x5326, 0x5326 },	/* CDROM_DRIVE_STATUS */
	{ 0x5401, 0x541b },	/* terminals: TCGETS to FIONREAD */
	{ 0x541c, 0x541c },	/* TIOCLINUX */
	{ 0x541d, 0x541d },	/* TIOCCONS */
	{ 0x5420, 0x5429 },	/* TIOCPKT to TIOCGSID */
	{ 0x5450, 0x5460 },	/* FIONCLEX to FIOQSIZE, serial lines */
	{ 0x5600, 0x560f },	/* virtual terminals */
	{ 0x8901, 0x8907 },	/* sockets: FIOSETOWN to SIOCGSTAMPNS */
	{ SIOCGIFNAME, SIOCSIFLINK },
	{ SIOCGIFFLAGS, SIOCSIFMEM },
	{ SIOCGIFMTU, SIOCSIFHWBROADCAST },
	{ SIOCGIFCOUNT, SIOCGIFCOUNT },
	{ SIOCGIFPFLAGS, SIOCDIFADDR },
	{ SIOCGIFTXQLEN, SIOCSIFTXQLEN },
	{ SIOCGIFMAP, SIOCGIFMAP },
	{ SIOCDARP, SIOCSARP },
	{ 0xb701, 0xb707 },	/* name spaces */
};

/* types of which every number is flat when it encodes its size */
static const u8 flat_types[] = {
	'E',		/* input devices */
	'W',		/* watchdogs */
	'f',		/* file flags and attributes, ext4 */
	'p',		/* real time clocks */
	'v',		/* file versions */
	0x12,		/* block devices; not BLKPG, which encodes no size */
	0x15,		/* file systems: UUID, label */
	0xb7,		/* name spaces, pidfds */
	0xff,		/* pidfds */
};

/* single numbers of types that also have pointers */
static const u32 singles[] = {
	FICLONE, FICLONERANGE, FIDEDUPERANGE, FIFREEZE, FITHAW, FITRIM,
	FS_IOC_FIEMAP, FS_IOC_FSGETXATTR, FS_IOC_FSSETXATTR,
	FS_IOC_GETFSLABEL, FS_IOC_SETFSLABEL,
	0x80045430,	/* TIOCGPTN */
	0x40045431,	/* TIOCSPTLCK */
	0x80045432,	/* TIOCGDEV */
	0x80045438,	/* TIOCGPKT */
	0x80045439,	/* TIOCGPTLCK */
	0x80045440,	/* TIOCGEXCL */
	0x5441,		/* TIOCGPTPEER */
	0x802c542a,	/* TCGETS2 */
	0x402c542b,	/* TCSETS2 */
	0x402c542c,	/* TCSETSW2 */
	0x402c542d,	/* TCSETSF2 */
	0x40045436,	/* TIOCSIG */
	0x80045200,	/* RNDGETENTCNT */
	0x40045201,	/* RNDADDTOENTCNT */
	0x40085203,	/* RNDADDENTROPY */
	0x5204,		/* RNDZAPENTCNT */
	0x5206,		/* RNDCLEARPOOL */
	0x5207,		/* RNDRESEEDCRNG */
	0x400454ca,	/* TUNSETIFF */
	0x400454cb,	/* TUNSETPERSIST */
	0x400454cc,	/* TUNSETOWNER */
	0x400454ce,	/* TUNSETGROUP */
	0x800454cf,	/* TUNGETFEATURES */
	0x400454d0,	/* TUNSETOFFLOAD */
	0x800454d2,	/* TUNGETIFF */
	0x8004e500,	/* FUSE_DEV_IOC_CLONE */
	0xc0502100,	/* seccomp notification: receive */
	0xc0182101,	/*   answer */
	0x40082102,	/*   still valid? */
	0x40182103,	/*   add a descriptor */
	0x80108907,	/* SIOCGSTAMPNS with 64-bit time */
	0x80108906,	/* SIOCGSTAMP with 64-bit time */
	0x80088a02,	/* EPIOCGPARAMS */
	0x40088a01,	/* EPIOCSPARAMS */
	0x894c,		/* SIOCGSKNS: returns a descriptor */
};

/* numbers of flat types that do have pointers */
static const u32 exceptions[] = {
	0x40806685,	/* FS_IOC_ENABLE_VERITY */
	0xc0286687,	/* FS_IOC_READ_VERITY_METADATA */
};

static bool is_flat(u32 cmd)
{
	size_t i;

	for (i = 0; i < ARRAY_LEN(plain); i++)
		if (cmd >= plain[i].first && cmd <= plain[i].last)
			return true;
	for (i = 0; i < ARRAY_LEN(singles); i++)
		if (cmd == singles[i])
			return true;
	for (i = 0; i < ARRAY_LEN(exceptions); i++)
		if (cmd == exceptions[i])
			return false;
	if (_IOC_DIR(cmd) == _IOC_NONE)
		return false;
	for (i = 0; i < ARRAY_LEN(flat_types); i++)
		if (_IOC_TYPE(cmd) == flat_types[i])
			return true;
	return false;
}

/*
 * A structure of at most 64 bytes with pointers at known offsets: in, check,
 * pass, out.
 */
static void forward_copy(struct dune_tf *tf, u32 size, u32 pointer, u64 reach)
{
	u8 copy[64] __attribute__((aligned(8)));
	long ret;

	if (user_read(copy, ARG2(tf), size) ||
	    meets_granule(*(u64 *)(copy + pointer), reach)) {
		refuse(tf, EFAULT);
		return;
	}
	ret = dune_syscall_forward(tf->rax, ARG0(tf), ARG1(tf), (u64)copy, 0, 0, 0);
	if (ret >= 0 && user_write(ARG2(tf), copy, size))
		ret = -EFAULT;
	dune_syscall_result(tf, ret);
}

void call_ioctl(struct dune_tf *tf)
{
	u32 cmd = ARG1(tf);

	switch (cmd) {
	case SIOCGIFCONF:
		forward_copy(tf, sizeof(struct ifconf), offsetof(struct ifconf, ifc_ifcu),
			     GUARD_SIZE);
		return;
	case SIOCETHTOOL:
		forward_copy(tf, sizeof(struct ifreq), offsetof(struct ifreq, ifr_ifru),
			     GUARD_SIZE);
		return;
	case BLKPG:
		forward_copy(tf, sizeof(struct blkpg_ioctl_arg),
			     offsetof(struct blkpg_ioctl_arg, data), GUARD_SIZE);
		return;
	}
	if (likely(is_flat(cmd)))
		dune_syscall_result(tf, forward(tf));
	else
		refuse(tf, ENOTTY);
}
