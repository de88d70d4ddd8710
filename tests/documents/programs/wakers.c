/* `writer` holds a mutex for 5 ms at a time, and feeds `reader` through a pipe. `logger` needs the mutex too. */
#define _GNU_SOURCE
#include <pthread.h>
#include <unistd.h>
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static int ends[2];
static volatile long sink;
static void work(int us) {
    for (int i = 0; i < us * 300; i++)
        sink += i;
}
static void *writer(void *none) {
    pthread_setname_np(pthread_self(), "writer");
    for (int i = 0; i < 100; i++) {
        pthread_mutex_lock(&mutex);
        work(5000);
        pthread_mutex_unlock(&mutex);
        if (write(ends[1], "x", 1) != 1)
            break;
        usleep(100);
    }
    close(ends[1]);
    return none;
}
static void *reader(void *none) {
    char one;
    pthread_setname_np(pthread_self(), "reader");
    while (read(ends[0], &one, 1) == 1)
        work(100);
    return none;
}
static void *logger(void *none) {
    pthread_setname_np(pthread_self(), "logger");
    for (int i = 0; i < 100; i++) {
        pthread_mutex_lock(&mutex);
        work(50);
        pthread_mutex_unlock(&mutex);
        usleep(700);
    }
    return none;
}
int main(void) {
    pthread_t threads[3];
    void *(*starts[3])(void *) = {writer, reader, logger};
    if (pipe(ends))
        return 1;
    for (int i = 0; i < 3; i++)
        pthread_create(&threads[i], 0, starts[i], 0);
    for (int i = 0; i < 3; i++)
        pthread_join(threads[i], 0);
}
