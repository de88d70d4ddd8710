//! Formats the arguments and results of system calls in strace's notation.
//!
//! Memory contents that pmc read after the call are marked with `~`, because they may have changed since the
//! call. The mark precedes them, but follows a set of signals.

use crate::trace::descriptors::{CallDescriptors, DescriptorName};
use crate::trace::memory::CapturedMemory;
use crate::trace::tracer::{CallResult, EnteredCall, TracedCall};
use pmc_sys::abi::syscall::{
    ArgumentKind, DataAccess, DataKind, FlagSet, ResultKind, SyscallAbi, SyscallArgument, hexadecimal,
};
use pmc_sys::error::errno_words;
use pmc_text::text::clean;

use super::structures;

const AT_FDCWD: i32 = -100;

/// An argument as shown.
pub(in crate::trace) struct ShownArgument {
    /// The name; empty for an unknown call.
    pub(in crate::trace) name: &'static str,
    /// Whether the name precedes the value.
    pub(in crate::trace) has_label: bool,
    pub(in crate::trace) value: String,
    /// Whether the call writes to the memory of the argument.
    pub(in crate::trace) is_output: bool,
}

/// Returns the arguments of a call. Arguments of unknown calls do not have names.
pub(in crate::trace) fn arguments(call: &TracedCall, descriptors: &CallDescriptors) -> Vec<ShownArgument> {
    let entered = &call.entered;
    let Some(signature) = entered.signature() else {
        let unknown = |value| ShownArgument { name: "", has_label: false, value, is_output: false };
        return entered.arguments.iter().map(|word| unknown(format!("{word:#x}"))).collect();
    };
    let used = signature.arguments.iter().filter(|argument| argument.is_used(&entered.arguments));
    used.map(|argument| ShownArgument {
        name: argument.name,
        has_label: argument.has_label,
        value: value(entered, argument, descriptors.arguments[argument.register].as_ref()),
        is_output: argument.kind.is_output(),
    })
    .collect()
}

fn value(call: &EnteredCall, argument: &SyscallArgument, descriptor: Option<&DescriptorName>) -> String {
    let at = argument.register;
    let word = register(call.abi, call.arguments[at]);
    let low = word as u32;
    match argument.kind {
        ArgumentKind::DirFd if low as i32 == AT_FDCWD => "AT_FDCWD".to_owned(),
        ArgumentKind::Fd | ArgumentKind::DirFd => self::descriptor(low as i32, descriptor),
        ArgumentKind::Int => (low as i32).to_string(),
        ArgumentKind::Uint => low.to_string(),
        ArgumentKind::Long if call.abi.is_32_bit() => (low as i32).to_string(),
        ArgumentKind::Long => (word as i64).to_string(),
        ArgumentKind::Size => word.to_string(),
        ArgumentKind::Hex => hexadecimal(word),
        ArgumentKind::Mode => structures::permissions(low & 0o17_7777),
        ArgumentKind::FileMode => structures::file_mode(low & 0o17_7777),
        ArgumentKind::Device => structures::device(low.into()),
        ArgumentKind::IoPriority => structures::io_priority(low),
        ArgumentKind::Flags(set) => structures::flags(set, call.abi, low.into()),
        kind => memory(call, at, kind).unwrap_or_else(|| address(word)),
    }
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

fn address(word: u64) -> String {
    if word == 0 { "NULL".to_owned() } else { format!("{word:#x}") }
}

/// Returns the formatted memory to which an argument points, marked if it may have changed; `None` if it was
/// not read or is invalid.
fn memory(call: &EnteredCall, at: usize, kind: ArgumentKind) -> Option<String> {
    let ArgumentKind::Data(access, kind, count) = kind else {
        return captured(kind, call.memory.get(at)?, call, at);
    };
    let show = |memory| structures::data(kind, count.is_some(), memory, call.abi);
    let (begin, end) = (call.memory.at_begin(at).and_then(show), call.memory.at_end(at).and_then(show));
    let text = match access {
        DataAccess::Read | DataAccess::Answer => begin?,
        DataAccess::Write => end?,
        DataAccess::Replace => match (begin, end) {
            (Some(begin), Some(end)) if begin != end => {
                let inner = |text: &str| text.trim_matches(['[', ']']).to_owned();
                format!("[{} => {}]", inner(&begin), inner(&end))
            }
            (begin, end) => end.or(begin)?,
        },
    };
    // In strace's notation, `~` before a set means all other signals.
    Some(if matches!(kind, DataKind::SignalSet) { format!("{text}~") } else { format!("~{text}") })
}

/// Returns the formatted contents of memory, marked `~` if they may have changed; `None` if they are invalid.
fn captured(kind: ArgumentKind, memory: &CapturedMemory, call: &EnteredCall, at: usize) -> Option<String> {
    let text = match (kind, memory) {
        (_, CapturedMemory::Recorded(bytes)) => return Some(structures::quoted(bytes, false)),
        (_, CapturedMemory::Texts(list, is_cut)) => {
            let mut words: Vec<String> = list.iter().map(|text| structures::quoted(text, false)).collect();
            words.extend(is_cut.then(|| "...".to_owned()));
            format!("[{}]", words.join(", "))
        }
        (_, CapturedMemory::Count(count)) => {
            let word = address(register(call.abi, call.arguments[at]));
            format!("{word} /* {count} var{} */", if *count == 1 { "" } else { "s" })
        }
        (ArgumentKind::Stat, CapturedMemory::Bytes(bytes, _)) => structures::stat(bytes, call.abi)?,
        (ArgumentKind::HexOutput, CapturedMemory::Bytes(bytes, is_cut)) => {
            let digits: String = bytes.iter().map(|byte| format!("\\x{byte:02x}")).collect();
            format!("\"{digits}\"{}", if *is_cut { "..." } else { "" })
        }
        (_, CapturedMemory::Bytes(bytes, is_cut)) => structures::quoted(bytes, *is_cut),
        (_, CapturedMemory::Structure(_)) => return None,
    };
    Some(format!("~{text}"))
}

/// Returns the result of a call: a number, a descriptor, an address, or an error with its message.
pub(in crate::trace) fn result(call: &TracedCall, descriptors: &CallDescriptors) -> String {
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
            let kind = call.entered.signature().map(|signature| signature.result).unwrap_or_default();
            match &descriptors.result {
                Some(name) => descriptor(value as i32, Some(name)),
                None => successful(kind, value, &call.entered),
            }
        }
    }
}

/// Formats the result of a successful call.
fn successful(kind: ResultKind, value: i64, call: &EnteredCall) -> String {
    let word = register(call.abi, value as u64);
    let named = |set: &'static FlagSet| structures::flags(set, call.abi, word);
    match kind {
        ResultKind::Number => value.to_string(),
        ResultKind::Octal => structures::permissions(word as u32),
        ResultKind::Hex => hexadecimal(word),
        ResultKind::Flags(set) => match named(set) {
            names if word == 0 && names == "0" => names,
            names => format!("{} (flags {names})", hexadecimal(word)),
        },
        ResultKind::Bits(set) => format!("{} ({})", hexadecimal(word), named(set)),
        ResultKind::Name(set) => format!("{value} ({})", named(set)),
        ResultKind::IoPriority => {
            format!("{} ({})", hexadecimal(word), structures::io_priority(word as u32))
        }
        ResultKind::Ready if value == 0 => "0 (Timeout)".to_owned(),
        ResultKind::Ready => match answers(call).join(", ") {
            answers if answers.is_empty() => value.to_string(),
            answers => format!("{value} ({answers})"),
        },
    }
}

/// Returns the ready descriptors and the remaining time that a call has written.
fn answers(call: &EnteredCall) -> Vec<String> {
    let arguments = call.signature().into_iter().flat_map(|signature| &signature.arguments);
    let answer = |argument: &SyscallArgument| {
        let ArgumentKind::Data(DataAccess::Answer, kind, count) = argument.kind else { return None };
        let memory = call.memory.at_end(argument.register)?;
        let text = match kind {
            DataKind::Structure(structure) if count.is_some() => {
                structures::ready(structure, memory, call.abi)?
            }
            _ => structures::data(kind, count.is_some(), memory, call.abi)?,
        };
        let label = match argument.name {
            "readfds" => "in ",
            "writefds" => "out ",
            "exceptfds" => "exc ",
            _ if count.is_none() => "left ",
            _ => "",
        };
        (text != "[]").then(|| format!("{label}~{text}"))
    };
    arguments.filter_map(answer).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trace::memory::CallMemory;
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
            all.finish(all.clone());
        }
        let call = call(name, words, all, CallResult::Value(0));
        let values: Vec<String> =
            arguments(&call, &CallDescriptors::default()).into_iter().map(|shown| shown.value).collect();
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
        assert_eq!(shown("signalfd4", &[u64::MAX, 0, 8, 0x80000], None), "-1, NULL, 8, SFD_CLOEXEC");
        assert_eq!(shown("io_destroy", &[0x7f00_1234_5678], None), "0x7f0012345678");
        assert_eq!(shown("fcntl", &[3, 4, 0xc00], None), "3, F_SETFL, O_RDONLY|O_APPEND|O_NONBLOCK");
        assert_eq!(shown("prctl", &[4, 1, 7, 7, 7], None), "PR_SET_DUMPABLE, SUID_DUMP_USER");
        assert_eq!(shown("futex", &[8, 0x81, 1, 7, 7, 7], None), "0x8, FUTEX_WAKE_PRIVATE, 1");
        assert_eq!(shown("mknod", &[0, 0o10600, 0x103], None), "NULL, S_IFIFO|0600");
        assert_eq!(shown("mknod", &[0, 0o20600, 0x103], None), "NULL, S_IFCHR|0600, makedev(0x1, 0x3)");
        assert_eq!(shown("mremap", &[1, 2, 3, 1, 5], None), "0x1, 2, 3, MREMAP_MAYMOVE");
        assert_eq!(shown("mremap", &[1, 2, 3, 3, 5], None), "0x1, 2, 3, MREMAP_MAYMOVE|MREMAP_FIXED, 0x5");
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
            "SIG_BLOCK, [HUP CHLD]~, NULL, 8"
        );
        let set = (1u64 << 31 | 1 << 32).to_ne_bytes();
        assert_eq!(
            shown("rt_sigprocmask", &[0, 9, 0, 8], Some((1, &set))),
            "SIG_BLOCK, [RTMIN RT_1]~, NULL, 8"
        );
        let most = (u64::MAX ^ 1).to_ne_bytes();
        assert_eq!(shown("rt_sigsuspend", &[9, 8], Some((0, &most))), "~[HUP]~, 8");
        assert_eq!(shown("getrandom", &[9, 2, 1], Some((0, b"\x8ca"))), "~\"\\x8c\\x61\", 2, GRND_NONBLOCK");
        let polled = [3u8, 0, 0, 0, 1, 0, 0, 0];
        assert_eq!(shown("poll", &[9, 1, 5], Some((0, &polled))), "~[{fd=3, events=POLLIN}], 1, 5");
    }

    #[test]
    fn answers_and_changed_lengths_are_shown_with_both_values() {
        let answered = |name: &str, words: &[u64], at, begin: &[u8], end: &[u8], value| {
            let (mut memory, mut later) = (CallMemory::default(), CallMemory::default());
            memory.set(at, CapturedMemory::Bytes(begin.to_vec(), false));
            later.set(at, CapturedMemory::Bytes(end.to_vec(), false));
            memory.finish(later);
            let call = call(name, words, memory, CallResult::Value(value));
            let values = arguments(&call, &CallDescriptors::default()).into_iter().map(|shown| shown.value);
            format!(
                "{} = {}",
                values.collect::<Vec<_>>().join(", "),
                result(&call, &CallDescriptors::default())
            )
        };
        let (before, after) = (128u32.to_ne_bytes(), 16u32.to_ne_bytes());
        assert_eq!(answered("getsockname", &[3, 0, 9], 2, &before, &after, 0), "3, NULL, ~[128 => 16] = 0");
        assert_eq!(answered("getsockname", &[3, 0, 9], 2, &after, &after, 0), "3, NULL, ~[16] = 0");
        assert_eq!(
            answered(
                "select",
                &[5, 9, 0, 0, 0],
                1,
                &[0x18, 0, 0, 0, 0, 0, 0, 0],
                &[8, 0, 0, 0, 0, 0, 0, 0],
                1
            ),
            "5, ~[3 4], NULL, NULL, NULL = 1 (in ~[3])"
        );
    }

    #[test]
    fn bytes_are_quoted_in_plain_ascii() {
        assert_eq!(structures::quoted(b"\x1b[0m\x007\xff", true), "\"\\33[0m\\0007\\377\"...");
    }

    #[test]
    fn results_are_numbers_addresses_or_errors() {
        let shown = |name: &str, value| {
            result(&call(name, &[], CallMemory::default(), value), &CallDescriptors::default())
        };
        assert_eq!(shown("read", CallResult::Value(5)), "5");
        assert_eq!(shown("mmap", CallResult::Value(0x7f00)), "0x7f00");
        assert_eq!([0o22, 0].map(|mask| shown("umask", CallResult::Value(mask))), ["022", "000"]);
        assert_eq!(shown("poll", CallResult::Value(0)), "0 (Timeout)");
        assert_eq!(shown("rt_sigtimedwait", CallResult::Value(10)), "10 (SIGUSR1)");
        let flags = |command, value| {
            let call = call("fcntl", &[3, command], CallMemory::default(), CallResult::Value(value));
            result(&call, &CallDescriptors::default())
        };
        assert_eq!([flags(1, 1), flags(1, 0)], ["0x1 (flags FD_CLOEXEC)", "0"]);
        assert_eq!([flags(3, 0x402), flags(3, 0)], ["0x402 (flags O_RDWR|O_APPEND)", "0 (flags O_RDONLY)"]);
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
