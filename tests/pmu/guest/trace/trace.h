/* SPDX-License-Identifier: GPL-2.0 */
#ifndef TRACE_H
#define TRACE_H

#include <linux/hrtimer.h>
#include <linux/perf_event.h>
#include <linux/ptrace.h>
#include <linux/types.h>
#include <linux/version.h>

/* The size of a record, and what it is aligned to: PMSIDR_EL1.MaxSize and PMBIDR_EL1.Align of many a CPU. */
#define RECORD_SIZE 64

/* Nanoseconds. The timer's own instructions are some 2500 each time. */
#define MIN_INTERVAL 10000

/* Bits of an events packet; the `event_filter` of an event names the same ones. */
#define EVENT_RETIRED	 BIT(1)
#define EVENT_L1D_ACCESS BIT(2)
#define EVENT_TLB_ACCESS BIT(4)
#define EVENT_NOT_TAKEN	 BIT(6)
/* Four from here on are the implementation's own: whose sample it is, of those by output.c. */
#define EVENT_OUTPUT	 12
#define OUTPUTS		 4

enum operation_class { OTHER, LOAD, STORE, BRANCH };

/* One sampled operation. */
struct operation {
	enum operation_class class;
	u8 subclass;		/* what the operation type packet says besides load or store */
	bool el0;
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

/* record.c */
void operation_at(struct operation *op, struct pt_regs *regs);
void record_write(u8 *to, const struct operation *op, struct record_options options);

/* pmu.c */
extern struct pmu arm_spe;
bool wants_level(struct perf_event *event, struct pt_regs *regs);
ktime_t period_of(struct perf_event *event);
void trace_into(struct perf_event *traced, const struct operation *op);
void *unexported(const char *name);

static inline void setup_timer(struct hrtimer *timer, enum hrtimer_restart (*expired)(struct hrtimer *timer))
{
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 13, 0)
	hrtimer_setup(timer, expired, CLOCK_MONOTONIC, HRTIMER_MODE_REL_HARD);
#else
	hrtimer_init(timer, CLOCK_MONOTONIC, HRTIMER_MODE_REL_HARD);
	timer->function = expired;
#endif
}

/* Once a timer has done its work: again a period after this. */
static inline void rearm(struct hrtimer *timer, struct perf_event *event)
{
	hrtimer_set_expires(timer, ktime_add(hrtimer_cb_get_time(timer), period_of(event)));
}

/* output.c */
int register_output(void);
void unregister_output(void);

#endif
