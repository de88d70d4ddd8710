//! One recording, from the first record to the last: opens, starts, drains, ends.
//!
//! Receives the plan, the events, and an [`Output`]'s maker; hands on what it came to. Says nothing but through the status
//! line; decides when rings are drained and when the recording is over.
//!
//! ```text
//!   hold command ── open events, map rings ── begin the file ── tell what is there ── enable ── release gate ──┐
//!                                                                                                              │
//!        ┌──── wait: rings half full, signals, control, next deadline (at most half a second) ◄────────────────┤
//!        │     drain all rings, FINISHED_ROUND; switch file; status line                                       │
//!        └──────────────────────────────────────────────────────────────────────► end ── disable ── drain ── finish
//! ```

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::time::Duration;

use rustix::event::{Timespec, epoll};

use super::output::{Output, Totals};
use super::rotation::Rotation;
use crate::counter::reservation::{State, Watcher};
use crate::counter::rings::{Instance, Rings};
use crate::counter::sampling::CallGraph;
use crate::counter::target::any_lives;
use crate::error::{Error, Result, Warning, say};
use crate::event::EventSpec;
use crate::host::Host;
use crate::host::process::Thread as Alive;
use crate::record::encode::Encoder;
use crate::record::{Task, Thread};
use crate::recording::control::{Control, Order};
use crate::recording::ending::Ending;
use crate::recording::launch;
use crate::recording::plan::{Delay, FilePlan, SamplePlan, Scope};
use crate::recording::synthesize::{self, ENOUGH, Extent};
use crate::recording::unwinding::Ends;
use crate::sys::clock::monotonic_ns;
use crate::sys::process::{Held, Outcome, Running};
use crate::sys::signal::{self, Signals};

/// Rings are drained at least so often, so that a killed recorder has written everything but the last moment.
const DRAIN_NS: u64 = 400_000_000;
/// The same where some records wait for another round before they are unwound and written.
const DRAIN_UNWINDING_NS: u64 = 200_000_000;
/// How often the life of foreign threads is looked at.
const TICK_NS: u64 = 100_000_000;

/// Who is told how it goes while recording.
pub(crate) trait StatusLine {
    /// So much has been recorded by `now`, in nanoseconds of the monotonic clock.
    fn show(&mut self, now: u64, totals: &Totals);
    /// What was shown is wiped.
    fn clear(&mut self);
}

/// What is recorded, ready to start.
pub(crate) struct Recording<'a> {
    pub(crate) host: &'a Host,
    pub(crate) plan: &'a SamplePlan,
    pub(crate) file: &'a FilePlan,
    pub(crate) rings: Rings,
    /// Threads that are recorded, where the scope names tasks that run.
    pub(crate) threads: Vec<Alive>,
    pub(crate) output: Output<'a>,
    pub(crate) signals: &'a Signals,
    pub(crate) control: Option<Control>,
    /// `--reserve=yield`: who tells when somebody else wants the hardware.
    pub(crate) watcher: Option<Watcher>,
    /// Sampling is asked for: no delay, no order stands against it.
    pub(crate) is_on: bool,
    /// Somebody else has reserved the hardware.
    pub(crate) is_yielding: bool,
}

/// What a recording came to.
pub(crate) struct Run {
    pub(crate) totals: Totals,
    /// Records lost, by instance.
    pub(crate) lost: Vec<(Instance, u64)>,
    pub(crate) outcome: Option<Outcome>,
    /// pmc was told to end by this signal.
    pub(crate) interrupted: Option<i32>,
    /// Writing failed: the recording ended there, and is readable up to there.
    pub(crate) failed: Option<Error>,
    /// `--max-size` was reached.
    pub(crate) is_full: bool,
    /// `--timeout` ended it.
    pub(crate) timed_out: bool,
    /// Samples that were to be unwound and keep their copy of the stack.
    pub(crate) kept: u64,
    /// How chains end that were made while recording.
    pub(crate) ends: Ends,
}

/// Why waiting ended.
#[derive(Default)]
struct Woken {
    gone: Vec<u64>,
}

impl Recording<'_> {
    /// Records until the end.
    ///
    /// # Errors
    /// A command that cannot be started (status 126 or 127), and what the kernel says of waiting. What writing says is in
    /// the [`Run`].
    pub(crate) fn run(mut self, held: Option<Held>, status: &mut dyn StatusLine) -> Result<Run> {
        let poll = self.watch()?;
        let written = self.tell_what_is_there(held.as_ref());
        if self.plan.course.delay == Delay::None {
            self.rings.start().map_err(starting)?;
            self.is_on = true;
        }
        self.give_way()?;
        let start = monotonic_ns();
        let command = match held {
            Some(held) => Some(launch::release(held, &self.plan.course.command)?),
            None => None,
        };
        let mut end = Ending::default();
        let mut failed = written.err();
        if failed.is_none() {
            failed = self.output.take_place().err().map(Error::from);
        }
        let mut is_full = false;
        let mut delay_until = match self.plan.course.delay {
            Delay::Ns(ns) => Some(start + ns),
            _ => None,
        };
        let timeout_at = self.plan.course.timeout_ns.map(|ns| start + ns);
        let watch_threads = command.is_none() && !self.threads.is_empty();
        let mut next_tick = (watch_threads || self.watcher.is_some()).then_some(start + TICK_NS);
        let each_drain = if self.output.descriptor().is_some() { DRAIN_UNWINDING_NS } else { DRAIN_NS };
        let mut next_drain = start + each_drain;
        let mut switch_at = self.switch_after(start);
        // One ring may wait until others are drained, but not for ever.
        while !end.over() && failed.is_none() && !is_full {
            let deadlines = [Some(next_drain), delay_until, timeout_at, next_tick, switch_at];
            let deadline = deadlines.into_iter().flatten().min().unwrap_or(next_drain);
            let woken = wait(&poll, Duration::from_nanos(deadline.saturating_sub(monotonic_ns())))?;
            for ring in woken.gone {
                self.forget(&poll, ring);
            }
            let mut snapshot = false;
            while let Some(caught) = self.signals.next() {
                if caught.signal == signal::USR2 {
                    snapshot = true;
                } else {
                    end.signal(caught, command.as_ref());
                }
            }
            if let Some(command) = &command {
                let outcome = command.try_wait().map_err(|e| Error::io("waiting for the command", e))?;
                end.outcome = end.outcome.or(outcome);
            }
            self.obey(&mut end, &mut snapshot)?;
            let now = monotonic_ns();
            if delay_until.is_some_and(|at| now >= at) {
                delay_until = None;
                self.switch_on(true)?;
            }
            if next_tick.is_some_and(|at| now >= at) {
                next_tick = Some(now + TICK_NS);
                end.stopped |= watch_threads && !any_lives(self.host, &mut self.threads);
                self.give_way()?;
            }
            end.timed_out |= timeout_at.is_some_and(|at| now >= at);
            next_drain = now + each_drain;
            failed = self.drain().err();
            let switch = match self.file.rotation {
                Some(Rotation::Bytes(most)) => self.output.bytes() >= most,
                Some(Rotation::Ns(_)) => switch_at.is_some_and(|at| now >= at),
                Some(Rotation::Signal) => snapshot,
                None => self.file.snapshots && snapshot,
            };
            if switch && failed.is_none() {
                failed = self.switch().err();
                switch_at = self.switch_after(now);
            }
            is_full = self.file.max_size.is_some_and(|most| self.output.totals().bytes >= most);
            status.show(now, &self.output.totals());
        }
        status.clear();
        self.end(end, command, failed, is_full)
    }

    /// Stops, takes what is left, ends the file.
    fn end(
        mut self,
        mut end: Ending,
        command: Option<Running>,
        mut failed: Option<Error>,
        is_full: bool,
    ) -> Result<Run> {
        let _ = self.rings.disable_where(|_| true);
        let command = command.filter(|_| end.outcome.is_none());
        if let Some(command) = &command {
            command.kill(signal::TERM);
        }
        if failed.is_none() {
            failed = self.take_rest().err();
        }
        let lost = self.rings.lost();
        if failed.is_none() {
            failed = self.tell_lost(&lost).err();
        }
        let finished = self.output.finish();
        let failed = failed.or(finished.err());
        let totals = self.output.totals();
        // All is written. A command that takes no notice of SIGTERM is not waited for after a signal to us.
        while let Some(command) = command.as_ref().filter(|_| end.outcome.is_none() && !end.insisted) {
            end.outcome = command.try_wait().map_err(|e| Error::io("waiting for the command", e))?;
            if end.outcome.is_none() {
                end.signal(self.signals.wait().map_err(|e| Error::io("waiting for the command", e))?, None);
            }
        }
        let slow = self.rings.slow_to_close();
        if slow > 0 {
            // Closing tracepoints takes the kernel its time; nobody needs to wait for it.
            crate::sys::process::close_behind();
        }
        let (outcome, interrupted, timed_out) = (end.outcome, end.interrupted(), end.timed_out);
        let (kept, ends) = (self.output.kept(), self.output.ends());
        Ok(Run { totals, lost, outcome, interrupted, failed, is_full, timed_out, kept, ends })
    }

    fn take_rest(&mut self) -> Result<()> {
        let Self { rings, output, .. } = self;
        rings.drain(|ring, slices| output.take_ring(ring, slices))?;
        rings.snapshot(|ring, slices| output.take_snapshot(ring, slices))?;
        output.end_round()?;
        output.settle(true)
    }

    /// The kernel tells of losses when there is room again; what was lost at the very end, we tell.
    fn tell_lost(&mut self, lost: &[(Instance, u64)]) -> Result<()> {
        let all: u64 = lost.iter().map(|(_, lost)| lost).sum();
        let untold = all.saturating_sub(self.output.totals().lost);
        if let Some((instance, _)) = lost.iter().max_by_key(|(_, lost)| lost).filter(|_| untold > 0) {
            let mut record = Encoder::new(self.output.trailer());
            record.lost(instance.id, untold);
            self.output.take(&[record.bytes()])?;
        }
        Ok(())
    }

    fn drain(&mut self) -> Result<()> {
        let Self { rings, output, .. } = self;
        let bytes = rings.drain(|ring, slices| output.take_ring(ring, slices))?;
        if bytes > 0 && output.begin_second_pass() {
            rings.drain(|ring, slices| output.take_ring(ring, slices))?;
        }
        // What a backward ring keeps is older than what the others have brought: then there are no rounds.
        if bytes > 0 && !rings.has_backward() {
            output.end_round()?;
        }
        output.tick()
    }

    /// Ends a file of a row and begins the next, which must know again what is there.
    fn switch(&mut self) -> Result<()> {
        // Whoever runs now may belong to what is recorded. All are looked at twice: who ends while the files are
        // changed was there before, who begins is there after.
        let mut early = Encoder::new(self.output.trailer());
        self.host.processes().into_iter().for_each(|pid| self.tell_process(pid, &mut early));
        self.drain()?;
        let Self { rings, output, .. } = self;
        rings.snapshot(|ring, slices| output.take_snapshot(ring, slices))?;
        output.end_round()?;
        output.switch()?;
        let mut out = Encoder::new(self.output.trailer());
        self.tell_events_and_kernel(&mut out);
        self.output.take(&[out.bytes(), early.bytes()])?;
        out.clear();
        for pid in self.host.processes() {
            self.tell_process(pid, &mut out);
            if out.bytes().len() >= ENOUGH {
                self.output.take(&[out.bytes()])?;
                out.clear();
            }
        }
        self.output.take(&[out.bytes()])?;
        Ok(())
    }

    fn switch_after(&self, now: u64) -> Option<u64> {
        match self.file.rotation {
            Some(Rotation::Ns(ns)) => Some(now + ns),
            _ => None,
        }
    }

    /// Carries out what the control channel orders.
    fn obey(&mut self, end: &mut Ending, snapshot: &mut bool) -> Result<()> {
        let Some(control) = &mut self.control else { return Ok(()) };
        let mut on = None;
        for order in control.orders()? {
            match order {
                Order::Enable | Order::Disable => {
                    self.is_on = order == Order::Enable;
                    on = Some(self.is_on);
                }
                Order::Snapshot => *snapshot = true,
                Order::Stop => end.stopped = true,
                Order::Ping => {}
            }
            // An order is carried out before it is answered.
            if let Some(on) = on.take() {
                switch(&self.rings, on, self.is_yielding).map_err(starting)?;
            }
            control.acknowledge();
        }
        Ok(())
    }

    fn switch_on(&mut self, on: bool) -> Result<()> {
        self.is_on = on;
        switch(&self.rings, on, self.is_yielding).map_err(starting)
    }

    /// `--reserve=yield`: the hardware's counters are left to whoever reserves them, as long as that lasts.
    fn give_way(&mut self) -> Result<()> {
        let Some(watcher) = &mut self.watcher else { return Ok(()) };
        let is_reserved = matches!(watcher.poll(), State::Reserved(_));
        if is_reserved == self.is_yielding {
            return Ok(());
        }
        self.is_yielding = is_reserved;
        if is_reserved {
            say::warn(&Warning::CountersLeftAlone);
            self.rings.disable_where(EventSpec::takes_counter).map_err(starting)
        } else if self.is_on {
            self.rings.enable_where(EventSpec::takes_counter).map_err(starting)
        } else {
            Ok(())
        }
    }

    // --- what is there before ---

    fn tell_what_is_there(&mut self, held: Option<&Held>) -> Result<()> {
        let mut out = Encoder::new(self.output.trailer());
        self.tell_events_and_kernel(&mut out);
        match (&self.plan.scope, held) {
            (Scope::Cpus(cpus), _) => {
                synthesize::idle(cpus, &mut out);
                for pid in self.host.processes() {
                    self.tell_process(pid, &mut out);
                    self.tell(&mut out, ENOUGH)?;
                }
            }
            (Scope::Command, Some(held)) => {
                // What it maps, the kernel tells from its exec on.
                let ids =
                    [std::process::id(), held.pid()].map(|pid| Thread { pid: pid as i32, tid: pid as i32 });
                let [parent, thread] = ids;
                out.fork(&Task { thread, parent, time: Default::default() });
                out.comm(thread, b"pmc");
            }
            _ => {
                let mut pids: Vec<u32> = self.threads.iter().map(|thread| thread.pid).collect();
                pids.sort_unstable();
                pids.dedup();
                for pid in pids {
                    self.tell_process(pid, &mut out);
                    self.tell(&mut out, ENOUGH)?;
                }
            }
        }
        out.finished_init();
        self.tell(&mut out, 0)
    }

    fn tell_events_and_kernel(&self, out: &mut Encoder) {
        // Which ring an id's records come from: readers of group values need it.
        let any = |number: Option<u32>| number.map_or(u64::MAX, u64::from);
        let rows: Vec<[u64; 4]> = self
            .rings
            .instances()
            .map(|one| [one.id, one.ring as u64, any(one.slot.cpu), any(one.slot.tid)])
            .collect();
        out.id_index(&rows);
        synthesize::kernel(self.host, out);
        if self.plan.options.cgroups {
            synthesize::cgroups(self.host, out);
        }
    }

    fn tell_process(&self, pid: u32, out: &mut Encoder) {
        let extent = Extent {
            // Whoever unwinds copies of stacks wants to know of data, too.
            data_mappings: self.plan.options.data_mappings
                || !self.plan.unwinds && matches!(self.plan.options.call_graph, Some(CallGraph::Dwarf(_))),
            namespaces: self.plan.options.namespaces,
        };
        if let Some(threads) = self.host.threads(pid) {
            synthesize::process(self.host, pid, &threads, extent, out);
        }
    }

    fn tell(&mut self, out: &mut Encoder, least: usize) -> Result<()> {
        if out.bytes().len() >= least {
            self.output.tell(out.bytes())?;
            out.clear();
        }
        Ok(())
    }

    // --- waiting ---

    /// Collects what can wake us. Rings have their index as their number; the others are looked at whoever woke us.
    fn watch(&self) -> Result<std::os::fd::OwnedFd> {
        let watching = |error: rustix::io::Errno| Error::io("watching the rings", io::Error::from(error));
        let poll = epoll::create(epoll::CreateFlags::CLOEXEC).map_err(watching)?;
        let add = |fd: BorrowedFd<'_>, number: u64| {
            epoll::add(&poll, fd, epoll::EventData::new_u64(number), epoll::EventFlags::IN)
        };
        for (ring, fd) in self.rings.descriptors_to_watch() {
            add(fd, ring as u64).map_err(watching)?;
        }
        add(self.signals.as_fd(), u64::MAX).map_err(watching)?;
        if let Some(unwound) = self.output.descriptor() {
            add(unwound, u64::MAX).map_err(watching)?;
        }
        if let Some(orders) = self.control.as_ref().and_then(Control::readable) {
            // A file or /dev/null cannot be waited for: it is looked at with every drain.
            let _ = add(orders, u64::MAX);
        }
        Ok(poll)
    }

    /// A descriptor that has hung up would wake us for ever. Its ring may have other threads to write into it; what it still
    /// holds is drained all the same.
    fn forget(&mut self, poll: &std::os::fd::OwnedFd, number: u64) {
        if number == u64::MAX {
            if let Some(orders) = self.control.as_ref().and_then(Control::readable) {
                let _ = epoll::delete(poll, orders);
            }
            return;
        }
        let ring = number as usize;
        if let Some((_, fd)) = self.rings.descriptors_to_watch().find(|(at, _)| *at == ring) {
            let _ = epoll::delete(poll, fd);
        }
        if let Some(fd) = self.rings.watch_next(ring) {
            let _ = epoll::add(poll, fd, epoll::EventData::new_u64(number), epoll::EventFlags::IN);
        }
    }
}

fn wait(poll: &std::os::fd::OwnedFd, time: Duration) -> Result<Woken> {
    let mut events =
        [epoll::Event { flags: epoll::EventFlags::empty(), data: epoll::EventData::new_u64(0) }; 64];
    let time = Timespec { tv_sec: time.as_secs() as i64, tv_nsec: time.subsec_nanos().into() };
    let count = match epoll::wait(poll, &mut events[..], Some(&time)) {
        Ok(count) => count,
        Err(rustix::io::Errno::INTR) => 0,
        Err(error) => return Err(Error::io("waiting", io::Error::from(error))),
    };
    let over = epoll::EventFlags::HUP | epoll::EventFlags::ERR;
    let gone = events[..count]
        .iter()
        .map(|event| (event.flags, event.data))
        .filter(|(flags, _)| flags.intersects(over));
    Ok(Woken { gone: gone.map(|(_, data)| data.u64()).collect() })
}

/// Starts or stops sampling, but for the hardware's events while those are left to somebody else.
fn switch(rings: &Rings, on: bool, is_yielding: bool) -> io::Result<()> {
    match on {
        true => rings.enable_where(|event| !(is_yielding && event.takes_counter())),
        false => rings.disable_where(|_| true),
    }
}

fn starting(error: io::Error) -> Error {
    Error::io("starting the events", error)
}
