// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * What the inside of guard-keys.ko leaves: registers after keys_enter(), its caller's stack,
 * and all memory of the process. Fails when a register has anything but the result after it, when
 * one that the caller owns has changed, or when a secret or a text is anywhere.
 */
#include "caller.h"
#include "tap.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The secret and the text are made of this, so that they are not in memory before. */
#define BYTE(i)	((u8)((i) * 181 + 97))

struct registers {
	u64 rax, rcx, rdx, rsi, rdi, r8, r9, r10, r11;
	u64 rbx, rbp, r12, r13, r14, r15;
};

static struct registers after;

/* Enters with a pattern in all registers. */
__attribute__((noinline)) static void enter(void)
{
	__asm__ volatile("push %%rbp; push %%rbx; push %%r12; push %%r13\n\t"
		"push %%r14; push %%r15\n\t"
		"mov $0x1111, %%ebx; mov $0x2222, %%ebp; mov $0x3333, %%r12d\n\t"
		"mov $0x4444, %%r13d; mov $0x5555, %%r14d; mov $0x6666, %%r15d\n\t"
		"mov $-1, %%rcx; mov %%rcx, %%rdx; mov %%rcx, %%rsi; mov %%rcx, %%rdi\n\t"
		"mov %%rcx, %%r8; mov %%rcx, %%r9; mov %%rcx, %%r10; mov %%rcx, %%r11\n\t"
		"std\n\t"
		"call keys_enter\n\t"
		"mov %%rax, 0+after(%%rip); mov %%rcx, 8+after(%%rip)\n\t"
		"mov %%rdx, 16+after(%%rip); mov %%rsi, 24+after(%%rip)\n\t"
		"mov %%rdi, 32+after(%%rip); mov %%r8, 40+after(%%rip)\n\t"
		"mov %%r9, 48+after(%%rip); mov %%r10, 56+after(%%rip)\n\t"
		"mov %%r11, 64+after(%%rip); mov %%rbx, 72+after(%%rip)\n\t"
		"mov %%rbp, 80+after(%%rip); mov %%r12, 88+after(%%rip)\n\t"
		"mov %%r13, 96+after(%%rip); mov %%r14, 104+after(%%rip)\n\t"
		"mov %%r15, 112+after(%%rip)\n\t"
		"pop %%r15; pop %%r14; pop %%r13; pop %%r12; pop %%rbx; pop %%rbp"
		: : : "rax", "rcx", "rdx", "rsi", "rdi", "r8", "r9", "r10", "r11", "memory", "cc");
}

static void registers(u32 op, long result)
{
	struct registers wanted = {
		.rax = result, .rbx = 0x1111, .rbp = 0x2222, .r12 = 0x3333, .r13 = 0x4444,
		.r14 = 0x5555, .r15 = 0x6666,
	};

	request.op = op;
	enter();
	is(after.rax, result, "request %u", op);
	ok(!memcmp(&after, &wanted, sizeof(wanted)), "its registers");
}

/* Places in writable memory with eight bytes of BYTE, from any multiple of eight on. */
static u32 places(void)
{
	FILE *maps = fopen("/proc/self/maps", "r");
	unsigned long start, end;
	char line[512], rights[5];
	u32 count = 0;

	if (!maps)
		bail("/proc/self/maps: %m");
	while (fgets(line, sizeof(line), maps)) {
		if (sscanf(line, "%lx-%lx %4s", &start, &end, rights) != 3 || rights[0] != 'r' ||
		    rights[1] != 'w')
			continue;
		for (const u8 *at = (void *)start; at + 8 <= (u8 *)end; at++) {
			u32 i, first = (u8)((at[0] - 97) * 157);

			if (first % 8 || at[0] != BYTE(first))
				continue;
			for (i = 1; i < 8 && at[i] == BYTE(first + i); i++)
				continue;
			count += i == 8;
		}
	}
	fclose(maps);
	return count;
}

static void pattern(volatile u8 *at, u32 length)
{
	u32 i;

	for (i = 0; i < length; i++)
		at[i] = BYTE(i);
}

int main(void)
{
	u64 handle;

	begin_request();
	is(places(), 0, "nothing of the secret is in memory before");
	pattern(keys_exchange.text, 64);
	ok(places() > 0, "a text in the exchange is found");
	memset(keys_exchange.text, 0, 64);

	begin_request();
	request.kind = KEYS_CIPHER;
	request.usage = 3;
	request.secret_length = 32;
	pattern(request.secret, 32);
	registers(KEYS_PUT, 0);
	handle = request.handle;
	is(places(), 0, "nothing of the secret is left");

	begin_request();
	pattern(keys_exchange.text, 4096);
	request.handle = handle;
	request.text_length = 4096;
	registers(KEYS_ENCRYPT, 0);
	is(places(), 0, "nothing of the text is left");
	registers(KEYS_DECRYPT, 0);
	ok(places() > 0, "the text is back");
	request.tag[0] ^= 1;
	registers(KEYS_DECRYPT, -EBADMSG);
	is(places(), 0, "no text, since the tag is wrong");
	registers(KEYS_LIST, 0);
	registers(KEYS_FORGET, 0);
	registers(KEYS_FORGET, -ENOENT);

	begin_request();
	request.kind = KEYS_SIGNER;
	request.usage = KEYS_CAN_SIGN;
	request.secret_length = 64;
	pattern(request.secret, 64);
	registers(KEYS_PUT, 0);
	pattern(keys_exchange.text, 999);
	request.text_length = 999;
	registers(KEYS_SIGN, 0);
	memset(keys_exchange.text, 0, 999);
	is(places(), 0, "nothing of the signed text and of the secret is left");
	return done();
}
