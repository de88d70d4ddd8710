//! A holder of persistent events with a fault, while clients without faults ask it.
//!
//! The holder and the published files must agree with the answers to the clients. If the holder ends, its
//! entries are reported as lost, and the next holder starts with a clean run directory.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::{Child, Output, Stdio};

use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, connect, socket_with};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::cases::{Scene, Verdict, crash, persistent};
use crate::injection::{Fault, FaultRun, Injector};
use crate::kit;
use pmc_perfdata::perfdata::Reader;
use pmc_perfdata::record::kind;

/// The clients, in this order.
const CLIENTS: &[&[&str]] = &[
    &["persist", "add", "own", "-e", "cpu-clock,freq=1000"],
    &["persist", "add", "faults", "-e", "page-faults"],
    &["persist", "list", "--json"],
    &["persist", "show", "own"],
    &["persist", "read", "--json", "own"],
    &["persist", "snapshot", "own", "-o", "out.data"],
    &["persist", "rename", "faults", "renamed"],
    &["persist", "rm", "renamed"],
];

/// The files of a run directory.
const PUBLISHED: &[&str] = &["type", "format", "events", "held", "lost", "next-id", "socket", "lock", "log"];

/// The holder, its run directory, and what its clients know.
struct HolderTrial {
    folder: PathBuf,
    injector: Child,
    /// Whether an entry is held, for the entries about which a client got an answer.
    known: BTreeMap<&'static str, bool>,
    /// Whether a client reported a failure.
    reported: bool,
    /// A difference between what clients know and the published entries, which a holder that fails may have.
    difference: Option<String>,
}

impl Scene {
    /// Runs a holder with a fault, and its clients.
    pub(crate) fn try_holder(&self, fault: Option<&Fault>) -> (Verdict, FaultRun) {
        let folder = tempfile::tempdir_in(self.lab.path("")).expect("a folder");
        let file = |name: &str| folder.path().join(name);
        let mut hold = persistent(folder.path());
        hold.args(["persist", "hold"]).current_dir(folder.path());
        let mut injector = self.injector.command(&file("log"), fault, &hold).expect("pmc is found");
        let said = std::fs::File::create(file("said")).expect("a file");
        injector.stdout(Stdio::null()).stderr(said);
        let injector = injector.spawn().expect("the injector starts");
        let (known, folder_path) = (BTreeMap::new(), folder.path().to_owned());
        let mut trial =
            HolderTrial { folder: folder_path, injector, known, reported: false, difference: None };
        let asked = trial.ask_and_end();
        let _ = trial.injector.wait();
        let said = std::fs::read(file("said")).expect("a file");
        let run = Injector::result(&file("log"), Vec::new(), &said).expect("the injector ran");
        let followed = trial.follow();
        let verdict = match crash(fault, &run) {
            Some(Verdict::Fault(what)) => Err(what),
            Some(verdict) => return (verdict, run),
            None => asked.and(trial.judge_end(&run)).and(followed),
        };
        let verdict = match verdict {
            Err(what) => Verdict::Fault(what),
            Ok(()) if fault.is_some() && !run.was_hit => Verdict::Unhit,
            Ok(()) if trial.reported || !run.status.success() => Verdict::Reported,
            Ok(()) => Verdict::Whole,
        };
        (verdict, run)
    }
}

impl HolderTrial {
    fn has_ended(&mut self) -> bool {
        self.injector.try_wait().expect("it is ours").is_some()
    }

    /// Runs the clients while the holder runs, checks that it holds what they know, and ends it.
    fn ask_and_end(&mut self) -> Result<(), String> {
        kit::wait_for("the holder", || self.has_ended() || accepts(&self.folder.join("run/socket")));
        let mut asked = Ok(());
        for words in CLIENTS {
            if self.has_ended() {
                return asked;
            }
            asked = asked.and(self.ask(words));
        }
        if self.has_ended() {
            return asked;
        }
        let asked = asked.and_then(|()| self.check_held());
        if let Some(holder) =
            kit::children(self.injector.id()).first().and_then(|&pid| Pid::from_raw(pid as i32))
        {
            let _ = kill_process(holder, Signal::TERM);
        }
        asked
    }

    fn pmc(&self, words: &[&str]) -> Output {
        persistent(&self.folder).args(words).current_dir(&self.folder).output().expect("pmc starts")
    }

    /// Runs a client, and checks its result.
    fn ask(&mut self, words: &'static [&'static str]) -> Result<(), String> {
        let output = self.pmc(words);
        let (stdout, stderr) =
            (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        let succeeded = output.status.success();
        let known: &[(&str, bool)] = match words[1..] {
            ["add", name, ..] => &[(name, true)],
            ["rename", before, after] => &[(before, false), (after, true)],
            ["rm", name] => &[(name, false)],
            _ => &[],
        };
        for (name, is_held) in known {
            // After a failure, either is possible.
            self.known.remove(name);
            if succeeded {
                self.known.insert(name, *is_held);
            }
        }
        if !succeeded {
            self.reported = true;
            let is_clear = output.status.code().is_some_and(|code| code < 100) && stderr.starts_with("pmc");
            return if is_clear { Ok(()) } else { Err(format!("{words:?}: {output:?}")) };
        }
        let json = || serde_json::from_str::<Value>(&stdout).map_err(|error| format!("{words:?}: {error}"));
        let is_right = match words[1] {
            "list" => {
                self.compare(&names(&json()?["held"]));
                true
            }
            "show" => stdout.contains("cpu-clock"),
            "read" => {
                let cpus = std::thread::available_parallelism().expect("a number of CPUs").get();
                json()?["counts"]["rows"].as_array().is_some_and(|rows| rows.len() >= cpus)
            }
            "snapshot" => {
                let samples = stderr.split(" samples").next().and_then(|said| said.split(' ').next_back());
                let samples = samples.and_then(|said| said.replace(',', "").parse::<u64>().ok());
                let read = Reader::open(self.folder.join("out.data"))
                    .and_then(|reader| Ok(reader.scan(|_| {})?.count(kind::SAMPLE)));
                samples.is_some() && samples == read.ok()
            }
            _ => true,
        };
        if is_right { Ok(()) } else { Err(format!("{words:?} prints {output:?}")) }
    }

    /// Compares the published entries with those that clients know.
    fn compare(&mut self, held: &[String]) {
        if let Some((name, is_held)) = self.known.iter().find(|(name, is)| has(held, name) != **is) {
            self.difference =
                Some(format!("{name} (held: {is_held}) was answered, but not published: {held:?}"));
        }
    }

    /// The held and the lost entries.
    fn list(&self) -> Result<[Vec<String>; 2], String> {
        let output = self.pmc(&["persist", "list", "--json"]);
        let list: Value = serde_json::from_slice(&output.stdout).map_err(|_| format!("list: {output:?}"))?;
        Ok(["held", "lost"].map(|kind| names(&list[kind])))
    }

    /// Checks that the holder publishes exactly the entries that it holds.
    fn check_held(&mut self) -> Result<(), String> {
        let [held, _] = self.list()?;
        self.compare(&held);
        for name in held {
            // If the fault occurs here, the next client gets an answer.
            let is_held = || self.pmc(&["persist", "read", &name]).status.success();
            if !is_held() && !is_held() {
                self.difference = Some(format!("{name} is published, but not held"));
            }
        }
        Ok(())
    }

    /// Checks how the holder ended.
    fn judge_end(&self, run: &FaultRun) -> Result<(), String> {
        let expected = |line: &str| line.ends_with("/socket") || line.contains("no longer held");
        let has_message = run.stderr.lines().any(|line| line.starts_with("pmc") && !expected(line));
        let was_killed = std::os::unix::process::ExitStatusExt::signal(&run.status) == Some(9);
        if let Some(difference) = self.difference.as_ref().filter(|_| run.status.success()) {
            return Err(difference.clone());
        }
        if !run.left.is_empty() {
            return Err(format!("leaves processes: {:?}", run.left));
        }
        if !run.status.success() && !was_killed && !has_message {
            return Err(format!("{:?} without a message", run.status));
        }
        Ok(())
    }

    /// Checks the run directory after the end of the holder, and starts the next holder there.
    fn follow(&self) -> Result<(), String> {
        let [held, lost] = self.list()?;
        let is_known = |name: &str| has(&held, name) || has(&lost, name);
        if let Some((name, is_held)) = self.known.iter().find(|(name, is)| is_known(name) != **is) {
            return Err(format!("{name} (held: {is_held}) is not in {held:?} or lost: {lost:?}"));
        }
        let added = self.pmc(&["persist", "add", "next", "-e", "page-faults"]);
        if !added.status.success() {
            return Err(format!("the next holder: {added:?}"));
        }
        let [now_held, now_lost] = self.list()?;
        let mut problem = (now_lost != lost || now_lost.iter().collect::<BTreeSet<_>>().len() < lost.len())
            .then(|| format!("{lost:?} were lost, then {now_lost:?}"));
        let run = self.folder.join("run");
        for (folder, expected) in [
            ("", PUBLISHED.iter().map(|&name| name.to_owned()).collect::<Vec<_>>()),
            ("events", now_held.clone()),
        ] {
            let is_known = |name: &String| expected.contains(name);
            problem = problem.or(files(&run.join(folder)).into_iter().find(|name| !is_known(name)));
        }
        if files(&run.join("held")).len() != now_held.len() {
            problem = problem.or(Some(format!("{:?} for {now_held:?}", files(&run.join("held")))));
        }
        for name in &now_held {
            let _ = self.pmc(&["persist", "rm", name]);
        }
        kit::wait_for("the end of the next holder", || !run.join("socket").exists());
        problem.map_or(Ok(()), |problem| Err(format!("the next holder: {problem}")))
    }
}

fn names(entries: &Value) -> Vec<String> {
    let entries = entries.as_array().into_iter().flatten();
    entries.filter_map(|entry| entry["name"].as_str().map(str::to_owned)).collect()
}

fn has(names: &[String], name: &str) -> bool {
    names.iter().any(|known| known == name)
}

fn files(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect()
}

/// Whether a process listens at this socket.
fn accepts(socket: &Path) -> bool {
    let client = socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None);
    let address = SocketAddrUnix::new(socket).expect("a short path");
    connect(client.expect("a socket"), &address).is_ok()
}
