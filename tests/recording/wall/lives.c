/* Threads that move between CPUs while they sleep, and processes and threads that live shortly. Prints what each
 * group of them waited by its own clocks: name, thread ids, elapsed and CPU time. */
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
enum { LIVES = 30, NAPS = 300 };
typedef unsigned long long ns;
static ns now(clockid_t clock) { struct timespec t; clock_gettime(clock, &t); return t.tv_sec * 1000000000ull + t.tv_nsec; }
static void nap(ns time) { struct timespec t = {0, time}; nanosleep(&t, NULL); }
struct life { int tid; ns begin, elapsed, cpu; };
static int is_asleep = 1;
static void end(struct life *life) {
    life->tid = gettid();
    life->elapsed = now(CLOCK_MONOTONIC) - life->begin;
    life->cpu = now(CLOCK_THREAD_CPUTIME_ID);
}
static void *sleeper(void *life) {
    struct life *mine = life;
    __atomic_store_n(&mine->tid, gettid(), __ATOMIC_SEQ_CST);
    for (int i = 0; i < NAPS; i++) nap(2000000);
    end(mine);
    __atomic_store_n(&is_asleep, 0, __ATOMIC_SEQ_CST);
    return NULL;
}
static void *short_life(void *life) { nap(20000000); end(life); return NULL; }
static void print(const char *name, struct life life) { printf("%s %d %llu %llu\n", name, life.tid, life.elapsed, life.cpu); }
int main(void) {
    struct life moved = {.begin = now(CLOCK_MONOTONIC)}, life;
    pthread_t thread;
    pthread_create(&thread, NULL, sleeper, &moved);
    while (!__atomic_load_n(&moved.tid, __ATOMIC_SEQ_CST)) nap(100000);
    for (int turn = 0; __atomic_load_n(&is_asleep, __ATOMIC_SEQ_CST); turn++) {
        cpu_set_t set;
        CPU_ZERO(&set);
        CPU_SET(turn % 2, &set);
        sched_setaffinity(moved.tid, sizeof set, &set);
        nap(700000);
    }
    pthread_join(thread, NULL);
    print("moved", moved);
    for (int i = 0; i < LIVES; i++) {
        life = (struct life){.begin = now(CLOCK_MONOTONIC)};
        pthread_create(&thread, NULL, short_life, &life);
        pthread_join(thread, NULL);
        print("thread", life);
        int ends[2];
        if (pipe(ends)) return 1;
        life = (struct life){.begin = now(CLOCK_MONOTONIC)};
        if (!fork()) {
            short_life(&life);
            _exit(write(ends[1], &life, sizeof life) != sizeof life);
        }
        if (read(ends[0], &life, sizeof life) != sizeof life) return 2;
        wait(NULL);
        close(ends[0]);
        close(ends[1]);
        print("process", life);
    }
}
