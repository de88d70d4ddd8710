//! Formats the data to which the arguments of system calls point, in strace's notation: numbers, structures,
//! sets and arrays. The values inside structures and single arguments have the same notation.

use std::fmt::Write;
use std::net::{Ipv4Addr, Ipv6Addr};

use crate::trace::memory::{CapturedMemory, CapturedStructure};
use pmc_sys::abi::syscall::{DataKind, FlagSet, PointerTarget, Structure, SyscallAbi, hexadecimal, unsigned};

/// The bytes of one value or array, and the data to which its fields point.
#[derive(Clone, Copy)]
struct ShownData<'a> {
    bytes: &'a [u8],
    is_cut: bool,
    pointed: &'a [(usize, CapturedStructure)],
    abi: SyscallAbi,
}

impl<'a> ShownData<'a> {
    fn new(memory: &'a CapturedMemory, abi: SyscallAbi) -> Option<Self> {
        match memory {
            CapturedMemory::Bytes(bytes, is_cut) => Some(Self { bytes, is_cut: *is_cut, pointed: &[], abi }),
            CapturedMemory::Structure(structure) => Some(Self::of_structure(structure, abi)),
            _ => None,
        }
    }

    fn of_structure(structure: &'a CapturedStructure, abi: SyscallAbi) -> Self {
        let CapturedStructure { bytes, is_cut, pointed } = structure;
        Self { bytes, is_cut: *is_cut, pointed, abi }
    }

    fn unsigned(&self, at: usize, size: usize) -> Option<u64> {
        unsigned(self.bytes, at, size)
    }

    /// Formats the value at an offset; `None` if it is not whole, or not shown.
    fn value(&self, kind: &DataKind, at: usize) -> Option<String> {
        let word = || self.unsigned(at, kind.size());
        Some(match kind {
            DataKind::Signed(size) => {
                let unused = 64 - 8 * *size as u32;
                ((word()? << unused) as i64 >> unused).to_string()
            }
            DataKind::Unsigned(_) => word()?.to_string(),
            DataKind::Hex(_) => hexadecimal(word()?),
            DataKind::Octal(_) => permissions(word()? as u32),
            DataKind::Flags(set, _) => flags(set, self.abi, word()?),
            DataKind::FileMode(_) => file_mode(word()? as u32),
            DataKind::Limit => limit(word()?),
            DataKind::Bit(bit) => (word()? >> bit & 1 == 1).then(|| "1".to_owned())?,
            DataKind::Skid => skid(word()?),
            DataKind::WaitStatus => wait_status(word()? as u32),
            DataKind::Address => match word()? {
                0 => "NULL".to_owned(),
                word => hexadecimal(word),
            },
            DataKind::EpollData => {
                let word = word()?;
                format!("{{u32={}, u64={word}}}", word as u32)
            }
            DataKind::Text(size) => {
                let text = self.bytes.get(at..)?.get(..*size)?;
                quoted(text.split(|byte| *byte == 0).next().unwrap_or_default(), false)
            }
            DataKind::SignalSet => signals(word()?),
            DataKind::FdSet | DataKind::CpuSet => members(self.bytes),
            DataKind::SocketAddress => socket_address(self.bytes),
            DataKind::Structure(structure) => self.structure(structure, at),
            DataKind::Repeated(kind, count) => {
                let values = (0..*count).map(|index| self.value(kind, at + index * kind.size()));
                format!("[{}]", values.collect::<Option<Vec<String>>>()?.join(", "))
            }
            DataKind::Pointer(target, _) => match self.pointed.iter().find(|(offset, _)| *offset == at) {
                Some((_, data)) => Self::of_structure(data, self.abi).target(*target),
                None => self.value(&DataKind::Address, at)?,
            },
        })
    }

    fn target(&self, target: PointerTarget) -> String {
        match target {
            PointerTarget::Bytes => quoted(self.bytes, self.is_cut),
            PointerTarget::SocketAddress => socket_address(self.bytes),
            PointerTarget::Structures(structure) => self.array(&DataKind::Structure(structure)),
        }
    }

    fn structure(&self, structure: &Structure, start: usize) -> String {
        let number = |index| structure.number(index, self.bytes, start);
        let mut fields = Vec::new();
        for field in &structure.fields {
            if field.condition.is_none_or(|condition| condition.holds(number(condition.index)))
                && let Some(value) = self.value(&field.kind, start + field.offset)
            {
                fields.push(format!("{}={value}", field.name));
            }
        }
        fields.extend(structure.has_more.then(|| "...".to_owned()));
        format!("{{{}}}", fields.join(", "))
    }

    fn array(&self, kind: &DataKind) -> String {
        let starts = (0..self.bytes.len()).step_by(kind.size());
        let mut values: Vec<String> = starts.filter_map(|start| self.value(kind, start)).collect();
        values.extend(self.is_cut.then(|| "...".to_owned()));
        format!("[{}]", values.join(", "))
    }
}

/// Formats data to which an argument points; `None` if it is not whole. `is_array` says whether it is an
/// array rather than one value.
pub(super) fn data(
    kind: &DataKind,
    is_array: bool,
    memory: &CapturedMemory,
    abi: SyscallAbi,
) -> Option<String> {
    let shown = ShownData::new(memory, abi)?;
    match kind {
        DataKind::Structure(_) if is_array => Some(shown.array(kind)),
        DataKind::Structure(_) | DataKind::Repeated(..) | DataKind::SignalSet => shown.value(kind, 0),
        DataKind::FdSet | DataKind::CpuSet | DataKind::SocketAddress | DataKind::Text(_) => {
            shown.value(kind, 0)
        }
        _ => Some(format!("[{}]", shown.value(kind, 0)?)),
    }
}

/// Formats those elements of an array of `pollfd` that have an answer.
pub(super) fn ready(
    structure: &'static Structure,
    memory: &CapturedMemory,
    abi: SyscallAbi,
) -> Option<String> {
    let shown = ShownData::new(memory, abi)?;
    let result = structure.result();
    let starts = (0..shown.bytes.len()).step_by(DataKind::Structure(result).size());
    let is_ready = |start: &usize| result.number(1, shown.bytes, *start).is_some_and(|events| events != 0);
    let ready: Vec<String> = starts.filter(is_ready).map(|start| shown.structure(result, start)).collect();
    Some(format!("[{}]", ready.join(", ")))
}

/// Returns bytes as a C string literal in plain ASCII.
pub(super) fn quoted(bytes: &[u8], is_cut: bool) -> String {
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

/// Formats a word as the names of its values.
pub(super) fn flags(set: &'static FlagSet, abi: SyscallAbi, word: u64) -> String {
    let set = if matches!(abi, SyscallAbi::Arm64 | SyscallAbi::Arm) { set.on_arm() } else { set };
    set.names(word)
}

/// Returns permissions in octal, with a leading 0 and at least three digits in total.
pub(super) fn permissions(mode: u32) -> String {
    format!("0{mode:02o}")
}

/// Returns the name of a file's type; `None` if it has none.
fn file_type(mode: u32) -> Option<&'static str> {
    Some(match mode >> 12 {
        1 => "S_IFIFO",
        2 => "S_IFCHR",
        4 => "S_IFDIR",
        6 => "S_IFBLK",
        8 => "S_IFREG",
        10 => "S_IFLNK",
        12 => "S_IFSOCK",
        _ => return None,
    })
}

/// Formats the type of a file and its permissions.
pub(super) fn file_mode(mode: u32) -> String {
    match file_type(mode) {
        Some(kind) => format!("{kind}|{}", permissions(mode & 0o7777)),
        None => permissions(mode),
    }
}

/// Formats the number of a device.
pub(super) fn device(device: u64) -> String {
    let major = device >> 8 & 0xfff | device >> 32 & !0xfff;
    let minor = device & 0xff | device >> 12 & !0xff;
    format!("makedev({}, {})", hexadecimal(major), hexadecimal(minor))
}

/// Formats a priority of input and output (`linux/ioprio.h`): a class, and a number in it.
pub(super) fn io_priority(word: u32) -> String {
    let class = FlagSet::named("ioprio_class").map(|set| set.names((word >> 13).into())).unwrap_or_default();
    format!("IOPRIO_PRIO_VALUE({class}, {})", word & 0x1fff)
}

fn limit(limit: u64) -> String {
    match limit {
        u64::MAX => "RLIM64_INFINITY".to_owned(),
        1025.. if limit.is_multiple_of(1024) => format!("{}*1024", limit / 1024),
        _ => limit.to_string(),
    }
}

/// Formats the bits of a `perf_event_attr` that request a precise address.
fn skid(bits: u64) -> String {
    let level = bits >> 15 & 3;
    let meaning =
        ["arbitrary skid", "constant skid", "requested to have 0 skid", "must have 0 skid"][level as usize];
    format!("{level} /* {meaning} */")
}

fn wait_status(status: u32) -> String {
    let signal = |number: u32| {
        FlagSet::named("signal").map_or_else(|| number.to_string(), |set| set.names(number.into()))
    };
    let (low, high) = (status & 0x7f, status >> 8 & 0xff);
    match low {
        _ if status == 0xffff => "{WIFCONTINUED(s)}".to_owned(),
        0 => format!("{{WIFEXITED(s) && WEXITSTATUS(s) == {high}}}"),
        0x7f => format!("{{WIFSTOPPED(s) && WSTOPSIG(s) == {}}}", signal(high)),
        _ => {
            let core = if status & 0x80 == 0 { "" } else { " && WCOREDUMP(s)" };
            format!("{{WIFSIGNALED(s) && WTERMSIG(s) == {}{core}}}", signal(low))
        }
    }
}

/// Returns the numbers of the bits that are set.
fn members(bytes: &[u8]) -> String {
    let bit = |at: &usize| bytes.get(at / 8).is_some_and(|byte| byte >> (at % 8) & 1 == 1);
    let members: Vec<String> = (0..bytes.len() * 8).filter(bit).map(|member| member.to_string()).collect();
    format!("[{}]", members.join(" "))
}

/// Returns the names of the signals in a set. For a set of at least two thirds of all signals, returns the
/// names of those that are not in it, after `~`, as strace does.
fn signals(set: u64) -> String {
    let is_inverted = set.count_ones() >= 64 * 2 / 3;
    let shown = if is_inverted { !set } else { set };
    let named = |signal: u64| FlagSet::named("signal").map(|set| set.names(signal)).unwrap_or_default();
    let names: Vec<String> = (1..=64u64)
        .filter(|signal| shown >> (signal - 1) & 1 == 1)
        .map(|signal| named(signal).trim_start_matches("SIG").to_owned())
        .collect();
    format!("{}[{}]", if is_inverted { "~" } else { "" }, names.join(" "))
}

/// Returns the type, permissions and size of a `stat` structure; `None` if it has no valid type, because then
/// the memory must have changed.
pub(super) fn stat(bytes: &[u8], abi: SyscallAbi) -> Option<String> {
    let (mode_at, device_at) = if abi == SyscallAbi::X86_64 { (24, 40) } else { (16, 32) };
    let mode = unsigned(bytes, mode_at, 4)? as u32;
    let rest = match file_type(mode)? {
        "S_IFCHR" | "S_IFBLK" => format!("st_rdev={}", device(unsigned(bytes, device_at, 8)?)),
        _ => format!("st_size={}", unsigned(bytes, 48, 8)? as i64),
    };
    Some(format!("{{st_mode={}, {rest}, ...}}", file_mode(mode)))
}

fn socket_address(bytes: &[u8]) -> String {
    let known = || {
        let family = unsigned(bytes, 0, 2)?;
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
                let name = FlagSet::named("address_family")?.names(family);
                Some(format!("{{sa_family={name}, ...}}"))
            }
        }
    };
    known().unwrap_or_else(|| quoted(bytes, false))
}

#[cfg(test)]
mod tests {
    use super::*;
    use pmc_sys::abi::syscall::{ArgumentKind, SyscallTable};

    /// Formats the data of the first argument with this name.
    fn shown(call: &str, name: &str, memory: CapturedMemory) -> String {
        let call = SyscallTable::get().by_name(call).unwrap();
        let argument = call.arguments().iter().find(|argument| argument.name == name).unwrap();
        let ArgumentKind::Data(_, kind, count) = argument.kind else { panic!("{argument:?}") };
        data(kind, count.is_some(), &memory, SyscallAbi::X86_64).unwrap()
    }

    fn words(words: &[u64]) -> Vec<u8> {
        words.iter().flat_map(|word| word.to_ne_bytes()).collect()
    }

    fn plain(bytes: Vec<u8>) -> CapturedMemory {
        CapturedMemory::Bytes(bytes, false)
    }

    #[test]
    fn numbers_have_the_notation_of_their_fields() {
        assert_eq!(
            shown("setrlimit", "rlim", plain(words(&[8 << 20, u64::MAX]))),
            "{rlim_cur=8192*1024, rlim_max=RLIM64_INFINITY}"
        );
        let handled = [0x1234, 0x1400_0004, 0x5678, 1];
        assert_eq!(
            shown("rt_sigaction", "act", plain(words(&handled))),
            "{sa_handler=0x1234, sa_mask=[HUP], sa_flags=SA_RESTORER|SA_RESTART|SA_SIGINFO, sa_restorer=0x5678}"
        );
        let ignored = [1, 0, 0, u64::MAX];
        assert_eq!(
            shown("rt_sigaction", "act", plain(words(&ignored))),
            "{sa_handler=SIG_IGN, sa_mask=~[], sa_flags=0}"
        );
        let sampled = [u64::from(0x80u32) << 32, 1, 99, 3, 4, 1 << 10 | 1 | 2 << 15];
        let text = shown("perf_event_open", "attr", plain(words(&sampled)));
        assert!(text.contains("config=PERF_COUNT_HW_INSTRUCTIONS, sample_freq=99, sample_type="), "{text}");
        assert!(
            text.ends_with("disabled=1, freq=1, precise_ip=2 /* requested to have 0 skid */, ...}"),
            "{text}"
        );
    }

    #[test]
    fn a_structure_that_was_read_in_part_has_fewer_fields() {
        assert_eq!(shown("nanosleep", "duration", plain(words(&[5]))), "{tv_sec=5}");
    }

    #[test]
    fn single_numbers_and_sets_are_in_brackets() {
        let status = |status: u32| shown("wait4", "wstatus", plain(status.to_ne_bytes().to_vec()));
        assert_eq!(status(0x300), "[{WIFEXITED(s) && WEXITSTATUS(s) == 3}]");
        assert_eq!(status(0x8b), "[{WIFSIGNALED(s) && WTERMSIG(s) == SIGSEGV && WCOREDUMP(s)}]");
        assert_eq!(status(0x137f), "[{WIFSTOPPED(s) && WSTOPSIG(s) == SIGSTOP}]");
        assert_eq!(shown("select", "readfds", plain(words(&[0x21]))), "[0 5]");
        assert_eq!(shown("sched_setparam", "param", plain(vec![7, 0, 0, 0])), "[7]");
        assert_eq!(shown("pipe", "pipefd", plain(vec![4, 0, 0, 0, 5, 0, 0, 0])), "[4, 5]");
    }

    #[test]
    fn buffers_are_shown_inside_the_structures_that_point_to_them() {
        let piece =
            |bytes: &[u8], is_cut| CapturedStructure { bytes: bytes.to_vec(), is_cut, pointed: vec![] };
        let vectors = CapturedStructure {
            bytes: words(&[0x10, 2, 0x20, 40]),
            is_cut: true,
            pointed: vec![(0, piece(b"ab", false)), (16, piece(b"cde", true))],
        };
        let expected = "[{iov_base=\"ab\", iov_len=2}, {iov_base=\"cde\"..., iov_len=40}, ...]";
        assert_eq!(shown("writev", "iov", CapturedMemory::Structure(vectors.clone())), expected);
        let message = CapturedStructure {
            bytes: words(&[0, 0, 0x30, 2, 0x40, 0, 0x4000]),
            is_cut: false,
            pointed: vec![(16, vectors)],
        };
        let expected = format!(
            "{{msg_name=NULL, msg_namelen=0, msg_iov={expected}, msg_iovlen=2, msg_controllen=0, \
             msg_flags=MSG_NOSIGNAL}}"
        );
        assert_eq!(shown("sendmsg", "msg", CapturedMemory::Structure(message)), expected);
    }

    #[test]
    fn only_ready_descriptors_are_in_the_answer() {
        let polled = plain(words(&[u64::from(1u16) << 32 | 3, 4 << 48 | 4 << 32 | 5]));
        let structure = Structure::named("pollfd").unwrap();
        let answer = ready(structure, &polled, SyscallAbi::X86_64).unwrap();
        assert_eq!(answer, "[{fd=5, revents=POLLOUT}]");
        assert_eq!(shown("poll", "fds", polled), "[{fd=3, events=POLLIN}, {fd=5, events=POLLOUT}]");
    }
}
