// SPDX-License-Identifier: GPL-2.0
/*
 * timer_into_aux, a PMU whose samples go into the trace of arm_spe_0, as Intel's PEBS' into that of PT.
 *
 *	an hrtimer, each period ── record.c, marked ── pmu.c ──> the AUX area of the group's leader
 *
 * An event of it is opened with attr.aux_output in a group that arm_spe_0 leads; it has no samples otherwise.
 * Its records are valid SPE records with one of four event bits that the architecture leaves to the
 * implementation. Which one, a PERF_RECORD_AUX_OUTPUT_HW_ID says when the event gets onto a CPU.
 */
#include <linux/module.h>
#include <linux/percpu.h>
#include <linux/slab.h>
#include <asm/irq_regs.h>
#include "trace.h"

/* An event's own, in event->pmu_private. */
struct output {
	struct hrtimer timer;
	struct perf_event *event;
	int mark;	/* below OUTPUTS, while it is on a CPU */
};

/* Which of the four marks are in use, of each CPU. */
static DEFINE_PER_CPU(unsigned long, marks);
static typeof(perf_report_aux_output_id) *report_mark;

static enum hrtimer_restart output_tick(struct hrtimer *timer)
{
	struct output *output = container_of(timer, struct output, timer);
	struct perf_event *event = output->event;
	struct pt_regs *regs = get_irq_regs();
	struct operation op;

	if (regs && wants_level(event, regs)) {
		operation_at(&op, regs);
		op.events |= BIT(EVENT_OUTPUT + output->mark);
		trace_into(event->aux_event, &op);
	}
	rearm(timer, event);
	return HRTIMER_RESTART;
}

static void output_start(struct perf_event *event, int flags)
{
	struct output *output = event->pmu_private;

	event->hw.state = 0;
	hrtimer_start(&output->timer, period_of(event), HRTIMER_MODE_REL_PINNED_HARD);
}

static void output_stop(struct perf_event *event, int flags)
{
	struct output *output = event->pmu_private;

	hrtimer_try_to_cancel(&output->timer);
	event->hw.state = PERF_HES_STOPPED | PERF_HES_UPTODATE;
}

static int output_add(struct perf_event *event, int flags)
{
	struct output *output = event->pmu_private;
	unsigned long *used = this_cpu_ptr(&marks);
	int mark = ffz(*used);

	if (mark >= OUTPUTS)
		return -EAGAIN;
	*used |= BIT(mark);
	output->mark = mark;
	event->hw.state = PERF_HES_STOPPED | PERF_HES_UPTODATE;
	if (report_mark)
		report_mark(event, EVENT_OUTPUT + mark);
	if (flags & PERF_EF_START)
		output_start(event, PERF_EF_RELOAD);
	return 0;
}

static void output_del(struct perf_event *event, int flags)
{
	struct output *output = event->pmu_private;

	output_stop(event, PERF_EF_UPDATE);
	*this_cpu_ptr(&marks) &= ~BIT(output->mark);
}

static void output_read(struct perf_event *event)
{
	/* It counts nothing. */
}

static void output_destroy(struct perf_event *event)
{
	kfree(event->pmu_private);
}

static int output_event_init(struct perf_event *event)
{
	struct output *output;

	if (event->attr.type != event->pmu->type)
		return -ENOENT;
	if (!event->attr.aux_output)
		return -EOPNOTSUPP;
	if (event->attr.freq)
		return -EINVAL;
	output = kzalloc(sizeof(*output), GFP_KERNEL);
	if (!output)
		return -ENOMEM;
	output->event = event;
	setup_timer(&output->timer, output_tick);
	event->pmu_private = output;
	event->destroy = output_destroy;
	return 0;
}

static int output_match(struct perf_event *leader)
{
	return leader->pmu == &arm_spe;
}

static struct pmu output_pmu = {
	.module = THIS_MODULE,
	.capabilities = PERF_PMU_CAP_AUX_OUTPUT,
	.task_ctx_nr = perf_sw_context,
	.event_init = output_event_init,
	.add = output_add,
	.del = output_del,
	.start = output_start,
	.stop = output_stop,
	.read = output_read,
	.aux_output_match = output_match,
};

int register_output(void)
{
	report_mark = unexported("perf_report_aux_output_id");
	return perf_pmu_register(&output_pmu, "timer_into_aux", -1);
}

void unregister_output(void)
{
	perf_pmu_unregister(&output_pmu);
}
