//! Makes the pictures in `docs/pictures` again, and compares their words with the committed ones.
//!
//! Functions and numbers differ from run to run. What pmc itself writes does not: the words of the first two
//! rows, of the headings, and of the last row of a screen, which names the keys.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::Command;

use crate::{kit, repository};

/// The words of a picture that must be the same in each run.
#[derive(Debug, PartialEq, Eq)]
struct PictureWords {
    /// Words of the first two rows, in which further times may appear.
    head: BTreeSet<String>,
    /// Bold words without digits or punctuation: headings, and the names of keys.
    bold: BTreeSet<String>,
    /// Words of the last row, if it names the keys.
    keys: BTreeSet<String>,
}

/// Returns the words of letters. Units of times and sizes depend on the numbers.
fn words(text: &str) -> impl Iterator<Item = String> {
    let is_unit = |word: &&str| ["s", "ms", "µs", "ns", "MiB", "KiB"].contains(word);
    let all = text.split(|c: char| !c.is_alphabetic()).filter(|word| !word.is_empty());
    all.filter(move |word| !is_unit(word)).map(str::to_owned).collect::<Vec<_>>().into_iter()
}

impl PictureWords {
    /// Reads the text elements of a picture. Its rows are 18 pixels high.
    fn of(svg: &str) -> Self {
        let mut rows: BTreeMap<i64, BTreeSet<String>> = BTreeMap::new();
        let mut bold = BTreeSet::new();
        for element in svg.split("<text ").skip(1) {
            let (attributes, rest) = element.split_once('>').expect("an element");
            let text = rest.split_once("</text>").expect("its end").0;
            let y = attributes.split_once(" y=\"").and_then(|(_, y)| y.split('"').next());
            let y: f64 = y.and_then(|y| y.parse().ok()).expect("a row");
            rows.entry(y as i64 / 18).or_default().extend(words(text));
            let is_heading = text.chars().all(|c| c.is_alphabetic() || " &▾".contains(c));
            if attributes.contains("bold") && is_heading {
                bold.extend(words(text));
            }
        }
        let mut rows = rows.into_values();
        let mut head = rows.next().expect("a row");
        head.extend(rows.next().expect("two rows"));
        // The last row of a plain report depends on the recording.
        let keys = rows.next_back().filter(|row| row.contains("help")).unwrap_or_default();
        Self { head, bold, keys }
    }

    /// Returns the words that a new picture lacks, or has in addition.
    fn differences(&self, new: &Self) -> Vec<String> {
        let lacks = self.head.difference(&new.head);
        let bold = self.bold.symmetric_difference(&new.bold);
        let keys = self.keys.symmetric_difference(&new.keys);
        lacks.chain(bold).chain(keys).cloned().collect()
    }
}

#[test]
fn pictures_show_what_pmc_prints() {
    let programs = ["bash", "chromium", "g++", "gcc", "python3", "tmux"];
    if programs.map(kit::need_program).contains(&false)
        || !(kit::need_root() && kit::need_kernel_mode())
        || !kit::need("x86-64", cfg!(target_arch = "x86_64"), "the pictures show a machine with x86-64")
    {
        return;
    }
    let folder = tempfile::tempdir().expect("a temporary folder");
    let text = folder.path().join("text");
    let mut files: Vec<_> =
        std::fs::read_dir(repository().join("docs")).expect("a folder").flatten().collect();
    files.retain(|file| file.path().extension().is_some_and(|name| name == "md"));
    let mut all: Vec<u8> =
        files.iter().flat_map(|file| std::fs::read(file.path()).expect("a page")).collect();
    all.truncate(200_000);
    std::fs::write(&text, all).expect("a text");
    let mut script = Command::new("sh");
    script.arg(repository().join("docs/pictures/all")).arg(kit::binary()).arg(&text).arg(folder.path());
    let ran = script.env("XDG_CACHE_HOME", folder.path()).output().expect("a shell");
    assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));

    let committed = std::fs::read_dir(repository().join("docs/pictures")).expect("a folder").flatten();
    let pictures: Vec<_> = committed.map(|file| file.path()).filter(|path| is_svg(path)).collect();
    assert!(pictures.len() > 5, "{pictures:?}");
    let mut faults = String::new();
    for old in &pictures {
        let new = folder.path().join(old.file_name().expect("a name"));
        let [old_words, new_words] = [old, &new].map(|file| {
            PictureWords::of(
                &std::fs::read_to_string(file).unwrap_or_else(|e| panic!("{}: {e}", file.display())),
            )
        });
        let differences = old_words.differences(&new_words);
        if !differences.is_empty() {
            faults += &format!("{}: {}\n", old.display(), differences.join(", "));
        }
    }
    assert!(
        faults.is_empty(),
        "words that only the old or the new picture has:\n{faults}run docs/pictures/all"
    );
}

fn is_svg(path: &Path) -> bool {
    path.extension().is_some_and(|name| name == "svg")
}

#[test]
fn changed_heading_is_found() {
    let picture = |heading: &str, key: &str, name: &str| {
        let row = |y: f64, bold: &str, text: &str| {
            format!("<text x=\"0\" y=\"{y}\"{bold} fill=\"#fff\">{text}</text>\n")
        };
        let bold = " font-weight=\"bold\"";
        [
            row(13.5, "", "1.5 s elapsed, 3 ms running"),
            row(31.5, "", "1 Functions"),
            row(49.5, bold, heading),
            row(67.5, bold, name),
            row(85.5, "", &format!("? help q {key}")),
        ]
        .concat()
    };
    let old = PictureWords::of(&picture("Symbol", "quit", "f(int)"));
    let differences = |heading, key, name| old.differences(&PictureWords::of(&picture(heading, key, name)));
    assert_eq!(differences("Symbol", "quit", "g(int)"), [""; 0]);
    assert_eq!(differences("Function", "quit", "f(int)"), ["Function", "Symbol"]);
    assert_eq!(differences("Symbol", "back", "f(int)"), ["back", "quit"]);
}
