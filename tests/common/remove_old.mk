# SPDX-License-Identifier: MIT OR Apache-2.0
# The suite runs each *.t below the build directory: removes from OUT those whose source was
# renamed or removed. Before a makefile includes this file it sets TESTS.
.PHONY: remove-old
remove-old:
	@for test in $(filter-out $(TESTS),$(shell find $(OUT) -name '*.t' 2>/dev/null)); do \
		rm $$test; done
