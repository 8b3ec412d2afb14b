#!/bin/bash
# SPDX-License-Identifier: MIT OR Apache-2.0
# Modules of Python's own test suite (Debian: libpython3.11-testsuite), natively
# and in the sandbox. Fails when one of its tests has another outcome there. Tests
# that need threads, which the sandbox does not have yet, are named below.

. "$(dirname "$0")/lib/sandbox.bash"
LIMIT=300

if ! /usr/bin/python3 -c 'import test.test_json' 2>/dev/null; then
	bail "no test suite of Python: install libpython3.11-testsuite"
fi

cat >"$data/run.py" <<'X'
# Runs the named modules; prints "outcome test" for each, sorted.
import os, sys, unittest, warnings
warnings.simplefilter("ignore")
leave = set(open(sys.argv[1]).read().split())
class Result(unittest.TestResult):
    def __init__(self):
        super().__init__()
        self.lines = []
    def note(self, what, test):
        self.lines.append("%s %s" % (what, test.id()))
    def addSuccess(self, test):
        self.note("ok", test)
    def addError(self, test, err):
        self.note("error", test)
    def addFailure(self, test, err):
        self.note("failure", test)
    def addSkip(self, test, reason):
        self.note("skipped", test)
    def addExpectedFailure(self, test, err):
        self.note("expected", test)
def tests(suite):
    for t in suite:
        if isinstance(t, unittest.TestSuite):
            yield from tests(t)
        elif not any(name in t.id() for name in leave):
            yield t
# what the tests themselves print has no fixed order
out = os.fdopen(os.dup(1), "w")
null = os.open("/dev/null", os.O_WRONLY)
os.dup2(null, 1)
os.close(null)
result = Result()
for name in sys.argv[2:]:
    found = unittest.defaultTestLoader.loadTestsFromName("test." + name)
    unittest.TestSuite(tests(found)).run(result)
print("\n".join(sorted(result.lines)), file=out, flush=True)
X

# threads (TestSendfile: an executor of asyncio)
cat >"$data/leave" <<'X'
thread
Thread
TestSendfile
X

# a minute or two in an emulated machine; many more with DUNE_LONG_TESTS
modules="test_struct test_fcntl test_epoll test_pipes test_resource test_posix"
modules="$modules test_signal.PosixTests"
# much arithmetic and few system calls: not on a machine of 50 million instructions a second
[ "$TEST_TIME_FACTOR" -le 4 ] || modules=${modules#test_struct }
[ -z "$DUNE_LONG_TESTS" ] || modules="$modules test_json test_re test_mmap test_time test_select
	test_os test_signal.ItimerTest
	test_signal.PendingSignalsTests test_subprocess.POSIXProcessTestCase"

# shellcheck disable=SC2048 # the names are words
for module in ${*:-$modules}; do
	# test_epoll wants answers within 10 ms, which a busy machine misses
	TRIES=1
	[ $module != test_epoll ] || TRIES=3
	same "$module" /usr/bin/python3 "$data/run.py" "$data/leave" $module
done

finish
