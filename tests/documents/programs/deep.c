/* main calls `mid`, which calls `leaf`, partly through itself. */
static volatile long sink;
#define WORK(parts) for (long i = 0; i < (parts) * 4000; i++) sink += i
__attribute__((noinline)) void leaf(void) { WORK(40); sink++; }
__attribute__((noinline)) void rec(int depth) {
    if (depth)
        rec(depth - 1);
    else
        leaf();
    sink++;
}
__attribute__((noinline)) void mid(void) { WORK(20); rec(3); sink++; }
__attribute__((noinline)) void other(void) { WORK(28); sink++; }
int main(void) {
    for (int turn = 0; turn < 2000; turn++) {
        mid();
        other();
    }
}
