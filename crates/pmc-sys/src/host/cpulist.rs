//! Lists of CPU numbers in the kernel's notation: `0-3,8,10-11`.

use std::fmt;
use std::str::FromStr;

use crate::error::Error;
use pmc_text::units::ranges;

/// A set of CPU numbers, ascending and unique.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct CpuList(Vec<u32>);

/// Upper limit on CPU numbers, which no Linux machine can reach (`CONFIG_NR_CPUS` is at most 8192).
const MOST_CPUS: u32 = 65536;

impl CpuList {
    /// The CPUs, ascending.
    pub fn iter(&self) -> impl Iterator<Item = u32> + '_ {
        self.0.iter().copied()
    }
    /// Number of CPUs.
    pub fn len(&self) -> usize {
        self.0.len()
    }
    /// Whether the list is empty.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
    /// Whether the list contains `cpu`.
    pub fn contains(&self, cpu: u32) -> bool {
        self.0.binary_search(&cpu).is_ok()
    }
    /// The lowest CPU number.
    pub fn first(&self) -> Option<u32> {
        self.0.first().copied()
    }
    /// The CPUs in both lists.
    #[must_use]
    pub fn intersection(&self, other: &Self) -> Self {
        Self(self.iter().filter(|&cpu| other.contains(cpu)).collect())
    }
}

impl FromIterator<u32> for CpuList {
    fn from_iter<I: IntoIterator<Item = u32>>(cpus: I) -> Self {
        let mut list: Vec<u32> = cpus.into_iter().collect();
        list.sort_unstable();
        list.dedup();
        Self(list)
    }
}

impl FromStr for CpuList {
    type Err = Error;

    /// Parses `0-3,8`, and `0-15:2/4` (groups) as in `cpuset(7)`. An empty string is the empty list.
    fn from_str(text: &str) -> Result<Self, Error> {
        Self::parse(text)
            .map_err(|why| Error::usage("not a list of CPUs").why(why).try_this("a list such as 0-3,8"))
    }
}

impl CpuList {
    fn parse(text: &str) -> Result<Self, String> {
        let number = |word: &str| {
            word.trim()
                .parse::<u32>()
                .ok()
                .filter(|&n| n < MOST_CPUS)
                .ok_or_else(|| format!("`{word}` is not a CPU number"))
        };
        let mut cpus = Vec::new();
        for part in text.trim().split(',').filter(|p| !p.trim().is_empty()) {
            let (range, group) = part.split_once(':').map_or((part, None), |(r, g)| (r, Some(g)));
            let (low, high) = match range.split_once('-') {
                Some((low, high)) => (number(low)?, number(high)?),
                None => (number(range)?, number(range)?),
            };
            if low > high {
                return Err(format!("the range `{range}` is reversed"));
            }
            if cpus.len() > MOST_CPUS as usize {
                return Err("it names too many CPUs".to_owned());
            }
            match group {
                None => cpus.extend(low..=high),
                Some(group) => {
                    let (used, of) = group.split_once('/').ok_or_else(|| format!("`{part}` lacks `/`"))?;
                    let (used, of) = (number(used)?, number(of)?);
                    if of == 0 || used > of {
                        return Err(format!("`{part}` has an invalid group"));
                    }
                    cpus.extend((low..=high).filter(|cpu| (cpu - low) % of < used));
                }
            }
        }
        Ok(cpus.into_iter().collect())
    }
}

impl fmt::Display for CpuList {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&ranges(self.iter()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cpu_lists_parse_and_format() {
        for text in ["0", "0-3", "0-1,4,6-7", ""] {
            assert_eq!(text.parse::<CpuList>().unwrap().to_string(), text);
        }
        assert_eq!("3,1,2,1\n".parse::<CpuList>().unwrap().to_string(), "1-3");
        assert_eq!("0-7:1/2".parse::<CpuList>().unwrap().to_string(), "0,2,4,6");
    }

    #[test]
    fn invalid_cpu_lists_are_rejected() {
        for text in ["a", "3-1", "0-99999999", "-1", "0-7:3/2"] {
            assert!(text.parse::<CpuList>().is_err(), "{text}");
        }
    }
}
