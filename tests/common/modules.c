// SPDX-License-Identifier: MIT OR Apache-2.0
/* Loading and unloading: see modules.h. */
#define _GNU_SOURCE
#include "machine.h"
#include "modules.h"
#include "tap.h"
#include "x86.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>

static bool is_amd(void)
{
	static int amd = -1;

	if (amd < 0) {
		char text[4096] = "";
		int fd = open("/proc/cpuinfo", O_RDONLY | O_CLOEXEC);

		if (fd >= 0) {
			(void)!read(fd, text, sizeof(text) - 1);
			close(fd);
		}
		amd = !!strstr(text, " svm") || strstr(text, "AuthenticAMD");
	}
	return amd;
}

const char *kvm_vendor(void)
{
	return is_amd() ? "kvm_amd" : "kvm_intel";
}

static bool is_loaded(const char *name)
{
	char path[100];

	snprintf(path, sizeof(path), "/sys/module/%s", name);
	return !access(path, F_OK);
}

bool kvm_is_loaded(void)
{
	return is_loaded("kvm");
}

bool dune_is_loaded(void)
{
	return is_loaded("dune");
}

static int modprobe(const char *option, const char *module, const char *parameter)
{
	int status, pid;

	fflush(stdout);
	pid = fork();
	if (!pid) {
		dup2(1, 2);
		execlp("modprobe", "modprobe", option, module, parameter, NULL);
		_exit(127);
	}
	if (waitpid(pid, &status, 0) != pid || !WIFEXITED(status))
		return -EIO;
	return WEXITSTATUS(status) ? -ENOENT : 0;
}

bool kvm_exists(void)
{
	return is_loaded(kvm_vendor()) || !modprobe("-qn", kvm_vendor(), NULL);
}

int kvm_load(const char *parameter)
{
	int err = 0;

	if (parameter)
		err = modprobe("-q", "kvm", parameter);
	if (!err)
		err = modprobe("-q", kvm_vendor(), NULL);
	for (int i = 0; !err && i < 200 && access("/dev/kvm", R_OK | W_OK); i++)
		sleep_ms(5);
	return err;
}

int fuse_load(void)
{
	return access("/dev/fuse", F_OK) ? modprobe("-q", "fuse", NULL) : 0;
}

int kvm_load_common(void)
{
	return modprobe("-q", "kvm", NULL);
}

/* The last close of a file of a dead process may come a little later. */
static int unload(const char *name)
{
	int err = 0;

	for (int i = 0; i < 100; i++) {
		err = syscall(SYS_delete_module, name, O_NONBLOCK) ? -errno : 0;
		if (err != -EWOULDBLOCK)
			break;
		sleep_ms(5);
	}
	return err == -ENOENT ? 0 : err;
}

int kvm_unload_vendor(void)
{
	return unload(kvm_vendor());
}

int kvm_unload(void)
{
	int err = kvm_unload_vendor();

	return err ? err : unload("kvm");
}

const char *dune_module(void)
{
	static char path[400];
	struct utsname uts;

	if (getenv("DUNE_KO"))
		return getenv("DUNE_KO");
	uname(&uts);
	snprintf(path, sizeof(path), "%s/kernel/%s/dune.ko",
		 getenv("BUILD") ? getenv("BUILD") : "build", uts.release);
	return path;
}

int dune_insert(const char *parameters)
{
	int fd = open(dune_module(), O_RDONLY | O_CLOEXEC);
	int err;

	if (fd < 0)
		return -errno;
	err = syscall(SYS_finit_module, fd, parameters, 0) ? -errno : 0;
	close(fd);
	return err;
}

int dune_load(const char *parameters)
{
	int err;

	if (dune_is_loaded())
		return 0;
	err = dune_insert(parameters);
	for (int i = 0; !err && i < 4000 && access("/dev/dune", R_OK | W_OK); i++)
		sleep_ms(5);
	return err;
}

int dune_unload(void)
{
	return unload("dune");
}

/* Looks @times times, 5 ms apart. */
static long settled_users(const char *name, long wanted, int times)
{
	char path[100];
	long n = -1;

	snprintf(path, sizeof(path), "/sys/module/%s/refcnt", name);
	for (int i = 0; i < times; i++) {
		n = file_number(path);
		if (n == wanted)
			break;
		sleep_ms(5);
	}
	return n;
}

long module_users(const char *name, long wanted)
{
	return settled_users(name, wanted, 200);
}

long dune_users_left(void)
{
	return settled_users("dune", 0, 4000);
}

int virtualization_is_on(int cpu)
{
	char path[40];
	uint64_t efer;
	int fd;

	if (!is_amd())
		return -1;
	snprintf(path, sizeof(path), "/dev/cpu/%d/msr", cpu);
	if (access(path, R_OK))
		modprobe("-q", "msr", NULL);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -1;
	if (pread(fd, &efer, sizeof(efer), MSR_EFER) != sizeof(efer))
		efer = 0;
	close(fd);
	return !!(efer & EFER_SVME);
}
