//! Prints one plain table per interval, for pipes, files and terminals without cursor control.
//!
//! Does not read standard input, which may be closed. Stops on a signal, at the time limit, when the reader
//! of the output exits, or when all sampled processes have ended.

use std::io::{BufWriter, Write, stdout};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags};

use super::request::TopRequest;
use pmc_analysis::analysis::live::names::NameLookup;
use pmc_analysis::analysis::live::snapshot::SnapshotMaker;
use pmc_analysis::session::live::LiveState;
use pmc_sys::error::{Error, Exit, Result, say};
use pmc_sys::sys::signal::{self, Signals};
use pmc_sys::sys::wait as waiting;

/// Maximum time to wait for names before the last table is printed. Reading the kernel's symbols may take
/// seconds on a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);
/// The same after Ctrl-C.
const PATIENCE_AFTER_SIGNAL: Duration = Duration::from_secs(2);
/// Interval between checks whether sampling has ended.
const LOOK: Duration = Duration::from_millis(100);
/// Interval between checks whether all names are known.
const LOOK_FOR_NAMES: Duration = Duration::from_millis(5);

/// Prints tables until sampling ends.
pub(super) fn run(
    request: &TopRequest,
    shared: &LiveState,
    maker: &mut SnapshotMaker,
    names: &NameLookup,
    signals: &Signals,
) -> Result<Exit> {
    let start = Instant::now();
    let end = request.timeout.map(|timeout| start + timeout);
    let mut last = None;
    let mut next = start + request.live.delay;
    loop {
        let until = end.map_or(next, |end| end.min(next));
        let mut caught = wait(signals, until, LOOK, || shared.is_over())?;
        let is_last = caught.is_some() || shared.is_over() || end.is_some_and(|end| Instant::now() >= end);
        // After one of these signals, do not print another table.
        let prints = |caught| !matches!(caught, Some(signal::TERM | signal::HUP));
        if is_last && prints(caught) {
            names.lift_time_limit();
            let patience = if caught.is_some() { PATIENCE_AFTER_SIGNAL } else { PATIENCE };
            let again = wait(signals, Instant::now() + patience, LOOK_FOR_NAMES, || names.waiting() == 0)?;
            caught = caught.or(again);
        }
        if prints(caught) {
            let mut snapshot = maker.take(last.take());
            let answer = maker.answer(&snapshot, &request.query);
            let head = maker.head(&snapshot, 0);
            let mut out = BufWriter::with_capacity(1 << 14, stdout().lock());
            let write = if request.json { pmc_view::top::write_json } else { pmc_view::top::write };
            write(&mut out, &head, &answer.profile, &request.layout)
                .and_then(|()| out.flush())
                .map_err(|error| Error::output("the table", error))?;
            snapshot.release();
            maker.end_interval(request.retention);
            last = Some(snapshot);
        }
        match caught {
            Some(signal::INT) => return Ok(Exit::Done),
            Some(signal) => return Ok(Exit::Interrupted(signal)),
            None if is_last => {
                if shared.is_over() && request.live.sample.run_schedule.command.is_empty() {
                    say::note("all sampled processes have ended");
                }
                return Ok(Exit::Done);
            }
            None => {}
        }
        next += request.live.delay;
        // If the reader of the output was slow, skip the missed intervals instead of catching up.
        next = next.max(Instant::now());
    }
}

/// Sleeps until the time `until`, or until a signal arrives, the reader of the output exits, or `is_over`,
/// which is asked at intervals of `look`.
fn wait(
    signals: &Signals,
    until: Instant,
    look: Duration,
    is_over: impl Fn() -> bool,
) -> Result<Option<i32>> {
    let out = stdout();
    loop {
        if let Some(caught) = signals.next() {
            return Ok(Some(caught.signal));
        }
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() || is_over() {
            return Ok(None);
        }
        let mut fds = [PollFd::new(signals, PollFlags::IN), PollFd::new(&out, PollFlags::empty())];
        waiting::poll(&mut fds, Some(left.min(look))).map_err(|error| Error::io("waiting", error))?;
        // The reader has closed the pipe. poll reports this even if pmc does not write.
        if fds[1].revents().intersects(PollFlags::ERR | PollFlags::HUP) {
            return Err(Error::output("the table", std::io::ErrorKind::BrokenPipe.into()));
        }
    }
}
