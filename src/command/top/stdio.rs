//! Prints one plain table per interval, for pipes, files and terminals without cursor control.
//!
//! Does not read standard input, which may be closed. Ends when the output's reader exits, on a signal, at
//! the time limit, or when all sampled processes have ended.

use std::io::{BufWriter, Write, stdout};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::plan::TopPlan;
use crate::view;
use pmc_analysis::analysis::live::names::NameLookup;
use pmc_analysis::analysis::live::snapshot::SnapshotMaker;
use pmc_analysis::session::live::LiveState;
use pmc_sys::error::{Error, Exit, Result, Warning, say};
use pmc_sys::sys::signal::{self, Signals};

/// Maximum time to wait for names before the last table.
const PATIENCE: Duration = Duration::from_secs(2);
/// Interval between checks for the end of sampling.
const LOOK: Duration = Duration::from_millis(100);

/// Prints tables until the end.
pub(super) fn run(
    plan: &TopPlan,
    shared: &LiveState,
    maker: &mut SnapshotMaker,
    names: &NameLookup,
    signals: &Signals,
) -> Result<Exit> {
    let start = Instant::now();
    let end = plan.timeout.map(|timeout| start + timeout);
    let mut last = None;
    let mut next = start + plan.live.delay;
    loop {
        let until = end.map_or(next, |end| end.min(next));
        let caught = wait(signals, shared, until)?;
        let is_last = caught.is_some() || shared.is_over() || end.is_some_and(|end| Instant::now() >= end);
        if is_last {
            names.hurry();
            let patience = Instant::now() + PATIENCE;
            while names.waiting() > 0 && Instant::now() < patience {
                std::thread::sleep(Duration::from_millis(5));
            }
        }
        // After an interruption, the user does not expect further output.
        if !matches!(caught, Some(signal::TERM | signal::HUP)) {
            let mut snapshot = maker.take(last.take());
            let answer = maker.answer(&snapshot, &plan.query);
            let head = maker.head(&snapshot, 0);
            let mut out = BufWriter::with_capacity(1 << 14, stdout().lock());
            let write = if plan.json { view::top::write_json } else { view::top::write };
            write(&mut out, &head, &answer.profile, &plan.layout)
                .and_then(|()| out.flush())
                .map_err(|error| Error::output("the table", error))?;
            snapshot.release();
            maker.end_interval(plan.retention);
            last = Some(snapshot);
        }
        match caught {
            Some(signal::INT) => return Ok(Exit::Done),
            Some(signal) => return Ok(Exit::Interrupted(signal)),
            None if is_last => {
                if shared.is_over() && plan.live.sample.run_schedule.command.is_empty() {
                    say::warn(&Warning::NobodyLeft);
                }
                return Ok(Exit::Done);
            }
            None => {}
        }
        next += plan.live.delay;
        // After a slow reader, continue from now instead of catching up.
        next = next.max(Instant::now());
    }
}

/// Sleeps until the time `until`, a signal, the exit of the output's reader, or the end of sampling.
fn wait(signals: &Signals, shared: &LiveState, until: Instant) -> Result<Option<i32>> {
    let out = stdout();
    loop {
        if let Some(caught) = signals.next() {
            return Ok(Some(caught.signal));
        }
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() || shared.is_over() {
            return Ok(None);
        }
        let nap = Timespec::try_from(left.min(LOOK)).ok();
        let mut fds = [PollFd::new(signals, PollFlags::IN), PollFd::new(&out, PollFlags::empty())];
        match poll(&mut fds, nap.as_ref()) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(Error::io("waiting", std::io::Error::from(error))),
        }
        // The reader has closed the pipe. poll reports this without a write.
        if fds[1].revents().intersects(PollFlags::ERR | PollFlags::HUP) {
            return Err(Error::output("the table", std::io::ErrorKind::BrokenPipe.into()));
        }
    }
}
