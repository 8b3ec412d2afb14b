# SPDX-License-Identifier: MIT OR Apache-2.0
# modules.py SECONDS NAME...: modules of Python's own test suite, each in a child
# (runtime.c changes what children do). The result of a test does not matter. A helper of
# others.bash, not a test.
import os
import signal
import sys
import time
import unittest

end = time.monotonic() + int(sys.argv[1])
null = os.open("/dev/null", os.O_WRONLY)
while time.monotonic() < end:
    for name in sys.argv[2:]:
        if time.monotonic() >= end:
            break
        child = os.fork()
        if child == 0:
            os.dup2(null, 1)
            os.dup2(null, 2)
            try:
                suite = unittest.defaultTestLoader.loadTestsFromName("test." + name)
                suite.run(unittest.TestResult())
            finally:
                os._exit(0)
        limit = time.monotonic() + 20
        while os.waitpid(child, os.WNOHANG)[0] == 0:
            if time.monotonic() > limit:
                os.kill(child, signal.SIGKILL)
            time.sleep(0.1)
        print(name, flush=True)
