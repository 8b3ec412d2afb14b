# SPDX-License-Identifier: MIT OR Apache-2.0
# Removes the test programs below OUT that do not match TESTS (names, or patterns with %).
# Their sources were renamed or removed, and the suite would continue to run the old
# programs as tests of today's sources.
all: remove-old
remove-old:
	@rm -f $(filter-out $(TESTS),$(shell test ! -d $(OUT) || find $(OUT) -name '*.t'))

.PHONY: all remove-old
