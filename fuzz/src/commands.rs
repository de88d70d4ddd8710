//! Bodies that pass a recording to a command: as file, on standard input, packed, and as directory.

use std::fs::File;
use std::io::{Read, Write};
use std::path::Path;

use pmc_sys::error::Exit;

use crate::in_process::{self, MemoryFile};
use crate::mutation::{Random, bytes, joined, parts, perfdata};
use crate::recordings::{self, CommandLines};

macro_rules! bodies {
    ($($name:ident = $commands:ident;)*) => {
        $(
            /// Runs the selected command line on a recording, and checks its result.
            pub fn $name(input: &[u8]) {
                let line = recordings::selected(&recordings::$commands, input);
                recordings::check(&recordings::$commands, line, input);
            }
        )*
    };
}

bodies! {
    report = REPORT;
    script = SCRIPT;
    annotate = ANNOTATE;
    diff = DIFF;
    export = EXPORT;
    inject = INJECT;
    header = HEADER;
    stat = STAT;
    events = EVENTS;
}

/// Runs the first line of the commands on a path, and checks the result of what cannot be walked over.
fn run_first(commands: &CommandLines, path: &Path) {
    let line = commands.lines[0];
    let result = in_process::run(recordings::words(commands, line, path));
    recordings::verify(commands, line, b"", &result);
}

/// Reads a recording from a pipe on standard input.
pub fn pipe(input: &[u8]) {
    for commands in [&recordings::REPORT, &recordings::SCRIPT] {
        let (read, write) = rustix::pipe::pipe().expect("a pipe");
        rustix::stdio::dup2_stdin(read).expect("standard input");
        let input = input.to_vec();
        // The reader may stop early, which closes the pipe when standard input is replaced.
        let writer = std::thread::spawn(move || {
            let _ = File::from(write).write_all(&input);
        });
        run_first(commands, Path::new("-"));
        rustix::stdio::dup2_stdin(File::open("/dev/null").expect("/dev/null")).expect("standard input");
        writer.join().expect("no panic");
    }
}

/// Imports a profile of another program, and checks that pmc imports its own exports of it.
pub fn import(input: &[u8]) {
    let line = recordings::selected(&recordings::IMPORT, input);
    let exit = recordings::check(&recordings::IMPORT, line, input);
    if exit != Exit::Done || !line.starts_with("export") {
        return;
    }
    let exported =
        in_process::run(recordings::words(&recordings::IMPORT, line, &MemoryFile::new(input).path()));
    let again = MemoryFile::new(&exported.out);
    let result = in_process::run(recordings::words(&recordings::REPORT, "report --stdio", &again.path()));
    let is_empty = exported.out.is_empty() || result.err.contains("no samples");
    // A function without callers whose name ends with a colon looks like a key with a value. If the names of all
    // sampled functions end with a number, it looks like a second weight.
    let is_ambiguous = line.contains("folded")
        && (!exported.out.contains(&b';') || result.err.contains("each stack has two weights"));
    assert!(
        result.exit == Exit::Done || is_empty || is_ambiguous,
        "pmc {line}, imported again: {}",
        result.err
    );
}

/// Reads a packed recording.
pub fn packed(input: &[u8]) {
    run_first(&recordings::REPORT, &MemoryFile::new(input).path());
}

/// Changes the packed bytes, or the recording in them.
pub fn mutate_packed(input: &mut Vec<u8>, max: usize, random: &mut Random) {
    let mut unpacked = Vec::new();
    let is_zstd = input.starts_with(&[0x28, 0xb5, 0x2f, 0xfd]);
    let unpacks = match is_zstd {
        true => zstd::stream::read::Decoder::new(&input[..])
            .and_then(|stream| stream.take(1 << 20).read_to_end(&mut unpacked)),
        false => flate2::read::MultiGzDecoder::new(&input[..]).take(1 << 20).read_to_end(&mut unpacked),
    };
    if unpacks.is_err() || random.below(2) == 0 {
        return bytes(input, max, random);
    }
    perfdata::mutate(&mut unpacked, 1 << 20, random);
    *input = match is_zstd {
        true => zstd::stream::encode_all(&unpacked[..], 1).expect("it packs"),
        false => {
            let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
            packed.write_all(&unpacked).and_then(|()| packed.finish()).expect("it packs")
        }
    };
    input.truncate(max);
}

/// Reads a directory of `perf record --threads`: the files are `data`, `data.0`, `data.1`, …
pub fn directory(input: &[u8]) {
    let folder = tempfile::tempdir().expect("a temporary folder");
    for (number, file) in parts(input).iter().take(20).enumerate() {
        let name = match number {
            0 => "data".to_owned(),
            _ => format!("data.{}", number - 1),
        };
        std::fs::write(folder.path().join(name), file).expect("it can be written");
    }
    for commands in [&recordings::REPORT, &recordings::SCRIPT] {
        run_first(commands, folder.path());
    }
}

/// Changes one of the files of a directory.
pub fn mutate_directory(input: &mut Vec<u8>, max: usize, random: &mut Random) {
    let mut files = parts(input);
    match random.below(files.len()) {
        0 if !files.is_empty() => perfdata::mutate(&mut files[0], max, random),
        number if number < files.len() => perfdata::records(&mut files[number], max, random),
        _ => return bytes(input, max, random),
    }
    *input = joined(&files);
    input.truncate(max);
}

/// Changes the text of tracepoint formats.
pub fn mutate_formats(input: &mut Vec<u8>, max: usize, random: &mut Random) {
    for _ in 0..1 + random.below(4) {
        perfdata::format_text(input, random);
    }
    input.truncate(max);
}
