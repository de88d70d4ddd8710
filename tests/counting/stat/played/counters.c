/* A CPU's counters, played: preloaded into a program that counts, below its last line of code.
 *
 * An event of the hardware is opened as the kernel's own dummy event in its place, so that targets, groups, ids, inheritance and
 * starting at exec are the real kernel's. What a machine without the hardware cannot say is answered here: whether the group fits on
 * the counters (EINVAL, as x86_pmu.validate_group has it), and what was counted (read(2)). Events that share counters get a share of
 * the time and of the count. CPUs that this machine lacks are played by those that it has.
 *
 * PLAYED_COUNTERS names the file that says which counters and events there are; PLAYED_LOG one that gets a line for each
 * event that is read: descriptor, that of its leader, type, config, config1, CPU.
 *
 *   core TYPE                       the PMU of generic events
 *   general TYPE COUNT              so many general counters
 *   only TYPE MASK CONFIG COUNTERS  events with (config & MASK) == CONFIG go on these counters only: bit n the general counter n,
 *                                   bit 32+n the fixed counter n
 *   event TYPE CONFIG CONFIG1 VALUE what the event counts; an event that is not named is ENOENT, unless there is a
 *   default VALUE
 *   grows                           every reading finds as much again
 * Numbers are as strtoull(3) reads them.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <linux/perf_event.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#define MOST 4096
#define TIME 720720000ull /* enabled, nanoseconds: what many numbers divide */
#define FIXED(n) (1ull << (32 + (n)))

struct rule { uint64_t type, mask, config, counters; };
struct event { uint64_t type, config, config1, value; };
struct open_event {
    int used, leader; /* leader: its descriptor */
    uint64_t id, type, config, config1, value, format, reads;
    long pid, cpu;
};

static struct rule rules[MOST];
static struct event events[MOST];
static uint64_t general[64][2];
static int n_rules, n_events, n_general, has_default, grows;
static uint64_t default_value, core = 4;
static struct open_event opened[65536];
static int top; /* one more than the highest of them */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static FILE *log_file;
static long cpus;

static long (*real_syscall)(long, ...);
static ssize_t (*real_read)(int, void *, size_t);
static int (*real_close)(int);

/* Other libraries may read before it is our turn to be loaded. */
#define REAL(name) (real_##name ? (void)0 : find((void **)&real_##name, #name), real_##name)

static void find(void **real, const char *name) { *real = dlsym(RTLD_NEXT, name); }

__attribute__((constructor)) static void load(void) {
    cpus = sysconf(_SC_NPROCESSORS_ONLN);
    const char *path = getenv("PLAYED_COUNTERS");
    FILE *file = path ? fopen(path, "r") : NULL;
    if (!file) return;
    char line[512], word[16], n[4][64];
    while (fgets(line, sizeof line, file)) {
        int got = sscanf(line, "%15s %63s %63s %63s %63s", word, n[0], n[1], n[2], n[3]) - 1;
        uint64_t v[4] = {0};
        for (int i = 0; i < got; i++) v[i] = strtoull(n[i], NULL, 0);
        if (got < 0 || word[0] == '#') continue;
        if (!strcmp(word, "core")) core = v[0];
        else if (!strcmp(word, "general")) memcpy(general[n_general++], v, sizeof general[0]);
        else if (!strcmp(word, "only")) rules[n_rules++] = (struct rule){v[0], v[1], v[2], v[3]};
        else if (!strcmp(word, "event")) events[n_events++] = (struct event){v[0], v[1], v[2], v[3]};
        else if (!strcmp(word, "default")) has_default = 1, default_value = v[0];
        else if (!strcmp(word, "grows")) grows = 1;
        else fprintf(stderr, "played counters: what is `%s`?\n", word), abort();
    }
    fclose(file);
    const char *to = getenv("PLAYED_LOG");
    log_file = to ? fopen(to, "ae") : NULL;
}

static int is_played(uint64_t type) {
    return type != PERF_TYPE_SOFTWARE && type != PERF_TYPE_TRACEPOINT && type != PERF_TYPE_BREAKPOINT;
}

/* The PMU that counts it. */
static uint64_t unit(uint64_t type, uint64_t config) {
    if (type != PERF_TYPE_HARDWARE && type != PERF_TYPE_HW_CACHE) return type;
    return config >> 32 ? config >> 32 : core;
}

static int is_slots(const struct open_event *e) { return e->type == core && e->config == 0x400; }

/* topdown-retiring and its sisters: parts of a register that belongs to the slots, on no counter of their own. */
static int is_share(const struct open_event *e) { return e->type == core && (e->config & ~0x700ull) == 0x8000; }

/* The counters that it may be on; all bits: it needs none. */
static uint64_t counters(const struct open_event *e) {
    uint64_t count = 0;
    if (!is_played(e->type) || is_share(e)) return ~0ull;
    uint64_t type = unit(e->type, e->config);
    for (int i = 0; i < n_general; i++)
        if (general[i][0] == type) count = general[i][1];
    if (!count) return ~0ull;
    for (int i = 0; i < n_rules; i++)
        if (rules[i].type == e->type && (e->config & rules[i].mask) == rules[i].config) return rules[i].counters;
    return (1ull << count) - 1;
}

/* Whether all of them can be on counters at once: a matching, by augmenting paths. */
static int place(int i, const uint64_t *may, int *on, uint64_t *tried) {
    for (int c = 0; c < 64; c++) {
        if (!(may[i] >> c & 1) || *tried >> c & 1) continue;
        *tried |= 1ull << c;
        if (on[c] < 0 || place(on[c], may, on, tried)) return on[c] = i, 1;
    }
    return 0;
}

static int fits(const uint64_t *may, int n) {
    int on[64];
    memset(on, -1, sizeof on);
    for (int i = 0; i < n; i++) {
        uint64_t tried = 0;
        if (may[i] != ~0ull && !place(i, may, on, &tried)) return 0;
    }
    return 1;
}

static int gather(int leader, uint64_t type, uint64_t *may, int n) {
    for (int fd = 0; fd < top && n < 256; fd++)
        if (opened[fd].used && opened[fd].leader == leader && unit(opened[fd].type, opened[fd].config) == type)
            may[n++] = counters(&opened[fd]);
    return n;
}

/* In how many turns the groups of this place and PMU take the counters: first fit. */
static uint64_t turns(const struct open_event *own) {
    static uint64_t may[64][256];
    int n[64] = {0}, passes = 0;
    uint64_t type = unit(own->type, own->config);
    for (int fd = 0; fd < top; fd++) {
        struct open_event *e = &opened[fd];
        if (!e->used || e->leader != fd || e->pid != own->pid || e->cpu != own->cpu) continue;
        uint64_t one[256];
        int size = gather(fd, type, one, 0), pass = 0;
        for (; size && pass < 63; pass++) {
            memcpy(may[pass] + n[pass], one, size * sizeof *one);
            if (n[pass] + size < 256 && fits(may[pass], n[pass] + size)) {
                n[pass] += size;
                if (pass >= passes) passes = pass + 1;
                break;
            }
        }
    }
    return passes ? passes : 1;
}

static int refuse(int error) { return errno = error, -1; }

static long open_event(struct perf_event_attr *attr, long pid, long cpu, long group, long flags) {
    struct open_event own = {1, -1, 0, attr->type, attr->config, attr->config1, 0, attr->read_format, 0, pid, cpu};
    union { struct perf_event_attr attr; char bytes[512]; } in_place = {0};
    if (attr->size > sizeof in_place) return refuse(E2BIG);
    memcpy(&in_place, attr, attr->size);
    if (cpu >= 0) cpu %= cpus;
    if (is_played(attr->type)) {
        int known = has_default;
        own.value = default_value;
        for (int i = 0; i < n_events; i++)
            if (events[i].type == attr->type && events[i].config == attr->config && events[i].config1 == attr->config1)
                known = 1, own.value = events[i].value;
        if (!known) return refuse(ENOENT);
        uint64_t may[256];
        int n = 0;
        uint64_t type = unit(attr->type, attr->config);
        if (group >= 0) {
            for (int fd = 0; fd < top; fd++)
                if (opened[fd].used && opened[fd].leader == group && is_played(opened[fd].type)
                    && unit(opened[fd].type, opened[fd].config) != type) return refuse(EINVAL);
            n = gather(group, type, may, 0);
        }
        if (is_share(&own) && (group < 0 || !is_slots(&opened[group]))) return refuse(EINVAL);
        may[n++] = counters(&own);
        if (!fits(may, n)) return refuse(EINVAL);
        in_place.attr.type = PERF_TYPE_SOFTWARE;
        in_place.attr.config = PERF_COUNT_SW_DUMMY;
        in_place.attr.config1 = in_place.attr.config2 = 0;
        in_place.attr.precise_ip = 0;
        if (in_place.attr.size > PERF_ATTR_SIZE_VER7) in_place.attr.size = PERF_ATTR_SIZE_VER7;
    }
    long fd = REAL(syscall)(SYS_perf_event_open, &in_place, pid, cpu, group, flags);
    if (fd < 0 || fd >= 65536) return fd;
    own.leader = group >= 0 ? group : fd;
    ioctl(fd, PERF_EVENT_IOC_ID, &own.id);
    opened[fd] = own;
    top = fd >= top ? fd + 1 : top;
    return fd;
}

long syscall(long number, ...) {
    va_list list;
    long a[6];
    va_start(list, number);
    for (int i = 0; i < 6; i++) a[i] = va_arg(list, long);
    va_end(list);
    if (number != SYS_perf_event_open) return REAL(syscall)(number, a[0], a[1], a[2], a[3], a[4], a[5]);
    pthread_mutex_lock(&lock);
    long fd = open_event((struct perf_event_attr *)a[0], (int)a[1], (int)a[2], (int)a[3], a[4]);
    pthread_mutex_unlock(&lock);
    return fd;
}

/* What one event has counted, if it was enabled at all. */
static void tell(struct open_event *e, uint64_t parts, uint64_t *value) {
    *value = is_played(e->type) ? e->value / parts * (grows ? e->reads : 1) : *value / parts;
}

static void tell_log(int fd) {
    struct open_event *e = &opened[fd];
    if (!log_file) return;
    fprintf(log_file, "%d %d %llu %#llx %#llx %ld\n", fd, e->leader, (unsigned long long)e->type, (unsigned long long)e->config,
            (unsigned long long)e->config1, e->cpu);
    fflush(log_file);
}

ssize_t read(int fd, void *to, size_t size) {
    ssize_t got = REAL(read)(fd, to, size);
    if (fd < 0 || fd >= 65536 || got < 24) return got;
    pthread_mutex_lock(&lock);
    struct open_event *own = &opened[fd];
    uint64_t *words = to, format = own->format;
    int has_times = (format & 3) == 3, is_group = !!(format & PERF_FORMAT_GROUP);
    uint64_t *times = words + 1;
    if (own->used && has_times && times[0] && times[1]) {
        int hardware = is_played(own->type);
        struct open_event *of = own;
        for (int other = 0; other < top && !hardware; other++)
            if (opened[other].used && opened[other].leader == fd && is_played(opened[other].type))
                of = &opened[other], hardware = 1;
        uint64_t parts = hardware ? turns(of) : 1;
        for (int other = 0; other < top; other++)
            if (opened[other].used && (other == fd || (is_group && opened[other].leader == fd)) && !opened[other].reads++)
                tell_log(other);
        if (hardware) {
            times[0] = TIME * (grows ? own->reads : 1);
            times[1] = times[0] / parts;
        }
        int step = 1 + !!(format & PERF_FORMAT_ID) + !!(format & PERF_FORMAT_LOST);
        if (!is_group) tell(own, parts, words);
        for (uint64_t i = 0; is_group && i < words[0]; i++)
            for (int other = 0; other < top; other++)
                if (opened[other].used && opened[other].leader == fd && opened[other].id == words[3 + i * step + 1])
                    tell(&opened[other], parts, &words[3 + i * step]);
    }
    pthread_mutex_unlock(&lock);
    return got;
}

int close(int fd) {
    if (fd >= 0 && fd < 65536 && opened[fd].used) {
        pthread_mutex_lock(&lock);
        opened[fd].used = 0;
        pthread_mutex_unlock(&lock);
    }
    return REAL(close)(fd);
}
