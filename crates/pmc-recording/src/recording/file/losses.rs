//! Reports losses in the file, for readers that only know its records.
//!
//! Receives the number of lost records from the kernel's counters and from the records of the file. Finds
//! losses that the file lacks, because the kernel writes a `LOST` record only with the next record that fits
//! into the ring. Encodes `LOST_SAMPLES` records, which contain the same losses again for each event, because
//! perf prints only these. Readers must not add up the two.
//!
//! ```text
//!   file   records ··· LOST ··· records │ LOST (rest) │ LOST_SAMPLES for each event
//! ```

use rustc_hash::FxHashMap;

use pmc_events::counter::rings::InstanceReading;
use pmc_perfdata::record::encode::Encoder;

/// The `LOST_SAMPLES` records of a recording.
#[derive(Debug, Default)]
pub(super) struct LossReport {
    /// Number of lost records of each event instance, with its id, from the kernel's counters.
    counters: Vec<(u64, u64)>,
    /// Number of lost records of each event instance when the measurement began.
    before: FxHashMap<u64, u64>,
    /// Number of losses in the records written so far, by event id, and in all.
    by_event: FxHashMap<u64, u64>,
    reported: u64,
    /// Number of losses in the kernel's own `LOST_SAMPLES` records in the finished files.
    by_kernel: u64,
}

impl LossReport {
    /// Begins the measurement: earlier losses do not count.
    pub(super) fn begin(&mut self, readings: &[InstanceReading]) {
        self.before = readings.iter().map(|reading| (reading.instance.id, reading.lost)).collect();
    }

    /// Returns the readings without the losses from before the measurement.
    pub(super) fn since_begin(&self, mut readings: Vec<InstanceReading>) -> Vec<InstanceReading> {
        for InstanceReading { instance, lost, .. } in &mut readings {
            *lost = lost.saturating_sub(self.before.get(&instance.id).copied().unwrap_or(0));
        }
        readings
    }

    /// Stores the kernel's counters. `elsewhere` has the losses in rings of holders, each with an event id.
    pub(super) fn count(
        &mut self,
        readings: &[InstanceReading],
        elsewhere: impl Iterator<Item = (u64, u64)>,
    ) {
        let own = readings.iter().map(|reading| (reading.instance.id, reading.lost));
        self.counters = own.chain(elsewhere).collect();
    }

    /// Returns the losses that no record reports, with the id of the event that lost most. `reported` is the
    /// number of losses in records.
    pub(super) fn unwritten(&self, reported: u64) -> Option<(u64, u64)> {
        let counted: u64 = self.counters.iter().map(|(_, lost)| lost).sum();
        let (id, _) = self.counters.iter().max_by_key(|(_, lost)| lost)?;
        Some((*id, counted.saturating_sub(reported))).filter(|(_, lost)| *lost > 0)
    }

    /// Writes the records of a file. `lost` is the number of losses since the recording began, and
    /// `by_kernel` the part that the kernel's `LOST_SAMPLES` records in this file report. The first event
    /// gets losses that no counter contains, because kernels before 6.0 do not count by event. With `has_id`,
    /// the records end with the event's id.
    pub(super) fn write_samples(&mut self, lost: u64, by_kernel: u64, has_id: bool, out: &mut Encoder) {
        self.by_kernel = self.by_kernel.saturating_add(by_kernel);
        let mut rest = lost.saturating_sub(self.by_kernel).saturating_sub(self.reported);
        self.reported += rest;
        let mut parts: Vec<(u64, u64)> = Vec::new();
        for &(id, counted) in &self.counters {
            let reported = self.by_event.entry(id).or_default();
            let part = counted.saturating_sub(*reported).min(rest);
            *reported += part;
            rest -= part;
            parts.push((id, part));
        }
        match parts.first_mut() {
            Some((_, part)) => *part += rest,
            None => parts.push((0, rest)),
        }
        for (id, part) in parts.into_iter().filter(|(_, part)| *part > 0) {
            out.lost_samples(part, has_id.then_some(id));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pmc_perfdata::record::{RawRecord, Record, Records};

    /// The records that a report writes for these losses: event id and number.
    fn written(
        report: &mut LossReport,
        lost: u64,
        by_kernel: u64,
        counters: &[(u64, u64)],
    ) -> Vec<(u64, u64)> {
        let mut out = Encoder::new(size_of::<u64>());
        report.counters = counters.to_vec();
        report.write_samples(lost, by_kernel, true, &mut out);
        let read = |raw: RawRecord<'_>| {
            let Some(Record::LostSamples(lost)) = raw.parse() else { panic!("{raw:?}") };
            (raw.bytes.last_chunk().map_or(0, |id| u64::from_ne_bytes(*id)), lost)
        };
        Records::new(out.bytes()).map(read).collect()
    }

    #[test]
    fn each_file_reports_each_loss_once() {
        let mut report = LossReport::default();
        assert_eq!(written(&mut report, 0, 0, &[(5, 0)]), []);
        // Only one of the four losses of event 5 has a `LOST` record in the first file.
        assert_eq!(written(&mut report, 3, 0, &[(4, 2), (5, 4)]), [(4, 2), (5, 1)]);
        assert_eq!(written(&mut report, 3, 0, &[(4, 2), (5, 4)]), []);
        assert_eq!(written(&mut report, 9, 0, &[(4, 2), (5, 7)]), [(5, 6)]);
        // The kernel has reported three of the next seven.
        assert_eq!(written(&mut report, 16, 3, &[(4, 2), (5, 11)]), [(5, 4)]);
        assert_eq!(written(&mut report, 17, 0, &[(4, 3), (5, 11)]), [(4, 1)]);
    }

    #[test]
    fn losses_without_a_counter_belong_to_the_first_event() {
        assert_eq!(written(&mut LossReport::default(), 8, 0, &[(4, 0), (5, 3)]), [(4, 5), (5, 3)]);
        assert_eq!(written(&mut LossReport::default(), 8, 0, &[]), [(0, 8)]);
    }

    #[test]
    fn losses_after_the_last_record_belong_to_the_event_that_lost_most() {
        let mut report = LossReport::default();
        assert_eq!(report.unwritten(0), None);
        report.counters = vec![(4, 2), (5, 9)];
        assert_eq!(report.unwritten(3), Some((5, 8)));
        assert_eq!(report.unwritten(11), None);
        // Records without a counter were lost too.
        assert_eq!(report.unwritten(12), None);
    }
}
