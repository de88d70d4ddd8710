//! Writes a recording that is readable at all times.
//!
//! Receives the events, then complete records directly from ring buffer memory, and finally the feature
//! sections. Writes a file or a stream that perf and pmc can read. Decides the layout, and how to handle a
//! full disk. The recorder decides what to record, when to drain the rings and when to start another file.
//!
//! ```text
//! file   0 | header | ids | attrs | records … ←─ data size, kept current ─→ | newer records   | end
//!          at the end:            | records                                 | table | features |
//! ```
//! The header is complete from the start and lists no features. A reader reads the records up to the data
//! size, and ignores all data after it. The data size always ends at a record, and is updated at most ten
//! times per second. [`Writer::finish`] appends the features, and only then sets their bits. Features that
//! are known at the start are also written as records, so even an unfinished recording contains the names of
//! its events and the data about the machine.

mod compress;
mod existing;

use std::fmt;
use std::fs::{self, File, Metadata};
use std::io::{self, IoSlice, Seek, Write};
use std::os::unix::fs::{FileExt, FileTypeExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use self::compress::Compressor;
use self::existing::recording_files;
use super::error::PerfdataError;
use super::event::RecordedEvent;
use super::feature::{Compression, FeatureNumber, Features};
use super::header::{FEATURES_AT, FILE_HEADER, PIPE_HEADER, RecordingLayout, feature_table};
use super::magic::MAGIC;
use crate::record::{attr, kind};
use pmc_sys::sys::descriptor;
use pmc_sys::sys::output_file::{self, ExistingFile, OutputPlace};
use pmc_sys::sys::replacement::Replacement;

/// Maximum delay before the header's data size is updated. Even with the time that records wait in a ring
/// buffer, the total delay is less than a second.
const LAG: Duration = Duration::from_millis(100);
/// Offset of the attrs' size in the header.
const ATTRS_SIZE_AT: u64 = 32;
/// Offset of the data section's size in the header.
const DATA_SIZE_AT: u64 = 48;
/// Maximum size of a record.
const LARGEST: usize = u16::MAX as usize;

/// Options for writing.
#[derive(Debug, Clone, Default)]
pub struct WriteOptions {
    /// zstd level with which to compress records (`-z`), 1 to 22.
    pub compress: Option<i32>,
    /// Events that may be needed later. Readers cannot see them until [`Writer::show_spare`] is called.
    pub spare: Vec<RecordedEvent>,
    /// Whether to write to a temporary file until [`Writer::replace_target`] is called, leaving any existing
    /// file in place. If the writer is dropped before that, no file remains.
    pub hold: bool,
    /// Whether to discard an incomplete file: the file is moved into place only at the end, and removed on
    /// failure. Requires `hold`.
    pub whole: bool,
    /// Name of the stream in errors, unless it is standard output.
    pub stream: Option<String>,
    /// Called when the recording replaces something that was not a file of the user.
    pub replaced: Option<fn(&Path, ReplacedFile)>,
}

/// What a recording has replaced.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum ReplacedFile {
    /// A symbolic link created by another user.
    OthersLink,
    /// A named pipe created by another user.
    OthersPipe,
    /// A device or socket created by another user.
    OthersSpecial,
}

impl fmt::Display for ReplacedFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::OthersLink => "a symbolic link created by another user",
            Self::OthersPipe => "a pipe created by another user",
            Self::OthersSpecial => "a device or socket created by another user",
        })
    }
}

/// A recording being written.
#[derive(Debug)]
pub struct Writer {
    file: File,
    path: PathBuf,
    form: RecordingLayout,
    /// Offset of the first record.
    data: u64,
    /// Total size of the complete records.
    len: u64,
    /// The data size that the header currently contains.
    told: u64,
    told_at: Instant,
    compressor: Option<Compressor>,
    /// Whether writing has failed. In this case, the file ends with its last complete record, and nothing
    /// more is written.
    is_stopped: bool,
    is_finished: bool,
    unpacked: u64,
    /// Events that are not visible to readers yet, and the size of the attrs including them.
    spare: Vec<RecordedEvent>,
    all_attrs: u64,
    /// The temporary file and the result of looking up its final path, until the file is moved.
    place: Option<(Replacement, OutputPlace)>,
    whole: bool,
    replaced: Option<fn(&Path, ReplacedFile)>,
    /// Offsets and sizes of `AUXTRACE` records in the file.
    traces: Vec<[u64; 2]>,
}

impl Writer {
    /// Returns the form of a recording at this path: the pipe form for `-` and for named pipes, else the
    /// file form.
    pub fn form_at(path: &Path) -> RecordingLayout {
        let path = output_file::without_slash(path);
        let is_pipe =
            || output_file::resolve_links(path).is_ok_and(|there| there.standing == ExistingFile::Fifo);
        if path.as_os_str() == "-" || is_pipe() { RecordingLayout::Pipe } else { RecordingLayout::File }
    }

    /// Creates a file with mode 0600, and renames an existing file to `NAME.old`. Uses the pipe form for `-`
    /// and for named pipes. Follows links as described in [`output_file`]. Writes `features`, which are known
    /// at the start, as records.
    ///
    /// # Errors
    /// Fails if the file cannot be created, or its header cannot be written.
    pub fn create(
        path: impl AsRef<Path>,
        events: &[RecordedEvent],
        features: &Features,
        options: WriteOptions,
    ) -> Result<Self, PerfdataError> {
        let path = output_file::without_slash(path.as_ref());
        if path.as_os_str() == "-" {
            let name = options.stream.clone().unwrap_or_else(|| "standard output".to_owned());
            let stdout = match descriptor::stdout_was_closed() {
                true => Err(rustix::io::Errno::BADF),
                false => rustix::io::dup(io::stdout()),
            };
            let stdout = stdout.map_err(|e| PerfdataError::io("writing to", Path::new(&name))(e.into()))?;
            return Self::stream(File::from(stdout), Path::new(&name), events, features, options);
        }
        let failed = PerfdataError::create(path);
        let there = output_file::resolve_links(path).map_err(PerfdataError::create(path))?;
        let (file, place) = match there.standing {
            ExistingFile::Fifo => {
                let pipe = there.open_special().map_err(PerfdataError::io("opening", path))?;
                return Self::stream(pipe, path, events, features, options);
            }
            // Devices such as /dev/null are written in place.
            ExistingFile::Special if recording_files(&there.path).is_none() => {
                (output_file::create(&there.path, 0o600, false).map_err(failed)?, None)
            }
            ExistingFile::File { len: 0, is_ours: true } if !options.hold => {
                (output_file::open_own(&there.path).map_err(failed)?, None)
            }
            _ => {
                let new = Replacement::new(&there.path);
                (new.create(0o600).map_err(failed)?, Some((new, there)))
            }
        };
        let (header, all_attrs) = file_header(events, &options.spare);
        let hold = options.hold;
        let mut writer = Self::new(file, path, RecordingLayout::File, header.len() as u64, options)?;
        (writer.all_attrs, writer.place) = (all_attrs, place);
        writer.write(&[&header], 0, whole_records)?;
        // Feature sections are written at the end, so they are missing if the recorder is killed.
        let mut known = Vec::new();
        push_features(features, &mut known);
        writer.write_records(&[&known])?;
        writer.announce_compression()?;
        if !hold {
            writer.replace_target()?;
        }
        Ok(writer)
    }

    /// Writes the file form to an open, empty file. `path` is the file's name in errors.
    ///
    /// # Errors
    /// Fails if the header cannot be written.
    pub fn file(file: File, path: &Path, events: &[RecordedEvent]) -> Result<Self, PerfdataError> {
        let (header, _) = file_header(events, &[]);
        let (size, options) = (header.len() as u64, WriteOptions::default());
        let mut writer = Self::new(file, path, RecordingLayout::File, size, options)?;
        writer.write(&[&header], 0, whole_records)?;
        Ok(writer)
    }

    /// Writes the pipe form to an open stream. `path` is the stream's name in errors.
    ///
    /// # Errors
    /// Fails if the header cannot be written.
    pub fn stream(
        stream: File,
        path: &Path,
        events: &[RecordedEvent],
        features: &Features,
        options: WriteOptions,
    ) -> Result<Self, PerfdataError> {
        let mut writer = Self::new(stream, path, RecordingLayout::Pipe, PIPE_HEADER, options)?;
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

    fn new(
        file: File,
        path: &Path,
        form: RecordingLayout,
        data: u64,
        options: WriteOptions,
    ) -> Result<Self, PerfdataError> {
        let compressor = options.compress.map(Compressor::new).transpose();
        Ok(Self {
            file,
            path: path.to_owned(),
            form,
            data,
            len: 0,
            told: 0,
            told_at: Instant::now(),
            compressor: compressor.map_err(PerfdataError::io("starting to compress", path))?,
            is_stopped: false,
            is_finished: false,
            unpacked: 0,
            spare: options.spare,
            all_attrs: 0,
            place: None,
            whole: options.whole,
            replaced: options.replaced,
            traces: Vec::new(),
        })
    }

    /// Moves a held file into place, and renames an existing file to `NAME.old`. Only the first call has an
    /// effect.
    ///
    /// # Errors
    /// Fails if the file cannot be renamed.
    pub fn replace_target(&mut self) -> Result<(), PerfdataError> {
        let Some((new, there)) = self.place.take() else { return Ok(()) };
        // Another file may have been created at this path in the meantime.
        let is_file = |meta: Metadata| meta.is_file() && meta.len() > 0;
        if fs::symlink_metadata(&there.path).is_ok_and(is_file) || recording_files(&there.path).is_some() {
            existing::keep(&there.path)?;
        }
        new.put().map_err(PerfdataError::create(&self.path))?;
        let was = match there.standing {
            ExistingFile::Others(kind) if kind.is_symlink() => ReplacedFile::OthersLink,
            ExistingFile::Others(kind) if kind.is_fifo() => ReplacedFile::OthersPipe,
            ExistingFile::Others(_) => ReplacedFile::OthersSpecial,
            ExistingFile::Fifo
            | ExistingFile::Special
            | ExistingFile::Nothing
            | ExistingFile::File { .. } => return Ok(()),
        };
        if let Some(replaced) = self.replaced {
            replaced(&self.path, was);
        }
        Ok(())
    }

    /// Makes the spare events visible to readers, so that their records may follow. Only the first call has
    /// an effect.
    ///
    /// # Errors
    /// Fails if writing fails.
    pub fn show_spare(&mut self) -> Result<(), PerfdataError> {
        let spare = std::mem::take(&mut self.spare);
        match self.form {
            _ if spare.is_empty() => Ok(()),
            RecordingLayout::Pipe => {
                let mut records = Vec::new();
                spare.iter().for_each(|event| push_attr(event, &mut records));
                self.write_records(&[&records])
            }
            // Their attrs already follow the other attrs in the file, so increasing the size includes them.
            _ => self
                .file
                .write_all_at(&self.all_attrs.to_ne_bytes(), ATTRS_SIZE_AT)
                .map_err(PerfdataError::io("writing", &self.path)),
        }
    }

    /// Writes the unpacked size of compressed records before the first such record. The section with this
    /// size is written only at the end, so it would be missing if the recorder were killed. perf also accepts
    /// the size as a record.
    fn announce_compression(&mut self) -> Result<(), PerfdataError> {
        let Some(compression) = self.compression() else { return Ok(()) };
        let features = Features { compressed: Some(compression), ..Features::default() };
        let mut record = Vec::new();
        push_feature(
            FeatureNumber::COMPRESSED,
            &features.section(FeatureNumber::COMPRESSED).unwrap_or_default(),
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

    /// Appends records. The concatenated slices must be complete records (a ring buffer that wraps gives
    /// two slices).
    ///
    /// Without compression, each call makes one system call, so callers should collect small records first.
    ///
    /// # Errors
    /// Fails if writing fails. The file then ends with the last complete record, and all further records are
    /// dropped.
    pub fn append(&mut self, slices: &[&[u8]]) -> Result<(), PerfdataError> {
        self.unpacked += slices.iter().map(|s| s.len() as u64).sum::<u64>();
        if let Some(mut compressor) = self.compressor.take() {
            let result = compressor.pack(slices, |records| self.write_records(&[records]));
            let path = &self.path;
            self.compressor = Some(compressor);
            result.map_err(|e| match e {
                compress::CompressError::Write(e) => e,
                compress::CompressError::Pack(e) => PerfdataError::io("compressing", path)(e),
            })?;
        } else {
            self.write_records(slices)?;
        }
        self.tick()
    }

    /// Appends an `AUXTRACE` record and the chunk of trace data that it describes. Neither is compressed.
    ///
    /// # Errors
    /// Fails if [`append`](Self::append) fails; the file then ends before this record.
    pub fn append_trace(&mut self, record: &[u8], trace: &[&[u8]]) -> Result<(), PerfdataError> {
        let at = self.data + self.len;
        let slices: Vec<&[u8]> = std::iter::once(record).chain(trace.iter().copied()).collect();
        // An incomplete chunk could be mistaken for records.
        self.write_behind(&slices, |_, _| 0)?;
        self.traces.push([at, record.len() as u64]);
        self.tick()
    }

    /// Returns the section with the locations of traces (`auxtrace_index` in perf's `util/auxtrace.c`).
    fn trace_index(&self) -> Option<Vec<u8>> {
        let count = self.traces.len() as u64;
        let words = std::iter::once(&count).chain(self.traces.as_flattened());
        (count > 0).then(|| words.flat_map(|word| word.to_ne_bytes()).collect())
    }

    /// Updates the data size in the header if an update is overdue. Must be called even if there is nothing
    /// to append.
    ///
    /// # Errors
    /// Fails if writing fails.
    pub fn tick(&mut self) -> Result<(), PerfdataError> {
        // No reader should see a size of 0, so the header is updated as soon as the first records are
        // written.
        let is_due = self.told == 0 || self.told_at.elapsed() >= LAG;
        if self.told != self.len && is_due { self.write_data_size() } else { Ok(()) }
    }

    fn write_data_size(&mut self) -> Result<(), PerfdataError> {
        if self.form == RecordingLayout::File {
            let size = self.len.to_ne_bytes();
            self.file.write_all_at(&size, DATA_SIZE_AT).map_err(PerfdataError::io("writing", &self.path))?;
        }
        (self.told, self.told_at) = (self.len, Instant::now());
        Ok(())
    }

    /// Returns the number of bytes written to the file or stream.
    pub fn bytes(&self) -> u64 {
        self.data + self.len
    }
    /// Whether writing has failed, so that the file ends before the end of the appended data.
    pub fn is_cut(&self) -> bool {
        self.is_stopped && self.form == RecordingLayout::File
    }

    fn write_records(&mut self, slices: &[&[u8]]) -> Result<(), PerfdataError> {
        self.write_behind(slices, whole_records)
    }

    /// Appends the slices to the data: see [`write`](Self::write).
    fn write_behind(
        &mut self,
        slices: &[&[u8]],
        whole: impl Fn(&[&[u8]], u64) -> u64,
    ) -> Result<(), PerfdataError> {
        self.write(slices, self.data + self.len, whole)?;
        self.len += slices.iter().map(|s| s.len() as u64).sum::<u64>();
        Ok(())
    }

    /// Writes the slices at `at`, the end of the file. On failure, truncates the file to the part of the
    /// written bytes that `whole` accepts.
    fn write(
        &mut self,
        slices: &[&[u8]],
        at: u64,
        whole: impl Fn(&[&[u8]], u64) -> u64,
    ) -> Result<(), PerfdataError> {
        let stopped = || io::Error::from(io::ErrorKind::StorageFull);
        let result = if self.is_stopped { Err((stopped(), 0)) } else { write_all(&mut self.file, slices) };
        let Err((error, written)) = result else { return Ok(()) };
        if !self.is_stopped && self.form == RecordingLayout::File {
            self.is_stopped = true;
            if at >= self.data {
                self.len += whole(slices, written);
            }
            // These calls do not need new blocks, so they succeed on a full disk. The feature sections are
            // written at this position later.
            let _ = self.file.set_len(self.data + self.len);
            let _ = self.file.seek(io::SeekFrom::Start(self.data + self.len));
            let _ = self.write_data_size();
        }
        self.is_stopped = true;
        Err(PerfdataError::io("writing", &self.path)(error))
    }

    /// Writes the feature sections (all in the file form, the build-ids in the pipe form) and ends the
    /// recording. Returns the total number of bytes written.
    ///
    /// # Errors
    /// Fails if a write fails. Even then, the records are complete and readable.
    pub fn finish(mut self, features: &Features) -> Result<u64, PerfdataError> {
        self.is_finished = true;
        if !self.whole {
            self.replace_target()?;
        }
        if self.form == RecordingLayout::Pipe {
            let mut records = Vec::new();
            for row in features.build_ids.iter().flat_map(|ids| &ids.0) {
                row.write_record(kind::HEADER_BUILD_ID, &mut records);
            }
            if !records.is_empty() {
                self.write_records(&[&records])?;
            }
            return Ok(self.bytes());
        }
        self.write_data_size()?;
        let compression = self.compression();
        let sections: Vec<(u32, Vec<u8>)> = FeatureNumber::ALL
            .iter()
            .filter_map(|&feature| {
                let section = match (feature, &compression) {
                    (FeatureNumber::COMPRESSED, Some(mine)) => {
                        Features { compressed: Some(mine.clone()), ..Features::default() }.section(feature)
                    }
                    (FeatureNumber::AUXTRACE, _) => self.trace_index().or_else(|| features.section(feature)),
                    _ => features.section(feature),
                };
                Some((feature as u32, section?))
            })
            .collect();
        let end = self.data + self.len;
        let (bits, table) = feature_table(end, &sections);
        let mut slices = vec![table.as_slice()];
        slices.extend(sections.iter().map(|(_, section)| section.as_slice()));
        if let Err((error, _)) = write_all(&mut self.file, &slices) {
            let _ = self.file.set_len(end);
            return Err(PerfdataError::io("writing", &self.path)(error));
        }
        self.file.write_all_at(&bits, FEATURES_AT).map_err(PerfdataError::io("writing", &self.path))?;
        self.replace_target()?;
        Ok(end + slices.iter().map(|slice| slice.len() as u64).sum::<u64>())
    }
}

impl Drop for Writer {
    /// Updates the header so that all data written so far is readable.
    fn drop(&mut self) {
        // A file that was not moved into place is removed.
        if self.place.take().is_none() && !self.is_finished && self.told != self.len {
            let _ = self.write_data_size();
        }
    }
}

/// Returns the header, ids and attrs in the file format (as opposed to a stream), and the size of all attrs,
/// including the attrs of spare events.
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

/// Appends the record that describes an event in a stream.
fn push_attr(event: &RecordedEvent, out: &mut Vec<u8>) {
    let mut body = attr::to_bytes(&event.attr, event.attr.size());
    // If an event has more ids than fit, only EVENT_DESC can list the remaining ids.
    let room = (LARGEST - 8 - body.len()) / 8;
    body.extend(event.ids.iter().take(room).flat_map(|id| id.to_ne_bytes()));
    push_record(kind::HEADER_ATTR, &[&body], out);
}

/// Appends all sections that are known at the start, as records.
fn push_features(features: &Features, out: &mut Vec<u8>) {
    for &feature in FeatureNumber::ALL {
        let section = match feature {
            FeatureNumber::TRACING_DATA | FeatureNumber::BUILD_ID | FeatureNumber::ARCHIVE => None,
            _ => features.section(feature),
        };
        if let Some(section) = section.filter(|s| s.len() <= LARGEST - 24) {
            push_feature(feature, &section, out);
        }
    }
}

fn push_feature(feature: FeatureNumber, section: &[u8], out: &mut Vec<u8>) {
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

/// Writes all slices. On failure, returns the error and the number of bytes written before it.
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

/// Returns the size of the complete records within the first `limit` bytes of the slices.
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
