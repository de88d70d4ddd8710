/* `server` sleeps and works in turns. Two threads named `cruncher` compute. */
#define _GNU_SOURCE
#include <pthread.h>
#include <unistd.h>
static volatile long sink;
static volatile int is_done;
static void *cruncher(void *none) {
    pthread_setname_np(pthread_self(), "cruncher");
    while (!is_done)
        sink++;
    return none;
}
static void *server(void *none) {
    pthread_setname_np(pthread_self(), "server");
    for (int i = 0; i < 150; i++) {
        usleep(2000);
        for (int j = 0; j < 10000; j++)
            sink += j;
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
