//! What was typed, turned into what it means: a plan without clap's types.

use std::path::PathBuf;

use rustc_hash::FxHashSet;

use crate::abi::{branch_sample_type, sample_type};
use crate::cli::report::Report;
use crate::cli::sample_filter::SampleFilter;
use crate::command::plan as shared;
use crate::error::{Error, Result};
use crate::host::cpulist::CpuList;
use crate::perfdata::Event;
use crate::profile::sampled::sort::{self, REFUSED};
use crate::profile::sampled::table::Only;
use crate::profile::sampled::{Filter, Order, Query, SortKey};
use crate::session::samples::SampleAttribute;
use crate::session::{CommId, SampleQuery, Session};
use crate::symbol::{Depth, Options};
use crate::text;
use crate::view::report::{Column, Form, Layout, Shape, Unit};

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
    /// Each branch counts, or is asked for where there are any.
    pub(super) branches: Branches,
    /// Weights count instead of periods.
    pub(super) mem_mode: bool,
    pub(super) parent: Option<Pattern>,
    pub(super) exclude_other: bool,
    pub(super) ignore_callees: Option<Pattern>,
    slice: u64,
    /// Neither -s nor -F chose the sort keys.
    usual_keys: bool,
}

/// Whether branches count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Branches {
    Yes,
    No,
    IfRecorded,
}

/// A regular expression that was typed.
#[derive(Debug, Clone)]
pub(super) struct Pattern(regex_lite::Regex);

impl Pattern {
    fn new(text: &str) -> Result<Self> {
        let bad = |error: regex_lite::Error| {
            Error::usage(format!("{text:?} is no regular expression")).why(error.to_string())
        };
        regex_lite::Regex::new(text).map(Self).map_err(bad)
    }

    pub(super) fn finds(&self, name: &str) -> bool {
        self.0.is_match(name)
    }
}

/// What perf calls a parent unless it is told: where the kernel is entered.
const PARENT: &str = "^sys_|^do_page_fault";

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
        super::theirs::of_report(&typed.theirs)?;
        let (mut keys, columns) = keys_and_columns(typed)?;
        if typed.parent.is_some() && !keys.contains(&SortKey::Parent) {
            keys.push(SortKey::Parent);
        }
        let Graph { order: tree, limit, shape, unit, lines } = call_graph(typed)?;
        let of_branch = keys.iter().any(|key| key.is_of_branch());
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
            shape,
            unit,
            branches: lines,
            hierarchy: typed.hierarchy,
            full_paths: typed.full_source_path,
            full_names: typed.full_names,
            nanoseconds: typed.ns,
            sort_member: typed.group_sort_idx.unwrap_or(0),
        };
        Ok(Self {
            input: typed.input.clone().or(typed.file.clone()).unwrap_or_else(|| "perf.data".into()),
            keys,
            only: Only {
                dsos: listed(&typed.dsos),
                symbols: listed(&typed.symbols),
                part: typed.symbol_filter.clone(),
                named: typed.hide_unresolved,
            },
            tree,
            collapse: typed.collapse_recursion,
            children: if typed.no_children { Some(false) } else { typed.children.then_some(true) },
            max_stack: typed.max_stack,
            depth: typed.no_inline.then_some(Depth::Names),
            // Whether the machine is this one is known when the file is open.
            symbols: shared::symbol_options(&typed.symbol_files, false),
            header: match (typed.header_only, typed.header) {
                (true, _) => Header::Only,
                (_, true) => Header::First,
                _ => Header::No,
            },
            relative: typed.percentage == "relative",
            browses: !(typed.stdio || parseable || typed.header || typed.header_only || typed.group)
                && !(typed.stats || typed.tasks || typed.mmaps || typed.threads || typed.hierarchy)
                && typed.max_rows.is_none()
                && typed.fields.is_empty()
                && typed.column_widths.is_empty(),
            layout,
            branches: match (typed.branch_stack || of_branch, typed.no_branch_stack || typed.mem_mode) {
                (true, _) => Branches::Yes,
                (_, true) => Branches::No,
                _ => Branches::IfRecorded,
            },
            mem_mode: typed.mem_mode,
            parent: match (&typed.parent, typed.exclude_other) {
                (Some(text), _) => Some(Pattern::new(text)?),
                (None, true) => Some(Pattern::new(PARENT)?),
                _ => None,
            },
            exclude_other: typed.exclude_other,
            ignore_callees: typed.ignore_callees.as_deref().map(Pattern::new).transpose()?,
            slice: quantum(&typed.time_quantum)?,
            usual_keys: typed.sort.is_empty() && typed.fields.is_empty(),
        })
    }

    /// Decides what hangs on what was recorded: whether branches count, and the usual sort keys.
    ///
    /// # Errors
    /// When branches were asked for and none were recorded.
    pub(super) fn settle(&mut self, events: &[Event]) -> Result<()> {
        let has_branches =
            events.iter().any(|event| event.attr.sample_type() & sample_type::BRANCH_STACK != 0);
        let are_chains =
            |event: &Event| event.attr.branch_sample_type() & branch_sample_type::CALL_STACK != 0;
        match self.branches {
            Branches::Yes if !has_branches => {
                return Err(Error::new("the recording has no branches")
                    .try_this("pmc record -b, which needs a CPU that keeps them"));
            }
            Branches::IfRecorded => {
                let is_usual = has_branches && !events.iter().any(are_chains);
                self.branches = if is_usual { Branches::Yes } else { Branches::No };
            }
            _ => {}
        }
        let usual: &[SortKey] = match (self.branches, self.mem_mode) {
            (Branches::Yes, _) => {
                self.tree = None;
                &[SortKey::Comm, SortKey::DsoFrom, SortKey::SymbolFrom, SortKey::SymbolTo, SortKey::Cycles]
            }
            (_, true) => &[
                SortKey::LocalWeight,
                SortKey::Mem,
                SortKey::Symbol,
                SortKey::Dso,
                SortKey::SymbolDaddr,
                SortKey::DsoDaddr,
                SortKey::Snoop,
                SortKey::Tlb,
                SortKey::Locked,
                SortKey::Blocked,
            ],
            _ => return Ok(()),
        };
        if self.usual_keys {
            let parent = self.keys.contains(&SortKey::Parent).then_some(SortKey::Parent);
            self.keys = usual.iter().copied().chain(parent).collect();
        }
        Ok(())
    }

    /// Whether names have a say in the stacks.
    pub(super) fn changes_stacks(&self) -> bool {
        self.parent.is_some() || self.ignore_callees.is_some()
    }

    /// Whether the samples' call chains count: those of branches do not.
    pub(super) fn takes_chains(&self) -> bool {
        self.branches != Branches::Yes
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
    pub(super) fn wanted(&self, typed: &Report, session: &Session) -> Result<SampleQuery> {
        let mut attributes = sort::attributes(&self.keys, self.slice);
        if self.parent.is_some() && !attributes.contains(&SampleAttribute::Parent) {
            attributes.push(SampleAttribute::Parent);
        }
        let filtered = filtered(&typed.filter, session)?;
        Ok(SampleQuery {
            attributes,
            branches: self.branches == Branches::Yes,
            by_weight: self.mem_mode,
            ignore_comms: !self.keys.contains(&SortKey::Comm),
            ignore_stacks: self.tree.is_none()
                && self.children == Some(false)
                && self.parent.is_none()
                && self.ignore_callees.is_none(),
            cpus: match typed.socket_filter {
                Some(socket) => Some(of_socket(socket, filtered.cpus, session)?),
                None => filtered.cpus,
            },
            ..filtered
        })
    }
}

/// The filters that were typed; all else is as usual.
pub(in crate::command) fn filtered(typed: &SampleFilter, session: &Session) -> Result<SampleQuery> {
    let set = |list: &[i32]| (!list.is_empty()).then(|| list.iter().copied().collect::<FxHashSet<i32>>());
    Ok(SampleQuery {
        times: typed.time.as_deref().map(|text| times(text, session)).transpose()?.into_iter().collect(),
        cpus: cpus(typed.cpu.as_deref())?,
        pids: set(&typed.pid),
        tids: set(&typed.tid),
        comms: comms(&typed.comms, session),
        ..SampleQuery::default()
    })
}

/// A list of CPUs as a set.
fn cpus(list: Option<&str>) -> Result<Option<FxHashSet<u32>>> {
    let Some(list) = list else { return Ok(None) };
    let list: CpuList = list
        .parse()
        .map_err(|_| Error::usage(format!("{list:?} is no list of CPUs")).try_this("a list such as 0-3,8"))?;
    Ok(Some(list.iter().collect()))
}

/// The numbers of threads' names.
fn comms(names: &[String], session: &Session) -> Option<FxHashSet<CommId>> {
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

/// The CPUs of a socket, of those that were asked for.
fn of_socket(socket: u32, cpus: Option<FxHashSet<u32>>, session: &Session) -> Result<FxHashSet<u32>> {
    let Some(topology) = &session.reader.features().cpu_topology else {
        return Err(Error::new("the recording does not say which CPUs a socket has").try_this("-C with CPUs"));
    };
    let all = topology.cpus.iter().enumerate().filter(|(_, (_, of))| *of == socket);
    Ok(all
        .map(|(cpu, _)| cpu as u32)
        .filter(|cpu| cpus.as_ref().is_none_or(|list| list.contains(cpu)))
        .collect())
}

/// A time with a unit; milliseconds without.
fn quantum(text: &str) -> Result<u64> {
    let at = text.find(|c: char| c.is_ascii_alphabetic()).unwrap_or(text.len());
    let unit = match text[at..].trim() {
        "s" => 1e9,
        "" | "ms" => 1e6,
        "us" => 1e3,
        "ns" => 1.0,
        _ => f64::NAN,
    };
    let ns = text[..at].trim().parse::<f64>().unwrap_or(f64::NAN) * unit;
    if ns >= 1.0 && ns.is_finite() {
        return Ok(ns as u64);
    }
    Err(Error::usage(format!("{text:?} is no length of time")).try_this("100ms, 1s, 50us"))
}

/// The sort key of a name.
pub(in crate::command) fn sort_key(name: &str) -> Result<SortKey> {
    let name = name.trim();
    if let Some(key) = SortKey::of(name) {
        return Ok(key);
    }
    if let Some((_, why)) = REFUSED.iter().find(|(known, _)| *known == name) {
        return Err(Error::usage(format!("pmc has no sort key {name:?}")).why(*why));
    }
    let error = Error::usage(format!("{name:?} is no sort key"));
    let near = text::nearest(name, SortKey::names(), 3);
    Err(match near.first() {
        Some(_) => error.try_this(format!("did you mean {}?", near.join(" or "))),
        None => error.try_this(format!("one of {}", SortKey::names().collect::<Vec<_>>().join(", "))),
    })
}

const USUAL: [SortKey; 3] = [SortKey::Comm, SortKey::Dso, SortKey::Symbol];

fn keys_and_columns(typed: &Report) -> Result<(Vec<SortKey>, Option<Vec<Column>>)> {
    let adds = typed.sort.iter().any(|name| name.trim().starts_with('+'));
    let names = typed.sort.iter().map(|name| name.trim().trim_start_matches('+'));
    // perf sorts by cost whatever stands there.
    let names = names.filter(|name| !matches!(*name, "overhead" | "overhead_children" | "sample" | "period"));
    let typed_keys: Vec<SortKey> = names.map(sort_key).collect::<Result<_>>()?;
    let mut keys: Vec<SortKey> = if adds { USUAL.to_vec() } else { Vec::new() };
    keys.extend(typed_keys);
    let mut columns = None;
    if !typed.fields.is_empty() {
        let mut list = Vec::new();
        for name in &typed.fields {
            list.push(match name.trim().trim_start_matches('+') {
                "overhead" => Column::Own,
                "overhead_children" => Column::Total,
                "sample" => Column::Samples,
                "period" => Column::Period,
                _ => {
                    let key = sort_key(name.trim().trim_start_matches('+'))?;
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
        keys = USUAL.to_vec();
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

/// `-g` and `-G`.
struct Graph {
    order: Option<Order>,
    /// The smallest branch, in percent.
    limit: Option<f64>,
    shape: Shape,
    unit: Unit,
    /// The most branches below each other.
    lines: Option<usize>,
}

fn call_graph(typed: &Report) -> Result<Graph> {
    let mut graph = Graph {
        order: Some(Order::Caller),
        limit: None,
        shape: Shape::Tree,
        unit: Unit::Percent,
        lines: None,
    };
    for word in typed.call_graph.iter().flatten().map(|word| word.trim()) {
        match word {
            "caller" => graph.order = Some(Order::Caller),
            "callee" => graph.order = Some(Order::Callee),
            "none" => graph.order = None,
            "graph" => graph.shape = Shape::Tree,
            "fractal" => graph.shape = Shape::Fractal,
            "flat" => graph.shape = Shape::Flat,
            "folded" => graph.shape = Shape::Folded,
            "percent" => graph.unit = Unit::Percent,
            "period" => graph.unit = Unit::Period,
            "count" => graph.unit = Unit::Count,
            "" | "function" => {}
            "address" => {
                return Err(Error::usage("pmc draws functions, not addresses, in the call tree")
                    .try_this("-s sym,srcline tells lines of a function apart"));
            }
            "branch" => {
                return Err(Error::usage("pmc does not join branches to call chains").try_this("-b"));
            }
            _ => match (word.parse::<f64>(), graph.limit) {
                (Ok(percent), None) => graph.limit = Some(percent),
                (Ok(lines), Some(_)) => {
                    graph.lines = Some(lines.max(0.0) as usize).filter(|lines| *lines > 0)
                }
                (Err(_), _) => {
                    return Err(Error::usage(format!("-g does not know {word:?}")).try_this(
                        "caller, callee or none; graph, fractal, flat or folded; percent, period or count; \
                         and a percentage such as 0.5",
                    ));
                }
            },
        }
    }
    if typed.inverted {
        graph.order = Some(Order::Caller);
    }
    Ok(graph)
}

/// `--time`: two times in seconds, either may be missing; or two percentages of the recording.
fn times(text: &str, session: &Session) -> Result<(u64, u64)> {
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
