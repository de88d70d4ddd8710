//! Fuzz targets of pmc. `README.md` has the commands.
//!
//! A target is one line in `fuzz_targets/NAME.rs`: [`target!`] with its body, a function of this library, and
//! with its mutator if plain changes of bytes would not get far. With `cargo fuzz` the line becomes
//! libFuzzer's entry point. Otherwise it becomes a `main` that runs files, folders and seeded mutations.

use std::path::PathBuf;

pub mod agents;
pub mod commands;
pub mod driver;
pub mod events;
pub mod in_process;
pub mod live;
pub mod metrics;
pub mod mutation;
pub mod names;
pub mod programs;
pub mod recordings;
pub mod services;

#[cfg(fuzzing)]
pub use libfuzzer_sys;

/// Defines a fuzz target: `target!(body)` or `target!(body, mutator)`.
///
/// `body` is a `fn(&[u8])` that panics if it finds a fault. `mutator` is a [`mutation::Mutator`].
#[macro_export]
macro_rules! target {
    ($body:path) => {
        #[cfg(fuzzing)]
        $crate::libfuzzer_sys::fuzz_target!(init: $crate::driver::init(), |data: &[u8]| $body(data));
        $crate::target!(@main $body, $crate::mutation::bytes);
    };
    ($body:path, $mutator:path) => {
        #[cfg(fuzzing)]
        $crate::libfuzzer_sys::fuzz_target!(init: $crate::driver::init(), |data: &[u8]| $body(data));
        #[cfg(fuzzing)]
        $crate::libfuzzer_sys::fuzz_mutator!(|data: &mut [u8], size: usize, max_size: usize, seed: u32| {
            $crate::driver::mutate_for_libfuzzer(data, size, max_size, seed, $mutator)
        });
        $crate::target!(@main $body, $mutator);
    };
    (@main $body:path, $mutator:path) => {
        #[cfg(not(fuzzing))]
        fn main() -> std::process::ExitCode {
            $crate::driver::main(env!("CARGO_BIN_NAME"), $body, $mutator)
        }
    };
}

/// Returns a temporary folder, in memory if possible: pmc waits until files that it replaces are on disk.
pub(crate) fn folder() -> tempfile::TempDir {
    tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).expect("a temporary folder")
}

/// Returns the path of a file or folder of pmc's source folder. OSS-Fuzz runs the targets without that folder,
/// so `oss-fuzz/build.sh` puts what they read into `source`, next to the programs.
pub(crate) fn source(path: &str) -> PathBuf {
    let program = std::env::current_exe().expect("the path of the program");
    let copied = program.with_file_name("source");
    let folder = if copied.is_dir() { copied } else { concat!(env!("CARGO_MANIFEST_DIR"), "/..").into() };
    folder.join(path)
}

/// Passes the input as text, with replacements for what is not UTF-8.
pub(crate) fn with_text(data: &[u8], run: impl FnOnce(&str)) {
    run(&String::from_utf8_lossy(data));
}
