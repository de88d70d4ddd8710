//! The other side of a wait, as stored in samples of waits.

/// What ended a wait or, if the thread waited for a CPU, what ran on that CPU in the meantime. It is stored
/// as the sample's address ([`sample_type::ADDR`](pmc_sys::abi::sample_type::ADDR)).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub enum WaitPartner {
    /// Not recorded, or the wait is not over.
    #[default]
    Unknown,
    /// A thread.
    Thread(i32),
    /// The expiry of a timer.
    Timer,
    /// A device, or another CPU.
    Interrupt,
    /// Deferred work of an interrupt, such as receiving packets.
    SoftIrq,
    /// Nothing: the CPU was idle.
    Idle,
}

impl WaitPartner {
    /// The partners that are not threads.
    const OTHERS: [Self; 4] = [Self::Timer, Self::Interrupt, Self::SoftIrq, Self::Idle];

    /// Returns the partner encoded in this word.
    pub fn of_word(word: u64) -> Self {
        match i32::try_from(word) {
            Ok(0) => Self::Unknown,
            Ok(tid) => Self::Thread(tid),
            Err(_) => Self::OTHERS.into_iter().find(|one| one.word() == word).unwrap_or_default(),
        }
    }

    /// Returns the word that encodes the partner: a thread's id, 0 if unknown, else a small negative number.
    pub fn word(self) -> u64 {
        match self {
            Self::Unknown => 0,
            Self::Thread(tid) => u64::try_from(tid).unwrap_or(0),
            other => {
                let at = Self::OTHERS.iter().position(|one| *one == other).unwrap_or(0);
                (at as u64).wrapping_neg().wrapping_sub(2)
            }
        }
    }

    /// Returns the word shown to users; `None` for threads, which have names, and for unknown partners.
    pub fn name(self) -> Option<&'static str> {
        match self {
            Self::Unknown | Self::Thread(_) => None,
            Self::Timer => Some("[timer]"),
            Self::Interrupt => Some("[interrupt]"),
            Self::SoftIrq => Some("[softirq]"),
            Self::Idle => Some("[idle]"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::WaitPartner as P;

    #[test]
    fn words_and_partners_match() {
        for partner in
            [P::Unknown, P::Thread(1), P::Thread(i32::MAX), P::Timer, P::Interrupt, P::SoftIrq, P::Idle]
        {
            assert_eq!(P::of_word(partner.word()), partner);
        }
        // Words from a hostile file, and from a field that was not recorded.
        for word in [u64::MAX, u64::MAX - 9, 1 << 31, 1 << 63] {
            assert_eq!(P::of_word(word), P::Unknown);
        }
    }
}
