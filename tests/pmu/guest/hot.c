/* hot LOOPS: 3 of 4 parts of the time in `hot_leaf` below `outer`, the rest in `cool_leaf` below `outer`.
 *
 * Each part is a loop of two instructions, as in work.c, so that it is known how many samples there must be.
 */
#include <stdlib.h>

#define LOOP(n) __asm__ volatile("1: subs %0, %0, #1\n\tb.ne 1b" : "+r"(n) : : "cc")

__attribute__((noinline)) unsigned long hot_leaf(unsigned long n)
{
	LOOP(n);
	return n + 1;
}

__attribute__((noinline)) unsigned long cool_leaf(unsigned long n)
{
	LOOP(n);
	return n + 2;
}

__attribute__((noinline)) unsigned long outer(unsigned long n)
{
	unsigned long r = 0;

	for (int i = 0; i < 10; i++) {
		r += hot_leaf(n / 40 * 3);
		r += cool_leaf(n / 40);
	}
	return r;
}

int main(int argc, char **argv)
{
	unsigned long n = argc > 1 ? strtoul(argv[1], 0, 10) : 1000000;

	return outer(n) == 0;
}
