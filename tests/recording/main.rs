//! Recording: the files of `pmc record`, the tables of `pmc top`, and perf's file format, written and read.

#[path = "../kit/mod.rs"]
mod kit;

/// The mutations and checks of the fuzz targets.
#[allow(dead_code, unreachable_pub, reason = "the fuzz targets use the rest")]
#[path = "../../fuzz/src"]
mod fuzz {
    pub mod in_process;
    pub mod mutation;
    pub mod recordings;
}

mod attacked;
mod build_id_cache;
mod latency;
mod lock;
mod mcp;
mod perfdata;
mod perfdata_hostile;
mod probe;
mod profile;
mod record;
mod top;
mod trace;
mod trace_notation;
mod wall;

/// A temporary folder for programs and recordings.
struct Lab(tempfile::TempDir);

impl Lab {
    fn new() -> Self {
        Self(tempfile::tempdir().expect("a temporary folder"))
    }

    fn path(&self, name: &str) -> std::path::PathBuf {
        self.0.path().join(name)
    }

    /// Compiles a C program, which may use `burn.h`.
    #[track_caller]
    fn program(&self, name: &str, source: &str, flags: &[&str]) -> std::path::PathBuf {
        kit::lab::build(self.0.path(), name, source, flags)
    }
}
