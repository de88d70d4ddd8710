//! `pmc lock`: waits for the kernel's locks, compared with perf's, and for programs' locks with known holders.

use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::Value as Json;

use crate::kit::lab::Lab;
use crate::kit::{self, oracle};
use pmc_sys::host::Host;

/// Threads that contend for the locks of one file, of a pipe and of an address space, for 50 ms each.
const KERNEL: &str = r"
#include <pthread.h>
#include <fcntl.h>
#include <unistd.h>
#include <sys/mman.h>
static int file, ends[2];
static char data[65536];
static void *writer(void *a) { for_cpu_ms(50) pwrite(file, data, sizeof data, 0); return 0; }
static void *piper(void *a) { for_cpu_ms(50) for (int i = 0; i < 20; i++) write(ends[1], data, 64); return 0; }
static void *drain(void *a) { while (read(ends[0], data + 32768, 4096) > 0); return 0; }
static void *mapper(void *a) {
    for_cpu_ms(50) for (int i = 0; i < 10; i++) {
        char *p = mmap(0, 8192, 3, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        *p = 1;
        munmap(p, 8192);
    }
    return 0;
}
int main(int c, char **v) {
    void *(*all[])(void *) = {writer, writer, writer, piper, piper, mapper, mapper, mapper};
    pthread_t t[8], d;
    file = open(v[1], O_RDWR | O_CREAT, 0600);
    pipe(ends);
    pthread_create(&d, 0, drain, 0);
    for (int i = 0; i < 8; i++) pthread_create(t + i, 0, all[i], 0);
    for (int i = 0; i < 8; i++) pthread_join(t[i], 0);
    close(ends[1]);
    pthread_join(d, 0);
    return 0;
}
";

/// Thread `owner` holds the lock of a file while the page that it writes is missing. The page arrives when
/// thread `waiter` waits for the lock. Exits with 77 if the kernel has no userfaultfd.
const OWNER: &str = r#"
#define _GNU_SOURCE
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>
static int file; static char *page; static volatile int tid;
static void name(const char *n) { pthread_setname_np(pthread_self(), n); }
/* Holds the lock of the file until the page is there. */
static void *owner(void *a) { name("owner"); pwrite(file, page, 4096, 0); return 0; }
static void *waiter(void *a) { name("waiter"); tid = gettid(); pwrite(file, "x", 1, 0); return 0; }
int main(int c, char **v) {
    struct uffdio_api api = {.api = UFFD_API};
    int fd = syscall(SYS_userfaultfd, O_CLOEXEC);
    if (fd < 0 || ioctl(fd, UFFDIO_API, &api)) return 77;
    file = open(v[1], O_RDWR | O_CREAT, 0600);
    page = mmap(0, 4096, 3, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    struct uffdio_register reg = {.range = {(unsigned long)page, 4096}, .mode = UFFDIO_REGISTER_MODE_MISSING};
    if (ioctl(fd, UFFDIO_REGISTER, &reg)) return 77;
    static char zeros[4096] __attribute__((aligned(4096)));
    struct uffd_msg msg;
    pthread_t t[2];
    pthread_create(t, 0, owner, 0);
    read(fd, &msg, sizeof msg);
    pthread_create(t + 1, 0, waiter, 0);
    char path[64], state = 0;
    while (state != 'D') {
        usleep(1000);
        snprintf(path, sizeof path, "/proc/self/task/%d/stat", tid);
        FILE *f = fopen(path, "r");
        if (f) { fscanf(f, "%*d %*s %c", &state); fclose(f); }
    }
    usleep(20000);
    struct uffdio_copy copy = {.dst = (unsigned long)page, .src = (unsigned long)zeros, .len = 4096};
    ioctl(fd, UFFDIO_COPY, &copy);
    pthread_join(t[0], 0); pthread_join(t[1], 0);
    return 0;
}
"#;

/// Programs whose locks have known holders; the first argument selects one. `KEEP` prevents tail calls, which
/// leave no frame.
const LOCKS: &str = r#"
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#define NI __attribute__((noinline))
#define KEEP __asm__ volatile("")
pthread_mutex_t cache_lock = PTHREAD_MUTEX_INITIALIZER, queue_lock = PTHREAD_MUTEX_INITIALIZER;
pthread_mutex_t inherited, robust, stuck = PTHREAD_MUTEX_INITIALIZER, pool_lock = PTHREAD_MUTEX_INITIALIZER;
pthread_rwlock_t table = PTHREAD_RWLOCK_INITIALIZER;
pthread_cond_t work = PTHREAD_COND_INITIALIZER;
sem_t items;
pthread_barrier_t barrier;
static atomic_int jobs, done;
static void name(const char *n) { pthread_setname_np(pthread_self(), n); }
NI void flush(pthread_mutex_t *m) { pthread_mutex_lock(m); usleep(3000); pthread_mutex_unlock(m); KEEP; }
NI void lookup(pthread_mutex_t *m) { pthread_mutex_lock(m); pthread_mutex_unlock(m); KEEP; }
static void *holder(void *m) { name("holder"); for (int i = 0; i < 60; i++) { flush(m); usleep(500); } return 0; }
static void *waiter(void *m) { name("waiter"); for (int i = 0; i < 60; i++) { lookup(m); usleep(500); } return 0; }
NI void change(void) { pthread_rwlock_wrlock(&table); usleep(3000); pthread_rwlock_unlock(&table); KEEP; }
NI void see(void) { pthread_rwlock_rdlock(&table); pthread_rwlock_unlock(&table); KEEP; }
static void *changer(void *a) { name("changer"); for (int i = 0; i < 40; i++) { change(); usleep(500); } return 0; }
static void *reader(void *a) { name("reader"); for (int i = 0; i < 40; i++) { see(); usleep(500); } return 0; }
static void *worker(void *a) {
    pthread_mutex_lock(&pool_lock);
    while (done < 50) {
        while (!jobs) pthread_cond_wait(&work, &pool_lock);
        jobs--;
        done++;
    }
    pthread_mutex_unlock(&pool_lock);
    return 0;
}
static void *taker(void *a) { for (int i = 0; i < 20; i++) sem_wait(&items); return 0; }
static void *meeter(void *a) { for (int i = 0; i < 10; i++) { usleep(1000); pthread_barrier_wait(&barrier); } return 0; }
static struct timespec soon(long ns) {
    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    t.tv_nsec += ns;
    if (t.tv_nsec >= 1000000000) { t.tv_nsec -= 1000000000; t.tv_sec++; }
    return t;
}
NI void give_up(void) { struct timespec t = soon(20000000); pthread_mutex_timedlock(&stuck, &t); KEEP; }
static void *timed(void *a) { name("timed"); for (int i = 0; i < 5; i++) give_up(); return 0; }
/* Waits with timeouts for the lock that the main thread holds until the third one. */
static atomic_int attempts;
NI void retry(void) {
    struct timespec t = soon(5000000);
    while (pthread_mutex_timedlock(&stuck, &t)) { attempts++; t = soon(5000000); }
    pthread_mutex_unlock(&stuck);
    KEEP;
}
static void *retrying(void *a) { name("retrying"); retry(); return 0; }
NI void finish(void) {
    while (attempts < 3 || stuck.__data.__lock != 2) usleep(200);
    pthread_mutex_unlock(&stuck);
    KEEP;
}
static void *ticker(void *a) {
    pthread_mutex_lock(&queue_lock);
    for (int i = 0; i < 20; i++) { struct timespec t = soon(2000000); pthread_cond_timedwait(&work, &queue_lock, &t); }
    pthread_mutex_unlock(&queue_lock);
    return 0;
}
/* Holds queue_lock until `middle` waits for it, and `first` for the lock that `middle` holds. */
static atomic_int has_queue, has_cache;
static int is_awaited(pthread_mutex_t *m) { return m->__data.__lock == 2; }
static void *last(void *a) {
    name("last");
    pthread_mutex_lock(&queue_lock);
    has_queue = 1;
    while (!is_awaited(&queue_lock) || !is_awaited(&cache_lock)) usleep(1000);
    usleep(20000);
    pthread_mutex_unlock(&queue_lock);
    return 0;
}
NI void refill(void) { pthread_mutex_lock(&queue_lock); pthread_mutex_unlock(&queue_lock); KEEP; }
static void *middle(void *a) {
    name("middle");
    while (!has_queue) usleep(100);
    pthread_mutex_lock(&cache_lock);
    has_cache = 1;
    refill();
    pthread_mutex_unlock(&cache_lock);
    return 0;
}
static void *first(void *a) { name("first"); while (!has_cache) usleep(100); lookup(&cache_lock); return 0; }
/* Waits for cache_lock, whose holder waits for queue_lock. */
static void *crossing(void *a) {
    name("crossing");
    pthread_mutex_lock(&queue_lock);
    has_queue = 1;
    while (!has_cache) usleep(100);
    lookup(&cache_lock);
    return 0;
}
static void *announcer(void *a) {
    while (!is_awaited(&queue_lock) || !is_awaited(&cache_lock)) usleep(1000);
    close(1);
    return 0;
}
static void pair(void *(*a)(void *), void *(*b)(void *), void *arg) {
    pthread_t t[2];
    pthread_create(t, 0, a, arg);
    pthread_create(t + 1, 0, b, arg);
    pthread_join(t[0], 0);
    pthread_join(t[1], 0);
}
int main(int c, char **v) {
    pthread_mutexattr_t at;
    pthread_mutexattr_init(&at);
    pthread_mutexattr_setprotocol(&at, PTHREAD_PRIO_INHERIT);
    pthread_mutex_init(&inherited, &at);
    pthread_mutexattr_init(&at);
    pthread_mutexattr_setrobust(&at, PTHREAD_MUTEX_ROBUST);
    pthread_mutex_init(&robust, &at);
    if (!strcmp(v[1], "two")) {
        pthread_t t[4];
        pthread_create(t, 0, holder, &cache_lock);
        pthread_create(t + 1, 0, waiter, &cache_lock);
        pthread_create(t + 2, 0, holder, &queue_lock);
        pthread_create(t + 3, 0, waiter, &queue_lock);
        for (int i = 0; i < 4; i++) pthread_join(t[i], 0);
    } else if (!strcmp(v[1], "stuck")) {
        pthread_t t;
        name("owner");
        pthread_mutex_lock(&stuck);
        pthread_create(&t, 0, waiter, &stuck);
        close(1);
        pthread_join(t, 0);
    } else if (!strcmp(v[1], "inherited")) pair(holder, waiter, &inherited);
    else if (!strcmp(v[1], "robust")) pair(holder, waiter, &robust);
    else if (!strcmp(v[1], "chain")) {
        pthread_t t;
        pthread_create(&t, 0, first, 0);
        pair(middle, last, 0);
        pthread_join(t, 0);
    } else if (!strcmp(v[1], "deadlock")) {
        pthread_t t;
        pthread_create(&t, 0, announcer, 0);
        pair(middle, crossing, 0);
    } else if (!strcmp(v[1], "rwlock")) pair(changer, reader, 0);
    else if (!strcmp(v[1], "retry")) {
        pthread_t t;
        name("owner");
        pthread_mutex_lock(&stuck);
        pthread_create(&t, 0, retrying, 0);
        finish();
        pthread_join(t, 0);
    } else if (!strcmp(v[1], "timed")) {
        name("owner");
        pthread_mutex_lock(&stuck);
        pair(timed, ticker, 0);
    } else if (!strcmp(v[1], "pool")) {
        pthread_t t[2];
        pthread_create(t, 0, worker, 0);
        /* Never waits for the lock, and never wakes a thread that does. */
        for (int i = 1; i <= 50; i++) {
            while (pthread_mutex_trylock(&pool_lock)) usleep(200);
            jobs++;
            pthread_mutex_unlock(&pool_lock);
            pthread_cond_signal(&work);
            while (done < i) usleep(200);
        }
        pthread_join(t[0], 0);
        sem_init(&items, 0, 0);
        pthread_create(t, 0, taker, 0);
        for (int i = 0; i < 20; i++) { usleep(1000); sem_post(&items); }
        pthread_join(t[0], 0);
        pthread_barrier_init(&barrier, 0, 2);
        pair(meeter, meeter, 0);
    }
    return 0;
}
"#;

/// Returns the lines of a table without comments and without names of threads, which perf forgets when the
/// thread ends.
fn rows(text: &str, is_by_thread: bool) -> Vec<String> {
    let lines = text.lines().filter(|line| !line.starts_with('#') && !line.trim().is_empty());
    let row = |line: &str| {
        let numbers =
            if is_by_thread { line.rsplit_once("   ").map_or(line, |(numbers, _)| numbers) } else { line };
        numbers.split_whitespace().collect::<Vec<_>>().join(" ")
    };
    lines.map(row).collect()
}

/// Returns the value by which a row is sorted.
fn key(row: &str, options: &[&str]) -> String {
    let words: Vec<&str> = row.split(' ').collect();
    let range = match (options.contains(&"contended"), options.contains(&"wait_max")) {
        (true, _) => 0..1,
        (_, true) => 0..2,
        _ => 1..3,
    };
    words[range].join(" ")
}

fn perf_says(perf: &Path, file: &Path, options: &[&str]) -> String {
    let file = file.to_str().expect("UTF-8");
    let output = oracle::ask(perf, &[&["lock", "contention", "-i", file][..], options].concat());
    // perf prints its table to stderr, the newest one to a file of its choice.
    [output.stdout, output.stderr].map(|text| String::from_utf8_lossy(&text).into_owned()).concat()
}

#[test]
fn kernel_contention_equals_perfs_row_by_row() {
    let Some(lab) = Lab::new().filter(|_| kit::need_tracefs("lock/contention_begin")) else { return };
    let program = lab.build("kernel", KERNEL, &["-O1", "-w", "-pthread"]);
    let data = lab.path("data");
    // perf's recording, without the functions of programs, which the newest perf counts differently.
    let theirs = lab.path("theirs");
    let mut words = vec!["lock", "record", "--kernel-callchains", "-o", theirs.to_str().expect("UTF-8")];
    words.extend([program.to_str().expect("UTF-8"), data.to_str().expect("UTF-8")]);
    oracle::ask("perf", &words);
    // pmc's recording.
    let ours = lab.path("ours");
    let ours_name = ours.to_str().expect("UTF-8");
    let run = [program.to_str().expect("UTF-8"), data.to_str().expect("UTF-8")];
    kit::run(&[&["lock", "record", "-q", "-o", ours_name, "--"][..], &run].concat()).expect(0);
    let perfs = oracle::perfs();
    for (file, oldest_only) in [(&theirs, false), (&ours, true)] {
        for perf in perfs.iter().take(if oldest_only { 1 } else { perfs.len() }) {
            let is_oldest = perf == &perfs[0];
            let cases: &[&[&str]] = &[
                &["--stack-skip", "0"],
                &["--stack-skip", "3", "-k", "contended", "-F", "contended,wait_total,wait_min"],
                &["--stack-skip", "4", "-E", "5"],
                &["-t"],
                &["-t", "-k", "wait_max", "-F", "wait_max,avg_wait"],
            ];
            let newest: &[&[&str]] =
                &[&["-l"], &["-l", "-Y", "rwsem"], &["--stack-skip", "0", "-Y", "spinlock"]];
            for options in cases.iter().chain(newest.iter().filter(|_| !is_oldest)) {
                let is_by_thread = options.contains(&"-t");
                let mut want = rows(&perf_says(perf, file, options), is_by_thread);
                // perf 6.1 lists waits that had not ended; pmc, as perf 7.2, only counts them.
                want.retain(|row| !format!(" {row}").contains(" 0 ns"));
                let got = kit::run(
                    &[&["lock", "contention", "-i", file.to_str().expect("UTF-8")], *options].concat(),
                );
                let got = rows(&got.expect(0).stdout, is_by_thread);
                // perf orders rows with equal values by their hash.
                let ordered = |rows: &[String]| rows.iter().map(|row| key(row, options)).collect::<Vec<_>>();
                assert_eq!(ordered(&got), ordered(&want), "{perf:?} {options:?}");
                if !options.contains(&"-E") {
                    let [missing, extra] = [(&want, &got), (&got, &want)].map(|(rows, others)| {
                        rows.iter().filter(|row| !others.contains(row)).collect::<Vec<_>>()
                    });
                    let differ = format!("{perf:?} {options:?}: without {missing:#?}, but with {extra:#?}");
                    assert!(missing.is_empty() && extra.is_empty(), "{differ}");
                }
            }
        }
    }
    // The file's lock is the inode's, and its caller the file system.
    let text = kit::run(&["lock", "contention", "-i", ours_name, "-v", "-S", "pwrite"]).expect(0).stdout;
    if rows(&text, false).len() > 1 {
        assert!(text.contains("pwrite"), "{text}");
    }
    assert!(!text.contains("no begin"), "waits that a filter leaves out have one: {text}");
}

#[test]
fn owners_of_kernel_locks_are_the_threads_that_release_them() {
    let Some(lab) = Lab::new().filter(|_| kit::need_tracefs("lock/contention_begin")) else { return };
    let program = lab.build("owner", OWNER, &["-O1", "-pthread", "-w"]);
    let [target, file] = ["target", "owner.data"].map(|name| lab.path(name).display().to_string());
    let program = program.to_str().expect("UTF-8");
    let can = Command::new(program).arg(&target).status().expect("it starts").success();
    if !kit::need("userfaultfd", can, "the kernel has no userfaultfd") {
        return;
    }
    let events = "lock:contention_begin,lock:contention_end,sched:sched_waking";
    kit::run(&["record", "-q", "-c", "1", "-e", events, "-o", &file, "--", program, &target]).expect(0);
    let rows = |options: &[&str]| -> Vec<Json> {
        let text = kit::run(&[&["lock", "contention", "--json", "-i", &file], options].concat()).expect(0);
        let document = kit::schema::document("lock-contention", &text.stdout);
        document["rows"].as_array().expect("a list").clone()
    };
    let total = |rows: &[Json]| rows.iter().filter_map(|row| row["wait_total_ns"].as_u64()).sum::<u64>();
    let owners = rows(&["-o", "-Y", "rwsem:W"]);
    let owner = owners.iter().find(|row| row["comm"] == "owner").expect("the owner");
    assert!(
        owner["wait_total_ns"].as_u64() >= Some(20_000_000) && owner.get("type").is_none(),
        "{owners:#?}"
    );
    for filter in [&[][..], &["-Y", "rwsem"], &["-Y", "spinlock"]] {
        let (owners, waiters) = (rows(&[&["-o"], filter].concat()), rows(&[&["-t"], filter].concat()));
        assert_eq!(total(&owners), total(&waiters), "{owners:#?} {waiters:#?}");
    }
    let all = rows(&["-t"]);
    assert_eq!(rows(&["-t", "--limit", "1"]), all[..1]);
    // A thread that spins is not woken.
    assert!(rows(&["-o", "-Y", "spinlock"]).iter().all(|row| row["tid"] == -1));
    let text = kit::run(&["lock", "contention", "-o", "-i", &file]).expect(0).stdout;
    assert!(text.lines().next().is_some_and(|line| line.ends_with("pid   owner")), "{text}");
}

/// Runs a program under `pmc lock user`, and returns the document.
#[track_caller]
fn user_locks(folder: &Folder, program: &Path, what: &str) -> Json {
    let file = folder.path(what);
    let run = kit::run(&[
        "lock",
        "user",
        "--json",
        "-q",
        "-o",
        file.to_str().expect("UTF-8"),
        "--",
        program.to_str().expect("UTF-8"),
        what,
    ])
    .expect(0);
    kit::schema::document("lock-user", &run.stdout)
}

/// A temporary folder for tests that need no perf.
struct Folder(tempfile::TempDir);

impl Folder {
    fn new() -> Option<Self> {
        let is_met = kit::need_root() && kit::need_tracefs("syscalls/sys_enter_futex");
        is_met.then(|| Self(tempfile::tempdir().expect("a temporary folder")))
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }
}

/// Builds the program with the locks.
fn programs() -> Option<(Folder, PathBuf)> {
    let folder = Folder::new().filter(|_| kit::need_program("gcc"))?;
    let (source, program) = (folder.path("locks.c"), folder.path("locks"));
    std::fs::write(&source, LOCKS).expect("the source is written");
    let built = Command::new("gcc").args(["-O1", "-g", "-pthread", "-o"]).args([&program, &source]).status();
    assert!(built.expect("gcc starts").success());
    Some((folder, program))
}

/// Returns the part of a lock's waiting time during which threads of this name, in this function, held it.
fn held_by(lock: &Json, comm: &str, function: &str) -> f64 {
    let of = |party: &&Json| party["comm"] == comm && party["function"] == function;
    let held: f64 = lock["holders"]
        .as_array()
        .expect("a list")
        .iter()
        .filter(of)
        .map(|party| party["time_ns"].as_f64().expect("a number"))
        .sum();
    held / lock["wait_total_ns"].as_f64().expect("a number")
}

#[test]
fn known_holders_of_user_locks_are_named() {
    let Some((lab, program)) = programs() else { return };
    let cases: [(&str, &[&str], &str, &str); 4] = [
        ("two", &["cache_lock", "queue_lock"], "holder", "flush"),
        ("inherited", &["inherited"], "holder", "flush"),
        ("robust", &["robust"], "holder", "flush"),
        ("rwlock", &["table"], "changer", "change"),
    ];
    for (what, names, comm, function) in cases {
        let document = user_locks(&lab, &program, what);
        let locks = document["locks"].as_array().expect("a list");
        for name in names {
            let lock = locks.iter().find(|lock| lock["variable"] == *name);
            let lock = lock.unwrap_or_else(|| panic!("{what}: no {name} in {document:#}"));
            let waits_of = |party: &Json| party["comm"] == comm;
            // Seldom, the waiting thread holds the lock when the other one wants it.
            let by_holder: f64 = lock["waiters"]
                .as_array()
                .expect("a list")
                .iter()
                .filter(|party| waits_of(party))
                .map(|party| party["percent"].as_f64().expect("a number"))
                .sum();
            let held = held_by(lock, comm, function);
            assert!(held + by_holder / 100.0 >= 0.95, "{what}: {held} of {lock:#}");
            let [readings, agreeing] =
                ["owner_readings", "owner_agrees"].map(|key| lock[key].as_f64().expect("a number"));
            assert!(agreeing >= 0.9 * readings, "{what}: {agreeing} of {readings} readings");
            let waiter = &lock["waiters"][0];
            let line = waiter["line"].as_u64().expect("a line");
            assert!(waiter["file"].as_str().expect("a text").ends_with("locks.c") && line > 20, "{waiter:#}");
            assert_eq!(lock["offset"], 0);
        }
        assert_eq!(locks.len(), names.len(), "{what}: {document:#}");
    }
}

#[test]
fn pools_semaphores_barriers_and_joins_are_no_locks() {
    let Some((lab, program)) = programs() else { return };
    let document = user_locks(&lab, &program, "pool");
    assert_eq!(document["locks"].as_array().expect("a list").len(), 0, "{document:#}");
    let others = document["not_locks"].as_array().expect("a list");
    for what in ["condition variables", "semaphores", "barriers", "thread ends"] {
        assert!(others.iter().any(|other| other["what"] == what), "no {what} in {document:#}");
    }
    let file = lab.path("pool");
    let text = kit::run(&["lock", "user", "-i", file.to_str().expect("UTF-8")]).expect(0);
    text.prints(&["no waits for locks in", "not locks: ", "condition variables"]);
}

#[test]
fn timers_hold_no_locks() {
    let Some((lab, program)) = programs() else { return };
    let document = user_locks(&lab, &program, "timed");
    let [lock] = &document["locks"].as_array().expect("a list")[..] else { panic!("{document:#}") };
    assert_eq!((&lock["variable"], &lock["timed_out"]), (&"stuck".into(), &5.into()), "{lock:#}");
    // The lock's own words name the thread that holds it. No thread woke the waiting one.
    for holder in lock["holders"].as_array().expect("a list") {
        assert_eq!((&holder["comm"], &holder["is_exact"]), (&"owner".into(), &false.into()), "{lock:#}");
    }
    assert!(
        lock["unknown_holder_ns"].as_f64().expect("a number")
            < lock["wait_total_ns"].as_f64().expect("a number"),
        "{lock:#}"
    );
    // Without the words, the holder is unknown.
    let file = lab.path("timed");
    let later = kit::run(&["lock", "user", "--json", "-i", file.to_str().expect("UTF-8")]).expect(0);
    let later = kit::schema::document("lock-user", &later.stdout);
    assert_eq!(later["locks"][0]["unknown_holder_ns"], later["locks"][0]["wait_total_ns"]);
    let text = kit::run(&["lock", "user", "-i", file.to_str().expect("UTF-8")]).expect(0).stdout;
    let headline = text.lines().next().expect("a line");
    assert!(headline.ends_with("; holder known for 0% of that time"), "{text}");
}

#[test]
fn release_after_timeouts_names_the_holder_of_the_whole_wait() {
    let Some((lab, program)) = programs() else { return };
    let file = lab.path("retry");
    let (file, program) = (file.to_str().expect("UTF-8"), program.to_str().expect("UTF-8"));
    kit::run(&["lock", "record", "--user", "-q", "-o", file, "--", program, "retry"]).expect(0);
    let run = kit::run(&["lock", "user", "--json", "-i", file]).expect(0);
    let document = kit::schema::document("lock-user", &run.stdout);
    let locks = document["locks"].as_array().expect("a list");
    let lock = locks.iter().find(|lock| lock["variable"] == "stuck").expect("a lock");
    assert!(lock["timed_out"].as_u64() >= Some(3), "{lock:#}");
    // On a busy machine, more than 1 ms may pass between two attempts, so that their waits are not joined.
    let known = held_by(lock, "owner", "finish");
    let last = lock["wait_total_ns"].as_f64().expect("a number")
        - lock["unknown_holder_ns"].as_f64().expect("a number");
    assert!(known > 0.3 && last > 0.0, "{lock:#}");
    assert!(lock["holders"].as_array().expect("a list").iter().all(|party| party["comm"] == "owner"));
}

/// Two mutexes of parking_lot. Threads wait for both in the same function, but each has its own holder.
const PARKING: &str = include_str!("lock/parking.rust");

/// Builds a program with the crate parking_lot, which pmc depends on, too.
fn parking_program(folder: &Folder) -> Option<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let manifest = "[package]\nname = \"parking\"\nversion = \"0.1.0\"\nedition = \"2024\"\n\
         [dependencies]\nparking_lot = \"0.12\"\n[workspace]\n";
    std::fs::create_dir(folder.path("src")).expect("a folder");
    std::fs::write(folder.path("src/main.rs"), PARKING).expect("the source is written");
    std::fs::write(folder.path("Cargo.toml"), manifest).expect("the manifest is written");
    // The versions that building pmc has downloaded.
    std::fs::copy(root.join("Cargo.lock"), folder.path("Cargo.lock")).expect("a copy");
    let target = folder.path("target");
    let built = Command::new("cargo")
        .args(["build", "--quiet", "--offline", "--target-dir"])
        .arg(&target)
        .current_dir(folder.0.path())
        .output();
    let is_built = built.is_ok_and(|built| built.status.success());
    kit::need("parking_lot", is_built, "cargo cannot build a program with parking_lot without a network")
        .then(|| target.join("debug/parking"))
}

#[test]
fn locks_that_park_threads_are_known_by_what_their_waiters_share() {
    let Some(lab) = Folder::new() else { return };
    let Some(program) = parking_program(&lab) else { return };
    let document = user_locks(&lab, &program, "data");
    let locks = document["locks"].as_array().expect("a list");
    for (variable, comm) in [("parking::FIRST", "holder-1"), ("parking::SECOND", "holder-2")] {
        let lock = locks.iter().find(|lock| lock["variable"] == variable);
        let lock = lock.unwrap_or_else(|| panic!("no {variable} in {document:#}"));
        assert_eq!((&lock["kind"], &lock["parking_library"]), (&"mutex".into(), &"parking_lot".into()));
        assert!(held_by(lock, comm, "parking::flush") > 0.8, "{lock:#}");
        let number = comm.strip_prefix("holder-").expect("a number");
        for party in ["waiters", "holders"].iter().flat_map(|key| lock[*key].as_array().expect("a list")) {
            assert!(party["comm"].as_str().expect("a text").ends_with(number), "{lock:#}");
        }
    }
    // Without the memory of the program, the locks are unknown, and so are their holders.
    let file = lab.path("data");
    let file = file.to_str().expect("UTF-8");
    let run = kit::run(&["lock", "user", "--json", "-i", file]).expect(0);
    let document = kit::schema::document("lock-user", &run.stdout);
    let [lock] = &document["locks"].as_array().expect("a list")[..] else { panic!("{document:#}") };
    assert_eq!(lock["address"], Json::Null);
    for key in ["holders", "waiting_holders"] {
        assert_eq!(lock[key], serde_json::json!([]), "{lock:#}");
    }
    let wakes = |comm: &str| lock["wakers"].as_array().expect("a list").iter().any(|by| by["comm"] == comm);
    assert!(wakes("holder-1") && wakes("holder-2"), "{lock:#}");
    kit::run(&["lock", "user", "-i", file]).expect(0).prints(&[
        " waiting for locks of parking_lot in ",
        "; which locks, and which threads hold them, is unknown",
        "parking_lot parks each waiting thread on a separate futex",
    ]);
}

/// Runs a program that hangs with this number of waiting threads, and returns what `pmc lock user -p` prints
/// with these options.
fn output_of_hanging(
    folder: &Folder,
    program: &Path,
    what: &str,
    threads: usize,
    options: &[&str],
) -> String {
    let mut hanging = Command::new(program).arg(what).stdout(Stdio::piped()).spawn().expect("it starts");
    // It closes its output when a thread waits for the lock.
    let mut output = hanging.stdout.take().expect("a pipe");
    output.read_to_end(&mut Vec::new()).expect("it is read");
    let pid = hanging.id();
    kit::wait_for("waiting threads", || {
        let mut waiting = Vec::new();
        Host::live().futex_readings(pid, usize::MAX, &mut waiting);
        waiting.len() == threads
    });
    let (file, pid) = (folder.path(what), pid.to_string());
    let file = file.to_str().expect("UTF-8");
    let run =
        kit::run(&[&["lock", "user", "-q", "-o", file, "-p", &pid, "--duration", "1s"], options].concat());
    hanging.kill().expect("it is killed");
    hanging.wait().expect("it ends");
    run.expect(0).stdout
}

#[test]
fn wait_tree_leads_to_the_last_holder() {
    let Some((lab, program)) = programs() else { return };
    let document = user_locks(&lab, &program, "chain");
    let locks = document["locks"].as_array().expect("a list");
    let lock = locks.iter().find(|lock| lock["variable"] == "cache_lock").expect("a lock");
    let [holder] = &lock["waiting_holders"].as_array().expect("a list")[..] else { panic!("{lock:#}") };
    let [wait] = &holder["waits"].as_array().expect("a list")[..] else { panic!("{lock:#}") };
    assert_eq!((&holder["comm"], &wait["variable"]), (&"middle".into(), &"queue_lock".into()), "{lock:#}");
    assert_eq!((&wait["what"], &wait["function"]), (&"mutex".into(), &"refill".into()), "{lock:#}");
    let [last] = &wait["holders"].as_array().expect("a list")[..] else { panic!("{lock:#}") };
    assert_eq!((&last["comm"], &last["is_deadlock"]), (&"last".into(), &false.into()), "{lock:#}");
    let time = |of: &Json| of["time_ns"].as_u64().expect("a number");
    assert!(time(holder) >= time(wait) && time(wait) >= 20_000_000 && time(wait) == time(last), "{lock:#}");
    let file = lab.path("chain");
    let text = kit::run(&["lock", "user", "-i", file.to_str().expect("UTF-8")]).expect(0);
    text.prints(&["the holders wait too:", "    waits for mutex `queue_lock` in refill (", "held by last ("]);
}

#[test]
fn deadlocks_are_named() {
    let Some((lab, program)) = programs() else { return };
    // Both threads, and the one that waits for their ends.
    let text = output_of_hanging(&lab, &program, "deadlock", 3, &[]);
    for held in ["held by crossing (", "held by middle ("] {
        let line = text.lines().find(|line| line.contains(held) && !line.contains("waiting for"));
        assert!(line.is_some_and(|line| line.ends_with("), which waits above: a deadlock")), "{text}");
    }
}

#[test]
fn program_that_hangs_shows_who_holds_the_lock() {
    let Some((lab, program)) = programs() else { return };
    let text = output_of_hanging(&lab, &program, "stuck", 2, &["--json"]);
    let document = kit::schema::document("lock-user", &text);
    let [lock] = &document["locks"].as_array().expect("a list")[..] else { panic!("{document:#}") };
    assert_eq!((&lock["variable"], &lock["unfinished"]), (&"stuck".into(), &1.into()), "{lock:#}");
    let [holder] = &lock["holders"].as_array().expect("a list")[..] else { panic!("{lock:#}") };
    assert_eq!((&holder["comm"], &holder["percent"]), (&"owner".into(), &100.0.into()), "{lock:#}");
}

#[test]
fn sentence_names_the_lock_the_waiter_and_the_holder() {
    let Some((lab, program)) = programs() else { return };
    let file = lab.path("recorded");
    let (file, program) = (file.to_str().expect("UTF-8"), program.to_str().expect("UTF-8"));
    kit::run(&["lock", "record", "--user", "-q", "-o", file, "--", program, "two"]).expect(0);
    let text = kit::run(&["lock", "user", "-i", file]).expect(0).stdout;
    let sentence =
        text.lines().find(|line| line.contains("waiting for mutex `cache_lock` in lookup (locks.c:"));
    assert!(sentence.is_some_and(|line| line.contains("held by thread `holder`")), "{text}");
}

#[test]
fn recordings_without_lock_events_are_explained() {
    let Some(lab) = Folder::new() else { return };
    let file = lab.path("other");
    let file = file.to_str().expect("UTF-8");
    kit::run(&["record", "-q", "-e", "page-faults:u", "-o", file, "--", "true"]).expect(0);
    kit::run(&["lock", "contention", "-i", file]).expect(1).says(&[
        "no lock:contention_begin events (waits for kernel locks)",
        "it contains page-faults:u",
        "pmc lock record",
    ]);
    kit::run(&["lock", "user", "-i", file]).expect(1).says(&["no futex calls", "pmc lock user -- COMMAND"]);
    kit::run(&["record", "-q", "-e", "syscalls:sys_enter_futex", "-o", file, "--", "true"]).expect(0);
    kit::run(&["lock", "user", "-i", file])
        .expect(1)
        .says(&["no returns from futex calls (syscalls:sys_exit_futex)", "pmc lock user -- COMMAND"]);
    if kit::need_tracefs("lock/contention_begin") {
        kit::run(&["record", "-q", "-e", "lock:contention_begin", "-o", file, "--", "true"]).expect(0);
        kit::run(&["lock", "contention", "-i", file])
            .expect(1)
            .says(&["no lock:contention_end events (the end of each wait)", "pmc lock record"]);
        let events = "lock:contention_begin,lock:contention_end";
        kit::run(&["record", "-q", "-e", events, "-o", file, "--", "true"]).expect(0);
        kit::run(&["lock", "contention", "-o", "-i", file]).expect(1).says(&[
            "no sched:sched_waking events (wake-ups of waiting threads)",
            "pmc lock contention -o -a",
        ]);
    }
    kit::run(&["lock", "contention", "-Y", "mutx", "-i", file]).expect(2).says(&["mutex"]);
    kit::run(&["lock", "contention", "-k", "most", "-i", file]).expect(2).says(&["wait_total"]);
    kit::run(&["lock", "user", "-i", file, "--", "true"]).expect(2).says(&["omit -i"]);
}
