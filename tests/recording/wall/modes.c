/* Eleven ways to wait, one thread each; with a second argument, only the seven that switch rarely. Prints for each
 * its name, thread id, and elapsed and CPU time in nanoseconds. The first argument is a file to write. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
#define NOINLINE __attribute__((noinline, noclone, noipa))
enum { TICKS = 40, TICK_NS = 15000000, BLOCK = 4096, BLOCKS = 2048 };
typedef unsigned long long ns;
static pthread_mutex_t held[TICKS], pool = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t more = PTHREAD_COND_INITIALIZER;
static int ticks, word, ends[3][2];
static const char *file;
static ns now(clockid_t clock) { struct timespec t; clock_gettime(clock, &t); return t.tv_sec * 1000000000ull + t.tv_nsec; }
static void pass(ns time) { struct timespec t = {time / 1000000000, time % 1000000000}; while (nanosleep(&t, &t) && errno == EINTR); }
static void spin(ns cpu) { ns end = now(CLOCK_THREAD_CPUTIME_ID) + cpu; while (now(CLOCK_THREAD_CPUTIME_ID) < end); }
static void pin(void) { cpu_set_t set; CPU_ZERO(&set); CPU_SET(0, &set); sched_setaffinity(0, sizeof set, &set); }
NOINLINE void f_sleep(void) { for (int i = 0; i < TICKS; i++) pass(TICK_NS); }
NOINLINE void f_mutex(void) { for (int i = 0; i < TICKS; i++) pthread_mutex_lock(&held[i]); }
NOINLINE void f_condition(void) {
    pthread_mutex_lock(&pool);
    while (ticks < TICKS) pthread_cond_wait(&more, &pool);
    pthread_mutex_unlock(&pool);
}
NOINLINE void f_pipe(void) { char c; for (int i = 0; i < TICKS; i++) if (read(ends[0][0], &c, 1) != 1) exit(2); }
NOINLINE void f_poll(void) {
    struct pollfd p = {ends[1][0], POLLIN, 0};
    char c;
    for (int i = 0; i < TICKS; i++) { poll(&p, 1, -1); if (read(ends[1][0], &c, 1) != 1) exit(2); }
}
NOINLINE void f_epoll(void) {
    int set = epoll_create1(0);
    struct epoll_event e = {.events = EPOLLIN};
    char c;
    epoll_ctl(set, EPOLL_CTL_ADD, ends[2][0], &e);
    for (int i = 0; i < TICKS; i++) { epoll_wait(set, &e, 1, -1); if (read(ends[2][0], &c, 1) != 1) exit(2); }
}
NOINLINE void f_futex(void) {
    for (int seen; (seen = __atomic_load_n(&word, __ATOMIC_SEQ_CST)) < TICKS;)
        syscall(SYS_futex, &word, FUTEX_WAIT, seen, NULL, NULL, 0);
}
NOINLINE void f_disk(void) {
    int fd = open(file, O_RDONLY | O_DIRECT);
    void *to = aligned_alloc(BLOCK, BLOCK);
    for (int i = 0; i < BLOCKS; i++) if (pread(fd, to, BLOCK, (off_t)(i * 7 % BLOCKS) * BLOCK) != BLOCK) exit(3);
    close(fd);
}
NOINLINE void f_fault(void) {
    int fd = open(file, O_RDONLY);
    volatile char sum = 0;
    posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
    char *map = mmap(NULL, (size_t)BLOCK * BLOCKS, PROT_READ, MAP_SHARED, fd, 0);
    madvise(map, (size_t)BLOCK * BLOCKS, MADV_RANDOM);
    for (int i = 0; i < BLOCKS; i++) sum += map[(size_t)(i * 7 % BLOCKS) * BLOCK];
    close(fd);
}
NOINLINE void f_cpu(void) { pin(); spin(300000000); }
NOINLINE void f_yield(void) { pin(); for (int i = 0; i < 400; i++) { spin(500000); sched_yield(); } }
struct mode { const char *name; void (*work)(void); pthread_t thread; int tid; ns begin, elapsed, cpu; } modes[] = {
    {.name = "sleep", .work = f_sleep}, {.name = "mutex", .work = f_mutex}, {.name = "condition", .work = f_condition},
    {.name = "pipe", .work = f_pipe}, {.name = "poll", .work = f_poll}, {.name = "epoll", .work = f_epoll},
    {.name = "futex", .work = f_futex}, {.name = "disk", .work = f_disk}, {.name = "fault", .work = f_fault},
    {.name = "cpu", .work = f_cpu}, {.name = "yield", .work = f_yield},
};
enum { MODES = sizeof modes / sizeof *modes, CALM = 7 };
static void *run(void *mode) {
    struct mode *m = mode;
    m->tid = gettid();
    m->work();
    m->elapsed = now(CLOCK_MONOTONIC) - m->begin;
    m->cpu = now(CLOCK_THREAD_CPUTIME_ID);
    return NULL;
}
int main(int argc, char **argv) {
    static char block[BLOCK] = "text";
    file = argv[1];
    int count = argc > 2 ? CALM : MODES;
    int fd = open(file, O_CREAT | O_RDWR | O_TRUNC, 0600);
    for (int i = 0; i < BLOCKS; i++) if (write(fd, block, BLOCK) != BLOCK) return 4;
    fsync(fd);
    close(fd);
    for (int i = 0; i < 3; i++) if (pipe(ends[i])) return 5;
    for (int i = 0; i < TICKS; i++) { pthread_mutex_init(&held[i], NULL); pthread_mutex_lock(&held[i]); }
    for (int i = 0; i < count; i++) {
        modes[i].begin = now(CLOCK_MONOTONIC);
        pthread_create(&modes[i].thread, NULL, run, &modes[i]);
    }
    for (int i = 0; i < TICKS; i++) {
        pass(TICK_NS);
        pthread_mutex_unlock(&held[i]);
        pthread_mutex_lock(&pool); ticks++; pthread_cond_signal(&more); pthread_mutex_unlock(&pool);
        for (int end = 0; end < 3; end++) if (write(ends[end][1], "", 1) != 1) return 6;
        __atomic_add_fetch(&word, 1, __ATOMIC_SEQ_CST);
        syscall(SYS_futex, &word, FUTEX_WAKE, 1, NULL, NULL, 0);
    }
    for (int i = 0; i < count; i++) {
        pthread_join(modes[i].thread, NULL);
        printf("%s %d %llu %llu\n", modes[i].name, modes[i].tid, modes[i].elapsed, modes[i].cpu);
    }
}
