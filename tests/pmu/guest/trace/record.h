/* SPDX-License-Identifier: GPL-2.0 */
#ifndef RECORD_H
#define RECORD_H

#include <linux/ptrace.h>
#include <linux/types.h>

/* The size of a record, and what it is aligned to: PMSIDR_EL1.MaxSize and PMBIDR_EL1.Align of many a CPU. */
#define RECORD_SIZE 64

/* Bits of an events packet; the `event_filter` of an event names the same ones. */
#define EVENT_RETIRED	 BIT(1)
#define EVENT_L1D_ACCESS BIT(2)
#define EVENT_TLB_ACCESS BIT(4)
#define EVENT_NOT_TAKEN	 BIT(6)

enum operation_class { OTHER, LOAD, STORE, BRANCH };

/* One sampled operation. */
struct operation {
	enum operation_class class;
	u8 subclass;		/* what the operation type packet says besides load or store */
	bool el0;
	bool has_target;
	u64 pc;
	u64 target;		/* BRANCH: where to; LOAD, STORE: the data's address */
	u16 events;		/* EVENT_ */
	u16 latency;		/* cycles, made up */
};

/* What is put into a record besides what always is. */
struct record_options {
	bool timestamp;
	bool physical_address;
	bool context;
};

void operation_at(struct operation *op, struct pt_regs *regs);
void record_write(u8 *to, const struct operation *op, struct record_options options);

#endif
