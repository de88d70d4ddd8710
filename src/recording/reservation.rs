//! The hardware counters are also other people's: the prologue of every measurement that needs them, and
//! giving way meanwhile.
//!
//! Receives the policy of the plan; hands on what must be kept while counters are open ([`Prepared`]).
//! [`Activity`] says whether events are on, and why not: nobody has asked for them yet (`-D`, `--control`),
//! or somebody else has reserved the hardware (`--reserve=yield`). Leaves the protocol to
//! [`counter::reservation`](crate::counter::reservation).

use std::collections::BTreeSet;

use crate::abi::Attr;
use crate::abi::attr::kind;
use crate::counter::change::Change;
use crate::counter::reservation::{LockFile, Policy, Prepared, prepare};
use crate::error::{Result, say};
use crate::event::{EventGroup, EventSpec};
use crate::host::Host;

/// Does what the policy asks for, and says what was found, if any of the groups needs the hardware's
/// counters.
///
/// # Errors
/// A reservation that is required and cannot be had.
pub(crate) fn reserve<'a>(
    policy: Policy,
    groups: impl IntoIterator<Item = &'a EventGroup>,
    host: &Host,
) -> Result<Prepared> {
    // By itself pmc disturbs nobody for events that the machine cannot count anyway: those that the kernel
    // gives to the CPU's own PMU, where there is none.
    let can_count = || policy != Policy::Auto || host.core_pmu().is_some();
    let is_of_core = |event: &EventSpec| event.attr().is_some_and(|attr| attr.kind() < kind::FIRST_DYNAMIC);
    let takes = |event: &EventSpec| event.takes_counter() && (!is_of_core(event) || can_count());
    if !groups.into_iter().flat_map(|group| &group.events).any(takes) {
        return Ok(Prepared::default());
    }
    let prepared = prepare(policy, &LockFile::default_path(host))
        // No other policy is refused.
        .map_err(|error| error.explain("count without it: leave --reserve=require away"))?;
    prepared.findings.iter().for_each(say::warn);
    Ok(prepared)
}

/// Some of the events that are measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum EventChoice {
    /// All.
    All,
    /// Those that take a counter of the hardware.
    Hardware,
    /// The others.
    Software,
}

impl EventChoice {
    /// Whether an event is among them that takes a counter of the hardware, or does not.
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
    /// Starts all events, but those that the command starts when it executes.
    fn start(&mut self) -> Result<()>;

    /// Starts or stops some events, whatever started them before.
    fn switch(&mut self, on: bool, events: EventChoice) -> Result<()>;

    /// Starts or stops the event of this name, if it is among these.
    fn switch_named(&mut self, on: bool, name: &str, events: EventChoice) -> Result<()>;

    /// Changes the event of this name; without one, all that it can be of. `is_on`: whether they count.
    /// Otherwise why not.
    fn change(&self, change: Change, name: Option<&str>, is_on: bool) -> std::result::Result<(), String>;

    /// The events' names, in their order, with what was asked of the kernel for them.
    fn requests(&self) -> Vec<(&str, &Attr)>;

    /// Whether any event that is open takes a counter of the hardware: others have nothing to yield.
    fn takes_counters(&self) -> bool;

    /// The hardware is left to somebody else from now on, or not any more.
    fn yielding(&mut self, _is_yielding: bool) {}
}

/// Whether the events are on, and why not. Times are nanoseconds of the monotonic clock.
#[derive(Debug, Default)]
pub(crate) struct Activity {
    /// Asked for: by the start, the delay or an order.
    is_on: bool,
    /// Events for which that is the other way round, by an order of their own.
    but: BTreeSet<String>,
    /// On at any time of this interval.
    on_in_interval: bool,
    was_ever_on: bool,
    /// Since when the hardware is left to whoever has reserved it.
    yielding_since: Option<u64>,
    yielded_ns: u64,
}

impl Activity {
    /// The measurement begins: all is off. The hardware stays so while it is reserved; the rest is started
    /// `at_once`, or waits for [`switch`](Self::switch).
    pub(super) fn begin(
        &mut self,
        driven: &mut impl EventSwitch,
        at_once: bool,
        is_reserved: bool,
        now: u64,
    ) -> Result<()> {
        if is_reserved {
            self.yielding_since = Some(now);
            driven.yielding(true);
        }
        if !at_once {
            return Ok(());
        }
        self.note_on();
        if is_reserved { driven.switch(true, EventChoice::Software) } else { driven.start() }
    }

    fn note_on(&mut self) {
        (self.is_on, self.on_in_interval, self.was_ever_on) = (true, true, true);
    }

    /// Switches on or off, but for what is left to somebody else.
    pub(super) fn switch(&mut self, driven: &mut impl EventSwitch, on: bool) -> Result<()> {
        self.but.clear();
        if !on {
            self.is_on = false;
            return driven.switch(false, EventChoice::All);
        }
        self.note_on();
        driven.switch(true, self.startable())
    }

    /// Switches the event of a name on or off, unless it is left to somebody else.
    pub(super) fn switch_named(&mut self, driven: &mut impl EventSwitch, name: &str, on: bool) -> Result<()> {
        match on == self.is_on {
            true => drop(self.but.remove(name)),
            false => drop(self.but.insert(name.to_owned())),
        }
        if !on {
            return driven.switch_named(false, name, EventChoice::All);
        }
        (self.on_in_interval, self.was_ever_on) = (true, true);
        driven.switch_named(true, name, self.startable())
    }

    /// Whether all events are on, or the one of a name.
    pub(super) fn is_on(&self, name: Option<&str>) -> bool {
        self.is_on != name.is_some_and(|name| self.but.contains(name))
    }

    /// Whether every one is on, and none is left to somebody else.
    pub(super) fn all_run(&self) -> bool {
        self.is_on && self.but.is_empty() && self.yielding_since.is_none()
    }

    /// What may be started while the hardware is, or is not, left to somebody else.
    fn startable(&self) -> EventChoice {
        if self.yielding_since.is_some() { EventChoice::Software } else { EventChoice::All }
    }

    /// The measurement begins now: what was left to somebody else before does not count.
    pub(super) fn begins_at(&mut self, now: u64) {
        self.yielded_ns = 0;
        self.yielding_since = self.yielding_since.map(|_| now);
    }

    /// Leaves the hardware to a reservation, and takes it back.
    pub(super) fn heed(&mut self, driven: &mut impl EventSwitch, is_reserved: bool, now: u64) -> Result<()> {
        match (is_reserved, self.yielding_since) {
            (true, None) => {
                driven.yielding(true);
                driven.switch(false, EventChoice::Hardware)?;
                self.yielding_since = Some(now);
            }
            (false, Some(since)) => {
                driven.yielding(false);
                if self.is_on {
                    driven.switch(true, EventChoice::Hardware)?;
                }
                for name in &self.but {
                    driven.switch_named(!self.is_on, name, EventChoice::Hardware)?;
                }
                self.yielded_ns += now.saturating_sub(since);
                self.yielding_since = None;
            }
            _ => {}
        }
        Ok(())
    }

    /// An interval ends: whether the events were on in it.
    pub(super) fn end_interval(&mut self) -> bool {
        std::mem::replace(&mut self.on_in_interval, self.is_on || !self.but.is_empty())
    }

    /// Whether they ever were.
    pub(super) fn was_ever_on(&self) -> bool {
        self.was_ever_on
    }

    /// How long the hardware was left to somebody else until `now`, in nanoseconds.
    pub(super) fn yielded_ns(&self, now: u64) -> u64 {
        self.yielded_ns + self.yielding_since.map_or(0, |since| now.saturating_sub(since))
    }
}
