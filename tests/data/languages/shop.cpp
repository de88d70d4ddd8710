// A spin in a template's method that is inlined; each frame of the stack has a line of its own.
#include <cstdlib>
namespace shop {
template <typename T> struct Till {
    T sum = 0;
    inline __attribute__((always_inline)) void ring(T price) {
        for (volatile T i = 0; i < price; i = i + 1) sum += i; // mark ring
    }
};
__attribute__((noinline)) long serve(Till<long> &till, long price) {
    till.ring(price); // mark serve
    return till.sum;
}
}
__attribute__((noinline)) long day(long ms) {
    shop::Till<long> till;
    for_cpu_ms(ms)
        till.sum ^= shop::serve(till, loops(100000)); // mark day
    return till.sum;
}
int main(int count, char **words) {
    long sum = day(count > 1 ? atol(words[1]) : 500); // mark main
    return sum == 42;
}
