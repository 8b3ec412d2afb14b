# SPDX-License-Identifier: MIT OR Apache-2.0
# A test that runs on the computer that builds, and not in a machine: a script NAME.bash, which has
# the TAP library and the texts it needs next to it. Before the directory's makefile includes this
# file it sets OUT, where they go.
ifndef COMMON
COMMON := $(dir $(lastword $(MAKEFILE_LIST)))
endif

$(OUT)/%: %.bash
	@mkdir -p $(@D)
	cp $< $@
	chmod +x $@

$(OUT)/tap.bash: $(COMMON)tap.bash
	@mkdir -p $(@D)
	cp $< $@

# The rows of a table of broken sources.
$(OUT)/%.list: %
	@mkdir -p $(@D)
	sed -n 's/^mutant //p' $< >$@
