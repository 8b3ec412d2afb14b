/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Messages, put together without libc (text.c). */
#ifndef LIBDUNE_TEXT_H
#define LIBDUNE_TEXT_H

#include "compiler.h"

struct dune_line {
	char text[256];
	u32 n;
};

void dune_text(struct dune_line *line, const char *s);
void dune_text_hex(struct dune_line *line, u64 v);
void dune_text_number(struct dune_line *line, u32 v);
void dune_text_error(struct dune_line *line, const char *what, long err);
void dune_text_print(const struct dune_line *line);

#endif /* LIBDUNE_TEXT_H */
