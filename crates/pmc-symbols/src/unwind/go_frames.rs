//! Unwind tables of Go programs without debug information (`-ldflags="-w"`). Go's own table has the size of
//! each function's stack frame. This module writes the `.debug_frame` that Go's linker writes from it, so
//! that all code is unwound in one way. It marks the functions without callers, as the linker does for arm64.

use gimli::write::{
    Address, CallFrameInstruction, CommonInformationEntry, DebugFrame, EndianVec, FrameDescriptionEntry,
    FrameTable,
};
use gimli::{AArch64, Encoding, Format, LittleEndian, Register, X86, X86_64};

use super::arch::Arch;
use super::section::{SharedBytes, address_size};
use crate::go_table::GoTable;

/// Returns a `.debug_frame`; `None` if the table is damaged or contains no frames.
pub(super) fn debug_frame(go: &GoTable<'_>, arch: Arch) -> Option<SharedBytes> {
    let word = i32::from(address_size(arch));
    let (stack_pointer, return_address) = match arch {
        Arch::X86_64 => (X86_64::RSP, X86_64::RA),
        Arch::X86 => (X86::ESP, X86::RA),
        Arch::Aarch64 => (AArch64::SP, AArch64::X30),
    };
    // A call pushes the return address, or leaves it in a register that the function stores below its frame.
    let pushed = if arch == Arch::Aarch64 { 0 } else { word };
    let mut table = FrameTable::default();
    let entry = table.add_cie(common(address_size(arch), stack_pointer, return_address, pushed));
    // Each of many hostile functions may have the same long list of sizes.
    let mut room = go.bytes();
    for (range, number) in go.functions() {
        let mut function = FrameDescriptionEntry::new(
            Address::Constant(range.start),
            u32::try_from(range.end - range.start).ok()?,
        );
        let is_outermost = go.is_outermost(number);
        if is_outermost {
            function.add_instruction(0, CallFrameInstruction::Undefined(return_address));
        }
        for (start, size) in go.frame_sizes(number) {
            room = room.checked_sub(1)?;
            let (start, size) = (u32::try_from(start).ok()?, i32::try_from(size).ok()?);
            let cfa = CallFrameInstruction::CfaOffset(size.checked_add(pushed)?);
            function.add_instruction(start, cfa);
            if arch == Arch::Aarch64 && !is_outermost {
                let rule = match size {
                    1.. => CallFrameInstruction::Offset(return_address, -size),
                    ..1 => CallFrameInstruction::SameValue(return_address),
                };
                function.add_instruction(start, rule);
            }
        }
        table.add_fde(entry, function);
    }
    let mut section = DebugFrame(EndianVec::new(LittleEndian));
    table.write_debug_frame(&mut section).ok()?;
    Some(section.0.into_vec().into())
}

fn common(
    address_size: u8,
    stack_pointer: Register,
    return_address: Register,
    pushed: i32,
) -> CommonInformationEntry {
    let encoding = Encoding { address_size, format: Format::Dwarf32, version: 3 };
    let mut common = CommonInformationEntry::new(encoding, 1, -1, return_address);
    common.add_instruction(CallFrameInstruction::Cfa(stack_pointer, pushed));
    if pushed > 0 {
        common.add_instruction(CallFrameInstruction::Offset(return_address, -pushed));
    }
    common
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use gimli::{BaseAddresses, CieOrFde, DebugFrame, EndianSlice, UnwindContext, UnwindSection};
    use object::read::File;

    use super::super::section;
    use super::super::tables::bytes;
    use super::*;
    use crate::kit::need;

    /// The starts of rows that differ from the row before, with the rules for the caller's frame and for the
    /// return address.
    fn rows(frames: &[u8], arch: Arch) -> Vec<(u64, String, String)> {
        let section: DebugFrame<EndianSlice<'_, LittleEndian>> = section::debug_frame(frames, arch);
        let bases = BaseAddresses::default();
        let (mut entries, mut rows) = (section.entries(&bases), Vec::new());
        while let Some(entry) = entries.next().unwrap() {
            let CieOrFde::Fde(function) = entry else { continue };
            let function = function.parse(DebugFrame::cie_from_offset).unwrap();
            let mut context = UnwindContext::new();
            let mut table = function.rows(&section, &bases, &mut context).unwrap();
            while let Some(row) = table.next_row().unwrap() {
                let rule = row.register(function.cie().return_address_register());
                rows.push((row.start_address(), format!("{:?}", row.cfa()), format!("{rule:?}")));
            }
        }
        rows.sort();
        rows.dedup_by(|(_, cfa, rule), last| (cfa, rule) == (&mut last.1, &mut last.2));
        rows
    }

    #[test]
    fn frames_are_those_of_gos_linker() {
        let is_installed = Command::new("go").arg("version").output().is_ok();
        if !need("go", is_installed, "go is not installed") {
            return;
        }
        let folder = tempfile::tempdir().unwrap();
        let (source, program) = (folder.path().join("a.go"), folder.path().join("a"));
        std::fs::write(&source, "package main\nimport \"fmt\"\nfunc main() { fmt.Println(1) }\n").unwrap();
        for (name, arch) in [("amd64", Arch::X86_64), ("386", Arch::X86), ("arm64", Arch::Aarch64)] {
            let mut go = Command::new("go");
            go.env("GOCACHE", folder.path().join("cache")).env("HOME", folder.path());
            go.env("GOFLAGS", "-mod=mod").env("GOARCH", name).env("CGO_ENABLED", "0");
            assert!(go.args(["build", "-o"]).args([&program, &source]).status().unwrap().success());
            let program = std::fs::read(&program).unwrap();
            let file = File::parse(&*program).unwrap();
            let linkers = rows(&bytes(&file, ".debug_frame").unwrap(), arch);
            assert!(linkers.len() > 1000, "{name}: {}", linkers.len());
            let ours = rows(&debug_frame(&GoTable::find(&file).unwrap(), arch).unwrap(), arch);
            let is_missing = |(start, cfa, rule): &&(u64, String, String)| {
                let has = |rule: &str| {
                    let row = (*start, cfa.clone(), rule.to_owned());
                    ours.binary_search(&row).is_ok()
                };
                !has(rule) && !has("Some(Undefined)")
            };
            let missing: Vec<_> = linkers.iter().filter(is_missing).take(9).collect();
            let outermost = ours.iter().filter(|(.., rule)| rule == "Some(Undefined)").count();
            assert!((1..100).contains(&outermost), "{name}: {outermost}");
            assert!(missing.is_empty(), "{name}: {missing:?}");
        }
    }
}
