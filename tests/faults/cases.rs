//! The commands that run with faults, and what each of them must produce.

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use pmc_perfdata::perfdata::Reader;
use pmc_perfdata::record::kind;

use crate::injection::{Fault, FaultRun, Injector};
use crate::kit::{self, lab::Lab};

/// Commands that measure the test program. `TARGET` is its path.
const MEASURING: &[(&str, &[&str])] = &[
    ("stat", &["stat", "-x,", "-e", "task-clock,page-faults,context-switches", "--", "TARGET"]),
    ("stat-table", &["stat", "-o", "out.txt", "-e", "task-clock,page-faults", "--", "TARGET"]),
    ("stat-all", &["stat", "-x,", "-a", "-e", "cpu-clock", "--", "TARGET"]),
    ("stat-record", &["stat", "record", "-o", "out.data", "-e", "task-clock", "--", "TARGET"]),
    ("record", &["record", "-e", "cpu-clock", "-F", "2000", "-o", "out.data", "--", "TARGET"]),
    (
        "record-dwarf",
        &["record", "-e", "cpu-clock", "-F", "2000", "-g", "dwarf", "-o", "out.data", "--", "TARGET"],
    ),
    ("record-all", &["record", "-e", "cpu-clock", "-F", "2000", "-a", "-o", "out.data", "--", "TARGET"]),
    ("record-wall", &["record", "--wall", "-o", "out.data", "--", "TARGET"]),
    ("record-zstd", &["record", "-e", "cpu-clock", "-F", "2000", "-z", "-o", "out.data", "--", "TARGET"]),
    ("record-pipe", &["record", "-e", "cpu-clock", "-F", "2000", "-o", "-", "--", "TARGET"]),
    (
        "record-switch",
        &[
            "record",
            "-e",
            "cpu-clock",
            "-F",
            "2000",
            "--switch-output=20ms",
            "-o",
            "out.data",
            "--",
            "TARGET",
        ],
    ),
    ("profile", &["profile", "--stdio", "-o", "out.data", "--", "TARGET"]),
    ("top", &["top", "--stdio", "-e", "cpu-clock", "-F", "2000", "-d", "50ms", "--", "TARGET"]),
    ("top-json", &["top", "--json", "--timeout", "150ms", "-d", "50ms", "-e", "cpu-clock"]),
];

/// Commands that read recordings. `BASE` has call chains, and `COPIES` has copied
/// stacks.
const READING: &[(&str, &[&str])] = &[
    ("report", &["report", "--stdio", "-i", "BASE"]),
    ("report-json", &["report", "--json", "-i", "BASE"]),
    ("report-copies", &["report", "--stdio", "-i", "COPIES"]),
    ("script", &["script", "-i", "BASE"]),
    ("script-json", &["script", "--json", "-i", "COPIES"]),
    ("script-code", &["script", "-F", "ip,sym,disasm", "-i", "BASE"]),
    ("annotate", &["annotate", "--stdio", "-i", "BASE"]),
    ("diff", &["diff", "BASE", "COPIES"]),
    ("export-folded", &["export", "--format", "folded", "-i", "BASE", "-o", "out.folded"]),
    ("export-html", &["export", "-i", "BASE", "-o", "out.html"]),
    ("export-pprof", &["export", "--format", "pprof", "-i", "COPIES", "-o", "out.pb.gz"]),
    ("archive", &["archive", "BASE", "-o", "out.data"]),
    ("inject", &["inject", "-b", "-i", "BASE", "-o", "out.data"]),
    ("inject-chains", &["inject", "--convert-callchain", "-i", "COPIES", "-o", "out.data"]),
    ("convert", &["data", "convert", "-i", "BASE", "--to-json", "out.json"]),
    ("evlist", &["evlist", "-v", "-i", "BASE"]),
    ("buildid-list", &["buildid-list", "-i", "BASE"]),
];

/// Clients of a holder of persistent events. The holder has the entry that [`HELD`] adds.
const ASKING: &[(&str, &[&str])] = &[
    ("persist-add", &["persist", "add", "other", "-e", "cpu-clock"]),
    ("persist-list", &["persist", "list"]),
    ("persist-show", &["persist", "show", "own"]),
    ("persist-read", &["persist", "read", "own"]),
    ("persist-snapshot", &["persist", "snapshot", "own", "-o", "out.data"]),
    ("persist-rm", &["persist", "rm", "own"]),
];

/// A holder of persistent events, which clients ask in turn (`holder.rs`).
const HOLDING: (&str, &[&str]) = ("persist-hold", &["persist", "hold"]);

/// The command that gives the holder an entry before each client runs.
const HELD: &[&str] = &["persist", "add", "own", "-e", "cpu-clock,freq=1000"];

/// Name of pmc's process.
const PROGRAM: &str = "pmc";

/// The test program and its recordings.
#[derive(Debug)]
pub(crate) struct Scene {
    pub(crate) lab: Lab,
    pub(crate) injector: Injector,
    target: PathBuf,
}

/// A command with its faultless results.
#[derive(Debug)]
pub(crate) struct Case {
    pub(crate) name: &'static str,
    words: Vec<String>,
    measures: bool,
    /// Output of a faultless run.
    product: Option<Product>,
    said: BTreeSet<String>,
    pub(crate) calls: Vec<(String, u32)>,
}

/// A holder of persistent events that runs without faults. It is killed when this value is dropped.
#[derive(Debug)]
struct Holder(Child);

impl Drop for Holder {
    fn drop(&mut self) {
        let _ = (self.0.kill(), self.0.wait());
    }
}

/// What a command that reads a recording produces: stdout and its output file.
type Product = (Vec<u8>, Option<Vec<u8>>);

/// What a run with a fault came to.
#[derive(Debug)]
pub(crate) enum Verdict {
    /// The call was not made.
    Unhit,
    /// The results are complete.
    Whole,
    /// pmc failed, or reported missing data.
    Reported,
    /// The start of libc or of Rust's runtime failed.
    Runtime,
    Fault(String),
}

impl Case {
    /// Whether the command asks a holder.
    fn asks(&self) -> bool {
        self.words[0] == "persist" && !self.holds()
    }

    /// Whether the command is a holder.
    fn holds(&self) -> bool {
        self.name == HOLDING.0
    }
}

impl Scene {
    /// Builds the programs and the recordings. Returns `None` if a requirement is missing.
    pub(crate) fn new() -> Option<Self> {
        if !kit::need_kernel_mode() {
            return None;
        }
        let lab = Lab::new()?;
        let injector = Injector::new(&lab)?;
        let flags = ["-g", "-O1", "-fno-omit-frame-pointer"];
        let target = lab.build("target", include_str!("target.c"), &flags);
        for (name, mode) in [("base", "fp"), ("copies", "dwarf,4096")] {
            let mut pmc = kit::pmc();
            pmc.args(["record", "-e", "cpu-clock", "-F", "2000", "--unwind", "deferred", "--call-graph"]);
            pmc.arg(mode).arg("-o").arg(lab.path(name)).arg("--").arg(&target);
            let _ = kit::Ran::from(pmc.current_dir(lab.path("")).output().expect("pmc starts")).expect(7);
        }
        Some(Self { lab, injector, target })
    }

    /// Runs all commands without a fault.
    pub(crate) fn cases(&self, wanted: impl Fn(&str) -> bool) -> Vec<Case> {
        let all = MEASURING.iter().chain(ASKING).chain([&HOLDING]).map(|row| (row, true));
        let all = all.chain(READING.iter().map(|row| (row, false)));
        all.filter(|((name, _), _)| wanted(name))
            .map(|((name, words), measures)| {
                let words = words.iter().map(|word| match *word {
                    "TARGET" => self.target.display().to_string(),
                    "BASE" => self.lab.path("base").display().to_string(),
                    "COPIES" => self.lab.path("copies").display().to_string(),
                    word => word.to_owned(),
                });
                let (words, calls) = (words.collect(), Vec::new());
                let mut case = Case { name, words, measures, product: None, said: BTreeSet::new(), calls };
                if case.holds() {
                    let (verdict, run) = self.try_holder(None);
                    assert!(matches!(verdict, Verdict::Whole), "{name}: {verdict:?} {run:?}");
                    case.calls = run.calls.into_iter().collect();
                    return case;
                }
                for _ in 0..2 {
                    let folder = tempfile::tempdir_in(self.lab.path("")).expect("a folder");
                    let _holder = case.asks().then(|| self.hold(folder.path()));
                    let run = self.run(&case, None, folder.path());
                    case.said.extend(self.said(&case, &run));
                    if !measures {
                        let product = product(&run, folder.path());
                        assert!(case.product.is_none() || case.product.as_ref() == Some(&product), "{name}");
                        case.product = Some(product);
                    }
                    let verdict = self.judge(&case, None, &run, folder.path());
                    assert!(matches!(verdict, Verdict::Whole), "{name}: {verdict:?} {run:?}");
                    case.calls = run.calls.into_iter().collect();
                }
                case
            })
            .collect()
    }

    /// Runs a command with a fault.
    pub(crate) fn try_fault(&self, case: &Case, fault: &Fault) -> (Verdict, FaultRun) {
        if case.holds() {
            return self.try_holder(Some(fault));
        }
        let folder = tempfile::tempdir_in(self.lab.path("")).expect("a folder");
        let _holder = case.asks().then(|| self.hold(folder.path()));
        let run = self.run(case, Some(fault), folder.path());
        let verdict =
            if run.was_hit { self.judge(case, Some(fault), &run, folder.path()) } else { Verdict::Unhit };
        (verdict, run)
    }

    /// What a run printed to stderr, in a form that is the same for each faultless run.
    fn said(&self, case: &Case, run: &FaultRun) -> BTreeSet<String> {
        match case.measures {
            true => plain_lines(&run.stderr),
            false => run.stderr.lines().map(str::to_owned).collect(),
        }
    }

    /// Runs a command in a shell that first sets a limit, or redirects a stream of the command `"$@"`.
    pub(crate) fn try_in_shell(&self, case: &Case, script: &str) -> (Verdict, FaultRun) {
        let folder = tempfile::tempdir_in(self.lab.path("")).expect("a folder");
        let mut shell = Command::new("sh");
        for (name, value) in kit::pmc().get_envs() {
            match value {
                Some(value) => shell.env(name, value),
                None => shell.env_remove(name),
            };
        }
        shell.args(["-c", script, "sh", kit::binary()]);
        let run = self.run_command(shell, case, None, folder.path());
        (self.judge(case, None, &run, folder.path()), run)
    }

    fn run(&self, case: &Case, fault: Option<&Fault>, folder: &Path) -> FaultRun {
        self.run_command(kit::pmc(), case, fault, folder)
    }

    /// Starts a holder for a command that needs one, and waits until it holds [`HELD`].
    fn hold(&self, folder: &Path) -> Holder {
        let mut hold = persistent(folder);
        let hold = hold.args(["persist", "hold"]).stdout(Stdio::null()).stderr(Stdio::piped());
        let mut holder = Holder(hold.spawn().expect("pmc starts"));
        let stderr = holder.0.stderr.as_mut().expect("a pipe");
        let mut line = String::new();
        BufReader::new(stderr).read_line(&mut line).expect("its first line");
        assert!(line.contains("listening"), "{line}");
        let add = persistent(folder).args(HELD).output().expect("pmc starts");
        assert!(add.status.success(), "{add:?}");
        holder
    }

    fn run_command(
        &self,
        mut command: Command,
        case: &Case,
        fault: Option<&Fault>,
        folder: &Path,
    ) -> FaultRun {
        command.args(&case.words).current_dir(folder);
        command.env("HOME", folder.join("home")).env("XDG_CACHE_HOME", folder.join("cache"));
        command.env("TMPDIR", folder).env("PMC_PERSISTENT_DIR", folder.join("run"));
        let log = tempfile::NamedTempFile::new_in(self.lab.path("")).expect("a file");
        self.injector.run(log.path(), fault, &mut command).expect("the injector runs")
    }

    fn judge(&self, case: &Case, made: Option<&Fault>, run: &FaultRun, folder: &Path) -> Verdict {
        let fault = |text: String| Verdict::Fault(text);
        if let Some(verdict) = crash(made, run) {
            return verdict;
        }
        let was_killed = run.status.signal() == Some(9);
        // A killed recorder cannot end its command. The child that waits to execute the command ends soon.
        let left = if was_killed { &run.endless } else { &run.left };
        if left.iter().any(|name| name == PROGRAM || !was_killed) {
            return fault(format!("leaves processes: {:?}", run.left));
        }
        let files = files(folder);
        let expected = |name: &String| {
            let known = ["begun", "done", "home", "cache", "out.", "run", "perf.data"];
            known.iter().any(|start| name.starts_with(start)) && !name.contains(".tmp")
        };
        if let Some(name) = files.iter().find(|name| !expected(name)) {
            return fault(format!("leaves the file {name}"));
        }
        let told = self.said(case, run).difference(&case.said).next().is_some();
        if let Some(problem) = unreadable(run, folder, &files) {
            return fault(problem);
        }
        let runs_target = case.words.last().is_some_and(|word| word.ends_with("/target"));
        let succeeded = run.status.code() == Some(if runs_target { 7 } else { 0 });
        // A fault in a client must not affect the holder: it still answers, and still holds the entry.
        let held = case.asks().then(|| self.read(&["persist", "list"], folder));
        if let Some(list) = held.filter(|list| case.name != "persist-rm" && !list.contains("own")) {
            return fault(format!("the holder lists {list:?}"));
        }
        // In the child that becomes the command, the call kills the command.
        let is_kill = made.is_some_and(|made| made.error.1 == 0);
        if was_killed || is_kill && run.status.code() == Some(128 + 9) {
            return Verdict::Reported;
        }
        if !succeeded {
            // A measurement that fails ends its command with SIGTERM, as a time limit does.
            return if told {
                Verdict::Reported
            } else {
                fault(format!("{:?} without a message", run.status))
            };
        }
        let missing = if case.measures {
            self.missing(case, run, folder, &files)
        } else {
            let product = product(run, folder);
            case.product.as_ref().filter(|whole| **whole != product).map(|whole| difference(whole, &product))
        };
        match missing {
            None => Verdict::Whole,
            Some(_) if told => Verdict::Reported,
            Some(what) => fault(format!("status 0, but {what}")),
        }
    }

    /// Returns the part that is missing in the results of a measurement that claims success.
    fn missing(
        &self,
        case: &Case,
        run: &FaultRun,
        folder: &Path,
        files: &BTreeSet<String>,
    ) -> Option<String> {
        let stdout = String::from_utf8_lossy(&run.stdout);
        let needs_target = case.words.iter().any(|word| word.ends_with("/target"));
        if needs_target && !files.contains("done") {
            return Some("the command did not run to its end".into());
        }
        let listed = || self.read(&["persist", "list"], folder);
        let table = match case.name {
            "persist-add" => listed(),
            "persist-rm" => return listed().contains("own").then(|| "the entry is still held".into()),
            "persist-list" | "persist-show" | "persist-read" => stdout.into_owned(),
            "persist-snapshot" => self.read(&["script", "-F", "event", "-i", "out.data"], folder),
            "stat" | "stat-all" => {
                let rows: Vec<_> = run.stderr.lines().filter(|line| line.contains(',')).collect();
                let expected = case.words[case.words.iter().position(|w| w == "-e")? + 1].split(',').count();
                let counted = rows.iter().filter(|row| row.as_bytes()[0].is_ascii_digit()).count();
                return (counted != expected).then(|| format!("{counted} counts: {rows:?}"));
            }
            "stat-table" => std::fs::read_to_string(folder.join("out.txt")).unwrap_or_default(),
            "stat-record" => self.read(&["stat", "report", "-i", "out.data"], folder),
            "top-json" => {
                let bad = stdout.lines().any(|l| serde_json::from_str::<serde_json::Value>(l).is_err());
                return (bad || stdout.is_empty()).then(|| "no JSON".into());
            }
            "top" => stdout.into_owned(),
            "record-pipe" => {
                std::fs::write(folder.join("out.data"), &run.stdout).expect("a file");
                self.read(&["script", "-F", "sym", "-G", "-i", "out.data"], folder)
            }
            "record-switch" => {
                let parts = files.iter().filter(|name| name.starts_with("out.data"));
                parts.map(|part| self.read(&["script", "-F", "sym", "-G", "-i", part], folder)).collect()
            }
            _ => self.read(&["script", "-F", "sym", "-G", "-i", "out.data"], folder),
        };
        let wanted: &[&str] = match case.name {
            "stat-table" => &["task-clock", "page-faults"],
            "stat-record" => &["task-clock"],
            "top" => &["target"],
            "persist-add" => &["own", "other"],
            "persist-list" | "persist-show" | "persist-read" => &["own", "cpu-clock"],
            "persist-snapshot" => &["cpu-clock"],
            _ => &["burn_left", "burn_right"],
        };
        wanted.iter().find(|name| !table.contains(**name)).map(|name| format!("no {name} in {table}"))
    }

    fn read(&self, words: &[&str], folder: &Path) -> String {
        let ran = persistent(folder).args(words).current_dir(folder).output().expect("pmc starts");
        let ran = kit::Ran::from(ran);
        ran.stdout + &ran.stderr
    }
}

/// The verdict for a run that hangs or crashes.
pub(crate) fn crash(made: Option<&Fault>, run: &FaultRun) -> Option<Verdict> {
    if run.hung {
        return Some(Verdict::Fault("hangs".into()));
    }
    let theirs =
        ["failed to allocate", "memory allocation of", "fatal runtime error", "/library/std/", "/rustc/"];
    // glibc aborts without a message if it cannot unmap the stack of a thread that has ended.
    let is_stack = made.is_some_and(|made| made.call == "munmap")
        && run.status.signal() == Some(6)
        && run.stderr.is_empty();
    let is_runtime = is_stack || theirs.iter().any(|word| run.stderr.contains(word));
    let crashed = || if is_runtime { Verdict::Runtime } else { Verdict::Fault("crashes".into()) };
    run.crashed().then(crashed)
}

/// A pmc command that finds only the holder below this folder.
pub(crate) fn persistent(folder: &Path) -> Command {
    let mut pmc = kit::pmc();
    pmc.env("PMC_PERSISTENT_DIR", folder.join("run"));
    pmc
}

/// The lines that a measurement printed, with each number as 0, without the lines that sum it up.
fn plain_lines(text: &str) -> BTreeSet<String> {
    let one = |line: &str| {
        let mut plain = String::new();
        for c in line.chars() {
            let c = if c.is_ascii_digit() { '0' } else { c };
            if !(c == '0' && plain.ends_with('0')) {
                plain.push(c);
            }
        }
        plain
    };
    text.lines().filter(|line| !line.contains(" samples")).map(one).collect()
}

fn files(folder: &Path) -> BTreeSet<String> {
    let entries = std::fs::read_dir(folder).expect("a folder").flatten();
    entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect()
}

fn product(run: &FaultRun, folder: &Path) -> Product {
    let file = files(folder).into_iter().find(|name| name.starts_with("out."));
    (run.stdout.clone(), file.and_then(|name| std::fs::read(folder.join(name)).ok()))
}

/// Describes the first difference between the output of a faultless run and another output.
fn difference((out, file): &Product, (other_out, other_file): &Product) -> String {
    let excerpt = |bytes: &[u8], at: usize| {
        let around = &bytes[at.saturating_sub(40)..bytes.len().min(at + 40)];
        String::from_utf8_lossy(around).into_owned()
    };
    let nothing = Vec::new();
    let [file, other_file] = [file, other_file].map(|file| file.as_ref().unwrap_or(&nothing));
    for (name, whole, other) in [("stdout", out, other_out), ("the file", file, other_file)] {
        if whole != other {
            let at = whole.iter().zip(other).take_while(|(a, b)| a == b).count();
            return format!("{name} has {:?} instead of {:?}", excerpt(other, at), excerpt(whole, at));
        }
    }
    "the file is missing".to_owned()
}

/// Whether a recording that pmc left cannot be read, or differs from what pmc says of it.
fn unreadable(run: &FaultRun, folder: &Path, files: &BTreeSet<String>) -> Option<String> {
    for name in files.iter().filter(|name| name.starts_with("out.data")) {
        let path = folder.join(name);
        if path.metadata().is_ok_and(|meta| meta.len() == 0) {
            return Some(format!("{name} is empty"));
        }
        let read = Reader::open(&path).and_then(|reader| Ok(reader.scan(|_| {})?.count(kind::SAMPLE)));
        let samples = match read {
            Ok(samples) => samples,
            Err(error) => return Some(format!("{name} cannot be read: {error}")),
        };
        let prefix = format!("{name}: ");
        let is_split = files.iter().filter(|name| name.starts_with("out.data")).count() > 1;
        let said = run.stderr.split(&prefix).nth(1).and_then(|rest| rest.split(" samples").next());
        if let Some(said) = said.and_then(|said| said.replace(',', "").parse::<u64>().ok())
            && said != samples
            && !is_split
        {
            return Some(format!("{name} has {samples} samples, not {said}"));
        }
    }
    None
}
