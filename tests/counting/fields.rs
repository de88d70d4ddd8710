//! A program that reads perf's CSV or JSON can read pmc's: the same fields, in the same order, of the same
//! type.
//!
//! Both tools run the same command lines. A parser written for perf's output (perf-stat(1), CSV FORMAT)
//! accepts both.

use std::sync::LazyLock;

use crate::kit::{self, burn::busy_shell};

use kit::{need_perf_events, need_program, need_root};
use serde_json::Value;

/// A command that stays busy for 200 milliseconds, so that every interval has a count.
static COMMAND: LazyLock<[&str; 3]> = LazyLock::new(|| ["sh", "-c", busy_shell(200)]);

/// Options whose output is compared.
const CSV: &[&str] = &[
    "-x, -e task-clock",
    "-x, -e page-faults,minor-faults,major-faults,context-switches,cpu-migrations",
    "-x; -e page-faults:u,page-faults:k",
    "-x, -e {task-clock,page-faults},alignment-faults",
    "-x, -e duration_time,task-clock",
    "-x, -a -A -e cpu-clock,context-switches",
    "-x, -a --per-core -e cpu-clock",
    "-x, -a --per-socket -e cs",
    "-x, -a --per-die -e cs",
    "-x, -a --per-node -e cs",
    "-x, -I 50 -e page-faults,task-clock",
    "-x, -I 50 -a -A -e cpu-clock",
    "-x, -I 50 --summary -e page-faults",
    "-x, -r 3 -e task-clock,page-faults",
    "-x, -a -e cs,page-faults -G /,/",
    "-x, -a --for-each-cgroup / -e cs,page-faults",
    "-x, --no-scale -C 0 -e cpu-clock",
    "-x, -e syscalls:sys_enter_exit_group",
];

const JSON: &[&str] = &[
    "-j -e task-clock,page-faults",
    "-j -e {task-clock,page-faults}",
    "-j -a -A -e cs,cpu-clock",
    "-j -a --per-core -e cs",
    "-j -a --per-socket -e cs",
    "-j -a --per-die -e cs",
    "-j -a --per-node -e cs",
    "-j -I 50 -e page-faults",
    "-j -r 3 -e task-clock,page-faults",
    "-j -a -e cs -G /",
    "-j -I 50 -a -A -e cpu-clock",
];

/// Returns the lines to compare. The number of intervals varies between runs; their content does not.
fn distinct<T: PartialEq>(lines: Vec<T>, options: &str) -> Vec<T> {
    if !options.contains("-I") {
        return lines;
    }
    let mut distinct = Vec::new();
    for line in lines {
        if !distinct.contains(&line) {
            distinct.push(line);
        }
    }
    distinct
}

/// Returns a tool's output for these options.
#[track_caller]
fn output(tool: &str, options: &str) -> String {
    let all: Vec<&str> =
        ["stat"].into_iter().chain(options.split(' ')).chain(["--"]).chain(*COMMAND).collect();
    let ran = match tool {
        "perf" => kit::Ran::from(kit::oracle::ask(tool, &all)),
        _ => kit::run(&all),
    };
    assert_eq!(ran.status, Some(0), "{tool} {all:?}\n{}", ran.stderr);
    ran.stderr
}

fn ready() -> bool {
    need_program("perf") && need_root() && need_perf_events() && kit::need_tracefs("syscalls")
}

/// One CSV line, as perf-stat(1) describes it: time stamp, place and number of places (if the options ask for
/// them), value, unit, event, cgroup, variance, run time, share of it, metric value, metric unit.
#[derive(Debug, PartialEq)]
struct Line {
    time: Option<Stamp>,
    place: Option<String>,
    places: Option<u32>,
    value: Kind,
    unit: String,
    event: String,
    cgroup: Option<String>,
    variance: Option<Kind>,
    runtime: Kind,
    share: Kind,
    metric: Kind,
    metric_unit: String,
}

/// End of an interval.
#[derive(Debug, PartialEq)]
enum Stamp {
    Seconds,
    Summary,
}

/// Kind of field; numbers differ between runs.
#[derive(Debug, PartialEq)]
enum Kind {
    Whole,
    /// With this many digits after the decimal point.
    Fraction(usize),
    Percent(usize),
    Nothing,
    Word(String),
}

fn kind(field: &str) -> Kind {
    let digits = |text: &str| text.split_once('.').map_or(0, |(_, after)| after.len());
    let number = field.strip_suffix('%').unwrap_or(field);
    match (number.parse::<f64>(), field.ends_with('%')) {
        (Ok(_), true) => Kind::Percent(digits(number)),
        (Ok(_), false) if number.contains('.') => Kind::Fraction(digits(number)),
        (Ok(_), false) => Kind::Whole,
        (Err(_), _) if field.is_empty() => Kind::Nothing,
        (Err(_), _) => Kind::Word(field.to_owned()),
    }
}

/// Normalizes a metric unit: `K/sec` and `M/sec` differ only by magnitude.
fn metric_unit(unit: &str) -> String {
    if unit.ends_with("/sec") { "/sec".to_owned() } else { unit.trim_end_matches("(null)").to_owned() }
}

#[track_caller]
fn parse(line: &str, options: &str) -> Line {
    let separator = options.chars().nth(2).expect("-x and a character");
    let mut fields = line.split(separator).map(str::trim);
    let mut next = || fields.next().unwrap_or_else(|| panic!("a field is missing in {line:?}"));
    let has = |option: &str| options.split(' ').any(|o| o.starts_with(option));
    let parsed = Line {
        time: has("-I").then(|| match kind(next()) {
            Kind::Fraction(9) => Stamp::Seconds,
            Kind::Word(word) if word == "summary" => Stamp::Summary,
            other => panic!("{other:?} is no time stamp: {line:?}"),
        }),
        place: (has("-A") || has("--per-")).then(|| next().to_owned()),
        places: has("--per-").then(|| next().parse().expect("a number of places")),
        value: kind(next()),
        unit: next().to_owned(),
        event: next().to_owned(),
        cgroup: (has("-G") || has("--for-each-cgroup")).then(|| next().to_owned()),
        variance: has("-r").then(|| kind(next())),
        runtime: kind(next()),
        share: kind(next()),
        metric: kind(next()),
        metric_unit: metric_unit(next()),
    };
    assert!(fields.next().is_none(), "a field too many in {line:?}");
    parsed
}

/// Checks that both tools print lines with the same fields. In so short a run the kernel may not count a
/// cgroup that contains only kernel threads, and an interval may pass without CPU time for the command. Such
/// options are therefore tried again.
#[track_caller]
fn agree<T: PartialEq + std::fmt::Debug>(options: &str, lines: impl Fn(&str) -> Vec<T>) {
    let tries =
        if options.contains("-G") || options.contains("cgroup") || options.contains("-I") { 5 } else { 1 };
    for left in (0..tries).rev() {
        let (perf, pmc) = (output("perf", options), output("pmc", options));
        let (want, got) = (lines(&perf), lines(&pmc));
        assert!(!want.is_empty(), "perf printed nothing for {options}: {perf}");
        if want == got {
            return;
        }
        assert!(left > 0, "{options}\n--- perf\n{perf}--- pmc\n{pmc}\n{want:?}\n{got:?}");
    }
}

#[test]
fn csv_fields_match_perf() {
    if !ready() {
        return;
    }
    for options in CSV {
        agree(options, |text| {
            let rows = text.lines().filter(|line| !line.is_empty() && !line.contains("overhead percentage"));
            distinct(rows.map(|line| parse(line, options)).collect(), options)
        });
    }
}

/// Returns the keys and their values in order: `serde_json` would sort them.
#[track_caller]
fn members(line: &str) -> Vec<(String, String)> {
    let object: serde_json::Map<String, Value> = serde_json::from_str(line).expect("one JSON object a line");
    let mut members: Vec<(usize, String, String)> = object
        .iter()
        .map(|(key, value)| {
            let at = line.find(&format!("\"{key}\" :")).expect("the key, written as perf writes it");
            let value = match value {
                Value::String(text) if key == "counter-value" => format!("{:?} in quotes", kind(text)),
                Value::String(text) if key == "metric-unit" => metric_unit(text),
                Value::String(text) => text.clone(),
                Value::Number(number) if key == "aggregate-number" => number.to_string(),
                Value::Number(_) => "a number".to_owned(),
                other => panic!("{key} holds {other}"),
            };
            (at, key.clone(), value)
        })
        .collect();
    members.sort();
    members.into_iter().map(|(_, key, value)| (key, value)).collect()
}

#[test]
fn json_fields_match_perf() {
    if !ready() {
        return;
    }
    for options in JSON {
        agree(options, |text| {
            distinct(text.lines().filter(|line| line.starts_with('{')).map(members).collect(), options)
        });
    }
}

#[test]
fn csv_parser_rejects_other_fields() {
    let good = "1.00,msec,task-clock,1000000,100.00,0.500,CPUs utilized";
    assert_eq!(parse(good, "-x, -e task-clock"), parse(good, "-x, -e task-clock"));
    assert_ne!(parse(good, "-x, -e cs"), parse(&good.replace("msec", ""), "-x, -e cs"));
    assert_ne!(parse(good, "-x, -e cs"), parse(&good.replace("1.00,", "1,"), "-x, -e cs"));
    assert!(std::panic::catch_unwind(|| parse(&format!("{good},x"), "-x, -e cs")).is_err());
    assert!(std::panic::catch_unwind(|| parse(good, "-x, -I 50 -e cs")).is_err());
}
