/*
 * Runs a program and makes one of its system calls fail, by seccomp's user notification.
 *
 *     inject PROGRAM CALL ERRNO NTH SECONDS LOG -- PROGRAM ARGUMENTS...
 *
 * Only calls made from PROGRAM's own image count. Its children count until they execute another program, so the
 * measured command runs undisturbed. The dynamic loader and the start of Rust's runtime come before the first
 * poll(2); CALL with a leading "+" counts only calls after it, and with a leading "-" only those of PROGRAM's
 * children. CALL "count" injects nothing. ERRNO 0 kills the caller with SIGKILL instead of making its call fail.
 *
 * After PROGRAM ends, the injector waits for the processes that PROGRAM left behind. LOG receives these lines:
 *   calls NAME BEFORE AFTER   number of calls before and after the first poll(2)
 *   hit COMM                  the failed call, and the thread's name
 *   hung                      PROGRAM did not end in SECONDS and was killed
 *   left COMM                 this process still ran after PROGRAM had ended, and ended by itself or was killed
 *   status WAIT-STATUS        of PROGRAM
 * Exit status: 0 if PROGRAM ran, whatever its status.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define CALL(name) { #name, SYS_##name }
static const struct { const char *name; int number; } CALLS[] = {
    CALL(perf_event_open), CALL(mmap), CALL(ioctl), CALL(read), CALL(write), CALL(openat), CALL(ppoll),
    CALL(epoll_pwait), CALL(epoll_ctl), CALL(epoll_create1), CALL(clone), CALL(clone3), CALL(execve),
    CALL(ftruncate), CALL(renameat), CALL(renameat2), CALL(pread64), CALL(pwrite64), CALL(writev),
    CALL(fallocate), CALL(fsync), CALL(fdatasync), CALL(lseek), CALL(newfstatat), CALL(statx), CALL(fstat),
    CALL(fcntl), CALL(socket), CALL(connect), CALL(bind), CALL(listen), CALL(accept4), CALL(sendmsg),
    CALL(recvmsg), CALL(sendto), CALL(recvfrom), CALL(pipe2), CALL(eventfd2), CALL(timerfd_create),
    CALL(timerfd_settime), CALL(signalfd4), CALL(memfd_create), CALL(dup3), CALL(unlinkat), CALL(mkdirat),
    CALL(readlinkat), CALL(getdents64), CALL(munmap), CALL(madvise), CALL(mprotect), CALL(mlock), CALL(flock),
    CALL(prctl), CALL(sched_getaffinity), CALL(sched_setaffinity), CALL(waitid), CALL(wait4),
    CALL(pidfd_open), CALL(pidfd_send_signal), CALL(kill), CALL(sendfile), CALL(copy_file_range),
    CALL(splice), CALL(getrandom), CALL(clock_nanosleep), CALL(process_vm_readv), CALL(prlimit64),
    CALL(fchmod), CALL(fchown), CALL(ftruncate), CALL(linkat), CALL(setpgid), CALL(setns), CALL(statfs),
    CALL(utimensat), CALL(sched_setscheduler), CALL(setpriority), CALL(openat2), CALL(unshare), CALL(mount),
    CALL(socketpair), CALL(seccomp), CALL(capset), CALL(close_range),
#ifdef SYS_poll
    CALL(poll), CALL(epoll_wait), CALL(open), CALL(stat), CALL(lstat), CALL(rename), CALL(unlink),
    CALL(mkdir), CALL(readlink), CALL(access), CALL(pipe), CALL(dup2), CALL(vfork), CALL(fork), CALL(symlink),
#endif
};
#define CALLS_LEN (sizeof CALLS / sizeof *CALLS)

#ifdef SYS_poll
#define FIRST_POLL SYS_poll
#else
#define FIRST_POLL SYS_ppoll
#endif

static atomic_int listener = -1, launched;
static pid_t program;
static char **arguments;

static void fail(const char *what) {
    fprintf(stderr, "inject: %s: %s\n", what, strerror(errno));
    exit(1);
}

/* Installs the filter in this thread only and starts the program, which inherits it. */
static void *launch(void *unused) {
    struct sock_filter filter[CALLS_LEN + 3];
    unsigned len = 0;
    filter[len++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr));
    for (unsigned i = 0; i < CALLS_LEN; i++)
        filter[len++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, CALLS[i].number, CALLS_LEN - i, 0);
    filter[len++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    filter[len++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_USER_NOTIF);
    struct sock_fprog rules = { len, filter };
    /* root needs no such promise, and set-user-ID programs keep working. */
    int got = syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_NEW_LISTENER, &rules);
    if (got < 0 && errno == EACCES && !prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
        got = syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_NEW_LISTENER, &rules);
    if (got < 0) fail("seccomp");
    listener = got;
    program = vfork();
    if (program == 0) {
        execv(arguments[0], arguments);
        _exit(127);
    }
    launched = 1;
    return unused;
}

static void name_of(pid_t pid, const char *file, char *into, size_t len) {
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/%s", pid, file);
    into[0] = 0;
    if (!strcmp(file, "exe")) {
        ssize_t got = readlink(path, into, len - 1);
        into[got < 0 ? 0 : got] = 0;
        return;
    }
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t got = fd < 0 ? 0 : read(fd, into, len - 1);
    if (fd >= 0) close(fd);
    into[got < 0 ? 0 : got] = 0;
    if (strcmp(file, "status")) into[strcspn(into, "\n")] = 0;
}

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec + time.tv_nsec / 1e9;
}

static int is_child(pid_t task) {
    char path[64];
    /* The program may make its first calls before vfork has returned its number. */
    while (!launched) sched_yield();
    snprintf(path, sizeof path, "/proc/%d/task/%d", program, task);
    return access(path, F_OK) != 0;
}

/* Logs the children that run and have not been told to end, and sends them a signal. */
static void each_child(FILE *log, const char *why, int signal) {
    char path[64], line[4096];
    snprintf(path, sizeof path, "/proc/self/task/%d/children", getpid());
    FILE *children = fopen(path, "re");
    if (!children) return;
    if (fgets(line, sizeof line, children))
        for (char *word = strtok(line, " \n"); word; word = strtok(0, " \n")) {
            char comm[64], status[4096];
            pid_t pid = atoi(word);
            name_of(pid, "comm", comm, sizeof comm);
            name_of(pid, "status", status, sizeof status);
            char *pending = strstr(status, "ShdPnd:");
            unsigned long mask = pending ? strtoul(pending + 7, 0, 16) : 0;
            int ends = !pending || strstr(status, "State:\tZ") || mask & (1 << (SIGTERM - 1) | 1 << (SIGKILL - 1));
            if (!ends) fprintf(log, "%s %s\n", why, comm);
            if (signal) kill(pid, signal);
        }
    fclose(children);
}

int main(int argc, char **argv) {
    if (argc < 9) return 2;
    char image[PATH_MAX], exe[PATH_MAX];
    if (!realpath(argv[1], image)) fail(argv[1]);
    const char *call = argv[2];
    int late_only = call[0] == '+', in_child = call[0] == '-';
    int code = atoi(argv[3]), nth = atoi(argv[4]), is_main = 0, hit = 0;
    double patience = atof(argv[5]);
    call += late_only + in_child;
    FILE *log = fopen(argv[6], "we");
    if (!log) fail(argv[6]);
    arguments = argv + 8;
    unsigned before[CALLS_LEN] = { 0 }, after[CALLS_LEN] = { 0 };
    prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
    pthread_t thread;
    pthread_create(&thread, 0, launch, 0);
    while (listener < 0) sched_yield();

    struct seccomp_notif request;
    struct seccomp_notif_resp answer;
    double deadline = now() + patience;
    int status = 0, ended = 0, hung = 0, killed = 0;
    for (;;) {
        struct pollfd ready = { listener, POLLIN, 0 };
        poll(&ready, 1, 20);
        if (ready.revents & POLLIN) {
            memset(&request, 0, sizeof request);
            if (ioctl(listener, SECCOMP_IOCTL_NOTIF_RECV, &request) == 0) {
                memset(&answer, 0, sizeof answer);
                answer.id = request.id;
                answer.flags = SECCOMP_USER_NOTIF_FLAG_CONTINUE;
                unsigned i = 0;
                while (i + 1 < CALLS_LEN && CALLS[i].number != request.data.nr) i++;
                name_of(request.pid, "exe", exe, sizeof exe);
                if (!strcmp(exe, image) && (!in_child || is_child(request.pid))) {
                    ++*(is_main ? after + i : before + i);
                    int so_far = after[i] + (late_only ? 0 : before[i]);
                    if (!hit && !strcmp(CALLS[i].name, call) && so_far == nth && is_main >= late_only) {
                        char comm[64];
                        name_of(request.pid, "comm", comm, sizeof comm);
                        fprintf(log, "hit %s\n", comm);
                        hit = 1;
                        if (code) {
                            answer.flags = 0;
                            answer.error = -code;
                        } else {
                            kill(request.pid, SIGKILL);
                        }
                    }
                    is_main |= request.data.nr == FIRST_POLL;
                }
                ioctl(listener, SECCOMP_IOCTL_NOTIF_SEND, &answer);
            }
            if (!ended || now() < deadline) continue;
        }
        int got_status;
        pid_t got = launched ? waitpid(-1, &got_status, WNOHANG) : 0;
        if (got == program && got > 0) {
            ended = 1;
            status = got_status;
            deadline = now() + patience;
            each_child(log, "left", 0);
        }
        if (got < 0 && errno == ECHILD && ended) break;
        if (now() > deadline && !killed) {
            hung = !ended;
            if (hung) fprintf(log, "hung\n");
            each_child(log, ended ? "endless" : "killed", SIGKILL);
            killed = 1;
            deadline = now() + patience;
        } else if (killed) {
            each_child(log, "killed", SIGKILL);
        }
    }
    for (unsigned i = 0; i < CALLS_LEN; i++)
        if (before[i] + after[i]) fprintf(log, "calls %s %u %u\n", CALLS[i].name, before[i], after[i]);
    fprintf(log, "status %d\n", status);
    fclose(log);
    pthread_join(thread, 0);
    return 0;
}
