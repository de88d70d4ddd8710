/* A thread renders pages and puts them into a queue, which another thread locks while it writes. */
#include <pthread.h>
#include <time.h>
#include <unistd.h>
static pthread_mutex_t queue = PTHREAD_MUTEX_INITIALIZER;
static volatile unsigned long sum;
static inline long cpu_us(void) {
    struct timespec time;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return time.tv_sec * 1000000 + time.tv_nsec / 1000;
}
__attribute__((noinline)) void render(void) {
    for (long end = cpu_us() + 5000; cpu_us() < end;)
        for (int i = 0; i < 9999; i++)
            sum = sum * 3 + 1;
}
__attribute__((noinline)) void put(void) {
    pthread_mutex_lock(&queue);
    sum++;
    pthread_mutex_unlock(&queue);
}
__attribute__((noinline)) void write_out(void) {
    usleep(WRITE_US);
    sum++;
}
static void *writer(void *unused) {
    for (int i = 0; i < 20; i++) {
        pthread_mutex_lock(&queue);
        write_out();
        pthread_mutex_unlock(&queue);
        usleep(1000);
    }
    return unused;
}
int main(void) {
    pthread_t thread;
    pthread_create(&thread, 0, writer, 0);
    for (int i = 0; i < 60; i++) {
        render();
        put();
    }
    return pthread_join(thread, 0);
}
