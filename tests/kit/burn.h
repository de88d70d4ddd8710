/* Work for a stated CPU time. The compiler includes this file before a test program (burn.rs). */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <time.h>

/* Scales a number of iterations by PMC_TEST_LOOP_SPEED. */
#define loops(n) ((n) * LOOP_PERCENT / 100 ?: 1)

/* Part of its caller, so that no profile shows it. */
#define BURN_INLINE static inline __attribute__((always_inline))

/* Returns the CPU time of this thread in nanoseconds. */
BURN_INLINE unsigned long long cpu_ns(void) {
    struct timespec time;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return time.tv_sec * 1000000000ull + time.tv_nsec;
}

/* Repeats the statement behind it until this thread has used at least this much more CPU time. The clock is a
 * system call: the statement should take 20 µs or more. */
#define for_cpu_us(us) for (unsigned long long cpu_end = cpu_ns() + (us) * 1000ull; cpu_ns() < cpu_end;)
#define for_cpu_ms(ms) for_cpu_us((ms) * 1000ull)

/* Uses this much more CPU time, almost all of it in user mode. */
BURN_INLINE void burn_ms(unsigned ms) {
    for_cpu_ms(ms) for (volatile long i = loops(20000); i > 0; i--);
}
