// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * Modules that are known by their content: Debian's drivers and our own module are described by
 * `dunectl guard describe`, registered, and loaded by the real kernel, which relocates and patches
 * them. Fails if one of them is not recognized and guarded, before or after it is loaded; if its
 * init or exit crosses its border in a suspicious way; if a module with a changed bit is taken for
 * the registered one; if a description that is damaged, for another kernel or registered already is
 * accepted; or if any of that is not one line in the kernel's log.
 */
#define _GNU_SOURCE
#include "guard.h"
#include "klog.h"
#include "modules.h"
#include "proc.h"
#include "tap.h"
#include "timing.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/klog.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <unistd.h>

#define OWN		"dune-guard-attack"
#define OWN_NAME	"dune_guard_attack"
#define DESCRIPTION	"/tmp/register.description"
#define CHANGED		"/tmp/register.ko"

#define READ_ALL	3	/* of klogctl() */

static struct dune_guard_registration request;

/* Runs a command of the shell. Whether it succeeds. */
static bool shell(const char *format, const char *a, const char *b)
{
	char command[1024];

	snprintf(command, sizeof(command), format, build_directory(), a, b);
	fflush(stdout);
	return !system(command);
}

/* Describes a module's file, and makes DESCRIPTION of that, after the commands of sed in @edit. */
static void describe(const char *file, const char *edit)
{
	if (!shell("%s/bin/dunectl guard describe %s -o /tmp/register.toml", file, "") ||
	    !shell("sed -i '%.0s%.0s%s' /tmp/register.toml", "", edit) ||
	    !shell("%s/bin/dunectl guard encode /tmp/register.toml -o " DESCRIPTION, "", ""))
		bail("there is no description of %s", file);
}

static unsigned int choice = DUNE_GUARD_LOG;

/* Registers DESCRIPTION, of which one byte is another one at @damage if that is not 0. */
static int register_it(int fd, unsigned int damage)
{
	static unsigned int words[1 << 19];
	int file = open(DESCRIPTION, O_RDONLY);
	int size = read(file, words, sizeof(words));

	close(file);
	if (size <= 0)
		bail(DESCRIPTION ": %m");
	if (damage)
		words[damage] ^= 0x100;
	memset(&request, 0, sizeof(request));
	request.description = (unsigned long)words;
	request.size = size;
	request.on_suspicion = choice;
	return ioctl(fd, DUNE_GUARD_REGISTER, &request) ? -errno : 0;
}

static int unregister(int fd, const char *name)
{
	memset(&request, 0, sizeof(request));
	snprintf(request.name, sizeof(request.name), "%s", name);
	return ioctl(fd, DUNE_GUARD_UNREGISTER, &request) ? -errno : 0;
}

static int show(int fd, unsigned int index)
{
	memset(&request, 0, sizeof(request));
	request.index = index;
	return ioctl(fd, DUNE_GUARD_GET_REGISTRATION, &request) ? -errno : 0;
}

/* How often the kernel's log has this text. */
static int logged(const char *text)
{
	static char log[1 << 20];
	int length = klogctl(READ_ALL, log, sizeof(log) - 1), found = 0;
	const char *at;

	log[length > 0 ? length : 0] = 0;
	for (at = log; (at = strstr(at, text)); at += strlen(text))
		found++;
	return found;
}

/* One verdict: the only registration has this state, and the log one more line with the text. */
static void comes(int fd, unsigned int state, const char *text, int before, const char *name)
{
	int err = show(fd, 0), lines = logged(text) - before;

	ok(!err && request.state == state && lines == 1 && show(fd, 1) == -ENOENT,
	   "%s (state %u, finding %u in region %u at %#x; \"%s\" is logged %d times)", name,
	   request.state, request.finding, request.region, request.offset, text, lines);
}

/* A verdict: it is refused with this error and text, which the log has, too. */
static void refuses(int got, int err, const char *text, const char *name)
{
	ok(got == -err && strstr(request.text, text) && logged(request.text) > 0, "%s (%s; %s)",
	   name, strerror(-got), request.text);
}

static int insert_file(const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	int err = syscall(SYS_finit_module, fd, "", 0) ? -errno : 0;

	close(fd);
	return err;
}

/*
 * Inserts our module with one bit changed in this section, at a place where it has no relocation:
 * Linux does not load a module that has something at the place of a relocation.
 */
static void insert_changed(const char *section)
{
	static unsigned char bytes[8 << 20];
	int fd = open(module_file(OWN), O_RDONLY), err = -1;
	long size = read(fd, bytes, sizeof(bytes));
	Elf64_Ehdr *header = (Elf64_Ehdr *)bytes;
	Elf64_Shdr *sections = (Elf64_Shdr *)(bytes + header->e_shoff);
	const char *names = (char *)bytes + sections[header->e_shstrndx].sh_offset;
	int i;

	close(fd);
	if (size <= 0)
		bail("%s: %m", OWN);
	for (i = 1; i < header->e_shnum; i++)
		if (!strcmp(names + sections[i].sh_name, section))
			break;
	if (i == header->e_shnum)
		bail(OWN " has no %s", section);
	for (unsigned int k = sections[i].sh_size / 2; err && k < sections[i].sh_size; k++) {
		unsigned char *byte = bytes + sections[i].sh_offset + k;

		*byte ^= 4;
		fd = open(CHANGED, O_WRONLY | O_CREAT | O_TRUNC, 0600);
		if (write(fd, bytes, size) != size)
			bail(CHANGED ": %m");
		close(fd);
		err = insert_file(CHANGED);
		*byte ^= 4;
	}
	if (err)
		bail("no changed module can be loaded: %s", strerror(-err));
}

/* One of Debian's drivers, by modprobe, with what it needs. */
static void driver(int fd, const char *file, const char *name)
{
	static const char matches[] = "loaded, and guarded\n";
	struct utsname kernel;
	char path[512];
	FILE *pipe;
	int before;

	uname(&kernel);
	snprintf(path, sizeof(path), "find /lib/modules/%s -name '%s.ko*'", kernel.release, file);
	pipe = popen(path, "r");
	if (!pipe || !fgets(path, sizeof(path), pipe))
		path[0] = 0;
	pclose(pipe);
	path[strcspn(path, "\n")] = 0;
	if (!path[0] || !modprobe("-nq", file, NULL)) {
		skip("the machine does not have it", "%s is recognized", file);
		return;
	}
	/* The modules to which it refers come first. */
	if (!shell("%.0sfor one in $(modinfo -F depends %s | tr , ' '); do modprobe $one; done",
		   path, ""))
		bail("what %s needs cannot be loaded", file);
	describe(path, "");
	if (register_it(fd, 0))
		bail("%s is not registered: %s", file, request.text);
	before = logged(matches);
	if (!modprobe("-q", file, NULL))
		bail("%s cannot be loaded", file);
	comes(fd, DUNE_GUARD_ARMED, matches, before, file);
	is(unregister(fd, name), 0, "it is unregistered");
	register_it(fd, 0);
	is(show(fd, 0) ? -1 : (int)request.state, DUNE_GUARD_ARMED,
	   "it is recognized while it is loaded");
	unregister(fd, name);
	modprobe("-qr", file, NULL);
}

int main(void)
{
	static const char loaded[] = OWN_NAME ": loaded, and guarded";
	static const char other[] = OWN_NAME ": loaded, and not the registered module: ";
	static const char unloaded[] = OWN_NAME ": unloaded";
	struct dune_guard_entry entry = {};
	struct klog log;
	int fd, before;

	begin(900);
	klog_begin(&log);
	/* Another test may have left it. */
	module_unload(OWN_NAME);
	fd = guard_open();
	describe(module_file(OWN), "");
	refuses(register_it(fd, 0), EINVAL, "the guard is not launched", "the guard is off");
	is(guard_request(fd, DUNE_GUARD_LAUNCH), 0, "a launch");

	before = logged(OWN_NAME ": registered, and not loaded");
	is(register_it(fd, 0), 0, "a module is registered before it is loaded");
	comes(fd, DUNE_GUARD_WAITING, OWN_NAME ": registered, and not loaded", before,
	      "it is not loaded");
	refuses(register_it(fd, 0), EEXIST, "is registered already", "a second time");
	before = logged(loaded);
	is(module_insert(OWN, ""), 0, "it is loaded");
	comes(fd, DUNE_GUARD_ARMED, loaded, before, "it is recognized");
	before = logged(unloaded);
	is(module_unload(OWN_NAME), 0, "it is unloaded");
	comes(fd, DUNE_GUARD_WAITING, unloaded, before, "it is not loaded any more");

	before = logged(other);
	insert_changed(".text");
	comes(fd, DUNE_GUARD_DIFFERS, other, before, "a changed bit in the code is found");
	module_unload(OWN_NAME);
	before = logged(other);
	insert_changed(".rodata.str1.1");
	comes(fd, DUNE_GUARD_DIFFERS, other, before, "a changed bit in a constant is found");
	module_unload(OWN_NAME);

	before = logged(loaded);
	is(module_insert(OWN, ""), 0, "the right one is loaded");
	comes(fd, DUNE_GUARD_ARMED, loaded, before, "and recognized");
	is(unregister(fd, OWN_NAME), 0, "it is unregistered");
	refuses(unregister(fd, OWN_NAME), ENOENT, "is not registered", "it cannot be once more");
	before = logged(loaded);
	is(register_it(fd, 0), 0, "it is registered while it is loaded");
	comes(fd, DUNE_GUARD_ARMED, loaded, before, "it is recognized");
	unregister(fd, OWN_NAME);
	module_unload(OWN_NAME);

	refuses(register_it(fd, 2), EINVAL, "the description is damaged", "a damaged description");
	for (choice = 0; choice <= DUNE_GUARD_PANIC + 1; choice += DUNE_GUARD_PANIC + 1)
		refuses(register_it(fd, 0), EINVAL, "is no choice for suspicious activity",
			"a choice for suspicious activity that is none");
	choice = DUNE_GUARD_LOG;
	describe(module_file(OWN), "s/^kernel = .*/kernel = \"5.10.0-1-amd64\"/");
	refuses(register_it(fd, 0), EINVAL, "is described for the kernel 5.10.0-1-amd64",
		"another kernel's module");
	/* The hashes of another version. */
	describe(module_file(OWN), "s/^sha256 = \"..../sha256 = \"0000/");
	before = logged(other);
	is(register_it(fd, 0), 0, "another version is registered");
	is(module_insert(OWN, ""), 0, "and this one is loaded");
	comes(fd, DUNE_GUARD_DIFFERS, other, before, "it is not recognized");
	unregister(fd, OWN_NAME);
	module_unload(OWN_NAME);

	while (!ioctl(fd, DUNE_GUARD_GET_LOG, &entry))
		entry.index++;
	driver(fd, "e1000", "e1000");
	driver(fd, "e1000e", "e1000e");
	driver(fd, "ne2k-pci", "ne2k_pci");
	driver(fd, "8139cp", "8139cp");
	is(ioctl(fd, DUNE_GUARD_GET_LOG, &entry) ? errno : (int)entry.kind, ENOENT,
	   "nothing of that was suspicious");

	describe(module_file(OWN), "");
	register_it(fd, 0);
	is(guard_request(fd, DUNE_GUARD_STOP), 0, "the guard is stopped");
	is(show(fd, 0), -ENOENT, "it has no registrations any more");
	is(guard_unload(fd), 0, "the module is unloaded");
	klog_end(&log);
	return done();
}
