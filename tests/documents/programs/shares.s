	.file	"shares.c"
	.text
.Ltext0:
	.file 0 "/src" "shares.c"
	.globl	fifty
	.type	fifty, @function
fifty:
.LVL0:
.LFB12:
	.file 1 "shares.c"
	.loc 1 8 46 view -0
	.cfi_startproc
	.loc 1 9 5 view .LVU1
.LBB16:
	.loc 1 9 10 view .LVU2
	.loc 1 9 24 view .LVU3
	testq	%rdi, %rdi
	jle	.L1
	movl	$0, %ecx
	.loc 1 9 15 is_stmt 0 view .LVU4
	movl	$0, %edx
.LVL1:
.L3:
	.loc 1 10 9 is_stmt 1 view .LVU5
.LBB17:
.LBI17:
	.loc 1 5 51 view .LVU6
.LBB18:
	.loc 1 6 5 view .LVU7
	.loc 1 6 5 is_stmt 0 view .LVU8
.LBE18:
.LBE17:
	.loc 1 10 14 view .LVU9
	movq	sink(%rip), %rsi
.LBB20:
.LBB19:
	.loc 1 6 23 view .LVU10
	movq	%rdx, %rax
	sarq	$3, %rax
	.loc 1 6 19 view .LVU11
	xorq	%rcx, %rax
.LBE19:
.LBE20:
	.loc 1 10 14 view .LVU12
	addq	%rsi, %rax
	movq	%rax, sink(%rip)
	.loc 1 9 30 is_stmt 1 view .LVU13
	addq	$1, %rdx
.LVL2:
	.loc 1 9 24 view .LVU14
	addq	$31, %rcx
	cmpq	%rdx, %rdi
	jne	.L3
.LVL3:
.L1:
	.loc 1 9 24 is_stmt 0 view .LVU15
.LBE16:
	.loc 1 11 1 view .LVU16
	ret
	.cfi_endproc
.LFE12:
	.size	fifty, .-fifty
	.globl	thirty
	.type	thirty, @function
thirty:
.LVL4:
.LFB13:
	.loc 1 12 47 is_stmt 1 view -0
	.cfi_startproc
	.loc 1 13 5 view .LVU18
.LBB21:
	.loc 1 13 10 view .LVU19
	.loc 1 13 24 view .LVU20
	testq	%rdi, %rdi
	jle	.L5
	movl	$0, %ecx
	.loc 1 13 15 is_stmt 0 view .LVU21
	movl	$0, %edx
.LVL5:
.L7:
	.loc 1 14 9 is_stmt 1 view .LVU22
.LBB22:
.LBI22:
	.loc 1 5 51 view .LVU23
.LBB23:
	.loc 1 6 5 view .LVU24
	.loc 1 6 5 is_stmt 0 view .LVU25
.LBE23:
.LBE22:
	.loc 1 14 14 view .LVU26
	movq	sink(%rip), %rsi
.LBB25:
.LBB24:
	.loc 1 6 23 view .LVU27
	movq	%rdx, %rax
	sarq	$3, %rax
	.loc 1 6 19 view .LVU28
	xorq	%rcx, %rax
.LBE24:
.LBE25:
	.loc 1 14 14 view .LVU29
	addq	%rsi, %rax
	movq	%rax, sink(%rip)
	.loc 1 13 30 is_stmt 1 view .LVU30
	addq	$1, %rdx
.LVL6:
	.loc 1 13 24 view .LVU31
	addq	$31, %rcx
	cmpq	%rdx, %rdi
	jne	.L7
.LVL7:
.L5:
	.loc 1 13 24 is_stmt 0 view .LVU32
.LBE21:
	.loc 1 15 1 view .LVU33
	ret
	.cfi_endproc
.LFE13:
	.size	thirty, .-thirty
	.globl	twenty
	.type	twenty, @function
twenty:
.LVL8:
.LFB14:
	.loc 1 16 47 is_stmt 1 view -0
	.cfi_startproc
	.loc 1 17 5 view .LVU35
.LBB26:
	.loc 1 17 10 view .LVU36
	.loc 1 17 24 view .LVU37
	testq	%rdi, %rdi
	jle	.L9
	movl	$0, %ecx
	.loc 1 17 15 is_stmt 0 view .LVU38
	movl	$0, %edx
.LVL9:
.L11:
	.loc 1 18 9 is_stmt 1 view .LVU39
.LBB27:
.LBI27:
	.loc 1 5 51 view .LVU40
.LBB28:
	.loc 1 6 5 view .LVU41
	.loc 1 6 5 is_stmt 0 view .LVU42
.LBE28:
.LBE27:
	.loc 1 18 14 view .LVU43
	movq	sink(%rip), %rsi
.LBB30:
.LBB29:
	.loc 1 6 23 view .LVU44
	movq	%rdx, %rax
	sarq	$3, %rax
	.loc 1 6 19 view .LVU45
	xorq	%rcx, %rax
.LBE29:
.LBE30:
	.loc 1 18 14 view .LVU46
	addq	%rsi, %rax
	movq	%rax, sink(%rip)
	.loc 1 17 30 is_stmt 1 view .LVU47
	addq	$1, %rdx
.LVL10:
	.loc 1 17 24 view .LVU48
	addq	$31, %rcx
	cmpq	%rdx, %rdi
	jne	.L11
.LVL11:
.L9:
	.loc 1 17 24 is_stmt 0 view .LVU49
.LBE26:
	.loc 1 19 1 view .LVU50
	ret
	.cfi_endproc
.LFE14:
	.size	twenty, .-twenty
	.globl	main
	.type	main, @function
main:
.LVL12:
.LFB15:
	.loc 1 20 33 is_stmt 1 view -0
	.cfi_startproc
	.loc 1 20 33 is_stmt 0 view .LVU52
	pushq	%r12
	.cfi_def_cfa_offset 16
	.cfi_offset 12, -16
	pushq	%rbp
	.cfi_def_cfa_offset 24
	.cfi_offset 6, -24
	pushq	%rbx
	.cfi_def_cfa_offset 32
	.cfi_offset 3, -32
	.loc 1 21 5 is_stmt 1 view .LVU53
	.loc 1 21 46 is_stmt 0 view .LVU54
	movl	$50, %r12d
	.loc 1 21 89 view .LVU55
	movl	$30, %ebp
	.loc 1 21 46 view .LVU56
	cmpl	$2, %edi
	jg	.L19
.LVL13:
.L14:
	.loc 1 22 5 is_stmt 1 discriminator 8 view .LVU57
.LBB31:
	.loc 1 22 10 discriminator 8 view .LVU58
	.loc 1 22 29 discriminator 8 view .LVU59
	.loc 1 23 9 is_stmt 0 discriminator 8 view .LVU60
	imulq	$1000, %r12, %r12
	.loc 1 24 9 discriminator 8 view .LVU61
	imulq	$1000, %rbp, %rbp
.LVL14:
	.loc 1 24 9 discriminator 8 view .LVU62
	movl	$4000, %ebx
.LVL15:
.L15:
	.loc 1 23 9 is_stmt 1 discriminator 3 view .LVU63
	movq	%r12, %rdi
	call	fifty
.LVL16:
	.loc 1 24 9 discriminator 3 view .LVU64
	movq	%rbp, %rdi
	call	thirty
.LVL17:
	.loc 1 25 9 discriminator 3 view .LVU65
	movl	$20000, %edi
	call	twenty
.LVL18:
	.loc 1 22 41 discriminator 3 view .LVU66
	.loc 1 22 29 discriminator 3 view .LVU67
	subl	$1, %ebx
.LVL19:
	.loc 1 22 29 is_stmt 0 discriminator 3 view .LVU68
	jne	.L15
.LBE31:
	.loc 1 27 1 view .LVU69
	movl	$0, %eax
	popq	%rbx
	.cfi_remember_state
	.cfi_def_cfa_offset 24
.LVL20:
	.loc 1 27 1 view .LVU70
	popq	%rbp
	.cfi_def_cfa_offset 16
	popq	%r12
	.cfi_def_cfa_offset 8
	ret
.LVL21:
.L19:
	.cfi_restore_state
	.loc 1 27 1 view .LVU71
	movq	%rsi, %rbx
.LVL22:
.LBB32:
.LBI32:
	.file 2 "/usr/include/stdlib.h"
	.loc 2 367 1 is_stmt 1 discriminator 1 view .LVU72
.LBB33:
	.loc 2 369 3 discriminator 1 view .LVU73
	.loc 2 369 10 is_stmt 0 discriminator 1 view .LVU74
	movq	8(%rsi), %rdi
.LVL23:
	.loc 2 369 10 discriminator 1 view .LVU75
	movl	$10, %edx
	movl	$0, %esi
.LVL24:
	.loc 2 369 10 discriminator 1 view .LVU76
	call	strtol@PLT
.LVL25:
	.loc 2 369 10 discriminator 1 view .LVU77
	movq	%rax, %r12
.LVL26:
	.loc 2 369 10 discriminator 1 view .LVU78
.LBE33:
.LBE32:
.LBB34:
.LBI34:
	.loc 2 367 1 is_stmt 1 discriminator 1 view .LVU79
.LBB35:
	.loc 2 369 3 discriminator 1 view .LVU80
	.loc 2 369 10 is_stmt 0 discriminator 1 view .LVU81
	movq	16(%rbx), %rdi
	movl	$10, %edx
	movl	$0, %esi
	call	strtol@PLT
.LVL27:
	.loc 2 369 10 discriminator 1 view .LVU82
	movq	%rax, %rbp
.LVL28:
	.loc 2 369 10 discriminator 1 view .LVU83
.LBE35:
.LBE34:
	jmp	.L14
	.cfi_endproc
.LFE15:
	.size	main, .-main
	.local	sink
	.comm	sink,8,8
.Letext0:
	.section	.debug_info,"",@progbits
.Ldebug_info0:
	.long	0x3b7
	.value	0x5
	.byte	0x1
	.byte	0x8
	.long	.Ldebug_abbrev0
	.uleb128 0x10
	.long	.LASF21
	.byte	0x1d
	.long	.LASF0
	.long	.LASF1
	.quad	.Ltext0
	.quad	.Letext0-.Ltext0
	.long	.Ldebug_line0
	.uleb128 0x1
	.byte	0x8
	.byte	0x7
	.long	.LASF2
	.uleb128 0x11
	.byte	0x4
	.byte	0x5
	.string	"int"
	.uleb128 0x1
	.byte	0x8
	.byte	0x5
	.long	.LASF3
	.uleb128 0x12
	.long	0x3c
	.uleb128 0x1
	.byte	0x8
	.byte	0x5
	.long	.LASF4
	.uleb128 0x1
	.byte	0x1
	.byte	0x8
	.long	.LASF5
	.uleb128 0x1
	.byte	0x2
	.byte	0x7
	.long	.LASF6
	.uleb128 0x1
	.byte	0x4
	.byte	0x7
	.long	.LASF7
	.uleb128 0x1
	.byte	0x1
	.byte	0x6
	.long	.LASF8
	.uleb128 0x1
	.byte	0x2
	.byte	0x5
	.long	.LASF9
	.uleb128 0x4
	.long	0x77
	.uleb128 0x1
	.byte	0x1
	.byte	0x6
	.long	.LASF10
	.uleb128 0x13
	.long	0x77
	.uleb128 0x1
	.byte	0x8
	.byte	0x7
	.long	.LASF11
	.uleb128 0x14
	.long	.LASF22
	.byte	0x1
	.byte	0x4
	.byte	0x16
	.long	0x43
	.uleb128 0x9
	.byte	0x3
	.quad	sink
	.uleb128 0x15
	.long	.LASF23
	.byte	0x2
	.byte	0xb1
	.byte	0x11
	.long	0x3c
	.long	0xc0
	.uleb128 0x5
	.long	0xc5
	.uleb128 0x5
	.long	0xcf
	.uleb128 0x5
	.long	0x35
	.byte	0
	.uleb128 0x4
	.long	0x7e
	.uleb128 0xd
	.long	0xc0
	.uleb128 0x4
	.long	0x72
	.uleb128 0xd
	.long	0xca
	.uleb128 0x16
	.long	.LASF24
	.byte	0x1
	.byte	0x14
	.byte	0x5
	.long	0x35
	.quad	.LFB15
	.quad	.LFE15-.LFB15
	.uleb128 0x1
	.byte	0x9c
	.long	0x241
	.uleb128 0xe
	.long	.LASF12
	.byte	0xe
	.long	0x35
	.long	.LLST9
	.long	.LVUS9
	.uleb128 0xe
	.long	.LASF13
	.byte	0x1b
	.long	0xca
	.long	.LLST10
	.long	.LVUS10
	.uleb128 0x6
	.long	.LASF14
	.byte	0x15
	.byte	0xa
	.long	0x3c
	.long	.LLST11
	.long	.LVUS11
	.uleb128 0x6
	.long	.LASF15
	.byte	0x15
	.byte	0x34
	.long	0x3c
	.long	.LLST12
	.long	.LVUS12
	.uleb128 0x17
	.quad	.LBB31
	.quad	.LBE31-.LBB31
	.long	0x1ae
	.uleb128 0x6
	.long	.LASF16
	.byte	0x16
	.byte	0xe
	.long	0x35
	.long	.LLST13
	.long	.LVUS13
	.uleb128 0xf
	.quad	.LVL16
	.long	0x317
	.long	0x180
	.uleb128 0x2
	.uleb128 0x1
	.byte	0x55
	.uleb128 0x2
	.byte	0x7c
	.sleb128 0
	.byte	0
	.uleb128 0xf
	.quad	.LVL17
	.long	0x2ac
	.long	0x198
	.uleb128 0x2
	.uleb128 0x1
	.byte	0x55
	.uleb128 0x2
	.byte	0x76
	.sleb128 0
	.byte	0
	.uleb128 0x7
	.quad	.LVL18
	.long	0x241
	.uleb128 0x2
	.uleb128 0x1
	.byte	0x55
	.uleb128 0x3
	.byte	0xa
	.value	0x4e20
	.byte	0
	.byte	0
	.uleb128 0x18
	.long	0x39e
	.quad	.LBI32
	.byte	.LVU72
	.quad	.LBB32
	.quad	.LBE32-.LBB32
	.byte	0x1
	.byte	0x15
	.byte	0x20
	.long	0x1f9
	.uleb128 0x3
	.long	0x3ac
	.long	.LLST14
	.long	.LVUS14
	.uleb128 0x7
	.quad	.LVL25
	.long	0xa0
	.uleb128 0x2
	.uleb128 0x1
	.byte	0x54
	.uleb128 0x1
	.byte	0x30
	.uleb128 0x2
	.uleb128 0x1
	.byte	0x51
	.uleb128 0x1
	.byte	0x3a
	.byte	0
	.byte	0
	.uleb128 0x19
	.long	0x39e
	.quad	.LBI34
	.byte	.LVU79
	.quad	.LBB34
	.quad	.LBE34-.LBB34
	.byte	0x1
	.byte	0x15
	.byte	0x4b
	.uleb128 0x3
	.long	0x3ac
	.long	.LLST15
	.long	.LVUS15
	.uleb128 0x7
	.quad	.LVL27
	.long	0xa0
	.uleb128 0x2
	.uleb128 0x1
	.byte	0x54
	.uleb128 0x1
	.byte	0x30
	.uleb128 0x2
	.uleb128 0x1
	.byte	0x51
	.uleb128 0x1
	.byte	0x3a
	.byte	0
	.byte	0
	.byte	0
	.uleb128 0x8
	.long	.LASF17
	.byte	0x10
	.quad	.LFB14
	.quad	.LFE14-.LFB14
	.uleb128 0x1
	.byte	0x9c
	.long	0x2ac
	.uleb128 0x9
	.string	"n"
	.byte	0x10
	.byte	0x2c
	.long	0x3c
	.uleb128 0x1
	.byte	0x55
	.uleb128 0xa
	.quad	.LBB26
	.quad	.LBE26-.LBB26
	.uleb128 0xb
	.string	"i"
	.byte	0x11
	.long	0x3c
	.long	.LLST6
	.long	.LVUS6
	.uleb128 0xc
	.long	0x382
	.quad	.LBI27
	.byte	.LVU40
	.long	.LLRL7
	.byte	0x12
	.uleb128 0x3
	.long	0x393
	.long	.LLST8
	.long	.LVUS8
	.byte	0
	.byte	0
	.byte	0
	.uleb128 0x8
	.long	.LASF18
	.byte	0xc
	.quad	.LFB13
	.quad	.LFE13-.LFB13
	.uleb128 0x1
	.byte	0x9c
	.long	0x317
	.uleb128 0x9
	.string	"n"
	.byte	0xc
	.byte	0x2c
	.long	0x3c
	.uleb128 0x1
	.byte	0x55
	.uleb128 0xa
	.quad	.LBB21
	.quad	.LBE21-.LBB21
	.uleb128 0xb
	.string	"i"
	.byte	0xd
	.long	0x3c
	.long	.LLST3
	.long	.LVUS3
	.uleb128 0xc
	.long	0x382
	.quad	.LBI22
	.byte	.LVU23
	.long	.LLRL4
	.byte	0xe
	.uleb128 0x3
	.long	0x393
	.long	.LLST5
	.long	.LVUS5
	.byte	0
	.byte	0
	.byte	0
	.uleb128 0x8
	.long	.LASF19
	.byte	0x8
	.quad	.LFB12
	.quad	.LFE12-.LFB12
	.uleb128 0x1
	.byte	0x9c
	.long	0x382
	.uleb128 0x9
	.string	"n"
	.byte	0x8
	.byte	0x2b
	.long	0x3c
	.uleb128 0x1
	.byte	0x55
	.uleb128 0xa
	.quad	.LBB16
	.quad	.LBE16-.LBB16
	.uleb128 0xb
	.string	"i"
	.byte	0x9
	.long	0x3c
	.long	.LLST0
	.long	.LVUS0
	.uleb128 0xc
	.long	0x382
	.quad	.LBI17
	.byte	.LVU6
	.long	.LLRL1
	.byte	0xa
	.uleb128 0x3
	.long	0x393
	.long	.LLST2
	.long	.LVUS2
	.byte	0
	.byte	0
	.byte	0
	.uleb128 0x1a
	.long	.LASF25
	.byte	0x1
	.byte	0x5
	.byte	0x33
	.long	0x3c
	.byte	0x3
	.long	0x39e
	.uleb128 0x1b
	.string	"i"
	.byte	0x1
	.byte	0x5
	.byte	0x3e
	.long	0x3c
	.byte	0
	.uleb128 0x1c
	.long	.LASF26
	.byte	0x2
	.value	0x16f
	.byte	0x1
	.long	0x3c
	.byte	0x3
	.uleb128 0x1d
	.long	.LASF20
	.byte	0x2
	.value	0x16f
	.byte	0x1
	.long	0xc0
	.byte	0
	.byte	0
	.section	.debug_abbrev,"",@progbits
.Ldebug_abbrev0:
	.uleb128 0x1
	.uleb128 0x24
	.byte	0
	.uleb128 0xb
	.uleb128 0xb
	.uleb128 0x3e
	.uleb128 0xb
	.uleb128 0x3
	.uleb128 0xe
	.byte	0
	.byte	0
	.uleb128 0x2
	.uleb128 0x49
	.byte	0
	.uleb128 0x2
	.uleb128 0x18
	.uleb128 0x7e
	.uleb128 0x18
	.byte	0
	.byte	0
	.uleb128 0x3
	.uleb128 0x5
	.byte	0
	.uleb128 0x31
	.uleb128 0x13
	.uleb128 0x2
	.uleb128 0x17
	.uleb128 0x2137
	.uleb128 0x17
	.byte	0
	.byte	0
	.uleb128 0x4
	.uleb128 0xf
	.byte	0
	.uleb128 0xb
	.uleb128 0x21
	.sleb128 8
	.uleb128 0x49
	.uleb128 0x13
	.byte	0
	.byte	0
	.uleb128 0x5
	.uleb128 0x5
	.byte	0
	.uleb128 0x49
	.uleb128 0x13
	.byte	0
	.byte	0
	.uleb128 0x6
	.uleb128 0x34
	.byte	0
	.uleb128 0x3
	.uleb128 0xe
	.uleb128 0x3a
	.uleb128 0x21
	.sleb128 1
	.uleb128 0x3b
	.uleb128 0xb
	.uleb128 0x39
	.uleb128 0xb
	.uleb128 0x49
	.uleb128 0x13
	.uleb128 0x2
	.uleb128 0x17
	.uleb128 0x2137
	.uleb128 0x17
	.byte	0
	.byte	0
	.uleb128 0x7
	.uleb128 0x48
	.byte	0x1
	.uleb128 0x7d
	.uleb128 0x1
	.uleb128 0x7f
	.uleb128 0x13
	.byte	0
	.byte	0
	.uleb128 0x8
	.uleb128 0x2e
	.byte	0x1
	.uleb128 0x3f
	.uleb128 0x19
	.uleb128 0x3
	.uleb128 0xe
	.uleb128 0x3a
	.uleb128 0x21
	.sleb128 1
	.uleb128 0x3b
	.uleb128 0xb
	.uleb128 0x39
	.uleb128 0x21
	.sleb128 32
	.uleb128 0x27
	.uleb128 0x19
	.uleb128 0x11
	.uleb128 0x1
	.uleb128 0x12
	.uleb128 0x7
	.uleb128 0x40
	.uleb128 0x18
	.uleb128 0x7a
	.uleb128 0x19
	.uleb128 0x1
	.uleb128 0x13
	.byte	0
	.byte	0
	.uleb128 0x9
	.uleb128 0x5
	.byte	0
	.uleb128 0x3
	.uleb128 0x8
	.uleb128 0x3a
	.uleb128 0x21
	.sleb128 1
	.uleb128 0x3b
	.uleb128 0xb
	.uleb128 0x39
	.uleb128 0xb
	.uleb128 0x49
	.uleb128 0x13
	.uleb128 0x2
	.uleb128 0x18
	.byte	0
	.byte	0
	.uleb128 0xa
	.uleb128 0xb
	.byte	0x1
	.uleb128 0x11
	.uleb128 0x1
	.uleb128 0x12
	.uleb128 0x7
	.byte	0
	.byte	0
	.uleb128 0xb
	.uleb128 0x34
	.byte	0
	.uleb128 0x3
	.uleb128 0x8
	.uleb128 0x3a
	.uleb128 0x21
	.sleb128 1
	.uleb128 0x3b
	.uleb128 0xb
	.uleb128 0x39
	.uleb128 0x21
	.sleb128 15
	.uleb128 0x49
	.uleb128 0x13
	.uleb128 0x2
	.uleb128 0x17
	.uleb128 0x2137
	.uleb128 0x17
	.byte	0
	.byte	0
	.uleb128 0xc
	.uleb128 0x1d
	.byte	0x1
	.uleb128 0x31
	.uleb128 0x13
	.uleb128 0x52
	.uleb128 0x1
	.uleb128 0x2138
	.uleb128 0xb
	.uleb128 0x55
	.uleb128 0x17
	.uleb128 0x58
	.uleb128 0x21
	.sleb128 1
	.uleb128 0x59
	.uleb128 0xb
	.uleb128 0x57
	.uleb128 0x21
	.sleb128 17
	.byte	0
	.byte	0
	.uleb128 0xd
	.uleb128 0x37
	.byte	0
	.uleb128 0x49
	.uleb128 0x13
	.byte	0
	.byte	0
	.uleb128 0xe
	.uleb128 0x5
	.byte	0
	.uleb128 0x3
	.uleb128 0xe
	.uleb128 0x3a
	.uleb128 0x21
	.sleb128 1
	.uleb128 0x3b
	.uleb128 0x21
	.sleb128 20
	.uleb128 0x39
	.uleb128 0xb
	.uleb128 0x49
	.uleb128 0x13
	.uleb128 0x2
	.uleb128 0x17
	.uleb128 0x2137
	.uleb128 0x17
	.byte	0
	.byte	0
	.uleb128 0xf
	.uleb128 0x48
	.byte	0x1
	.uleb128 0x7d
	.uleb128 0x1
	.uleb128 0x7f
	.uleb128 0x13
	.uleb128 0x1
	.uleb128 0x13
	.byte	0
	.byte	0
	.uleb128 0x10
	.uleb128 0x11
	.byte	0x1
	.uleb128 0x25
	.uleb128 0xe
	.uleb128 0x13
	.uleb128 0xb
	.uleb128 0x3
	.uleb128 0x1f
	.uleb128 0x1b
	.uleb128 0x1f
	.uleb128 0x11
	.uleb128 0x1
	.uleb128 0x12
	.uleb128 0x7
	.uleb128 0x10
	.uleb128 0x17
	.byte	0
	.byte	0
	.uleb128 0x11
	.uleb128 0x24
	.byte	0
	.uleb128 0xb
	.uleb128 0xb
	.uleb128 0x3e
	.uleb128 0xb
	.uleb128 0x3
	.uleb128 0x8
	.byte	0
	.byte	0
	.uleb128 0x12
	.uleb128 0x35
	.byte	0
	.uleb128 0x49
	.uleb128 0x13
	.byte	0
	.byte	0
	.uleb128 0x13
	.uleb128 0x26
	.byte	0
	.uleb128 0x49
	.uleb128 0x13
	.byte	0
	.byte	0
	.uleb128 0x14
	.uleb128 0x34
	.byte	0
	.uleb128 0x3
	.uleb128 0xe
	.uleb128 0x3a
	.uleb128 0xb
	.uleb128 0x3b
	.uleb128 0xb
	.uleb128 0x39
	.uleb128 0xb
	.uleb128 0x49
	.uleb128 0x13
	.uleb128 0x2
	.uleb128 0x18
	.byte	0
	.byte	0
	.uleb128 0x15
	.uleb128 0x2e
	.byte	0x1
	.uleb128 0x3f
	.uleb128 0x19
	.uleb128 0x3
	.uleb128 0xe
	.uleb128 0x3a
	.uleb128 0xb
	.uleb128 0x3b
	.uleb128 0xb
	.uleb128 0x39
	.uleb128 0xb
	.uleb128 0x27
	.uleb128 0x19
	.uleb128 0x49
	.uleb128 0x13
	.uleb128 0x3c
	.uleb128 0x19
	.uleb128 0x1
	.uleb128 0x13
	.byte	0
	.byte	0
	.uleb128 0x16
	.uleb128 0x2e
	.byte	0x1
	.uleb128 0x3f
	.uleb128 0x19
	.uleb128 0x3
	.uleb128 0xe
	.uleb128 0x3a
	.uleb128 0xb
	.uleb128 0x3b
	.uleb128 0xb
	.uleb128 0x39
	.uleb128 0xb
	.uleb128 0x27
	.uleb128 0x19
	.uleb128 0x49
	.uleb128 0x13
	.uleb128 0x11
	.uleb128 0x1
	.uleb128 0x12
	.uleb128 0x7
	.uleb128 0x40
	.uleb128 0x18
	.uleb128 0x7a
	.uleb128 0x19
	.uleb128 0x1
	.uleb128 0x13
	.byte	0
	.byte	0
	.uleb128 0x17
	.uleb128 0xb
	.byte	0x1
	.uleb128 0x11
	.uleb128 0x1
	.uleb128 0x12
	.uleb128 0x7
	.uleb128 0x1
	.uleb128 0x13
	.byte	0
	.byte	0
	.uleb128 0x18
	.uleb128 0x1d
	.byte	0x1
	.uleb128 0x31
	.uleb128 0x13
	.uleb128 0x52
	.uleb128 0x1
	.uleb128 0x2138
	.uleb128 0xb
	.uleb128 0x11
	.uleb128 0x1
	.uleb128 0x12
	.uleb128 0x7
	.uleb128 0x58
	.uleb128 0xb
	.uleb128 0x59
	.uleb128 0xb
	.uleb128 0x57
	.uleb128 0xb
	.uleb128 0x1
	.uleb128 0x13
	.byte	0
	.byte	0
	.uleb128 0x19
	.uleb128 0x1d
	.byte	0x1
	.uleb128 0x31
	.uleb128 0x13
	.uleb128 0x52
	.uleb128 0x1
	.uleb128 0x2138
	.uleb128 0xb
	.uleb128 0x11
	.uleb128 0x1
	.uleb128 0x12
	.uleb128 0x7
	.uleb128 0x58
	.uleb128 0xb
	.uleb128 0x59
	.uleb128 0xb
	.uleb128 0x57
	.uleb128 0xb
	.byte	0
	.byte	0
	.uleb128 0x1a
	.uleb128 0x2e
	.byte	0x1
	.uleb128 0x3
	.uleb128 0xe
	.uleb128 0x3a
	.uleb128 0xb
	.uleb128 0x3b
	.uleb128 0xb
	.uleb128 0x39
	.uleb128 0xb
	.uleb128 0x27
	.uleb128 0x19
	.uleb128 0x49
	.uleb128 0x13
	.uleb128 0x20
	.uleb128 0xb
	.uleb128 0x1
	.uleb128 0x13
	.byte	0
	.byte	0
	.uleb128 0x1b
	.uleb128 0x5
	.byte	0
	.uleb128 0x3
	.uleb128 0x8
	.uleb128 0x3a
	.uleb128 0xb
	.uleb128 0x3b
	.uleb128 0xb
	.uleb128 0x39
	.uleb128 0xb
	.uleb128 0x49
	.uleb128 0x13
	.byte	0
	.byte	0
	.uleb128 0x1c
	.uleb128 0x2e
	.byte	0x1
	.uleb128 0x3f
	.uleb128 0x19
	.uleb128 0x3
	.uleb128 0xe
	.uleb128 0x3a
	.uleb128 0xb
	.uleb128 0x3b
	.uleb128 0x5
	.uleb128 0x39
	.uleb128 0xb
	.uleb128 0x27
	.uleb128 0x19
	.uleb128 0x49
	.uleb128 0x13
	.uleb128 0x20
	.uleb128 0xb
	.byte	0
	.byte	0
	.uleb128 0x1d
	.uleb128 0x5
	.byte	0
	.uleb128 0x3
	.uleb128 0xe
	.uleb128 0x3a
	.uleb128 0xb
	.uleb128 0x3b
	.uleb128 0x5
	.uleb128 0x39
	.uleb128 0xb
	.uleb128 0x49
	.uleb128 0x13
	.byte	0
	.byte	0
	.byte	0
	.section	.debug_loclists,"",@progbits
	.long	.Ldebug_loc3-.Ldebug_loc2
.Ldebug_loc2:
	.value	0x5
	.byte	0x8
	.byte	0
	.long	0
.Ldebug_loc0:
.LVUS9:
	.uleb128 0
	.uleb128 .LVU57
	.uleb128 .LVU57
	.uleb128 .LVU71
	.uleb128 .LVU71
	.uleb128 .LVU75
	.uleb128 .LVU75
	.uleb128 0
.LLST9:
	.byte	0x4
	.uleb128 .LVL12-.Ltext0
	.uleb128 .LVL13-.Ltext0
	.uleb128 0x1
	.byte	0x55
	.byte	0x4
	.uleb128 .LVL13-.Ltext0
	.uleb128 .LVL21-.Ltext0
	.uleb128 0x4
	.byte	0xa3
	.uleb128 0x1
	.byte	0x55
	.byte	0x9f
	.byte	0x4
	.uleb128 .LVL21-.Ltext0
	.uleb128 .LVL23-.Ltext0
	.uleb128 0x1
	.byte	0x55
	.byte	0x4
	.uleb128 .LVL23-.Ltext0
	.uleb128 .LFE15-.Ltext0
	.uleb128 0x4
	.byte	0xa3
	.uleb128 0x1
	.byte	0x55
	.byte	0x9f
	.byte	0
.LVUS10:
	.uleb128 0
	.uleb128 .LVU57
	.uleb128 .LVU57
	.uleb128 .LVU71
	.uleb128 .LVU71
	.uleb128 .LVU76
	.uleb128 .LVU76
	.uleb128 0
.LLST10:
	.byte	0x4
	.uleb128 .LVL12-.Ltext0
	.uleb128 .LVL13-.Ltext0
	.uleb128 0x1
	.byte	0x54
	.byte	0x4
	.uleb128 .LVL13-.Ltext0
	.uleb128 .LVL21-.Ltext0
	.uleb128 0x4
	.byte	0xa3
	.uleb128 0x1
	.byte	0x54
	.byte	0x9f
	.byte	0x4
	.uleb128 .LVL21-.Ltext0
	.uleb128 .LVL24-.Ltext0
	.uleb128 0x1
	.byte	0x54
	.byte	0x4
	.uleb128 .LVL24-.Ltext0
	.uleb128 .LFE15-.Ltext0
	.uleb128 0x1
	.byte	0x53
	.byte	0
.LVUS11:
	.uleb128 .LVU78
	.uleb128 .LVU82
	.uleb128 .LVU82
	.uleb128 0
.LLST11:
	.byte	0x4
	.uleb128 .LVL26-.Ltext0
	.uleb128 .LVL27-1-.Ltext0
	.uleb128 0x1
	.byte	0x50
	.byte	0x4
	.uleb128 .LVL27-1-.Ltext0
	.uleb128 .LFE15-.Ltext0
	.uleb128 0x1
	.byte	0x5c
	.byte	0
.LVUS12:
	.uleb128 .LVU57
	.uleb128 .LVU62
.LLST12:
	.byte	0x4
	.uleb128 .LVL13-.Ltext0
	.uleb128 .LVL14-.Ltext0
	.uleb128 0x1
	.byte	0x56
	.byte	0
.LVUS13:
	.uleb128 .LVU59
	.uleb128 .LVU63
	.uleb128 .LVU63
	.uleb128 .LVU67
	.uleb128 .LVU67
	.uleb128 .LVU68
	.uleb128 .LVU68
	.uleb128 .LVU70
.LLST13:
	.byte	0x4
	.uleb128 .LVL13-.Ltext0
	.uleb128 .LVL15-.Ltext0
	.uleb128 0x2
	.byte	0x30
	.byte	0x9f
	.byte	0x4
	.uleb128 .LVL15-.Ltext0
	.uleb128 .LVL18-.Ltext0
	.uleb128 0x7
	.byte	0xa
	.value	0xfa0
	.byte	0x73
	.sleb128 0
	.byte	0x1c
	.byte	0x9f
	.byte	0x4
	.uleb128 .LVL18-.Ltext0
	.uleb128 .LVL19-.Ltext0
	.uleb128 0x7
	.byte	0xa
	.value	0xfa1
	.byte	0x73
	.sleb128 0
	.byte	0x1c
	.byte	0x9f
	.byte	0x4
	.uleb128 .LVL19-.Ltext0
	.uleb128 .LVL20-.Ltext0
	.uleb128 0x7
	.byte	0xa
	.value	0xfa0
	.byte	0x73
	.sleb128 0
	.byte	0x1c
	.byte	0x9f
	.byte	0
.LVUS14:
	.uleb128 .LVU72
	.uleb128 .LVU77
.LLST14:
	.byte	0x4
	.uleb128 .LVL22-.Ltext0
	.uleb128 .LVL25-1-.Ltext0
	.uleb128 0x2
	.byte	0x73
	.sleb128 8
	.byte	0
.LVUS15:
	.uleb128 .LVU78
	.uleb128 .LVU82
.LLST15:
	.byte	0x4
	.uleb128 .LVL26-.Ltext0
	.uleb128 .LVL27-1-.Ltext0
	.uleb128 0x2
	.byte	0x73
	.sleb128 16
	.byte	0
.LVUS6:
	.uleb128 .LVU37
	.uleb128 .LVU39
	.uleb128 .LVU39
	.uleb128 .LVU49
.LLST6:
	.byte	0x4
	.uleb128 .LVL8-.Ltext0
	.uleb128 .LVL9-.Ltext0
	.uleb128 0x2
	.byte	0x30
	.byte	0x9f
	.byte	0x4
	.uleb128 .LVL9-.Ltext0
	.uleb128 .LVL11-.Ltext0
	.uleb128 0x1
	.byte	0x51
	.byte	0
.LVUS8:
	.uleb128 .LVU40
	.uleb128 .LVU42
.LLST8:
	.byte	0x4
	.uleb128 .LVL9-.Ltext0
	.uleb128 .LVL9-.Ltext0
	.uleb128 0x1
	.byte	0x51
	.byte	0
.LVUS3:
	.uleb128 .LVU20
	.uleb128 .LVU22
	.uleb128 .LVU22
	.uleb128 .LVU32
.LLST3:
	.byte	0x4
	.uleb128 .LVL4-.Ltext0
	.uleb128 .LVL5-.Ltext0
	.uleb128 0x2
	.byte	0x30
	.byte	0x9f
	.byte	0x4
	.uleb128 .LVL5-.Ltext0
	.uleb128 .LVL7-.Ltext0
	.uleb128 0x1
	.byte	0x51
	.byte	0
.LVUS5:
	.uleb128 .LVU23
	.uleb128 .LVU25
.LLST5:
	.byte	0x4
	.uleb128 .LVL5-.Ltext0
	.uleb128 .LVL5-.Ltext0
	.uleb128 0x1
	.byte	0x51
	.byte	0
.LVUS0:
	.uleb128 .LVU3
	.uleb128 .LVU5
	.uleb128 .LVU5
	.uleb128 .LVU15
.LLST0:
	.byte	0x4
	.uleb128 .LVL0-.Ltext0
	.uleb128 .LVL1-.Ltext0
	.uleb128 0x2
	.byte	0x30
	.byte	0x9f
	.byte	0x4
	.uleb128 .LVL1-.Ltext0
	.uleb128 .LVL3-.Ltext0
	.uleb128 0x1
	.byte	0x51
	.byte	0
.LVUS2:
	.uleb128 .LVU6
	.uleb128 .LVU8
.LLST2:
	.byte	0x4
	.uleb128 .LVL1-.Ltext0
	.uleb128 .LVL1-.Ltext0
	.uleb128 0x1
	.byte	0x51
	.byte	0
.Ldebug_loc3:
	.section	.debug_aranges,"",@progbits
	.long	0x2c
	.value	0x2
	.long	.Ldebug_info0
	.byte	0x8
	.byte	0
	.value	0
	.value	0
	.quad	.Ltext0
	.quad	.Letext0-.Ltext0
	.quad	0
	.quad	0
	.section	.debug_rnglists,"",@progbits
.Ldebug_ranges0:
	.long	.Ldebug_ranges3-.Ldebug_ranges2
.Ldebug_ranges2:
	.value	0x5
	.byte	0x8
	.byte	0
	.long	0
.LLRL1:
	.byte	0x4
	.uleb128 .LBB17-.Ltext0
	.uleb128 .LBE17-.Ltext0
	.byte	0x4
	.uleb128 .LBB20-.Ltext0
	.uleb128 .LBE20-.Ltext0
	.byte	0
.LLRL4:
	.byte	0x4
	.uleb128 .LBB22-.Ltext0
	.uleb128 .LBE22-.Ltext0
	.byte	0x4
	.uleb128 .LBB25-.Ltext0
	.uleb128 .LBE25-.Ltext0
	.byte	0
.LLRL7:
	.byte	0x4
	.uleb128 .LBB27-.Ltext0
	.uleb128 .LBE27-.Ltext0
	.byte	0x4
	.uleb128 .LBB30-.Ltext0
	.uleb128 .LBE30-.Ltext0
	.byte	0
.Ldebug_ranges3:
	.section	.debug_line,"",@progbits
.Ldebug_line0:
	.section	.debug_str,"MS",@progbits,1
.LASF4:
	.string	"long long int"
.LASF16:
	.string	"turn"
.LASF7:
	.string	"unsigned int"
.LASF17:
	.string	"twenty"
.LASF14:
	.string	"of_fifty"
.LASF24:
	.string	"main"
.LASF25:
	.string	"weigh"
.LASF22:
	.string	"sink"
.LASF2:
	.string	"long unsigned int"
.LASF11:
	.string	"long long unsigned int"
.LASF23:
	.string	"strtol"
.LASF5:
	.string	"unsigned char"
.LASF10:
	.string	"char"
.LASF15:
	.string	"of_thirty"
.LASF3:
	.string	"long int"
.LASF20:
	.string	"__nptr"
.LASF12:
	.string	"argc"
.LASF6:
	.string	"short unsigned int"
.LASF8:
	.string	"signed char"
.LASF26:
	.string	"atol"
.LASF13:
	.string	"argv"
.LASF19:
	.string	"fifty"
.LASF9:
	.string	"short int"
.LASF18:
	.string	"thirty"
.LASF21:
	.string	"GNU C17 12.2.0 -mtune=generic -march=x86-64 -g -O1 -fasynchronous-unwind-tables"
	.section	.debug_line_str,"MS",@progbits,1
.LASF0:
	.string	"shares.c"
.LASF1:
	.string	"/src"
	.section	.note.GNU-stack,"",@progbits
