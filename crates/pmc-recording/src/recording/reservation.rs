//! Reservations of the hardware counters by pmc and other programs. pmc checks the reservations before a
//! measurement, and can yield the counters during the measurement.
//!
//! Receives the plan's policy; returns a [`PreparedReservation`] that must be kept while counters are open.
//! [`counter::reservation`](pmc_events::counter::reservation) implements the protocol.

use std::collections::BTreeSet;

use pmc_events::counter::change::EventChange;
use pmc_events::counter::reservation::{LockFile, Policy, PreparedReservation, prepare};
use pmc_events::event::{EventGroup, EventSpec};
use pmc_sys::abi::Attr;
use pmc_sys::abi::attr::kind;
use pmc_sys::error::{Advice, Result, say};
use pmc_sys::host::Host;

/// Applies the policy if any of the groups needs hardware counters, and prints its warnings.
///
/// # Errors
/// Fails if a required reservation is not available.
pub fn reserve<'a>(
    policy: Policy,
    groups: impl IntoIterator<Item = &'a EventGroup>,
    host: &Host,
) -> Result<PreparedReservation> {
    // With the default policy, pmc makes no reservation on a machine without a core PMU, because it cannot
    // count the events there anyway.
    let can_count = || policy != Policy::Auto || host.core_pmu().is_some();
    let is_of_core = |event: &EventSpec| event.attr().is_some_and(|attr| attr.kind() < kind::FIRST_DYNAMIC);
    let takes = |event: &EventSpec| event.takes_counter() && (!is_of_core(event) || can_count());
    if !groups.into_iter().flat_map(|group| &group.events).any(takes) {
        return Ok(PreparedReservation::default());
    }
    let mut prepared = prepare(policy, &LockFile::default_path(host))
        // Only the policy `require` can fail.
        .map_err(|error| {
            error.explain(Advice::options("omit --reserve=require to count without a reservation"))
        })?;
    prepared.warnings.drain(..).for_each(say::warn);
    Ok(prepared)
}

/// A subset of the measured events.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum EventChoice {
    /// All events.
    All,
    /// Events that use a hardware counter.
    Hardware,
    /// Events that do not use a hardware counter.
    Software,
}

impl EventChoice {
    /// Whether the choice includes events that use a hardware counter (`takes_counter`), or events that do
    /// not.
    pub(crate) fn has(self, takes_counter: bool) -> bool {
        match self {
            Self::All => true,
            Self::Hardware => takes_counter,
            Self::Software => !takes_counter,
        }
    }
}

/// Events that can be switched on and off.
pub(crate) trait EventSwitch {
    /// Starts all events except those that the command's exec starts.
    fn start(&mut self) -> Result<()>;

    /// Starts or stops the chosen events, even if an earlier call has already done so.
    fn switch(&mut self, on: bool, events: EventChoice) -> Result<()>;

    /// Starts or stops the event with this name, if it is among the chosen events.
    fn switch_named(&mut self, on: bool, name: &str, events: EventChoice) -> Result<()>;

    /// Changes the event with this name, or all events that support the change. `is_on` says whether they are
    /// counting. The error is the reason, as text.
    fn change(&self, change: EventChange, name: Option<&str>, is_on: bool)
    -> std::result::Result<(), String>;

    /// Returns the names and attrs of the events, in the order of the events.
    fn requests(&self) -> Vec<(&str, &Attr)>;

    /// Whether any open event uses a hardware counter. Otherwise there is nothing to yield.
    fn takes_counters(&self) -> bool;

    /// Called when the hardware is yielded, and when it is taken back.
    fn yielding(&mut self, _is_yielding: bool) {}
}

/// Tracks which events are on, and why events are off. Times are nanoseconds of the monotonic clock.
///
/// Events are off until they are switched on (`-D`, `--control`). Hardware events are also off while another
/// program has reserved the hardware (`--reserve=yield`).
#[derive(Debug, Default)]
pub(crate) struct Activity {
    /// Whether the events have been switched on: at the start, after the delay, or by a control command.
    is_on: bool,
    /// Names of the events that a control command has switched by name, and that are therefore in the
    /// opposite state.
    but: BTreeSet<String>,
    /// Whether any event was enabled during this interval.
    on_in_interval: bool,
    was_ever_on: bool,
    /// Time since which the hardware has been yielded; `None` if it is not yielded.
    yielding_since: Option<u64>,
    yielded_ns: u64,
}

impl Activity {
    /// Begins the measurement, with all events off. Hardware events stay off while the hardware is reserved.
    /// Other events start now if `at_once`; otherwise they wait for [`switch`](Self::switch).
    pub(super) fn begin(
        &mut self,
        handler: &mut impl EventSwitch,
        at_once: bool,
        is_reserved: bool,
        now: u64,
    ) -> Result<()> {
        if is_reserved {
            self.yielding_since = Some(now);
            handler.yielding(true);
        }
        if !at_once {
            return Ok(());
        }
        self.note_on();
        if is_reserved { handler.switch(true, EventChoice::Software) } else { handler.start() }
    }

    fn note_on(&mut self) {
        (self.is_on, self.on_in_interval, self.was_ever_on) = (true, true, true);
    }

    /// Switches all events on or off. Yielded events stay off.
    pub(super) fn switch(&mut self, handler: &mut impl EventSwitch, on: bool) -> Result<()> {
        self.but.clear();
        if !on {
            self.is_on = false;
            return handler.switch(false, EventChoice::All);
        }
        self.note_on();
        handler.switch(true, self.startable())
    }

    /// Switches the named event on or off. A yielded event stays off.
    pub(super) fn switch_named(
        &mut self,
        handler: &mut impl EventSwitch,
        name: &str,
        on: bool,
    ) -> Result<()> {
        match on == self.is_on {
            true => drop(self.but.remove(name)),
            false => drop(self.but.insert(name.to_owned())),
        }
        if !on {
            return handler.switch_named(false, name, EventChoice::All);
        }
        (self.on_in_interval, self.was_ever_on) = (true, true);
        handler.switch_named(true, name, self.startable())
    }

    /// Whether the named event is on. Without a name, whether events in general are on.
    pub(super) fn is_on(&self, name: Option<&str>) -> bool {
        self.is_on != name.is_some_and(|name| self.but.contains(name))
    }

    /// Whether all events are on, and none is yielded.
    pub(super) fn all_run(&self) -> bool {
        self.is_on && self.but.is_empty() && self.yielding_since.is_none()
    }

    /// Returns the events that may be started now: all events, or only software events while the hardware is
    /// yielded.
    fn startable(&self) -> EventChoice {
        if self.yielding_since.is_some() { EventChoice::Software } else { EventChoice::All }
    }

    /// Records that the measurement begins now. Discards the time for which the hardware was yielded earlier.
    pub(super) fn begins_at(&mut self, now: u64) {
        self.yielded_ns = 0;
        self.yielding_since = self.yielding_since.map(|_| now);
    }

    /// Yields the hardware to a reservation, or takes it back.
    pub(super) fn apply_reservation(
        &mut self,
        handler: &mut impl EventSwitch,
        is_reserved: bool,
        now: u64,
    ) -> Result<()> {
        match (is_reserved, self.yielding_since) {
            (true, None) => {
                handler.yielding(true);
                handler.switch(false, EventChoice::Hardware)?;
                self.yielding_since = Some(now);
            }
            (false, Some(since)) => {
                handler.yielding(false);
                if self.is_on {
                    handler.switch(true, EventChoice::Hardware)?;
                }
                for name in &self.but {
                    handler.switch_named(!self.is_on, name, EventChoice::Hardware)?;
                }
                self.yielded_ns += now.saturating_sub(since);
                self.yielding_since = None;
            }
            _ => {}
        }
        Ok(())
    }

    /// Ends an interval. Returns whether any event was on during it.
    pub(super) fn end_interval(&mut self) -> bool {
        std::mem::replace(&mut self.on_in_interval, self.is_on || !self.but.is_empty())
    }

    /// Whether any event was ever enabled.
    pub(super) fn was_ever_on(&self) -> bool {
        self.was_ever_on
    }

    /// Returns how long the hardware was yielded up to `now`, in nanoseconds.
    pub(super) fn yielded_ns(&self, now: u64) -> u64 {
        self.yielded_ns + self.yielding_since.map_or(0, |since| now.saturating_sub(since))
    }
}
