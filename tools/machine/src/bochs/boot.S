/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The first sector of the disk that the Bochs machine boots from. It reads what
 * its table lists from that disk into memory and enters the kernel as the
 * 64-bit boot protocol wants it (Documentation/x86/boot.rst): boot_params in
 * RSI, paging on with the first 4 GB mapped one to one, interrupts off.
 *
 * boot.rs fills in the table and knows these offsets. The sector runs at
 * 0x7c00, wherever the linker of the harness puts it: all addresses are
 * differences from its beginning.
 */

	.set	ORIGIN, 0x7c00
	.set	MEMORY_MAP, 0x8000
	.set	BOOT_PARAMS, 0x10000
	.set	PAGE_TABLES, 0x12000
	/* This word survives a reset: with STARTED_MAGIC, the kernel has reset the machine. */
	.set	STARTED, 0x7000
	.set	STARTED_MAGIC, 0x454e5544

	.section .rodata.dune_boot, "a"
	.globl	dune_boot_sector
	.code16
dune_boot_sector:
	cli
	cld
	xorw	%ax, %ax
	movw	%ax, %ds
	movw	%ax, %es
	movw	%ax, %ss
	movw	$ORIGIN, %sp

	/* There is nothing to do after a reset; "Shutdown" ends Bochs. */
	cmpl	$STARTED_MAGIC, STARTED
	jne	.Lfirst
	movw	$0x8900, %dx
	movw	$(.Lshutdown - dune_boot_sector + ORIGIN), %si
	movw	$8, %cx
	rep outsb
	hlt
.Lfirst:
	movl	$STARTED_MAGIC, STARTED

	/* INT 15h, E820h: entries of 20 bytes until EBX is 0 again. */
	movw	$MEMORY_MAP, %di
	xorl	%ebx, %ebx
	xorw	%bp, %bp
.Lmap:
	movl	$0xe820, %eax
	movl	$20, %ecx
	movl	$0x534d4150, %edx
	int	$0x15
	jc	.Lmapped
	addw	$20, %di
	incw	%bp
	testl	%ebx, %ebx
	jnz	.Lmap
.Lmapped:
	inb	$0x92, %al
	orb	$2, %al
	outb	%al, $0x92
	cli
	lgdtl	(.Lgdt_pointer - dune_boot_sector + ORIGIN)
	movl	%cr0, %eax
	orb	$1, %al
	movl	%eax, %cr0
	ljmpl	$0x8, $(.Lprotected - dune_boot_sector + ORIGIN)

	.code32
.Lprotected:
	movw	$0x18, %ax
	movw	%ax, %ds
	movw	%ax, %es
	movw	%ax, %ss
	movl	$ORIGIN, %esp
	pushl	%ebp			/* how many entries the map has */
	movl	$(.Ltable - dune_boot_sector + ORIGIN), %ebp
.Lentry:
	movl	(%ebp), %ebx		/* first sector */
	movl	4(%ebp), %esi		/* how many */
	movl	8(%ebp), %edi		/* to where */
	testl	%esi, %esi
	jz	.Lloaded
.Lcommand:
	movl	$256, %ecx		/* written as 0 */
	cmpl	%ecx, %esi
	jae	.Lcount
	movl	%esi, %ecx
.Lcount:
	subl	%ecx, %esi
	/* READ SECTORS with a 28-bit address, from the first channel's master. */
	movw	$0x1f2, %dx
	movb	%cl, %al
	outb	%al, %dx
	movl	%ebx, %eax
	incw	%dx
	outb	%al, %dx
	shrl	$8, %eax
	incw	%dx
	outb	%al, %dx
	shrl	$8, %eax
	incw	%dx
	outb	%al, %dx
	movb	%ah, %al
	orb	$0xe0, %al
	incw	%dx
	outb	%al, %dx
	movb	$0x20, %al
	incw	%dx
	outb	%al, %dx
	addl	%ecx, %ebx
.Lsector:
	movw	$0x1f7, %dx
.Lwait:
	inb	%dx, %al
	andb	$0x88, %al		/* BSY, DRQ */
	cmpb	$0x08, %al
	jne	.Lwait
	movw	$0x1f0, %dx
	pushl	%ecx
	movl	$256, %ecx
	rep insw
	popl	%ecx
	loop	.Lsector
	testl	%esi, %esi
	jnz	.Lcommand
	addl	$12, %ebp
	jmp	.Lentry

.Lloaded:
	/* The map belongs into boot_params, which came from the disk. */
	popl	%ecx
	movb	%cl, BOOT_PARAMS + 0x1e8
	imull	$20, %ecx, %ecx
	movl	$MEMORY_MAP, %esi
	movl	$(BOOT_PARAMS + 0x2d0), %edi
	rep movsb

	movl	%cr4, %eax
	orb	$0x20, %al		/* PAE */
	movl	%eax, %cr4
	movl	$PAGE_TABLES, %eax
	movl	%eax, %cr3
	movl	$0xc0000080, %ecx	/* EFER */
	rdmsr
	orb	$1, %ah			/* LME */
	wrmsr
	movl	%cr0, %eax
	orl	$0x80000000, %eax	/* PG */
	movl	%eax, %cr0
	ljmpl	$0x10, $(.Llong - dune_boot_sector + ORIGIN)

	.code64
.Llong:
	movl	$BOOT_PARAMS, %esi
	movl	(.Lkernel - dune_boot_sector + ORIGIN), %eax
	jmp	*%rax

.Lshutdown:
	.ascii	"Shutdown"
	.balign	8
.Lgdt:
	.quad	0
	.quad	0x00cf9b000000ffff	/* 0x08: 32-bit code */
	.quad	0x00af9b000000ffff	/* 0x10: 64-bit code */
	.quad	0x00cf93000000ffff	/* 0x18: data */
.Lgdt_pointer:
	.word	4 * 8 - 1
	.long	.Lgdt - dune_boot_sector + ORIGIN

	/* The kernel's entry, then entries of three words; sectors 0 end them. */
	.org	dune_boot_sector + 0x170
.Lkernel:
	.long	0
.Ltable:
	.org	dune_boot_sector + 510
	.byte	0x55, 0xaa
	.text
