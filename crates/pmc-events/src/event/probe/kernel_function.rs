//! Finds the functions of the running kernel in which to place probes.

use std::collections::HashMap;

use pmc_sys::abi::KallsymsLine;
use pmc_text::text::glob;

/// A function of the kernel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KernelFunction {
    /// The function's name.
    pub name: String,
    /// A symbol in the kernel's notation, and the function's distance from it.
    symbol: String,
    distance: u64,
}

impl KernelFunction {
    /// The location in the kernel's notation of the instruction at this offset in the function.
    pub fn place(&self, offset: u64) -> String {
        format!("{}+{}", self.symbol, self.distance.saturating_add(offset))
    }
}

/// If a function's name is ambiguous, its location is given as an offset from this symbol.
const START: &str = "_text";

/// Finds the functions of the kernel, or of one of its modules, whose names equal or match `wanted`. If the
/// kernel hides its symbol list (`kallsyms`), assumes that the function exists.
///
/// # Errors
/// Returns the names of all functions if none matches.
pub fn kernel_functions(
    kallsyms: Option<&[u8]>,
    module: Option<&str>,
    wanted: &str,
) -> Result<Vec<KernelFunction>, Vec<String>> {
    let by_name = |name: &str| KernelFunction {
        name: name.to_owned(),
        symbol: module.map_or_else(|| name.to_owned(), |module| format!("{module}:{name}")),
        distance: 0,
    };
    let Some(text) = kallsyms else { return Ok(vec![by_name(wanted)]) };
    let (mut start, mut found, mut others) = (0, Vec::new(), Vec::new());
    for line in text.split(|&byte| byte == b'\n').filter_map(KallsymsLine::read) {
        let Ok(name) = str::from_utf8(line.name) else { continue };
        if name == START {
            start = line.address;
        }
        let own = str::from_utf8(line.module).unwrap_or_default().trim_matches(['[', ']']);
        if !line.is_code() || own != module.unwrap_or_default() {
            continue;
        }
        match glob::matches(wanted, name) {
            true => found.push((name, line.address)),
            false => others.push(name.to_owned()),
        }
    }
    if found.is_empty() {
        return Err(others);
    }
    let mut counts: HashMap<&str, usize> = HashMap::new();
    found.iter().for_each(|(name, _)| *counts.entry(name).or_default() += 1);
    let function = |&(name, address): &(&str, u64)| match module {
        // Hidden addresses are all zero.
        None if start > 0 && counts.get(name).is_some_and(|count| *count > 1) => {
            let distance = address.wrapping_sub(start);
            KernelFunction { name: name.to_owned(), symbol: START.to_owned(), distance }
        }
        _ => by_name(name),
    };
    Ok(found.iter().map(function).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIST: &[u8] =
        b"ffff1000 T _text\nffff1010 T open\nffff1020 t twin\nffff1030 t twin\nffff2000 t io\t[disk]\n";

    fn places(module: Option<&str>, wanted: &str, offset: u64) -> Vec<String> {
        let functions = kernel_functions(Some(LIST), module, wanted).unwrap();
        functions.iter().map(|function| function.place(offset)).collect()
    }

    #[test]
    fn ambiguous_functions_are_counted_from_the_kernels_start() {
        assert_eq!(places(None, "open", 0), ["open+0"]);
        assert_eq!(places(None, "open", 4), ["open+4"]);
        assert_eq!(places(None, "twin", 0), ["_text+32", "_text+48"]);
        // The kernel accepts only one offset.
        assert_eq!(places(None, "twin", 4), ["_text+36", "_text+52"]);
        assert_eq!(places(Some("disk"), "io", 0), ["disk:io+0"]);
        let names = kernel_functions(Some(LIST), None, "io").unwrap_err();
        assert!(names.contains(&"open".to_owned()), "{names:?}");
    }

    #[test]
    fn functions_are_assumed_to_exist_if_the_list_is_hidden() {
        let found = kernel_functions(None, Some("disk"), "io").unwrap();
        assert_eq!((found.len(), found[0].place(8).as_str()), (1, "disk:io+8"));
    }
}
