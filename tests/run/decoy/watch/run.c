// SPDX-License-Identifier: MIT OR Apache-2.0
/* The machine around a program, and one run of one. See watch.h. */
#define _GNU_SOURCE
#include "watch.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <linux/capability.h>
#include <linux/uinput.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

char runner[PATH_MAX];

/*
 * The device has everything that an input device may have: its ioctls are among
 * those with pointers. It exists as long as this process.
 */
void prepare_machine(void)
{
	struct uinput_setup setup = {
		.id = { BUS_VIRTUAL, 1, 1, 1 }, .name = "decoy", .ff_effects_max = 4,
	};
	static const int bits[][2] = {
		{ UI_SET_EVBIT, EV_KEY }, { UI_SET_KEYBIT, KEY_A }, { UI_SET_EVBIT, EV_REL },
		{ UI_SET_RELBIT, REL_X }, { UI_SET_EVBIT, EV_LED }, { UI_SET_LEDBIT, LED_NUML },
		{ UI_SET_EVBIT, EV_FF }, { UI_SET_FFBIT, FF_PERIODIC }, { UI_SET_FFBIT, FF_CUSTOM },
		{ UI_SET_FFBIT, FF_RUMBLE }, { UI_SET_EVBIT, EV_MSC }, { UI_SET_MSCBIT, MSC_SCAN },
	};
	int fd;
	size_t i;

	/* later the kernel shall not load any: those programs would run natively */
	system("modprobe -a uinput evdev tun fuse loop af_packet vsock inet_diag unix_diag "
	       "netlink_diag 2>/dev/null");
	put("/proc/sys/kernel/modprobe", "\n");
	fd = open("/dev/uinput", O_RDWR | O_CLOEXEC);
	for (i = 0; fd >= 0 && i < ARRAY_LEN(bits); i++)
		ioctl(fd, bits[i][0], bits[i][1]);
	if (fd < 0 || ioctl(fd, UI_DEV_SETUP, &setup) || ioctl(fd, UI_DEV_CREATE))
		printf("# no input device: %s\n", strerror(errno));
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *where)
{
	remove(path);
	return 0;
}

static int see_one(const char *path, const struct stat *st, int type, struct FTW *where)
{
	if (type == FTW_F && S_ISREG(st->st_mode))
		see_file(path);
	return 0;
}

/* Not by a program: that would be seen as one that runs natively. */
void clean_up(void)
{
	struct dirent *e;
	DIR *d = opendir("/tmp");
	char path[300];

	while (d && (e = readdir(d))) {
		snprintf(path, sizeof(path), "/tmp/%s", e->d_name);
		if (strncmp(e->d_name, "attack-", 7))
			continue;
		if (unchecked)
			nftw(path, see_one, 16, FTW_PHYS);
		nftw(path, remove_one, 16, FTW_DEPTH | FTW_PHYS | FTW_MOUNT);
	}
	if (d)
		closedir(d);
}

void give_device(void)
{
	static dev_t number;
	struct stat st;
	bool there = !stat("/dev/dune", &st) && S_ISCHR(st.st_mode);

	if (!number && there)
		number = st.st_rdev;
	if (number && (!there || st.st_rdev != number)) {
		nftw("/dev/dune", remove_one, 16, FTW_DEPTH | FTW_PHYS | FTW_MOUNT);
		mknod("/dev/dune", S_IFCHR | 0666, number);
	}
	chmod("/dev/dune", 0666);
}

/*
 * Capabilities that the sandbox does not restrict and with which a program could stop
 * or reconfigure the machine. The program runs without them.
 */
static const int dropped[] = {
	CAP_SYS_BOOT, CAP_SYS_MODULE, CAP_SYS_TIME, CAP_SYS_RAWIO, CAP_SYS_NICE, CAP_SYSLOG,
	CAP_SYS_PACCT, CAP_WAKE_ALARM, CAP_MKNOD,
};

static void become(char **argv, int out, int confined)
{
	static char *full[64];
	size_t i;

	mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL);
	mount("proc", "/proc", "proc", 0, NULL);
	for (i = 0; i < ARRAY_LEN(dropped); i++)
		prctl(PR_CAPBSET_DROP, dropped[i]);
	dup2(out, 1);
	dup2(out, 2);
	setsid();
	full[0] = runner;
	full[1] = "--";
	for (i = 0; argv[i] && i < 60; i++)
		full[2 + i] = argv[i];
	if (unchecked && !unfiltered)
		native_confine(confined);
	execv(runner, full);
	_exit(127);
}

u64 now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec;
}

int run(char **argv, u64 limit)
{
	u64 until = now() + limit;
	int out[2], confined[2], status = 0;
	struct pollfd wait[3];
	pid_t pid;

	if (pipe2(out, O_CLOEXEC | O_NONBLOCK) || pipe2(confined, O_CLOEXEC))
		fail("pipe");
	fflush(stdout);
	pid = syscall(SYS_clone, CLONE_NEWPID | CLONE_NEWNS | CLONE_NEWNET | CLONE_NEWIPC |
		      CLONE_NEWUTS | SIGCHLD, 0, 0, 0, 0);
	if (pid < 0)
		fail("clone");
	if (pid == 0) {
		fcntl(out[1], F_SETFL, 0);
		become(argv, out[1], confined[1]);
	}
	close(out[1]);
	close(confined[1]);
	if (unchecked && !unfiltered)
		native_listen(pid, confined[0]);
	close(confined[0]);
	wait[0] = (struct pollfd){ .fd = executions, .events = POLLIN };
	wait[1] = (struct pollfd){ .fd = out[0], .events = POLLIN };
	wait[2] = (struct pollfd){ .fd = native_calls, .events = POLLIN };
	while (waitpid(pid, &status, WNOHANG) == 0) {
		if (now() >= until) {
			/* with the first process of the name space all end */
			kill(pid, SIGKILL);
		}
		poll(wait, 3, 500);
		see_native();
		see_executions();
		see_output(out[0]);
	}
	see_output(out[0]);
	close(out[0]);
	if (native_calls >= 0)
		close(native_calls);
	see_executions();
	see_touches();
	see_faults();
	return status;
}
