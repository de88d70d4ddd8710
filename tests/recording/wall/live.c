/* Threads with known waits. Prints for each its name, thread id, and the elapsed and CPU time of its function in
 * nanoseconds. With an argument, both threads wait forever, one of them for work. */
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <time.h>
#include <unistd.h>
#define NOINLINE __attribute__((noinline, noclone, noipa))
enum { TICKS = 100, TICK_NS = 15000000 };
typedef unsigned long long ns;
static pthread_mutex_t held[TICKS];
static int ends[2];
static ns now(clockid_t clock) { struct timespec t; clock_gettime(clock, &t); return t.tv_sec * 1000000000ull + t.tv_nsec; }
static void pass(ns time) { struct timespec t = {time / 1000000000, time % 1000000000}; while (nanosleep(&t, &t) && errno == EINTR); }
static void spin(ns cpu) { ns end = now(CLOCK_THREAD_CPUTIME_ID) + cpu; while (now(CLOCK_THREAD_CPUTIME_ID) < end); }
NOINLINE void f_sleep(void) { for (int i = 0; i < TICKS; i++) pass(TICK_NS); }
NOINLINE void f_mutex(void) { for (int i = 0; i < TICKS; i++) pthread_mutex_lock(&held[i]); }
NOINLINE void f_pipe(void) { char c; for (int i = 0; i < TICKS; i++) if (read(ends[0], &c, 1) != 1) exit(2); }
NOINLINE void f_half(void) { for (int i = 0; i < TICKS / 2; i++) { spin(TICK_NS / 2); pass(TICK_NS / 2); } }
static struct mode { const char *name; void (*work)(void); pthread_t thread; int tid; ns elapsed, cpu; } modes[] = {
    {.name = "sleep", .work = f_sleep}, {.name = "mutex", .work = f_mutex}, {.name = "pipe", .work = f_pipe},
    {.name = "half", .work = f_half},
};
enum { MODES = sizeof modes / sizeof *modes };
static void *run(void *mode) {
    struct mode *m = mode;
    m->tid = gettid();
    pthread_setname_np(pthread_self(), m->name);
    m->elapsed = -now(CLOCK_MONOTONIC);
    m->cpu = -now(CLOCK_THREAD_CPUTIME_ID);
    m->work();
    m->cpu += now(CLOCK_THREAD_CPUTIME_ID);
    m->elapsed += now(CLOCK_MONOTONIC);
    return NULL;
}
NOINLINE void f_work(void) { struct epoll_event e; for (int set = epoll_create1(0);;) epoll_wait(set, &e, 1, 50); }
static void *idle(void *none) { f_work(); return none; }
int main(int argc, char **argv) {
    (void)argv;
    if (argc > 1) {
        pthread_t thread;
        pthread_create(&thread, NULL, idle, NULL);
        return pthread_join(thread, NULL);
    }
    if (pipe(ends)) return 5;
    for (int i = 0; i < TICKS; i++) { pthread_mutex_init(&held[i], NULL); pthread_mutex_lock(&held[i]); }
    for (int i = 0; i < MODES; i++) pthread_create(&modes[i].thread, NULL, run, &modes[i]);
    for (int i = 0; i < TICKS; i++) {
        pass(TICK_NS);
        pthread_mutex_unlock(&held[i]);
        if (write(ends[1], "", 1) != 1) return 6;
    }
    for (int i = 0; i < MODES; i++) pthread_join(modes[i].thread, NULL);
    for (int i = 0; i < MODES; i++) printf("%s %d %llu %llu\n", modes[i].name, modes[i].tid, modes[i].elapsed, modes[i].cpu);
}
