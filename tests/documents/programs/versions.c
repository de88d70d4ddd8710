/* Two versions of a program: `changed` does TURNS parts of work, `same` always 100. */
static volatile long sink;
static void work(long parts) {
    for (long i = 0; i < parts * 600000; i++)
        sink += i;
}
__attribute__((noinline)) void changed(void) { work(TURNS); sink++; }
__attribute__((noinline)) void same(void) { work(100); sink++; }
int main(void) {
    changed();
    same();
}
