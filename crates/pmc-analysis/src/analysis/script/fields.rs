//! `-F`: the fields of each kind of event, from perf's defaults and the user's changes.
//!
//! ```text
//!   -F comm,ip            only these, for all kinds     -F +addr,-period     the defaults, changed
//!   -F sw:comm,ip         only these, for software      -F trace:            tracepoints are not printed
//! ```

use std::str::FromStr;

use crate::profile::script::{BLOCK_FIELDS, ScriptField, ScriptFields};
use pmc_perfdata::perfdata::RecordedEvent;
use pmc_sys::abi::attr::kind;
use pmc_sys::abi::{branch_sample_type, sample_type};
use pmc_sys::error::{Error, Result, Warning, say};
use pmc_text::text;

/// Fields of perf that pmc does not support, and why.
const REFUSED: [(&str, &str); 2] = [
    ("metric", "pmc stat computes metrics"),
    ("brcntr", "pmc does not record branch counters (-j any,counter)"),
];

/// perf's kinds of events, by the prefix before the `:`.
const KINDS: [(&str, u32); 5] = [
    ("hw", kind::HARDWARE),
    ("sw", kind::SOFTWARE),
    ("trace", kind::TRACEPOINT),
    ("raw", kind::RAW),
    ("break", kind::BREAKPOINT),
];

/// A change of the default fields: the value of `-F`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FieldChange {
    /// The kind of event to which the change applies; `None` for all.
    kind: Option<u32>,
    /// Whether the change applies only to a kind of event that never occurs (`synth:`).
    is_void: bool,
    /// Whether the fields modify the current ones (`+`, `-`) instead of replacing them.
    is_relative: bool,
    fields: Vec<(bool, ScriptField)>,
}

impl FromStr for FieldChange {
    type Err = Error;

    fn from_str(typed: &str) -> Result<Self> {
        let (kind, is_void, list) = match typed.split_once(':') {
            None => (None, false, typed),
            Some(("synth", list)) => (None, true, list),
            Some((name, list)) => {
                let Some((_, kind)) = KINDS.iter().find(|(known, _)| *known == name.trim()) else {
                    return Err(Error::usage(format!("unknown event type {name:?}"))
                        .try_this("use hw, sw, trace, raw, break or synth, then a colon and fields"));
                };
                (Some(*kind), false, list)
            }
        };
        let mut fields = Vec::new();
        let (mut changes, mut plain) = (0, 0);
        for word in list.split(',').map(str::trim).filter(|word| !word.is_empty()) {
            let (is_added, name) = match word.as_bytes()[0] {
                b'+' => (true, &word[1..]),
                b'-' => (false, &word[1..]),
                _ => (true, word),
            };
            if name.len() == word.len() {
                plain += 1
            } else {
                changes += 1
            }
            fields.push((is_added, field(name)?));
        }
        if changes > 0 && plain > 0 {
            return Err(Error::usage(format!("-F {typed:?} both changes and replaces the default fields"))
                .try_this("put + or - before every name, or before none"));
        }
        if fields.is_empty() && kind.is_none() && !is_void {
            return Err(Error::usage("-F has no fields").try_this("pmc script -F comm,tid,time,ip,sym"));
        }
        Ok(Self { kind, is_void, is_relative: changes > 0, fields })
    }
}

fn field(name: &str) -> Result<ScriptField> {
    if let Some(field) = ScriptField::ALL.iter().find(|field| field.name() == name) {
        return Ok(*field);
    }
    if let Some((_, why)) = REFUSED.iter().find(|(known, _)| *known == name) {
        return Err(Error::usage(format!("pmc has no field {name:?}")).why(*why));
    }
    let names = || ScriptField::ALL.iter().map(|field| field.name());
    let error = Error::usage(format!("unknown field {name:?}"));
    let near = text::nearest(name, names(), 3);
    Err(match near.is_empty() {
        false => error.try_this(format!("did you mean {}?", near.join(" or "))),
        true => error.try_this(format!("one of {}", names().collect::<Vec<_>>().join(", "))),
    })
}

/// Returns the fields of each event: the defaults, as changed by `changes`. With `callers`, tracepoints also
/// show recorded call chains.
pub(super) fn of_events(
    changes: &[FieldChange],
    callers: bool,
    events: &[RecordedEvent],
) -> Vec<ScriptFields> {
    events.iter().map(|event| of_event(event, callers, changes)).collect()
}

fn usual(event: &RecordedEvent, callers: bool) -> ScriptFields {
    let sample_type = event.attr.sample_type();
    let mut usual =
        vec![ScriptField::Comm, ScriptField::Tid, ScriptField::Cpu, ScriptField::Time, ScriptField::Event];
    let is_tracepoint = event.attr.kind() == kind::TRACEPOINT;
    usual.push(if is_tracepoint { ScriptField::Trace } else { ScriptField::Period });
    if !is_tracepoint || sample_type & sample_type::CALLCHAIN != 0 && callers {
        usual.extend([ScriptField::Ip, ScriptField::Sym, ScriptField::SymOff, ScriptField::Dso]);
    }
    if event.attr.kind() == kind::SOFTWARE {
        usual.push(ScriptField::BpfOutput);
    }
    if event.attr.kind() == kind::RAW {
        usual.extend([
            ScriptField::Addr,
            ScriptField::DataSrc,
            ScriptField::Weight,
            ScriptField::PhysAddr,
            ScriptField::DataPageSize,
        ]);
        usual.extend([ScriptField::CodePageSize, ScriptField::InsLat]);
    }
    ScriptFields::from_list(&usual)
}

fn of_event(event: &RecordedEvent, callers: bool, changes: &[FieldChange]) -> ScriptFields {
    let mut fields = usual(event, callers);
    let mut asked = Vec::new();
    let mine =
        |change: &&FieldChange| !change.is_void && change.kind.is_none_or(|kind| kind == event.attr.kind());
    for change in changes.iter().filter(mine) {
        if !change.is_relative {
            fields = ScriptFields::default();
        }
        for (is_added, field) in &change.fields {
            fields.set(*field, *is_added);
            asked.push(*field);
        }
    }
    if fields.has(ScriptField::DsOff) {
        fields.set(ScriptField::Dso, true);
    }
    let sample_type = event.attr.sample_type();
    // The code between branches is known only if all branches were recorded.
    let has_all_branches = event.attr.branch_sample_type() & branch_sample_type::ANY != 0;
    for &field in ScriptField::ALL {
        let Some(bits) = field.needs().filter(|_| fields.has(field)) else { continue };
        let is_recorded = sample_type & bits != 0 && (has_all_branches || !BLOCK_FIELDS.contains(&field));
        if !is_recorded {
            fields.set(field, false);
            if asked.contains(&field) {
                let (event, field) = (event.name(), field.name());
                say::warn(Warning::note_once(format!(
                    "{event} was recorded without {field}: the field is omitted"
                )));
            }
        }
    }
    fields
}
