//! Tracepoint filters (`--filter`): each filter applies to the tracepoints of the preceding `-e`. Adds
//! filters to the events, and explains filters that the kernel rejects.

use super::plan::SelfExclusion;
use pmc_events::counter::filters::RefusedFilter;
use pmc_events::event::{EventGroup, EventParser, EventSpec};
use pmc_sys::abi::attr::kind;
use pmc_sys::error::{Error, Result};

/// Parses event strings and adds their filters. Each filter comes with the index of its event string.
///
/// # Errors
/// Fails if an event string is invalid on this machine, or a filter follows an event that is not a
/// tracepoint.
pub fn events(
    parser: &mut EventParser<'_>,
    texts: &[String],
    filters: &[(usize, String)],
) -> Result<Vec<EventGroup>> {
    let mut all = Vec::new();
    for (index, text) in texts.iter().enumerate() {
        let mut groups = parser.parse(text)?;
        for (_, filter) in filters.iter().filter(|(event, _)| *event == index) {
            groups.iter_mut().flat_map(|group| &mut group.events).try_for_each(|spec| typed(filter, spec))?;
        }
        all.extend(groups);
    }
    Ok(all)
}

fn typed(filter: &str, spec: &mut EventSpec) -> Result<()> {
    if !is_tracepoint(spec) {
        return Err(Error::usage(format!("--filter: `{}` is not a tracepoint", spec.name))
            .why("only tracepoints have fields; a filter applies to the preceding -e"));
    }
    add(filter, spec);
    Ok(())
}

/// Adds a filter to the event.
fn add(filter: &str, spec: &mut EventSpec) {
    spec.filter = Some(both(spec.filter.take(), filter));
}

/// Combines a filter with the event's own filter, if it has one, so that both must match.
pub fn both(own: Option<String>, filter: &str) -> String {
    match own {
        None => filter.to_owned(),
        Some(own) => format!("({own}) && ({filter})"),
    }
}

fn is_tracepoint(spec: &EventSpec) -> bool {
    spec.attr().is_some_and(|attr| attr.kind() == kind::TRACEPOINT)
}

/// Excludes this process's own events.
///
/// # Errors
/// With [`SelfExclusion::Tracepoints`], fails if none of the events is a tracepoint.
pub(super) fn exclude_self(groups: &mut [EventGroup], excludes: SelfExclusion) -> Result<()> {
    let mut events = groups.iter().flat_map(|group| &group.events);
    match excludes {
        SelfExclusion::Never => return Ok(()),
        SelfExclusion::AllOrNone if !events.all(is_tracepoint) => return Ok(()),
        SelfExclusion::Tracepoints | SelfExclusion::AllOrNone => {}
    }
    let events = groups.iter_mut().flat_map(|group| &mut group.events);
    let mut tracepoints = events.filter(|spec| is_tracepoint(spec)).peekable();
    if tracepoints.peek().is_none() {
        return Err(Error::usage("--exclude-perf requires a tracepoint")
            .why("the kernel can filter by process only for tracepoints")
            .try_options("select processes with -p, -t or -u"));
    }
    let not_ours = format!("common_pid != {}", std::process::id());
    tracepoints.for_each(|spec| add(&not_ours, spec));
    Ok(())
}

/// Returns the error for a filter that the kernel rejects.
pub(super) fn refused((spec, filter, error): RefusedFilter<'_>) -> Error {
    Error::io(format!("--filter '{filter}'"), error)
        .why("the expression is invalid, or the tracepoint does not have this field")
        .try_this(format!("pmc list --long {} shows its fields", spec.name))
}

#[cfg(test)]
mod tests {
    use super::*;
    use pmc_events::event::EventSource;

    #[test]
    fn all_filters_of_an_event_are_combined() {
        let mut attr = pmc_sys::abi::Attr::new(kind::TRACEPOINT, 7);
        attr.set_period(1);
        let mut spec = EventSpec::new("sched:sched_switch", EventSource::Kernel(attr));
        typed("a == 1", &mut spec).unwrap();
        assert_eq!(spec.filter.as_deref(), Some("a == 1"));
        typed("b == 2", &mut spec).unwrap();
        assert_eq!(spec.filter.as_deref(), Some("(a == 1) && (b == 2)"));
        let mut clock = EventSpec::generic(kind::SOFTWARE, 0);
        assert!(typed("a == 1", &mut clock).unwrap_err().to_string().contains("is not a tracepoint"));
        let group = |spec: &EventSpec| EventGroup {
            events: vec![spec.clone()],
            braces: false,
            weak: false,
            leader_sampling: false,
        };
        assert!(exclude_self(&mut [group(&clock)], SelfExclusion::Tracepoints).is_err());
        exclude_self(&mut [group(&clock)], SelfExclusion::AllOrNone).unwrap();
        let mut both = [group(&clock), group(&spec)];
        for unchanged in [SelfExclusion::Never, SelfExclusion::AllOrNone] {
            exclude_self(&mut both, unchanged).unwrap();
            assert_eq!(both[1].events[0].filter, spec.filter);
        }
        exclude_self(&mut both, SelfExclusion::Tracepoints).unwrap();
        assert_eq!(both[0].events[0].filter, None);
        let ours = format!("common_pid != {}", std::process::id());
        assert!(both[1].events[0].filter.as_ref().unwrap().contains(&ours));
    }
}
