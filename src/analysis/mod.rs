//! From an open recording to named, filtered, aggregated answers.
//!
//! Receives an open [`Reader`]; hands on what views show. What a recording is asked lives here once: whose symbols are looked for
//! and where, copied stacks that are unwound, words for numbers, what the data are worth. Typed options and printing are left to `command` and `view`.

pub mod annotate;
pub mod live;
pub mod names;
pub mod quality;
pub mod symbols;
pub mod unwinding;

use crate::perfdata::Reader;
use crate::profile::sampled::query;
use crate::session::{Samples, Session};

/// Whether the recording was made on this machine, so that its processes may still be there.
pub fn is_from_here(reader: &Reader) -> bool {
    let here = rustix::system::uname();
    let same = |recorded: &Option<String>, here: &std::ffi::CStr| {
        recorded.as_ref().is_none_or(|name| name.as_bytes() == here.to_bytes())
    };
    let features = reader.features();
    same(&features.hostname, here.nodename()) && same(&features.os_release, here.release())
}

/// The events of a recording with their sums.
pub fn sources(session: &Session, samples: &Samples) -> Vec<query::Source> {
    let groups = session.reader.features().groups.as_deref().unwrap_or_default();
    let leader = |index: usize| {
        let inside = |group: &&crate::perfdata::feature::GroupDesc| {
            let first = group.leader as usize;
            (first..first.saturating_add(group.members as usize)).contains(&index)
        };
        groups.iter().find(inside).map_or(index, |group| group.leader as usize)
    };
    let events = session.reader.events().iter().enumerate();
    events
        .map(|(index, event)| query::Source {
            name: event.name(),
            leader: leader(index),
            total: samples.totals[index],
            filtered: samples.filtered[index],
        })
        .collect()
}
