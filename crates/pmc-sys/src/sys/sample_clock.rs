//! The kernel's default clock for samples, which `clock_gettime(2)` cannot read.
//!
//! Returns the same time on this clock and on the wall clock ([`ClockPair`]), so that readers of a recording
//! know the date of each sample. The kernel writes a sample when this thread touches a new page, and pmc
//! reads the wall clock before and after:
//!
//! ```text
//!   wall clock   before ──────────── after        the sample's time is the same as that of the middle,
//!   this thread         page fault                give or take half the distance
//!   sample              time
//! ```
//! The header page of a ring also describes this clock, but only if the kernel's clock is the CPU's counter.
//! In many virtual machines it is not.

use std::convert::Infallible;
use std::io;

use memmap2::MmapMut;

use super::clock::{ClockPair, WallBracket};
use super::perf::{EventFd, OpenTarget};
use super::ring::{Direction, Ring};
use crate::abi::attr::{Flag, kind};
use crate::abi::{Attr, generic, sample_type};

/// Reads the clock by means of a private event, which counts only while the clock is read.
#[derive(Debug)]
pub struct SampleClock {
    event: EventFd,
    ring: Ring,
}

impl SampleClock {
    /// Opens the event for the calling thread. Only this thread can read the clock.
    ///
    /// # Errors
    /// Returns the kernel's error, for example if this user may not open events, or may not lock two more
    /// pages.
    pub fn open() -> io::Result<Self> {
        let mut attr = Attr::new(kind::SOFTWARE, generic::PAGE_FAULTS);
        attr.set_period(1);
        attr.set_sample_type(sample_type::TIME | sample_type::ADDR);
        attr.set(Flag::ExcludeKernel, true);
        attr.set(Flag::Disabled, true);
        let event = EventFd::open(&attr, OpenTarget::Task(0), None)?;
        let ring = Ring::map(&event, 1, Direction::Forward)?;
        Ok(Self { event, ring })
    }

    /// Reads the clock together with the wall clock. Returns `None` if the kernel wrote no sample.
    pub fn read(&mut self) -> Option<ClockPair> {
        ClockPair::most_exact(|| self.read_once())
    }

    fn read_once(&mut self) -> Option<ClockPair> {
        let mut page = MmapMut::map_anon(1).ok()?;
        let address = page.as_ptr() as u64;
        self.event.switch(true).ok()?;
        let ((), bracket) = WallBracket::around(|| page[0] = 1);
        self.event.switch(false).ok()?;
        let mut time = None;
        let Ok(_) = self.ring.drain(|slices| {
            time = time_of(&slices.concat(), address);
            Ok::<(), Infallible>(())
        });
        bracket?.pair(time?)
    }
}

/// Returns the time of the last sample of a fault at `address`, in records with the fields of
/// [`SampleClock::open`].
fn time_of(records: &[u8], address: u64) -> Option<u64> {
    let word =
        |record: &[u8], at: usize| record.get(at..)?.first_chunk().map(|word| u64::from_ne_bytes(*word));
    let (mut rest, mut found) = (records, None);
    while let Some(size) = rest.get(6..8).map(|size| usize::from(u16::from_ne_bytes([size[0], size[1]]))) {
        let Some((record, after)) = rest.split_at_checked(size).filter(|_| size >= 8) else { break };
        if record.starts_with(&SAMPLE.to_ne_bytes()) && word(record, 16) == Some(address) {
            found = word(record, 8);
        }
        rest = after;
    }
    found
}

/// `PERF_RECORD_SAMPLE`.
const SAMPLE: u32 = perf_event_open_sys::bindings::PERF_RECORD_SAMPLE;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_is_that_of_the_fault_at_the_address() {
        let record = |kind: u32, size: u16, words: &[u64]| {
            let head = [&kind.to_ne_bytes()[..], &[0; 2], &size.to_ne_bytes()].concat();
            [head, words.iter().flat_map(|word| word.to_ne_bytes()).collect()].concat()
        };
        let other = record(SAMPLE, 24, &[5, 0x2000]);
        let throttle = record(5, 32, &[6, 0x1000, 0]);
        let wanted = record(SAMPLE, 24, &[7, 0x1000]);
        let all = [&throttle[..], &wanted, &other].concat();
        assert_eq!(
            (time_of(&all, 0x1000), time_of(&all, 0x2000), time_of(&all, 0)),
            (Some(7), Some(5), None)
        );
        assert_eq!(time_of(&record(SAMPLE, 0, &[7, 0x1000]), 0x1000), None);
        assert_eq!(time_of(&wanted[..20], 0x1000), None);
    }

    #[test]
    fn pairs_agree_with_each_other() {
        let Ok(mut clock) = SampleClock::open() else { return };
        let [first, second] =
            [clock.read(), clock.read()].map(|pair| pair.expect("the kernel writes samples"));
        assert!(first.clock_ns < second.clock_ns && first.wall_ns < second.wall_ns, "{first:?} {second:?}");
        // The clocks run at nearly the same rate, so the times between the readings are nearly the same.
        let [clock, wall] = [second.clock_ns - first.clock_ns, second.wall_ns - first.wall_ns];
        let allowed = first.uncertainty_ns + second.uncertainty_ns + wall / 100 + 1;
        assert!(clock.abs_diff(wall) <= allowed, "{first:?} {second:?}");
    }
}
