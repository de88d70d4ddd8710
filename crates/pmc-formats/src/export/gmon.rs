//! Files in the `gmon.out` format of gprof(1): one file per event and program.
//!
//! Receives stacks, and a mapping from file offsets to the addresses assigned by the linker. Returns
//! [`GmonFile`]s, which the caller stores in a folder. Samples are counted by address, and each call in a
//! stack counts once per sample. gprof processes one program at a time, so calls into other programs are
//! omitted.
//!
//! ```text
//! "gmon" 1        and 12 unused bytes
//! 0  histogram    first address, end, bins, rate, "seconds", 's';  16 bits per bin
//! 0  …            the same range again, with counts in excess of 16 bits; readers add them up
//! 1  arc          the caller's address, the function's, a count
//! ```
//! Sources: `gmon_out.h` in glibc, `hist.c` in binutils.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::path::PathBuf;

use pmc_analysis::profile::sampled::StackProfile;
use pmc_analysis::session::CodeLocation;
use pmc_text::text::clean;
use pmc_text::units::S;

/// gprof's unit of code in bytes; the size of a bin is a multiple of this unit.
const UNIT: u64 = 2;
/// Maximum number of bins in a histogram. Larger code gets wider bins.
const MOST_BINS: u64 = 1 << 20;

/// Converts file offsets to link-time addresses.
pub trait LinkAddresses {
    /// Returns the link-time address of a location.
    fn address(&self, location: &CodeLocation) -> Option<u64>;

    /// Returns the size of an address in this module, in bytes: 4 or 8.
    fn width(&self, module: u32) -> usize;
}

/// The samples of one event in one program or library.
pub struct GmonFile {
    /// The event's name; untrusted text.
    pub event: String,
    /// The program's path; untrusted text.
    pub program: PathBuf,
    /// The program's file name.
    pub name: String,
    /// Samples per second; 1 unless the event is a clock.
    rate: u32,
    dimension: &'static str,
    width: usize,
    /// Number of samples, by address.
    samples: BTreeMap<u64, u64>,
    /// Number of samples, by the address of a call and the address of the called function.
    arcs: BTreeMap<(u64, u64), u64>,
}

/// Returns the files of a recording, ordered by event and module.
pub fn files(stacks: &StackProfile<'_>, addresses: &dyn LinkAddresses) -> Vec<GmonFile> {
    let mut files: BTreeMap<(u32, u32), GmonFile> = BTreeMap::new();
    let empty = |event: u32, module: u32| {
        let (event, of) = (&stacks.events[event as usize], &stacks.modules[module as usize]);
        // Compute samples per second from the periods in nanoseconds.
        let rate = u128::from(event.total.samples) * u128::from(S) / u128::from(event.total.period.max(1));
        GmonFile {
            event: event.name.clone(),
            program: of.path.to_path_buf(),
            name: of.short_name(),
            rate: if event.is_clock() { u32::try_from(rate).unwrap_or(u32::MAX).max(1) } else { 1 },
            dimension: if event.is_clock() { "seconds" } else { "samples" },
            width: addresses.width(module),
            samples: BTreeMap::new(),
            arcs: BTreeMap::new(),
        }
    };
    let code = stacks.code();
    let mut seen = Vec::new();
    for row in &stacks.rows {
        seen.clear();
        // The function that the current location called, and its start address, because locations are visited
        // innermost first.
        let mut callee: Option<(u32, u64)> = None;
        for (depth, number) in stacks.stack(row.stack).enumerate() {
            let location = stacks.location(number);
            let place = location.module().zip(addresses.address(location));
            let Some((module, address)) = place.filter(|_| location.data().is_none()) else {
                callee = None;
                continue;
            };
            if depth == 0 {
                let file = files.entry((row.event, module)).or_insert_with(|| empty(row.event, module));
                *file.samples.entry(address).or_default() += row.value.samples;
            }
            if let Some((_, to)) = callee.filter(|(of, to)| *of == module && !seen.contains(&(address, *to)))
            {
                seen.push((address, to));
                let file = files.entry((row.event, module)).or_insert_with(|| empty(row.event, module));
                *file.arcs.entry((address, to)).or_default() += row.value.samples;
            }
            // The outermost function at a location is the one that was called. The other functions are
            // inlined into it.
            let start = code.calls()[code.range(number)].last().and_then(|call| call.start);
            let start = start.map(|start| location.at(start.get()));
            callee = start.and_then(|start| addresses.address(&start)).map(|start| (module, start));
        }
    }
    files.into_values().filter(|file| !file.samples.is_empty()).collect()
}

impl GmonFile {
    /// Writes the file.
    pub fn write(&self, out: &mut dyn Write) -> io::Result<()> {
        out.write_all(b"gmon")?;
        out.write_all(&1u32.to_ne_bytes())?;
        out.write_all(&[0; 12])?;
        let (first, bins, width) = self.range();
        let mut counts = vec![0u64; bins];
        for (address, samples) in &self.samples {
            counts[((address - first) / width) as usize] += samples;
        }
        loop {
            self.histogram(out, first, width, &mut counts)?;
            if counts.iter().all(|count| *count == 0) {
                break;
            }
        }
        for ((from, to), samples) in &self.arcs {
            out.write_all(&[1])?;
            self.address(out, *from)?;
            self.address(out, *to)?;
            out.write_all(&u32::try_from(*samples).unwrap_or(u32::MAX).to_ne_bytes())?;
        }
        Ok(())
    }

    /// Returns the first address, the number of bins, and the bytes of code per bin.
    fn range(&self) -> (u64, usize, u64) {
        let first = self.samples.keys().next().copied().unwrap_or(0);
        let last = self.samples.keys().next_back().copied().unwrap_or(first);
        let mut width = UNIT;
        while (last - first) / width >= MOST_BINS {
            width *= 2;
        }
        let first = first / width * width;
        (first, ((last - first) / width + 1) as usize, width)
    }

    /// Writes as much of each count as fits into 16 bits, and leaves the remainder in `counts`.
    fn histogram(&self, out: &mut dyn Write, first: u64, width: u64, counts: &mut [u64]) -> io::Result<()> {
        out.write_all(&[0])?;
        self.address(out, first)?;
        self.address(out, first + counts.len() as u64 * width)?;
        out.write_all(&(counts.len() as u32).to_ne_bytes())?;
        out.write_all(&self.rate.to_ne_bytes())?;
        let mut dimension = [0u8; 15];
        dimension[..self.dimension.len()].copy_from_slice(self.dimension.as_bytes());
        out.write_all(&dimension)?;
        out.write_all(b"s")?;
        for count in counts {
            let fits = u16::try_from(*count).unwrap_or(u16::MAX);
            *count -= u64::from(fits);
            out.write_all(&fits.to_ne_bytes())?;
        }
        Ok(())
    }

    fn address(&self, out: &mut dyn Write, address: u64) -> io::Result<()> {
        match self.width {
            4 => out.write_all(&(address as u32).to_ne_bytes()),
            _ => out.write_all(&address.to_ne_bytes()),
        }
    }

    /// Returns the file's path inside the folder: the event's name and the program's name. Slashes in names
    /// are replaced, so the path cannot leave the folder.
    pub fn place(&self) -> [String; 2] {
        let plain = |name: &str| {
            let name = clean(name).replace('/', "_");
            if name.trim_matches('.').is_empty() { "_".to_owned() } else { name }
        };
        [plain(&self.event), plain(&self.name)]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(samples: &[(u64, u64)]) -> GmonFile {
        GmonFile {
            event: "cpu-clock".to_owned(),
            program: "/bin/a".into(),
            name: "a".to_owned(),
            rate: 100,
            dimension: "seconds",
            width: 8,
            samples: samples.iter().copied().collect(),
            arcs: BTreeMap::from([((0x1008, 0x1010), 3)]),
        }
    }

    #[test]
    fn overflowing_bins_are_repeated() {
        let mut bytes = Vec::new();
        file(&[(0x1001, 70_000), (0x1004, 7)]).write(&mut bytes).unwrap();
        let mut histogram = vec![0];
        histogram.extend(0x1000u64.to_ne_bytes());
        histogram.extend(0x1006u64.to_ne_bytes());
        histogram.extend(3u32.to_ne_bytes());
        histogram.extend(100u32.to_ne_bytes());
        histogram.extend(b"seconds\0\0\0\0\0\0\0\0s");
        let bins = |bins: [u16; 3]| bins.iter().flat_map(|bin| bin.to_ne_bytes()).collect::<Vec<_>>();
        let again = 20 + histogram.len() + 6;
        assert_eq!(bytes[20..again], [&histogram[..], &bins([65_535, 0, 7])].concat());
        let end = again + histogram.len() + 6;
        assert_eq!(bytes[again..end], [&histogram[..], &bins([4_465, 0, 0])].concat());
        assert_eq!((bytes[end], bytes.len()), (1, end + 21), "one arc");
    }

    #[test]
    fn large_code_uses_wider_bins() {
        let (first, bins, width) = file(&[(0x1000, 1), (0x1000_0000, 1)]).range();
        assert!(
            bins as u64 <= MOST_BINS + 1 && first + bins as u64 * width > 0x1000_0000,
            "{bins} of {width}"
        );
    }

    #[test]
    fn names_cannot_escape_the_directory() {
        let mut hostile = file(&[(1, 1)]);
        hostile.event = "../../etc".to_owned();
        hostile.name = "..".to_owned();
        assert_eq!(hostile.place(), [".._.._etc".to_owned(), "_".to_owned()]);
    }
}
