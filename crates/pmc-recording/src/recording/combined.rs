//! Counts events during a recording: one loop runs two measurements of the same command.
//!
//! The rings of the recording wake the loop, and the counters are read at intervals. An error while counting
//! ends the recording, but no records are lost.

use std::os::fd::BorrowedFd;

use super::drive::{Measurement, MeasurementHandler};
use super::ended_at_exec::ExecEnds;
use super::ending::EndConditions;
use super::reservation::{EventChoice, EventSwitch};
use pmc_events::counter::change::EventChange;
use pmc_events::counter::rings::Rings;
use pmc_sys::abi::Attr;
use pmc_sys::error::{Error, Result};

/// A recording and a counting measurement that run at the same time.
pub(super) struct CombinedMeasurement<A, B> {
    pub(super) recording: A,
    pub(super) counting: B,
    /// The error that stopped the counting.
    failed: Option<Error>,
}

impl<A, B> CombinedMeasurement<A, B> {
    pub(super) fn new(recording: A, counting: B) -> Self {
        Self { recording, counting, failed: None }
    }
}

impl<A: EventSwitch, B: EventSwitch> EventSwitch for CombinedMeasurement<A, B> {
    fn start(&mut self) -> Result<()> {
        self.recording.start()?;
        self.counting.start()
    }

    fn switch(&mut self, on: bool, events: EventChoice) -> Result<()> {
        self.recording.switch(on, events)?;
        self.counting.switch(on, events)
    }

    fn switch_named(&mut self, on: bool, name: &str, events: EventChoice) -> Result<()> {
        self.recording.switch_named(on, name, events)?;
        self.counting.switch_named(on, name, events)
    }

    fn change(
        &self,
        change: EventChange,
        name: Option<&str>,
        is_on: bool,
    ) -> std::result::Result<(), String> {
        self.recording.change(change, name, is_on)
    }

    fn requests(&self) -> Vec<(&str, &Attr)> {
        [self.recording.requests(), self.counting.requests()].concat()
    }

    fn takes_counters(&self) -> bool {
        self.recording.takes_counters() || self.counting.takes_counters()
    }

    fn yielding(&mut self, is_yielding: bool) {
        self.recording.yielding(is_yielding);
        self.counting.yielding(is_yielding);
    }
}

impl<A: MeasurementHandler, B: MeasurementHandler> MeasurementHandler for CombinedMeasurement<A, B> {
    fn rings(&mut self) -> Option<&mut Rings> {
        self.recording.rings()
    }

    fn triggers(&mut self) -> Option<&mut Rings> {
        self.recording.triggers()
    }

    fn waker(&self) -> Option<BorrowedFd<'_>> {
        self.recording.waker()
    }

    fn prepare(&mut self) -> Result<()> {
        self.recording.prepare()?;
        self.counting.prepare()
    }

    fn begin_window(&mut self) -> Result<u64> {
        self.counting.begin_window()?;
        self.recording.begin_window()
    }

    fn started(&mut self, measurement: &mut Measurement) -> Result<()> {
        self.recording.started(measurement)?;
        self.counting.started(measurement)
    }

    fn due(&self) -> Option<u64> {
        self.recording.due().into_iter().chain(self.counting.due()).min()
    }

    fn snapshot(&mut self) {
        self.recording.snapshot();
    }

    fn detach(&mut self, is_on: bool) -> bool {
        self.recording.detach(is_on)
    }

    fn work(&mut self, measurement: &mut Measurement) -> Result<()> {
        self.recording.work(measurement)?;
        if self.failed.is_none() {
            self.failed = self.counting.work(measurement).err();
        }
        measurement.ending.stopped |= self.failed.is_some();
        Ok(())
    }

    fn stop(&mut self, ending: &EndConditions) -> Result<()> {
        self.recording.stop(ending)?;
        self.counting.stop(ending)
    }

    fn finish(&mut self, measurement: &mut Measurement) -> Result<()> {
        self.recording.finish(measurement)?;
        self.failed.take().map_or_else(|| self.counting.finish(measurement), Err)
    }

    fn exec_ends(&mut self) -> Option<&mut ExecEnds> {
        self.recording.exec_ends()
    }

    fn waits_for_command(&self, ending: &EndConditions) -> bool {
        self.recording.waits_for_command(ending)
    }
}
