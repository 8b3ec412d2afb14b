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
	return one_in(2) ? in_decoy() & ~15UL : one_in(2) ? super_base - 16 * below(64) :
	       decoy_base() + 16 * below(300);
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
		alt.ss_sp = (void *)(super_base - below(LOW_SIZE));
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

#define IMAGE_SIZE	8192
#define CODE_AT		0x200

static const u64 spans[] = {
	1UL << 30, 1UL << 40, 30UL << 40, 60UL << 40, 120UL << 40, 127UL << 40,
};

/* A segment that may be anywhere, of an image at @base. */
static void any_segment(Elf64_Phdr *p, u64 base)
{
	p->p_type = PT_LOAD;
	p->p_flags = 1 + below(7);
	p->p_filesz = one_in(2) ? IMAGE_SIZE : below(IMAGE_SIZE);
	p->p_memsz = p->p_filesz + (one_in(2) ? 0 : one_in(2) ? below(1UL << 20) : PICK(spans));
	switch (below(4)) {
	case 0:
		p->p_vaddr = in_decoy() & ~(PAGE - 1);
		break;
	case 1:
		p->p_vaddr = super_base - PAGE * (1 + below(600));
		break;
	case 2:
		p->p_vaddr = PICK(spans);
		break;
	default:
		p->p_vaddr = base + PAGE * (2 + below(100));
	}
}

/* An executable file whose segments are anywhere; its code makes a call and ends. */
static void make_image(char *image)
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

	memset(image, 0, IMAGE_SIZE);
	memset(&elf, 0, sizeof(elf));
	memcpy(elf.h.e_ident, "\177ELF\2\1\1", 7);
	elf.h.e_type = base && one_in(2) ? ET_EXEC : ET_DYN;
	elf.h.e_machine = EM_X86_64;
	elf.h.e_version = 1;
	elf.h.e_entry = base + CODE_AT;
	elf.h.e_phoff = one_in(8) ? below(200) : sizeof(elf.h);
	elf.h.e_ehsize = sizeof(elf.h);
	elf.h.e_phentsize = sizeof(elf.p[0]);
	elf.h.e_phnum = n;
	elf.p[0] = (Elf64_Phdr){
		.p_type = PT_LOAD, .p_flags = PF_R | PF_X, .p_vaddr = base,
		.p_filesz = IMAGE_SIZE, .p_memsz = IMAGE_SIZE,
	};
	for (i = 1; i < n; i++)
		any_segment(&elf.p[i], base);
	memcpy(image, &elf, sizeof(elf));
	memcpy(image + CODE_AT, code, sizeof(code));
}

void do_image(void)
{
	char * const argv[] = { "image", NULL };
	char image[IMAGE_SIZE];
	pid_t pid;
	int fd;

	make_image(image);
	unlink("image");
	fd = open("image", O_WRONLY | O_CREAT, 0777);
	write(fd, image, sizeof(image));
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
