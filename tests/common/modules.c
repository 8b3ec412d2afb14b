// SPDX-License-Identifier: MIT OR Apache-2.0
/* Loading and unloading: see modules.h. */
#define _GNU_SOURCE
#include "cpu.h"
#include "modules.h"
#include "proc.h"
#include "tap.h"
#include "timing.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>

bool module_is_loaded(const char *name)
{
	char path[100];

	snprintf(path, sizeof(path), "/sys/module/%s", name);
	return !access(path, F_OK);
}

bool modprobe(const char *option, const char *module, const char *parameter)
{
	int status, pid;

	fflush(stdout);
	pid = fork();
	if (!pid) {
		dup2(1, 2);
		execlp("modprobe", "modprobe", option, module, parameter, NULL);
		_exit(127);
	}
	return pid > 0 && waitpid(pid, &status, 0) == pid && !status;
}

const char *build_directory(void)
{
	const char *directory = getenv("DUNE_BUILD");

	return directory && *directory ? directory : "build";
}

/* $NAME_KO, with the module's name in capitals. */
static const char *chosen_file(const char *name)
{
	char variable[40];

	snprintf(variable, sizeof(variable), "%s_KO", name);
	for (char *p = variable; *p; p++)
		*p = toupper(*p);
	return getenv(variable);
}

const char *module_file(const char *name)
{
	static char path[400];
	const char *chosen = chosen_file(name);
	struct utsname uts;

	if (chosen)
		return chosen;
	uname(&uts);
	snprintf(path, sizeof(path), "%s/kernel/%s/%s.ko", build_directory(), uts.release, name);
	return path;
}

int module_insert(const char *name, const char *parameters)
{
	int fd = open(module_file(name), O_RDONLY | O_CLOEXEC);
	int err;

	if (fd < 0)
		return -errno;
	err = syscall(SYS_finit_module, fd, parameters, 0) ? -errno : 0;
	close(fd);
	return err;
}

/* Looks @times times, 5 ms apart. 0, or -ENODEV if it does not come. */
static int wait_for_device(const char *device, int times)
{
	for (int i = 0; i < times; i++) {
		if (!access(device, R_OK | W_OK))
			return 0;
		sleep_ms(5);
	}
	return -ENODEV;
}

int module_load(const char *name, const char *parameters)
{
	char device[100];
	int err;

	if (module_is_loaded(name))
		return 0;
	err = module_insert(name, parameters);
	snprintf(device, sizeof(device), "/dev/%s", name);
	return err ? err : wait_for_device(device, 4000);
}

/* The last close of a file of a dead process may come a little later. */
int module_unload(const char *name)
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

long module_users_now(const char *name)
{
	char path[100];

	snprintf(path, sizeof(path), "/sys/module/%s/refcnt", name);
	return file_number(path);
}

/* Looks @times times, 5 ms apart. */
static long settled_users(const char *name, long wanted, int times)
{
	long n = -1;

	for (int i = 0; i < times; i++) {
		n = module_users_now(name);
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

long module_users_left(const char *name)
{
	return settled_users(name, 0, 4000);
}

/* ---- KVM, and fuse ---- */

const char *kvm_vendor(void)
{
	return is_amd() ? "kvm_amd" : "kvm_intel";
}

bool kvm_exists(void)
{
	return module_is_loaded(kvm_vendor()) || modprobe("-qn", kvm_vendor(), NULL);
}

bool kvm_is_loaded(void)
{
	return module_is_loaded("kvm");
}

int kvm_load(const char *parameter)
{
	if (parameter && !modprobe("-q", "kvm", parameter))
		return -EIO;
	if (!modprobe("-q", kvm_vendor(), NULL))
		return -EIO;
	return wait_for_device("/dev/kvm", 200);
}

int kvm_load_common(void)
{
	return modprobe("-q", "kvm", NULL) ? 0 : -EIO;
}

int kvm_unload_vendor(void)
{
	return module_unload(kvm_vendor());
}

int kvm_unload(void)
{
	int err = kvm_unload_vendor();

	return err ? err : module_unload("kvm");
}

int fuse_load(void)
{
	return !access("/dev/fuse", F_OK) || modprobe("-q", "fuse", NULL) ? 0 : -EIO;
}

/* ---- dune.ko ---- */

int dune_reload(const char *parameters)
{
	int err = dune_unload();

	return err ? err : dune_load(parameters);
}

int dune_load_without_kvm(void)
{
	int err = kvm_unload();

	return err ? err : dune_reload("");
}
