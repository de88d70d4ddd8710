//! Puts the records of all rings into time order as they arrive.
//!
//! Unlike [`Batch`](super::Batch), also sorts samples across rings, because the two events of a pair may be
//! in different rings.

use super::super::order::BufferedRecords;
use pmc_perfdata::record::{Layouts, RawRecord, kind, walk};

/// Records that are waiting until no earlier record can arrive.
#[derive(Default)]
pub struct RecordMerge {
    held: BufferedRecords<MergedRecord>,
    joint: Vec<u8>,
    /// Total number of records added.
    added: u64,
}

/// Information about a waiting record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MergedRecord {
    /// The record's time; 0 if it has none.
    pub time: u64,
    /// The event of a sample with an unknown id.
    pub owner: Option<usize>,
    /// The record's sequence number, in the order in which records were added.
    pub number: u64,
}

impl RecordMerge {
    /// Adds the contents of a ring; see [`Batch::take`](super::Batch::take).
    pub fn take(&mut self, slices: &[&[u8]], layouts: &Layouts, owner: Option<usize>) {
        let Self { held, joint, added } = self;
        walk(slices, joint, |raw| {
            let owner = owner.filter(|_| raw.kind == kind::SAMPLE);
            let time = layouts.time(raw).or_else(|| layouts.sample_of(raw, owner)?.1.time());
            let time = time.map_or(0, |time| time.0);
            held.add(time, MergedRecord { time, owner, number: *added }, raw.bytes);
            *added += 1;
        });
    }

    /// Returns the number of waiting records.
    pub fn waiting(&self) -> usize {
        self.held.len()
    }

    /// Returns the records added since [`waiting`](Self::waiting) returned `before`. A release makes earlier
    /// values of `before` invalid.
    pub fn added_after(&self, before: usize) -> impl Iterator<Item = (RawRecord<'_>, MergedRecord)> {
        self.held.added_after(before)
    }

    /// Passes all records with times up to `horizon` to `visit`, in time order. Keeps later records.
    ///
    /// # Errors
    /// Fails if `visit` fails.
    pub fn release_until<E>(
        &mut self,
        horizon: u64,
        mut visit: impl FnMut(&RawRecord<'_>, MergedRecord) -> Result<(), E>,
    ) -> Result<(), E> {
        self.held
            .release(horizon, &mut |records| records.iter().try_for_each(|(raw, held)| visit(raw, *held)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pmc_perfdata::record::encode::Encoder;
    use pmc_sys::abi::attr::kind::SOFTWARE;
    use pmc_sys::abi::{Attr, sample_type};

    #[test]
    fn records_of_all_rings_come_in_time_order_after_the_horizon() {
        let mut attr = Attr::new(SOFTWARE, 0);
        attr.set_sample_type(sample_type::TIME);
        let layouts = Layouts::new([(&attr, &[][..])]);
        let ring = |times: &[u64]| {
            let mut out = Encoder::new(0);
            times.iter().for_each(|time| out.sample(0, &[*time]));
            out.bytes().to_vec()
        };
        let mut merge = RecordMerge::default();
        merge.take(&[&ring(&[10, 40, 60])], &layouts, None);
        // A record may wrap around the end of the ring's memory.
        let wrapped = ring(&[20, 30, 50]);
        merge.take(&[&wrapped[..20], &wrapped[20..]], &layouts, None);
        // The records of the second ring, by their numbers.
        let added: Vec<(u64, u64)> = merge.added_after(3).map(|(_, held)| (held.number, held.time)).collect();
        assert_eq!((merge.waiting(), added), (6, vec![(3, 20), (4, 30), (5, 50)]));
        let mut released = |horizon| {
            let mut times = Vec::new();
            let visit = |raw: &RawRecord<'_>, held: MergedRecord| {
                assert_eq!(layouts.time(raw).map(|time| time.0), Some(held.time));
                times.push((held.time, held.number));
                Ok::<(), ()>(())
            };
            merge.release_until(horizon, visit).map(|()| times)
        };
        assert_eq!(released(45), Ok(vec![(10, 0), (20, 3), (30, 4), (40, 1)]));
        assert_eq!(released(u64::MAX), Ok(vec![(50, 5), (60, 2)]));
        assert_eq!(released(u64::MAX), Ok(vec![]));
        // Records with equal times stay in the order in which they were added.
        merge.take(&[&ring(&[7])], &layouts, None);
        merge.take(&[&ring(&[7])], &layouts, None);
        let mut numbers = Vec::new();
        let visit = |_: &RawRecord<'_>, held: MergedRecord| {
            numbers.push(held.number);
            Ok::<(), ()>(())
        };
        merge.release_until(7, visit).unwrap();
        assert_eq!(numbers, [6, 7]);
    }
}
