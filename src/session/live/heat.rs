//! Sums that fade, and the chance by which what has nearly faded stays or goes.

use crate::session::Value;

/// A [`Value`] that fades.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Heat {
    pub(super) samples: f64,
    pub(super) period: f64,
    pub(super) squares: f64,
    pub(super) weight: f64,
}

impl Heat {
    pub(super) fn add(&mut self, period: u64, weight: u64) {
        self.samples += 1.0;
        self.period += period as f64;
        self.squares += (period as f64) * (period as f64);
        self.weight += weight as f64;
    }

    pub(super) fn join(&mut self, other: Self) {
        self.samples += other.samples;
        self.period += other.period;
        self.squares += other.squares;
        self.weight += other.weight;
    }

    /// Each sample counts so many times as much.
    pub(super) fn scale(&mut self, factor: f64) {
        self.samples *= factor;
        self.period *= factor;
        // Each sample's period changes, so its square does twice.
        self.squares *= factor * factor;
        self.weight *= factor;
    }

    pub(super) fn value(self) -> Value {
        Value {
            samples: (self.samples.round() as u64).max(1),
            period: self.period as u64,
            squares: self.squares,
            weight: self.weight as u64,
        }
    }
}

/// Chance, of no great quality.
#[derive(Debug)]
pub(super) struct Dice(pub(super) u64);

impl Dice {
    /// From 0 up to 1.
    pub(super) fn roll(&mut self) -> f64 {
        // xorshift64* (Vigna 2016).
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 11) as f64 / (1u64 << 53) as f64
    }
}
