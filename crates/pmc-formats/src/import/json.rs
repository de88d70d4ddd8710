//! Tells the formats in JSON apart, by the keys of the outermost object, and reads files that are cut off.
//!
//! A file that is damaged or cut off is read up to there: [`read`] closes the objects and lists that are open
//! after the last whole record. A record is an element of a list, or any other value of a profile.
//!
//! ```text
//!   {"shared": {"frames": [{"name": "a"}]}, "profiles": [{"samples": [[0], [0, 1], [0,
//!   whole: ------------------------------------------------------------------^ and then: ]}]}
//! ```

use serde::Deserialize;
use serde::de::{DeserializeOwned, IgnoredAny};
use serde_json::Value;

use super::error::ImportError;
use super::profile::ImportedProfile;

/// Maximum number of nested objects and lists: serde_json rejects more.
const MOST_LEVELS: usize = 128;
/// Keys of values that are profiles or contain them. Of these, a part is read.
const GROUPS: &[&[u8]] = &[b"profiles", b"processes", b"shared", b"profile", b"result"];

/// Reads a file. If it is damaged or cut off, reads the whole records before that place, and notes it in the
/// profile. `needs` says why a part of the file may contain no sample that is whole. Also returns whether
/// the file was read only in part.
pub(super) fn read<T: DeserializeOwned>(
    bytes: &[u8],
    needs: &'static str,
    profile: &mut ImportedProfile,
) -> Result<(T, bool), ImportError> {
    let error = match serde_json::from_slice(bytes) {
        Ok(file) => return Ok((file, false)),
        Err(error) => error,
    };
    let whole = WholePart::new(bytes, &error);
    let Some(file) = whole.read() else { return Err(error.into()) };
    let what = format!("the file is damaged or cut off in or after this record ({error})");
    profile.cut(ImportError::byte(whole.end, what), needs)?;
    Ok((file, true))
}

/// The whole records of a file that is damaged or cut off.
struct WholePart<'a> {
    bytes: &'a [u8],
    /// End of the last whole record.
    end: usize,
    /// The objects and lists that are open there, outermost first.
    open: Vec<JsonLevel>,
}

/// An object or a list.
#[derive(Clone, Copy)]
struct JsonLevel {
    is_list: bool,
    content: LevelContent,
}

/// What an object or a list contains.
#[derive(Clone, Copy, PartialEq)]
enum LevelContent {
    /// Profiles, or a part of one.
    Group,
    /// Records.
    Records,
    /// A part of a record.
    Part,
}

impl JsonLevel {
    /// Returns the level that starts in `parent`. `key` is its key if the parent is an object.
    fn new(is_list: bool, parent: Option<&Self>, key: &[u8]) -> Self {
        let is_group = match parent {
            None => !is_list,
            Some(parent) => {
                parent.content == LevelContent::Group && (parent.is_list || GROUPS.contains(&key))
            }
        };
        let has_records = is_list && parent.is_none_or(|parent| parent.content == LevelContent::Group);
        let content = match (is_group, has_records) {
            (true, _) => LevelContent::Group,
            (false, true) => LevelContent::Records,
            (false, false) => LevelContent::Part,
        };
        Self { is_list, content }
    }
}

impl<'a> WholePart<'a> {
    /// Finds the whole records before an error.
    fn new(bytes: &'a [u8], error: &serde_json::Error) -> Self {
        let good = &bytes[..position(bytes, error)];
        let (mut end, mut depth) = (0, 0);
        let mut levels: Vec<JsonLevel> = Vec::new();
        let (mut at, mut key, mut is_value): (usize, &[u8], bool) = (0, b"", false);
        while let Some(byte) = good.get(at) {
            let in_object = levels.last().is_some_and(|level| !level.is_list);
            // Whether a value of the innermost level starts or ends here.
            let is_edge = match byte {
                b'{' | b'[' if levels.len() < MOST_LEVELS => {
                    levels.push(JsonLevel::new(*byte == b'[', levels.last(), key));
                    at += 1;
                    true
                }
                b'{' | b'[' => break,
                b'}' | b']' => {
                    levels.pop();
                    at += 1;
                    true
                }
                b'"' => {
                    let Some(len) = string_len(&good[at..]) else { break };
                    let is_key = in_object && !is_value;
                    if is_key {
                        key = &good[at + 1..at + len - 1];
                    }
                    at += len;
                    !is_key
                }
                b',' | b':' => {
                    is_value = *byte == b':';
                    at += 1;
                    false
                }
                b' ' | b'\t' | b'\n' | b'\r' => {
                    at += 1;
                    false
                }
                _ => {
                    // A number is whole only if something follows it.
                    let is_end =
                        |byte: &u8| matches!(byte, b',' | b'}' | b']' | b' ' | b'\t' | b'\n' | b'\r');
                    let Some(len) = good[at..].iter().position(is_end) else { break };
                    at += len;
                    true
                }
            };
            if is_edge {
                is_value = false;
                if levels.last().is_none_or(|level| level.content != LevelContent::Part) {
                    (end, depth) = (at, levels.len());
                }
            }
            if is_edge && levels.is_empty() {
                break;
            }
        }
        levels.truncate(depth);
        Self { bytes, end, open: levels }
    }

    fn read<T: DeserializeOwned>(&self) -> Option<T> {
        let closing: Vec<u8> =
            self.open.iter().rev().map(|level| if level.is_list { b']' } else { b'}' }).collect();
        serde_json::from_slice(&[&self.bytes[..self.end], &closing].concat()).ok()
    }
}

/// Returns the offset of the last byte that the parser read before an error, or the end of the text if more
/// was expected.
fn position(bytes: &[u8], error: &serde_json::Error) -> usize {
    if error.is_eof() {
        return bytes.len();
    }
    let mut newlines = bytes.iter().enumerate().filter(|(_, byte)| **byte == b'\n').map(|(at, _)| at + 1);
    let start = match error.line() {
        0 | 1 => 0,
        line => newlines.nth(line - 2).unwrap_or(bytes.len()),
    };
    (start + error.column().saturating_sub(1)).min(bytes.len())
}

/// Returns the length of the string with which the text starts, with its quotation marks. `None` if it does
/// not end.
fn string_len(text: &[u8]) -> Option<usize> {
    let mut at = 1;
    loop {
        match text.get(at)? {
            b'"' => return Some(at + 1),
            b'\\' => at += 2,
            _ => at += 1,
        }
    }
}

/// The keys of an outermost object that tell formats apart.
#[derive(Deserialize, Default)]
#[serde(default, rename_all = "camelCase")]
struct TopObject {
    #[serde(rename = "$schema")]
    schema: Option<Value>,
    meta: Option<IgnoredAny>,
    threads: Option<IgnoredAny>,
    profiles: Option<IgnoredAny>,
    shared: Option<IgnoredAny>,
    nodes: Option<IgnoredAny>,
    samples: Option<IgnoredAny>,
    trace_events: Option<IgnoredAny>,
    stack_frames: Option<IgnoredAny>,
    profile: Option<IgnoredAny>,
    result: Option<IgnoredAny>,
}

/// The structure of a file.
#[derive(Default)]
pub(super) struct TopKeys {
    object: TopObject,
    /// Whether the file is a list of objects.
    is_list: bool,
    /// Whether the file is damaged or cut off, so that keys may be missing.
    is_cut: bool,
    /// Whether the file contains functions as V8 describes them.
    has_call_frames: bool,
    /// Whether the file contains a V8 profile in another object, as DevTools' protocol transmits it.
    wraps_cpuprofile: bool,
}

impl TopKeys {
    pub(super) fn is_speedscope(&self) -> bool {
        let names_speedscope = || {
            let schema = self.object.schema.as_ref().and_then(Value::as_str);
            self.is_cut && schema.is_some_and(|schema| schema.contains("speedscope"))
        };
        self.object.profiles.is_some() && (self.object.shared.is_some() || names_speedscope())
    }

    pub(super) fn is_firefox(&self) -> bool {
        self.object.meta.is_some() && self.object.threads.is_some()
    }

    pub(super) fn is_cpuprofile(&self) -> bool {
        let has_samples = || self.object.samples.is_some() || self.is_cut && self.has_call_frames;
        self.object.nodes.is_some() && has_samples() || self.wraps_cpuprofile
    }

    pub(super) fn is_trace(&self) -> bool {
        self.is_list || self.object.trace_events.is_some() || self.object.stack_frames.is_some()
    }
}

/// Reads the keys. They are enough for recognition even if the file is cut off after them.
pub(super) fn top_keys(bytes: &[u8]) -> TopKeys {
    let text = bytes.trim_ascii_start();
    match text.first() {
        Some(b'{') => {
            let (object, is_cut) = match serde_json::from_slice::<TopObject>(text) {
                Ok(object) => (object, false),
                Err(error) => (WholePart::new(text, &error).read().unwrap_or_default(), true),
            };
            let has_inner = object.profile.is_some() || object.result.is_some();
            let has_call_frames = (has_inner || is_cut) && has_key(text, "callFrame");
            let wraps_cpuprofile = has_inner && has_call_frames && has_key(text, "timeDeltas");
            TopKeys { object, is_list: false, is_cut, has_call_frames, wraps_cpuprofile }
        }
        Some(b'[') => {
            let is_list = text[1..].trim_ascii_start().first() == Some(&b'{');
            TopKeys { is_list, ..TopKeys::default() }
        }
        _ => TopKeys::default(),
    }
}

/// Whether the key occurs anywhere in the text.
fn has_key(text: &[u8], key: &str) -> bool {
    let quoted = format!("\"{key}\"");
    text.windows(quoted.len()).any(|part| part == quoted.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formats_are_told_apart_even_if_the_file_is_damaged() {
        let kinds = |text: &str| {
            let keys = top_keys(text.as_bytes());
            [keys.is_speedscope(), keys.is_firefox(), keys.is_cpuprofile(), keys.is_trace()]
        };
        assert_eq!(kinds(r#"{"shared":{},"profiles":[]}"#), [true, false, false, false]);
        assert_eq!(kinds(r#" {"meta":{},"threads":[],"shared":{}}"#), [false, true, false, false]);
        assert_eq!(kinds(r#"{"meta":{},"threads":[{"#), [false, true, false, false]);
        assert_eq!(kinds(r#"{"nodes":[],"samples":[]}"#), [false, false, true, false]);
        assert_eq!(kinds(r#"[{"ph":"X"}]"#), [false, false, false, true]);
        assert_eq!(kinds("[unknown];a 1"), [false; 4]);
    }

    /// Reads the start of a text, and returns what is whole in it, and the end of that.
    fn whole(text: &str) -> (Value, usize) {
        let error = serde_json::from_str::<Value>(text).unwrap_err();
        let part = WholePart::new(text.as_bytes(), &error);
        (part.read().unwrap_or_default(), part.end)
    }

    #[test]
    fn only_whole_records_are_read() {
        let json = |text: &str| serde_json::from_str::<Value>(text).unwrap();
        for (text, expected) in [
            // The last record of a list may be cut at any byte.
            (r#"{"samples":[[1,2],[3"#, r#"{"samples":[[1,2]]}"#),
            (r#"{"samples":[[1,2],[3,4]"#, r#"{"samples":[[1,2],[3,4]]}"#),
            (r#"{"deltas":[12,34"#, r#"{"deltas":[12]}"#),
            (r#"{"names":["a]\"","b"#, r#"{"names":["a]\""]}"#),
            (r#"[{"ph":"B","args":{"a":[1]}},{"ph":"#, r#"[{"ph":"B","args":{"a":[1]}}]"#),
            // A part of a profile is read, but not a part of another value.
            (
                r#"{"shared":{"frames":[{"name":"a"}]},"profiles":[{"unit":"ms","weights":[1,2"#,
                r#"{"shared":{"frames":[{"name":"a"}]},"profiles":[{"unit":"ms","weights":[1]}]}"#,
            ),
            (r#"{"meta":{"a":1},"threads":[{"a":[1]},{"a":[1"#, r#"{"meta":{"a":1},"threads":[{"a":[1]}]}"#),
            (r#"{"a":1,"meta":{"b":1,"#, r#"{"a":1}"#),
            (r#"{"a":1,"meta""#, r#"{"a":1}"#),
            // Damage in the middle, and behind the end.
            (r#"{"samples":[1,2,x,3],"b":1}"#, r#"{"samples":[1,2]}"#),
            ("{\n\"samples\":[1,\n2,\u{1}3],\"b\":1}", r#"{"samples":[1,2]}"#),
            (r#"{"a":[1]}]"#, r#"{"a":[1]}"#),
        ] {
            let (value, end) = whole(text);
            assert_eq!(value, json(expected), "{text}");
            assert!(text.is_char_boundary(end));
        }
        assert_eq!(whole("").1, 0);
        // serde_json rejects more than 128 levels.
        let deep = "[".repeat(1_000_000);
        assert_eq!(whole(&deep).0, json("[]"));
    }
}
