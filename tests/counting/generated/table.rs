//! Checks the committed table of vendor events, packed from the TSV files. The test compares the unpacked
//! text, not the packed bytes, because another zstd version may pack differently.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use pmc_events::event::vendor::table::{frames, unpack};

/// Maximum size that the table may add to the program.
const MOST_BYTES: usize = 200 * 1024;

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("crates/pmc-events/src/event/vendor")
}

/// Returns the TSV files by their names in the table.
fn files() -> BTreeMap<String, String> {
    let root = folder().join("tables");
    let mut files = BTreeMap::new();
    let mut folders = vec![root.clone()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).expect("a committed folder") {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "tsv") {
                let name = path.strip_prefix(&root).expect("below it").to_str().expect("UTF-8").to_owned();
                files.insert(name, fs::read_to_string(&path).expect("UTF-8"));
            }
        }
    }
    files
}

/// Returns the kind of a file: its folder and the ending of its name.
fn kind(name: &str) -> (&str, &str) {
    let (folder, file) = name.rsplit_once('/').unwrap_or(("", name));
    (folder, file.split_once('.').map_or("", |(_, ending)| ending))
}

fn packed(text: &str, base: &str, level: i32) -> Vec<u8> {
    let compressor = zstd::bulk::Compressor::with_dictionary(level, base.as_bytes());
    compressor.and_then(|mut compressor| compressor.compress(text.as_bytes())).expect("zstd compresses")
}

/// Number of bytes to unpack first that weigh as much as one byte in the table.
const UNPACKED: usize = 64;

/// Packs the files, largest first. Each file is packed against the cheapest base among earlier files of its
/// kind, or against none.
fn pack(files: &BTreeMap<String, String>) -> Vec<u8> {
    let mut order: Vec<(&String, &String)> = files.iter().collect();
    order.sort_by_key(|(_, text)| std::cmp::Reverse(text.len()));
    let (mut index, mut all) = (String::new(), Vec::new());
    // Bytes to unpack for each file, including the file itself.
    let mut unpacked: Vec<usize> = Vec::new();
    for (number, (name, text)) in order.iter().enumerate() {
        let bases = (0..number).filter(|base| kind(order[*base].0) == kind(name)).map(Some);
        // A fast compression level is good enough to choose the base.
        let cost = |base: &Option<usize>| match *base {
            Some(base) => packed(text, order[base].1, 3).len() + unpacked[base] / UNPACKED,
            None => packed(text, "", 3).len(),
        };
        let base = bases.chain([None]).min_by_key(cost).flatten();
        let frame = packed(text, base.map_or("", |base| order[base].1), 22);
        index += &format!("{name} {} {}", text.len(), frame.len());
        index += &base.map_or("\n".to_owned(), |base| format!(" {base}\n"));
        unpacked.push(text.len() + base.map_or(0, |base| unpacked[base]));
        all.extend(frame);
    }
    [index.as_bytes(), b"\n", &all].concat()
}

#[test]
fn packed_table_matches_the_files() {
    let (path, files) = (folder().join("table.bin"), files());
    if std::env::var_os("PMC_BLESS").is_some() {
        fs::write(&path, pack(&files)).expect("the file can be written");
    }
    let packed = fs::read(&path).unwrap_or_default();
    let names: BTreeSet<&str> = frames(&packed).map(|frame| frame.name).collect();
    let wanted = files.keys().map(String::as_str).collect();
    assert_eq!(names, wanted, "PMC_BLESS=1 cargo test --test counting generated");
    for (name, text) in &files {
        assert!(
            unpack(&packed, name).as_ref() == Some(text),
            "{name} is out of date: PMC_BLESS=1 cargo test --test counting generated"
        );
    }
    assert!(packed.len() <= MOST_BYTES, "{} bytes", packed.len());
}
