// Time in the kernel and in the code that it lends to every process.
#include <fcntl.h>
#include <time.h>
#include <unistd.h>

static char bytes[1 << 20];

__attribute__((noinline)) long fetch(int file) {
    long got = read(file, bytes, sizeof bytes); // mark fetch
    return got + bytes[0];
}

__attribute__((noinline)) long look(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now); // mark look
    return now.tv_nsec;
}

int main(void) {
    int file = open("/dev/zero", O_RDONLY);
    long sum = 0;
    for (int i = 0; i < 4000; i++)
        sum += fetch(file); // mark main fetch
    for (int i = 0; i < 6000000; i++)
        sum += look(); // mark main look
    return sum == 42;
}
