// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * dumps KERNEL [guard]: puts a key into guard-keys, and has the kernel panic, so that it continues
 * as a crash kernel. This program is then its first process, which searches /proc/vmcore, reports
 * to the console, and switches the computer off. With "guard", guard-keys is guarded, and the guard
 * is sealed, before there is a key.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <linux/guard-keys.h>
#include <linux/kexec.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/random.h>
#include <sys/reboot.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "expanded.h"

#define ARCHIVE	"/tmp/crash.cpio"
#define WORDS	3

/* What is searched: three words that follow each other. They are passed on as complements. */
struct pattern {
	unsigned long long complements[WORDS], places;
};

static void die(const char *what)
{
	perror(what);
	exit(1);
}

/* ---- the crash kernel's first process ---- */

static void look(struct pattern *pattern, const unsigned long long *at)
{
	int i;

	for (i = 0; i < WORDS; i++)
		if (~at[i] != pattern->complements[i])
			return;
	pattern->places++;
}

static void report(const char *text)
{
	int log = open("/dev/kmsg", O_WRONLY);

	if (write(log, text, strlen(text)) < 0)
		die("/dev/kmsg");
	/* The console is slow. */
	sleep(2);
	sync();
	reboot(RB_POWER_OFF);
	for (;;)
		pause();
}

/* The arguments are the complements of the key's words, and of those of the control. */
static void search(char **argv)
{
	static unsigned long long buffer[1 << 17];
	struct pattern patterns[2] = {};
	unsigned long long bytes = 0;
	char text[200];
	long size, i;
	int core;

	mount("proc", "/proc", "proc", 0, NULL);
	for (i = 0; i < 2 * WORDS; i++)
		patterns[i / WORDS].complements[i % WORDS] = strtoull(argv[1 + i], NULL, 16);
	core = open("/proc/vmcore", O_RDONLY);
	while (core >= 0 && (size = read(core, buffer, sizeof(buffer))) > 0) {
		bytes += size;
		for (i = 0; i <= size / 8 - WORDS; i++) {
			look(&patterns[0], buffer + i);
			look(&patterns[1], buffer + i);
		}
	}
	snprintf(text, sizeof(text), "<0>vmcore: %llu MB, the key %llu times, the control %s",
		 bytes >> 20, patterns[0].places, patterns[1].places ? "found" : "missing");
	report(text);
}

/* ---- before the crash ---- */

static void add(FILE *archive, const char *name, unsigned int mode, unsigned int device,
		const void *data, size_t size)
{
	static const char zeros[4];

	fprintf(archive, "070701%08x%08x%08x%08x%08x%08x%08zx%08x%08x%08x%08x%08zx%08x%s%c", 0,
		mode, 0, 0, 1, 0, size, 0, 0, major(device), minor(device), strlen(name) + 1, 0,
		name, 0);
	fwrite(zeros, 1, -(110 + strlen(name) + 1) % 4, archive);
	fwrite(data, 1, size, archive);
	fwrite(zeros, 1, -size % 4, archive);
}

/* An initial file system (cpio, "newc") with this program. */
static void make_archive(void)
{
	static char program[4 << 20];
	int self = open("/proc/self/exe", O_RDONLY);
	long size = read(self, program, sizeof(program));
	FILE *archive = fopen(ARCHIVE, "w");

	if (size <= 0 || !archive)
		die(ARCHIVE);
	add(archive, "proc", S_IFDIR | 0755, 0, "", 0);
	add(archive, "dev", S_IFDIR | 0755, 0, "", 0);
	add(archive, "dev/console", S_IFCHR | 0600, makedev(5, 1), "", 0);
	add(archive, "dev/kmsg", S_IFCHR | 0600, makedev(1, 11), "", 0);
	add(archive, "init", S_IFREG | 0755, 0, program, size);
	add(archive, "TRAILER!!!", 0, 0, "", 0);
	fclose(archive);
	close(self);
}

static void load_crash_kernel(const char *kernel, const struct pattern *key,
			      const struct pattern *control)
{
	char arguments[600];
	const unsigned long long *k = key->complements, *c = control->complements;

	make_archive();
	snprintf(arguments, sizeof(arguments),
		 "console=ttyS0,115200 loglevel=4 panic=-1 nr_cpus=1 reset_devices tsc=reliable "
		 "no_timer_check cryptomgr.notests -- %llx %llx %llx %llx %llx %llx",
		 k[0], k[1], k[2], c[0], c[1], c[2]);
	if (syscall(SYS_kexec_file_load, open(kernel, O_RDONLY), open(ARCHIVE, O_RDONLY),
		    strlen(arguments) + 1, arguments, KEXEC_FILE_ON_CRASH))
		die("kexec_file_load");
}

static void run(const char *words)
{
	char command[600];

	snprintf(command, sizeof(command), "%s/bin/dunectl %s", getenv("DUNE_BUILD"), words);
	if (system(command)) {
		fprintf(stderr, "dumps: %s fails\n", command);
		exit(1);
	}
}

static void put(unsigned char *secret, size_t size)
{
	struct guard_keys_put put = {
		.key.kind = GUARD_KEYS_CIPHER, .key.usage = GUARD_KEYS_CAN_ENCRYPT, .length = size,
	};
	int keys = open("/dev/guard-keys", O_RDWR);

	memcpy(put.secret, secret, size);
	if (ioctl(keys, GUARD_KEYS_PUT, &put))
		die("GUARD_KEYS_PUT");
	explicit_bzero(&put, sizeof(put));
	explicit_bzero(secret, size);
}

int main(int argc, char **argv)
{
	struct pattern key = {}, control = {};
	unsigned long long marks[WORDS];
	unsigned char secret[32];
	int i, sysrq;

	if (getpid() == 1)
		search(argv);
	if (argc < 2 || !getenv("DUNE_BUILD") ||
	    getrandom(secret, sizeof(secret), 0) != sizeof(secret) ||
	    getrandom(marks, sizeof(marks), 0) != sizeof(marks))
		return 2;
	expanded_key(secret, key.complements);
	for (i = 0; i < WORDS; i++)
		control.complements[i] = ~marks[i];
	load_crash_kernel(argv[1], &key, &control);
	if (argc > 2) {
		run("guard launch");
		run("keys guard");
		run("guard seal");
	}
	put(secret, sizeof(secret));
	/* What is searched as a control is in this process's memory now. */
	asm volatile("" : : "r" (marks) : "memory");
	sysrq = open("/proc/sysrq-trigger", O_WRONLY);
	if (write(sysrq, "c", 1) != 1)
		die("/proc/sysrq-trigger");
	asm volatile("" : : "r" (marks) : "memory");
	return 1;
}
