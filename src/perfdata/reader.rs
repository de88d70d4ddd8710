//! Opening a recording: what it is, its events and feature sections, and the ways to its records.
//!
//! Receives a path; decides form, byte order, what is packed and how much of a torn file is readable; hands
//! on [`RecordedEvent`]s, [`Features`] and two ways over the records: [`Reader::scan`] once in order,
//! [`Reader::load`] chunk by chunk from any thread.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::expand;
use super::feature::{Feature, Features};
use super::header::{FILE_HEADER, Header, Section};
use super::scan::{self, Buffer, Chunk, Index, Order, Segment};
use super::source::Source;
use super::{Error, Form, Note, RecordedEvent};
use crate::abi::{attr, misc};
use crate::record::tracepoint::TracingData;
use crate::record::{Layouts, RawRecord, Record, Records, Update, kind};

/// An open recording.
#[derive(Debug)]
pub struct Reader {
    path: PathBuf,
    form: Form,
    is_foreign: bool,
    events: Vec<RecordedEvent>,
    twins: Vec<RecordedEvent>,
    layouts: Layouts,
    features: Features,
    segments: Vec<Segment>,
    notes: Vec<Note>,
    data_offset: u64,
}

impl Reader {
    /// Opens a file, a directory of `perf record --threads`, or standard input (`-`).
    ///
    /// Files wrapped in gzip or zstd, compressed records and streams are unpacked into a temporary file here.
    ///
    /// # Errors
    /// When it is no recording, or its header and attrs cannot be read. What is wrong further on becomes a
    /// [`Note`].
    pub fn open(path: impl AsRef<Path>) -> Result<Self, Error> {
        let path = path.as_ref();
        let is_directory = path.is_dir();
        let file = if is_directory { path.join("data") } else { path.to_owned() };
        let source = Arc::new(Source::open(&file)?);
        let header = Header::read(&source)?;
        let mut reader = Self {
            path: path.to_owned(),
            form: header.form,
            is_foreign: header.is_foreign,
            events: Vec::new(),
            twins: Vec::new(),
            layouts: Layouts::default(),
            features: Features::default(),
            segments: Vec::new(),
            notes: Vec::new(),
            data_offset: header.data.offset,
        };
        match header.form {
            Form::Pipe => reader.open_pipe(&source, &header)?,
            Form::File | Form::Directory => reader.open_file(&source, &header)?,
        }
        if is_directory {
            reader.form = Form::Directory;
            reader.add_directory(path);
        }
        reader.unpack()?;
        if header.form == Form::File && header.feature_numbers().next().is_none() {
            reader.recover_features()?;
        }
        reader.name_events();
        Ok(reader)
    }

    fn open_file(&mut self, source: &Arc<Source>, header: &Header) -> Result<(), Error> {
        for (attr, Section { offset, size }) in header.read_attrs(source)? {
            let mut bytes = source.section(offset, size)?.unwrap_or_default();
            let ids = bytes.as_chunks_mut::<8>().0;
            if header.is_foreign {
                ids.iter_mut().for_each(|id| id.reverse());
            }
            let ids = ids.iter().map(|id| u64::from_ne_bytes(*id)).collect();
            self.events.push(RecordedEvent { attr, ids, name: None });
        }
        self.make_layouts();
        let Section { offset: start, size } = header.data;
        if start < FILE_HEADER {
            let what = "the header says that records begin inside the header";
            return Err(Error::Malformed { path: source.path().to_owned(), what, at: 40 });
        }
        // A recorder that was killed left the size at 0 (perf), or at what was written a second ago and no
        // features (pmc).
        let table = start.saturating_add(size);
        let no_bits = header.features.iter().all(|&word| word == 0);
        let unfinished =
            source.len() > table && (no_bits || size == 0 && !header.has_table(source, table)?);
        let end = if unfinished { source.len() } else { start.saturating_add(size) };
        if unfinished {
            self.notes.push(Note::Unfinished { lost: 0 });
        } else if end > source.len() {
            // The table of features would stand behind the records.
            self.notes.push(Note::Torn { at: source.len(), lost: end - source.len(), header: None });
        } else {
            self.read_features(source, header, end)?;
        }
        let end = end.min(source.len());
        if start < end {
            self.segments.push(Segment { source: Arc::clone(source), start, end });
        }
        Ok(())
    }

    /// The table of sections lies behind the data, one row a bit of the header.
    fn read_features(&mut self, source: &Source, header: &Header, table: u64) -> Result<(), Error> {
        let mut bad = Vec::new();
        for (row, number) in header.feature_numbers().enumerate() {
            let name = || {
                Feature::of(number.into()).map_or_else(|| format!("number {number}"), |f| f.name().to_owned())
            };
            let Some(row) = source.section(table.saturating_add(row as u64 * 16), 16)? else {
                bad.push(name());
                continue;
            };
            let word = |at: usize| {
                let word = row[at..].first_chunk().map_or(0, |w| u64::from_ne_bytes(*w));
                if header.is_foreign { word.swap_bytes() } else { word }
            };
            // A number that only newer perfs know is no damage.
            let Some(feature) = Feature::of(number.into()) else { continue };
            let section = source.section(word(0), word(8))?;
            if !section.is_some_and(|bytes| self.features.set(feature, &bytes, header.is_foreign)) {
                bad.push(name());
            }
        }
        self.add_bad_features(bad);
        Ok(())
    }

    fn add_bad_features(&mut self, names: Vec<String>) {
        if !names.is_empty() {
            self.notes.push(Note::BadFeatures(names));
        }
    }

    /// Everything is in the stream: attrs, names and features come as records, usually before the first
    /// sample.
    fn open_pipe(&mut self, source: &Arc<Source>, header: &Header) -> Result<(), Error> {
        let segment = Segment {
            source: Arc::clone(source),
            start: header.data.offset,
            end: source.len().max(header.data.offset),
        };
        let segments = [segment];
        let mut updates = Vec::new();
        let mut tracing = None;
        // Layouts are not known yet, and not needed: perf's own records have no trailer.
        let nothing = Layouts::default();
        let order = Order { is_foreign: header.is_foreign, layouts: &nothing };
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
                    if let Some(feature) = Feature::of(section.feature).filter(|f| !is_end(*f, section.data))
                        && !features.set(feature, section.data, header.is_foreign)
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
            self.features.tracing_data = source.section(at, size)?.map(super::feature::Raw);
        }
        for (id, name) in updates {
            if let Some(event) = self.events.iter_mut().find(|event| event.ids.contains(&id)) {
                event.name = Some(name);
            }
        }
        self.add_bad_features(bad);
        if self.events.is_empty() {
            let what = "the stream ends before it says what was recorded";
            return Err(Error::Malformed { path: source.path().to_owned(), what, at: header.data.offset });
        }
        self.make_layouts();
        self.segments.extend(segments.into_iter().filter(|s| s.start < s.end));
        Ok(())
    }

    /// Files `data.0`, `data.1`, … beside the one with the header hold nothing but records.
    fn add_directory(&mut self, path: &Path) {
        let Ok(entries) = std::fs::read_dir(path) else { return };
        let mut numbers: Vec<u32> = entries
            .flatten()
            .filter_map(|entry| entry.file_name().to_str()?.strip_prefix("data.")?.parse().ok())
            .collect();
        numbers.sort_unstable();
        for number in numbers {
            let file = path.join(format!("data.{number}"));
            match Source::open(&file) {
                Ok(source) if source.len() == 0 => {}
                Ok(source) => {
                    let end = source.len();
                    self.segments.push(Segment { source: Arc::new(source), start: 0, end });
                }
                Err(_) => self.notes.push(Note::MissingFile(file)),
            }
        }
    }

    fn unpack(&mut self) -> Result<(), Error> {
        for segment in &mut self.segments {
            if expand::is_compressed(segment, self.is_foreign)? {
                *segment = expand::expand(segment, self.is_foreign, &mut self.notes)?;
            }
        }
        Ok(())
    }

    /// A recorder that was killed wrote no sections, but pmc tells as records what it knows.
    fn recover_features(&mut self) -> Result<(), Error> {
        let Self { segments, layouts, features, .. } = self;
        let order = Order { is_foreign: self.is_foreign, layouts };
        let mut take = |record: &RawRecord<'_>, _| match record.kind {
            kind::HEADER_FEATURE => {
                if let Some(Record::HeaderFeature(section)) = record.parse()
                    && let Some(feature) = Feature::of(section.feature)
                {
                    features.set(feature, section.data, self.is_foreign);
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
        // Twins stand behind all others; their samples are their siblings'.
        self.twins = self.events.split_off(self.layouts.event_count());
    }

    fn name_events(&mut self) {
        self.name_as_described();
        for event in self.events.iter_mut().filter(|event| event.name.is_none()) {
            let meta = self.features.meta_info.as_ref();
            event.name = meta.and_then(|meta| meta.event_name(&event.attr)).map(str::to_owned);
        }
        // A stream whose recorder named none: its formats do.
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

    /// Names from the list of the file form.
    fn name_as_described(&mut self) {
        let Some(descriptions) = &self.features.event_desc else { return };
        for (index, event) in self.events.iter_mut().enumerate() {
            // By an id where there are ids (perf sorts neither list), else by place.
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

    /// What was opened.
    pub fn path(&self) -> &Path {
        &self.path
    }
    /// How it is laid out.
    pub fn form(&self) -> Form {
        self.form
    }
    /// Whether a machine of the other byte order wrote it. Tracepoint payloads keep that order.
    pub fn is_foreign(&self) -> bool {
        self.is_foreign
    }
    /// The events, in the order of their attrs.
    pub fn events(&self) -> &[RecordedEvent] {
        &self.events
    }
    /// Events whose samples are those of others (see [`crate::record::unwound`]): they stand behind all
    /// others in the file.
    pub fn twins(&self) -> &[RecordedEvent] {
        &self.twins
    }
    /// The shapes of their samples.
    pub fn layouts(&self) -> &Layouts {
        &self.layouts
    }
    /// The feature sections.
    pub fn features(&self) -> &Features {
        &self.features
    }
    /// What opening the file found out; [`Index::notes`] adds what its records tell.
    pub fn notes(&self) -> &[Note] {
        &self.notes
    }
    /// The name of a file that chunks lie in, and where its offsets are counted from as perf counts them: a
    /// stream's from behind its header.
    pub fn file(&self, number: u32) -> (&Path, u64) {
        let path = self.segments.get(number as usize).map_or(&*self.path, |segment| segment.source.path());
        match self.form {
            Form::Pipe => (Path::new("pipe"), self.data_offset),
            _ => (path, 0),
        }
    }
    /// Where records begin in the file.
    pub fn data_offset(&self) -> u64 {
        self.data_offset
    }
    /// Bytes of records, unpacked, as far as they lie in the file.
    pub fn data_size(&self) -> u64 {
        self.segments.iter().map(|s| s.end - s.start).sum()
    }

    fn order(&self) -> Order<'_> {
        Order { is_foreign: self.is_foreign, layouts: &self.layouts }
    }

    /// Reads all records once, in the file's order, and shows each to `visit`, who should look at `kind`
    /// first.
    ///
    /// # Errors
    /// When the kernel cannot read the file. A torn end is a note of the [`Index`].
    pub fn scan(&self, mut visit: impl FnMut(&RawRecord<'_>)) -> Result<Index, Error> {
        let mut index = scan::scan(&self.segments, self.order(), &mut |record, _| visit(record))?;
        let found = std::mem::replace(&mut index.notes, self.notes.clone());
        found.into_iter().for_each(|note| note.join(&mut index.notes));
        Ok(index)
    }

    /// Reads a chunk of the [`Index`] into the buffer. Threads may do so at the same time, each with its own.
    ///
    /// # Errors
    /// When the kernel cannot read the file.
    pub fn load<'b>(&self, chunk: &Chunk, buffer: &'b mut Buffer) -> Result<Records<'b>, Error> {
        scan::load(&self.segments, self.order(), chunk, buffer)
    }
}

/// perf ends a stream's sections with an empty one of the first number that it does not know: what newer
/// perfs put there is never empty.
fn is_end(feature: Feature, data: &[u8]) -> bool {
    feature >= Feature::CPU_DOMAIN_INFO && data.is_empty()
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
