//! The interval at which rings are drained into a file.

/// Maximum interval between drains; bounds what a killed recorder loses.
const DRAIN_NS: u64 = 400_000_000;
/// Maximum interval if stacks are unwound while recording, because some records are then held back until the
/// next round.
const DRAIN_UNWINDING_NS: u64 = 200_000_000;
/// The first interval between drains. Each later interval is twice as long, up to the maximum. The first
/// intervals are short because a command's first processes may end soon, and their root directories are
/// visible only while they run.
const FIRST_DRAIN_NS: u64 = 10_000_000;

/// The interval between drains, which is short at the beginning of a recording.
#[derive(Debug)]
pub(super) struct DrainPace {
    next: u64,
    usual: u64,
}

impl DrainPace {
    pub(super) fn new(unwinds: bool) -> Self {
        Self { next: FIRST_DRAIN_NS, usual: if unwinds { DRAIN_UNWINDING_NS } else { DRAIN_NS } }
    }

    /// Returns the nanoseconds until the next drain.
    pub(super) fn advance(&mut self) -> u64 {
        let next = self.next.min(self.usual);
        self.next = next * 2;
        next
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn new_recording_is_drained_often() {
        let mut pace = DrainPace::new(false);
        let all: Vec<u64> = (0..8).map(|_| pace.advance() / 1_000_000).collect();
        assert_eq!(all, [10, 20, 40, 80, 160, 320, 400, 400]);
    }
}
