// What CPython does under -X perf, for machines without a Python that can: it copies a few instructions that call on, once for each
// function, into memory that may be executed, and writes their places into /tmp/perf-PID.map (Python/perf_trampoline.c,
// Python/sysmodule.c: PyUnstable_WritePerfMapEntry). The interpreter between two trampolines is a C function here too.
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#if defined(__x86_64__)
// push rbp; mov rbp, rsp; call rdx; pop rbp; ret
static const unsigned char code[] = {0x55, 0x48, 0x89, 0xe5, 0xff, 0xd2, 0x5d, 0xc3};
#else
// stp x29, x30, [sp, -16]!; mov x29, sp; blr x2; ldp x29, x30, [sp], 16; ret
static const unsigned char code[] = {0xfd, 0x7b, 0xbf, 0xa9, 0xfd, 0x03, 0x00, 0x91, 0x40, 0x00, 0x3f, 0xd6,
                                     0xfd, 0x7b, 0xc1, 0xa8, 0xc0, 0x03, 0x5f, 0xd6};
#endif

typedef long evaluator(long, long);
typedef long trampoline(long, long, evaluator *);
static trampoline *of_serve, *of_day;

__attribute__((noinline)) static long evaluate_serve(long price, long sum) {
    for (volatile long i = 0; i < price; i = i + 1) sum += i; // mark evaluate
    return sum;
}

__attribute__((noinline)) static long evaluate_day(long ms, long sum) {
    for_cpu_ms(ms)
        sum ^= of_serve(loops(100000), sum, evaluate_serve); // mark day
    return sum;
}

static trampoline *make(FILE *map, char *arena, int number, const char *entry) {
    char *at = arena + 64 * number;
    memcpy(at, code, sizeof code);
    fprintf(map, "%lx %x %s\n", (unsigned long)at, (unsigned)sizeof code, entry);
    return (trampoline *)at;
}

int main(void) {
    char name[64];
    snprintf(name, sizeof name, "/tmp/perf-%d.map", getpid());
    FILE *map = fopen(name, "w");
    char *arena = mmap(0, 65536, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (!map || arena == MAP_FAILED) return 1;
    of_serve = make(map, arena, 0, "py::serve:/srv/shop.py");
    of_day = make(map, arena, 1, "py::day:/srv/shop.py");
    fclose(map);
    mprotect(arena, 65536, PROT_READ | PROT_EXEC);
    return of_day(600, 1, evaluate_day) == 42; // mark main
}
