/* Functions with known shares of the time. shares.s is this file compiled for x86-64 by gcc -O1 -g -S in /src, so that
   every machine has the same instructions. */
#include <stdlib.h>
static volatile long sink;
static inline __attribute__((always_inline)) long weigh(long i) {
    return i * 31 ^ i >> 3;
}
__attribute__((noinline)) void fifty(long n) {
    for (long i = 0; i < n; i++)
        sink += weigh(i);
}
__attribute__((noinline)) void thirty(long n) {
    for (long i = 0; i < n; i++)
        sink += weigh(i);
}
__attribute__((noinline)) void twenty(long n) {
    for (long i = 0; i < n; i++)
        sink += weigh(i);
}
int main(int argc, char **argv) {
    long of_fifty = argc > 2 ? atol(argv[1]) : 50, of_thirty = argc > 2 ? atol(argv[2]) : 30;
    for (int turn = 0; turn < 4000; turn++) {
        fifty(of_fifty * 1000);
        thirty(of_thirty * 1000);
        twenty(20000);
    }
}
