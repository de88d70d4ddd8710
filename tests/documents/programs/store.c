/* Writes 200 entries, each safely on the disk. */
#include <fcntl.h>
#include <unistd.h>
static int file;
static volatile int done;
__attribute__((noinline)) void save(void) { fsync(file); done++; }
__attribute__((noinline)) void add_entry(void) {
    if (write(file, "an entry\n", 9) == 9)
        save();
    done++;
}
int main(void) {
    file = open("store.log", O_CREAT | O_WRONLY | O_APPEND, 0600);
    for (int i = 0; i < 200; i++)
        add_entry();
}
