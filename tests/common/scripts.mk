# SPDX-License-Identifier: MIT OR Apache-2.0
# Test programs in bash: NAME.bash becomes $(OUT)/NAME.t. They source tap.bash from
# the directory in which they run. Before the directory's makefile includes this file it
# sets OUT, where the programs go, and TESTS, all of its test programs.
COMMON := $(dir $(lastword $(MAKEFILE_LIST)))

$(OUT)/%.t: %.bash
	@mkdir -p $(@D)
	cp $< $@
	chmod +x $@

$(OUT)/tap.bash: $(COMMON)tap.bash
	@mkdir -p $(@D)
	cp $< $@

include $(COMMON)remove_old.mk
