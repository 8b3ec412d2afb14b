// SPDX-License-Identifier: MIT OR Apache-2.0
/* Messages, put together without libc. */
#include "services.h"
#include "syscall.h"
#include "text.h"

static void put(struct dune_line *line, char c)
{
	if (line->n < sizeof(line->text))
		line->text[line->n++] = c;
}

/* Appends @s to @line. Characters that have no room are lost. */
void dune_text(struct dune_line *line, const char *s)
{
	while (*s)
		put(line, *s++);
}

/* Appends @v in hexadecimal digits, as dune_text(). */
void dune_text_hex(struct dune_line *line, u64 v)
{
	int shift = 60;

	dune_text(line, "0x");
	while (shift && !(v >> shift))
		shift -= 4;
	for (; shift >= 0; shift -= 4)
		put(line, "0123456789abcdef"[v >> shift & 15]);
}

/* Appends @v in decimal digits, as dune_text(). */
void dune_text_number(struct dune_line *line, u32 v)
{
	u32 unit = 1;

	while (v / unit >= 10)
		unit *= 10;
	for (; unit; unit /= 10)
		put(line, '0' + v / unit % 10);
}

/* Appends "dune: ", @what, and the number of the error @err, a negative errno, if it is not 0. */
void dune_text_error(struct dune_line *line, const char *what, long err)
{
	dune_text(line, "dune: ");
	dune_text(line, what);
	if (err) {
		dune_text(line, " (error ");
		dune_text_number(line, -err);
		dune_text(line, ")");
	}
}

/* Writes @line to stderr, whatever file that is now. */
void dune_text_print(const struct dune_line *line)
{
	if (dune_active())
		dune_services->print(line->text, line->n);
	else
		sys3(__NR_write, 2, (long)line->text, line->n);
}
