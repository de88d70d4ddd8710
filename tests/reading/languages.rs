//! Names **and lines** for programs in many languages and conditions. The tests build them, record them with
//! `pmc record`, and read them with `pmc script --json` (whole stacks) and `pmc report --json` (the hottest
//! row and its line).
//!
//! The programs are in `tests/data/languages`. A comment `mark NAME` marks each line that a stack must show.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on ends there")]

use crate::kit;
use crate::kit::burn::{burn_flags, least_samples};

mod compiled;
mod debuginfod;
mod ends;
mod generated_code;
mod hidden;
mod overloads;
mod runtimes;
mod system;

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::LazyLock;

use serde_json::Value;

/// A temporary folder with a program and its recording.
struct Lab(tempfile::TempDir);

impl Lab {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn text(&self, name: &str) -> String {
        self.path(name).to_str().unwrap().to_owned()
    }

    /// Runs a compiler or similar program in the folder.
    #[track_caller]
    fn run(&self, program: &str, args: &[&str]) {
        let is_c = ["gcc", "g++"].contains(&program);
        let output = Command::new(program)
            .args(is_c.then(burn_flags).into_iter().flatten())
            .args(args)
            .current_dir(self.0.path())
            .env("HOME", self.0.path())
            .env("GOCACHE", self.path("cache"))
            .env("GOFLAGS", "-mod=mod")
            // rustup looks for its toolchains under the real home.
            .env("RUSTUP_HOME", rustup_home())
            .output()
            .unwrap();
        assert!(output.status.success(), "{program} {args:?}: {}", String::from_utf8_lossy(&output.stderr));
    }

    /// Records `command` and returns the file.
    #[track_caller]
    fn record(&self, options: &[&str], command: &[&str]) -> PathBuf {
        let file = self.path("recording");
        let mut pmc = kit::pmc();
        // Node writes a log to its working directory.
        pmc.current_dir(self.0.path());
        pmc.args(["record", "-e", "cpu-clock", "-F", "2000"]).args(options).arg("-o").arg(&file);
        if !command.is_empty() {
            pmc.arg("--").args(command);
        }
        let ran: kit::Ran = pmc.output().unwrap().into();
        ran.expect(0);
        file
    }
}

/// Number of samples that every recording of a program has.
static LEAST: LazyLock<usize> = LazyLock::new(|| least_samples(250, 2000));

fn rustup_home() -> PathBuf {
    let home = || Some(PathBuf::from(std::env::var_os("HOME")?).join(".rustup"));
    std::env::var_os("RUSTUP_HOME").map(PathBuf::from).or_else(home).unwrap_or_default()
}

/// Path of a program's source.
fn source(name: &str) -> PathBuf {
    kit::data("languages").join(name)
}

/// A frame that a stack must show: the function, and the mark of its line.
#[derive(Debug, Clone, Copy)]
struct Wanted {
    symbol: &'static str,
    mark: Option<&'static str>,
    inlined: bool,
}

/// A function that is not inlined, at the line of this mark.
const fn at(symbol: &'static str, mark: &'static str) -> Wanted {
    Wanted { symbol, mark: Some(mark), inlined: false }
}

/// A function that was inlined into the next.
const fn inlined(symbol: &'static str, mark: &'static str) -> Wanted {
    Wanted { symbol, mark: Some(mark), inlined: true }
}

/// A function without line information.
const fn named(symbol: &'static str) -> Wanted {
    Wanted { symbol, mark: None, inlined: false }
}

/// File and line of a mark.
#[track_caller]
fn place(source: &Path, mark: &str) -> (String, u64) {
    let text = std::fs::read_to_string(source).unwrap();
    let ending = format!("// mark {mark}");
    let line = text.lines().position(|line| line.ends_with(&ending)).expect(mark);
    (source.file_name().unwrap().to_str().unwrap().to_owned(), line as u64 + 1)
}

/// One frame of `pmc script --json`.
#[derive(Debug)]
struct Frame {
    symbol: String,
    dso: String,
    place: Option<(String, u64)>,
    inlined: bool,
}

/// All stacks of a recording, innermost frame first.
#[track_caller]
fn stacks(file: &Path) -> Vec<Vec<Frame>> {
    let fields = "comm,ip,sym,dso,srcline";
    let ran =
        kit::run(&["script", "--json", "--inline", "--no-cache", "-F", fields, "-i", file.to_str().unwrap()]);
    let text = ran.expect(0).stdout;
    let frame = |frame: &Value| Frame {
        symbol: frame["symbol"].as_str().unwrap_or("?").to_owned(),
        dso: frame["dso"].as_str().unwrap_or("?").to_owned(),
        place: frame["file"].as_str().and_then(|path| {
            let name = Path::new(path).file_name()?.to_str()?.to_owned();
            Some((name, frame["line"].as_u64()?))
        }),
        inlined: frame["inlined"] == Value::Bool(true),
    };
    let stack = |line: &str| {
        let line: Value = serde_json::from_str(line).unwrap();
        line["stack"].as_array().unwrap().iter().map(frame).collect()
    };
    text.lines().map(stack).collect()
}

/// The report as JSON, with one row per module, function and line.
#[track_caller]
fn report(file: &Path) -> Value {
    let keys = "dso,sym,srcline";
    let ran = kit::run(&[
        "report",
        "--json",
        "--no-children",
        "--no-cache",
        "-s",
        keys,
        "-i",
        file.to_str().unwrap(),
    ]);
    serde_json::from_str(&ran.expect(0).stdout).unwrap()
}

/// Checks that most samples hit the first of these functions, and that nearly all of those stacks have all
/// the frames, each called by the next. Code inlined into the first function (an iterator's step, say) may
/// precede it.
#[track_caller]
fn expect_stack(file: &Path, source: &Path, wanted: &[Wanted]) {
    let stacks = stacks(file);
    let fits = |frame: &Frame, wanted: &Wanted| {
        let lines = wanted.mark.map(|mark| place(source, mark));
        frame.symbol == wanted.symbol
            && frame.inlined == wanted.inlined
            && (lines.is_none() || frame.place == lines)
    };
    fn from_first<'a>(stack: &'a [Frame], symbol: &str) -> Option<&'a [Frame]> {
        let at = stack.iter().position(|frame| frame.symbol == symbol)?;
        stack[..at].iter().all(|frame| frame.inlined).then_some(&stack[at..])
    }
    let hot: Vec<&[Frame]> = stacks.iter().filter_map(|stack| from_first(stack, wanted[0].symbol)).collect();
    let whole = |stack: &&&[Frame]| {
        stack.len() >= wanted.len() && stack.iter().zip(wanted).all(|(frame, wanted)| fits(frame, wanted))
    };
    let good = hot.iter().filter(whole).count();
    let other = hot.iter().find(|stack| !whole(stack)).copied().or(stacks.last().map(|stack| &stack[..]));
    assert!(stacks.len() >= *LEAST, "only {} samples", stacks.len());
    assert!(
        hot.len() * 10 >= stacks.len() * 6 && good * 100 >= hot.len() * 90,
        "{} samples, {} in {}, {good} with the whole stack {wanted:?}; one is {other:#?}",
        stacks.len(),
        hot.len(),
        wanted[0].symbol,
    );
}

/// Checks that the report's hottest row is this function at this line.
#[track_caller]
fn expect_row(file: &Path, source: &Path, dso: &str, symbol: &str, mark: &str) {
    let document = report(file);
    let row = &document["events"][0]["rows"][0];
    let (name, line) = place(source, mark);
    let srcline = row["srcline"].as_str().unwrap_or("?");
    assert!(srcline.ends_with(&format!("{name}:{line}")), "not {name}:{line}: {row}");
    assert_eq!((row["dso"].as_str(), row["sym"].as_str()), (Some(dso), Some(symbol)), "{row}");
    assert!(row["self"]["percent"].as_f64() > Some(50.0), "{row}");
}

/// The report's entry for a module.
#[track_caller]
fn module<'a>(document: &'a Value, name: &str) -> &'a Value {
    let modules = document["modules"].as_array().unwrap();
    modules
        .iter()
        .find(|module| module["name"] == name)
        .unwrap_or_else(|| panic!("no {name} in {modules:#?}"))
}

/// Whether perf events and the programs are available.
#[track_caller]
fn ready(programs: &[&str]) -> bool {
    kit::need_perf_events() && programs.iter().all(|program| kit::need_program(program))
}
