/* A measured program: says when it began and ended, and uses 50 ms of CPU time in each of two
 * functions, and 20 ms in the kernel. Status 7. */
#include <fcntl.h>
#include <unistd.h>

volatile unsigned long sink;

__attribute__((noinline)) static void burn_left(long n) {
    while (n-- > 0) sink += n;
}

__attribute__((noinline)) static void burn_right(long n) {
    while (n-- > 0) sink ^= n;
}

static void burn_kernel(int zeros) {
    static char buffer[1 << 20];
    if (read(zeros, buffer, sizeof buffer) < 0) _exit(1);
}

static void note(const char *name) {
    int file = open(name, O_CREAT | O_WRONLY, 0600);
    if (write(file, "x", 1) != 1) _exit(1);
    close(file);
}

int main(void) {
    struct timespec pause = { 0, 2000000 };
    int zeros = open("/dev/zero", O_RDONLY);
    note("begun");
    for (int i = 0; i < 20; i++) {
        for_cpu_us(2500) burn_left(loops(50000));
        for_cpu_us(2500) burn_right(loops(50000));
        for_cpu_ms(1) burn_kernel(zeros);
        if (i % 8 == 0) nanosleep(&pause, 0);
    }
    note("done");
    return 7;
}
