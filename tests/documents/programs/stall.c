/* `server` sleeps and works in turns. Two threads named `cruncher` compute. */
#define _GNU_SOURCE
#include <pthread.h>
#include <time.h>
#include <unistd.h>
static volatile long sink;
static volatile int is_done;
static void *cruncher(void *none) {
    pthread_setname_np(pthread_self(), "cruncher");
    while (!is_done)
        sink++;
    return none;
}
static long cpu_us(void) {
    struct timespec time;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return time.tv_sec * 1000000 + time.tv_nsec / 1000;
}
static void *server(void *none) {
    pthread_setname_np(pthread_self(), "server");
    for (int i = 0; i < 150; i++) {
        usleep(2000);
        for (long end = cpu_us() + 30; cpu_us() < end;)
            sink++;
    }
    is_done = 1;
    return none;
}
int main(void) {
    pthread_t threads[3];
    for (int i = 0; i < 3; i++)
        pthread_create(&threads[i], 0, i ? cruncher : server, 0);
    for (int i = 0; i < 3; i++)
        pthread_join(threads[i], 0);
}
