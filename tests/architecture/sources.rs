//! The files of the workspace, as texts.

use std::fs;
use std::path::{Path, PathBuf};

/// One source file of a crate.
pub(crate) struct SourceFile {
    /// The `src` folder of its crate, below the root of the workspace.
    pub(crate) folder: PathBuf,
    /// Path below that folder.
    pub(crate) path: PathBuf,
    pub(crate) text: String,
}

/// Returns the package's folder.
pub(crate) fn root() -> PathBuf {
    std::env::var_os("CARGO_MANIFEST_DIR").unwrap_or_else(|| env!("CARGO_MANIFEST_DIR").into()).into()
}

/// Returns the files with this extension, sorted: paths below `folder`, and their texts.
pub(crate) fn files(folder: &Path, extension: &str) -> Vec<(PathBuf, String)> {
    let mut folders = vec![folder.to_owned()];
    let mut files = Vec::new();
    while let Some(next) = folders.pop() {
        for entry in fs::read_dir(&next).expect("a folder") {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|end| end == extension) {
                let text = fs::read_to_string(&path).expect("a text in UTF-8");
                files.push((path.strip_prefix(folder).expect("below the folder").to_owned(), text));
            }
        }
    }
    files.sort();
    files
}

/// Returns the source folders of the workspace's crates, relative to its root.
pub(crate) fn source_folders(root: &Path) -> Vec<PathBuf> {
    let mut folders = vec![PathBuf::from("src")];
    for entry in fs::read_dir(root.join("crates")).expect("a folder") {
        folders.push(Path::new("crates").join(entry.expect("an entry").file_name()).join("src"));
    }
    folders.sort();
    folders
}

/// Returns the sources of all crates.
pub(crate) fn sources(root: &Path) -> Vec<SourceFile> {
    let mut sources = Vec::new();
    for folder in source_folders(root) {
        for (path, text) in files(&root.join(&folder), "rs") {
            sources.push(SourceFile { folder: folder.clone(), path, text });
        }
    }
    sources
}
