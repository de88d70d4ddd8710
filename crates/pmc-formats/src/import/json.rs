//! Tells the formats in JSON apart, by the keys of the outermost object.

use serde::Deserialize;
use serde::de::IgnoredAny;

/// The keys of an outermost object that tell formats apart.
#[derive(Deserialize, Default)]
#[serde(default, rename_all = "camelCase")]
struct TopObject {
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
    /// Whether the file contains a V8 profile in another object, as DevTools' protocol transmits it.
    wraps_cpuprofile: bool,
}

impl TopKeys {
    pub(super) fn is_speedscope(&self) -> bool {
        self.object.shared.is_some() && self.object.profiles.is_some()
    }

    pub(super) fn is_firefox(&self) -> bool {
        self.object.meta.is_some() && self.object.threads.is_some()
    }

    pub(super) fn is_cpuprofile(&self) -> bool {
        self.object.nodes.is_some() && self.object.samples.is_some() || self.wraps_cpuprofile
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
            let object = keys_of(text);
            let has_inner = object.profile.is_some() || object.result.is_some();
            let wraps_cpuprofile = has_inner && has_key(text, "callFrame") && has_key(text, "timeDeltas");
            TopKeys { object, is_list: false, wraps_cpuprofile }
        }
        Some(b'[') => {
            let is_list = text[1..].trim_ascii_start().first() == Some(&b'{');
            TopKeys { is_list, ..TopKeys::default() }
        }
        _ => TopKeys::default(),
    }
}

fn keys_of(text: &[u8]) -> TopObject {
    serde_json::from_slice(text).unwrap_or_else(|_| {
        // The importer reports the error in the file with its position.
        let has = |key: &str| has_key(text, key).then_some(IgnoredAny);
        TopObject {
            meta: has("meta"),
            threads: has("threads"),
            profiles: has("profiles"),
            shared: has("shared"),
            nodes: has("nodes").filter(|_| has("callFrame").is_some()),
            samples: has("samples"),
            trace_events: has("traceEvents"),
            stack_frames: has("stackFrames"),
            profile: None,
            result: None,
        }
    })
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
}
