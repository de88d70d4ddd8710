//! Formats the arguments and results of system calls in strace's notation.
//!
//! Memory contents that pmc read after the call are marked with `~`, because they may have changed since the
//! call.

use std::fmt::Write;
use std::net::{Ipv4Addr, Ipv6Addr};

use pmc_analysis::profile::syscalls::{
    CallDescriptors, CallResult, CapturedMemory, DescriptorName, EnteredCall, TracedCall,
};
use pmc_sys::abi::syscall::{ArgumentKind, FlagSet, SyscallAbi};
use pmc_sys::error::errno_words;
use pmc_sys::text::clean;

const AT_FDCWD: i32 = -100;
/// Flags for which `open` uses its mode argument: `O_CREAT`, and the bit of `O_TMPFILE`.
const CREATES: u64 = 0x40_0040;

/// Returns each argument's name and formatted value. Arguments of unknown calls do not have names.
pub(super) fn arguments(call: &TracedCall, descriptors: &CallDescriptors) -> Vec<(&'static str, String)> {
    let entered = &call.entered;
    let Some(list) = entered.call().and_then(|known| known.arguments.as_ref()) else {
        return entered.arguments.iter().map(|word| ("", format!("{word:#x}"))).collect();
    };
    let mut all = Vec::with_capacity(list.len());
    for (at, argument) in list.iter().enumerate().take(6) {
        if let ArgumentKind::CreateMode(flags) = argument.kind
            && entered.arguments[flags] & CREATES == 0
        {
            continue;
        }
        let name = descriptors.arguments[at].as_ref();
        all.push((argument.name, value(entered, at, argument.kind, name)));
    }
    all
}

/// Returns the index of the first argument whose memory the call writes.
pub(super) fn first_output(call: &EnteredCall) -> Option<usize> {
    call.call()?.arguments.iter().flatten().position(|argument| argument.kind.is_output())
}

fn value(call: &EnteredCall, at: usize, kind: ArgumentKind, descriptor: Option<&DescriptorName>) -> String {
    let word = register(call.abi, call.arguments[at]);
    let low = word as u32;
    match kind {
        ArgumentKind::DirFd if low as i32 == AT_FDCWD => "AT_FDCWD".to_owned(),
        ArgumentKind::Fd | ArgumentKind::DirFd => self::descriptor(low as i32, descriptor),
        ArgumentKind::Int => (low as i32).to_string(),
        ArgumentKind::Uint => low.to_string(),
        ArgumentKind::Long if call.abi.is_32_bit() => (low as i32).to_string(),
        ArgumentKind::Long => (word as i64).to_string(),
        ArgumentKind::Size => word.to_string(),
        ArgumentKind::Hex if word < 10 => word.to_string(),
        ArgumentKind::Hex => format!("{word:#x}"),
        ArgumentKind::Mode | ArgumentKind::CreateMode(_) => permissions(low & 0o17_7777),
        ArgumentKind::Flags(set) => flags(set, call.abi, low),
        _ => match call.memory.get(at) {
            Some(memory) => captured(kind, memory, call.abi).unwrap_or_else(|| address(word)),
            None => address(word),
        },
    }
}

fn flags(set: &'static FlagSet, abi: SyscallAbi, word: u32) -> String {
    let set = if matches!(abi, SyscallAbi::Arm64 | SyscallAbi::Arm) { set.on_arm() } else { set };
    set.names(word.into())
}

fn descriptor(fd: i32, name: Option<&DescriptorName>) -> String {
    match name {
        None => fd.to_string(),
        Some(DescriptorName { name, may_have_changed }) => {
            let mark = if *may_have_changed { "~" } else { "" };
            format!("{fd}<{mark}{}>", clean(name))
        }
    }
}

/// Returns the bits of a register that the call uses.
fn register(abi: SyscallAbi, word: u64) -> u64 {
    if abi.is_32_bit() { word & 0xffff_ffff } else { word }
}

/// Returns permissions in octal, with a leading 0 and at least three digits in total.
fn permissions(mode: u32) -> String {
    format!("0{mode:02o}")
}

fn address(word: u64) -> String {
    if word == 0 { "NULL".to_owned() } else { format!("{word:#x}") }
}

/// Returns the formatted contents of memory, marked `~` if they may have changed; `None` if they are invalid.
fn captured(kind: ArgumentKind, memory: &CapturedMemory, abi: SyscallAbi) -> Option<String> {
    let text = match memory {
        CapturedMemory::Recorded(bytes) => return Some(quoted(bytes, false)),
        CapturedMemory::Texts(list, is_cut) => {
            let mut words: Vec<String> = list.iter().map(|text| quoted(text, false)).collect();
            words.extend(is_cut.then(|| "...".to_owned()));
            format!("[{}]", words.join(", "))
        }
        CapturedMemory::Bytes(bytes, is_cut) => match kind {
            ArgumentKind::Timespec | ArgumentKind::TimespecOutput => {
                match (i64_at(bytes, 0), i64_at(bytes, 8)) {
                    (Some(seconds), Some(ns)) => format!("{{tv_sec={seconds}, tv_nsec={ns}}}"),
                    _ => quoted(bytes, *is_cut),
                }
            }
            ArgumentKind::Stat => stat(bytes, abi)?,
            ArgumentKind::FdPair => {
                let pair: Vec<String> =
                    bytes.chunks_exact(4).filter_map(|fd| Some(i32_at(fd, 0)?.to_string())).collect();
                format!("[{}]", pair.join(", "))
            }
            ArgumentKind::SignalSet => signals(bytes),
            ArgumentKind::PollFds(_) => poll_fds(bytes, *is_cut),
            ArgumentKind::SocketAddress(_) => socket_address(bytes),
            _ => quoted(bytes, *is_cut),
        },
    };
    Some(format!("~{text}"))
}

fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    bytes.get(at..)?.first_chunk().map(|word| u16::from_ne_bytes(*word))
}

fn i32_at(bytes: &[u8], at: usize) -> Option<i32> {
    bytes.get(at..)?.first_chunk().map(|word| i32::from_ne_bytes(*word))
}

fn i64_at(bytes: &[u8], at: usize) -> Option<i64> {
    bytes.get(at..)?.first_chunk().map(|word| i64::from_ne_bytes(*word))
}

/// Returns bytes as a C string literal in plain ASCII.
fn quoted(bytes: &[u8], is_cut: bool) -> String {
    let mut out = String::with_capacity(bytes.len() + 2);
    out.push('"');
    for (at, &byte) in bytes.iter().enumerate() {
        match byte {
            b'"' => out.push_str("\\\""),
            b'\\' => out.push_str("\\\\"),
            b'\n' => out.push_str("\\n"),
            b'\r' => out.push_str("\\r"),
            b'\t' => out.push_str("\\t"),
            b' '..=b'~' => out.push(byte.into()),
            _ => {
                // If a digit follows, write all three octal digits. Otherwise, the digit would be read as
                // part of the number.
                let is_digit_next = bytes.get(at + 1).is_some_and(|next| next.is_ascii_digit());
                let _ = if is_digit_next { write!(out, "\\{byte:03o}") } else { write!(out, "\\{byte:o}") };
            }
        }
    }
    out.push('"');
    if is_cut {
        out.push_str("...");
    }
    out
}

/// Returns the type, permissions and size of a `stat` structure.
fn stat(bytes: &[u8], abi: SyscallAbi) -> Option<String> {
    let (mode_at, device_at) = if abi == SyscallAbi::X86_64 { (24, 40) } else { (16, 32) };
    let mode = i32_at(bytes, mode_at)? as u32;
    let kind = match mode >> 12 {
        1 => "S_IFIFO",
        2 => "S_IFCHR",
        4 => "S_IFDIR",
        6 => "S_IFBLK",
        8 => "S_IFREG",
        10 => "S_IFLNK",
        12 => "S_IFSOCK",
        // The value is invalid, so the memory must have changed.
        _ => return None,
    };
    let permissions = permissions(mode & 0o7777);
    let rest = match mode >> 12 {
        2 | 6 => {
            let device = i64_at(bytes, device_at)? as u64;
            let major = device >> 8 & 0xfff | device >> 32 & !0xfff;
            let minor = device & 0xff | device >> 12 & !0xff;
            format!("st_rdev=makedev({major:#x}, {minor:#x})")
        }
        _ => format!("st_size={}", i64_at(bytes, 48)?),
    };
    Some(format!("{{st_mode={kind}|{permissions}, {rest}, ...}}"))
}

/// Returns the names of the signals in a set. For a set that contains most signals, returns the names of
/// those that are not in it.
fn signals(bytes: &[u8]) -> String {
    let Some(set) = i64_at(bytes, 0).map(|set| set as u64) else { return quoted(bytes, false) };
    let is_inverted = set.count_ones() > 32;
    let shown = if is_inverted { !set } else { set };
    let names: Vec<String> =
        (1..=64u64).filter(|signal| shown >> (signal - 1) & 1 == 1).map(signal_name).collect();
    format!("{}[{}]", if is_inverted { "~" } else { "" }, names.join(" "))
}

fn signal_name(signal: u64) -> String {
    match (signal, FlagSet::named("signal")) {
        (1..=31, Some(set)) => set.names(signal).trim_start_matches("SIG").to_owned(),
        (32, _) => "RTMIN".to_owned(),
        _ => format!("RT_{}", signal as i64 - 32),
    }
}

fn poll_fds(bytes: &[u8], is_cut: bool) -> String {
    let mut all: Vec<String> = bytes
        .chunks_exact(8)
        .filter_map(|one| {
            let (fd, events) = (i32_at(one, 0)?, u16_at(one, 4)?);
            let events =
                FlagSet::named("poll_events").map(|set| set.names(events.into())).unwrap_or_default();
            Some(format!("{{fd={fd}, events={events}}}"))
        })
        .collect();
    all.extend(is_cut.then(|| "...".to_owned()));
    format!("[{}]", all.join(", "))
}

fn socket_address(bytes: &[u8]) -> String {
    let known = || {
        let family = u16_at(bytes, 0)?;
        let port = || bytes.get(2..)?.first_chunk().map(|port| u16::from_be_bytes(*port));
        match family {
            1 => {
                let path = bytes.get(2..)?;
                let is_abstract = path.first() == Some(&0) && path.len() > 1;
                let path = path.get(usize::from(is_abstract)..)?;
                let end = path.iter().position(|byte| *byte == 0 && !is_abstract).unwrap_or(path.len());
                let mark = if is_abstract { "@" } else { "" };
                Some(format!("{{sa_family=AF_UNIX, sun_path={mark}{}}}", quoted(&path[..end], false)))
            }
            2 => {
                let address = Ipv4Addr::from(*bytes.get(4..)?.first_chunk::<4>()?);
                let port = port()?;
                Some(format!(
                    "{{sa_family=AF_INET, sin_port=htons({port}), sin_addr=inet_addr(\"{address}\")}}"
                ))
            }
            10 => {
                let address = Ipv6Addr::from(*bytes.get(8..)?.first_chunk::<16>()?);
                let port = port()?;
                Some(format!("{{sa_family=AF_INET6, sin6_port=htons({port}), sin6_addr=\"{address}\"}}"))
            }
            family => {
                let name = FlagSet::named("address_family")?.names(family.into());
                Some(format!("{{sa_family={name}, ...}}"))
            }
        }
    };
    known().unwrap_or_else(|| quoted(bytes, false))
}

/// Returns the result of a call: a number, a descriptor, an address, or an error with its message.
pub(super) fn result(call: &TracedCall, descriptors: &CallDescriptors) -> String {
    match call.result {
        CallResult::Unfinished => "?".to_owned(),
        CallResult::Error(errno) => {
            let (name, message) = errno_words(errno);
            // The kernel restarts such a call or replaces the error.
            if (512..=516).contains(&errno) {
                format!("? {name} ({message})")
            } else {
                format!("-1 {name} ({message})")
            }
        }
        CallResult::Value(value) => {
            let name = call.entered.call().map_or("", |known| known.name);
            match (&descriptors.result, name) {
                (Some(name), _) => descriptor(value as i32, Some(name)),
                (None, "mmap" | "mmap2" | "mremap" | "brk" | "shmat") => {
                    format!("{:#x}", register(call.entered.abi, value as u64))
                }
                (None, _) => value.to_string(),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pmc_analysis::profile::syscalls::CallMemory;
    use pmc_perfdata::record::Thread;
    use pmc_sys::abi::syscall::SyscallTable;
    use std::sync::Arc;

    fn call(name: &str, words: &[u64], memory: CallMemory, result: CallResult) -> TracedCall {
        let abi = SyscallAbi::X86_64;
        let number = SyscallTable::get().by_name(name).unwrap().number(abi).unwrap().into();
        let mut arguments = [0; 6];
        arguments[..words.len()].copy_from_slice(words);
        let entered = EnteredCall {
            thread: Thread { pid: 1, tid: 1 },
            abi,
            number,
            arguments,
            begin: 0,
            memory,
            stack: Box::default(),
        };
        TracedCall { entered, end: 1, result, comm: Arc::from("x"), has_loss: false }
    }

    fn shown(name: &str, words: &[u64], memory: Option<(usize, &[u8])>) -> String {
        let mut all = CallMemory::default();
        if let Some((at, bytes)) = memory {
            all.set(at, CapturedMemory::Bytes(bytes.to_vec(), false));
        }
        let call = call(name, words, all, CallResult::Value(0));
        let values: Vec<String> =
            arguments(&call, &CallDescriptors::default()).into_iter().map(|(_, value)| value).collect();
        values.join(", ")
    }

    #[test]
    fn arguments_are_shown_as_in_strace() {
        let cwd = AT_FDCWD as u32 as u64;
        assert_eq!(
            shown("openat", &[cwd, 0x1000, 0x8_0000, 0], None),
            "AT_FDCWD, 0x1000, O_RDONLY|O_CLOEXEC"
        );
        assert_eq!(
            shown("openat", &[cwd, 0x1000, 0x241, 0o644], Some((1, b"a\"b\n"))),
            "AT_FDCWD, ~\"a\\\"b\\n\", O_WRONLY|O_CREAT|O_TRUNC, 0644"
        );
        assert_eq!(
            shown("mmap", &[0, 8192, 3, 0x22, u64::MAX, 0], None),
            "NULL, 8192, PROT_READ|PROT_WRITE, MAP_PRIVATE|MAP_ANONYMOUS, -1, 0"
        );
        assert_eq!(shown("getpid", &[], None), "");
        assert_eq!(shown("lseek", &[3, -4i64 as u64, 1], None), "3, -4, SEEK_CUR");
        assert_eq!(shown("chmod", &[0, 0o755], None), "NULL, 0755");
        assert_eq!(shown("kill", &[5, 15], None), "5, SIGTERM");
        assert_eq!(
            ["0", "7", "22"].map(|mode| shown("umask", &[u64::from_str_radix(mode, 8).unwrap()], None)),
            ["000", "007", "022"]
        );
    }

    #[test]
    fn structures_are_decoded() {
        let timespec: Vec<u8> = [1i64, 500].iter().flat_map(|word| word.to_ne_bytes()).collect();
        assert_eq!(shown("nanosleep", &[1, 0], Some((0, &timespec))), "~{tv_sec=1, tv_nsec=500}, NULL");
        let mut stat = vec![0; 144];
        stat[24..28].copy_from_slice(&0o100_644u32.to_ne_bytes());
        stat[48..56].copy_from_slice(&77u64.to_ne_bytes());
        assert_eq!(shown("fstat", &[3, 9], Some((1, &stat))), "3, ~{st_mode=S_IFREG|0644, st_size=77, ...}");
        stat[24..28].copy_from_slice(&0o020_620u32.to_ne_bytes());
        stat[40..48].copy_from_slice(&0x8801u64.to_ne_bytes());
        assert!(
            shown("fstat", &[3, 9], Some((1, &stat))).contains("S_IFCHR|0620, st_rdev=makedev(0x88, 0x1)")
        );
        let ip = [2, 0, 0, 80, 127, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0];
        assert_eq!(
            shown("connect", &[3, 9, 16], Some((1, &ip))),
            "3, ~{sa_family=AF_INET, sin_port=htons(80), sin_addr=inet_addr(\"127.0.0.1\")}, 16"
        );
        assert_eq!(
            shown("connect", &[3, 9, 9], Some((1, b"\x01\0/run/x\0"))),
            "3, ~{sa_family=AF_UNIX, sun_path=\"/run/x\"}, 9"
        );
        assert_eq!(shown("pipe", &[9], Some((0, b"\x04\0\0\0\x05\0\0\0"))), "~[4, 5]");
        let set = (1u64 << 16 | 1).to_ne_bytes();
        assert_eq!(
            shown("rt_sigprocmask", &[0, 9, 0, 8], Some((1, &set))),
            "SIG_BLOCK, ~[HUP CHLD], NULL, 8"
        );
        let set = (1u64 << 31 | 1 << 32).to_ne_bytes();
        assert_eq!(
            shown("rt_sigprocmask", &[0, 9, 0, 8], Some((1, &set))),
            "SIG_BLOCK, ~[RTMIN RT_1], NULL, 8"
        );
        let polled = [3u8, 0, 0, 0, 1, 0, 0, 0];
        assert_eq!(shown("poll", &[9, 1, 5], Some((0, &polled))), "~[{fd=3, events=POLLIN}], 1, 5");
    }

    #[test]
    fn bytes_are_quoted_in_plain_ascii() {
        assert_eq!(quoted(b"\x1b[0m\x007\xff", true), "\"\\33[0m\\0007\\377\"...");
    }

    #[test]
    fn results_are_numbers_addresses_or_errors() {
        let shown = |name: &str, value| {
            result(&call(name, &[], CallMemory::default(), value), &CallDescriptors::default())
        };
        assert_eq!(shown("read", CallResult::Value(5)), "5");
        assert_eq!(shown("mmap", CallResult::Value(0x7f00)), "0x7f00");
        let mut short =
            call("mmap", &[], CallMemory::default(), CallResult::Value(0xf7fc_0000u32 as i32 as i64));
        short.entered.abi = SyscallAbi::I386;
        short.entered.number =
            SyscallTable::get().by_name("mmap2").unwrap().number(SyscallAbi::I386).unwrap().into();
        assert_eq!(result(&short, &CallDescriptors::default()), "0xf7fc0000");
        assert_eq!(shown("openat", CallResult::Error(2)), "-1 ENOENT (No such file or directory)");
        assert_eq!(shown("exit_group", CallResult::Unfinished), "?");
        assert_eq!(shown("read", CallResult::Error(512)), "? ERESTARTSYS (interrupted by a signal)");
    }
}
