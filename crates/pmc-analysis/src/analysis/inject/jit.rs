//! Extracts generated code: writes each function in a jitdump to a shared library next to the jitdump. In the
//! new recording, the library is mapped from the time at which the compiler generated the code.
//!
//! ```text
//!   jit-77.dump  | load main | lines | load loop | move main | …
//!   jitted-77-0.so  jitted-77-1.so          MMAP2 at the time of each load, and of each move
//! ```

use std::io::{self, Write};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use rustc_hash::FxHashMap;

use crate::session::Session;
use pmc_perfdata::record::encode::Encoder;
use pmc_perfdata::record::{MappedFileId, Mmap, Mmap2, SampleId, SampleLayout, Thread};
use pmc_symbols::symbol::SymbolOptions;
use pmc_symbols::symbol::jit::elf_file;
use pmc_symbols::symbol::jit::jitdump::{Jitdump, JitdumpError};
use pmc_sys::abi::attr::{Flag, kind};
use pmc_sys::error::{Error, Result, say};
use pmc_sys::sys::regular_file::HeldFolder;
use pmc_sys::sys::replacement::Replacement;
use pmc_text::units::PerfTime;

/// `CLOCK_MONOTONIC`, the clock that JIT compilers use by convention.
const MONOTONIC: i32 = 1;

/// Mappings of generated code that are still to be written.
#[derive(Debug, Default)]
pub(super) struct JitCodes {
    /// The time of each record and its range in `records`, latest first, so that the next record to write is
    /// the last entry.
    waiting: Vec<(u64, std::ops::Range<usize>)>,
    records: Vec<u8>,
    files: u64,
}

impl JitCodes {
    /// Writes the files for all jitdumps that were mapped by processes.
    pub(super) fn collect(session: &Session, symbols: &SymbolOptions) -> Result<Self> {
        let mut codes = Self::default();
        let mut dumps = session.history.jitdumps.clone();
        dumps.sort();
        dumps.dedup();
        if dumps.is_empty() {
            say::note("no recorded program mapped a jitdump");
            return Ok(codes);
        }
        check_clock(session)?;
        let layout = session.reader.layouts().iter().next();
        let Some(layout) = layout.filter(|layout| layout.trailer_size() > 0) else {
            return Err(Error::new("the records in this recording have no timestamps")
                .why("it was recorded without sample_id_all, by a version of perf older than Linux 2.6.38"));
        };
        for (pid, path) in &dumps {
            let here = symbols.below_symfs(path);
            // Reads and writes in the same folder, even if its owner replaces it with a link in the meantime.
            let held = HeldFolder::open(here.parent().unwrap_or(Path::new("/")));
            let dump = held.map_err(JitdumpError::from).and_then(|folder| {
                let inside = folder.path().join(here.file_name().unwrap_or_default());
                Ok((Jitdump::read(&inside)?, folder))
            });
            match dump {
                Ok((dump, _)) if dump.has_cpu_times => {
                    return Err(Error::new(format!("{}: its times are raw CPU timestamps", path.display()))
                        .why("they cannot be compared with those in the recording")
                        .try_this("configure the JIT compiler to use CLOCK_MONOTONIC"));
                }
                Ok((dump, held)) => codes.add(*pid, (path, &here), &held, &dump, layout)?,
                Err(error) => say::note(format!("{} cannot be read: {error}", here.display())),
            }
        }
        codes.waiting.sort_by_key(|(time, range)| std::cmp::Reverse((*time, range.start)));
        Ok(codes)
    }

    /// Adds the code in a jitdump. `path` is the dump's path on the recorded machine, which the mappings use,
    /// and its path on this machine.
    fn add(
        &mut self,
        pid: u32,
        path: (&Path, &Path),
        held: &HeldFolder,
        dump: &Jitdump,
        layout: &SampleLayout,
    ) -> Result<()> {
        let [folder, here] = [path.0, path.1].map(|path| path.parent().unwrap_or(Path::new(".")));
        let thread = Thread { pid: pid as i32, tid: pid as i32 };
        let mut written = 0;
        // Moved code has the same build-id. A hostile file moves a large function very often.
        let mut ids: FxHashMap<u32, [u8; 16]> = FxHashMap::default();
        for code in dump.codes() {
            let name = format!("jitted-{pid}-{}.so", code.number);
            let (file, made) = (folder.join(&name), here.join(&name));
            let id = *ids.entry(code.number).or_insert_with(|| elf_file::build_id(dump, code));
            // A move reuses the file of the preceding load.
            if code.number >= written {
                replace(&held.path().join(&name), &elf_file::build(dump, code, &id))
                    .map_err(|error| Error::io(format!("writing {}", made.display()), error))?;
                written = code.number + 1;
                self.files += 1;
            }
            let map = Mmap {
                thread,
                addr: code.start,
                len: code.size,
                pgoff: elf_file::TEXT,
                is_data: false,
                name: file.as_os_str().as_bytes(),
            };
            let mut encoder = Encoder::new(0);
            encoder.mmap2(&Mmap2 {
                map,
                file: MappedFileId::BuildId(&id),
                prot: READ_EXECUTE,
                flags: PRIVATE,
            });
            let trailer =
                SampleId { thread: Some(thread), time: Some(PerfTime(code.time)), ..SampleId::default() };
            let start = self.records.len();
            self.records.extend(encoder.with_trailer(&layout.trailer(&trailer)));
            self.waiting.push((code.time, start..self.records.len()));
        }
        Ok(())
    }

    /// Returns the number of files written.
    pub(super) fn count(&self) -> u64 {
        self.files
    }

    /// Appends the mappings up to this time, inclusive.
    pub(super) fn until(&mut self, time: PerfTime, out: &mut Vec<u8>) {
        while self.waiting.last().is_some_and(|(at, _)| *at <= time.0) {
            if let Some((_, range)) = self.waiting.pop() {
                out.extend_from_slice(&self.records[range]);
            }
        }
    }

    /// Replaces `out` with all remaining mappings.
    pub(super) fn rest(&mut self, out: &mut Vec<u8>) {
        out.clear();
        self.until(PerfTime(u64::MAX), out);
    }
}

/// `PROT_READ` and `PROT_EXEC`; `MAP_PRIVATE`.
const READ_EXECUTE: u32 = 5;
const PRIVATE: u32 = 2;

/// Checks that code and samples have timestamps from the same clock.
fn check_clock(session: &Session) -> Result<()> {
    let on_it = |attr: &pmc_sys::abi::Attr| attr.get(Flag::UseClockid) && attr.clockid() == MONOTONIC;
    let events = session.reader.events();
    match events.iter().find(|event| !on_it(&event.attr) && event.attr.kind() != kind::TRACEPOINT) {
        None => Ok(()),
        Some(event) => Err(Error::new("JIT-compiled code and the recording use different clocks")
            .why(format!("{} was not recorded with CLOCK_MONOTONIC, which JIT compilers use", event.name()))
            .try_this("pmc record -k mono; pmc report and pmc annotate read jitdumps without inject")),
    }
}

/// Writes a file atomically. Replaces an existing file, without following symbolic links.
fn replace(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let new = Replacement::new(path);
    new.create(0o600)?.write_all(bytes)?;
    new.put()
}
