// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * A program in the sandbox makes every system call of syscalls.def, with each pointer in the
 * supervisor range and each descriptor one of the runtime's, and calls that the table lacks. Fails
 * when such a call gives anything but the expected error.
 */
#define _GNU_SOURCE
#include "kinds.h"
#include "hostile.h"
#include "tap.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>

static const struct entry table[] = {
#include "calls/syscalls.def"
};

static void test_table(void)
{
	int hidden = hidden_fd();
	size_t i;
	int k;

	ok(hidden >= 0, "dune-run's own descriptors can be seen in /proc");
	for (i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		const struct entry *t = &table[i];
		long got;

		if (t->deny) {
			got = call(t->nr, 0, 0, 0, 0, 0, 0);
			is(got, -t->deny, "%s is refused: %s", t->name,
			   strerrorname_np(t->deny));
			continue;
		}
		for (k = 0; k < 6; k++) {
			long args[6] = { 0 };
			long want = t->args[k] == R ? -ENOMEM : -EFAULT;

			if (t->args[k] == V)
				continue;
			if (t->args[k] == F) {
				args[k] = hidden;
				want = -EBADF;
			} else {
				args[k] = WINDOW;
			}
			if (k < 5 && has_length(t->args[k]))
				args[k + 1] = 64;
			got = call(t->nr, args[0], args[1], args[2], args[3], args[4], args[5]);
			is(got, want, "%s with argument %d %s: %s", t->name, k,
			   t->args[k] == F ? "a hidden descriptor" : "in the supervisor range",
			   strerrorname_np(-want));

			/* a buffer that begins outside of the supervisor range */
			if (k < 5 && has_length(t->args[k])) {
				args[k] = SUPER_BASE - 4096;
				args[k + 1] = SUPER_SIZE + 0x2000;
				got = call(t->nr, args[0], args[1], args[2], args[3], args[4],
					   args[5]);
				is(got, want,
				   "%s with argument %d reaching into the supervisor range: %s",
				   t->name, k, strerrorname_np(-want));
			}
		}
	}
	is(call(463, 0, 0, 0, 0, 0, 0), -ENOSYS, "call 463, which the table lacks: ENOSYS");
	is(call(400, 0, 0, 0, 0, 0, 0), -ENOSYS, "call 400, between two rows of the table: ENOSYS");
	is(call(0x40000000 | 39, 0, 0, 0, 0, 0, 0), -ENOSYS, "getpid of the x32 ABI: ENOSYS");
	is(call(-1, 0, 0, 0, 0, 0, 0), -ENOSYS, "call -1: ENOSYS");
}

int main(void)
{
	leave_session();
	test_table();
	return done();
}
