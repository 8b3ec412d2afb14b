/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Other tests, run as verdicts of this one: in a state in which they must pass as usual. */
#ifndef DUNE_TESTS_OTHER_TESTS_H
#define DUNE_TESTS_OTHER_TESTS_H

/*
 * Run the tests of tests/@directory whose names are in @names, with spaces between them; a name
 * may be a pattern of glob(7). Each is one verdict: it passed, and not all of its own
 * verdicts were skipped. @state: the end of the verdict's text, such as "with KVM loaded".
 */
void run_other_tests(const char *directory, const char *names, const char *state);

#endif
