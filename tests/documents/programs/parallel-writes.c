/* Threads map and unmap memory, and write to one file, at the same time. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
enum { ROUNDS = 1000, SIZE = 1 << 20 };
static int file;
static void *mapper(void *none) {
    pthread_setname_np(pthread_self(), "mapper");
    for (int i = 0; i < ROUNDS; i++) {
        char *memory = mmap(0, SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        memset(memory, i, SIZE / 8);
        munmap(memory, SIZE);
    }
    return none;
}
static void *writer(void *none) {
    static char block[1 << 18];
    pthread_setname_np(pthread_self(), "writer");
    for (int i = 0; i < ROUNDS / 20; i++)
        if (pwrite(file, block, sizeof block, 0) < 0)
            abort();
    return none;
}
int main(void) {
    pthread_t threads[6];
    file = open("writes.log", O_CREAT | O_WRONLY, 0600);
    for (int i = 0; i < 6; i++)
        pthread_create(&threads[i], 0, i % 3 ? mapper : writer, 0);
    for (int i = 0; i < 6; i++)
        pthread_join(threads[i], 0);
}
