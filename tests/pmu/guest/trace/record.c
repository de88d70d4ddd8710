// SPDX-License-Identifier: GPL-2.0
/*
 * The operation that a timer interrupted, as a record of Arm's Statistical Profiling Extension.
 *
 *	registers ── the instruction at PC, decoded ──> struct operation ── packets ──> 64 bytes
 *
 * The CPU was about to execute the instruction, so its registers still give the address that it loads from or
 * stores to, and whether it will branch. Only what no register tells is made up: latencies, and that every
 * access hits. See the "Arm Architecture Reference Manual for A-profile": "Statistical Profiling Extension
 * Sample Record Specification" for packets, "A64 Instruction Set Encoding" for instructions.
 */
#include <linux/bitops.h>
#include <linux/sched.h>
#include <linux/uaccess.h>
#include <asm/barrier.h>
#include <asm/sysreg.h>
#include "trace.h"

/* Headers: the architecture's numbers. */
#define PACKET_END		0x01
#define PACKET_EVENTS		0x52	/* 2 bytes */
#define PACKET_CONTEXT_EL1	0x64	/* 4 bytes: CONTEXTIDR_EL1 */
#define PACKET_OPERATION_OTHER	0x48	/* 1 byte, these three */
#define PACKET_OPERATION_MEMORY 0x49
#define PACKET_OPERATION_BRANCH 0x4a
#define PACKET_TIMESTAMP	0x71	/* 8 bytes */
#define PACKET_LATENCY_TOTAL	0x98	/* 2 bytes, these three */
#define PACKET_LATENCY_ISSUE	0x99
#define PACKET_LATENCY_XLAT	0x9a
#define PACKET_ADDRESS_PC	0xb0	/* 8 bytes, these four */
#define PACKET_ADDRESS_TARGET	0xb1
#define PACKET_ADDRESS_VIRTUAL	0xb2
#define PACKET_ADDRESS_PHYSICAL 0xb3

#define ADDRESS_MASK		GENMASK_ULL(55, 0)
#define ADDRESS_EL1		BIT_ULL(61)
#define ADDRESS_NON_SECURE	BIT_ULL(63)

#define MEMORY_STORE		BIT(0)
#define MEMORY_FLOATING		BIT(2)
#define MEMORY_READ_MODIFY	(BIT(1) | BIT(2))
#define MEMORY_EXCLUSIVE	(BIT(1) | BIT(3))
#define MEMORY_ORDERED		(BIT(1) | BIT(4))
#define BRANCH_CONDITIONAL	BIT(0)
#define BRANCH_INDIRECT		BIT(1)

/* Bits HIGH..LOW of an instruction, as a number and as a signed one. */
#define FIELD(insn, high, low)	(((insn) >> (low)) & GENMASK((high) - (low), 0))
#define SIGNED(insn, high, low) sign_extend64(FIELD(insn, high, low), (high) - (low))

/* Register 31 is the stack pointer in an address, and zero elsewhere. */
static u64 address_register(struct pt_regs *regs, unsigned int n)
{
	return n == 31 ? regs->sp : regs->regs[n];
}

/* Loads and stores whose address is a register and something that the instruction says. */
static void decode_memory(struct operation *op, u32 insn, struct pt_regs *regs)
{
	unsigned int size = FIELD(insn, 31, 30);
	bool floating = FIELD(insn, 26, 26);
	bool load = FIELD(insn, 22, 22);
	s64 offset = 0;

	op->target = address_register(regs, FIELD(insn, 9, 5));
	switch (FIELD(insn, 29, 28)) {
	case 3: /* One register. Bits 23:22: store, load, sign-extending loads; with bit 26, 16 bytes. */
		load = FIELD(insn, 23, 22);
		if (floating) {
			load = FIELD(insn, 22, 22);
			size |= FIELD(insn, 23, 23) << 2;
		}
		if (FIELD(insn, 24, 24)) {
			offset = FIELD(insn, 21, 10) << size;
		} else if (!FIELD(insn, 21, 21)) {
			bool post_index = FIELD(insn, 11, 10) == 1;

			offset = post_index ? 0 : SIGNED(insn, 20, 12);
		} else if (FIELD(insn, 11, 10) == 2) {
			unsigned int extend = FIELD(insn, 15, 13);

			offset = pt_regs_read_reg(regs, FIELD(insn, 20, 16));
			if (extend == 2)
				offset = (u32)offset;
			else if (extend == 6)
				offset = (s32)offset;
			offset <<= FIELD(insn, 12, 12) ? size : 0;
		} else if (FIELD(insn, 11, 10) == 0) {
			op->subclass = MEMORY_READ_MODIFY;
			load = true; /* What it also is. */
		}
		break;
	case 2: /* A pair; bits 24:23 are 1 if the offset is added afterwards. */
		if (FIELD(insn, 24, 23) != 1)
			offset = SIGNED(insn, 21, 15) * (floating ? 4 << size : size & 2 ? 8 : 4);
		break;
	case 1: /* Bit 24 is clear: relative to PC. */
		if (!FIELD(insn, 24, 24)) {
			op->target = op->pc;
			offset = SIGNED(insn, 23, 5) * 4;
			load = true;
		}
		break;
	case 0: /* Exclusive, acquire and release; of vectors: whole structures. */
		op->subclass = FIELD(insn, 23, 23) ? MEMORY_ORDERED : MEMORY_EXCLUSIVE;
		break;
	}
	if (floating)
		op->subclass = MEMORY_FLOATING;
	op->target += offset;
	op->class = load ? LOAD : STORE;
	op->latency = load ? 4 : 1;
	op->events |= EVENT_L1D_ACCESS | EVENT_TLB_ACCESS;
}

/* Whether the flags in PSTATE fulfil a condition of the architecture's numbering. */
static bool condition_holds(unsigned int condition, u64 pstate)
{
	bool n = pstate & PSR_N_BIT, z = pstate & PSR_Z_BIT, c = pstate & PSR_C_BIT, v = pstate & PSR_V_BIT;
	const bool holds[] = { z, c, n, v, c && !z, n == v, n == v && !z, true };

	return holds[condition >> 1] ^ (condition & 1 && condition != 15);
}

static void decode_branch(struct operation *op, u32 insn, struct pt_regs *regs)
{
	u64 value = pt_regs_read_reg(regs, FIELD(insn, 4, 0));
	bool negated = FIELD(insn, 24, 24);
	bool taken = true;

	op->target = op->pc;
	if ((insn & 0x7c000000) == 0x14000000) {		/* b, bl */
		op->target += SIGNED(insn, 25, 0) * 4;
	} else if ((insn & 0xff000000) == 0x54000000) {		/* b.cond */
		op->subclass = BRANCH_CONDITIONAL;
		op->target += SIGNED(insn, 23, 5) * 4;
		taken = condition_holds(FIELD(insn, 3, 0), regs->pstate);
	} else if ((insn & 0x7e000000) == 0x34000000) {		/* cbz, cbnz */
		op->subclass = BRANCH_CONDITIONAL;
		op->target += SIGNED(insn, 23, 5) * 4;
		taken = (FIELD(insn, 31, 31) ? value : (u32)value) ? negated : !negated;
	} else if ((insn & 0x7e000000) == 0x36000000) {		/* tbz, tbnz */
		op->subclass = BRANCH_CONDITIONAL;
		op->target += SIGNED(insn, 18, 5) * 4;
		taken = value & BIT_ULL(FIELD(insn, 31, 31) << 5 | FIELD(insn, 23, 19)) ? negated : !negated;
	} else if ((insn & 0xff9ffc1f) == 0xd61f0000) { /* br, blr, ret; none that authenticates */
		op->subclass = BRANCH_INDIRECT;
		op->target = pt_regs_read_reg(regs, FIELD(insn, 9, 5));
	} else {						/* System calls, barriers, hints ... */
		return;
	}
	op->class = BRANCH;
	if (!taken) {
		op->events |= EVENT_NOT_TAKEN;
		op->target = op->pc + 4;
	}
}

/* The operation that an interrupt with these registers came before. */
void operation_at(struct operation *op, struct pt_regs *regs)
{
	__le32 word = 0;
	u32 insn;

	*op = (struct operation){
		.class = OTHER, .el0 = user_mode(regs), .pc = instruction_pointer(regs),
		.events = EVENT_RETIRED, .latency = 1,
	};
	/* An instruction that cannot be read (a page just gone) is an operation of no known kind. */
	if (compat_user_mode(regs) ||
	    (op->el0 ? copy_from_user_nofault(&word, (void __user *)op->pc, sizeof(word))
		     : copy_from_kernel_nofault(&word, (void *)op->pc, sizeof(word))))
		return;
	insn = le32_to_cpu(word);
	if ((insn & 0x0a000000) == 0x08000000)
		decode_memory(op, insn, regs);
	else if ((insn & 0x1c000000) == 0x14000000)
		decode_branch(op, insn, regs);
}

/* Where the CPU's own tables have the address; false if it is not mapped (yet). */
static bool physical_address(u64 *physical, u64 address, bool el0)
{
	u64 saved = read_sysreg_par(), par;

	if (el0)
		asm volatile("at s1e0r, %0" : : "r"(address));
	else
		asm volatile("at s1e1r, %0" : : "r"(address));
	isb();
	par = read_sysreg_par();
	write_sysreg(saved, par_el1);
	*physical = (par & GENMASK_ULL(47, 12)) | (address & GENMASK_ULL(11, 0));
	return !(par & SYS_PAR_EL1_F);
}

/* A packet; bits 5:4 of its header are log2 of the size of what follows. */
static u8 *put(u8 *to, u8 header, u64 payload)
{
	unsigned int size = 1 << FIELD(header, 5, 4);
	__le64 bytes = cpu_to_le64(payload);

	*to++ = header;
	memcpy(to, &bytes, size);
	return to + size;
}

/* Packets in the order of hardware's; END or the time of day closes a record, zeros fill it up. */
void record_write(u8 *to, const struct operation *op, struct record_options options)
{
	u64 level = ADDRESS_NON_SECURE | (op->el0 ? 0 : ADDRESS_EL1);
	bool memory = op->class == LOAD || op->class == STORE;
	u8 *end = to + RECORD_SIZE;
	u64 physical;

	to = put(to, PACKET_ADDRESS_PC, (op->pc & ADDRESS_MASK) | level);
	if (options.context)
		to = put(to, PACKET_CONTEXT_EL1, task_pid_nr(current));
	to = put(to, PACKET_LATENCY_ISSUE, 1);
	to = put(to, PACKET_LATENCY_TOTAL, op->latency);
	if (memory) {
		to = put(to, PACKET_OPERATION_MEMORY, op->subclass | (op->class == STORE ? MEMORY_STORE : 0));
		to = put(to, PACKET_ADDRESS_VIRTUAL, op->target);
		to = put(to, PACKET_LATENCY_XLAT, 1);
		if (options.physical_address && physical_address(&physical, op->target, op->el0))
			to = put(to, PACKET_ADDRESS_PHYSICAL, physical | ADDRESS_NON_SECURE);
	} else if (op->class == BRANCH) {
		to = put(to, PACKET_OPERATION_BRANCH, op->subclass);
		to = put(to, PACKET_ADDRESS_TARGET, (op->target & ADDRESS_MASK) | level);
	} else {
		to = put(to, PACKET_OPERATION_OTHER, 0);
	}
	to = put(to, PACKET_EVENTS, op->events);
	if (options.timestamp)
		to = put(to, PACKET_TIMESTAMP, read_sysreg(cntvct_el0));
	else
		*to++ = PACKET_END;
	memset(to, 0, end - to);
}
