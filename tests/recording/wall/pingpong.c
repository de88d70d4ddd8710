/* Two threads that pass a byte to each other through pipes, so that each of them waits for the other all the time.
 * Prints for each thread: name, thread id, nanoseconds elapsed and on the CPU. */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>
enum { ROUNDS = 200000 };
typedef unsigned long long ns;
static ns now(clockid_t clock) { struct timespec t; clock_gettime(clock, &t); return t.tv_sec * 1000000000ull + t.tv_nsec; }
static int ping[2], pong[2];
static void give(int to) { char byte = 0; if (write(to, &byte, 1) != 1) exit(1); }
static void take(int from) { char byte; if (read(from, &byte, 1) != 1) exit(1); }
__attribute__((noinline)) void f_ping(void) { for (int i = 0; i < ROUNDS; i++) { give(ping[1]); take(pong[0]); } }
__attribute__((noinline)) void f_pong(void) { for (int i = 0; i < ROUNDS; i++) { take(ping[0]); give(pong[1]); } }
static void measure(const char *name, void (*run)(void)) {
    ns begin = now(CLOCK_MONOTONIC), cpu = now(CLOCK_THREAD_CPUTIME_ID);
    run();
    ns elapsed = now(CLOCK_MONOTONIC) - begin;
    printf("%s %d %llu %llu\n", name, gettid(), elapsed, now(CLOCK_THREAD_CPUTIME_ID) - cpu);
}
static void *second(void *none) { measure("pong", f_pong); return none; }
int main(void) {
    pthread_t thread;
    if (pipe(ping) || pipe(pong) || pthread_create(&thread, NULL, second, NULL)) return 1;
    measure("ping", f_ping);
    pthread_join(thread, NULL);
    return 0;
}
