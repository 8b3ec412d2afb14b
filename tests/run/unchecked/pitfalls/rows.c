// SPDX-License-Identifier: MIT OR Apache-2.0
/* The table of the rows, and how each is made. See pitfalls.h. */
#define _GNU_SOURCE
#include "maps.h"
#include "pitfalls.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define ROW_SECONDS	3
#define ATTACK_SECONDS	12	/* for rows in which another process attacks one */

static int seed;

/* Looks for the runtime's secret in what the row @name has read. */
static void report_secret(const char *name)
{
	if (has_secret(buffer, sizeof(buffer)))
		dprintf(2, "FOUND the runtime's memory was read: %s\n", name);
}

#define ROW(name)		{ #name, row_##name, ROW_SECONDS }
#define ATTACKED_ROW(name)	{ #name, row_##name, ATTACK_SECONDS }

static const struct {
	const char *name;
	void (*make)(void);
	unsigned int seconds;
} rows[] = {
	ROW(sigreturn), ROW(sigaction), ROW(sigaltstack), ROW(siginfo), ROW(sigmask),
	ROW(proc_mem), ROW(process_vm), ATTACKED_ROW(overwritten),
	ATTACKED_ROW(overwritten_scratch), ATTACKED_ROW(overwritten_frames),
	ATTACKED_ROW(shared), ATTACKED_ROW(scratch_gone), ATTACKED_ROW(scratch_cut),
	ROW(vmsplice), ROW(map_over), ROW(map_over_all),
	ROW(unmap), ROW(mprotect), ROW(mremap), ROW(madvise), ROW(shmat),
	ROW(other_mapping_calls), ROW(unmap_everything), ROW(io_uring), ROW(aio),
	ATTACKED_ROW(userfaultfd), ROW(ptrace), ROW(vcpu), ROW(vcpu_received), ROW(clone),
	ROW(execute), ROW(replaced_execution), ROW(robust_list), ROW(rseq), ROW(prctl),
	ROW(arch_prctl), ROW(ldt), ROW(personality), ROW(seccomp), ROW(limits), ROW(namespaces),
	ROW(core), ROW(numbers), ROW(ring3),
	ROW(control_native), ROW(control_read), ROW(control_write), ROW(control_code),
	ROW(control_jump), ROW(control_file),
};

static void make_row(unsigned int i)
{
	u64 until = time(NULL) + rows[i].seconds;
	pid_t pid = fork();
	int status = 0;

	if (!pid) {
		setpgid(0, 0);
		srand(seed * 1000 + i);
		rows[i].make();
		report_secret(rows[i].name);
		_exit(0);
	}
	while (!waitpid(pid, &status, WNOHANG) && (u64)time(NULL) < until)
		usleep(20000);
	kill(-pid, SIGKILL);
	kill(-1, SIGKILL);
	while (waitpid(-1, NULL, 0) > 0)
		;
	printf("row %s: status 0x%x, %lu of %lu raw calls succeeded, %lu rounds\n", rows[i].name,
	       status, counts->succeeded, counts->made, counts->rounds);
	memset(counts, 0, sizeof(*counts));
	fflush(stdout);
}

int main(int argc, char **argv)
{
	const char *only = argc > 2 ? argv[2] : "";
	unsigned int i;

	seed = argc > 1 ? atoi(argv[1]) : 1;
	counts = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	super_base = mapping_start("[dune-stub]");
	if (!super_base || RAW(SYS_getpid, 0, 0, 0) < 0) {
		fprintf(stderr, "pitfalls: start this by watch --unchecked\n");
		return 2;
	}
	sled = make_sled(0, SLED_SIZE, 0);
	mkdir("/tmp/attack-pitfalls", 0777);
	if (chdir("/tmp/attack-pitfalls"))
		return 2;
	for (i = 0; i < COUNT(rows); i++)
		if (!strncmp(rows[i].name, only, strlen(only)) &&
		    (*only || strncmp(rows[i].name, "control", 7)))
			make_row(i);
	return 0;
}
