//! Programs with known behaviour, and recordings of them by perf or pmc.

use std::path::PathBuf;
use std::process::Command;

use crate::kit::burn::burn_flags;
use crate::kit::{self, oracle};

/// Recursion and inlined code: a call tree of some depth.
pub(crate) const DEEP: &str = r#"
volatile long sink;
__attribute__((noinline)) void leaf(int n) { for (int i = 0; i < n; i++) sink += i; }
__attribute__((noinline)) void other(int n) { for (int i = 0; i < n; i++) sink ^= i * 3; }
__attribute__((noinline)) void down(int d, int n) { if (d == 0) { leaf(n); return; } down(d - 1, n); sink++; }
static inline __attribute__((always_inline)) void inlined(int n) { for (int i = 0; i < n; i++) sink += i * 5; }
__attribute__((noinline)) void middle(int n) { down(n % 7, loops(2000)); other(loops(1500)); inlined(loops(700)); sink++; }
int main(void) { int i = 0; for_cpu_ms(300) for (int n = 0; n < 7; n++) middle(i++); return 0; }
"#;

/// Threads with different names, then processes.
pub(crate) const MANY: &str = r#"
#include <pthread.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>
volatile long sink;
__attribute__((noinline)) void spin(long ms) { for_cpu_ms(ms) for (long i = 0; i < loops(20000); i++) sink += i; }
void *work(void *ms) { prctl(PR_SET_NAME, "worker"); spin((long)ms); return 0; }
int main(void) {
  pthread_t t[3];
  for (long i = 0; i < 3; i++) pthread_create(t + i, 0, work, (void *)(50 * (i + 1)));
  for (int i = 0; i < 3; i++) pthread_join(t[i], 0);
  for (int i = 0; i < 5; i++) if (fork() == 0) { spin(30); _exit(0); }
  while (wait(0) > 0);
  return 0;
}
"#;

/// Code that is in no file, and a perf map that names it. `GENERATED` of the kit precedes it.
pub(crate) const JIT: &str = r#"
int main(void) {
  unsigned char *p = generated("first", "the second one");
  for_cpu_ms(200) { ((void (*)(int))p)(loops(300000)); ((void (*)(int))(p + 256))(loops(150000)); }
  return 0;
}
"#;

/// A temporary folder with programs and recordings.
pub(crate) struct Lab(tempfile::TempDir);

impl Lab {
    /// Returns `None` if perf or gcc is missing, or perf may not record.
    pub(crate) fn new() -> Option<Self> {
        let met = kit::need_program("perf") && kit::need_program("gcc") && kit::need_root();
        met.then(|| Self(tempfile::tempdir().expect("a temporary folder")))
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    pub(crate) fn build(&self, name: &str, source: &str) -> PathBuf {
        let (file, program) = (self.path(&format!("{name}.c")), self.path(name));
        std::fs::write(&file, source).expect("the source is written");
        let flags = ["-O1", "-g", "-fno-omit-frame-pointer", "-pthread", "-o"];
        let gcc = Command::new("gcc")
            .args(burn_flags())
            .args(flags)
            .arg(&program)
            .arg(&file)
            .status()
            .expect("gcc starts");
        assert!(gcc.success());
        program
    }

    /// Records with perf, as a stream if `pipe`.
    pub(crate) fn record(&self, name: &str, options: &[&str], program: &[&str], pipe: bool) -> PathBuf {
        let file = &self.path(name);
        let recording =
            oracle::Recording { file, options, work: program, folder: self.0.path(), is_stream: pipe };
        recording.make()
    }
}
