// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * The stack on which the program starts: its argument vector and its auxiliary vector. dune-run's
 * own vectors, which the kernel or new_stack.c has made, become the program's in place: only what
 * describes dune-run is rewritten.
 */
#include "initial_stack.h"
#include "text.h"

#include <linux/auxvec.h>
#include <linux/elf.h>

#define AT_RSEQ_FEATURE_SIZE	27
#define AT_RSEQ_ALIGN		28

void stack_set(struct initial_stack *s, u64 *stack, u64 args, u64 variables, u64 entries)
{
	s->argc = stack;
	s->args = args;
	s->argv = (char **)(stack + 1);
	s->variables = variables;
	s->envp = s->argv + args + 1;
	s->auxv = (u64 *)(s->envp + variables + 1);
	s->auxv_end = s->auxv + 2 * entries;
}

/* The words move down by one, over the NULL of argv. The last one leaves room for another NULL. */
bool stack_take_arguments(struct initial_stack *s, int count)
{
	int i;

	if (count < 1)
		return true;
	if ((u64)count > s->variables)
		return false;
	for (i = 0; i < count; i++)
		s->envp[i - 1] = s->envp[i];
	s->envp[count - 1] = NULL;
	s->envp += count;
	s->variables -= count;
	s->args += count;
	return true;
}

u64 *stack_aux(const struct initial_stack *s, u64 type)
{
	u64 *p;

	for (p = s->auxv; p < s->auxv_end; p += 2)
		if (p[0] == type)
			return p + 1;
	return NULL;
}

static void store(u64 *at, u64 value)
{
	if (at)
		*at = value;
}

static void set_aux(const struct initial_stack *s, u64 type, u64 value)
{
	store(stack_aux(s, type), value);
}

void stack_drop_aux(const struct initial_stack *s, u64 type)
{
	u64 *p = stack_aux(s, type);

	if (p)
		p[-1] = AT_IGNORE;
}

static u64 string_end(const char *s)
{
	return (u64)s + text_len(s) + 1;
}

/* Note the addresses that areas_set() and stack_describe() need. */
static void note(struct initial_stack *s)
{
	s->arg_start = (u64)stack_string(s->argv);
	s->arg_end = string_end(stack_string(s->argv + s->args - 1));
	s->env_start = s->variables ? (u64)stack_string(s->envp) : s->arg_end;
	s->env_end = s->variables ? string_end(stack_string(s->envp + s->variables - 1)) :
				    s->env_start;
	s->program_headers = stack_aux(s, AT_PHDR);
	s->header_count = stack_aux(s, AT_PHNUM);
	s->interpreter_base = stack_aux(s, AT_BASE);
	s->program_entry = stack_aux(s, AT_ENTRY);
}

/*
 * The new count goes right before the first argument. The ABI demands a stack
 * pointer that is a multiple of 16: if it is not, all vectors move down by one word,
 * over the dropped arguments.
 */
u64 stack_arrange(struct initial_stack *s, unsigned int drop, const char *name)
{
	u64 *sp = s->argc + drop;

	if ((u64)sp & 15) {
		u64 *from;

		for (from = sp + 1; from < s->auxv_end; from++)
			from[-1] = *from;
		sp--;
		s->auxv--;
		s->auxv_end--;
		s->envp--;
	}
	s->args -= drop;
	*sp = s->args;
	s->argc = sp;
	s->argv = (char **)(sp + 1);

	set_aux(s, AT_PHENT, sizeof(Elf64_Phdr));
	set_aux(s, AT_FLAGS, 0);
	set_aux(s, AT_EXECFN, (u64)name);
	stack_drop_aux(s, AT_RSEQ_FEATURE_SIZE);
	stack_drop_aux(s, AT_RSEQ_ALIGN);
	note(s);
	return (u64)sp;
}

void stack_describe(const struct initial_stack *s, const struct image *image)
{
	store(s->program_headers, image->program_headers);
	store(s->header_count, image->header_count);
	store(s->interpreter_base, image->interpreter_base);
	store(s->program_entry, image->program_entry);
}
