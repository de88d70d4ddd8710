//! Seeded changes of inputs. `cargo test` includes this module too, so it uses no other part of this library.

pub mod elf;
pub mod perfdata;

/// A function that changes an input. The second argument is the maximum size of the result in bytes.
pub type Mutator = fn(&mut Vec<u8>, usize, &mut Random);

/// A pseudorandom number generator (xorshift): the same numbers for the same seed.
#[derive(Clone, Debug)]
pub struct Random(u64);

impl Random {
    /// Starts the sequence of this seed.
    pub fn new(seed: u64) -> Self {
        let mut random = Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
        for _ in 0..4 {
            random.word();
        }
        random
    }

    /// Returns the next 64 bits.
    pub fn word(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    /// Returns a number below the limit, or 0 if the limit is 0.
    pub fn below(&mut self, limit: usize) -> usize {
        (self.word() >> 16) as usize % limit.max(1)
    }

    /// Picks one of the values.
    pub fn pick<T: Copy>(&mut self, values: &[T]) -> T {
        values[self.below(values.len())]
    }
}

/// Values at the borders of integer types, and sizes that no file has.
const EXTREMES: [u64; 12] =
    [0, 1, 7, 8, 0xff, 0xfff8, 0xffff, 0x7fff_ffff, 0xffff_ffff, 1 << 40, 1 << 63, u64::MAX];

/// Makes one to eight plain changes: of bits, bytes, numbers, and of ranges (copied, removed, repeated).
pub fn bytes(input: &mut Vec<u8>, max: usize, random: &mut Random) {
    for _ in 0..1 + random.below(8) {
        change(input, random);
    }
    input.truncate(max);
}

fn change(input: &mut Vec<u8>, random: &mut Random) {
    if input.is_empty() {
        input.push(random.word() as u8);
        return;
    }
    let at = random.below(input.len());
    let end = (at + 1 + random.below(64)).min(input.len());
    match random.below(8) {
        0 => input[at] ^= 1 << random.below(8),
        1 => input[at] = random.word() as u8,
        2 => number(input, at, random),
        3 => drop(input.drain(at..end)),
        4 => {
            let copy = input[at..end].to_vec();
            let to = random.below(input.len());
            input.splice(to..to, copy);
        }
        5 => {
            let copy = input[at..end].to_vec();
            let to = random.below(input.len() + 1 - copy.len());
            input[to..to + copy.len()].copy_from_slice(&copy);
        }
        6 => {
            let new: Vec<u8> = (0..1 + random.below(8)).map(|_| random.word() as u8).collect();
            input.splice(at..at, new);
        }
        _ => input.truncate(at.max(1)),
    }
}

/// Splits an input into parts, such as files: each is a length (4 bytes, little-endian) and its bytes.
pub fn parts(mut input: &[u8]) -> Vec<Vec<u8>> {
    let mut parts = Vec::new();
    while let Some((size, rest)) = input.split_first_chunk::<4>() {
        let size = (u32::from_le_bytes(*size) as usize).min(rest.len());
        parts.push(rest[..size].to_vec());
        input = &rest[size..];
    }
    parts
}

/// The input with these [`parts`].
pub fn joined(parts: &[Vec<u8>]) -> Vec<u8> {
    let with_size = |part: &Vec<u8>| [&(part.len() as u32).to_le_bytes(), &part[..]].concat();
    parts.iter().flat_map(with_size).collect()
}

/// Changes one of the [`parts`]: its bytes, or if it is text, its lines.
pub fn one_part(input: &mut Vec<u8>, max: usize, random: &mut Random) {
    let mut parts = parts(input);
    let at = random.below(parts.len());
    match parts.get_mut(at) {
        Some(part) if random.below(3) == 0 => lines(part, random),
        Some(part) => bytes(part, max, random),
        None => return bytes(input, max, random),
    }
    *input = joined(&parts);
    input.truncate(max);
}

/// Repeats, removes or exchanges lines.
fn lines(text: &mut Vec<u8>, random: &mut Random) {
    let mut lines: Vec<Vec<u8>> = text.split_inclusive(|byte| *byte == b'\n').map(<[u8]>::to_vec).collect();
    for _ in 0..1 + random.below(4) {
        let (from, to) = (random.below(lines.len()), random.below(lines.len()));
        match random.below(3) {
            0 if !lines.is_empty() => lines.insert(to, lines[from].clone()),
            1 if lines.len() > 1 => drop(lines.remove(from)),
            _ if !lines.is_empty() => lines.swap(from, to),
            _ => {}
        }
    }
    *text = lines.concat();
}

/// Overwrites a number of one to eight bytes at the place: with an extreme, or near to its value. Does nothing
/// at a place beyond the input, which an offset in a hostile file may be.
pub fn number(input: &mut [u8], at: usize, random: &mut Random) {
    if at >= input.len() {
        return;
    }
    let size = random.pick(&[1, 2, 4, 8]);
    let end = (at + size).min(input.len());
    let mut old = [0; 8];
    old[..end - at].copy_from_slice(&input[at..end]);
    let old = u64::from_ne_bytes(old);
    let new = match random.below(4) {
        0 => old.wrapping_add(random.below(17) as u64).wrapping_sub(8),
        1 => old << random.below(64),
        2 => old.swap_bytes(),
        _ => random.pick(&EXTREMES).wrapping_sub(random.below(3) as u64),
    };
    input[at..end].copy_from_slice(&new.to_ne_bytes()[..end - at]);
}
