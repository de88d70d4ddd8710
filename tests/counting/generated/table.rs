//! The table of makers' events is packed from the TSV files and committed: what unpacks is compared, not the
//! bytes, which another zstd may choose otherwise.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use pmc::event::vendor::table::{frames, unpack};

/// What the program may grow by.
const MOST_BYTES: usize = 600 * 1024;

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("src/event/vendor")
}

/// The TSV files by their names in the table.
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

fn pack(files: &BTreeMap<String, String>) -> Vec<u8> {
    let (mut index, mut all) = (String::new(), Vec::new());
    for (name, text) in files {
        let frame = zstd::bulk::compress(text.as_bytes(), 22).expect("zstd compresses");
        index += &format!("{name} {} {}\n", text.len(), frame.len());
        all.extend(frame);
    }
    [index.as_bytes(), b"\n", &all].concat()
}

#[test]
fn the_packed_table_is_that_of_the_files() {
    let (path, files) = (folder().join("table.bin"), files());
    if std::env::var_os("PMC_BLESS").is_some() {
        fs::write(&path, pack(&files)).expect("the file can be written");
    }
    let packed = fs::read(&path).unwrap_or_default();
    let names: Vec<&str> = frames(&packed).map(|(name, ..)| name).collect();
    assert_eq!(names, files.keys().collect::<Vec<_>>(), "PMC_BLESS=1 cargo test --test counting generated");
    for (name, text) in &files {
        assert!(
            unpack(&packed, name).as_ref() == Some(text),
            "{name} is out of date: PMC_BLESS=1 cargo test --test counting generated"
        );
    }
    assert!(packed.len() <= MOST_BYTES, "{} bytes", packed.len());
}
