// A program whose threads run and wait, for the picture of a flame graph with waiting time.
#include <pthread.h>
#include <unistd.h>

static pthread_mutex_t cache = PTHREAD_MUTEX_INITIALIZER;
static volatile unsigned long sink;

static __attribute__((noinline)) void parse(long n) {
    for (long i = 0; i < n * 100000; i++) sink = sink * 31 + i;
}

static __attribute__((noinline)) void write_journal(void) {
    usleep(8000);
    sink++;
}

static __attribute__((noinline)) void flush_cache(void) {
    pthread_mutex_lock(&cache);
    write_journal();
    pthread_mutex_unlock(&cache);
    usleep(4000);
}

static __attribute__((noinline)) void look_up(void) {
    pthread_mutex_lock(&cache);
    parse(2);
    pthread_mutex_unlock(&cache);
}

static __attribute__((noinline)) void serve_request(int from) {
    char request;
    if (read(from, &request, 1) == 1) {
        look_up();
        parse(30);
    }
}

static void *flusher(void *end) {
    while (!*(volatile int *)end) flush_cache();
    return 0;
}

static void *worker(void *pipe) {
    for (int i = 0; i < 60; i++) serve_request(*(int *)pipe);
    return 0;
}

int main(void) {
    int requests[2], end = 0;
    pthread_t threads[3];
    if (pipe(requests)) return 1;
    pthread_create(&threads[2], 0, flusher, &end);
    for (int i = 0; i < 2; i++) pthread_create(&threads[i], 0, worker, requests);
    for (int i = 0; i < 120; i++) {
        usleep(6000);
        if (write(requests[1], "x", 1) != 1) return 1;
    }
    for (int i = 0; i < 2; i++) pthread_join(threads[i], 0);
    end = 1;
    return pthread_join(threads[2], 0);
}
