//! Selects which system calls to trace, by names and classes as in `strace -e trace=…` and `perf trace -e …`.
//!
//! Also builds a filter for the kernel, so that other calls cost almost nothing.

use std::collections::BTreeSet;
use std::str::FromStr;

use pmc_sys::abi::syscall::{ArgumentKind, Syscall, SyscallAbi, SyscallTable};
use pmc_sys::error::{Error, Result};
use pmc_text::text::{glob, nearest};
use pmc_text::units;

use super::descriptors::changes_descriptors;

/// The traced system calls.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct CallSelection {
    /// The listed calls; `None` for all.
    listed: Option<BTreeSet<&'static str>>,
    /// Whether the listed calls are excluded.
    is_inverted: bool,
}

/// The value of one `-e`, such as `openat,read`, `!futex`, `%file` or `/^open/`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum CallList {
    /// `all`
    All,
    /// `none`
    None,
    /// Only these calls.
    Only(BTreeSet<&'static str>),
    /// All calls except these.
    Except(BTreeSet<&'static str>),
}

impl FromStr for CallList {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let list = ["trace=", "t="].iter().find_map(|start| text.strip_prefix(start)).unwrap_or(text);
        let (is_inverted, list) = list.strip_prefix('!').map_or((false, list), |list| (true, list));
        match list {
            "all" | "" => return Ok(Self::All),
            "none" => return Ok(Self::None),
            _ => {}
        }
        let table = SyscallTable::get();
        let mut listed = BTreeSet::new();
        for word in list.split(',').map(str::trim).filter(|word| !word.is_empty()) {
            listed.extend(calls(table, word)?.iter().map(|call| call.name));
        }
        Ok(if is_inverted { Self::Except(listed) } else { Self::Only(listed) })
    }
}

impl CallSelection {
    /// Combines lists. Without any, all calls are selected.
    pub(super) fn new(lists: &[CallList]) -> Self {
        let mut selection = Self::default();
        for list in lists {
            let (calls, is_inverted) = match list {
                CallList::All => continue,
                CallList::None => {
                    selection.listed.get_or_insert_default();
                    continue;
                }
                CallList::Only(calls) => (calls, false),
                CallList::Except(calls) => (calls, true),
            };
            // The last list determines whether the calls of all lists are excluded.
            selection.is_inverted = is_inverted;
            selection.listed.get_or_insert_default().extend(calls);
        }
        selection
    }

    /// Whether all calls are selected.
    pub(super) fn is_all(&self) -> bool {
        self.listed.is_none()
    }

    /// Whether the call with this name is selected. Calls without a name are selected unless the selection
    /// lists names.
    pub(super) fn has(&self, name: Option<&str>) -> bool {
        match (&self.listed, name) {
            (None, _) => true,
            (Some(_), None) => self.is_inverted,
            (Some(listed), Some(name)) => listed.contains(name) != self.is_inverted,
        }
    }

    /// Returns the calls to record so that pmc can name the descriptors of the selected calls. If a selected
    /// call takes a descriptor, this includes all calls that open or close descriptors.
    #[must_use]
    pub(super) fn with_descriptors(&self) -> Self {
        let is_descriptor = |kind| matches!(kind, ArgumentKind::Fd | ArgumentKind::DirFd);
        let has_descriptor = |call: &&Syscall| {
            changes_descriptors(call.name)
                || call.arguments().iter().any(|argument| is_descriptor(argument.kind))
        };
        let all = || SyscallTable::get().calls().iter();
        let mut wider = self.clone();
        let Some(listed) = wider.listed.as_mut() else { return wider };
        if !all().filter(|call| self.has(Some(call.name))).any(|call| has_descriptor(&call)) {
            return wider;
        }
        let changing = all().map(|call| call.name).filter(|name| changes_descriptors(name));
        match self.is_inverted {
            true => listed.retain(|name| !changes_descriptors(name)),
            false => listed.extend(changing),
        }
        wider
    }

    /// Returns the kernel's filter expression for the field `id`, which selects these calls in all of the
    /// ABIs; `None` if no filter is needed. The expression also selects other calls that have the number of a
    /// selected call in another ABI.
    ///
    /// `rt_sigreturn` ends with the number -1, because it restores the registers of the interrupted code.
    pub(super) fn filter(&self, abis: &[SyscallAbi], is_exit: bool) -> Option<String> {
        self.listed.as_ref()?;
        let table = SyscallTable::get();
        let is_selected = |abi: SyscallAbi, number: u16| {
            table.by_number(abi, number.into()).is_some_and(|call| self.has(Some(call.name)))
        };
        let all = |abi: &SyscallAbi| {
            let abi = *abi;
            table.calls().iter().filter_map(move |call| call.number(abi))
        };
        let numbers: BTreeSet<u16> = abis.iter().flat_map(all).collect();
        let selected = |number: &u16| abis.iter().any(|abi| is_selected(*abi, *number));
        if self.is_inverted {
            let out: Vec<String> = numbers
                .iter()
                .filter(|number| !selected(number))
                .map(|number| format!("id != {number}"))
                .collect();
            return (!out.is_empty()).then(|| out.join(" && "));
        }
        let mut terms: Vec<String> = units::consecutive(numbers.into_iter().filter(selected))
            .into_iter()
            .map(|(first, last)| match first == last {
                true => format!("id == {first}"),
                false => format!("id >= {first} && id <= {last}"),
            })
            .collect();
        if is_exit && self.has(Some("rt_sigreturn")) {
            terms.push("id == -1".to_owned());
        }
        Some(if terms.is_empty() { "id == -2".to_owned() } else { terms.join(" || ") })
    }
}

/// Returns the calls that a word selects.
///
/// # Errors
/// Fails if the word is neither the name of a call nor a class, and matches no call.
fn calls(table: &'static SyscallTable, word: &str) -> Result<Vec<&'static Syscall>> {
    let optional = word.strip_prefix('?');
    let word = optional.unwrap_or(word);
    let found = if let Some(class) = word.strip_prefix('%') {
        table.class(class)
    } else if let Some(pattern) = word.strip_prefix('/') {
        let pattern = pattern.strip_suffix('/').unwrap_or(pattern);
        let pattern = regex_lite::Regex::new(pattern).ok();
        pattern.map(|pattern| table.calls().iter().filter(|call| pattern.is_match(call.name)).collect())
    } else if glob::is_pattern(word) {
        Some(table.calls().iter().filter(|call| glob::matches(word, call.name)).collect())
    } else {
        // Names used by glibc and older versions of strace.
        let word = match word {
            "pread" => "pread64",
            "pwrite" => "pwrite64",
            word => word,
        };
        // perf uses the names of the tracepoints.
        let of_tracepoint = || table.calls().iter().find(|call| call.tracepoint_name() == word);
        table.by_name(word).or_else(of_tracepoint).map(|call| vec![call])
    };
    match found {
        Some(found) if !found.is_empty() => Ok(found),
        _ if optional.is_some() => Ok(Vec::new()),
        _ => {
            let names: Vec<&'static str> = match word.starts_with('%') {
                true => table.class_names(),
                false => table.calls().iter().map(|call| call.name).collect(),
            };
            let similar = nearest(word.trim_start_matches('%'), names, 3);
            let class = if word.starts_with('%') { "%" } else { "" };
            let similar: Vec<String> = similar.iter().map(|name| format!("{class}{name}")).collect();
            Err(Error::usage(format!("unknown system call or class {word:?}")).try_this(match similar[..] {
                [] => "-e openat,read, -e '!futex', or a class such as -e %file".to_owned(),
                _ => format!("did you mean {}?", similar.join(" or ")),
            }))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(lists: &[&str]) -> CallSelection {
        let lists: Result<Vec<CallList>> = lists.iter().map(|list| list.parse()).collect();
        CallSelection::new(&lists.unwrap())
    }

    #[test]
    fn names_classes_and_patterns_select_calls() {
        let is = |lists: &[&str], name: &str| parse(lists).has(Some(name));
        assert!(is(&[], "read") && is(&["all"], "read"));
        assert!(is(&["openat,read"], "read") && !is(&["openat,read"], "write"));
        assert!(is(&["trace=openat"], "openat"));
        assert!(!is(&["!futex"], "futex") && is(&["!futex"], "read"));
        assert!(is(&["%file"], "openat") && !is(&["%file"], "read"));
        assert!(is(&["/^open"], "openat2") && is(&["epoll*"], "epoll_wait") && !is(&["epoll*"], "poll"));
        assert!(is(&["get?id"], "getpid") && !is(&["get?id"], "getppid"));
        assert!(is(&["newuname"], "uname") && is(&["pread"], "pread64"));
        assert!(!is(&["none"], "read"));
        assert!(is(&["newfstat", "read"], "fstat"));
        assert!(parse(&["!read"]).has(None) && !parse(&["read"]).has(None));
        let remedies = |list: &str| list.parse::<CallList>().unwrap_err().remedies().join("\n");
        assert!(remedies("opanat").contains("openat"));
        assert!(remedies("%files").contains("%file"));
        assert!("?nosuch,read".parse::<CallList>().is_ok());
    }

    #[test]
    fn calls_that_change_descriptors_are_recorded_if_descriptors_are_shown() {
        let wider = parse(&["read"]).with_descriptors();
        assert!(wider.has(Some("read")) && wider.has(Some("openat")) && !wider.has(Some("write")));
        assert!(!parse(&["futex"]).with_descriptors().has(Some("openat")));
        let wider = parse(&["!openat,futex"]).with_descriptors();
        assert!(wider.has(Some("openat")) && !wider.has(Some("futex")));
        assert!(parse(&[]).with_descriptors().is_all());
    }

    #[test]
    fn kernel_filters_cover_all_abis() {
        let x86 = [SyscallAbi::X86_64];
        assert_eq!(parse(&[]).filter(&x86, false), None);
        assert_eq!(
            parse(&["read,write,openat"]).filter(&x86, false).unwrap(),
            "id >= 0 && id <= 1 || id == 257"
        );
        let both = [SyscallAbi::X86_64, SyscallAbi::I386];
        assert_eq!(parse(&["openat"]).filter(&both, false).unwrap(), "id == 257 || id == 295");
        assert_eq!(parse(&["!futex"]).filter(&x86, false).unwrap(), "id != 202");
        // 240 is futex on i386, but a different call on x86-64.
        assert_eq!(parse(&["!futex"]).filter(&both, false), None);
        assert_eq!(parse(&["rt_sigreturn"]).filter(&x86, true).unwrap(), "id == 15 || id == -1");
        // The kernel accepts filters of at most one page.
        for class in SyscallTable::get().class_names() {
            let class = format!("%{class}");
            for list in [class.clone(), format!("!{class}")] {
                let filter = parse(&[&list]).filter(&x86, true).unwrap();
                assert!(filter.len() < 4000, "{list}: {}", filter.len());
            }
        }
    }
}
