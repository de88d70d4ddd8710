//! Changes the sampling rate of an event in the live sampler while it runs.
//!
//! Receives requests through [`RateOrders`], and answers each with the new rate or the reason why the rate is
//! unchanged. [`EventChange`] decides what the kernel can change, except for clocks. In samples
//! of a clock, the kernel always writes the period with which the clock was opened. A live view can correct
//! that period; a file cannot.
//!
//! ```text
//! samples    ×   ×   ×   ×   ×    off │ on   ×     ×     ×     ×
//! period     4   4   4   4   4        │      4     4     4     4      ms, as written
//! corrected  4   4   4   4   4        │      8     8     8     8      Live::set_period, from here on
//! ```

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};

use rustix::event::{EventfdFlags, eventfd};

use super::sources::RecordSources;
use pmc_events::counter::change::{EventChange, SHORTEST_CLOCK_NS};
use pmc_sys::abi::attr::Flag;
use pmc_sys::abi::{Attr, generic};
use pmc_sys::error::{Error, Result};
use pmc_sys::host::Host;
use pmc_text::units::{S, thousands};

/// An order, and the channel on which to answer it.
pub(super) struct RateOrder {
    /// The event's index in the measurement.
    pub(super) event: usize,
    twice: bool,
    pub(super) answer: SyncSender<RateReply>,
}

/// The answer as text: the event's new rate, or the reason why the rate has not changed.
pub(super) type RateReply = std::result::Result<String, String>;

/// The sending end of the order channel.
pub struct RateOrders {
    orders: Sender<RateOrder>,
    wake: OwnedFd,
}

/// The receiving end of the order channel.
pub(super) struct RateRequests {
    orders: Receiver<RateOrder>,
    wake: OwnedFd,
    /// For each of our own events, its frequency, or its period if it has been opened with a period.
    rates: Vec<u64>,
    /// The maximum frequency.
    most: u64,
}

/// Creates both ends of the order channel.
///
/// # Errors
/// Fails if the kernel cannot create a descriptor.
pub(super) fn orders() -> Result<(RateOrders, RateRequests)> {
    let making = |error| Error::io("making an eventfd", error);
    let wake = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK).map_err(|e| making(e.into()))?;
    let woken = wake.try_clone().map_err(making)?;
    let (sender, receiver) = channel();
    let desk = RateRequests { orders: receiver, wake: woken, rates: Vec::new(), most: u64::MAX };
    Ok((RateOrders { orders: sender, wake }, desk))
}

impl RateOrders {
    /// Doubles or halves the sampling rate of the event with this index. Waits until the rate has changed.
    ///
    /// # Errors
    /// Returns the reason why the rate has not changed, as text.
    pub fn order(&self, event: usize, twice: bool) -> RateReply {
        let (answer, answered) = sync_channel(1);
        let sent = self.orders.send(RateOrder { event, twice, answer });
        let _ = rustix::io::write(&self.wake, &1u64.to_ne_bytes());
        // If the sampler has ended, the order and its answer channel are dropped.
        sent.ok().and_then(|()| answered.recv().ok()).unwrap_or_else(|| Err("sampling has ended".to_owned()))
    }
}

/// The change that a control command requires.
pub(super) struct RateChange {
    /// The event's name: all events with this name are changed.
    pub(super) name: String,
    pub(super) change: EventChange,
    /// For a clock: the corrected period of its later samples, in nanoseconds.
    pub(super) clock_ns: Option<u64>,
    rate: u64,
    words: String,
}

impl RateRequests {
    /// Records the rates of the events at the start of the measurement.
    pub(super) fn open(&mut self, sources: &RecordSources, host: &Host) {
        let rings = sources.rings();
        self.rates = rings.requests().take(rings.sampled_events()).map(|(_, attr)| attr.period()).collect();
        self.most = host.number("/proc/sys/kernel/perf_event_max_sample_rate").unwrap_or(u64::MAX);
    }

    /// Returns the descriptor that becomes readable when a request arrives.
    pub(super) fn waker(&self) -> BorrowedFd<'_> {
        self.wake.as_fd()
    }

    pub(super) fn next(&self) -> Option<RateOrder> {
        let _ = rustix::io::read(&self.wake, &mut [0u8; 8]);
        self.orders.try_recv().ok()
    }

    /// Computes the change that a control command requires.
    ///
    /// # Errors
    /// Returns the reason why the rate cannot be changed, as text.
    pub(super) fn change(
        &self,
        order: &RateOrder,
        sources: &RecordSources,
    ) -> std::result::Result<RateChange, String> {
        let own = self.rates.get(order.event).zip(sources.rings().requests().nth(order.event));
        let (&rate, (name, attr)) = own.ok_or("another process opened this event and chose its rate")?;
        change(name, attr, rate, order.twice, self.most)
    }

    /// Records that the change has been made, and returns the answer for the user.
    pub(super) fn made(&mut self, event: usize, change: RateChange) -> String {
        self.rates[event] = change.rate;
        change.words
    }
}

/// Computes the change of an event. `rate` is its current frequency or period; `most` is the highest
/// frequency.
fn change(
    name: &str,
    attr: &Attr,
    rate: u64,
    twice: bool,
    most: u64,
) -> std::result::Result<RateChange, String> {
    let is_frequency = attr.get(Flag::Freq);
    let shortest = if generic::is_clock(attr) { SHORTEST_CLOCK_NS } else { 1 };
    let next = if twice == is_frequency { rate.saturating_mul(2) } else { rate / 2 };
    let (next, bound) = match is_frequency {
        true => (next.clamp(1, most.min(S / shortest)), "samples per second is the kernel's limit"),
        false => (next.max(shortest), "is the shortest period"),
    };
    if next == rate {
        return Err(match is_frequency && rate == 1 {
            true => format!("{name}: one sample per second is the minimum"),
            false => format!("{name}: {} {bound}", thousands(rate)),
        });
    }
    let clock_ns = generic::is_clock(attr).then(|| if is_frequency { S / next } else { next });
    let change = match clock_ns {
        Some(ns) => EventChange::ClockPeriod(ns),
        None if is_frequency => EventChange::Frequency(next),
        None => EventChange::Period(next),
    };
    let words = match is_frequency {
        true => format!("{name}: {} samples per second", thousands(next)),
        false => format!("{name}: one sample every {}", thousands(next)),
    };
    Ok(RateChange { name: name.to_owned(), change, clock_ns, rate: next, words })
}

#[cfg(test)]
mod tests {
    use super::*;
    use pmc_sys::abi::attr::kind;
    use pmc_sys::abi::generic::CPU_CLOCK;

    #[test]
    fn rate_is_doubled_and_halved_within_bounds() {
        let mut cycles = Attr::new(kind::HARDWARE, 0);
        cycles.set_freq(4000);
        let words = |attr: &Attr, rate, twice| change("e", attr, rate, twice, 5000).map(|to| to.words);
        assert_eq!(words(&cycles, 4000, false), Ok("e: 2,000 samples per second".to_owned()));
        assert_eq!(words(&cycles, 4000, true), Ok("e: 5,000 samples per second".to_owned()));
        assert_eq!(
            words(&cycles, 5000, true),
            Err("e: 5,000 samples per second is the kernel's limit".to_owned())
        );
        assert_eq!(words(&cycles, 1, false), Err("e: one sample per second is the minimum".to_owned()));
        let mut misses = Attr::new(kind::HARDWARE, 3);
        misses.set_period(1000);
        assert_eq!(words(&misses, 1000, true), Ok("e: one sample every 500".to_owned()));
        assert_eq!(words(&misses, 1, true), Err("e: 1 is the shortest period".to_owned()));
        let mut clock = Attr::new(kind::SOFTWARE, CPU_CLOCK);
        clock.set_freq(4000);
        let to = change("e", &clock, 4000, false, 5000).unwrap_or_else(|why| panic!("{why}"));
        assert_eq!((to.change, to.clock_ns), (EventChange::ClockPeriod(500_000), Some(500_000)));
    }
}
