//! perf's settings, as `perf config` stores them. Reads them, and writes them without losing other contents
//! of the file.
//!
//! Receives the text of user-written files; provides values by key (`section.name`, in lowercase). Decides
//! which files are used: the one named by `PERF_CONFIG`, or else the system's file overridden by the
//! user's. Commands decide which keys have a meaning.
//!
//! ```text
//!   # a remark                        ; so is this
//!   [call-graph]
//!       record-mode = dwarf           call-graph.record-mode=dwarf
//!       order = "cal" \               quotes keep spaces and remarks; a backslash joins lines
//!       children                      without a value: true
//! ```

use std::collections::HashMap;
use std::fs;
use std::io::ErrorKind::{NotFound, PermissionDenied};
use std::io::{self, Read, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use pmc_sys::error::{Error, Result};
use pmc_sys::sys::regular_file::{is_trusted_owner, open_regular};
use pmc_sys::sys::replacement::Replacement;

/// The system's file, in the location that distributions use for perf.
const SYSTEM: &str = "/etc/perfconfig";
/// Maximum number of bytes to read from a file.
const MAX_FILE_BYTES: u64 = 1 << 20;

/// The settings, with each key once.
#[derive(Debug, Default)]
pub struct Config {
    /// By key.
    settings: HashMap<String, Setting>,
    /// Number of settings read, including those that a later one replaced.
    read: usize,
    /// Descriptions of skipped input: lines that are not settings, and files that cannot be read.
    pub left_out: Vec<String>,
}

#[derive(Debug)]
struct Setting {
    /// Number of this setting among all that were read.
    number: usize,
    value: String,
    file: PathBuf,
}

/// What to do with a setting: `KEY` or `KEY=VALUE`.
#[derive(Debug, Clone)]
pub(crate) enum SettingAction {
    /// Show the value of this key.
    Show(String),
    /// Set this key to this value.
    Set(String, String),
}

impl FromStr for SettingAction {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let (key, value) = text.split_once('=').map_or((text, None), |(key, value)| (key, Some(value)));
        let is_name = |name: &str| {
            let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
            !name.is_empty() && name.chars().all(plain)
        };
        let sound = key.rsplit_once('.').is_some_and(|(section, name)| is_name(section) && is_name(name));
        match value {
            _ if !sound => Err(Error::usage(format!("{text:?} is not a setting: expected SECTION.NAME"))
                .try_this("such as report.children=false")),
            Some("") => Err(Error::usage(format!("{key}: missing value after ="))
                .try_this(format!("pmc config {key}=VALUE"))),
            Some(value) => Ok(Self::Set(key.to_ascii_lowercase(), value.to_owned())),
            None => Ok(Self::Show(key.to_ascii_lowercase())),
        }
    }
}

/// Selects the files to use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ConfigFiles {
    /// All files in use; settings are written to the user's file.
    Usual,
    /// Only the user's file.
    User,
    /// Only the system's file.
    System,
}

impl ConfigFiles {
    /// Returns the files. Later files override earlier ones, and settings are written to the last one.
    pub(crate) fn paths(self) -> Vec<PathBuf> {
        let home = || std::env::var_os("HOME").map(PathBuf::from).filter(|home| home.is_absolute());
        let user = || home().map(|home| home.join(".perfconfig"));
        match (self, std::env::var_os("PERF_CONFIG")) {
            (Self::Usual, Some(file)) if !file.is_empty() => vec![file.into()],
            (Self::Usual, _) => [SYSTEM.into()].into_iter().chain(user()).collect(),
            (Self::User, _) => user().into_iter().collect(),
            (Self::System, _) => vec![SYSTEM.into()],
        }
    }
}

impl Config {
    /// Reads the files that exist, usually [`ConfigFiles::paths`].
    pub fn load(files: &[PathBuf]) -> Self {
        let mut config = Self::default();
        for file in files {
            match read(file) {
                Ok(text) => config.add(&String::from_utf8_lossy(&text), file),
                // Skips files that are not ours: HOME may be another user's (su, sudo).
                Err(error) if matches!(error.kind(), NotFound | PermissionDenied) => {}
                Err(error) => {
                    config.left_out.push(format!(
                        "{}: {}",
                        file.display(),
                        pmc_sys::error::kernel_message(&error)
                    ));
                }
            }
        }
        config
    }

    /// Adds the settings in the text of a file.
    pub fn add(&mut self, text: &str, file: &Path) {
        let mut section = None;
        for line in lines(text) {
            match parse(&line.text) {
                Some(ConfigLine::Section(name)) => section = Some(name),
                Some(ConfigLine::Value(name, value)) if section.is_some() => {
                    let key = format!("{}.{name}", section.as_deref().unwrap_or_default());
                    self.read += 1;
                    let setting = Setting { number: self.read, value, file: file.to_owned() };
                    self.settings.insert(key, setting);
                }
                Some(ConfigLine::Empty) => {}
                _ => self.left_out.push(format!("{}, line {}: not a setting", file.display(), line.number)),
            }
        }
    }

    /// Returns all keys and values in the order of the files, grouped by section.
    pub fn all(&self) -> impl Iterator<Item = (&str, &str)> {
        let section = |key: &str| key.rsplit_once('.').map_or(0, |(section, _)| section.len());
        let mut all: Vec<(&str, &Setting)> =
            self.settings.iter().map(|(key, setting)| (key.as_str(), setting)).collect();
        all.sort_unstable_by_key(|(_, setting)| setting.number);
        // The number of each section's first setting.
        let mut first: HashMap<&str, usize> = HashMap::new();
        for (key, setting) in &all {
            first.entry(&key[..section(key)]).or_insert(setting.number);
        }
        all.sort_by_key(|(key, _)| first[&key[..section(key)]]);
        all.into_iter().map(|(key, setting)| (key, setting.value.as_str()))
    }

    /// Returns the value of a key.
    pub fn get(&self, key: &str) -> Option<&str> {
        self.settings.get(key).map(|setting| setting.value.as_str())
    }

    /// Returns the value of a boolean key.
    ///
    /// # Errors
    /// When the value is not a boolean.
    pub fn is(&self, key: &str) -> Result<Option<bool>> {
        self.read(key, "true or false", |value| match value.to_ascii_lowercase().as_str() {
            "true" | "yes" | "on" => Some(true),
            "false" | "no" | "off" => Some(false),
            number => number.parse::<i64>().ok().map(|number| number != 0),
        })
    }

    /// Returns the value of a key, parsed by `parse`.
    ///
    /// # Errors
    /// When `parse` returns `None`: the error names the file and the `expected` value.
    pub fn read<T>(
        &self,
        key: &str,
        expected: &str,
        parse: impl FnOnce(&str) -> Option<T>,
    ) -> Result<Option<T>> {
        let Some(setting) = self.settings.get(key) else { return Ok(None) };
        parse(&setting.value).map(Some).ok_or_else(|| {
            Error::usage(format!("{key}={}: expected {expected}", setting.value))
                .why(format!("it is set in {}", setting.file.display()))
                .try_this(format!("pmc config {key}=VALUE, or PERF_CONFIG=/dev/null to ignore all settings"))
        })
    }
}

/// Sets a key in a file, and creates the file if it is missing.
///
/// # Errors
/// When the key has no section, or the file cannot be read or written.
pub fn set(file: &Path, key: &str, value: &str) -> Result<()> {
    // Another user's link could lead to one of root's files (`sudo -E`).
    let is_foreign_link = |about: fs::Metadata| about.is_symlink() && !is_trusted_owner(about.uid());
    if fs::symlink_metadata(file).is_ok_and(is_foreign_link) {
        return Err(Error::new(format!("{} was not changed", file.display()))
            .why("the path is a symbolic link created by another user")
            .try_this("remove the symbolic link, or set HOME"));
    }
    // Keeps a link, and writes to its target.
    let file = fs::canonicalize(file).unwrap_or_else(|_| file.to_owned());
    let doing = |error| Error::io(format!("writing {}", file.display()), error);
    let text = match read(&file) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Vec::new(),
        text => text.map_err(|error| Error::io(format!("reading {}", file.display()), error))?,
    };
    // Writes only files that were read completely.
    let refused = |why: &str| {
        Err(Error::new(format!("{} was not changed", file.display()))
            .why(why)
            .try_this(format!("set {key} with an editor")))
    };
    if text.len() as u64 == MAX_FILE_BYTES {
        return refused("the configuration file is too large (1 MiB or more)");
    }
    let Ok(text) = String::from_utf8(text) else { return refused("it contains bytes that are not UTF-8") };
    let mode = fs::metadata(&file).map_or(0o600, |meta| meta.mode() & 0o777);
    let new = Replacement::new(&file);
    let written = new.create(mode);
    let written = written.and_then(|mut to| to.write_all(changed(&text, key, value).as_bytes()));
    written.and_then(|()| new.put()).map_err(doing)
}

/// Returns the text with the key set: in its current place, or else at the end of its section, or else in a
/// new section.
pub fn changed(text: &str, key: &str, value: &str) -> String {
    let (section, name) = key.rsplit_once('.').unwrap_or(("", key));
    let new = format!("\t{name} = {}", quoted(value));
    let mut out: Vec<String> = Vec::new();
    // Positions of the section's last line and of the key's line.
    let (mut inside, mut last, mut own) = (false, None, None);
    for line in lines(text) {
        match parse(&line.text) {
            Some(ConfigLine::Section(found)) => inside = found == section,
            Some(ConfigLine::Value(found, _)) if inside && found == name => own = Some(out.len()),
            _ => {}
        }
        if inside && !line.text.trim().is_empty() {
            last = Some(out.len());
        }
        out.push(line.text);
    }
    // A line added after it must not continue it.
    if let Some(unfinished) = out.last_mut().filter(|line| is_continued(line)) {
        unfinished.push('\n');
    }
    match (own, last) {
        (Some(at), _) => out[at] = new,
        (None, Some(at)) => out.insert(at + 1, new),
        (None, None) => out.extend([format!("[{section}]"), new]),
    }
    out.join("\n") + "\n"
}

fn quoted(value: &str) -> String {
    // Without quotes, other white space becomes a blank.
    let is_odd = |c: char| c != ' ' && c.is_whitespace() || matches!(c, '#' | ';' | '"' | '\\');
    let plain = value.trim() == value && !value.contains(is_odd) && !value.contains("  ");
    if plain {
        return value.to_owned();
    }
    let escaped = value.replace('\\', "\\\\").replace('"', "\\\"").replace('\t', "\\t").replace('\n', "\\n");
    format!("\"{escaped}\"")
}

/// Reads the first [`MAX_FILE_BYTES`] bytes of a file.
fn read(path: &Path) -> io::Result<Vec<u8>> {
    let mut text = Vec::new();
    if path == Path::new("/dev/null") {
        return Ok(text);
    }
    let file = open_regular(path, true)?;
    if !is_trusted_owner(file.metadata()?.uid()) {
        return Err(io::Error::from(io::ErrorKind::PermissionDenied));
    }
    file.take(MAX_FILE_BYTES).read_to_end(&mut text)?;
    Ok(text)
}

/// A line of the file, including lines joined to it by backslashes.
struct JoinedLine {
    number: usize,
    text: String,
}

/// Whether the next line belongs to this one. An even number of backslashes belongs to the value.
fn is_continued(line: &str) -> bool {
    (line.len() - line.trim_end_matches('\\').len()) % 2 == 1
}

fn lines(text: &str) -> impl Iterator<Item = JoinedLine> + '_ {
    // A carriage return that is left at the end of a line would become part of a line end when the line is
    // written.
    let mut rest = text.lines().map(|line| line.trim_end_matches('\r')).enumerate();
    std::iter::from_fn(move || {
        let (number, mut line) = rest.next()?;
        let mut text = line.to_owned();
        while is_continued(line) {
            let Some((_, next)) = rest.next() else { break };
            text.push('\n');
            text.push_str(next);
            line = next;
        }
        Some(JoinedLine { number: number + 1, text })
    })
}

#[derive(Debug, PartialEq, Eq)]
enum ConfigLine {
    Empty,
    Section(String),
    Value(String, String),
}

/// Parses a line; returns `None` if it is not a setting.
fn parse(line: &str) -> Option<ConfigLine> {
    let line = line.trim();
    if is_blank(line) {
        return Some(ConfigLine::Empty);
    }
    if let Some(section) = line.strip_prefix('[') {
        let (name, rest) = section.split_once(']')?;
        let is_end = is_blank(rest);
        return match name.split_once(char::is_whitespace) {
            Some((name, part)) => {
                let part = part.trim().strip_prefix('"')?.strip_suffix('"')?;
                is_end.then(|| ConfigLine::Section(format!("{}.{part}", name.to_ascii_lowercase())))
            }
            None => (is_end && !name.is_empty()).then(|| ConfigLine::Section(name.to_ascii_lowercase())),
        };
    }
    let end = line.find(|c: char| !(c.is_ascii_alphanumeric() || matches!(c, '-' | '_')));
    let (name, rest) = line.split_at(end.unwrap_or(line.len()));
    let name = Some(name.to_ascii_lowercase()).filter(|name| !name.is_empty())?;
    match rest.trim_start().strip_prefix('=') {
        Some(text) => Some(ConfigLine::Value(name, value(text)?)),
        None => is_blank(rest).then(|| ConfigLine::Value(name, "true".to_owned())),
    }
}

/// Whether the text is empty or only a remark.
fn is_blank(text: &str) -> bool {
    let text = text.trim_start();
    text.is_empty() || text.starts_with(['#', ';'])
}

/// Parses the value after an equals sign; returns `None` if a quote is not closed.
fn value(text: &str) -> Option<String> {
    let mut out = String::new();
    let (mut quoted, mut space) = (false, false);
    let mut rest = text.chars();
    while let Some(c) = rest.next() {
        match c {
            '"' => quoted = !quoted,
            '#' | ';' if !quoted => break,
            c if c.is_whitespace() && !quoted => space = !out.is_empty(),
            _ => {
                if std::mem::take(&mut space) {
                    out.push(' ');
                }
                match (c, c == '\\') {
                    (_, true) => match rest.next() {
                        Some('t') => out.push('\t'),
                        Some('n') => out.push('\n'),
                        Some('b') => out.push('\u{8}'),
                        // As in perf, the end of the file ends a line.
                        Some('\n') | None => {}
                        Some(c @ ('"' | '\\')) => out.push(c),
                        Some(_) => return None,
                    },
                    _ => out.push(c),
                }
            }
        }
    }
    (!quoted).then_some(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(text: &str) -> Config {
        let mut config = Config::default();
        config.add(text, Path::new("file"));
        config
    }

    #[test]
    fn file_is_parsed_like_perf() {
        let text = "# mine\n[Report]\n percent-limit = 1 ; one\n\tsort_order = comm,  \"a # b\" \\\n  dso\nchildren\n\
            [colors]\n top = red, default\n[report] # again\nPercent-Limit=2\n[tui \"X\"]\non=no\n";
        let read = config(text);
        let all: Vec<String> = read.all().map(|(key, value)| format!("{key}={value}")).collect();
        assert_eq!(
            all,
            [
                "report.sort_order=comm, a # b  dso",
                "report.children=true",
                "report.percent-limit=2",
                "colors.top=red, default",
                "tui.X.on=no"
            ]
        );
        assert_eq!(read.left_out, [""; 0]);
        assert_eq!(read.is("report.children").unwrap(), Some(true));
        assert_eq!((read.is("tui.X.on").unwrap(), read.is("tui.report").unwrap()), (Some(false), None));
        let error = read.is("colors.top").unwrap_err().to_string();
        assert!(
            error.contains("colors.top=red, default: expected true or false") && error.contains("in file")
        );
    }

    #[test]
    fn invalid_settings_are_skipped_and_reported() {
        let read = config("a = 1\n[b\n[c]\nd = \"e\nf = \\q\n= 3\ng h\nok = 1\n[]\n\\");
        assert_eq!(read.all().collect::<Vec<_>>(), [("c.ok", "1")]);
        let numbers: Vec<&str> = read.left_out.iter().map(|said| said.split(' ').nth(2).unwrap()).collect();
        assert_eq!(numbers, ["1:", "2:", "4:", "5:", "6:", "7:", "9:", "10:"]);
    }

    /// Each text once took minutes or overflowed the stack.
    #[test]
    fn large_files_take_time_in_proportion() {
        let most = MAX_FILE_BYTES as usize;
        let many: String = (0..most / 12).map(|number| format!("k{number:08} = 1\n")).collect();
        assert_eq!(config(&format!("[a]\n{many}")).all().count(), most / 12);
        for (text, settings) in [
            ("[a]\nb = \\\n".to_owned() + &"\\\n".repeat(most / 2), 1),
            ("[a]".repeat(most / 3), 0),
            ("[a]\n".to_owned() + &"b ".repeat(most / 2), 0),
            ("[a]\nb = 1".to_owned() + &"\\".repeat(most), 1),
        ] {
            assert_eq!(config(&text).all().count(), settings, "{}", &text[..12]);
            assert_eq!(config(&changed(&text, "c.d", "2")).get("c.d"), Some("2"));
        }
    }

    #[test]
    fn setting_a_key_keeps_other_lines_unchanged() {
        let text = "# mine\n[a]\n\tx = 1 \\\n  2  # why\n\n[b]\n\ty = 3\n";
        assert_eq!(changed(text, "a.x", "4"), "# mine\n[a]\n\tx = 4\n\n[b]\n\ty = 3\n");
        assert_eq!(
            changed(text, "a.z", "4"),
            "# mine\n[a]\n\tx = 1 \\\n  2  # why\n\tz = 4\n\n[b]\n\ty = 3\n"
        );
        assert_eq!(changed("", "c.z", "4"), "[c]\n\tz = 4\n");
        for end in ["", "\r", "\r\r", "\r\r\n\n"] {
            let unfinished = config(&changed(&format!("[a]\nx = 1\\{end}"), "a.z", "4"));
            assert_eq!(unfinished.all().collect::<Vec<_>>(), [("a.x", "1"), ("a.z", "4")]);
        }
        let words = ["a # b", " x ", "say \"no\"", "tab\there", "back\\slash", "two\nlines", "", "a  b"];
        for odd in words.into_iter().chain(["non-breaking\u{a0}blank", "vertical\u{b}tab"]) {
            assert_eq!(config(&changed(text, "b.y", odd)).get("b.y"), Some(odd));
        }
    }

    #[test]
    fn partially_read_file_is_not_overwritten() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("config");
        for text in [b"[a]\n\tb = \xe9\n".to_vec(), vec![b'#'; MAX_FILE_BYTES as usize + 5]] {
            fs::write(&file, &text).unwrap();
            let error = set(&file, "a.c", "1").unwrap_err().to_string();
            assert!(error.contains("was not changed"), "{error}");
            assert_eq!(fs::read(&file).unwrap(), text);
        }
    }

    #[test]
    fn file_is_replaced_atomically() {
        let folder = tempfile::tempdir().unwrap();
        let (file, link) = (folder.path().join("file"), folder.path().join("link"));
        std::os::unix::fs::symlink(&file, &link).unwrap();
        set(&file, "a.b", "1").unwrap();
        set(&link, "a.c", "2").unwrap();
        assert_eq!(fs::read_to_string(&link).unwrap(), "[a]\n\tb = 1\n\tc = 2\n");
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
        assert_eq!(fs::metadata(&file).unwrap().mode() & 0o777, 0o600);
        let error = set(&folder.path().join("no/file"), "a.b", "1").unwrap_err().to_string();
        assert!(error.contains("writing") && error.contains("ENOENT"), "{error}");
    }
}
