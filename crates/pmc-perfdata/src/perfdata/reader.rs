//! Opens recordings: detects the format, reads the events and feature sections, and provides access to the
//! records.
//!
//! Receives a path or bytes. Determines whether the input is a file or a stream, its byte order and
//! compression, and how much of a truncated file is readable. Returns [`RecordedEvent`]s and [`Features`],
//! and provides two ways to read the records: [`Reader::scan`] once in order, and [`Reader::load`] chunk by
//! chunk from any thread. [`Reader::records`] returns them one by one.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::error::{PerfdataError, RecordingNote};
use super::event::RecordedEvent;
use super::expand;
use super::feature::{FeatureNumber, Features};
use super::header::RecordingLayout;
use super::header::{FILE_HEADER, FileSection, PerfdataHeader};
use super::magic::is_magic;
use super::scan::{self, Buffer, Chunk, NativeConverter, RecordingIndex, Segment};
use super::source::{ByteSource, HEAD};
use crate::record::tracepoint::TracingData;
use crate::record::{Layouts, RawRecord, Record, Records, Update, kind};
use pmc_sys::abi::{attr, misc};

/// The result of opening a file that may have another format.
#[derive(Debug)]
pub enum OpenedInput {
    /// A recording.
    Recording(Box<Reader>),
    /// Any other file.
    Other {
        /// Its contents, unpacked.
        bytes: Vec<u8>,
        /// Why they could be unpacked only in part: the packed file is damaged or cut off.
        torn: Option<String>,
    },
}

/// An open recording.
#[derive(Debug)]
pub struct Reader {
    path: PathBuf,
    form: RecordingLayout,
    is_byte_swapped: bool,
    is_converted: bool,
    events: Vec<RecordedEvent>,
    fallback_events: Vec<RecordedEvent>,
    layouts: Layouts,
    features: Features,
    segments: Vec<Segment>,
    notes: Vec<RecordingNote>,
    /// The kind of each compressed record.
    compressed: Vec<u32>,
    data_offset: u64,
}

impl Reader {
    /// Opens a file, a directory of `perf record --threads`, or standard input (`-`).
    ///
    /// Unpacks gzip or zstd files, compressed records and streams into a temporary file.
    ///
    /// # Errors
    /// Fails if the file is not a recording, or its header and attrs cannot be read. Later problems become
    /// [`RecordingNote`]s.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, PerfdataError> {
        let path = path.as_ref();
        let is_directory = path.is_dir();
        let source = match is_directory {
            true => ByteSource::open_part(&path.join("data")),
            false => ByteSource::open(path, |_| None),
        };
        Self::of_source(source?, path, is_directory)
    }

    /// Opens a recording like [`Reader::open`]. If the input is not a recording, passes its first bytes
    /// (unpacked, at most 64 KiB) to `accepts`. If that returns a maximum size, returns the contents.
    ///
    /// # Errors
    /// Fails like [`Reader::open`], or if the other input is larger than that.
    pub fn open_any(
        path: impl AsRef<Path>,
        accepts: impl Fn(&[u8]) -> Option<u64>,
    ) -> Result<OpenedInput, PerfdataError> {
        let path = path.as_ref();
        if path.is_dir() {
            return Self::open(path).map(|reader| OpenedInput::Recording(reader.into()));
        }
        let source = ByteSource::open(path, &accepts)?;
        let mut magic = [0; 8];
        let got = source.read_at(&mut magic, 0)?;
        let most = match is_magic(&magic) || got == 0 {
            true => None,
            false => accepts(&source.section(0, source.len().min(HEAD))?.unwrap_or_default()),
        };
        let Some(most) = most else {
            return Self::of_source(source, path, false).map(|reader| OpenedInput::Recording(reader.into()));
        };
        if source.len() > most {
            return Err(PerfdataError::LargeInput { path: source.path().to_owned(), most });
        }
        let len = source.len();
        let bytes = source.section(0, len)?.ok_or_else(|| PerfdataError::Malformed {
            path: source.path().to_owned(),
            what: "the file was truncated while pmc read it",
            at: 0,
        })?;
        Ok(OpenedInput::Other { bytes, torn: source.torn().map(str::to_owned) })
    }

    /// Reads a recording into which another file was converted. `path` is the name of that file, and `note`
    /// says what the conversion could not read.
    ///
    /// # Errors
    /// Fails like [`Reader::open`].
    pub fn of_file(file: File, path: &Path, note: Option<RecordingNote>) -> Result<Self, PerfdataError> {
        let mut reader = Self::of_source(ByteSource::from_file(file, path, |_| None)?, path, false)?;
        reader.notes.extend(note);
        Ok(Self { is_converted: true, ..reader })
    }

    /// Reads a recording in memory: a file or a stream, which may be packed with gzip or zstd. Creates no
    /// file.
    ///
    /// # Errors
    /// Fails like [`Reader::open`].
    pub fn from_bytes(bytes: impl Into<Arc<[u8]>>) -> Result<Self, PerfdataError> {
        let name = Path::new("recording in memory");
        Self::of_source(ByteSource::memory(bytes.into(), name)?, name, false)
    }

    /// Returns the number of samples in a file. Unlike [`Reader::open`], needs no temporary file for
    /// compressed records, so it works on a full disk.
    ///
    /// # Errors
    /// Fails like [`Reader::open`].
    pub fn count_samples(path: &Path) -> Result<u64, PerfdataError> {
        let (reader, _) = Self::packed(ByteSource::open(path, |_| None)?, path, false)?;
        let counts =
            reader.segments.iter().map(|one| expand::count(one, reader.is_byte_swapped, kind::SAMPLE));
        counts.sum()
    }

    fn of_source(source: ByteSource, path: &Path, is_directory: bool) -> Result<Self, PerfdataError> {
        let (mut reader, header) = Self::packed(source, path, is_directory)?;
        reader.unpack()?;
        if header.form == RecordingLayout::File && header.feature_numbers().next().is_none() {
            reader.recover_features()?;
        }
        reader.name_events();
        Ok(reader)
    }

    /// Opens a recording without unpacking its compressed records.
    fn packed(
        source: ByteSource,
        path: &Path,
        is_directory: bool,
    ) -> Result<(Self, PerfdataHeader), PerfdataError> {
        let source = Arc::new(source);
        let header = PerfdataHeader::read(&source)?;
        let mut reader = Self {
            path: path.to_owned(),
            form: header.form,
            is_byte_swapped: header.is_byte_swapped,
            is_converted: false,
            events: Vec::new(),
            fallback_events: Vec::new(),
            layouts: Layouts::default(),
            features: Features::default(),
            segments: Vec::new(),
            notes: Vec::new(),
            compressed: Vec::new(),
            data_offset: header.data.offset,
        };
        match header.form {
            RecordingLayout::Pipe => reader.open_pipe(&source, &header)?,
            RecordingLayout::File | RecordingLayout::Directory => reader.open_file(&source, &header)?,
        }
        if is_directory {
            reader.form = RecordingLayout::Directory;
            reader.add_directory(path);
        }
        Ok((reader, header))
    }

    fn open_file(&mut self, source: &Arc<ByteSource>, header: &PerfdataHeader) -> Result<(), PerfdataError> {
        for (attr, FileSection { offset, size }) in header.read_attrs(source)? {
            let mut bytes = source.section(offset, size)?.unwrap_or_default();
            let ids = bytes.as_chunks_mut::<8>().0;
            if header.is_byte_swapped {
                ids.iter_mut().for_each(|id| id.reverse());
            }
            let ids = ids.iter().map(|id| u64::from_ne_bytes(*id)).collect();
            self.events.push(RecordedEvent { attr, ids, name: None });
        }
        if self.events.is_empty() {
            let what = "the header describes no events";
            return Err(PerfdataError::Malformed { path: source.path().to_owned(), what, at: 24 });
        }
        self.make_layouts();
        let FileSection { offset: start, size } = header.data;
        if start < FILE_HEADER {
            let what = "the data section overlaps the header";
            return Err(PerfdataError::Malformed { path: source.path().to_owned(), what, at: 40 });
        }
        // If perf was killed, the size is 0. If pmc was killed, the size is at most one second old, and the
        // features are missing.
        let table = start.saturating_add(size);
        let no_bits = header.features.iter().all(|&word| word == 0);
        let unfinished =
            source.len() > table && (no_bits || size == 0 && !header.has_table(source, table)?);
        let end = if unfinished { source.len() } else { start.saturating_add(size) };
        if unfinished {
            self.notes.push(RecordingNote::Unfinished { lost: 0 });
        } else if end > source.len() {
            // The feature table would have followed the records, so it is missing.
            self.notes.push(RecordingNote::Torn { at: source.len(), lost: end - source.len(), header: None });
        } else {
            self.read_features(source, header, end)?;
        }
        let end = end.min(source.len());
        if start < end {
            self.segments.push(Segment { source: Arc::clone(source), start, end });
        }
        Ok(())
    }

    /// Reads the section table, which follows the data and has one entry per feature bit set in the header.
    fn read_features(
        &mut self,
        source: &ByteSource,
        header: &PerfdataHeader,
        table: u64,
    ) -> Result<(), PerfdataError> {
        let mut bad = Vec::new();
        for (row, number) in header.feature_numbers().enumerate() {
            let name = || {
                FeatureNumber::from_number(number.into())
                    .map_or_else(|| format!("number {number}"), |f| f.name().to_owned())
            };
            let Some(row) = source.section(table.saturating_add(row as u64 * 16), 16)? else {
                bad.push(name());
                continue;
            };
            let word = |at: usize| {
                let word = row[at..].first_chunk().map_or(0, |w| u64::from_ne_bytes(*w));
                if header.is_byte_swapped { word.swap_bytes() } else { word }
            };
            // An unknown number comes from a newer version of perf and does not mean damage.
            let Some(feature) = FeatureNumber::from_number(number.into()) else { continue };
            let section = source.section(word(0), word(8))?;
            if !section.is_some_and(|bytes| self.features.set(feature, &bytes, header.is_byte_swapped)) {
                bad.push(name());
            }
        }
        self.add_bad_features(bad);
        Ok(())
    }

    fn add_bad_features(&mut self, names: Vec<String>) {
        if !names.is_empty() {
            self.notes.push(RecordingNote::BadFeatures(names));
        }
    }

    /// Opens a stream, in which attrs, names and features are records, usually before the first sample.
    fn open_pipe(&mut self, source: &Arc<ByteSource>, header: &PerfdataHeader) -> Result<(), PerfdataError> {
        let segment = Segment {
            source: Arc::clone(source),
            start: header.data.offset,
            end: source.len().max(header.data.offset),
        };
        let segments = [segment];
        let mut updates = Vec::new();
        let mut tracing = None;
        // The layouts are not known yet, but are not needed because perf's own records have no trailer.
        let nothing = Layouts::default();
        let order = NativeConverter { is_byte_swapped: header.is_byte_swapped, layouts: &nothing };
        let (events, features) = (&mut self.events, &mut self.features);
        let mut bad = Vec::new();
        scan::scan(&segments, order, &mut |record, at| {
            if record.kind < kind::FIRST_USER {
                return;
            }
            match record.parse() {
                Some(Record::HeaderAttr(attr)) => {
                    events.push(RecordedEvent {
                        attr: attr.attr,
                        ids: attr.ids.iter().collect(),
                        name: None,
                    });
                }
                Some(Record::EventUpdate(update)) => {
                    if let Update::Name(name) = update.what {
                        updates.push((update.id, String::from_utf8_lossy(name).into_owned()));
                    }
                }
                Some(Record::HeaderFeature(section)) => {
                    if let Some(feature) =
                        FeatureNumber::from_number(section.feature).filter(|f| !is_end(*f, section.data))
                        && !features.set(feature, section.data, header.is_byte_swapped)
                    {
                        bad.push(feature.name().to_owned());
                    }
                }
                Some(Record::BuildId(_)) => add_build_id(record, features),
                Some(Record::TracingData(size)) => {
                    tracing = Some((at + record.bytes.len() as u64, u64::from(size)));
                }
                _ => {}
            }
        })?;
        if let Some((at, size)) = tracing {
            self.features.tracing_data = source.section(at, size)?.map(super::feature::RawSection);
        }
        for (id, name) in updates {
            if let Some(event) = self.events.iter_mut().find(|event| event.ids.contains(&id)) {
                event.name = Some(name);
            }
        }
        self.add_bad_features(bad);
        if self.events.is_empty() {
            let what = "the stream ends before the event descriptions";
            return Err(PerfdataError::Malformed {
                path: source.path().to_owned(),
                what,
                at: header.data.offset,
            });
        }
        self.make_layouts();
        self.segments.extend(segments.into_iter().filter(|s| s.start < s.end));
        Ok(())
    }

    /// Adds the files `data.0`, `data.1`, …, which contain only records and are in the same directory as the
    /// file with the header.
    fn add_directory(&mut self, path: &Path) {
        let Ok(entries) = std::fs::read_dir(path) else { return };
        let mut numbers: Vec<u32> = entries
            .flatten()
            .filter_map(|entry| entry.file_name().to_str()?.strip_prefix("data.")?.parse().ok())
            .collect();
        numbers.sort_unstable();
        for number in numbers {
            let file = path.join(format!("data.{number}"));
            match ByteSource::open_part(&file) {
                Ok(source) if source.len() == 0 => {}
                Ok(source) => {
                    let end = source.len();
                    self.segments.push(Segment { source: Arc::new(source), start: 0, end });
                }
                Err(_) => self.notes.push(RecordingNote::MissingFile(file)),
            }
        }
    }

    fn unpack(&mut self) -> Result<(), PerfdataError> {
        for segment in &mut self.segments {
            if expand::is_compressed(segment, self.is_byte_swapped)? {
                *segment =
                    expand::expand(segment, self.is_byte_swapped, &mut self.notes, &mut self.compressed)?;
            }
        }
        Ok(())
    }

    /// Reads feature data from records. If pmc was killed, it has not written feature sections, but the
    /// features that were known at the start are also written as records.
    fn recover_features(&mut self) -> Result<(), PerfdataError> {
        let Self { segments, layouts, features, .. } = self;
        let order = NativeConverter { is_byte_swapped: self.is_byte_swapped, layouts };
        let mut take = |record: &RawRecord<'_>, _| match record.kind {
            kind::HEADER_FEATURE => {
                if let Some(Record::HeaderFeature(section)) = record.parse()
                    && let Some(feature) = FeatureNumber::from_number(section.feature)
                {
                    features.set(feature, section.data, self.is_byte_swapped);
                }
            }
            kind::HEADER_BUILD_ID => add_build_id(record, features),
            _ => {}
        };
        scan::scan(segments, order, &mut take)?;
        Ok(())
    }

    fn make_layouts(&mut self) {
        self.layouts = Layouts::new(self.events.iter().map(|event| (&event.attr, event.ids.as_slice())));
        // Fallback events come after all other events. Their samples count as samples of the original events.
        self.fallback_events = self.events.split_off(self.layouts.event_count());
    }

    fn name_events(&mut self) {
        self.name_as_described();
        for event in self.events.iter_mut().filter(|event| event.name.is_none()) {
            let meta = self.features.meta_info.as_ref();
            event.name = meta.and_then(|meta| meta.event_name(&event.attr)).map(str::to_owned);
        }
        // A stream may not contain the names of events. For tracepoints, take them from the tracepoint
        // formats.
        let is_nameless =
            |event: &&mut RecordedEvent| event.name.is_none() && event.attr.kind() == attr::kind::TRACEPOINT;
        let mut nameless = self.events.iter_mut().filter(is_nameless).peekable();
        if nameless.peek().is_none() {
            return;
        }
        let tracing = self.features.tracing_data.as_ref().and_then(|raw| TracingData::parse(&raw.0));
        for event in nameless {
            let format = tracing.as_ref().and_then(|tracing| tracing.format(event.attr.config()));
            event.name = format.map(|format| format!("{}:{}", format.system, format.name));
        }
    }

    /// Takes names from the event descriptions of the file form.
    fn name_as_described(&mut self) {
        let Some(descriptions) = &self.features.event_desc else { return };
        for (index, event) in self.events.iter_mut().enumerate() {
            // Match by id if there are ids, because perf sorts neither list. Otherwise match by position.
            let by_id =
                descriptions.0.iter().find(|(.., ids)| event.ids.first().is_some_and(|id| ids.contains(id)));
            let by_place =
                || descriptions.0.get(index).filter(|(attr, ..)| attr.config() == event.attr.config());
            if event.name.is_none()
                && let Some((_, name, _)) = by_id.or_else(by_place)
            {
                event.name = Some(name.clone());
            }
        }
    }

    /// Returns the opened path.
    pub fn path(&self) -> &Path {
        &self.path
    }
    /// Returns the recording's layout.
    pub fn form(&self) -> RecordingLayout {
        self.form
    }
    /// Whether the recording has the opposite byte order. Tracepoint payloads are not converted to native
    /// order.
    pub fn is_byte_swapped(&self) -> bool {
        self.is_byte_swapped
    }
    /// Whether the recording was converted from a file in another format, so that [`Reader::path`] is not the
    /// path of a recording.
    pub fn is_converted(&self) -> bool {
        self.is_converted
    }
    /// Returns the events, in the order of their attrs.
    pub fn events(&self) -> &[RecordedEvent] {
        &self.events
    }
    /// Returns the events whose samples count as samples of other events (see [`crate::record::unwound`]). In
    /// the file they come after all other events.
    pub fn fallback_events(&self) -> &[RecordedEvent] {
        &self.fallback_events
    }
    /// Returns the sample layouts of the events.
    pub fn layouts(&self) -> &Layouts {
        &self.layouts
    }
    /// Returns the feature sections.
    pub fn features(&self) -> &Features {
        &self.features
    }
    /// Returns the notes from opening the file. [`RecordingIndex::notes`] contains these and the notes on its
    /// records.
    pub fn notes(&self) -> &[RecordingNote] {
        &self.notes
    }
    /// Returns the name of a file that contains chunks, and the position from which perf counts offsets. In a
    /// stream, this position is the end of the header.
    pub fn file(&self, number: u32) -> (&Path, u64) {
        let path = self.segments.get(number as usize).map_or(&*self.path, |segment| segment.source.path());
        match self.form {
            RecordingLayout::Pipe => (Path::new("pipe"), self.data_offset),
            _ => (path, 0),
        }
    }
    /// Returns the offset of the records in the file.
    pub fn data_offset(&self) -> u64 {
        self.data_offset
    }
    /// Returns the total size of the records in the file, unpacked, in bytes.
    pub fn data_size(&self) -> u64 {
        self.segments.iter().map(|s| s.end - s.start).sum()
    }

    fn order(&self) -> NativeConverter<'_> {
        NativeConverter { is_byte_swapped: self.is_byte_swapped, layouts: &self.layouts }
    }

    /// Reads all records once, in file order, and passes each to `visit`, which should check `kind` first.
    ///
    /// # Errors
    /// Fails if reading the file fails. A truncated end becomes a note in the [`RecordingIndex`].
    pub fn scan(&self, mut visit: impl FnMut(&RawRecord<'_>)) -> Result<RecordingIndex, PerfdataError> {
        let mut index = scan::scan(&self.segments, self.order(), &mut |record, _| visit(record))?;
        self.compressed.iter().for_each(|kind| index.count_one(*kind));
        let found = std::mem::replace(&mut index.notes, self.notes.clone());
        found.into_iter().for_each(|note| note.join(&mut index.notes));
        Ok(index)
    }

    /// Reads a chunk of the [`RecordingIndex`] into the buffer. Several threads may read chunks in parallel,
    /// each with its own buffer.
    ///
    /// # Errors
    /// Fails if reading the file fails.
    pub fn load<'b>(&self, chunk: &Chunk, buffer: &'b mut Buffer) -> Result<Records<'b>, PerfdataError> {
        scan::load(&self.segments, self.order(), chunk, buffer)
    }
}

/// Whether the section marks the end of a stream's sections. perf marks the end with an empty section, whose
/// number is the first one that this version of perf does not know. Newer versions, which know the number,
/// never write an empty section for it.
fn is_end(feature: FeatureNumber, data: &[u8]) -> bool {
    feature >= FeatureNumber::CPU_DOMAIN_INFO && data.is_empty()
}

fn add_build_id(record: &RawRecord<'_>, features: &mut Features) {
    let Some(Record::BuildId(row)) = record.parse() else { return };
    let rows = &mut features.build_ids.get_or_insert_default().0;
    rows.push(super::feature::BuildIdEntry {
        pid: row.pid,
        misc: row.misc & !misc::BUILD_ID_SIZE,
        id: row.id.to_vec(),
        name: row.name.to_vec(),
    });
}
