/* Threads that wait, and who ends their waits: `releaser` unlocks a mutex and writes to a pipe when the thread that
 * needs them is blocked, a timer ends each sleep. Then two real-time threads take turns on one CPU; without permission
 * for that, prints "no real-time". Prints the name and the id of each thread. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
enum { ROUNDS = 60, TURNS = 400 };
static pthread_mutex_t held[ROUNDS];
static pthread_barrier_t start;
static int ends[2];
static volatile int tids[2];
static int is_real_time = 1;
static int name(const char *text) {
    int tid = syscall(SYS_gettid);
    prctl(PR_SET_NAME, text);
    printf("%s %d\n", text, tid);
    return tid;
}
/* Waits until the thread is blocked. */
static void await(volatile int *tid) {
    char path[64], text[256];
    while (!*tid) sched_yield();
    sprintf(path, "/proc/self/task/%d/stat", *tid);
    for (;;) {
        int file = open(path, O_RDONLY);
        ssize_t n = file < 0 ? 0 : read(file, text, sizeof text - 1);
        close(file);
        text[n > 0 ? n : 0] = 0;
        char *state = strrchr(text, ')');
        if (state && state[2] == 'S') return;
        sched_yield();
    }
}
static void *mutex(void *x) {
    tids[0] = name("mutex");
    for (int i = 0; i < ROUNDS; i++) pthread_mutex_lock(&held[i]);
    return x;
}
static void *reads(void *x) {
    char c;
    tids[1] = name("pipe");
    for (int i = 0; i < ROUNDS; i++) if (read(ends[0], &c, 1) != 1) exit(2);
    return x;
}
static void *releaser(void *x) {
    name("releaser");
    for (int i = 0; i < ROUNDS; i++) pthread_mutex_lock(&held[i]);
    pthread_barrier_wait(&start);
    for (int i = 0; i < ROUNDS; i++) {
        await(&tids[0]);
        pthread_mutex_unlock(&held[i]);
        await(&tids[1]);
        if (write(ends[1], "x", 1) != 1) exit(2);
    }
    return x;
}
static void *sleeps(void *x) {
    name("sleep");
    for (int i = 0; i < ROUNDS; i++) nanosleep(&(struct timespec){0, 1000000}, 0);
    return x;
}
static void *turns(void *text) {
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(0, &set);
    struct sched_param first = {1};
    if (sched_setaffinity(0, sizeof set, &set) || sched_setscheduler(0, SCHED_FIFO, &first)) is_real_time = 0;
    name(text);
    pthread_barrier_wait(&start);
    for (int i = 0; i < TURNS && is_real_time; i++) {
        struct timespec a, b;
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &a);
        do clock_gettime(CLOCK_THREAD_CPUTIME_ID, &b); while ((b.tv_sec - a.tv_sec) * 1000000000 + b.tv_nsec - a.tv_nsec < 50000);
        sched_yield();
    }
    return 0;
}
int main(void) {
    pthread_t all[6];
    if (pipe(ends)) return 2;
    for (int i = 0; i < ROUNDS; i++) pthread_mutex_init(&held[i], 0);
    pthread_barrier_init(&start, 0, 2);
    pthread_create(&all[0], 0, releaser, 0);
    pthread_barrier_wait(&start);
    pthread_create(&all[1], 0, mutex, 0);
    pthread_create(&all[2], 0, reads, 0);
    pthread_create(&all[3], 0, sleeps, 0);
    for (int i = 0; i < 4; i++) pthread_join(all[i], 0);
    pthread_create(&all[4], 0, turns, "first");
    pthread_create(&all[5], 0, turns, "second");
    for (int i = 4; i < 6; i++) pthread_join(all[i], 0);
    if (!is_real_time) puts("no real-time");
    return 0;
}
