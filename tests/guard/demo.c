// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * make demo-guard: what the guard does for two modules of this kernel, step by step. guard-keys has
 * a key; e1000, Debian's driver, which nobody changed, has a network card. The guard is launched
 * beneath the running kernel, takes both, and is sealed. Then a hostile module in ring 0 wants the
 * key and the card, while both are used; at last the crossings of the driver's border are counted.
 * Fails if an attack without the guard does not find the key, if one finds or changes anything with
 * the guard, if an answer of guard-keys is not openssl's, or if a file does not arrive as it was.
 *
 * dune-suite prints these verdicts in plain text (tools/suite/src/demo/guard.rs). With arguments,
 * this program fetches or sends a file.
 */
#define _GNU_SOURCE
#include "as_openssl.h"
#include "attack.h"
#include "child.h"
#include "command.h"
#include "cpu.h"
#include "driver.h"
#include "expanded.h"
#include "guard.h"
#include "klog.h"
#include "modules.h"
#include "network.h"
#include "openssl.h"
#include "proc.h"
#include "tap.h"
#include "timing.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/guard-keys.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/random.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>

#define MESSAGES	20
#define PAGE		4096UL
#define RET		0xc3
#define ONES		0xffffffffULL

/* Registers of the card, and a bit of the first one. */
#define CARD_CTRL	0
#define CARD_RESET	(1UL << 26)
#define CARD_RCTL	0x100

/* Of PCI's configuration space. */
#define BAR_0		0x10

static const struct driver driver = {
	.file = "e1000", .name = "e1000", .device = "0x80860x100e",
};

/* ---- what is printed ---- */

static void heading(const char *text)
{
	diag(" ");
	diag("%s", text);
}

/* Shows a command and its output. Bails out if it fails. */
static void show(const char *command)
{
	char redirected[600], *line, *rest;
	int status;

	diag("    $ %s", command);
	snprintf(redirected, sizeof(redirected), "{ %s; } 2>&1", command);
	status = command_run(redirected);
	for (rest = command_output; (line = strsep(&rest, "\n")); )
		if (*line)
			diag("    %s", line);
	if (status)
		bail("%s: exit status %d", command, status);
}

static int guard;
static unsigned long long log_end;

/* What the guard has logged since the last call: its first entry, or "". */
static const char *logged(void)
{
	/* By DUNE_GUARD_LOG_MSR_READ, ... */
	static const char *const kinds[] = {
		"MSR", "MSR", "instruction", "write", "no memory", "call", "INIT", "port", "entry",
		"exit", "configuration", "content", "patch",
	};
	struct dune_guard_entry entry = { .index = log_end };
	static char text[60];

	text[0] = 0;
	for (; !ioctl(guard, DUNE_GUARD_GET_LOG, &entry); entry.index++)
		if (!text[0] && entry.kind < sizeof(kinds) / sizeof(kinds[0]))
			snprintf(text, sizeof(text), "; logged: %s %llx", kinds[entry.kind],
				 entry.value);
	log_end = entry.index;
	return text;
}

/* One verdict on an attack: what was tried, what should become of it, and whether it did. */
static void attempt(bool good, bool is_logged, const char *what, const char *outcome, ...)
	PRINTF(4, 5);

static void attempt(bool good, bool is_logged, const char *what, const char *outcome, ...)
{
	const char *log = logged();
	bool is_right = good && (!is_logged || *log);
	char text[100];
	va_list ap;

	va_start(ap, outcome);
	vsnprintf(text, sizeof(text), outcome, ap);
	va_end(ap);
	if (!good)
		snprintf(text, sizeof(text), "SUCCEEDS: %llx, %llu times", found, seen);
	else if (!is_right)
		log = "; NOT LOGGED";
	ok(is_right, "%-46s %s%s", what, text, log);
}

/* ---- the key ---- */

static int keys;
static uint64_t cipher, signer;
static unsigned char cipher_secret[32], signer_secret[64];
static unsigned char text[GUARD_KEYS_TEXT];

static uint64_t put_key(int kind, unsigned int usage, unsigned char *secret, int length)
{
	struct guard_keys_put put = { .key.kind = kind, .key.usage = usage, .length = length };

	if (getrandom(secret, length, 0) != length)
		bail("random bytes: %m");
	memcpy(put.secret, secret, length);
	if (ioctl(keys, GUARD_KEYS_PUT, &put))
		bail("no key can be put into guard-keys: %m");
	explicit_bzero(put.secret, sizeof(put.secret));
	return put.key.handle;
}

/* Keys with new secrets. The hostile module wants the cipher's. */
static void put_keys(void)
{
	unsigned long long complements[3];

	cipher = put_key(GUARD_KEYS_CIPHER, GUARD_KEYS_CAN_ENCRYPT | GUARD_KEYS_CAN_DECRYPT,
			 cipher_secret, sizeof(cipher_secret));
	signer = put_key(GUARD_KEYS_SIGNER, GUARD_KEYS_CAN_SIGN | GUARD_KEYS_CAN_VERIFY,
			 signer_secret, sizeof(signer_secret));
	expanded_key(cipher_secret, complements);
	attack("want", complements[0], complements[1], complements[2]);
}

static void open_keys(void)
{
	keys = open("/dev/guard-keys", O_RDWR | O_CLOEXEC);
	if (keys < 0)
		bail("/dev/guard-keys: %m");
}

/* Messages that are encrypted, and signed, as openssl does. */
static int right_answers(int messages)
{
	int good = 0, i;

	for (i = 0; i < messages; i++) {
		int length = random() % 5000;

		good += keys_crypt_as_openssl(keys, cipher, cipher_secret, text, length,
					      "a header", 8) &&
			keys_sign_as_openssl(keys, signer, signer_secret, 64, text, length);
	}
	return good;
}

/* Encrypts the longest message. */
static void encrypt_long(void)
{
	static unsigned char result[GUARD_KEYS_TEXT];
	struct guard_keys_crypt message = {
		.handle = cipher, .from = (uintptr_t)text, .to = (uintptr_t)result,
		.length = sizeof(text),
	};

	if (ioctl(keys, GUARD_KEYS_ENCRYPT, &message))
		bail("a message cannot be encrypted: %m");
}

/* The parts of guard-keys.ko that are its own alone. */
static struct {
	unsigned long code, code_end, stacks, private_end, shared, middle, stub;
} parts;

static void find_parts(void)
{
	parts.code = kernel_address("keys_enter");
	parts.code_end = kernel_address("keys_text_end");
	parts.stacks = kernel_address("keys_stacks");
	parts.private_end = kernel_address("keys_private_end");
	parts.shared = kernel_address("keys_exchange");
	parts.middle = kernel_address("keys_leave");
	parts.stub = kernel_address("keys_interrupted");
	if (!parts.code || !parts.code_end || !parts.stacks || !parts.private_end ||
	    !parts.shared || !parts.middle || !parts.stub)
		bail("the parts of guard-keys are not in /proc/kallsyms");
}

/* ways, by the hostile module's numbers */
enum { DIRECT_MAP, VMAP, OWN_ENTRY, AS_IT_IS };

static const char *const ways[] = {
	[DIRECT_MAP] = "by the direct map",
	[VMAP] = "by vmap()",
	[OWN_ENTRY] = "by its own page table",
	[AS_IT_IS] = "where it is",
};

static void look(int way, unsigned long start, unsigned long end)
{
	long err = attack("look", way, start, end - start);

	if (err)
		bail("the hostile module cannot look: %s", strerror(-err));
}

/* Interrupts while the module works, on this CPU. */
static void spy(void)
{
	int i;
	long err;

	pin_to(usable_cpu(0));
	err = attack("spy", parts.code, parts.code_end - parts.code, 0);
	if (err)
		bail("the hostile module has no clock: %s", strerror(-err));
	for (i = 0; i < MESSAGES; i++)
		encrypt_long();
	attack("spied", 0, 0, 0);
}

static void without_guard(void)
{
	heading("0. Without the guard: a hostile module in ring 0 wants a key of guard-keys");
	open_keys();
	put_keys();
	find_parts();
	look(AS_IT_IS, parts.stacks, parts.private_end);
	ok(seen > 0, "%-46s the key is there", "reads the module's memory");
	attack("hunt", 0, 0, 0);
	ok(seen > 0, "%-46s the key is there (places: %llu)", "searches all memory", seen);
	spy();
	ok(found && seen, "%-46s it sees %llu registers in %llu interrupts",
	   "interrupts the module at work", seen, found);
	close(keys);
}

/* ---- 1 ---- */

static bool has_card;

static void launch(void)
{
	struct utsname system;
	char command[300];

	uname(&system);
	snprintf(command, sizeof(command), "1. A hypervisor beneath the running kernel, Linux %s",
		 system.release);
	heading(command);
	show("dunectl guard launch");
	show("dunectl keys guard");
	has_card = modprobe("-nq", driver.file, NULL) && *driver_device(&driver);
	if (has_card) {
		show("dunectl guard describe $(modinfo -n e1000) -o e1000.toml");
		show("dunectl guard bind --force e1000.toml");
		snprintf(command, sizeof(command), "printf '[[privilege]]\\nkind = \"mmio\"\\n"
			 "device = \"%s\"\\n' >>/etc/dune/guard.d/e1000.toml",
			 driver_device(&driver));
		show(command);
		show("dunectl guard leaves e1000.toml >>/etc/dune/guard.d/e1000.toml");
		show("dunectl guard register --count-crossings e1000.toml");
		show("modprobe e1000");
		show("dunectl guard status | grep ^module");
		ok(driver_is_guarded(&driver),
		   "e1000 is guarded, and alone has the card's registers");
	} else {
		skip("the machine has no such card", "e1000 is guarded");
	}
	show("dunectl guard seal");
	ok(guard_status(guard).state == DUNE_GUARD_SEALED,
	   "the guard is sealed: nothing but a reset removes it, and no module can be added");
}

/* ---- 2 ---- */

static void use_key(void)
{
	struct guard_keys_status status;
	size_t i;

	heading("2. A key is put into guard-keys, and a program uses it");
	open_keys();
	put_keys();
	ok(!ioctl(keys, GUARD_KEYS_GET_STATUS, &status) && status.guarded,
	   "guard-keys is guarded: the kernel cannot read its memory");
	for (i = 0; i < sizeof(text); i++)
		text[i] = random();
	is(right_answers(MESSAGES), MESSAGES,
	   "%d messages are encrypted, decrypted and signed as openssl does", MESSAGES);
}

/* ---- 3 ---- */

/* Uses the key all the time, on the last CPU. */
static int begin_encrypting(void)
{
	int child = checked_fork();

	if (child)
		return child;
	pin_to(usable_cpu(1));
	for (;;)
		encrypt_long();
}

static void end_encrypting(int child)
{
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
}

static void read_key(void)
{
	char what[80];
	int way;

	for (way = 0; way <= AS_IT_IS; way++) {
		snprintf(what, sizeof(what), "reads the key's memory %s", ways[way]);
		look(way, parts.stacks, parts.private_end);
		attempt(!found && !seen, false, what, "zeros (%lu pages)",
			(parts.private_end - parts.stacks) / PAGE);
	}
	look(DIRECT_MAP, parts.shared, parts.shared + 17 * PAGE);
	attempt(!seen, false, "reads what it shares with the kernel", "texts, but not the key");
	attack("hunt", 0, 0, 0);
	attempt(!seen && found > 1000, false, "searches all memory", "the key is not in %llu pages",
		found);
}

static void interrupt(void)
{
	spy();
	attempt(found && !seen, false, "interrupts the module at work",
		"all registers are 0 (%llu times)", found);
}

/* Replaces one byte of code, and puts it back after @works was asked. */
static void patch(unsigned long address, const char *what, int (*works)(void), const char *outcome)
{
	unsigned long long was;
	long err = attack("patch", address, RET, 0);
	bool is_patched = !err && seen == RET;

	was = found;
	attempt(works() && is_patched, false, what, "%s", outcome);
	attack("patch", address, was, 0);
	logged();
}

static int encrypts(void)
{
	return right_answers(2) == 2;
}

static void jump(unsigned long address, const char *what)
{
	long err = attack("jump", address, 0, 0);

	attempt(err == -EFAULT, true, what, "refused");
}

static void attack_key(void)
{
	int child;

	heading("3. A hostile module in ring 0 wants the key, while a program uses it");
	logged();
	child = begin_encrypting();
	read_key();
	end_encrypting(child);
	interrupt();
	patch(parts.code, "overwrites the module's first instruction", encrypts,
	      "has no effect");
	jump(parts.middle, "jumps into the middle of the module");
	jump(parts.stub, "jumps to where an interrupt has left it");
	is(right_answers(MESSAGES), MESSAGES,
	   "%d messages more are encrypted and signed as openssl does", MESSAGES);
}

/* ---- 4 ---- */

#define FETCHED	"/dev/shm/demo-fetched"

static char interface[IFNAMSIZ];
static char file[300];

/* Fetches on one CPU and on another one, and sends then. */
static void transfer(const char *when)
{
	char hash[65];
	int child;

	network_hash(file, hash);
	child = checked_fork();
	if (!child) {
		pin_to(usable_cpu(1));
		_exit(!network_fetches(file, FETCHED "-2", hash));
	}
	pin_to(usable_cpu(0));
	ok(network_fetches(file, FETCHED, hash) & !wait_child(child, 300).code,
	   "a file is fetched on two CPUs at once%s: same SHA-256", when);
	ok(network_sends(file, hash), "it is sent%s: the other side has the same SHA-256", when);
}

/* The card works: packets come back. */
static int card_works(void)
{
	return network_echo() == NETWORK_ECHOES;
}

static void attack_registers(unsigned long bar, unsigned long ports)
{
	attack("registers", bar + 8, 0, 0);
	attempt(found == ONES, false, "reads the card's registers", "ones");
	attack("program", bar + CARD_CTRL, CARD_RESET, 0);
	attempt(found == ONES, true, "resets the card (CTRL)", "dropped");
	attack("program", bar + CARD_RCTL, 0, 0);
	attempt(found == ONES, true, "switches its receiver off (RCTL)", "dropped");
	attack("outl", ports, 0, 0);
	attack("in", ports, 4, 0);
	attempt(found == ONES, true, "uses the card's ports instead", "dropped");
}

static void attack_place(unsigned long bar)
{
	unsigned int bus, device, function;

	if (sscanf(driver_device(&driver), "0000:%x:%x.%x", &bus, &device, &function) != 3)
		bail("the address of the card");
	attack("config", bus << 16 | device << 11 | function << 8 | BAR_0, bar ^ 0x100000, 0);
	attempt((found & ~0xfUL) == bar, true, "moves the registers to another address",
		"they stay");
}

static void attack_code(unsigned long bar)
{
	unsigned long entry = kernel_address("e1000_xmit_frame");
	unsigned long inner = kernel_address("e1000_rar_set");

	if (!entry || !inner)
		bail("the functions of e1000 are not in /proc/kallsyms");
	patch(entry, "overwrites the driver's function to send", card_works,
	      "has no effect");
	attack("filter", inner, bar, 0);
	attempt(card_works(), true, "jumps into e1000_rar_set() (other address)",
		"has no card there");
}

static void use_card(void)
{
	heading("4. Files go over the card, and the hostile module wants to program it");
	WAIT_FOR(network_find(interface), 20);
	if (!interface[0])
		bail("e1000 has no network interface");
	if (network_set(interface, true) || !card_works())
		bail("%s does not work", interface);
	logged();
	transfer("");
	ok(!*logged(), "nothing of that is suspicious: the guard's log is empty");
	attack_registers(driver_bar(&driver, 0), driver_bar(&driver, 1));
	attack_place(driver_bar(&driver, 0));
	attack_code(driver_bar(&driver, 0));
	transfer(" again");
}

/* ---- 5 ---- */

/* A table of crossings while this program does something; its last line has the sum. */
static void count_crossings(const char *option, const char *what, const char *papers)
{
	char command[800], program[300], *line, *rest;
	bool has_room = true;
	double sum = 0;
	int size = readlink("/proc/self/exe", program, sizeof(program) - 1);

	program[size < 0 ? 0 : size] = 0;
	snprintf(command, sizeof(command), "dunectl guard crossings e1000 %s %s -- %s %s 2>&1",
		 option, interface, program, what);
	if (command_run(command))
		bail("%s: %s", command, command_output);
	diag(" ");
	for (rest = command_output; (line = strsep(&rest, "\n")); ) {
		if (*line)
			diag("    %s", line);
		has_room &= !strstr(line, "other functions");
		if (sscanf(line, "all crossings %*u %lf", &sum) == 1)
			break;
	}
	ok(sum > 0.5 && sum < 40 && has_room,
	   "%.2f crossings per packet (the paper, with the driver bnx2: %s)", sum, papers);
}

static void crossings(void)
{
	heading("5. The crossings of the driver's border, as in figures 9 and 10 of the paper");
	count_crossings("--sent", "send", "2.12");
	count_crossings("--received", "fetch", "9.28");
}

int main(int argc, char **argv)
{
	const char *problem;
	struct klog log;
	char path[1000];

	snprintf(file, sizeof(file), "%s/libexec/dune-agent", build_directory());
	if (argc > 1) {
		char hash[65];

		network_hash(file, hash);
		return !(strcmp(argv[1], "send") ? network_fetches(file, FETCHED, hash) :
						   network_sends(file, hash));
	}
	snprintf(path, sizeof(path), "%s/bin:%s", build_directory(), getenv("PATH"));
	setenv("PATH", path, 1);
	guard = guard_begin(900, &log);
	problem = openssl_load();
	if (problem)
		bail("openssl's library: %s", problem);
	if (chdir("/tmp"))
		bail("/tmp: %m");
	if (!module_is_loaded("guard_keys") && module_load("guard-keys", ""))
		bail("guard-keys.ko cannot be loaded");
	attack_load();
	without_guard();
	launch();
	use_key();
	attack_key();
	if (has_card) {
		use_card();
		crossings();
	}
	klog_end(&log);
	return done();
}
