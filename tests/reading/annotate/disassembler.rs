//! The process in which pmc disassembles code: what it may do, when it ends, and that its answers are the same as
//! those of a decoder in this process.

use std::io::{Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};

use object::{Object, ObjectSection};
use pmc_symbols::symbol::disassemble::{
    DisassemblerProcess, InstructionSet, PROCESS_NAME, Syntax, disassemble,
};
use rustix::process::{Pid, Signal, kill_process};

use crate::kit::{self, burn::busy_shell};

/// A value in `/proc/PID/status`; `None` if the process has ended.
fn status(pid: u32, name: &str) -> Option<String> {
    let text = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let value = |name: &str| Some(text.lines().find_map(|line| line.strip_prefix(name))?.trim().to_owned());
    value(name).filter(|_| !value("State:").unwrap().starts_with(['Z', 'X']))
}

/// The children that a thread of this process has started.
fn own_children() -> Vec<u32> {
    let children = std::fs::read_to_string("/proc/thread-self/children").unwrap();
    children.split_whitespace().map(|child| child.parse().unwrap()).collect()
}

/// The instruction set of this machine.
fn own_machine() -> InstructionSet {
    if cfg!(target_arch = "x86_64") { InstructionSet::X86_64 } else { InstructionSet::Aarch64 }
}

#[test]
fn process_has_no_privileges() {
    let (mut socket, other_end) = UnixStream::pair().unwrap();
    let mut command = Command::new(kit::binary());
    command.arg0(PROCESS_NAME).stdin(OwnedFd::from(other_end));
    // It closes the pipes, and the descriptors that it inherits.
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut process = kit::ProcessGuard::start(&mut command);
    drop(command);
    let pid = process.id();
    // It answers after it has given up its privileges: a request for one byte of x86-64 code at address 0.
    socket.write_all(&[0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0x90]).unwrap();
    socket.read_exact(&mut [0]).unwrap();
    for (name, value) in [
        ("Seccomp:", "2"),
        ("NoNewPrivs:", "1"),
        ("CapInh:", "0000000000000000"),
        ("CapPrm:", "0000000000000000"),
        ("CapEff:", "0000000000000000"),
        ("Threads:", "1"),
    ] {
        assert_eq!(status(pid, name).as_deref(), Some(value), "{name}");
    }
    let descriptors = std::fs::read_dir(format!("/proc/{pid}/fd")).unwrap();
    let descriptors: Vec<_> = descriptors.map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(descriptors, ["0"]);
    let limits = std::fs::read_to_string(format!("/proc/{pid}/limits")).unwrap();
    let limit = |name: &str| -> Vec<u64> {
        let line = limits.lines().find_map(|line| line.strip_prefix(name)).unwrap();
        line.split_whitespace().filter_map(|word| word.parse().ok()).collect()
    };
    for (name, most) in [("Max address space", 1 << 30), ("Max cpu time", 600), ("Max core file size", 0)] {
        let both = limit(name);
        assert!(both.len() == 2 && both.iter().all(|value| *value <= most), "{limits}");
    }
    drop(socket);
    assert!(kit::wait_for_end("the disassembler's process", &mut process.0).success());
}

#[test]
fn process_gives_the_same_instructions() {
    let mut process = DisassemblerProcess::new(kit::binary().into());
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
    let library = maps.split_whitespace().find(|word| word.contains("libc.so")).unwrap_or("/proc/self/exe");
    let file = std::fs::read(library).unwrap();
    let file = object::File::parse(&*file).unwrap();
    let text = file.section_by_name(".text").unwrap();
    let (start, code) = (text.address(), text.data().unwrap());
    let code = &code[..code.len().min(100_000)];
    for (machine, syntax) in [
        (own_machine(), Syntax::Att),
        (InstructionSet::X86_64, Syntax::Intel),
        (InstructionSet::X86, Syntax::Att),
        (InstructionSet::Aarch64, Syntax::Att),
    ] {
        let ours = disassemble(machine, syntax, code, start).unwrap();
        assert!(ours.len() > 20_000, "{machine:?}: {}", ours.len());
        assert!(ours.iter().any(|one| one.target.is_some()), "{machine:?}");
        assert!(process.disassemble(machine, syntax, code, start).unwrap() == ours, "{machine:?} {syntax:?}");
    }
    assert!(process.disassemble(own_machine(), Syntax::Att, &[], 0).unwrap().is_empty());
}

#[test]
fn failed_process_is_reported_and_started_again() {
    let folder = tempfile::tempdir().unwrap();
    let crashes = folder.path().join("crashes");
    std::fs::write(&crashes, "#!/bin/sh\nkill -SEGV $$\n").unwrap();
    std::fs::set_permissions(&crashes, std::fs::Permissions::from_mode(0o755)).unwrap();
    let before = own_children();
    let mut process = DisassemblerProcess::new(crashes);
    let mut decode = || process.disassemble(InstructionSet::X86_64, Syntax::Att, &[0x90, 0xc3], 0x1000);
    for _ in 0..8 {
        let error = decode().unwrap_err().to_string();
        assert!(
            error.contains("the 2 bytes of code at 0x1000: it ended with signal: 11 (SIGSEGV)"),
            "{error}"
        );
        assert_eq!(own_children(), before);
    }
    let error = decode().unwrap_err().to_string();
    assert!(error.contains("too often") && error.contains("SIGSEGV"), "{error}");
}

/// If the process is killed while it waits, the next code is not to blame.
#[test]
fn killed_process_is_started_again() {
    let before = own_children();
    let mut process = DisassemblerProcess::new(kit::binary().into());
    let mut decode = || process.disassemble(InstructionSet::X86_64, Syntax::Att, &[0x90, 0xc3], 0x1000);
    for _ in 0..8 {
        assert_eq!(decode().unwrap().len(), 2);
        let all = own_children();
        let started: Vec<&u32> = all.iter().filter(|child| !before.contains(child)).collect();
        let [pid] = started[..] else { panic!("{all:?}") };
        assert_eq!(std::fs::read_to_string(format!("/proc/{pid}/comm")).unwrap(), "pmc-disassemble\n");
        kill_process(Pid::from_raw(*pid as i32).unwrap(), Signal::KILL).unwrap();
        kit::wait_for("the end of the process", || status(*pid, "Name:").is_none());
    }
    let error = decode().unwrap_err().to_string();
    assert!(error.contains("too often") && error.contains("SIGKILL"), "{error}");
}

/// A recording of a busy shell.
fn recording(folder: &Path) -> Option<String> {
    if !kit::need_perf_events() {
        return None;
    }
    let file = folder.join("perf.data").to_str().unwrap().to_owned();
    kit::run(&["record", "-e", "cpu-clock:u", "-F", "5000", "-o", &file, "--", "sh", "-c", busy_shell(100)])
        .expect(0);
    Some(file)
}

/// pmc, which prints instructions to a full pipe, so that it has asked its disassembler and cannot end.
fn blocked(file: &str) -> (kit::ProcessGuard, u32, impl Read) {
    let (reader, writer) = std::io::pipe().unwrap();
    let mut full = kit::pmc();
    full.args(["script", "-F", "ip,disasm", "-i", file]).stdout(writer.try_clone().unwrap());
    rustix::io::ioctl_fionbio(&writer, true).unwrap();
    while rustix::io::write(writer.as_fd(), b"\n").is_ok() {}
    rustix::io::ioctl_fionbio(&writer, false).unwrap();
    let pmc = kit::ProcessGuard::start(&mut full);
    let disassembler = kit::wait_for_some("the disassembler's process", || {
        kit::children(pmc.id()).into_iter().find(|child| kit::has_name(*child, "pmc-disassemble"))
    });
    (pmc, disassembler, reader)
}

#[test]
fn process_ends_with_pmc() {
    let folder = tempfile::tempdir().unwrap();
    let Some(file) = recording(folder.path()) else { return };
    let has_ended = |pid| status(pid, "Name:").is_none();

    let (mut pmc, disassembler, _reader) = blocked(&file);
    assert!(!has_ended(disassembler));
    pmc.signal(Signal::KILL);
    pmc.0.wait().unwrap();
    kit::wait_for("the end of the disassembler's process", || has_ended(disassembler));

    let (mut pmc, disassembler, mut reader) = blocked(&file);
    let mut printed = String::new();
    reader.read_to_string(&mut printed).unwrap();
    assert!(pmc.0.wait().unwrap().success());
    assert!(has_ended(disassembler), "it must end before pmc");
    assert!(printed.contains("\t\t"), "{printed}");
}
