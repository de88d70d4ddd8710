// A program whose functions call themselves and each other, for callgrind.
#include <stdlib.h>

static volatile long sum;

static void burn(int n) {
    for (int i = 0; i < n; i++) sum += i;
}

static int fib(int n) {
    burn(5);
    return n < 2 ? n : fib(n - 1) + fib(n - 2);
}

static int odd(int n);

static int even(int n) {
    burn(20);
    return n == 0 ? 1 : odd(n - 1);
}

static int odd(int n) {
    burn(10);
    return n == 0 ? 0 : even(n - 1);
}

static int compare(const void *a, const void *b) {
    burn(2);
    return *(const int *)a - *(const int *)b;
}

static void sorted(void) {
    int list[300];
    for (int i = 0; i < 300; i++) list[i] = i * 7919 % 300;
    qsort(list, 300, sizeof list[0], compare);
}

static void even_numbers(void) {
    for (int i = 0; i < 9; i++) sum += even(2 * i);
}

int main(void) {
    sorted();
    even_numbers();
    sum += fib(10);
    return 0;
}
