# SPDX-License-Identifier: MIT OR Apache-2.0
# Test programs in bash: NAME.bash becomes $(OUT)/NAME.t. They source tap.bash from
# the directory in which they run.
COMMON := $(dir $(lastword $(MAKEFILE_LIST)))

$(OUT)/%.t: %.bash
	@mkdir -p $(@D)
	cp $< $@
	chmod +x $@

$(OUT)/tap.bash: $(COMMON)tap.bash
	@mkdir -p $(@D)
	cp $< $@
