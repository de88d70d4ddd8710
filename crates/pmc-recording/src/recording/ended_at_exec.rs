//! Finds processes whose events the kernel ended when they executed a program.
//!
//! The kernel does not report this, but writes the `EXIT` record too early: between the new name and the
//! first mapping of the program. Receives all records of measured tasks ([`ExecEnds`]); returns the
//! processes.
//!
//! ```text
//!   other programs:   COMM (exec) ── MMAP2 … ── EXIT
//!   these programs:   COMM (exec) ───────────── EXIT
//! ```

use std::collections::hash_map::Entry;

use rustc_hash::FxHashMap;

use super::plan::MeasurementScope;
use super::warning::measure_privileged;
use pmc_perfdata::record::{Layouts, RawRecord, Record, kind};
use pmc_sys::error::{Warning, say};
use pmc_text::units::PerfTime;

/// Maximum number of processes to track. With more, no further process is found.
const MOST_PROCESSES: usize = 1 << 16;
/// Maximum number of processes to report.
const MOST_FOUND: usize = 1000;

/// A process whose events the kernel ended when it executed a program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EndedAtExec {
    /// The process.
    pub pid: u32,
    /// The program's file name, of which the kernel keeps 15 bytes. Untrusted.
    pub name: String,
}

/// The latest times of a process, or 0.
#[derive(Debug, Default)]
struct ProcessTimes {
    executed: PerfTime,
    /// The name since then.
    name: Vec<u8>,
    mapped: PerfTime,
    exited: PerfTime,
    /// How far the rings have been read since the `EXIT` record.
    reading: ReadingState,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum ReadingState {
    /// There is no `EXIT` record.
    #[default]
    Running,
    /// Some rings have not been read since.
    Ended,
    /// All rings have been read since.
    Settled,
}

impl ProcessTimes {
    fn has_ended(&self) -> bool {
        self.exited >= self.executed.max(self.mapped)
    }

    fn ended_at_exec(&self) -> bool {
        self.executed.0 > 0 && self.executed <= self.exited && self.mapped < self.executed
    }
}

/// The processes that have not ended yet, and the processes that were found.
///
/// The kernel removes the events of a process that executes a program with other privileges, or one that its
/// user may not read, even if root opened them. The process continues, but pmc gets no more samples or
/// records of it and its children. The same records result if the program cannot be loaded, for example
/// because of `ulimit -v`. The process is then killed, and nothing is missing. The text of the warning covers
/// this case too. The kernel does not remove events on whole CPUs, although it writes the same records.
///
/// Records may arrive in any order within two rounds, because a process may use several CPUs and their rings
/// are read in turn. Only times are compared. Lost records could be mappings, so nothing is known about the
/// processes that ran when records were lost.
#[derive(Debug, Default)]
pub(super) struct ExecEnds {
    /// Whether whole CPUs are measured.
    is_whole_cpus: bool,
    processes: FxHashMap<i32, ProcessTimes>,
    /// Processes with an `EXIT` record since the last round.
    ended: Vec<i32>,
    /// Processes with an `EXIT` record in the round before.
    settled: Vec<i32>,
    is_full: bool,
    /// Whether the kernel reported lost records.
    has_losses: bool,
    /// Number of rounds in which nothing is judged, because records were lost. Records from before the loss
    /// may follow after the record about it.
    rounds_after_loss: u8,
    /// Number of lost records at the last call to `confirm`.
    lost: u64,
    /// Processes that have been found since then.
    found: Vec<EndedAtExec>,
    confirmed: Vec<EndedAtExec>,
    reported: Option<Vec<EndedAtExec>>,
    /// A process that pmc has already reported.
    left_out: Option<u32>,
}

impl ExecEnds {
    pub(super) fn new(scope: &MeasurementScope) -> Self {
        Self { is_whole_cpus: matches!(scope, MeasurementScope::Cpus(_)), ..Self::default() }
    }

    /// Excludes a process from the report.
    pub(super) fn leave_out(&mut self, pid: u32) {
        self.left_out = Some(pid);
    }

    /// Notes the times of a record from a ring.
    #[inline]
    pub(super) fn note(&mut self, raw: &RawRecord<'_>, layouts: &Layouts) {
        match raw.kind {
            kind::COMM | kind::MMAP | kind::MMAP2 | kind::EXIT if !self.is_whole_cpus => {
                self.note_task(raw, layouts);
            }
            kind::LOST => {
                self.has_losses = true;
                self.rounds_after_loss = 2;
            }
            _ => {}
        }
    }

    fn note_task(&mut self, raw: &RawRecord<'_>, layouts: &Layouts) {
        let Some(time) = layouts.time(raw) else { return };
        match raw.parse() {
            // Only the first thread of a process remains after an exec, whichever thread has called it.
            Some(Record::Comm(comm)) if comm.is_exec => {
                if let Some(process) = self.process(comm.thread.pid)
                    && process.executed <= time
                {
                    process.executed = time;
                    process.name = comm.comm.to_vec();
                }
            }
            Some(Record::Mmap(map)) => self.note_mapping(map.thread.pid, time),
            Some(Record::Mmap2(map)) => self.note_mapping(map.map.thread.pid, time),
            Some(Record::Exit(task)) if task.thread.pid == task.thread.tid => {
                if let Some(process) = self.process(task.thread.pid) {
                    process.exited = process.exited.max(time);
                    if std::mem::replace(&mut process.reading, ReadingState::Ended) != ReadingState::Ended {
                        self.ended.push(task.thread.pid);
                    }
                }
            }
            _ => {}
        }
    }

    fn note_mapping(&mut self, pid: i32, time: PerfTime) {
        if let Some(process) = self.process(pid) {
            process.mapped = process.mapped.max(time);
        }
    }

    fn process(&mut self, pid: i32) -> Option<&mut ProcessTimes> {
        // Mappings of the kernel have the pid -1.
        if pid <= 0 || self.is_full {
            return None;
        }
        if self.processes.len() >= MOST_PROCESSES && !self.processes.contains_key(&pid) {
            // Without the times of all processes, a mapping could be missed.
            self.is_full = true;
            self.forget();
            return None;
        }
        Some(self.processes.entry(pid).or_default())
    }

    /// Forgets everything that is not confirmed.
    fn forget(&mut self) {
        self.processes = FxHashMap::default();
        self.ended = Vec::new();
        self.settled = Vec::new();
        self.found = Vec::new();
    }

    /// Called when all rings have been read. Judges the processes that ended before the previous call.
    pub(super) fn end_round(&mut self) {
        if self.rounds_after_loss > 0 {
            self.rounds_after_loss -= 1;
            return self.forget();
        }
        for pid in self.settled.drain(..) {
            let Entry::Occupied(process) = self.processes.entry(pid) else { continue };
            // Another process may have got the ID.
            if process.get().reading != ReadingState::Settled || !process.get().has_ended() {
                continue;
            }
            let process = process.remove();
            if process.ended_at_exec() && self.found.len() < MOST_FOUND {
                let name = String::from_utf8_lossy(&process.name).into_owned();
                self.found.push(EndedAtExec { pid: pid.unsigned_abs(), name });
            }
        }
        for pid in &self.ended {
            if let Some(process) = self.processes.get_mut(pid) {
                process.reading = ReadingState::Settled;
            }
        }
        std::mem::swap(&mut self.ended, &mut self.settled);
    }

    /// Called after the last round, when no records can follow.
    pub(super) fn finish_rounds(&mut self) {
        self.end_round();
        self.end_round();
    }

    /// Whether processes have been found since the last call to [`confirm`](Self::confirm).
    pub(super) fn has_found(&self) -> bool {
        !self.found.is_empty()
    }

    /// Returns the warning about all processes found so far, if there are new ones. `lost` is the number of
    /// records lost since the start. If it has changed since the last call, the new ones are dropped.
    pub(super) fn confirm(&mut self, lost: u64) -> Option<Warning> {
        if std::mem::replace(&mut self.lost, lost) != lost {
            self.forget();
        }
        let before = self.confirmed.len();
        let new = self.found.drain(..).filter(|end| Some(end.pid) != self.left_out);
        self.confirmed.extend(new.take(MOST_FOUND - before));
        let EndedAtExec { pid, name } =
            self.confirmed.first().filter(|_| self.confirmed.len() > before)?.clone();
        let more = self.confirmed.len() - 1;
        let others = if more == 1 { "process" } else { "processes" };
        let processes = match more {
            0 => format!("{name} (pid {pid}) and its children when it executed a program"),
            _ => format!(
                "{name} (pid {pid}), {more} other {others}, and their children when they executed programs"
            ),
        };
        let what = format!(
            "the kernel stopped measuring {processes}: such programs have other privileges (setuid, setgid or \
             file capabilities), cannot be read by their user, or cannot be loaded"
        );
        Some(Warning::new(what).advise(measure_privileged()))
    }

    /// Warns about the processes that were found, after the last round. Nothing is known if records are
    /// missing, or if there were too many processes.
    pub(super) fn report(&mut self, has_all_records: bool) {
        if !has_all_records || self.has_losses || self.is_full {
            return;
        }
        if let Some(warning) = self.confirm(0) {
            say::warn(warning);
        }
        self.reported = Some(std::mem::take(&mut self.confirmed));
    }

    /// Returns the processes that were reported. `None` if nothing is known.
    pub(super) fn take_reported(&mut self) -> Option<Vec<EndedAtExec>> {
        self.reported.take()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pmc_perfdata::record::Records;
    use pmc_sys::abi::attr::Flag;
    use pmc_sys::abi::{Attr, misc, sample_type};

    fn layouts() -> Layouts {
        let mut attr = Attr::new(1, 9);
        attr.set_sample_type(sample_type::TID | sample_type::TIME);
        attr.set(Flag::SampleIdAll, true);
        Layouts::new([(&attr, &[][..])])
    }

    /// A record with this time and body. The body's first words are usually the pid and the tid.
    fn record(kind: u32, misc: u16, body: &[u8], time: u64) -> Vec<u8> {
        let mut bytes = kind.to_ne_bytes().to_vec();
        bytes.extend(misc.to_ne_bytes());
        bytes.extend((body.len() as u16 + 24).to_ne_bytes());
        bytes.extend(body);
        bytes.extend([0; 8]);
        bytes.extend(time.to_ne_bytes());
        bytes
    }

    fn words(words: &[i32]) -> Vec<u8> {
        words.iter().flat_map(|word| word.to_ne_bytes()).collect()
    }

    fn exec(pid: i32, name: &[u8; 8], time: u64) -> Vec<u8> {
        record(kind::COMM, misc::COMM_EXEC, &[&words(&[pid, pid])[..], name].concat(), time)
    }

    fn map(pid: i32, time: u64) -> Vec<u8> {
        record(kind::MMAP, 2, &[&words(&[pid, pid])[..], &[0; 24], b"/bin/a\0\0"].concat(), time)
    }

    fn exit(pid: i32, tid: i32, time: u64) -> Vec<u8> {
        let body = [&words(&[pid, 1, tid, 1])[..], &time.to_ne_bytes()].concat();
        record(kind::EXIT, 0, &body, time)
    }

    /// Returns the processes that are found after two more rounds without records.
    fn finish(ends: &mut ExecEnds) -> Vec<EndedAtExec> {
        ends.finish_rounds();
        std::mem::take(&mut ends.found)
    }

    /// Returns the processes that are found in these rounds of records.
    fn find(rounds: &[&[Vec<u8>]]) -> Vec<(u32, String)> {
        let (mut ends, layouts) = (ExecEnds::default(), layouts());
        for round in rounds {
            Records::new(&round.concat()).for_each(|record| ends.note(&record, &layouts));
            ends.end_round();
        }
        let found = finish(&mut ends);
        assert!(ends.processes.values().all(|process| process.exited.0 == 0), "{ends:?}");
        found.into_iter().map(|end| (end.pid, end.name)).collect()
    }

    #[test]
    fn exec_without_mappings_is_found_in_any_order_of_the_rings() {
        let sudo = [exec(5, b"sudo\0\0\0\0", 10), exit(5, 5, 11)];
        assert_eq!(find(&[&sudo]), [(5, "sudo".to_owned())]);
        // The records of the program before it do not count.
        let before = [exec(5, b"sh\0\0\0\0\0\0", 3), map(5, 4), sudo[0].clone(), sudo[1].clone()];
        assert_eq!(find(&[&before]), [(5, "sudo".to_owned())]);
        assert_eq!(find(&[&[sudo[1].clone()], &[sudo[0].clone()]]), [(5, "sudo".to_owned())]);
    }

    #[test]
    fn other_ends_are_not_found() {
        let [executed, mapped, exited] = [exec(5, b"true\0\0\0\0", 10), map(5, 11), exit(5, 5, 12)];
        let orders = [[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]];
        for order in orders {
            let records = order.map(|at| [&executed, &mapped, &exited][at].clone());
            assert_eq!(find(&[&records]), [], "{order:?}");
            // The last record is in a ring that is read later.
            assert_eq!(find(&[&records[..2], &records[2..]]), [], "{order:?}");
        }
        // Still running, never executed anything, or only a thread has ended.
        assert_eq!(find(&[std::slice::from_ref(&executed), &[]]), []);
        assert_eq!(find(&[std::slice::from_ref(&exited)]), []);
        assert_eq!(find(&[&[executed.clone(), exit(5, 6, 12)], &[]]), []);
        // The first thread ends when another thread calls exec, which gives that thread its ID.
        let other_thread = [exit(5, 5, 9), executed, mapped, exit(5, 5, 20)];
        assert_eq!(find(&[&other_thread]), []);
        assert_eq!(find(&[&other_thread[..2], &[], &other_thread[2..]]), []);
        // The ID is used again.
        let next = [exec(5, b"a\0\0\0\0\0\0\0", 1), map(5, 2), exit(5, 5, 3), exec(5, b"b\0\0\0\0\0\0\0", 4)];
        assert_eq!(find(&[&next, &[map(5, 5), exit(5, 5, 6)]]), []);
    }

    #[test]
    fn memory_is_bounded_and_missing_mappings_do_not_count() {
        let (mut ends, layouts) = (ExecEnds::default(), layouts());
        let mut note = |bytes: Vec<u8>| Records::new(&bytes).for_each(|record| ends.note(&record, &layouts));
        (1..=MOST_PROCESSES as i32 + 1).for_each(|pid| note(map(pid, 1)));
        note(exec(5, b"sudo\0\0\0\0", 10));
        note(exit(5, 5, 11));
        assert!(ends.processes.is_empty());
        assert_eq!(finish(&mut ends), []);
        ends.report(true);
        assert_eq!(ends.take_reported(), None);
        let mut many = ExecEnds::default();
        for pid in 1..=MOST_FOUND as i32 + 1 {
            let records = [exec(pid, b"sudo\0\0\0\0", 10), exit(pid, pid, 11)].concat();
            Records::new(&records).for_each(|record| many.note(&record, &layouts));
        }
        assert_eq!(finish(&mut many).len(), MOST_FOUND);
    }

    /// Adds the records of one round in which a process ends at an exec, and confirms it.
    fn confirm_after(ends: &mut ExecEnds, pid: i32, lost: u64) -> Option<String> {
        let records = [exec(pid, b"sudo\0\0\0\0", 10), exit(pid, pid, 11)].concat();
        Records::new(&records).for_each(|record| ends.note(&record, &layouts()));
        ends.finish_rounds();
        ends.confirm(lost).map(|warning| warning.to_string())
    }

    #[test]
    fn live_warning_covers_all_processes_except_those_near_lost_records() {
        let mut ends = ExecEnds::default();
        let warning = confirm_after(&mut ends, 5, 0).expect("a warning");
        assert!(warning.contains("sudo (pid 5) and its children"), "{warning}");
        assert!(ends.confirm(0).is_none());
        // The kernel's counters state a loss that no record has reported.
        assert!(confirm_after(&mut ends, 6, 3).is_none());
        let warning = confirm_after(&mut ends, 7, 3).expect("a warning");
        assert!(warning.contains("sudo (pid 5), 1 other process, and their children"), "{warning}");
        // A record reports the loss.
        Records::new(&exec(8, b"sudo\0\0\0\0", 20)).for_each(|record| ends.note(&record, &layouts()));
        let lost = record(kind::LOST, 0, &[0; 16], 21);
        Records::new(&lost).for_each(|record| ends.note(&record, &layouts()));
        Records::new(&exit(8, 8, 22)).for_each(|record| ends.note(&record, &layouts()));
        ends.finish_rounds();
        assert!(!ends.has_found());
        ends.report(true);
        assert_eq!(ends.take_reported(), None);
        // A process that pmc has already reported.
        ends.leave_out(9);
        assert!(confirm_after(&mut ends, 9, 3).is_none());
        let mut whole = ExecEnds::new(&MeasurementScope::Cpus(Default::default()));
        assert!(confirm_after(&mut whole, 5, 0).is_none());
    }
}
