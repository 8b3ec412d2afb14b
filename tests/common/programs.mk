# SPDX-License-Identifier: MIT OR Apache-2.0
# One test program for each C file of a folder. Before the folder's makefile
# includes this file it sets OUT, where the programs go; SHARED, the folder's
# files that are linked into each program instead of being one; NEEDS, what else
# each program is made from; and FLAGS, its own flags for the compiler.
TESTS := $(patsubst %.c,$(OUT)/%.t,$(filter-out $(SHARED),$(wildcard *.c)))

all: $(TESTS)

$(OUT)/%.t: %.c $(SHARED) $(NEEDS) Makefile $(COMMON)flags.mk $(COMMON)programs.mk
	@mkdir -p $(@D)
	$(CC) $(CFLAGS) $(FLAGS) $(filter %.c %.S %.a,$^) -o $@

clean:
	rm -rf $(OUT)

.PHONY: all clean
