//! Checks that pmc requests the same from the kernel as perf: the `perf_event_attr` of both, seen by strace,
//! row by row.
//!
//! ```text
//! parity/*.rows ──> strace perf ROW ──> requests put to use, requests refused ─┐
//!               └─> strace pmc ROW  ──> requests put to use, requests refused ─┴─> each field that differs
//! ```
//! Every call is read from strace's output, so a row is compared even if this machine's kernel refuses the
//! event.
#![allow(clippy::unwrap_used, reason = "a test may fail")]

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::Command;
use std::sync::LazyLock;

use regex_lite::Regex;

use crate::kit::{self, oracle};

/// Fields that decide what is measured. Fields that only affect layout are left out.
const FIELDS: &[&str] = &[
    "type",
    "config",
    "config1",
    "config2",
    "bp_type",
    "bp_addr",
    "bp_len",
    "sample_period",
    "sample_freq",
    "inherit",
    "pinned",
    "exclusive",
    "exclude_user",
    "exclude_kernel",
    "exclude_hv",
    "exclude_idle",
    "exclude_guest",
    "exclude_host",
    "enable_on_exec",
    "precise_ip",
    "freq",
    "context_switch",
    "namespaces",
    "cgroup",
    "use_clockid",
    "clockid",
    "branch_sample_type",
    "sample_regs_user",
    "sample_regs_intr",
    "sample_stack_user",
    "sample_max_stack",
    "write_backward",
    "exclude_callchain_kernel",
    "exclude_callchain_user",
    "mmap_data",
    "inherit_stat",
    "watermark",
    "wakeup_events",
    "wakeup_watermark",
];

/// Sample fields that cost something or carry information. The rest is each tool's own layout.
const SAMPLE_BITS: &[&str] = &[
    "CALLCHAIN",
    "ADDR",
    "PHYS_ADDR",
    "DATA_PAGE_SIZE",
    "CODE_PAGE_SIZE",
    "WEIGHT",
    "WEIGHT_STRUCT",
    "DATA_SRC",
    "BRANCH_STACK",
    "REGS_USER",
    "REGS_INTR",
    "STACK_USER",
    "RAW",
    "READ",
    "CGROUP",
    "TRANSACTION",
];

/// A request: its fields, and the processes and CPUs on which it was opened.
type Request = BTreeMap<&'static str, String>;

/// The distinct requests of a run, in the order of first use.
#[derive(Debug, Default)]
struct Requests {
    /// Events that were used.
    used: Vec<Request>,
    /// Events that the kernel refused.
    refused: Vec<Request>,
}

impl Requests {
    /// Returns the first refused request that asks for samples. perf also sends requests without samples, to
    /// test the kernel's features.
    fn first_refused_sampling(&self) -> Option<&Request> {
        self.refused.iter().find(|request| request["sample_freq"] != "0" || request["sample_period"] != "0")
    }

    /// Reads the calls of one process.
    fn collect(&mut self, trace: &str) {
        static OPEN: LazyLock<Regex> = LazyLock::new(|| {
            let call =
                r"perf_event_open\(\{(.*?)\}(?:, |\s*=>.*?, )(-?\d+), (-?\d+), (-?\d+), [^)]*\)\s+= (-?\d+)";
            Regex::new(call).unwrap()
        });
        static USE: LazyLock<Regex> = LazyLock::new(|| {
            Regex::new(r"\b(?:(close|ioctl|readv|read)\((\d+)|mmap\([^,]*, [^,]*, [^,]*, [^,]*, (\d+))")
                .unwrap()
        });
        let mut open: BTreeMap<i64, Request> = BTreeMap::new();
        let add = |list: &mut Vec<Request>, request: &Request| {
            if !list.contains(request) {
                list.push(request.clone());
            }
        };
        for line in trace.lines() {
            if let Some(call) = OPEN.captures(line) {
                let number = |at: usize| call[at].parse::<i64>().unwrap();
                let Some(request) = request(&call[1], number(2), number(3), number(4)) else { continue };
                match number(5) {
                    ..0 => add(&mut self.refused, &request),
                    descriptor => drop(open.insert(descriptor, request)),
                }
            } else if let Some(call) = USE.captures(line) {
                let descriptor = call.get(2).or(call.get(3)).unwrap().as_str().parse().unwrap();
                if call.get(1).is_some_and(|name| name.as_str() == "close") {
                    // Opened and closed without use: a test.
                    open.remove(&descriptor);
                } else if let Some(request) = open.get(&descriptor) {
                    add(&mut self.used, request);
                }
            }
        }
    }
}

/// Splits strace's text of a structure at its commas.
fn members(text: &str) -> impl Iterator<Item = &str> {
    let mut depth = 0;
    text.split(move |c| {
        depth += i32::from("{[(".contains(c)) - i32::from("}])".contains(c));
        c == ',' && depth == 0
    })
}

/// Sample fields of the event by which pmc reads the kernel's default clock for samples. perf does not read it.
const CLOCK_FIELDS: &str = "PERF_SAMPLE_TIME|PERF_SAMPLE_ADDR";

/// Parses a request; `None` for side-band events (a dummy counter), and for the event that reads the clock.
fn request(attr: &str, pid: i64, cpu: i64, group: i64) -> Option<Request> {
    static COMMENT: LazyLock<Regex> = LazyLock::new(|| Regex::new(r"/\*.*?\*/").unwrap());
    let attr = COMMENT.replace_all(attr, "");
    let said: BTreeMap<&str, &str> = members(&attr)
        .filter_map(|member| member.split_once('='))
        .map(|(name, value)| (name.trim(), value.trim()))
        .collect();
    if said.get("config").is_some_and(|config| config.contains("SW_DUMMY")) {
        return None;
    }
    if said.get("sample_type").is_some_and(|fields| *fields == CLOCK_FIELDS) {
        return None;
    }
    let mut request: Request =
        FIELDS.iter().map(|field| (*field, said.get(field).unwrap_or(&"0").to_string())).collect();
    let bits: BTreeSet<&str> = said.get("sample_type").unwrap_or(&"0").split('|').collect();
    let bits = SAMPLE_BITS.iter().filter(|bit| bits.contains(&*format!("PERF_SAMPLE_{bit}")));
    request.insert("sample_type", bits.copied().collect::<Vec<_>>().join("|"));
    request.insert("pid", if pid > 0 { "a task".to_owned() } else { pid.to_string() });
    request.insert("cpu", cpu.to_string());
    request.insert("in a group", (group != -1).to_string());
    Some(request)
}

/// Returns a tool's requests to the kernel for this row.
#[track_caller]
fn requests(tool: &str, row: &str) -> Requests {
    let mut folder = tempfile::tempdir().unwrap();
    let strace = |folder: &Path| {
        let mut strace = Command::new("timeout");
        // One file per process, so that no process's call splits another's. A recorder maps its rings; a
        // counter is read.
        let reads = if row.starts_with("stat ") { "read,readv,mmap" } else { "mmap" };
        let calls = format!("trace=perf_event_open,close,ioctl,{reads}");
        strace.args(["60", "strace", "-v", "-ff", "--seccomp-bpf", "-e", &calls, "-o"]);
        strace.arg(folder.join("trace")).arg(tool);
        strace.args(row.split(' ')).current_dir(folder);
        strace
    };
    if tool == "perf" {
        oracle::ask_until_answered(|_| {
            folder = tempfile::tempdir().unwrap();
            strace(folder.path())
        });
    } else {
        let ended = strace(folder.path()).output().unwrap().status;
        assert!(!oracle::crashed(ended), "pmc {row}: {ended}");
    }
    let mut files: Vec<_> =
        std::fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.retain(|file| file.file_name().unwrap().to_string_lossy().starts_with("trace."));
    files.sort();
    let mut requests = Requests::default();
    for file in files {
        requests.collect(&String::from_utf8_lossy(&std::fs::read(file).unwrap()));
    }
    requests
}

/// Returns the differences between the two tools on a row; empty if they agree.
fn differences(row: &str) -> Vec<String> {
    let (perfs, ours) = (requests("perf", row), requests(kit::binary(), row));
    if row.starts_with("stat ") {
        return compared(perfs.used.iter().chain(&perfs.refused), ours.used.iter().chain(&ours.refused));
    }
    if perfs.used.is_empty() {
        // A recording fails with its first event. Later requests are each tool's own attempts to explain the
        // failure.
        let ours = ours.used.iter().chain(ours.first_refused_sampling());
        return compared(perfs.first_refused_sampling(), ours);
    }
    compared(&perfs.used, &ours.used)
}

fn compared<'a>(
    want: impl IntoIterator<Item = &'a Request>,
    got: impl IntoIterator<Item = &'a Request>,
) -> Vec<String> {
    let (want, got): (Vec<_>, Vec<_>) = (want.into_iter().collect(), got.into_iter().collect());
    if got.is_empty() {
        return vec!["pmc opened no event".to_owned()];
    }
    let missing: Vec<_> = want.iter().filter(|request| !got.contains(request)).collect();
    let extra: Vec<_> = got.iter().filter(|request| !want.contains(request)).collect();
    let mut said = Vec::new();
    for (ours, perfs) in extra.iter().zip(&missing) {
        let fields = perfs.iter().filter(|(field, value)| ours[*field] != **value);
        said.extend(fields.map(|(field, value)| format!("{field}: perf {value} pmc {}", ours[field])));
    }
    if missing.len() != extra.len() {
        said.push(format!("perf opened {} distinct events, pmc {}", want.len(), got.len()));
    }
    said
}

/// Compares every row of this file.
#[track_caller]
fn agree(rows: &str, least: usize) {
    let programs = ["perf", "strace"].map(kit::need_program);
    if programs.contains(&false)
        || !kit::need_root()
        || !kit::need_perf_events()
        || !kit::need_tracefs("sched")
    {
        return;
    }
    let rows = rows.lines().filter(|row| !row.is_empty() && !row.starts_with('#'));
    let told: Vec<(&str, Vec<String>)> = rows.map(|row| (row, differences(row))).collect();
    let differ: Vec<_> = told.iter().filter(|(_, said)| !said.is_empty()).collect();
    assert!(differ.is_empty(), "{differ:#?}");
    // An empty file would agree too.
    assert!(told.len() >= least, "only {} rows", told.len());
}

#[test]
fn stat_requests_match_perf() {
    agree(include_str!("parity/stat.rows"), 60);
}

#[test]
fn record_requests_match_perf() {
    agree(include_str!("parity/record.rows"), 50);
}
