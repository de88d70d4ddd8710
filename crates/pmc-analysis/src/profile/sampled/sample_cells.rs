//! Cells that describe samples: threads, CPUs, times, and the values that the kernel recorded.
//!
//! Receives the attributes of a row and its sort keys. `table` creates the cells that describe code. `place`
//! finds the code and data at the other addresses of a sample.

use super::code::LocationCall;
use super::code_owner;
use super::place;
use super::sort::{RowCell, SortKey};
use super::strings::{StringId, StringTable};
use super::table_input::{ENDED_NAME, TableInput};
use super::wait_site::WaitSite;
use crate::session::intern::words;
use crate::session::live::ENDED;
use crate::session::samples::{RowKey, SampleAttribute};
use crate::session::thread_time::ThreadState;
use pmc_perfdata::record::WaitPartner;
use pmc_perfdata::record::decode::{BranchFlags, DataSource, page_size, transaction};

/// Returns the cells of all keys that describe samples, in the order of the keys.
pub(super) fn sample_cells(
    input: &TableInput<'_>,
    keys: &[SortKey],
    key: &RowKey,
    texts: &mut StringTable,
) -> Vec<RowCell> {
    let attributes = if input.attribute_kinds.is_empty() {
        None
    } else {
        Some(words(input.attributes.get(key.attributes).1))
    };
    let word = |wanted: fn(&SampleAttribute) -> bool| {
        let at = input.attribute_kinds.iter().position(wanted)?;
        attributes?.get(at)
    };
    let number = |word: Option<u64>| match word {
        Some(word) if word != u64::MAX => RowCell::Number(word as i64),
        _ => RowCell::Unknown,
    };
    let task = |word: Option<u64>, is_named: bool, texts: &mut StringTable| match word {
        Some(ENDED) => RowCell::Text(texts.add(ENDED_NAME)),
        None => RowCell::Unknown,
        Some(id) => match is_named.then(|| input.words.task_name(id as i32)).flatten() {
            Some(name) => RowCell::Task(id as i64, texts.add(&name)),
            None => RowCell::Number(id as i64),
        },
    };
    let address = |word: Option<u64>| match word {
        Some(word) if word != u64::MAX => RowCell::Address(word),
        _ => RowCell::Unknown,
    };
    let call = |location: Option<u64>| place::call(input.code, location);
    let flags =
        || word(|e| *e == SampleAttribute::BranchFlags).filter(|word| *word != u64::MAX).map(BranchFlags);
    let source = || word(|e| *e == SampleAttribute::DataSrc).filter(|word| *word != u64::MAX).map(DataSource);
    let size = |word: Option<u64>, texts: &mut StringTable| {
        text(Some(page_size(word.filter(|size| *size != u64::MAX).unwrap_or(0))), texts)
    };
    let mut cells = Vec::new();
    for sort_key in keys {
        cells.push(match sort_key {
            SortKey::Comm => RowCell::Text(texts.add(&input.words.comm(key.comm))),
            SortKey::CommNoDigit => RowCell::Text(texts.add(&without_digits(&input.words.comm(key.comm)))),
            SortKey::Process => task(word(|e| *e == SampleAttribute::Pid), true, texts),
            SortKey::Thread => task(word(|e| *e == SampleAttribute::Tid), true, texts),
            SortKey::Tid => task(word(|e| *e == SampleAttribute::Tid), false, texts),
            SortKey::Cpu => number(word(|e| *e == SampleAttribute::Cpu)),
            SortKey::Socket => {
                let socket = word(|e| *e == SampleAttribute::Cpu).and_then(|cpu| input.words.socket(cpu));
                socket.map_or(RowCell::Unknown, RowCell::Number)
            }
            SortKey::Time => {
                let slice = input.attribute_kinds.iter().find_map(|attribute| match attribute {
                    SampleAttribute::Time(slice) => Some(*slice),
                    _ => None,
                });
                let at = word(|e| matches!(e, SampleAttribute::Time(_))).unwrap_or(0);
                RowCell::Time(at.saturating_mul(slice.unwrap_or(1)))
            }
            SortKey::Cgroup => {
                let id = word(|e| *e == SampleAttribute::Cgroup).unwrap_or(0);
                RowCell::Text(texts.add(&input.words.cgroup(id)))
            }
            SortKey::Trace => {
                let payload = word(|e| *e == SampleAttribute::Payload).unwrap_or(u64::MAX);
                RowCell::Text(texts.add(&input.words.payload(payload)))
            }
            SortKey::TraceField(field) => {
                let payload = word(|e| *e == SampleAttribute::Payload).unwrap_or(u64::MAX);
                match input.words.payload_field(payload, usize::from(*field)) {
                    // Sort numbers numerically.
                    Some(text) => {
                        text.parse().map_or_else(|_| RowCell::Text(texts.add(&text)), RowCell::Number)
                    }
                    None => RowCell::Unknown,
                }
            }
            SortKey::Weight | SortKey::LocalWeight => number(word(|e| *e == SampleAttribute::Weight)),
            SortKey::Addr => word(|e| *e == SampleAttribute::Addr).map_or(RowCell::Unknown, RowCell::Address),
            SortKey::SymbolFrom => symbol(call(word(|e| *e == SampleAttribute::From))),
            SortKey::DsoFrom => dso(call(word(|e| *e == SampleAttribute::From))),
            SortKey::SrcLineFrom => {
                let location = word(|e| *e == SampleAttribute::From);
                let offset = location.and_then(|location| input.offset(location as u32));
                call(location).map_or(RowCell::Unknown, |call| place::line(call, call, offset))
            }
            SortKey::AddrFrom => address(word(|e| *e == SampleAttribute::FromAddr)),
            SortKey::AddrTo => address(word(|e| *e == SampleAttribute::ToAddr)),
            SortKey::Mispredict => text(flags().map(place::prediction), texts),
            SortKey::InTx => text(flags().map(|flags| if flags.in_tx() { "T" } else { "." }), texts),
            SortKey::Abort => text(flags().map(|flags| if flags.is_abort() { "A" } else { "." }), texts),
            SortKey::Cycles => match flags().map(|flags| flags.cycles()) {
                Some(0) => text(Some("-"), texts),
                cycles => number(cycles.map(u64::from)),
            },
            SortKey::SymbolDaddr => symbol(call(word(|e| *e == SampleAttribute::Data))),
            SortKey::DsoDaddr => dso(call(word(|e| *e == SampleAttribute::Data))),
            SortKey::DCacheLine => symbol(call(word(|e| *e == SampleAttribute::DataLine))),
            SortKey::Mem => text(source().map(|source| source.level_words()), texts),
            SortKey::Snoop => text(source().map(|source| source.snoop_words()), texts),
            SortKey::Tlb => text(source().map(|source| source.tlb_words()), texts),
            SortKey::Locked => text(source().map(|source| source.lock_words()), texts),
            SortKey::Blocked => text(source().map(|source| source.blocked_words().trim_start()), texts),
            SortKey::MemOp => text(source().map(|source| source.operation_class()), texts),
            SortKey::Cache => text(source().map(|source| source.cache_class()), texts),
            SortKey::Memory => text(source().map(|source| source.memory_class()), texts),
            SortKey::DTlb => text(source().map(|source| source.dtlb_class()), texts),
            SortKey::PhysDaddr => address(word(|e| *e == SampleAttribute::PhysAddr)),
            SortKey::DataPageSize => size(word(|e| *e == SampleAttribute::DataPage), texts),
            SortKey::CodePageSize => size(word(|e| *e == SampleAttribute::CodePage), texts),
            SortKey::InsLatency | SortKey::LocalInsLatency => {
                number(word(|e| *e == SampleAttribute::InsLatency))
            }
            SortKey::StageCycles | SortKey::LocalStageCycles => {
                number(word(|e| *e == SampleAttribute::StageCycles))
            }
            SortKey::Transaction => {
                let (names, code) = transaction(word(|e| *e == SampleAttribute::Transaction).unwrap_or(0));
                let code = if code == 0 { String::new() } else { format!(":{code:x}") };
                RowCell::Text(texts.add(&format!("{}{code}", names.join(" "))))
            }
            SortKey::Parallelism => number(word(|e| *e == SampleAttribute::Parallelism)),
            SortKey::CgroupId => number(word(|e| *e == SampleAttribute::Cgroup)),
            SortKey::Parent => match word(|e| *e == SampleAttribute::Parent) {
                Some(word) if word != u64::MAX => RowCell::Text(StringId(word as u32)),
                _ => RowCell::Text(texts.add(super::callers::OTHER)),
            },
            SortKey::State => {
                let state = word(|e| *e == SampleAttribute::State).and_then(ThreadState::of_number);
                RowCell::Text(texts.add(state.map_or("", ThreadState::name)))
            }
            SortKey::WaitSite => {
                let site = word(|e| *e == SampleAttribute::WaitSite).map(WaitSite::of_word);
                RowCell::Text(texts.add(site.map_or("", WaitSite::name)))
            }
            SortKey::WaitFunction | SortKey::WaitLine => {
                let location = word(|e| *e == SampleAttribute::WaitFunction);
                match (code_owner::waiting_call(input.code, location, texts), sort_key) {
                    (Some(LocationCall { file: Some(file), line, .. }), SortKey::WaitLine) => {
                        RowCell::Line(*file, *line)
                    }
                    (None, _) | (_, SortKey::WaitLine) => RowCell::Text(texts.add("")),
                    (found, _) => symbol(found),
                }
            }
            SortKey::Waker | SortKey::RanInstead => {
                let wanted = match sort_key {
                    SortKey::Waker => ThreadState::Blocked,
                    _ => ThreadState::Runnable,
                };
                let state = word(|e| *e == SampleAttribute::State).and_then(ThreadState::of_number);
                let partner = word(|e| *e == SampleAttribute::WaitPartner).map(WaitPartner::of_word);
                let partner = partner.filter(|_| state == Some(wanted));
                RowCell::Text(texts.add(&partner.map_or_else(String::new, |one| input.partner_name(one))))
            }
            SortKey::Period => number(word(|e| *e == SampleAttribute::Period)),
            // These keys are properties of the code: see [`CodeCells`].
            SortKey::Dso
            | SortKey::Symbol
            | SortKey::SymbolSize
            | SortKey::SymbolOffset
            | SortKey::DsoSize
            | SortKey::SrcLine
            | SortKey::SrcFile
            | SortKey::SymbolIaddr
            | SortKey::SymbolTo
            | SortKey::DsoTo
            | SortKey::SrcLineTo => continue,
        });
    }
    cells
}

fn text(words: Option<impl AsRef<str>>, texts: &mut StringTable) -> RowCell {
    words.map_or(RowCell::Unknown, |words| RowCell::Text(texts.add(words.as_ref())))
}

fn symbol(call: Option<&LocationCall>) -> RowCell {
    call.map_or(RowCell::Unknown, |call| RowCell::Symbol(call.level.letter(), call.symbol))
}

fn dso(call: Option<&LocationCall>) -> RowCell {
    call.map_or(RowCell::Unknown, |call| RowCell::Text(call.dso))
}

/// Replaces each number in a name as perf does: `kworker/<N>:<N>`.
fn without_digits(name: &str) -> String {
    let mut out = String::new();
    for part in name.split_inclusive(|c: char| !c.is_ascii_digit()) {
        let rest = part.trim_start_matches(|c: char| c.is_ascii_digit());
        out.push_str(if rest.len() < part.len() { "<N>" } else { "" });
        out.push_str(rest);
    }
    out
}

#[cfg(test)]
mod tests {
    #[test]
    fn numbers_in_names_are_stripped() {
        let names = ["kworker/0:12", "opt cgu.07", "3", "plain", ""];
        let without = names.map(super::without_digits);
        assert_eq!(without, ["kworker/<N>:<N>", "opt cgu.<N>", "<N>", "plain", ""]);
    }
}
