//! How often rings are drained into a file.

/// Rings are drained at least so often, so that a killed recorder has written everything but the last moment.
const DRAIN_NS: u64 = 400_000_000;
/// The same where some records wait for another round before they are unwound and written.
const DRAIN_UNWINDING_NS: u64 = 200_000_000;
/// The first drain comes this soon, the next after twice the time, and so on: a command's first processes may
/// end soon, and with them what only they see (their roots).
const FIRST_DRAIN_NS: u64 = 10_000_000;

/// The interval between drains, short while a recording is young.
#[derive(Debug)]
pub(super) struct DrainPace {
    next: u64,
    usual: u64,
}

impl DrainPace {
    pub(super) fn new(unwinds: bool) -> Self {
        Self { next: FIRST_DRAIN_NS, usual: if unwinds { DRAIN_UNWINDING_NS } else { DRAIN_NS } }
    }

    /// Nanoseconds until the next drain.
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
    fn a_young_recording_is_drained_often() {
        let mut pace = DrainPace::new(false);
        let all: Vec<u64> = (0..8).map(|_| pace.advance() / 1_000_000).collect();
        assert_eq!(all, [10, 20, 40, 80, 160, 320, 400, 400]);
    }
}
