//! Sizes of ring buffers: as typed, and the useful size of each kind of measurement.

use std::str::FromStr;

use pmc_events::counter::rings::pages_of;
use pmc_sys::error::{Error, Result};
use pmc_sys::sys::page_size;
use pmc_text::units::parse_size;

/// Size of a ring or of an AUX area in bytes. The kernel's rings have a power of two of pages, so the size is
/// rounded up to that.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RingSize(u64);

impl RingSize {
    /// Useful size for samples without stack copies. Such a ring holds a second of samples at almost any
    /// rate, and a larger ring would only cause more cache misses.
    pub const SAMPLES: Self = Self(2 << 20);
    /// For a live profile: one second of samples with stacks at perf's default rate. The rings are drained
    /// several times per second.
    pub const LIVE: Self = Self(512 << 10);
    /// For pairs of events, such as the start and end of a system call: 100 ms at 400,000 calls per second. A
    /// lost event makes an interval wrong.
    pub const PAIRS: Self = Self(8 << 20);
    /// For events that a holder keeps open: the size planned for the kernel's own persistent events.
    pub const HELD: Self = Self(512 << 10);

    /// Size for the scheduler's events: 1024 pages, as in perf.
    pub fn scheduler() -> Self {
        Self::of_pages(1024)
    }

    /// A size of this many pages.
    pub fn of_pages(pages: usize) -> Self {
        Self(pages as u64 * page_size() as u64)
    }

    /// A size of this many bytes.
    pub fn of_bytes(bytes: u64) -> Self {
        Self(bytes)
    }

    /// The size in bytes, before rounding.
    pub fn bytes(self) -> u64 {
        self.0
    }

    /// Number of pages; a power of two.
    pub fn pages(self) -> usize {
        pages_of(self.0)
    }
}

impl FromStr for RingSize {
    type Err = Error;

    /// Parses a number of pages, or a size in bytes with a unit.
    fn from_str(text: &str) -> Result<Self> {
        let bytes = match text.parse::<u64>() {
            Ok(pages) => pages.saturating_mul(page_size() as u64),
            Err(_) => parse_size(text).ok_or_else(|| {
                Error::usage("not a valid size").try_this("use a size such as 64K, 100M or 2G")
            })?,
        };
        match bytes {
            0 | 0x100_0000_0001.. => {
                Err(Error::usage("not a valid ring buffer size")
                    .try_this("use a size such as 128 (pages) or 4M"))
            }
            _ => Ok(Self(bytes)),
        }
    }
}

/// The sizes of a ring and of the AUX area next to it; `None` for the default.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct RingSizes {
    /// Size of the ring.
    pub ring: Option<RingSize>,
    /// Size of the AUX area.
    pub area: Option<RingSize>,
}

impl FromStr for RingSizes {
    type Err = Error;

    /// Parses `SIZE`, `SIZE,AREA` or `,AREA`.
    fn from_str(text: &str) -> Result<Self> {
        let size = |text: &str| if text.is_empty() { Ok(None) } else { text.parse().map(Some) };
        let (ring, area) = text.split_once(',').unwrap_or((text, ""));
        Ok(Self { ring: size(ring)?, area: size(area)? })
    }
}
