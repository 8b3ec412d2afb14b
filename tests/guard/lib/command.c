// SPDX-License-Identifier: MIT OR Apache-2.0
#include "command.h"
#include "modules.h"
#include "tap.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>

char command_output[8192];

int command_run(const char *command)
{
	FILE *pipe = popen(command, "r");
	size_t length;

	if (!pipe)
		bail("%s: %m", command);
	length = fread(command_output, 1, sizeof(command_output) - 1, pipe);
	command_output[length] = 0;
	return WEXITSTATUS(pclose(pipe));
}

int dunectl_guard(const char *words)
{
	char command[1000];

	snprintf(command, sizeof(command), "%s/bin/dunectl guard %s 2>&1", build_directory(),
		 words);
	return command_run(command);
}

int command_lines(void)
{
	int count = 0;
	const char *c;

	for (c = command_output; *c; c++)
		count += *c == '\n';
	return count;
}
