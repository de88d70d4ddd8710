//! What was typed, turned into what it means: a plan without clap's types.

use std::path::PathBuf;

use rustc_hash::FxHashSet;

use crate::cli::report::Report;
use crate::error::{Error, Result};
use crate::host::cpulist::CpuList;
use crate::profile::sampled::table::Only;
use crate::profile::sampled::{Filter, Order, Query, SortKey};
use crate::session::{CommId, Session, Wanted};
use crate::symbol::{Depth, Options};
use crate::text;
use crate::view::report::{Column, Form, Layout};

/// What `pmc report` does.
#[derive(Debug)]
pub(super) struct Plan {
    pub(super) input: PathBuf,
    pub(super) keys: Vec<SortKey>,
    pub(super) only: Only,
    pub(super) tree: Option<Order>,
    pub(super) collapse: bool,
    pub(super) children: Option<bool>,
    pub(super) max_stack: usize,
    pub(super) depth: Option<Depth>,
    pub(super) symbols: Options,
    pub(super) header: Header,
    pub(super) relative: bool,
    /// Nothing was typed that asks for text: a terminal shows the screen.
    pub(super) browses: bool,
    pub(super) layout: Layout,
    slice: u64,
}

/// Whether the header is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Header {
    No,
    First,
    Only,
}

/// Rows of the text, unless more are asked for.
const ROWS: usize = 20;
/// The smallest branch of the tree, in percent.
const BRANCH: f64 = 0.5;
/// The same in a document.
const BRANCH_IN_JSON: f64 = 0.05;

impl Plan {
    pub(super) fn new(typed: &Report) -> Result<Self> {
        let (keys, columns) = keys_and_columns(typed)?;
        let (tree, limit) = call_graph(typed)?;
        let parseable = typed.field_separator.is_some() || typed.csv || typed.json;
        let form = match &typed.field_separator {
            Some(separator) => Form::Separated(separator.clone()),
            None if typed.csv => Form::Csv,
            None if typed.json => Form::Json,
            None => Form::Text,
        };
        let layout = Layout {
            form,
            columns,
            show_samples: typed.show_nr_samples,
            show_period: typed.show_total_period,
            rows: match typed.max_rows {
                Some(0) => usize::MAX,
                Some(rows) => rows,
                None if parseable => usize::MAX,
                None => ROWS,
            },
            row_limit: typed.percent_limit.unwrap_or(0.0),
            branch_limit: typed.percent_limit.or(limit).unwrap_or(if typed.json {
                BRANCH_IN_JSON
            } else {
                BRANCH
            }),
            group: typed.group,
            widths: typed.column_widths.clone(),
            callee: tree == Some(Order::Callee),
        };
        let environment = Options::from_environment();
        Ok(Self {
            input: typed.input.clone().or(typed.file.clone()).unwrap_or_else(|| "perf.data".into()),
            keys,
            only: Only { dsos: listed(&typed.dsos), symbols: listed(&typed.symbols) },
            tree,
            collapse: typed.collapse_recursion,
            children: if typed.no_children { Some(false) } else { typed.children.then_some(true) },
            max_stack: typed.max_stack,
            depth: typed.no_inline.then_some(Depth::Names),
            symbols: Options {
                symfs: typed.symfs.clone(),
                kallsyms: typed.kallsyms.clone(),
                vmlinux: typed.vmlinux.clone(),
                debuginfod: typed.debuginfod,
                cache: environment.cache.clone().filter(|_| !typed.no_cache),
                ..environment
            },
            header: match (typed.header_only, typed.header) {
                (true, _) => Header::Only,
                (_, true) => Header::First,
                _ => Header::No,
            },
            relative: typed.percentage == "relative",
            browses: !(typed.stdio || parseable || typed.header || typed.header_only || typed.group)
                && typed.max_rows.is_none()
                && typed.fields.is_empty()
                && typed.column_widths.is_empty(),
            layout,
            slice: (typed.time_quantum.max(0.000_001) * 1e6) as u64,
        })
    }

    /// What is asked of the samples. Without call chains there are neither totals nor a tree.
    pub(super) fn query(&self, has_chains: bool) -> Query {
        Query {
            event: None,
            keys: self.keys.clone(),
            totals: has_chains && self.children.unwrap_or(true),
            tree: self.tree.filter(|_| has_chains),
            collapse: self.collapse,
            limit: self.layout.branch_limit / 100.0,
            root: None,
            relative: self.relative,
            filter: Filter { only: self.only.clone(), ..Filter::default() },
        }
    }

    /// What pass 2 must find out.
    pub(super) fn wanted(&self, typed: &Report, session: &Session) -> Result<Wanted> {
        let mut extras = Vec::new();
        for extra in self.keys.iter().filter_map(|key| key.extra(self.slice)) {
            if !extras.contains(&extra) {
                extras.push(extra);
            }
        }
        let set = |list: &[i32]| (!list.is_empty()).then(|| list.iter().copied().collect::<FxHashSet<i32>>());
        Ok(Wanted {
            extras,
            ignore_comms: !self.keys.contains(&SortKey::Comm),
            ignore_stacks: self.tree.is_none() && self.children == Some(false),
            times: typed.time.as_deref().map(|text| times(text, session)).transpose()?.into_iter().collect(),
            cpus: cpus(typed.cpu.as_deref())?,
            pids: set(&typed.pid),
            tids: set(&typed.tid),
            comms: comms(&typed.comms, session),
        })
    }
}

/// A list of CPUs as a set.
pub(in crate::command) fn cpus(list: Option<&str>) -> Result<Option<FxHashSet<u32>>> {
    let Some(list) = list else { return Ok(None) };
    let list: CpuList = list
        .parse()
        .map_err(|_| Error::usage(format!("{list:?} is no list of CPUs")).try_this("a list such as 0-3,8"))?;
    Ok(Some(list.iter().collect()))
}

/// The numbers of threads' names.
pub(in crate::command) fn comms(names: &[String], session: &Session) -> Option<FxHashSet<CommId>> {
    if names.is_empty() {
        return None;
    }
    let all = session.history.comms().enumerate();
    let named = all.filter(|(_, comm)| names.iter().any(|wanted| wanted.as_bytes() == *comm));
    Some(named.map(|(number, _)| CommId(number as u32)).collect())
}

/// Names that only are wanted; all, where none is given.
pub(in crate::command) fn listed(names: &[String]) -> Option<Vec<String>> {
    (!names.is_empty()).then(|| names.to_vec())
}

/// The sort key of this name.
pub(in crate::command) fn key(name: &str) -> Result<SortKey> {
    SortKey::of(name.trim()).ok_or_else(|| {
        let error = Error::usage(format!("{name:?} is no sort key"));
        let near = text::nearest(name, SortKey::names(), 3);
        let all = SortKey::names().collect::<Vec<_>>().join(", ");
        match near.first() {
            Some(_) => error.try_this(format!("did you mean {}?", near.join(" or "))),
            None => error.try_this(format!("one of {all}")),
        }
    })
}

fn keys_and_columns(typed: &Report) -> Result<(Vec<SortKey>, Option<Vec<Column>>)> {
    let mut keys: Vec<SortKey> = typed.sort.iter().map(|name| key(name)).collect::<Result<_>>()?;
    let mut columns = None;
    if !typed.fields.is_empty() {
        let mut list = Vec::new();
        for name in &typed.fields {
            list.push(match name.trim() {
                "overhead" => Column::Own,
                "overhead_children" => Column::Total,
                "sample" => Column::Samples,
                "period" => Column::Period,
                _ => {
                    let key = key(name)?;
                    if !keys.contains(&key) {
                        keys.push(key);
                    }
                    Column::Key(key)
                }
            });
        }
        columns = Some(list);
    }
    if keys.is_empty() {
        keys = vec![SortKey::Comm, SortKey::Dso, SortKey::Symbol];
    }
    let mut once = Vec::new();
    keys.retain(|key| {
        !once.contains(key) && {
            once.push(*key);
            true
        }
    });
    Ok((keys, columns))
}

/// `-g` and `-G`: the order of the tree, if there is one, and its smallest branch in percent.
fn call_graph(typed: &Report) -> Result<(Option<Order>, Option<f64>)> {
    let mut order = Some(Order::Caller);
    let mut limit = None;
    for word in typed.call_graph.iter().flatten().map(|word| word.trim()) {
        match word {
            "caller" | "graph" | "" => order = Some(Order::Caller),
            "callee" => order = Some(Order::Callee),
            "none" => order = None,
            _ => match word.parse::<f64>() {
                Ok(percent) if limit.is_none() => limit = Some(percent),
                Ok(_) => {}
                Err(_) => {
                    return Err(Error::usage(format!("-g does not know {word:?}"))
                        .try_this("caller, callee or none, and a percentage such as 0.5"));
                }
            },
        }
    }
    if typed.inverted {
        order = Some(Order::Caller);
    }
    Ok((order, limit))
}

/// `--time`: two times in seconds, either may be missing; or two percentages of the recording.
pub(in crate::command) fn times(text: &str, session: &Session) -> Result<(u64, u64)> {
    let bad = || {
        Error::usage(format!("{text:?} is no span of time"))
            .try_this("FROM,TO in seconds, either may be missing; or 10%-20%")
    };
    if let Some((from, to)) = text.split_once('-').filter(|_| text.contains('%')) {
        let part = |word: &str| word.trim().trim_end_matches('%').parse::<f64>().map_err(|_| bad());
        let (from, to) = (part(from)?, part(to)?);
        let (first, last) = match &session.reader.features().sample_time {
            Some(span) => (span.first, span.last),
            None => {
                return Err(Error::new(
                    "the recording does not say when its first and last samples were taken",
                )
                .try_this("times in seconds"));
            }
        };
        let at =
            |percent: f64| first.saturating_add((last.saturating_sub(first) as f64 * percent / 100.0) as u64);
        return Ok((at(from), at(to)));
    }
    let (from, to) = text.split_once(',').ok_or_else(bad)?;
    let time = |word: &str, missing: u64| match word.trim() {
        "" => Ok(missing),
        word => nanoseconds(word).ok_or_else(bad),
    };
    Ok((time(from, 0)?, time(to, u64::MAX)?))
}

/// Seconds with a fraction, exact to the nanosecond (a float would not be).
fn nanoseconds(text: &str) -> Option<u64> {
    let (whole, part) = text.split_once('.').unwrap_or((text, ""));
    if part.len() > 9 || !part.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let part: u64 = format!("{part:0<9}").parse().ok()?;
    whole.parse::<u64>().ok()?.checked_mul(1_000_000_000)?.checked_add(part)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seconds_are_exact() {
        assert_eq!(nanoseconds("4547.409503001"), Some(4_547_409_503_001));
        assert_eq!(nanoseconds("7"), Some(7_000_000_000));
        assert_eq!(nanoseconds("7.x"), None);
    }
}
