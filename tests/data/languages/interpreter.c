// What interpreters look like to a profiler: a function that runs the program, known by its name (-DEVALUATOR=…), and functions that
// it calls. Those of the program are nowhere.
__attribute__((noinline)) static long add(long sum, long price) {
    for (volatile long i = 0; i < price; i = i + 1) sum += i;
    return sum;
}

__attribute__((noinline)) long EVALUATOR(long ms) {
    long sum = 0;
    for_cpu_ms(ms) sum ^= add(sum, loops(100000));
    return sum;
}

int main(void) {
    return EVALUATOR(300) == 42; // milliseconds
}
