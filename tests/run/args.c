// SPDX-License-Identifier: MIT OR Apache-2.0
/* A helper of start.bash: prints its arguments, one in brackets a line. */
#include <stdio.h>

int main(int argc, char **argv)
{
	int i;

	for (i = 0; i < argc; i++)
		printf("[%s]\n", argv[i]);
	return 0;
}
