//! Cells that describe samples: threads, CPUs, times, and the values that the kernel recorded.
//!
//! The functions are the values of the sort keys that are properties of samples: see the rows in `sort`.
//! `place` finds the code and data at the other addresses of a sample.

use super::cell::RowCell;
use super::code::LocationCall;
use super::code_owner;
use super::place;
use super::strings::{StringId, StringTable};
use super::table_input::{ENDED_NAME, TableInput};
use super::wait_site::WaitSite;
use crate::session::live::ENDED;
use crate::session::samples::SampleAttribute;
use crate::session::thread_time::ThreadState;
use pmc_perfdata::record::decode::{self, BranchFlags, DataSource};
use pmc_perfdata::record::{RecordWords, WaitPartner};

/// A sample, or samples with the same attributes.
pub(super) struct SampleCells<'a> {
    pub(super) input: &'a TableInput<'a>,
    pub(super) comm: u32,
    pub(super) attributes: Option<RecordWords<'a>>,
    pub(super) texts: &'a mut StringTable,
}

/// Returns a key's value. Also receives the value of the key's attribute; `None` if it was not kept.
pub(super) type SampleValueOf = fn(&mut SampleCells<'_>, Option<u64>) -> RowCell;

impl<'a> SampleCells<'a> {
    /// Returns the value of an attribute; `None` if it was not kept.
    pub(super) fn word(&self, wanted: SampleAttribute) -> Option<u64> {
        let is_wanted = |kind: &SampleAttribute| match wanted {
            SampleAttribute::Time(_) => matches!(kind, SampleAttribute::Time(_)),
            wanted => *kind == wanted,
        };
        self.attributes?.get(self.input.attribute_kinds.iter().position(is_wanted)?)
    }

    fn text(&mut self, text: impl AsRef<str>) -> RowCell {
        RowCell::Text(self.texts.add(text.as_ref()))
    }

    fn call(&self, location: Option<u64>) -> Option<&'a LocationCall> {
        place::call(self.input.code, location)
    }

    /// Returns the text that `text` makes of a branch's flags.
    fn of_branch(&mut self, flags: Option<u64>, text: fn(BranchFlags) -> &'static str) -> RowCell {
        known(flags).map_or(RowCell::Unknown, |flags| self.text(text(BranchFlags(flags))))
    }

    /// Returns the text that `text` makes of the source of data.
    fn of_data<T: AsRef<str>>(&mut self, source: Option<u64>, text: fn(DataSource) -> T) -> RowCell {
        known(source).map_or(RowCell::Unknown, |source| self.text(text(DataSource(source))))
    }

    pub(super) fn trace_field(&mut self, field: u8) -> RowCell {
        let payload = self.word(SampleAttribute::Payload).unwrap_or(u64::MAX);
        match self.input.words.payload_field(payload, usize::from(field)) {
            // Sort numbers numerically.
            Some(text) => text.parse().map_or_else(|_| self.text(&text), RowCell::Number),
            None => RowCell::Unknown,
        }
    }

    fn task_cell(&mut self, id: Option<u64>, is_named: bool) -> RowCell {
        match id {
            Some(ENDED) => self.text(ENDED_NAME),
            None => RowCell::Unknown,
            Some(id) => match is_named.then(|| self.input.words.task_name(id as i32)).flatten() {
                Some(name) => RowCell::Task(id as i64, self.texts.add(&name)),
                None => RowCell::Number(id as i64),
            },
        }
    }

    /// Returns the text for the partner of a wait in this state.
    fn partner(&mut self, partner: Option<u64>, state: ThreadState) -> RowCell {
        let own = self.word(SampleAttribute::State).and_then(ThreadState::of_number);
        let partner = partner.filter(|_| own == Some(state)).map(WaitPartner::of_word);
        let name = partner.map_or_else(String::new, |partner| self.input.partner_name(partner));
        self.text(name)
    }
}

// The values of the keys: see the rows in `sort`.

pub(super) fn comm(cells: &mut SampleCells<'_>, _: Option<u64>) -> RowCell {
    let name = cells.input.words.comm(cells.comm);
    cells.text(name)
}

pub(super) fn process_name(cells: &mut SampleCells<'_>, name: Option<u64>) -> RowCell {
    let name = name.and_then(|name| u32::try_from(name).ok()).map(|name| cells.input.words.comm(name));
    name.map_or(RowCell::Unknown, |name| cells.text(name))
}

pub(super) fn comm_without_digits(cells: &mut SampleCells<'_>, _: Option<u64>) -> RowCell {
    let name = without_digits(&cells.input.words.comm(cells.comm));
    cells.text(name)
}

/// Returns a plain number.
pub(super) fn number(_: &mut SampleCells<'_>, number: Option<u64>) -> RowCell {
    known(number).map_or(RowCell::Unknown, |number| RowCell::Number(number as i64))
}

pub(super) fn address(_: &mut SampleCells<'_>, address: Option<u64>) -> RowCell {
    known(address).map_or(RowCell::Unknown, RowCell::Address)
}

pub(super) fn data_address(_: &mut SampleCells<'_>, address: Option<u64>) -> RowCell {
    address.map_or(RowCell::Unknown, RowCell::Address)
}

pub(super) fn task(cells: &mut SampleCells<'_>, id: Option<u64>) -> RowCell {
    cells.task_cell(id, true)
}

pub(super) fn task_id(cells: &mut SampleCells<'_>, id: Option<u64>) -> RowCell {
    cells.task_cell(id, false)
}

pub(super) fn socket(cells: &mut SampleCells<'_>, cpu: Option<u64>) -> RowCell {
    cpu.and_then(|cpu| cells.input.words.socket(cpu)).map_or(RowCell::Unknown, RowCell::Number)
}

pub(super) fn time(cells: &mut SampleCells<'_>, slice: Option<u64>) -> RowCell {
    let length = cells.input.attribute_kinds.iter().find_map(|attribute| match attribute {
        SampleAttribute::Time(length) => Some(*length),
        _ => None,
    });
    RowCell::Time(slice.unwrap_or(0).saturating_mul(length.unwrap_or(1)))
}

pub(super) fn cgroup(cells: &mut SampleCells<'_>, id: Option<u64>) -> RowCell {
    let path = cells.input.words.cgroup(id.unwrap_or(0));
    cells.text(path)
}

pub(super) fn payload(cells: &mut SampleCells<'_>, payload: Option<u64>) -> RowCell {
    let text = cells.input.words.payload(payload.unwrap_or(u64::MAX));
    cells.text(text)
}

/// Returns the function at a location.
pub(super) fn symbol(cells: &mut SampleCells<'_>, location: Option<u64>) -> RowCell {
    symbol_of(cells.call(location))
}

/// Returns the module of a location.
pub(super) fn module(cells: &mut SampleCells<'_>, location: Option<u64>) -> RowCell {
    cells.call(location).map_or(RowCell::Unknown, |call| RowCell::Text(call.dso))
}

/// Returns the source line of a location.
pub(super) fn line(cells: &mut SampleCells<'_>, location: Option<u64>) -> RowCell {
    let offset = location.and_then(|location| cells.input.offset(location as u32));
    cells.call(location).map_or(RowCell::Unknown, |call| place::line(call, call, offset))
}

pub(super) fn prediction(cells: &mut SampleCells<'_>, flags: Option<u64>) -> RowCell {
    cells.of_branch(flags, place::prediction)
}

pub(super) fn in_transaction(cells: &mut SampleCells<'_>, flags: Option<u64>) -> RowCell {
    cells.of_branch(flags, |flags| if flags.in_tx() { "T" } else { "." })
}

pub(super) fn abort(cells: &mut SampleCells<'_>, flags: Option<u64>) -> RowCell {
    cells.of_branch(flags, |flags| if flags.is_abort() { "A" } else { "." })
}

pub(super) fn cycles(cells: &mut SampleCells<'_>, flags: Option<u64>) -> RowCell {
    match known(flags).map(|flags| BranchFlags(flags).cycles()) {
        Some(0) => cells.text("-"),
        cycles => number(cells, cycles.map(u64::from)),
    }
}

pub(super) fn memory_level(cells: &mut SampleCells<'_>, source: Option<u64>) -> RowCell {
    cells.of_data(source, |source| source.level_words())
}

pub(super) fn snoop(cells: &mut SampleCells<'_>, source: Option<u64>) -> RowCell {
    cells.of_data(source, |source| source.snoop_words())
}

pub(super) fn tlb(cells: &mut SampleCells<'_>, source: Option<u64>) -> RowCell {
    cells.of_data(source, |source| source.tlb_words())
}

pub(super) fn locked(cells: &mut SampleCells<'_>, source: Option<u64>) -> RowCell {
    cells.of_data(source, |source| source.lock_words())
}

pub(super) fn blocked(cells: &mut SampleCells<'_>, source: Option<u64>) -> RowCell {
    cells.of_data(source, |source| source.blocked_words().trim_start())
}

pub(super) fn operation(cells: &mut SampleCells<'_>, source: Option<u64>) -> RowCell {
    cells.of_data(source, |source| source.operation_class())
}

pub(super) fn cache(cells: &mut SampleCells<'_>, source: Option<u64>) -> RowCell {
    cells.of_data(source, |source| source.cache_class())
}

pub(super) fn memory(cells: &mut SampleCells<'_>, source: Option<u64>) -> RowCell {
    cells.of_data(source, |source| source.memory_class())
}

pub(super) fn data_tlb(cells: &mut SampleCells<'_>, source: Option<u64>) -> RowCell {
    cells.of_data(source, |source| source.dtlb_class())
}

pub(super) fn page_size(cells: &mut SampleCells<'_>, size: Option<u64>) -> RowCell {
    cells.text(decode::page_size(known(size).unwrap_or(0)))
}

pub(super) fn transaction(cells: &mut SampleCells<'_>, flags: Option<u64>) -> RowCell {
    let (names, code) = decode::transaction(flags.unwrap_or(0));
    let code = if code == 0 { String::new() } else { format!(":{code:x}") };
    cells.text(format!("{}{code}", names.join(" ")))
}

pub(super) fn parent(cells: &mut SampleCells<'_>, parent: Option<u64>) -> RowCell {
    match known(parent) {
        Some(parent) => RowCell::Text(StringId(parent as u32)),
        None => cells.text(super::callers::OTHER),
    }
}

pub(super) fn state(cells: &mut SampleCells<'_>, state: Option<u64>) -> RowCell {
    cells.text(state.and_then(ThreadState::of_number).map_or("", ThreadState::name))
}

pub(super) fn wait_site(cells: &mut SampleCells<'_>, site: Option<u64>) -> RowCell {
    cells.text(site.map(WaitSite::of_word).map_or("", WaitSite::name))
}

pub(super) fn wait_function(cells: &mut SampleCells<'_>, location: Option<u64>) -> RowCell {
    match code_owner::waiting_call(cells.input.code, location, cells.texts) {
        None => cells.text(""),
        found => symbol_of(found),
    }
}

pub(super) fn wait_line(cells: &mut SampleCells<'_>, location: Option<u64>) -> RowCell {
    match code_owner::waiting_call(cells.input.code, location, cells.texts) {
        Some(LocationCall { file: Some(file), line, .. }) => RowCell::Line(*file, *line),
        _ => cells.text(""),
    }
}

pub(super) fn waker(cells: &mut SampleCells<'_>, partner: Option<u64>) -> RowCell {
    cells.partner(partner, ThreadState::Blocked)
}

pub(super) fn ran_instead(cells: &mut SampleCells<'_>, partner: Option<u64>) -> RowCell {
    cells.partner(partner, ThreadState::Runnable)
}
/// Returns the value, unless it is the one that marks a missing field.
fn known(word: Option<u64>) -> Option<u64> {
    word.filter(|word| *word != u64::MAX)
}

fn symbol_of(call: Option<&LocationCall>) -> RowCell {
    call.map_or(RowCell::Unknown, |call| RowCell::Symbol(call.level.letter(), call.symbol))
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
