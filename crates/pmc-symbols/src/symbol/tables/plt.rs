//! Names for the stubs through which a program calls libraries: `printf@plt`.
//!
//! A stub jumps to the address in a slot, whose relocation names the function. Because each stub is decoded,
//! this works with any section layout (plain, IBT's second table, non-lazy, BTI).
//!
//! ```text
//!   x86-64   [endbr64] [bnd] jmp *disp32(%rip)      slot = end of the instruction + disp32
//!   aarch64  adrp x16, PAGE ; ldr x17, [x16, #lo]   slot = PAGE + lo
//! ```

use object::Architecture;
use object::read::{File, Object, ObjectSection, ObjectSymbol, ObjectSymbolTable, RelocationTarget};
use rustc_hash::{FxHashMap, FxHashSet};

use super::table::{NameRank, SymbolTableBuilder};

/// Maximum number of stubs; more than any legitimate file has.
const MOST_STUBS: usize = 1 << 20;

/// Sections with stubs.
const SECTIONS: [&str; 3] = [".plt", ".plt.sec", ".plt.got"];

/// Returns the address ranges of the stubs in a file.
pub(crate) fn places(file: &File<'_>) -> Vec<(u64, u64)> {
    let place = |section: object::read::Section<'_, '_>| {
        (section.address(), section.address().saturating_add(section.size()))
    };
    SECTIONS.iter().filter_map(|name| file.section_by_name(name).map(place)).collect()
}

pub(crate) fn add_stubs(file: &File<'_>, into: &mut SymbolTableBuilder) {
    let find = match file.architecture() {
        Architecture::X86_64 => x86_64,
        Architecture::Aarch64 => aarch64,
        _ => return,
    };
    // Start, length and slot of each relevant stub.
    let mut stubs: Vec<(u64, usize, u64)> = Vec::new();
    for name in SECTIONS {
        let Some(section) = file.section_by_name(name) else { continue };
        let Ok(code) = section.data() else { continue };
        // A stub is 8 or 16 bytes long, depending on the section. The header of a table may have a different
        // size.
        let step = if name == ".plt.got" && file.architecture() == Architecture::X86_64 { 8 } else { 16 };
        for (at, stub) in code.chunks(step).enumerate().take(MOST_STUBS) {
            let address = section.address().wrapping_add((at * step) as u64);
            if !into.wants(address, stub.len() as u64, u64::MAX) {
                continue;
            }
            if let Some(slot) = find(stub, address) {
                stubs.push((address, stub.len(), slot));
            }
        }
    }
    let slots = slots(file, &stubs.iter().map(|(.., slot)| *slot).collect());
    for (address, len, slot) in stubs {
        let Some(symbol) = slots.get(&slot) else { continue };
        let rank = NameRank { function: true, strong: true, global: false };
        into.add(address, len as u64, u64::MAX, rank, &format!("{symbol}@plt"));
    }
}

/// Maps each wanted slot to the name of its function.
fn slots(file: &File<'_>, wanted: &FxHashSet<u64>) -> FxHashMap<u64, String> {
    if wanted.is_empty() {
        return FxHashMap::default();
    }
    let name = |(slot, target)| match target {
        SlotTarget::Symbol(name) if !name.is_empty() => {
            Some((slot, String::from_utf8_lossy(name).into_owned()))
        }
        _ => None,
    };
    slot_targets(file, &|slot| wanted.contains(&slot)).filter_map(name).collect()
}

/// The function whose address the dynamic linker writes to a slot.
#[derive(Debug, Clone, Copy)]
pub(in crate::symbol) enum SlotTarget<'a> {
    /// The symbol with this name, in any file.
    Symbol(&'a [u8]),
    /// The code at this address in the same file.
    Address(u64),
}

/// Iterates over the wanted slots of a file and their targets.
pub(in crate::symbol) fn slot_targets<'f, 'a: 'f>(
    file: &'f File<'a>,
    wanted: &'f dyn Fn(u64) -> bool,
) -> impl Iterator<Item = (u64, SlotTarget<'a>)> + 'f {
    let relocations = file.dynamic_relocations().into_iter().flatten().take(4 * MOST_STUBS);
    relocations.filter(|(slot, _)| wanted(*slot)).filter_map(|(slot, relocation)| {
        let target = match relocation.target() {
            RelocationTarget::Symbol(index) => {
                let symbol = file.dynamic_symbol_table()?.symbol_by_index(index).ok()?;
                SlotTarget::Symbol(symbol.name_bytes().ok()?)
            }
            _ => SlotTarget::Address(relocation.addend() as u64),
        };
        Some((slot, target))
    })
}

fn x86_64(stub: &[u8], address: u64) -> Option<u64> {
    let at = stub.windows(2).position(|pair| pair == [0xff, 0x25])?;
    let displacement = i32::from_le_bytes(stub.get(at + 2..at + 6)?.try_into().ok()?);
    Some(address.wrapping_add(at as u64 + 6).wrapping_add_signed(i64::from(displacement)))
}

fn aarch64(stub: &[u8], address: u64) -> Option<u64> {
    let words: Vec<u32> =
        stub.chunks_exact(4).filter_map(|w| Some(u32::from_le_bytes(w.try_into().ok()?))).collect();
    let at = words.windows(2).position(|pair| {
        let adrp_x16 = pair[0] & 0x9f00_001f == 0x9000_0010;
        let ldr_x17_x16 = pair[1] & 0xffc0_03ff == 0xf940_0211;
        adrp_x16 && ldr_x17_x16
    })?;
    let (adrp, ldr) = (words[at], words[at + 1]);
    // The page number has 21 bits, the lowest two of which are stored separately. The shifts sign-extend it.
    let pages = (i64::from(((adrp >> 5 & 0x7_ffff) << 2 | adrp >> 29 & 3) << 11) << 32 >> 43) << 12;
    let here = address.wrapping_add(4 * at as u64) & !0xfff;
    Some(here.wrapping_add_signed(pages).wrapping_add(u64::from(ldr >> 10 & 0xfff) * 8))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plt_stubs_map_to_their_got_slots() {
        // endbr64; jmp *0x2f76(%rip)
        let stub = [0xf3, 0x0f, 0x1e, 0xfa, 0xff, 0x25, 0x76, 0x2f, 0, 0, 0x66, 0x0f, 0x1f, 0x44, 0, 0];
        assert_eq!(x86_64(&stub, 0x1050), Some(0x1050 + 10 + 0x2f76));
        assert_eq!(x86_64(&stub[..8], 0), None);
        // adrp x16, +0x1f000; ldr x17, [x16, #0xfa8]; add x16, x16, #0xfa8; br x17
        let words = [0xf000_00f0u32, 0xf947_d611, 0x913e_a210, 0xd61f_0220];
        let stub: Vec<u8> = words.iter().flat_map(|w| w.to_le_bytes()).collect();
        assert_eq!(aarch64(&stub, 0x5a0), Some(0x1f000 + 0xfa8));
        // A negative page distance: adrp x16, -0x1000.
        let words = [0xf0ff_fff0u32, 0xf940_0211];
        let stub: Vec<u8> = words.iter().flat_map(|w| w.to_le_bytes()).collect();
        assert_eq!(aarch64(&stub, 0x5000), Some(0x4000));
    }
}
