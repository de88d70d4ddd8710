//! Instructions in `pmc script`: those at sampled addresses, and the code between branches. perf prints the same
//! bytes, objdump the same assembly.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use pmc_perfdata::perfdata::Features;
use pmc_sys::abi::{branch_sample_type, sample_type};

use super::against::script;
use super::branches::{BASE, BRANCHES, Dice, ID, write_samples};
use super::lab::{DEEP, Lab};
use crate::kit::{self, oracle};

/// Compares the output of `pmc script` with that of these perfs, byte by byte.
#[track_caller]
fn bytes_agree(perfs: &[PathBuf], file: &Path, options: &[&str]) -> String {
    let ours = script("pmc", file, options);
    for perf in perfs {
        let theirs = oracle::ask_until_answered(|_| {
            let mut command = Command::new(perf);
            command.arg("script").args(options).arg("-i").arg(file).stdin(Stdio::null());
            command
        });
        let theirs = String::from_utf8_lossy(&theirs.stdout);
        for (number, (a, b)) in theirs.lines().zip(ours.lines()).enumerate() {
            assert_eq!(a, b, "{} {options:?}: line {}", perf.display(), number + 1);
        }
        assert_eq!(theirs.len(), ours.len(), "{} {options:?}", perf.display());
    }
    assert!(!ours.is_empty(), "{options:?}: no output");
    ours
}

/// The instructions of a program's functions by function and offset (`leaf+0x1c`), from objdump.
fn objdump(program: &Path) -> BTreeMap<String, (u64, String)> {
    let text = oracle::says("objdump", &[Path::new("-d"), program]);
    let (mut all, mut function) = (BTreeMap::new(), (String::new(), 0));
    for line in text.lines() {
        if let Some((address, name)) = line.strip_suffix(">:").and_then(|line| line.split_once(" <")) {
            function = (name.to_owned(), u64::from_str_radix(address, 16).expect("an address"));
        }
        let mut parts = line.split('\t');
        let (Some(address), Some(_bytes), Some(code)) = (parts.next(), parts.next(), parts.next()) else {
            continue;
        };
        let address = u64::from_str_radix(address.trim().trim_end_matches(':'), 16).expect("an address");
        let code = code.split('#').next().unwrap_or_default();
        let (mnemonic, operands) = code.trim().split_once(' ').unwrap_or((code.trim(), ""));
        // The name of a jump's target replaces its address.
        let target = operands.split_once(" <").and_then(|(_, name)| name.strip_suffix('>'));
        let code = format!("{mnemonic} {}", target.unwrap_or(operands.trim()));
        all.insert(
            format!("{}+{:#x}", function.0, address - function.1),
            (address, code.trim_end().to_owned()),
        );
    }
    all
}

#[test]
fn sampled_instructions_match_perf_and_objdump() {
    let Some(lab) = Lab::new() else { return };
    if !kit::need_program("objdump") {
        return;
    }
    let deep = lab.build("deep", DEEP);
    let file = lab.record("flat", &["-e", "cpu-clock:u", "-F", "2000"], &[deep.to_str().unwrap()], false);
    let perfs = oracle::perfs();
    for fields in ["insn", "insnlen", "ip,insn", "comm,insn,insnlen"] {
        bytes_agree(&perfs, &file, &["-F", fields]);
    }
    let known = objdump(&deep);
    let lines = script("pmc", &file, &["-F", "ip,sym,symoff,disasm", "--dsos", "deep"]);
    let mut compared = 0;
    for line in lines.lines() {
        let (place, code) = line.split_once("\t\t").unwrap_or_else(|| panic!("no code: {line}"));
        let place = place.rsplit(' ').next().unwrap_or_default();
        assert_eq!(known.get(place).map(|(_, code)| code.as_str()), Some(code), "{line}");
        compared += 1;
    }
    assert!(compared > 100, "{lines}");
    let json = script("pmc", &file, &["--json", "-F", "insn", "--dsos", "deep"]);
    let first: serde_json::Value = serde_json::from_str(json.lines().next().unwrap()).unwrap();
    assert!(first["insn"].is_string() && first["disasm"].is_string(), "{first}");
    // A missing program is not an error.
    std::fs::remove_file(&deep).unwrap();
    bytes_agree(&perfs, &file, &["-F", "insn,insnlen"]);
}

/// Sample type of the recordings of branches.
const LAYOUT: u64 = sample_type::IDENTIFIER
    | sample_type::IP
    | sample_type::TID
    | sample_type::TIME
    | sample_type::BRANCH_STACK;

/// Writes a recording of branches between instructions of a program. Some blocks do not end at an
/// instruction, have no end, or lead into the kernel.
fn write_branches(lab: &Lab, branch_types: u64) -> PathBuf {
    let program = lab.build("deep", DEEP);
    let functions = ["leaf+", "other+", "down+", "middle+", "main+"];
    let code: Vec<u64> = objdump(&program)
        .into_iter()
        .filter(|(place, _)| functions.iter().any(|function| place.starts_with(function)))
        .map(|(_, (address, _))| BASE + address)
        .collect();
    let mut dice = Dice(17);
    let mut samples = Vec::new();
    for number in 0..300u64 {
        let mut at = || code[dice.below(code.len() as u64) as usize];
        let mut words = vec![ID, at(), 100 | 100 << 32, 1000 + number * 1000];
        let count = number % 9;
        words.push(count);
        for branch in 0..count {
            let (mut from, mut to) = (at(), at());
            match number % 7 {
                1 if branch == 0 && count > 1 => from += 1,
                2 if branch == 1 => from = 0xffff_ffff_8100_0000,
                3 if branch == 1 => to = 0xffff_ffff_8100_0000,
                4 => to = 0,
                5 if branch > 0 => (from, to) = (from.max(to), from.min(to)),
                _ => {}
            }
            words.extend([from, to, (number % 16) | (number * branch % 90) << 4]);
        }
        samples.push(words);
    }
    let file = lab.path(&format!("branches-{branch_types:x}"));
    write_samples(&file, &program, (LAYOUT, branch_types), &Features::default(), &samples);
    file
}

#[test]
fn code_between_branches_matches_perf() {
    let Some(lab) = Lab::new() else { return };
    if !kit::need_program("objdump") {
        return;
    }
    let file = write_branches(&lab, BRANCHES);
    // perf 6.1 also ends the last block at conditional jumps.
    let perfs: Vec<PathBuf> = oracle::perfs().into_iter().skip(1).collect();
    for fields in ["brstackinsn", "brstackinsnlen", "comm,brstackinsn,brstackinsnlen", "ip,insn,brstackinsn"]
    {
        let text = bytes_agree(&perfs, &file, &["-F", fields]);
        for part in ["IPC", "\tmismatch of LBR data", "\t... not reaching sample", "leaf+", " ABORT", " INTX"]
        {
            assert!(text.contains(part), "{fields}: no {part:?}\n{text}");
        }
    }
    for most in ["1", "3", "0"] {
        bytes_agree(&perfs, &file, &["-F", "brstackinsn", "--max-blocks", most]);
    }
    let assembly = script("pmc", &file, &["-F", "brstackdisasm"]);
    assert!(assembly.contains("\tpush %rbp\n") && !assembly.contains("insn:"), "{assembly}");
    // A hostile recording may contain any number of long blocks.
    let blocks = (0..2000).flat_map(|number| [BASE + 0x1000 + number + 16_000, BASE + 0x1000 + number, 0]);
    let sample: Vec<u64> =
        [ID, BASE + 0x1000, 100 | 100 << 32, 1000, 2000].into_iter().chain(blocks).collect();
    let long = lab.path("long");
    write_samples(&long, &lab.path("deep"), (LAYOUT, BRANCHES), &Features::default(), &[sample]);
    let text = script("pmc", &long, &["-F", "brstackinsn"]);
    assert!(text.ends_with("\t... too much code for one sample ...\n\n"), "{text}");
    // Code between calls is not known.
    let calls = write_branches(&lab, branch_sample_type::USER | branch_sample_type::CALL_STACK);
    kit::run(&["script", "-F", "comm,brstackinsn", "-i", calls.to_str().unwrap()])
        .expect(0)
        .says(&["recorded without brstackinsn"]);
}
