/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* clone3() with structures of several sizes, whose result is that of Linux. */
#ifndef DUNE_TESTS_CLONE3_H
#define DUNE_TESTS_CLONE3_H

#define CLONE3_CASES	11

struct clone3_result {
	const char *name;	/* describes the structure */
	long error;		/* 0: it made a child, which ended as it should; or -errno */
};

/* Makes the call of case @n. */
struct clone3_result try_clone3(unsigned int n);

#endif /* DUNE_TESTS_CLONE3_H */
