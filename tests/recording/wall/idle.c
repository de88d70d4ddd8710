/* Threads that wait for a lock, or for work. Each thread prints its name, thread id, and the elapsed and CPU time of
 * its waits in nanoseconds. The argument selects what they wait for: a mutex, a semaphore that is used as a lock, or
 * jobs that the main thread announces by a condition variable or a semaphore. */
#define _GNU_SOURCE
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#define NOINLINE __attribute__((noinline, noclone, noipa))
enum { THREADS = 3, ROUNDS = 10 };
typedef unsigned long long ns;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t more = PTHREAD_COND_INITIALIZER;
static sem_t semaphore;
static int is_semaphore, jobs, is_over;
static ns now(clockid_t clock) { struct timespec t; clock_gettime(clock, &t); return t.tv_sec * 1000000000ull + t.tv_nsec; }
NOINLINE void lock(void) { if (is_semaphore) sem_wait(&semaphore); else pthread_mutex_lock(&mutex); }
NOINLINE void unlock(void) { if (is_semaphore) sem_post(&semaphore); else pthread_mutex_unlock(&mutex); }
NOINLINE void take_job(void) {
    if (is_semaphore) { sem_wait(&semaphore); return; }
    pthread_mutex_lock(&mutex);
    while (!jobs && !is_over) pthread_cond_wait(&more, &mutex);
    if (jobs) jobs--;
    pthread_mutex_unlock(&mutex);
}
NOINLINE void add_job(void) {
    if (is_semaphore) { sem_post(&semaphore); return; }
    pthread_mutex_lock(&mutex);
    jobs++;
    pthread_cond_signal(&more);
    pthread_mutex_unlock(&mutex);
}
static void *holder(void *none) {
    pthread_setname_np(pthread_self(), "holder");
    for (int i = 0; i < ROUNDS; i++) { lock(); usleep(30000); unlock(); usleep(3000); }
    return none;
}
static void wait_with(const char *name, void (*wait)(void), void (*then)(void)) {
    ns elapsed = 0, cpu = 0;
    pthread_setname_np(pthread_self(), name);
    for (int i = 0; i < ROUNDS; i++) {
        elapsed -= now(CLOCK_MONOTONIC), cpu -= now(CLOCK_THREAD_CPUTIME_ID);
        wait();
        cpu += now(CLOCK_THREAD_CPUTIME_ID), elapsed += now(CLOCK_MONOTONIC);
        then();
        usleep(500);
    }
    printf("%s %d %llu %llu\n", name, gettid(), elapsed, cpu);
}
static void *waiter(void *none) { wait_with("waiter", lock, unlock); return none; }
static void nothing(void) {}
static void *worker(void *none) { wait_with("worker", take_job, nothing); return none; }
int main(int argc, char **argv) {
    pthread_t threads[THREADS + 1];
    int is_pool = argc > 2 && !strcmp(argv[2], "pool");
    is_semaphore = !strcmp(argv[1], "semaphore");
    sem_init(&semaphore, 0, !is_pool);
    if (is_pool) pthread_create(threads, NULL, worker, NULL);
    else pthread_create(threads, NULL, holder, NULL);
    usleep(1000);
    for (int i = 1; i <= THREADS; i++) pthread_create(threads + i, NULL, is_pool ? worker : waiter, NULL);
    for (int i = 0; is_pool && i < (THREADS + 1) * ROUNDS; i++) { usleep(5000); add_job(); }
    is_over = 1;
    pthread_cond_broadcast(&more);
    for (int i = 0; i <= THREADS; i++) pthread_join(threads[i], NULL);
}
