// SPDX-License-Identifier: MIT OR Apache-2.0
/* Prints the results of clone3() with structures of several sizes, for clone3.bash. */
#include "clone3.h"

#include <stdio.h>
#include <string.h>

int main(void)
{
	struct clone3_result r;
	unsigned int n;

	for (n = 0; n < CLONE3_CASES; n++) {
		r = try_clone3(n);
		printf("%s: %s\n", r.name, strerror(-r.error));
		fflush(stdout);
	}
	return 0;
}
