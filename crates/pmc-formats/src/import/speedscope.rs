//! speedscope's own format: profiles of threads with shared frames (py-spy, rbspy, pmc and others write it).
//!
//! ```text
//!   shared.frames   name, file, line
//!   profiles        "sampled": stacks, outermost first, and their weights
//!                   "evented": frames that open and close at times; each stretch of time is a sample
//! ```
//!
//! If the unit is a time, the weights follow each other on the time axis, as speedscope shows them.
//!
//! Schema: <https://www.speedscope.app/file-format-schema.json>.

use serde::Deserialize;

use super::error::ImportError;
use super::json;
use super::profile::{ImportId, ImportedCall, ImportedProfile, ImportedSample};

/// Why a file that is cut off may contain no whole sample.
const NEEDS: &str = "a sample needs its weight, which comes after all samples of its profile, and the names of functions \
                     (shared.frames), which some programs write at the end, such as py-spy";

#[derive(Deserialize)]
struct SpeedscopeFile {
    exporter: Option<String>,
    #[serde(default)]
    shared: SharedFrames,
    #[serde(default)]
    profiles: Vec<SpeedscopeProfile>,
}

#[derive(Deserialize, Default)]
struct SharedFrames {
    #[serde(default)]
    frames: Vec<SpeedscopeFrame>,
}

#[derive(Deserialize)]
struct SpeedscopeFrame {
    name: String,
    file: Option<String>,
    line: Option<f64>,
}

#[derive(Deserialize)]
struct SpeedscopeProfile {
    #[serde(default, rename = "type")]
    kind: Option<String>,
    #[serde(default)]
    name: String,
    #[serde(default)]
    unit: Option<String>,
    #[serde(default, rename = "startValue")]
    start: f64,
    #[serde(default)]
    samples: Vec<Vec<usize>>,
    #[serde(default)]
    weights: Vec<f64>,
    #[serde(default)]
    events: Vec<SpeedscopeEvent>,
}

#[derive(Deserialize)]
struct SpeedscopeEvent {
    #[serde(rename = "type")]
    kind: String,
    frame: usize,
    at: f64,
}

pub(super) fn read(bytes: &[u8], mut profile: ImportedProfile) -> Result<ImportedProfile, ImportError> {
    let (file, is_cut): (SpeedscopeFile, bool) = json::read(bytes, NEEDS, &mut profile)?;
    let frames: Vec<ImportId> =
        file.shared.frames.iter().map(|frame| location(&mut profile, frame)).collect();
    // Values of one kind have one unit.
    let mut units = file.profiles.iter().filter_map(|one| one.unit.as_deref());
    let first_unit = units.next();
    let are_events = units.any(|unit| Some(unit) != first_unit);
    for (number, one) in file.profiles.iter().enumerate() {
        let invalid = |what: String| ImportError::item("profile", number, what);
        if is_cut && number + 1 == file.profiles.len() && (one.kind.is_none() || one.unit.is_none()) {
            profile.lose(invalid("the file is cut off before its type or unit".to_owned()))?;
            continue;
        }
        let unit = one.unit.as_deref().unwrap_or_default();
        let is_pmc = file.exporter.as_deref().is_some_and(|exporter| exporter.starts_with("pmc "));
        let (comm, tid, event) = match thread_and_event(&one.name, is_pmc) {
            (name, None, None) if are_events => ("", None, Some(name)),
            parts => parts,
        };
        let event = profile.event(event.unwrap_or("weight"), unit)?;
        let thread = match tid {
            Some(tid) => profile.thread(tid, tid, comm)?,
            None => profile.named_thread(comm)?,
        };
        let is_time = profile.events[event as usize].name.contains("nanoseconds")
            || profile.events[event as usize].scale > 1.0
            || unit == "nanoseconds";
        let add = |stack: &[usize], from: f64, weight: f64, profile: &mut ImportedProfile| {
            if weight < 0.0 {
                return profile.lose(invalid("a weight is negative".to_owned()));
            }
            let mut locations = Vec::with_capacity(stack.len());
            for frame in stack.iter().rev() {
                let Some(location) = frames.get(*frame) else {
                    return profile.lose(invalid(format!("there is no frame {frame}")));
                };
                locations.push(*location);
            }
            let stack = profile.stack(&locations)?;
            let value = profile.scaled(event, weight);
            let time = is_time.then(|| profile.scaled(event, from));
            profile.add(ImportedSample { event, stack, thread, time, value, ..ImportedSample::default() })
        };
        match one.kind.as_deref().unwrap_or_default() {
            "sampled" => {
                let (samples, weights) = (one.samples.len(), one.weights.len());
                for _ in samples.min(weights)..samples.max(weights) {
                    profile.lose(invalid("its numbers of samples and weights differ".to_owned()))?;
                }
                let mut at = one.start;
                for (stack, weight) in one.samples.iter().zip(&one.weights) {
                    add(stack, at, *weight, &mut profile)?;
                    at += weight.max(0.0);
                }
            }
            "evented" => {
                let (mut open, mut last): (Vec<usize>, f64) = (Vec::new(), one.start);
                for event in &one.events {
                    if event.at < last {
                        profile.lose(invalid(format!("times decrease at {}", event.at)))?;
                        continue;
                    }
                    if event.at > last && !open.is_empty() {
                        add(&open, last, event.at - last, &mut profile)?;
                    }
                    last = event.at;
                    match &*event.kind {
                        "O" if open.len() < super::profile::MOST_FRAMES => open.push(event.frame),
                        "O" => return Err(ImportError::file("frames are nested too deeply")),
                        "C" if open.last() == Some(&event.frame) => drop(open.pop()),
                        "C" => {
                            let what = format!("frame {} closes while another is open", event.frame);
                            profile.lose(invalid(what))?;
                            if let Some(at) = open.iter().rposition(|frame| *frame == event.frame) {
                                open.remove(at);
                            }
                        }
                        other => profile.lose(invalid(format!("unknown event {other:?}")))?,
                    }
                }
            }
            other => profile.lose(invalid(format!("unknown type {other:?}")))?,
        }
    }
    Ok(profile)
}

fn location(profile: &mut ImportedProfile, frame: &SpeedscopeFrame) -> ImportId {
    let file = frame.file.as_deref().unwrap_or_default();
    let line = frame.line.unwrap_or(0.0) as u32;
    // Programs without debug information have a module instead of a file.
    let is_module =
        line == 0 && !file.is_empty() && !file.rsplit('/').next().unwrap_or_default().contains('.')
            || file.contains(".so")
            || file.starts_with('[');
    // pmc writes `[libc.so.6]` for code of a module without a name. pyinstrument's `[self]` is a name.
    let is_nameless = frame.name.starts_with('[') && frame.name.ends_with(']') && is_module;
    let is_kernel = file.starts_with("[kernel") || frame.name.starts_with("[kernel");
    let text = profile.text(file);
    let call = ImportedCall {
        name: if is_nameless { 0 } else { profile.text(&frame.name) },
        module: if is_nameless {
            profile.text(&frame.name)
        } else if is_module {
            text
        } else {
            0
        },
        file: if is_module { 0 } else { text },
        line,
        is_kernel,
        ..ImportedCall::default()
    };
    profile.plain_location(call)
}

/// Splits pmc's names of profiles, `comm (tid) event`, and py-spy's, `Thread 516 "comm"`. Others are names of
/// threads, or of events if the units of the profiles differ, as memray writes them. pmc's names of events
/// may contain spaces, and those of threads may be empty.
fn thread_and_event(name: &str, is_pmc: bool) -> (&str, Option<i32>, Option<&str>) {
    let py_spy = name.strip_prefix("Thread ").and_then(|rest| rest.split_once(' '));
    if let Some((tid, comm)) = py_spy.and_then(|(tid, comm)| Some((tid.parse().ok()?, comm))) {
        return (comm.trim_matches('"'), Some(tid), None);
    }
    let mut ends = name.rmatch_indices(") ").map(|(at, _)| at);
    let parts = ends.find_map(|end| {
        let (comm, tid) = name[..end].rsplit_once(" (")?;
        Some((comm, tid.parse().ok()?, &name[end + 2..]))
    });
    match parts {
        Some((comm, tid, event)) if is_pmc || !event.contains(' ') => (comm, Some(tid), Some(event)),
        _ => (name, None, None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const START: &str = r#"{"$schema":"https://www.speedscope.app/file-format-schema.json",
        "shared":{"frames":[{"name":"a","file":"a.py","line":3},{"name":"b"}]},"profiles":["#;

    fn imported(profiles: &str) -> Result<ImportedProfile, ImportError> {
        let text = format!("{START}{profiles}]}}");
        read(text.as_bytes(), ImportedProfile::new())
    }

    #[test]
    fn both_kinds_of_profiles_give_samples() {
        let sampled = imported(
            r#"{"type":"sampled","name":"x (7) cycles","unit":"none","startValue":0,"endValue":3,"samples":[[0,1],[0]],"weights":[1,2]}"#,
        )
        .unwrap();
        assert_eq!(sampled.events[0].name, "cycles");
        assert_eq!(sampled.threads[0].tid, 7);
        assert_eq!(sampled.samples.iter().map(|sample| sample.value).collect::<Vec<_>>(), [1, 2]);
        assert_eq!(sampled.samples[0].time, None);
        let evented = imported(
            r#"{"type":"evented","name":"main","unit":"milliseconds","startValue":5,"endValue":9,
            "events":[{"type":"O","frame":0,"at":5},{"type":"O","frame":1,"at":6},{"type":"C","frame":1,"at":8},{"type":"C","frame":0,"at":9}]}"#,
        )
        .unwrap();
        let values: Vec<u64> = evented.samples.iter().map(|sample| sample.value).collect();
        assert_eq!(values, [1_000_000, 2_000_000, 1_000_000]);
        assert_eq!(evented.samples[1].time, Some(6_000_000));
    }

    #[test]
    fn profiles_of_different_units_are_events() {
        let one = |name: &str, unit: &str| {
            format!(r#"{{"type":"sampled","name":"{name}","unit":"{unit}","samples":[[0]],"weights":[5]}}"#)
        };
        let events = |profile: &ImportedProfile| -> Vec<String> {
            profile.events.iter().map(|event| event.name.clone()).collect()
        };
        let memray = imported(&[one("Memory", "bytes"), one("Allocations", "none")].join(",")).unwrap();
        assert_eq!(events(&memray), ["Memory (bytes)", "Allocations"]);
        assert_eq!(memray.threads.len(), 1);
        let threads = imported(&[one("main", "bytes"), one("io", "bytes")].join(",")).unwrap();
        assert_eq!((events(&threads), threads.threads.len()), (vec!["weight (bytes)".to_owned()], 2));
    }

    #[test]
    fn names_in_brackets_are_names_or_modules() {
        let text = r#"{"shared":{"frames":[{"name":"[self]","file":null,"line":null},{"name":"[libc.so.6]","file":"/lib/libc.so.6"}]},
            "profiles":[{"type":"sampled","unit":"none","samples":[[0],[1]],"weights":[1,2]}]}"#;
        let profile = read(text.as_bytes(), ImportedProfile::new()).unwrap();
        let names: Vec<&str> = profile.calls.iter().map(|call| &**profile.get_text(call.name)).collect();
        assert_eq!(names, ["[self]", ""]);
    }

    #[test]
    fn invalid_profiles_are_errors() {
        let error = |profiles: &str| imported(profiles).unwrap().lost().unwrap().to_string();
        assert!(error(r#"{"type":"sampled","samples":[[9]],"weights":[1]}"#).contains("no frame 9"));
        assert!(error(r#"{"type":"sampled","samples":[[0]],"weights":[]}"#).contains("differ"));
        assert!(error(r#"{"type":"evented","events":[{"type":"C","frame":0,"at":0}]}"#).contains("closes"));
        assert!(error(r#"{"type":"other"}"#).contains("unknown type"));
        assert!(error(r#"{"type":}"#).contains("line 2"));
    }
}
