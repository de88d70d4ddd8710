/* Writes 100 lines to a log, each safely on the disk, and sleeps between them. */
#include <fcntl.h>
#include <time.h>
#include <unistd.h>
int main(void) {
    int file = open("slow.log", O_CREAT | O_WRONLY | O_APPEND, 0600);
    for (int i = 0; i < 100; i++) {
        struct timespec pause = {0, 2000000};
        if (write(file, "a line\n", 7) != 7 || fsync(file))
            return 1;
        nanosleep(&pause, 0);
    }
}
