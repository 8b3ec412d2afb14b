# SPDX-License-Identifier: MIT OR Apache-2.0
# One test program for each C file of a directory. Before the directory's makefile
# includes this file it sets OUT, where the programs go; SHARED, C files that are
# linked into each program; NEEDS, what else each program is made from; and FLAGS,
# its own flags for the compiler.
TESTS := $(patsubst %.c,$(OUT)/%.t,$(wildcard *.c))

# The files that all programs have in common are compiled once.
OBJ := $(O)/obj/tests/$(notdir $(OUT))
SOURCES := $(filter %.c %.S,$(SHARED) $(NEEDS))
OBJECTS := $(patsubst %,$(OBJ)/%.o,$(notdir $(SOURCES)))
HEADERS := $(filter %.h,$(NEEDS))
MAKEFILES := Makefile $(COMMON)flags.mk $(COMMON)programs.mk
vpath %.c $(sort $(dir $(filter %.c,$(SOURCES))))
vpath %.S $(sort $(dir $(filter %.S,$(SOURCES))))

all: $(TESTS)

# Objects that only a pattern rule names would be deleted after each build.
$(TESTS): $(OBJECTS) $(filter %.a,$(NEEDS)) $(HEADERS) $(MAKEFILES)
$(OUT)/%.t: %.c
	@mkdir -p $(@D)
	$(CC) $(CFLAGS) $(FLAGS) $< $(filter %.o %.a,$^) -o $@

$(OBJ)/%.o: % $(HEADERS) $(MAKEFILES)
	@mkdir -p $(@D)
	$(CC) $(CFLAGS) $(FLAGS) -c $< -o $@

# The texts by which klog.c knows an error, each as a string of C: one list with the tools.
$(OBJ)/klog.c.o: FLAGS += -I$(OBJ)
$(OBJ)/klog.c.o: $(OBJ)/kernel_errors.h
$(OBJ)/kernel_errors.h: $(COMMON)../../tools/machine/src/kernel_errors.txt $(MAKEFILES)
	@mkdir -p $(@D)
	sed -n '/^[^#]/s/.*/"&",/p' $< >$@

include $(COMMON)remove_old.mk

clean:
	rm -rf $(OUT) $(OBJ)

.PHONY: all clean
