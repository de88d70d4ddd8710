//! Writing a recording that is readable at every moment.
//!
//! Receives the events, then whole records straight from ring memory, then the feature sections; makes a file
//! (or a stream) that perf and pmc read. Decides the layout and what happens when the disk is full. What is
//! recorded, when to drain and when to start another file is left to the recorder.
//!
//! ```text
//! file   0 | header | ids | attrs | records … ←─ data size, kept current ─→ | what came since | end
//!          at the end:            | records                                 | table | features |
//! ```
//! The header is complete from the first byte and names no features, so a reader takes the records up to the
//! data size and ignores the rest; the size is renewed ten times a second at most, and always at the end of a
//! record. Features are appended by [`Writer::finish`], and only then their bits are set; what is known of
//! them at the start stands among the records, too, so that a recording without an end knows its events'
//! names and its machine.

mod compress;

use std::fs::File;
use std::io::{self, IoSlice, Seek, Write};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use self::compress::Compressor;
use super::feature::{Compression, Feature, Features};
use super::header::{FILE_HEADER, PIPE_HEADER};
use super::magic::MAGIC;
use super::{Error, Form, RecordedEvent};
use crate::error::say;
use crate::record::{attr, kind};
use crate::sys::descriptor;
use crate::sys::output_file::{self, OutputPlace, Standing};
use crate::sys::replacement::Replacement;

/// How long the data size in the header may lag behind: with the time that records wait in a ring, less than
/// a second.
const LAG: Duration = Duration::from_millis(100);
/// Where the attrs' size stands in the header.
const ATTRS_SIZE_AT: u64 = 32;
/// Where the data section's size stands in the header.
const DATA_SIZE_AT: u64 = 48;
/// Where the feature bits stand.
const FEATURES_AT: u64 = 72;
/// Where a recording lies that nobody named.
const DEFAULT: &str = "perf.data";
/// The largest record.
const LARGEST: usize = u16::MAX as usize;

/// How to write.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// zstd level to compress records with (`-z`), 1 to 22.
    pub compress: Option<i32>,
    /// Events that may turn out to be needed: no reader sees them before [`Writer::show_spare`].
    pub spare: Vec<RecordedEvent>,
    /// The file lies beside its place until [`Writer::take_place`], and what is there stays. A writer that is
    /// dropped before leaves no file.
    pub hold: bool,
    /// A file that could not be written to its end is none: it takes its place last, and what failed goes.
    /// With `hold`.
    pub whole: bool,
    /// What a stream is called in errors, where it is not standard output.
    pub stream: Option<String>,
}

/// A recording being written.
#[derive(Debug)]
pub struct Writer {
    file: File,
    path: PathBuf,
    form: Form,
    /// Offset of the first record.
    data: u64,
    /// Bytes of whole records behind it.
    len: u64,
    /// The data size that stands in the header.
    told: u64,
    told_at: Instant,
    compressor: Option<Compressor>,
    /// Writing has failed: the file ends with its last whole record, and stays so.
    is_stopped: bool,
    is_finished: bool,
    unpacked: u64,
    /// Events that are not shown yet, and the size of the attrs once they are.
    spare: Vec<RecordedEvent>,
    all_attrs: u64,
    /// The file while it lies beside its place, and what stood there.
    place: Option<(Replacement, OutputPlace)>,
    whole: bool,
    /// Where `AUXTRACE` records lie in the file, and their sizes.
    traces: Vec<[u64; 2]>,
}

impl Writer {
    /// The form that a recording at this path takes: `-`, and a path that is a pipe, the pipe form.
    pub fn form_at(path: &Path) -> Form {
        let is_pipe = || output_file::look(path).is_ok_and(|there| is_chosen_pipe(path, &there));
        if path.as_os_str() == "-" || is_pipe() { Form::Pipe } else { Form::File }
    }

    /// Makes a file of mode 0600; one that exists is kept as `NAME.old`. `-`, and a path that is a pipe, take
    /// the pipe form. Links are followed as [`output_file`] says. `features` are what is known at the start:
    /// they are written now, as records.
    ///
    /// # Errors
    /// When the file cannot be made or its header not be written.
    pub fn create(
        path: impl AsRef<Path>,
        events: &[RecordedEvent],
        features: &Features,
        options: Options,
    ) -> Result<Self, Error> {
        let path = path.as_ref();
        if path.as_os_str() == "-" {
            let name = options.stream.clone().unwrap_or_else(|| "standard output".to_owned());
            let stdout = match descriptor::stdout_was_closed() {
                true => Err(rustix::io::Errno::BADF),
                false => rustix::io::dup(io::stdout()),
            };
            let stdout = stdout.map_err(|e| Error::io("writing to", Path::new(&name))(e.into()))?;
            return Self::stream(File::from(stdout), Path::new(&name), events, features, options);
        }
        let failed = Error::create(path);
        let there = output_file::look(path).map_err(Error::create(path))?;
        let (file, place) = match there.standing {
            Standing::Fifo if is_chosen_pipe(path, &there) => {
                let pipe = output_file::open_fifo(&there.path).map_err(Error::io("opening", path))?;
                return Self::stream(pipe, path, events, features, options);
            }
            // /dev/null: written where it is.
            Standing::Special => (File::options().write(true).open(&there.path).map_err(failed)?, None),
            Standing::File { len: 0, is_ours: true } if !options.hold => {
                (output_file::open_own(&there.path).map_err(failed)?, None)
            }
            _ => {
                let new = Replacement::new(&there.path);
                (new.create(0o600).map_err(failed)?, Some((new, there)))
            }
        };
        let (header, all_attrs) = file_header(events, &options.spare);
        let hold = options.hold;
        let mut writer = Self::new(file, path, Form::File, header.len() as u64, options)?;
        (writer.all_attrs, writer.place) = (all_attrs, place);
        writer.write(&[&header], 0, whole_records)?;
        // The sections come at the end, which a killed recorder never reaches.
        let mut known = Vec::new();
        push_features(features, &mut known);
        writer.write_records(&[&known])?;
        writer.announce_compression()?;
        if !hold {
            writer.take_place()?;
        }
        Ok(writer)
    }

    /// Writes the pipe form into an open stream; `path` is its name in errors.
    ///
    /// # Errors
    /// When the header cannot be written.
    pub fn stream(
        stream: File,
        path: &Path,
        events: &[RecordedEvent],
        features: &Features,
        options: Options,
    ) -> Result<Self, Error> {
        let mut writer = Self::new(stream, path, Form::Pipe, PIPE_HEADER, options)?;
        let mut header = Vec::new();
        header.extend(MAGIC);
        header.extend(PIPE_HEADER.to_ne_bytes());
        events.iter().for_each(|event| push_attr(event, &mut header));
        push_features(features, &mut header);
        if let Some(tracing) = &features.tracing_data {
            let padded = tracing.0.len().next_multiple_of(8);
            push_record(kind::HEADER_TRACING_DATA, &[&(padded as u32).to_ne_bytes()], &mut header);
            header.extend(&tracing.0);
            header.resize(header.len() + padded - tracing.0.len(), 0);
        }
        writer.write(&[&header], 0, whole_records)?;
        writer.announce_compression()?;
        Ok(writer)
    }

    fn new(file: File, path: &Path, form: Form, data: u64, options: Options) -> Result<Self, Error> {
        let compressor = options.compress.map(Compressor::new).transpose();
        Ok(Self {
            file,
            path: path.to_owned(),
            form,
            data,
            len: 0,
            told: 0,
            told_at: Instant::now(),
            compressor: compressor.map_err(Error::io("starting to compress", path))?,
            is_stopped: false,
            is_finished: false,
            unpacked: 0,
            spare: options.spare,
            all_attrs: 0,
            place: None,
            whole: options.whole,
            traces: Vec::new(),
        })
    }

    /// Puts a file that was held back where it belongs; what is there becomes `NAME.old`. Does so once.
    ///
    /// # Errors
    /// What the kernel says.
    pub fn take_place(&mut self) -> Result<(), Error> {
        let Some((new, there)) = self.place.take() else { return Ok(()) };
        // What stands there by now.
        if std::fs::symlink_metadata(&there.path).is_ok_and(|meta| meta.is_file() && meta.len() > 0) {
            keep_former(&there.path)?;
        }
        new.put().map_err(Error::create(&self.path))?;
        let was = match there.standing {
            Standing::OthersLink => "a link that another user made",
            Standing::Fifo => "a pipe",
            Standing::Special | Standing::Nothing | Standing::File { .. } => return Ok(()),
        };
        say::note(format!("replaced {}, which was {was}", self.path.display()));
        Ok(())
    }

    /// Shows the spare events to readers from now on: records of theirs may follow. Does so once.
    ///
    /// # Errors
    /// What the kernel says.
    pub fn show_spare(&mut self) -> Result<(), Error> {
        let spare = std::mem::take(&mut self.spare);
        match self.form {
            _ if spare.is_empty() => Ok(()),
            Form::Pipe => {
                let mut records = Vec::new();
                spare.iter().for_each(|event| push_attr(event, &mut records));
                self.write_records(&[&records])
            }
            // They lie behind the others already: the size takes them in.
            _ => self
                .file
                .write_all_at(&self.all_attrs.to_ne_bytes(), ATTRS_SIZE_AT)
                .map_err(Error::io("writing", &self.path)),
        }
    }

    /// Readers must know how far a compressed record unpacks before they meet one. The section that says so
    /// comes at the end, which a killed recorder never reaches; perf takes it as a record too.
    fn announce_compression(&mut self) -> Result<(), Error> {
        let Some(compression) = self.compression() else { return Ok(()) };
        let features = Features { compressed: Some(compression), ..Features::default() };
        let mut record = Vec::new();
        push_feature(
            Feature::COMPRESSED,
            &features.section(Feature::COMPRESSED).unwrap_or_default(),
            &mut record,
        );
        self.write_records(&[&record])
    }

    fn compression(&self) -> Option<Compression> {
        let packed = self.len.max(1);
        self.compressor.as_ref().map(|c| Compression {
            version: 1,
            kind: 1,
            level: c.level() as u32,
            ratio: (self.unpacked as f64 / packed as f64).round().max(1.0) as u32,
            mmap_len: compress::PIECE as u32,
        })
    }

    /// Appends records: the slices one behind the other are whole records (a ring that wraps gives two
    /// slices).
    ///
    /// Each call is one system call where nothing is compressed, so small records are best gathered first.
    ///
    /// # Errors
    /// What the kernel says. The file then ends with the last record that was written whole, and nothing more
    /// is taken.
    pub fn append(&mut self, slices: &[&[u8]]) -> Result<(), Error> {
        self.unpacked += slices.iter().map(|s| s.len() as u64).sum::<u64>();
        if let Some(mut compressor) = self.compressor.take() {
            let result = compressor.pack(slices, |records| self.write_records(&[records]));
            let path = &self.path;
            self.compressor = Some(compressor);
            result.map_err(|e| match e {
                compress::Error::Write(e) => e,
                compress::Error::Pack(e) => Error::io("compressing", path)(e),
            })?;
        } else {
            self.write_records(slices)?;
        }
        self.tick()
    }

    /// Appends an `AUXTRACE` record with the piece of a trace that it tells of behind it. Neither is
    /// compressed.
    ///
    /// # Errors
    /// As [`append`](Self::append); the file then ends before this record.
    pub fn append_trace(&mut self, record: &[u8], trace: &[&[u8]]) -> Result<(), Error> {
        let at = self.data + self.len;
        let slices: Vec<&[u8]> = std::iter::once(record).chain(trace.iter().copied()).collect();
        // A piece that is not whole cannot be told from records.
        self.write_behind(&slices, |_, _| 0)?;
        self.traces.push([at, record.len() as u64]);
        self.tick()
    }

    /// The section that says where traces lie (`auxtrace_index` in perf's `util/auxtrace.c`).
    fn trace_index(&self) -> Option<Vec<u8>> {
        let count = self.traces.len() as u64;
        let words = std::iter::once(&count).chain(self.traces.as_flattened());
        (count > 0).then(|| words.flat_map(|word| word.to_ne_bytes()).collect())
    }

    /// Renews the data size in the header if it lags behind for too long. To be called when there is nothing
    /// to append.
    ///
    /// # Errors
    /// What the kernel says.
    pub fn tick(&mut self) -> Result<(), Error> {
        // A size of 0 is what no reader wants to see: the first records are told at once.
        let is_due = self.told == 0 || self.told_at.elapsed() >= LAG;
        if self.told != self.len && is_due { self.tell_size() } else { Ok(()) }
    }

    fn tell_size(&mut self) -> Result<(), Error> {
        if self.form == Form::File {
            let size = self.len.to_ne_bytes();
            self.file.write_all_at(&size, DATA_SIZE_AT).map_err(Error::io("writing", &self.path))?;
        }
        (self.told, self.told_at) = (self.len, Instant::now());
        Ok(())
    }

    /// Bytes of the file, or sent into the stream.
    pub fn bytes(&self) -> u64 {
        self.data + self.len
    }
    /// Whether writing has failed and the file ends before what was appended does.
    pub fn is_cut(&self) -> bool {
        self.is_stopped && self.form == Form::File
    }

    /// Where it goes.
    pub fn path(&self) -> &Path {
        &self.path
    }

    fn write_records(&mut self, slices: &[&[u8]]) -> Result<(), Error> {
        self.write_behind(slices, whole_records)
    }

    /// Writes what counts as data, behind what is there: see [`write`](Self::write).
    fn write_behind(&mut self, slices: &[&[u8]], whole: impl Fn(&[&[u8]], u64) -> u64) -> Result<(), Error> {
        self.write(slices, self.data + self.len, whole)?;
        self.len += slices.iter().map(|s| s.len() as u64).sum::<u64>();
        Ok(())
    }

    /// Writes the slices at the file's end, which is at `at`. On failure cuts the file behind what is `whole`
    /// among their first bytes.
    fn write(
        &mut self,
        slices: &[&[u8]],
        at: u64,
        whole: impl Fn(&[&[u8]], u64) -> u64,
    ) -> Result<(), Error> {
        let stopped = || io::Error::from(io::ErrorKind::StorageFull);
        let result = if self.is_stopped { Err((stopped(), 0)) } else { write_all(&mut self.file, slices) };
        let Err((error, written)) = result else { return Ok(()) };
        if !self.is_stopped && self.form == Form::File {
            self.is_stopped = true;
            if at >= self.data {
                self.len += whole(slices, written);
            }
            // They free or reuse blocks, so a full disk does not stop them. The sections are written here.
            let _ = self.file.set_len(self.data + self.len);
            let _ = self.file.seek(io::SeekFrom::Start(self.data + self.len));
            let _ = self.tell_size();
        }
        self.is_stopped = true;
        Err(Error::io("writing", &self.path)(error))
    }

    /// Writes the feature sections (the file form all of them, the pipe form the build-ids) and ends the
    /// recording; the bytes written in all.
    ///
    /// # Errors
    /// What the kernel says; the records are complete and readable then too.
    pub fn finish(mut self, features: &Features) -> Result<u64, Error> {
        self.is_finished = true;
        if !self.whole {
            self.take_place()?;
        }
        if self.form == Form::Pipe {
            let mut records = Vec::new();
            for row in features.build_ids.iter().flat_map(|ids| &ids.0) {
                row.write_record(kind::HEADER_BUILD_ID, &mut records);
            }
            if !records.is_empty() {
                self.write_records(&[&records])?;
            }
            return Ok(self.bytes());
        }
        self.tell_size()?;
        let compression = self.compression();
        let sections: Vec<(Feature, Vec<u8>)> = Feature::ALL
            .iter()
            .filter_map(|&feature| {
                let section = match (feature, &compression) {
                    (Feature::COMPRESSED, Some(mine)) => {
                        Features { compressed: Some(mine.clone()), ..Features::default() }.section(feature)
                    }
                    (Feature::AUXTRACE, _) => self.trace_index().or_else(|| features.section(feature)),
                    _ => features.section(feature),
                };
                Some((feature, section?))
            })
            .collect();
        let mut table = Vec::new();
        let mut bits = [0u64; super::header::FEATURE_WORDS];
        let mut at = self.data + self.len + sections.len() as u64 * 16;
        for (feature, section) in &sections {
            let number = *feature as usize;
            bits[number / 64] |= 1 << (number % 64);
            table.extend(at.to_ne_bytes());
            table.extend((section.len() as u64).to_ne_bytes());
            at += section.len() as u64;
        }
        let mut slices = vec![table.as_slice()];
        slices.extend(sections.iter().map(|(_, section)| section.as_slice()));
        let end = self.data + self.len;
        if let Err((error, _)) = write_all(&mut self.file, &slices) {
            let _ = self.file.set_len(end);
            return Err(Error::io("writing", &self.path)(error));
        }
        let bits: Vec<u8> = bits.iter().flat_map(|word| word.to_ne_bytes()).collect();
        self.file.write_all_at(&bits, FEATURES_AT).map_err(Error::io("writing", &self.path))?;
        self.take_place()?;
        Ok(at)
    }
}

impl Drop for Writer {
    /// A recorder that gives up leaves all that it wrote readable.
    fn drop(&mut self) {
        // A file that has not taken its place goes.
        if self.place.take().is_none() && !self.is_finished && self.told != self.len {
            let _ = self.tell_size();
        }
    }
}

/// Whether a pipe is meant: anybody can have put one where the recording lies that nobody named.
fn is_chosen_pipe(path: &Path, there: &OutputPlace) -> bool {
    there.standing == Standing::Fifo && (path.as_os_str() != DEFAULT || there.path != path)
}

/// Keeps what is there as `NAME.old`.
fn keep_former(path: &Path) -> Result<(), Error> {
    let mut old = path.as_os_str().to_owned();
    old.push(".old");
    std::fs::rename(path, &old).map_err(Error::create(path))
}

/// Header, ids and attrs of the file form, and the size of all attrs when the spare ones are shown.
///
/// ```text
/// header | ids | ids of spare events | attrs | spare attrs | records …
///                                      '-size-'
/// ```
fn file_header(events: &[RecordedEvent], spare: &[RecordedEvent]) -> (Vec<u8>, u64) {
    let all = || events.iter().chain(spare);
    let attr_size = all().map(|event| event.attr.size()).max().unwrap_or(attr::SMALLEST);
    let entry = attr_size + 16;
    let ids: usize = all().map(|event| event.ids.len() * 8).sum();
    let attrs_at = FILE_HEADER as usize + ids;
    let all_attrs = entry * (events.len() + spare.len());
    let data_at = attrs_at + all_attrs;
    let mut out = Vec::with_capacity(data_at);
    out.extend(MAGIC);
    let words = [FILE_HEADER as usize, entry, attrs_at, entry * events.len(), data_at, 0, 0, 0, 0, 0, 0, 0];
    out.extend(words.iter().flat_map(|&word| (word as u64).to_ne_bytes()));
    for event in all() {
        out.extend(event.ids.iter().flat_map(|id| id.to_ne_bytes()));
    }
    let mut at = FILE_HEADER as usize;
    for event in all() {
        out.extend(attr::to_bytes(&event.attr, attr_size));
        let size = event.ids.len() * 8;
        out.extend((at as u64).to_ne_bytes());
        out.extend((size as u64).to_ne_bytes());
        at += size;
    }
    (out, all_attrs as u64)
}

/// The record that stands for an event in a stream.
fn push_attr(event: &RecordedEvent, out: &mut Vec<u8>) {
    let mut body = attr::to_bytes(&event.attr, event.attr.size());
    // An event with more ids than a record holds names the rest by EVENT_DESC, or not at all.
    let room = (LARGEST - 8 - body.len()) / 8;
    body.extend(event.ids.iter().take(room).flat_map(|id| id.to_ne_bytes()));
    push_record(kind::HEADER_ATTR, &[&body], out);
}

/// All sections that are known at the start, as records.
fn push_features(features: &Features, out: &mut Vec<u8>) {
    for &feature in Feature::ALL {
        let section = match feature {
            Feature::TRACING_DATA | Feature::BUILD_ID => None,
            _ => features.section(feature),
        };
        if let Some(section) = section.filter(|s| s.len() <= LARGEST - 24) {
            push_feature(feature, &section, out);
        }
    }
}

fn push_feature(feature: Feature, section: &[u8], out: &mut Vec<u8>) {
    let number = u64::from(feature as u32).to_ne_bytes();
    let padding = vec![0; section.len().next_multiple_of(8) - section.len()];
    push_record(kind::HEADER_FEATURE, &[&number, section, &padding], out);
}

fn push_record(kind: u32, body: &[&[u8]], out: &mut Vec<u8>) {
    let size = 8 + body.iter().map(|part| part.len()).sum::<usize>();
    out.extend(kind.to_ne_bytes());
    out.extend(0u16.to_ne_bytes());
    out.extend((size as u16).to_ne_bytes());
    body.iter().for_each(|part| out.extend_from_slice(part));
}

/// Writes all slices; on failure the kernel's answer and the bytes that were written before.
fn write_all(file: &mut File, slices: &[&[u8]]) -> Result<(), (io::Error, u64)> {
    let mut written = 0;
    let mut slices: Vec<IoSlice<'_>> = slices.iter().map(|slice| IoSlice::new(slice)).collect();
    let mut left = slices.as_mut_slice();
    IoSlice::advance_slices(&mut left, 0);
    while !left.is_empty() {
        match file.write_vectored(left) {
            Ok(0) => return Err((io::ErrorKind::WriteZero.into(), written)),
            Ok(count) => {
                written += count as u64;
                IoSlice::advance_slices(&mut left, count);
            }
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            Err(e) if e.kind() == io::ErrorKind::WouldBlock => {
                output_file::wait_for_room(file).map_err(|e| (e, written))?;
            }
            Err(e) => return Err((e, written)),
        }
    }
    Ok(())
}

/// Bytes of the whole records among the first `limit` bytes of the slices.
fn whole_records(slices: &[&[u8]], limit: u64) -> u64 {
    let byte = |at: u64| {
        let mut at = usize::try_from(at).ok()?;
        for slice in slices {
            match slice.get(at) {
                Some(byte) => return Some(*byte),
                None => at -= slice.len(),
            }
        }
        None
    };
    let mut whole = 0;
    while let Some((low, high)) = byte(whole + 6).zip(byte(whole + 7)) {
        let size = u64::from(u16::from_ne_bytes([low, high]));
        if size < 8 || whole + size > limit {
            break;
        }
        whole += size;
    }
    whole
}
