// SPDX-License-Identifier: MIT OR Apache-2.0
/* Signal frames and images of programs that lie in the decoy. See attack.h. */
#define _GNU_SOURCE
#include "attack.h"

#include <elf.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static u64 stack_place(void)
{
	return one_in(2) ? in_decoy() & ~15UL : one_in(2) ? SUPER_BASE - 16 * below(64) :
	       DECOY_BASE + 16 * below(300);
}

/* Signals whose frame would lie in the decoy; a return from one that lies there. */
void do_signal(void)
{
	struct sigaction act = { .sa_handler = tick, .sa_flags = SA_ONSTACK | SA_NODEFER };
	stack_t alt = { .ss_sp = (void *)stack_place(), .ss_size = one_in(2) ? 8192 : number() };
	u64 place = stack_place(), how = below(4);
	long nr = how == 3 ? SYS_rt_sigreturn : SYS_kill;
	pid_t pid;

	if (one_in(3)) {
		alt.ss_sp = (void *)(SUPER_BASE - below(LOW_SIZE));
		alt.ss_size = 2 * LOW_SIZE;
	}
	pid = fork();
	if (pid == 0) {
		sigaction(SIGUSR1, &act, NULL);
		sigaction(SIGSEGV, &act, NULL);
		if (how & 1)
			syscall(SYS_sigaltstack, &alt, NULL);
		pid = getpid();
		if (how == 0) {
			raise(SIGUSR1);
			_exit(0);
		}
		__asm__ volatile("mov %%rdx, %%rsp; syscall; mov $39, %%eax; syscall; ud2"
				 : : "a" (nr), "D" ((long)pid), "S" ((long)SIGUSR1), "d" (place)
				 : "rcx", "r11", "memory");
	}
	nap(2000);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

/* An executable file whose segments are anywhere; its code makes a call and ends. */
void do_image(void)
{
	static const unsigned char code[] = {
		0xb8, 39, 0, 0, 0, 0x0f, 0x05,		/* getpid */
		0xb8, 39, 0, 0, 0, 0x0f, 0x05,
		0x31, 0xff, 0xb8, 60, 0, 0, 0, 0x0f, 0x05,	/* exit */
	};
	struct {
		Elf64_Ehdr h;
		Elf64_Phdr p[4];
	} elf;
	u64 base = one_in(2) ? 0 : 0x400000, i, n = 1 + below(4);
	static const u64 spans[] = {
		1UL << 30, 1UL << 40, 30UL << 40, 60UL << 40, 120UL << 40, 127UL << 40,
	};
	int type = base && one_in(2) ? ET_EXEC : ET_DYN;
	char * const argv[] = { "image", NULL };
	char page[8192];
	pid_t pid;
	int fd;

	memset(page, 0, sizeof(page));
	memset(&elf, 0, sizeof(elf));
	memcpy(elf.h.e_ident, "\177ELF\2\1\1", 7);
	elf.h.e_type = type;
	elf.h.e_machine = EM_X86_64;
	elf.h.e_version = 1;
	elf.h.e_entry = base + 0x200;
	elf.h.e_phoff = one_in(8) ? below(200) : sizeof(elf.h);
	elf.h.e_ehsize = sizeof(elf.h);
	elf.h.e_phentsize = sizeof(elf.p[0]);
	elf.h.e_phnum = n;
	for (i = 0; i < n; i++) {
		Elf64_Phdr *p = &elf.p[i];

		p->p_type = PT_LOAD;
		p->p_flags = i ? 1 + below(7) : PF_R | PF_X;
		p->p_filesz = one_in(2) ? sizeof(page) : below(sizeof(page));
		p->p_memsz = p->p_filesz +
			     (one_in(2) ? 0 : one_in(2) ? below(1UL << 20) : PICK(spans));
		p->p_vaddr = base;
		if (!i) {
			p->p_filesz = sizeof(page);
			p->p_memsz = sizeof(page);
			continue;
		}
		switch (below(4)) {
		case 0:
			p->p_vaddr = in_decoy() & ~(PAGE - 1);
			break;
		case 1:
			p->p_vaddr = SUPER_BASE - PAGE * (1 + below(600));
			break;
		case 2:
			p->p_vaddr = PICK(spans);
			break;
		default:
			p->p_vaddr = base + PAGE * (2 + below(100));
		}
	}
	memcpy(page, &elf, sizeof(elf));
	memcpy(page + 0x200, code, sizeof(code));
	unlink("image");
	fd = open("image", O_WRONLY | O_CREAT, 0777);
	write(fd, page, sizeof(page));
	close(fd);
	pid = fork();
	if (pid == 0) {
		execve("image", argv, one_in(3) ? (char **)vector(2) : NULL);
		_exit(0);
	}
	nap(20000);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}
