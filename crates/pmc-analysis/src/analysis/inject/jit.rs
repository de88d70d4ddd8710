//! Extracts generated code to files: writes each piece of code in a jitdump as a shared library next to the
//! jitdump. The new recording maps the library from the time at which the compiler created the code.
//!
//! ```text
//!   jit-77.dump  | load main | lines | load loop | move main | …
//!   jitted-77-0.so  jitted-77-1.so          MMAP2 at the time of each load, and of each move
//! ```

use std::io::{self, Write};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use crate::session::Session;
use pmc_perfdata::record::encode::Encoder;
use pmc_perfdata::record::{MappedFileId, Mmap, Mmap2, SampleId, SampleLayout, Thread};
use pmc_symbols::symbol::SymbolOptions;
use pmc_symbols::symbol::jit::elf_file;
use pmc_symbols::symbol::jit::jitdump::Jitdump;
use pmc_sys::abi::attr::{Flag, kind};
use pmc_sys::error::{Error, Result, Warning, say};
use pmc_sys::sort;
use pmc_sys::sys::replacement::Replacement;
use pmc_sys::units::PerfTime;

/// `CLOCK_MONOTONIC`, the clock that JIT compilers use by convention.
const MONOTONIC: i32 = 1;

/// Mappings of generated code that have not been written yet.
#[derive(Debug, Default)]
pub(super) struct JitCodes {
    /// Time of each record and its range in `records`, latest first. The next record to write is therefore
    /// the last entry.
    waiting: Vec<(u64, std::ops::Range<usize>)>,
    records: Vec<u8>,
    files: u64,
}

impl JitCodes {
    /// Writes the files for all jitdumps that processes mapped.
    pub(super) fn collect(session: &Session, symbols: &SymbolOptions) -> Result<Self> {
        let mut codes = Self::default();
        let mut dumps = session.history.jitdumps.clone();
        dumps.sort();
        dumps.dedup();
        if dumps.is_empty() {
            let what = "no recorded program mapped a jitdump".to_owned();
            say::warn(&Warning::Recording { what });
            return Ok(codes);
        }
        check_clock(session)?;
        let layout = session.reader.layouts().iter().next();
        let Some(layout) = layout.filter(|layout| layout.trailer_size() > 0) else {
            return Err(Error::new("the records of this recording have no timestamps")
                .why("it was made without sample_id_all, by a perf before Linux 2.6.38"));
        };
        for (pid, path) in &dumps {
            let here = symbols.below_symfs(path);
            match Jitdump::read(&here) {
                Ok(dump) if dump.has_cpu_times => {
                    return Err(Error::new(format!("{}: its times are raw CPU timestamps", path.display()))
                        .why("they cannot be compared with the recording's")
                        .try_this("configure the compiler to use CLOCK_MONOTONIC"));
                }
                Ok(dump) => codes.add(*pid, (path, &here), &dump, layout)?,
                Err(error) => {
                    let what = format!("{} cannot be read: {error}", here.display());
                    say::warn(&Warning::Recording { what });
                }
            }
        }
        sort::by_key(&mut codes.waiting, |(time, range)| std::cmp::Reverse((*time, range.start)));
        Ok(codes)
    }

    /// Adds the code recorded in a jitdump. `path` holds the dump's path on the recorded machine (used in the
    /// mappings) and its path on this machine.
    fn add(&mut self, pid: u32, path: (&Path, &Path), dump: &Jitdump, layout: &SampleLayout) -> Result<()> {
        let [folder, here] = [path.0, path.1].map(|path| path.parent().unwrap_or(Path::new(".")));
        let thread = Thread { pid: pid as i32, tid: pid as i32 };
        let mut written = 0;
        for code in dump.codes() {
            let name = format!("jitted-{pid}-{}.so", code.number);
            let (file, made) = (folder.join(&name), here.join(&name));
            let id = elf_file::build_id(dump, code);
            // A move reuses the file of the preceding load.
            if code.number >= written {
                replace(&made, &elf_file::of(dump, code, &id))
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

    /// Appends the mappings up to and including `time`.
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

/// Checks that the timestamps of code and samples come from the same clock.
fn check_clock(session: &Session) -> Result<()> {
    let on_it = |attr: &pmc_sys::abi::Attr| attr.get(Flag::UseClockid) && attr.clockid() == MONOTONIC;
    let events = session.reader.events();
    match events.iter().find(|event| !on_it(&event.attr) && event.attr.kind() != kind::TRACEPOINT) {
        None => Ok(()),
        Some(event) => Err(Error::new("generated code and recording use different clocks")
            .why(format!("{} was not recorded with CLOCK_MONOTONIC, which JIT compilers use", event.name()))
            .try_this("pmc record -k mono; pmc report and pmc annotate read jitdumps without inject")),
    }
}

/// Writes a file atomically. Replaces an existing file, and does not follow symlinks.
fn replace(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let new = Replacement::new(path);
    new.create(0o600)?.write_all(bytes)?;
    new.put()
}
