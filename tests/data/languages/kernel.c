// Time in the kernel and in the code that it lends to every process.
#include <fcntl.h>
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
    for_cpu_ms(200)
        sum += fetch(file); // mark main fetch
    for_cpu_ms(400) for (long i = loops(2000); i > 0; i--)
        sum += look(); // mark main look
    return sum == 42;
}
