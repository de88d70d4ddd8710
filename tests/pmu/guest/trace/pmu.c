// SPDX-License-Identifier: GPL-2.0
/*
 * arm_spe_0, a PMU with an AUX area, for machines without one.
 *
 *	perf_event_open, mmap ── a timer on the event's CPU ── record.c ──> AUX area ── PERF_RECORD_AUX
 *
 * To its users it is the PMU of the kernel's own driver for Arm's Statistical Profiling Extension: its name,
 * its files in sysfs, its attributes' bits, its records, when it wakes its reader up and when it stops for
 * want of room. But where hardware counts operations and takes one each `period`, a timer takes the one that
 * it interrupts, each `period` nanoseconds, which is the same at one operation a nanosecond. Code that runs
 * with interrupts off is found where they come back on.
 *
 * Beyond the driver it has what Intel PT's can: samples with a piece of the trace (attr.aux_sample_size),
 * being paused and resumed by another event's samples (attr.aux_action, from 6.13 on), and other events whose
 * samples go into the trace (attr.aux_output, output.c).
 */
#include <linux/capability.h>
#include <linux/cpumask.h>
#include <linux/device.h>
#include <linux/hrtimer.h>
#include <linux/kprobes.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/percpu.h>
#include <linux/perf_event.h>
#include <linux/random.h>
#include <linux/slab.h>
#include <linux/vmalloc.h>
#include <asm/irq_regs.h>
#include "trace.h"

/* What an event may ask for: bits of attr.config, the events of config1, the number in config2. */
#define CONFIG_TIMESTAMP	BIT_ULL(0)
#define CONFIG_PHYSICAL_ADDRESS BIT_ULL(1)
#define CONFIG_PHYSICAL_TIME	BIT_ULL(2)
#define CONFIG_JITTER		BIT_ULL(16)
#define CONFIG_BRANCHES		BIT_ULL(32)
#define CONFIG_LOADS		BIT_ULL(33)
#define CONFIG_STORES		BIT_ULL(34)
#define CONFIG_CLASSES		(CONFIG_BRANCHES | CONFIG_LOADS | CONFIG_STORES)
#define KNOWN_EVENTS		GENMASK_ULL(7, 1)
#define MIN_LATENCY		GENMASK_ULL(11, 0)

/* In event->hw.flags: who opened it may see which thread ran. */
#define MAY_SEE_CONTEXT 1

/* Older kernels have none of the pausing; nothing passes these flags there. */
#ifdef PERF_EF_PAUSE
#define CAPABILITIES	       (PERF_PMU_CAP_EXCLUSIVE | PERF_PMU_CAP_ITRACE | PERF_PMU_CAP_AUX_PAUSE)
#define is_paused(event)       READ_ONCE((event)->hw.aux_paused)
#else
#define CAPABILITIES	       (PERF_PMU_CAP_EXCLUSIVE | PERF_PMU_CAP_ITRACE)
#define PERF_EF_PAUSE	       0
#define PERF_EF_RESUME	       0
#define is_paused(event)       false
#endif

/* An AUX area. */
struct area {
	u8 *base;
	size_t size;
	bool snapshot;	/* is overwritten, and never full */
};

/*
 * A CPU's. The event that is on has its area open: perf_get_aux(&handle) is NULL while none is. All of it is
 * touched with interrupts off, on its own CPU.
 */
struct tracer {
	struct perf_output_handle handle;
	struct hrtimer timer;
	size_t position;	/* in the area: where the next record goes */
	size_t limit;		/* in the area: where to tell the reader */
};
static DEFINE_PER_CPU(struct tracer, tracers);

static size_t opened_at(struct tracer *tracer, struct area *area)
{
	return tracer->handle.head % area->size;
}

/*
 * How far the area may be filled before the reader hears of it: to a page's border, since hardware's limit is
 * one, and to the end of the area at the latest. 0 if there is no room.
 */
static size_t limit_of(struct perf_output_handle *handle, struct area *area)
{
	size_t start = handle->head % area->size;
	u64 limit = handle->head - start + area->size;

	/* A trace can only be read forwards: of two halves there is always one that is whole. */
	if (area->snapshot)
		return start < area->size / 2 ? area->size / 2 : area->size;
	limit = min_t(u64, limit, round_down(handle->head + handle->size, PAGE_SIZE));
	limit = min_t(u64, limit, round_up(handle->wakeup, PAGE_SIZE));
	return limit > handle->head ? start + (limit - handle->head) : 0;
}

static bool open_area(struct tracer *tracer, struct perf_event *event)
{
	struct area *area = perf_aux_output_begin(&tracer->handle, event);

	if (!area)
		return false; /* No area is mapped, or it is full to the last byte. */
	tracer->position = opened_at(tracer, area);
	tracer->limit = limit_of(&tracer->handle, area);
	if (tracer->limit)
		return true;
	/* The reader is woken up, the event disabled until it is enabled anew. */
	perf_aux_output_flag(&tracer->handle, PERF_AUX_FLAG_TRUNCATED);
	perf_aux_output_end(&tracer->handle, 0);
	return false;
}

static void close_area(struct tracer *tracer)
{
	struct area *area = perf_get_aux(&tracer->handle);
	size_t size = tracer->position - opened_at(tracer, area);

	if (area->snapshot)
		tracer->handle.head = tracer->position;
	perf_aux_output_end(&tracer->handle, size);
}

/* Whether the CPU is where the event asks for, before anything is decoded. */
bool wants_level(struct perf_event *event, struct pt_regs *regs)
{
	if (user_mode(regs))
		return !event->attr.exclude_user;
	/* An idle CPU executes nothing: only our timer woke it up. */
	return !event->attr.exclude_kernel && !is_idle_task(current);
}

/* The filters: of one of the classes, with all of the events, and as slow. */
static bool wants_operation(struct perf_event *event, const struct operation *op)
{
	static const u64 classes[] = {
		[BRANCH] = CONFIG_BRANCHES, [LOAD] = CONFIG_LOADS, [STORE] = CONFIG_STORES,
	};
	const struct perf_event_attr *attr = &event->attr;

	if (attr->config & CONFIG_CLASSES && !(attr->config & classes[op->class]))
		return false;
	return !(attr->config1 & ~op->events) && op->latency >= (attr->config2 & MIN_LATENCY);
}

/* Writes a record; false if that was the last one that there was room for. */
static bool write_record(struct tracer *tracer, struct perf_event *event, const struct operation *op)
{
	struct area *area = perf_get_aux(&tracer->handle);

	record_write(area->base + tracer->position, op, (struct record_options){
		.timestamp = event->attr.config & CONFIG_TIMESTAMP,
		.physical_address = event->attr.config & CONFIG_PHYSICAL_ADDRESS,
		.context = event->hw.flags & MAY_SEE_CONTEXT,
	});
	tracer->position += RECORD_SIZE;
	if (tracer->position < tracer->limit)
		return true;
	close_area(tracer);
	if (open_area(tracer, event))
		return true;
	event->hw.state = PERF_HES_STOPPED;
	return false;
}

static enum hrtimer_restart tick(struct hrtimer *timer)
{
	struct tracer *tracer = container_of(timer, struct tracer, timer);
	struct perf_event *event = tracer->handle.event;
	struct pt_regs *regs = get_irq_regs();
	struct operation op;

	if (!event)
		return HRTIMER_NORESTART;
	if (regs && wants_level(event, regs)) {
		operation_at(&op, regs);
		if (wants_operation(event, &op) && !write_record(tracer, event, &op))
			return HRTIMER_NORESTART;
	}
	/* From now on: what was done here is not part of the period. */
	rearm(timer, event);
	return HRTIMER_RESTART;
}

/* What another event of its group sampled; nothing while the traced one is off. */
void trace_into(struct perf_event *traced, const struct operation *op)
{
	struct tracer *tracer = this_cpu_ptr(&tracers);

	if (tracer->handle.event == traced && !is_paused(traced))
		write_record(tracer, traced, op);
}

ktime_t period_of(struct perf_event *event)
{
	/* Bounded at each use: PERF_EVENT_IOC_PERIOD changes it. */
	u64 period = clamp_t(u64, event->hw.sample_period, MIN_INTERVAL, U32_MAX);

	if (event->pmu == &arm_spe && event->attr.config & CONFIG_JITTER)
		period += get_random_u32() % 256;
	return ns_to_ktime(period);
}

static void run_timer(struct tracer *tracer, struct perf_event *event)
{
	hrtimer_start(&tracer->timer, period_of(event), HRTIMER_MODE_REL_PINNED_HARD);
}

static void tracer_start(struct perf_event *event, int flags)
{
	struct tracer *tracer = this_cpu_ptr(&tracers);

	if (flags & PERF_EF_RESUME) {
		if (tracer->handle.event == event)
			run_timer(tracer, event);
		return;
	}
	if (!open_area(tracer, event)) {
		event->hw.state = PERF_HES_STOPPED;
		return;
	}
	event->hw.state = 0;
	if (!is_paused(event))
		run_timer(tracer, event);
}

static void tracer_stop(struct perf_event *event, int flags)
{
	struct tracer *tracer = this_cpu_ptr(&tracers);

	if (tracer->handle.event != event)
		return; /* It stopped itself when there was no room. */
	/* Nothing that interrupts tick() stops an event, so there is nobody to wait for. */
	hrtimer_try_to_cancel(&tracer->timer);
	if (flags & PERF_EF_PAUSE)
		return;
	close_area(tracer);
	event->hw.state = PERF_HES_STOPPED | PERF_HES_UPTODATE;
}

static int tracer_add(struct perf_event *event, int flags)
{
	event->hw.state = PERF_HES_STOPPED | PERF_HES_UPTODATE;
	if (flags & PERF_EF_START) {
		tracer_start(event, PERF_EF_RELOAD);
		if (event->hw.state & PERF_HES_STOPPED)
			return -EINVAL;
	}
	return 0;
}

static void tracer_del(struct perf_event *event, int flags)
{
	tracer_stop(event, PERF_EF_UPDATE);
}

static void tracer_read(struct perf_event *event)
{
	/* A trace has no count. */
}

static int tracer_event_init(struct perf_event *event)
{
	const struct perf_event_attr *attr = &event->attr;

	if (attr->type != event->pmu->type)
		return -ENOENT;
	if (attr->exclude_idle || attr->config1 & ~KNOWN_EVENTS)
		return -EOPNOTSUPP;
	if (attr->freq)
		return -EINVAL;
	if (attr->config & (CONFIG_PHYSICAL_ADDRESS | CONFIG_PHYSICAL_TIME) && !perfmon_capable())
		return -EACCES;
	if (IS_ENABLED(CONFIG_PID_IN_CONTEXTIDR) && perfmon_capable())
		event->hw.flags |= MAY_SEE_CONTEXT;
	return 0;
}

static void *setup_area(struct perf_event *event, void **pages, int count, bool snapshot)
{
	struct area *area;
	struct page **list;
	int i;

	/* As the driver: a limit before the end, and two halves. */
	if (count < 2 || (snapshot && count % 2))
		return NULL;
	area = kzalloc(sizeof(*area), GFP_KERNEL);
	list = kcalloc(count, sizeof(*list), GFP_KERNEL);
	if (area && list) {
		for (i = 0; i < count; i++)
			list[i] = virt_to_page(pages[i]);
		area->base = vmap(list, count, VM_MAP, PAGE_KERNEL);
		area->size = (size_t)count << PAGE_SHIFT;
		area->snapshot = snapshot;
	}
	kfree(list);
	if (area && !area->base) {
		kfree(area);
		area = NULL;
	}
	return area;
}

static void free_area(void *aux)
{
	struct area *area = aux;

	vunmap(area->base);
	kfree(area);
}

/* The address of a function that the kernel's own drivers call, and modules cannot; NULL if there is none. */
void *unexported(const char *name)
{
	struct kprobe probe = { .symbol_name = name };

	if (register_kprobe(&probe))
		return NULL;
	unregister_kprobe(&probe);
	return probe.addr;
}

static typeof(perf_output_copy_aux) *copy_aux;

/* The last `size` bytes of trace, for another event's sample. */
static long snapshot_area(struct perf_event *event, struct perf_output_handle *sample, unsigned long size)
{
	struct tracer *tracer = this_cpu_ptr(&tracers);
	struct area *area = perf_get_aux(&tracer->handle);

	if (!area || !area->snapshot || tracer->handle.event != event)
		return 0;
	return copy_aux(&tracer->handle, sample, area->size + tracer->position - size, tracer->position);
}

PMU_FORMAT_ATTR(ts_enable, "config:0");
PMU_FORMAT_ATTR(pa_enable, "config:1");
PMU_FORMAT_ATTR(pct_enable, "config:2");
PMU_FORMAT_ATTR(jitter, "config:16");
PMU_FORMAT_ATTR(branch_filter, "config:32");
PMU_FORMAT_ATTR(load_filter, "config:33");
PMU_FORMAT_ATTR(store_filter, "config:34");
PMU_FORMAT_ATTR(event_filter, "config1:0-63");
PMU_FORMAT_ATTR(min_latency, "config2:0-11");

static struct attribute *format_attributes[] = {
	&format_attr_ts_enable.attr, &format_attr_pa_enable.attr, &format_attr_pct_enable.attr,
	&format_attr_jitter.attr, &format_attr_branch_filter.attr, &format_attr_load_filter.attr,
	&format_attr_store_filter.attr, &format_attr_event_filter.attr, &format_attr_min_latency.attr, NULL,
};
static const struct attribute_group format_group = { .name = "format", .attrs = format_attributes };

static ssize_t cpumask_show(struct device *dev, struct device_attribute *attr, char *buf)
{
	return sysfs_emit(buf, "%*pbl\n", cpumask_pr_args(cpu_online_mask));
}
static DEVICE_ATTR_RO(cpumask);
static struct attribute *cpumask_attributes[] = { &dev_attr_cpumask.attr, NULL };
static const struct attribute_group cpumask_group = { .attrs = cpumask_attributes };

#define CAPABILITY(name, format, value)									\
	static ssize_t cap_##name##_show(struct device *dev, struct device_attribute *attr, char *buf)	\
	{												\
		return sysfs_emit(buf, format "\n", value);						\
	}												\
	static struct device_attribute cap_##name = __ATTR(name, 0444, cap_##name##_show, NULL)

CAPABILITY(arch_inst, "%u", 1);	/* Instructions are sampled, not parts of them. */
CAPABILITY(ernd, "%u", 0);
CAPABILITY(count_size, "%u", 12);
CAPABILITY(min_interval, "%u", MIN_INTERVAL);
CAPABILITY(event_filter, "0x%llx", KNOWN_EVENTS);

static struct attribute *caps_attributes[] = {
	&cap_arch_inst.attr, &cap_ernd.attr, &cap_count_size.attr,
	&cap_min_interval.attr, &cap_event_filter.attr, NULL,
};
static const struct attribute_group caps_group = { .name = "caps", .attrs = caps_attributes };

static const struct attribute_group *groups[] = { &cpumask_group, &caps_group, &format_group, NULL };

struct pmu arm_spe = {
	.module = THIS_MODULE,
	.capabilities = CAPABILITIES,
	.attr_groups = groups,
	/* As the driver: the context that a thread's and a CPU's events may both be in. */
	.task_ctx_nr = perf_sw_context,
	.event_init = tracer_event_init,
	.add = tracer_add,
	.del = tracer_del,
	.start = tracer_start,
	.stop = tracer_stop,
	.read = tracer_read,
	.setup_aux = setup_area,
	.free_aux = free_area,
};

static int __init tracer_init(void)
{
	int cpu, error;

	for_each_possible_cpu(cpu)
		setup_timer(&per_cpu(tracers, cpu).timer, tick);
	copy_aux = unexported("perf_output_copy_aux");
	if (copy_aux)
		arm_spe.snapshot_aux = snapshot_area;
	error = perf_pmu_register(&arm_spe, "arm_spe_0", -1);
	if (error)
		return error;
	error = register_output();
	if (error)
		perf_pmu_unregister(&arm_spe);
	return error;
}
module_init(tracer_init);

static void __exit tracer_exit(void)
{
	unregister_output();
	perf_pmu_unregister(&arm_spe);
}
module_exit(tracer_exit);

MODULE_DESCRIPTION("A PMU with an AUX area: Arm SPE records from a timer");
MODULE_LICENSE("GPL");
