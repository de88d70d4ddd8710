//! Compares what perf and pmc print for the same recording.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::Path;
use std::sync::LazyLock;

use serde_json::Value;

use crate::kit::{self, oracle};

/// Percentages by (comm, dso, symbol): total, self.
pub(crate) type Shares = BTreeMap<(String, String, String), (f64, f64)>;

/// perf's table for each event. Unresolved addresses of a module form one row, as in pmc.
pub(crate) fn perf_report(file: &Path, children: bool) -> BTreeMap<String, Shares> {
    let fields = if children { "overhead_children,overhead,comm,dso,sym" } else { "overhead,comm,dso,sym" };
    let with = if children { "--children" } else { "--no-children" };
    let form =
        ["report", "--stdio", "--no-group", "--no-inline", "-g", "none", "-t", "\t", "--percent-limit", "0"];
    let text = oracle::perf_of(file, &[&form[..], &["-F", fields, with]].concat());
    // An event's name, its period, its rows. Stacks that pmc had no time to unwind appear in perf as another
    // event.
    let mut tables: Vec<(String, f64, Shares)> = Vec::new();
    for line in text.lines() {
        if let Some((_, names)) = line.split_once(" of event").filter(|_| line.starts_with("# Samples")) {
            // `of events 'a, b'` is the heading of the leader's table.
            let event = names.split('\'').nth(1).unwrap_or("").split(',').next().unwrap_or("");
            let event = event.trim_end_matches(" (stack copies)").to_owned();
            tables.push((event, 0.0, Shares::new()));
        } else if let (Some(count), Some(table)) =
            (line.strip_prefix("# Event count (approx.): "), tables.last_mut())
        {
            table.1 = count.parse().expect("a count");
        } else if !line.starts_with('#') && !line.is_empty() {
            let words: Vec<&str> = line.split('\t').map(str::trim).collect();
            let percent = |word: &str| word.trim_end_matches('%').parse::<f64>().unwrap_or(0.0);
            let (total, rest) = if children { (percent(words[0]), &words[1..]) } else { (0.0, &words[..]) };
            let symbol = match rest[3].split_once("] ") {
                Some((level, address))
                    if address.trim_start_matches("0x").len() == 16
                        && address.trim_start_matches("0x").bytes().all(|b| b.is_ascii_hexdigit()) =>
                {
                    format!("{level}] [unknown]")
                }
                _ => rest[3].to_owned(),
            };
            let key = (rest[1].to_owned(), rest[2].to_owned(), told(&symbol));
            let row = tables.last_mut().expect("a heading before rows").2.entry(key).or_default();
            *row = (row.0 + total, row.1 + percent(rest[0]));
        }
    }
    let mut events: BTreeMap<String, Shares> = BTreeMap::new();
    for (event, period, rows) in &tables {
        let whole: f64 = tables.iter().filter(|(name, ..)| name == event).map(|(_, period, _)| period).sum();
        let part = if whole > 0.0 { period / whole } else { 1.0 };
        for (key, (total, own)) in rows {
            let row = events.entry(event.clone()).or_default().entry(key.clone()).or_default();
            *row = (row.0 + total * part, row.1 + own * part);
        }
        events.entry(event.clone()).or_default();
    }
    events
}

pub(crate) fn pmc_json(file: &Path, options: &[&str]) -> Value {
    let mut args = vec!["report", "--json", "--no-cache", "-i", file.to_str().expect("a plain path")];
    args.extend(options);
    let ran = kit::run(&args).expect(0);
    serde_json::from_str(&ran.stdout).expect("one JSON document")
}

pub(crate) fn shares(event: &Value) -> Shares {
    let text = |row: &Value, name: &str| row[name].as_str().unwrap_or("").to_owned();
    let rows = event["rows"].as_array().expect("rows");
    let share = |row: &Value, name: &str| row[name]["percent"].as_f64().unwrap_or(0.0);
    let key = |row: &Value| {
        let symbol = format!("[{}] {}", text(row, "level"), text(row, "sym"));
        (text(row, "comm"), text(row, "dso"), told(&symbol))
    };
    let mut all = Shares::new();
    for row in rows {
        let sum = all.entry(key(row)).or_default();
        *sum = (sum.0 + share(row, "total"), sum.1 + share(row, "self"));
    }
    all
}

/// Compares both tables of a recording. Names in foreign code, which the tools may demangle differently, are
/// left to the symbol tests.
#[track_caller]
pub(crate) fn agree(file: &Path, comms: &[&str]) {
    let ours_whole = pmc_json(file, &["--no-inline", "--no-children", "-g", "none"]);
    let of_event = |document: &Value, name: &str| {
        let events = document["events"].as_array().expect("events");
        events
            .iter()
            .find(|event| event["name"] == name)
            .cloned()
            .unwrap_or_else(|| panic!("no event {name}"))
    };
    let mut compared = 0;
    for (name, theirs) in perf_report(file, false) {
        let ours = shares(&of_event(&ours_whole, &name));
        for key in theirs.keys().chain(ours.keys()).collect::<BTreeSet<_>>() {
            if !comms.is_empty() && !comms.contains(&key.0.as_str()) {
                continue;
            }
            let (a, b) = (theirs.get(key).map_or(0.0, |r| r.1), ours.get(key).map_or(0.0, |r| r.1));
            assert!((a - b).abs() <= 0.1, "{}: {name} {key:?}: perf {a}, pmc {b}", file.display());
            compared += 1;
        }
    }
    assert!(compared > 0, "{}: nothing to compare", file.display());
}

/// The same for percentages with children, for perf's top 20. perf truncates `cut` percent of the stacks.
#[track_caller]
pub(crate) fn children_agree(file: &Path, cut: f64) {
    let ours_whole = pmc_json(file, &["--no-inline"]);
    for (name, theirs) in perf_report(file, true) {
        let event = ours_whole["events"].as_array().expect("events").iter().find(|e| e["name"] == *name);
        let ours = shares(event.expect("the event is there"));
        let mut top: Vec<_> = theirs.iter().collect();
        top.sort_by(|a, b| b.1.0.total_cmp(&a.1.0));
        for (key, (a, _)) in top.into_iter().take(20) {
            // perf looks up a return address unchanged, so it finds the next function after a call that
            // never returns.
            if key.1.starts_with("ld-linux") || key.2.ends_with("[unknown]") {
                continue;
            }
            let b = ours.get(key).map_or(0.0, |row| row.0);
            assert!((a - b).abs() <= 0.5 + cut, "{}: {name} {key:?}: perf {a}, pmc {b}", file.display());
        }
    }
}

/// Compares unwound stack copies sample by sample. perf's stack must equal pmc's or be the start of it.
/// Returns the percentage of stacks that perf truncates.
///
/// At a `ret` after `pop %rbp`, gcc's tables still place the caller's frame pointer on the stack. There it
/// would be below the stack pointer, outside any copy. The register still holds it; perf 6.1 gives up one
/// caller later.
#[track_caller]
pub(crate) fn stacks_agree(file: &Path) -> f64 {
    let of = |program| -> Vec<Vec<String>> {
        let text = script(program, file, &["--no-inline", "-F", "comm,tid,time,ip,sym"]);
        text.trim_end().split("\n\n").map(|sample| sample.lines().map(comparable).collect()).collect()
    };
    let (theirs, ours) = (of("perf"), of("pmc"));
    assert_eq!(theirs.len(), ours.len(), "{}", file.display());
    for (a, b) in theirs.iter().zip(&ours) {
        assert!(b.starts_with(a), "{}: perf {a:#?}, pmc {b:#?}", file.display());
    }
    let cut = theirs.iter().zip(&ours).filter(|(a, b)| a.len() < b.len()).count() as f64;
    let cut = 100.0 * cut / ours.len() as f64;
    assert!(cut < 10.0, "{}: perf ends {cut} % of the stacks early", file.display());
    cut
}

/// perf's sums. `perf report` rounds them (`# Samples: 1K`), so the exact sums come from its script.
pub(crate) fn perf_sums(file: &Path) -> BTreeMap<String, (u64, u64)> {
    let mut sums: BTreeMap<String, (u64, u64)> = BTreeMap::new();
    for line in oracle::perf_of(file, &["script", "-G", "-F", "event,period"]).lines() {
        let mut words = line.split_whitespace();
        let (Some(period), Some(event)) = (words.next(), words.next()) else { continue };
        let sum = sums.entry(event.trim_end_matches(':').to_owned()).or_default();
        *sum = (sum.0 + 1, sum.1 + period.parse::<u64>().expect("a period"));
    }
    sums
}

#[track_caller]
pub(crate) fn totals_agree(file: &Path) {
    let document = pmc_json(file, &["--no-inline"]);
    let theirs = perf_sums(file);
    assert!(!theirs.is_empty());
    for event in document["events"].as_array().expect("events") {
        let name = event["name"].as_str().expect("a name");
        let ours = (event["samples"].as_u64().expect("a count"), event["period"].as_u64().expect("a sum"));
        assert_eq!(ours, theirs.get(name).copied().unwrap_or_default(), "{}: {name}", file.display());
    }
    let samples: u64 = theirs.values().map(|(samples, _)| samples).sum();
    assert_eq!(document["trust"]["samples"].as_u64(), Some(samples));
}

pub(crate) fn script(program: &str, file: &Path, options: &[&str]) -> String {
    let all = [&["script"], options].concat();
    if program == "perf" {
        return oracle::perf_of(file, &all);
    }
    let run = kit::pmc().args(all).arg("-i").arg(file).output().expect("pmc starts");
    String::from_utf8(run.stdout).expect("text")
}

/// Placeholder for a name that is not compared.
const UNNAMED: &str = "[unknown]";

/// A row's symbol (`[.] name`) in a form that both tools share: see [`comparable`].
fn told(symbol: &str) -> String {
    match symbol.split_once("] ") {
        Some((level, name)) if is_left_out(name) => format!("{level}] {UNNAMED}"),
        Some((level, name)) => format!("{level}] {}", canonical(&unversioned(name))),
        None => symbol.to_owned(),
    }
}

/// Whether a name is a placeholder (pmc's contain the code's location), or one that perf 6.1 gets wrong: a
/// stub, or code before the first stub, which perf attributes to `_init`.
fn is_left_out(name: &str) -> bool {
    let is_placeholder = name.starts_with('[') || name.contains("+0x");
    name.ends_with("@plt") || name == "_init" || is_placeholder
}

/// A line in a form that both tools share.
///
/// Where a sample hits is random, so names that perf 6.1 is known to get wrong are left out everywhere:
/// * Any name of an address is right if it has several: names with versions (`a@V1`, `a@@V2`), and names
///   that the symbol table of the C library or the loader has for the same address ([`canonical`]).
/// * Stubs (`@plt`): perf takes the n-th relocation for the n-th stub. The C library's stubs have another
///   order, because functions chosen at run time come last. objdump and pmc read the stubs' instructions;
///   `symbol::programs` compares those two.
fn comparable(line: &str) -> String {
    let word = |word: &str| -> String {
        let (name, offset) = word.split_once('+').map_or((word, None), |(name, offset)| (name, Some(offset)));
        if is_left_out(name) {
            return UNNAMED.to_owned();
        }
        let name = canonical(&unversioned(name)).to_owned();
        offset.map_or(name.clone(), |offset| format!("{name}+{offset}"))
    };
    line.split(' ').map(word).collect::<Vec<_>>().join(" ")
}

/// The first of all names that the C library or the loader has for the address of this name.
fn canonical(name: &str) -> &str {
    static ALIASES: LazyLock<HashMap<String, String>> = LazyLock::new(aliases);
    ALIASES.get(name).map_or(name, |first| first)
}

/// Names of each address according to `nm`, from the files and from their separate debug files.
fn aliases() -> HashMap<String, String> {
    let maps = std::fs::read_to_string("/proc/self/maps").expect("we are somewhere");
    let files: BTreeSet<&str> = maps.lines().filter_map(|line| line.split_whitespace().nth(5)).collect();
    let mut aliases = HashMap::new();
    for file in files.into_iter().filter(|file| file.contains("/libc.so") || file.contains("/ld-linux")) {
        let notes = oracle::says("readelf", &["-n", file]);
        let id = notes.lines().find_map(|line| line.trim().strip_prefix("Build ID: ")).unwrap_or("none");
        let debug = format!("/usr/lib/debug/.build-id/{}/{}.debug", &id[..2], &id[2..]);
        let mut names: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
        for arguments in [["-D", file], ["--defined-only", file], ["--defined-only", &debug]] {
            for line in oracle::says("nm", &arguments).lines() {
                let mut words = line.split_whitespace();
                let (Some(address), Some(kind), Some(name)) = (words.next(), words.next(), words.next())
                else {
                    continue;
                };
                if "tTwWi".contains(kind) {
                    names.entry(address.to_owned()).or_default().insert(unversioned(name));
                }
            }
        }
        for names in names.into_values() {
            let first = names.first().expect("a set is made for a name").clone();
            aliases.extend(names.into_iter().map(|name| (name, first.clone())));
        }
    }
    aliases
}

/// The name without its version suffix.
fn unversioned(name: &str) -> String {
    name.split_once('@').map_or(name, |(name, _)| name).to_owned()
}

#[track_caller]
pub(crate) fn scripts_agree(file: &Path, options: &[&str]) {
    assert!(lines_agree(file, options) > 0, "{}: perf script {options:?} prints nothing", file.display());
}

/// Like [`scripts_agree`], but returns the number of lines, which may be 0.
#[track_caller]
pub(crate) fn lines_agree(file: &Path, options: &[&str]) -> usize {
    let (theirs, ours) = (script("perf", file, options), script("pmc", file, options));
    // Foreign names may contain terminal control characters; perf prints them unchanged, pmc does not.
    let is_plain = |line: &str| !line.contains(|c: char| c.is_control() && c != '\t');
    for (number, (a, b)) in theirs.lines().zip(ours.lines()).enumerate() {
        if a != b && is_plain(a) {
            let place = format!("{} {options:?}: line {}: perf {a:?}, pmc {b:?}", file.display(), number + 1);
            assert_eq!(comparable(a), comparable(b), "{place}");
        }
    }
    assert_eq!(theirs.lines().count(), ours.lines().count(), "{} {options:?}", file.display());
    theirs.lines().count()
}
