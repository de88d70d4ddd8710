//! Reads the memory to which the arguments of live system calls point.
//!
//! pmc reads the memory when it reads the record. By then, the process has continued to run, so the memory
//! may have changed or been freed. The view marks all data that comes from this module.

use pmc_sys::abi::syscall::{
    ArgumentKind, DataAccess, DataCount, DataKind, PointerTarget, SyscallAbi, SyscallArgument, SyscallTable,
    unsigned,
};
use pmc_sys::host::Host;
use pmc_sys::sys::process_memory;
use rustc_hash::FxHashMap;

use super::decoder::SyscallEvent;
use super::memory::{CallMemory, CapturedMemory, CapturedStructure};

/// Number of bytes of a path to read at first, and the maximum.
const PATH: [usize; 2] = [256, 4 << 10];
/// Maximum number of strings in a list.
const MOST_TEXTS: usize = 16;
/// Maximum number of system calls in progress whose output arguments are still to be read.
const MOST_PENDING: usize = 1 << 16;
/// Size in bytes of a `stat` structure.
const STAT: usize = 144;
/// Maximum number of structures in an array.
const MOST_STRUCTURES: usize = 16;
/// Maximum number of strings to count.
const MOST_COUNTED: usize = (4 << 10) / 8;

/// Reads the memory of traced processes. Events arrive in ring order: the events of a thread are in order
/// unless the thread moves to another CPU.
#[derive(Debug)]
pub(super) struct MemoryReader {
    /// Maximum number of bytes to read of a buffer.
    most_bytes: usize,
    /// For each thread, its call in progress, if the call writes to memory.
    pending: FxHashMap<i32, (SyscallAbi, u64, [u64; 6])>,
    buffer: Vec<u8>,
}

impl MemoryReader {
    /// Creates a reader. `most_bytes` is the maximum number of bytes to read of a buffer or string that is
    /// not a path.
    pub(super) fn new(most_bytes: usize) -> Self {
        // Parse the table now, because the memory of the first calls may change soon.
        let _ = SyscallTable::get();
        Self { most_bytes, pending: FxHashMap::default(), buffer: vec![0; PATH[1].max(most_bytes)] }
    }

    /// Reads the memory to which an event's arguments point.
    pub(super) fn read(&mut self, tid: i32, abi: SyscallAbi, event: SyscallEvent) -> CallMemory {
        let mut memory = CallMemory::default();
        match event {
            SyscallEvent::Enter(number, arguments) => {
                self.pending.remove(&tid);
                let Some(list) = arguments_of(abi, number, &arguments) else { return memory };
                for argument in list.iter().filter(|argument| argument.is_used(&arguments)) {
                    let at = argument.register;
                    if let Some(piece) = self.input(tid, abi, argument.kind, at, &arguments) {
                        memory.set(at, piece);
                    }
                }
                if list.iter().any(|argument| is_read_later(argument.kind)) {
                    // If a thread exits during a call, its entry is never removed.
                    if self.pending.len() >= MOST_PENDING {
                        self.pending.clear();
                    }
                    self.pending.insert(tid, (abi, number, arguments));
                }
            }
            SyscallEvent::Exit(number, result) => {
                let pending = self.pending.remove(&tid);
                let Some((abi, begun, arguments)) = pending.filter(|(_, begun, _)| *begun == number) else {
                    return memory;
                };
                if result < 0 {
                    return memory;
                }
                let list = arguments_of(abi, begun, &arguments).into_iter().flatten();
                for argument in list.filter(|argument| argument.is_used(&arguments)) {
                    let at = argument.register;
                    if argument.kind.is_program_argument() {
                        self.executed(tid, at, &mut memory);
                    } else if let Some(piece) =
                        self.output(tid, abi, argument.kind, at, &arguments, result as u64)
                    {
                        memory.set(at, piece);
                    }
                }
            }
        }
        memory
    }

    fn input(
        &mut self,
        tid: i32,
        abi: SyscallAbi,
        kind: ArgumentKind,
        at: usize,
        arguments: &[u64; 6],
    ) -> Option<CapturedMemory> {
        let address = arguments[at];
        if address == 0 {
            return None;
        }
        match kind {
            ArgumentKind::Path => self.text(tid, address, PATH[1]),
            ArgumentKind::Text => self.text(tid, address, self.most_bytes),
            ArgumentKind::Texts => self.texts(tid, abi, address),
            ArgumentKind::Input(size) => {
                let size = usize::try_from(arguments[size]).ok()?;
                let bytes = self.bytes(tid, address, size.min(self.most_bytes))?;
                Some(CapturedMemory::Bytes(bytes, size > self.most_bytes))
            }
            ArgumentKind::Variables => self.count(tid, abi, address),
            ArgumentKind::Data(access, kind, count) if access != DataAccess::Write => {
                let count = match count {
                    Some(count) => Some(self.length(tid, count, arguments, None)?),
                    None => None,
                };
                self.data(tid, abi, kind, address, count, None)
            }
            _ => None,
        }
    }

    fn output(
        &mut self,
        tid: i32,
        abi: SyscallAbi,
        kind: ArgumentKind,
        at: usize,
        arguments: &[u64; 6],
        result: u64,
    ) -> Option<CapturedMemory> {
        let address = arguments[at];
        if address == 0 {
            return None;
        }
        match kind {
            ArgumentKind::Output | ArgumentKind::HexOutput => {
                let size = usize::try_from(result).ok()?;
                let bytes = self.bytes(tid, address, size.min(self.most_bytes))?;
                Some(CapturedMemory::Bytes(bytes, size > self.most_bytes))
            }
            ArgumentKind::OutputText => self.text(tid, address, PATH[1]),
            ArgumentKind::Stat if !abi.is_32_bit() => self.structure(tid, address, STAT),
            ArgumentKind::Data(access, kind, count) if access != DataAccess::Read => {
                let result = usize::try_from(result).ok()?;
                let count = match count {
                    Some(count) => Some(self.length(tid, count, arguments, Some(result))?),
                    None => None,
                };
                // `wait4` writes only if there is a child.
                if matches!(kind, DataKind::WaitStatus) && result == 0 {
                    return None;
                }
                self.data(tid, abi, kind, address, count, Some(result))
            }
            _ => None,
        }
    }

    /// Reads the path and the arguments of the program that a process has just executed, since the memory of
    /// the previous program no longer exists. `at` is the index of the argument list among the call's
    /// arguments; the path precedes it.
    fn executed(&self, tid: i32, at: usize, memory: &mut CallMemory) {
        let host = Host::live();
        let Some(words) = host.command_line(tid as u32).filter(|words| !words.is_empty()) else { return };
        let is_cut = words.len() > MOST_TEXTS;
        let words = words.into_iter().take(MOST_TEXTS).collect();
        memory.set(at, CapturedMemory::Texts(words, is_cut));
        if let (Some(path), Some(before)) = (host.executable(tid as u32), at.checked_sub(1)) {
            memory.set(before, CapturedMemory::Bytes(path.into_bytes(), false));
        }
    }

    /// Reads up to `size` bytes.
    fn bytes(&mut self, tid: i32, address: u64, size: usize) -> Option<Vec<u8>> {
        let buffer = self.buffer.get_mut(..size)?;
        let got = if size == 0 { 0 } else { process_memory::read(tid, address, buffer) };
        (got > 0 || size == 0).then(|| buffer[..got].to_vec())
    }

    /// Returns the number of elements in an array. Before the call has returned (no `result`), only a number
    /// in a register is known.
    fn length(
        &mut self,
        tid: i32,
        count: DataCount,
        arguments: &[u64; 6],
        result: Option<usize>,
    ) -> Option<usize> {
        match count {
            DataCount::Register(index) => usize::try_from(arguments[index]).ok(),
            DataCount::Pointed(index) => {
                result?;
                Some(unsigned(&self.bytes(tid, arguments[index], 4)?, 0, 4)? as usize)
            }
            DataCount::Result => result,
        }
    }

    /// Reads a value, or an array of `count` values. `result` is the result of a call that has written the
    /// data.
    fn data(
        &mut self,
        tid: i32,
        abi: SyscallAbi,
        kind: &DataKind,
        address: u64,
        count: Option<usize>,
        result: Option<usize>,
    ) -> Option<CapturedMemory> {
        if abi.is_32_bit() && !kind.is_same_in_32_bits() {
            return None;
        }
        let (size, is_cut) =
            count.map_or((kind.size(), false), |count| kind.array_size(count, MOST_STRUCTURES));
        // The result is the number of bytes in all buffers together.
        let mut left = result.unwrap_or(usize::MAX);
        let data = self.pointed(tid, kind, address, (size, is_cut), &mut left)?;
        Some(match data.pointed.is_empty() {
            true => CapturedMemory::Bytes(data.bytes, data.is_cut),
            false => CapturedMemory::Structure(data),
        })
    }

    /// Reads data, and the data to which its fields point. `left` is the number of bytes that the buffers
    /// contain.
    fn pointed(
        &mut self,
        tid: i32,
        kind: &DataKind,
        address: u64,
        (size, is_cut): (usize, bool),
        left: &mut usize,
    ) -> Option<CapturedStructure> {
        let bytes = self.bytes(tid, address, size)?;
        let mut data = CapturedStructure { bytes, is_cut, pointed: Vec::new() };
        let DataKind::Structure(structure) = kind else { return Some(data) };
        for start in (0..data.bytes.len()).step_by(kind.size()) {
            for field in &structure.fields {
                let DataKind::Pointer(target, length) = field.kind else { continue };
                let at = start + field.offset;
                let address = unsigned(&data.bytes, at, 8).filter(|address| *address != 0);
                let length = structure.number(length, &data.bytes, start);
                let (Some(address), Some(length)) = (address, length) else { continue };
                let length = usize::try_from(length).ok()?;
                let target = match target {
                    PointerTarget::Bytes => {
                        let used = length.min(*left);
                        *left -= used;
                        let size = (used.min(self.most_bytes), used > self.most_bytes);
                        self.pointed(tid, &DataKind::Unsigned(1), address, size, left)
                    }
                    PointerTarget::SocketAddress => {
                        let kind = DataKind::SocketAddress;
                        self.pointed(tid, &kind, address, kind.array_size(length, MOST_STRUCTURES), left)
                    }
                    PointerTarget::Structures(structure) => {
                        let kind = DataKind::Structure(structure);
                        self.pointed(tid, &kind, address, kind.array_size(length, MOST_STRUCTURES), left)
                    }
                };
                data.pointed.extend(target.map(|target| (at, target)));
            }
        }
        Some(data)
    }

    fn structure(&mut self, tid: i32, address: u64, size: usize) -> Option<CapturedMemory> {
        let bytes = self.bytes(tid, address, size).filter(|bytes| bytes.len() == size)?;
        Some(CapturedMemory::Bytes(bytes, false))
    }

    fn text(&mut self, tid: i32, address: u64, most: usize) -> Option<CapturedMemory> {
        let (bytes, is_cut) = self.until_nul(tid, address, most)?;
        Some(CapturedMemory::Bytes(bytes, is_cut))
    }

    /// Reads a string without its NUL. Also returns whether it is longer than `most` bytes.
    fn until_nul(&mut self, tid: i32, address: u64, most: usize) -> Option<(Vec<u8>, bool)> {
        for size in PATH {
            let size = size.min(most + 1);
            let mut bytes = self.bytes(tid, address, size.min(self.buffer.len()))?;
            match bytes.iter().position(|byte| *byte == 0) {
                Some(end) => {
                    bytes.truncate(end);
                    return Some((bytes, false));
                }
                None if bytes.len() < size || size > most || size == PATH[1] => {
                    bytes.truncate(most);
                    return Some((bytes, true));
                }
                None => {}
            }
        }
        None
    }

    /// Counts the strings in a list.
    fn count(&mut self, tid: i32, abi: SyscallAbi, address: u64) -> Option<CapturedMemory> {
        let width = if abi.is_32_bit() { 4 } else { 8 };
        let list = self.bytes(tid, address, MOST_COUNTED * width)?;
        let end = list.chunks_exact(width).position(|word| word.iter().all(|byte| *byte == 0))?;
        Some(CapturedMemory::Count(end))
    }

    fn texts(&mut self, tid: i32, abi: SyscallAbi, address: u64) -> Option<CapturedMemory> {
        let width = if abi.is_32_bit() { 4 } else { 8 };
        let list = self.bytes(tid, address, (MOST_TEXTS + 1) * width)?;
        let mut texts = Vec::new();
        for word in list.chunks_exact(width) {
            let address = match width {
                4 => u32::from_ne_bytes(*word.first_chunk()?).into(),
                _ => u64::from_ne_bytes(*word.first_chunk()?),
            };
            if address == 0 {
                return Some(CapturedMemory::Texts(texts, false));
            }
            if texts.len() == MOST_TEXTS {
                break;
            }
            texts.push(self.until_nul(tid, address, self.most_bytes).map_or_else(Vec::new, |(text, _)| text));
        }
        Some(CapturedMemory::Texts(texts, true))
    }
}

fn arguments_of(abi: SyscallAbi, number: u64, words: &[u64; 6]) -> Option<&'static [SyscallArgument]> {
    Some(&SyscallTable::get().by_number(abi, number)?.signature(words)?.arguments)
}

/// Whether the memory is read at the end of the call. The arguments of a program are read again once the
/// program runs.
fn is_read_later(kind: ArgumentKind) -> bool {
    let answers = matches!(kind, ArgumentKind::Data(DataAccess::Answer, ..));
    kind.is_output() || kind.is_program_argument() || answers
}

#[cfg(test)]
mod tests {
    use super::*;

    const ABI: SyscallAbi = SyscallAbi::NATIVE;

    fn number(name: &str) -> u64 {
        SyscallTable::get().by_name(name).unwrap().number(ABI).unwrap().into()
    }

    fn enter(reader: &mut MemoryReader, name: &str, arguments: [u64; 6]) -> CallMemory {
        reader.read(std::process::id() as i32, ABI, SyscallEvent::Enter(number(name), arguments))
    }

    fn exit(reader: &mut MemoryReader, name: &str, result: i64) -> CallMemory {
        reader.read(std::process::id() as i32, ABI, SyscallEvent::Exit(number(name), result))
    }

    #[test]
    fn inputs_are_read_at_the_begin() {
        let mut reader = MemoryReader::new(8);
        let path = format!("/{}\0", "x".repeat(300));
        let memory = enter(&mut reader, "openat", [0, path.as_ptr() as u64, 0, 0, 0, 0]);
        assert_eq!(memory.bytes(1).unwrap(), &path.as_bytes()[..301]);
        let text = b"hello, world";
        let memory = enter(&mut reader, "write", [1, text.as_ptr() as u64, 12, 0, 0, 0]);
        assert_eq!(memory.get(1), Some(&CapturedMemory::Bytes(b"hello, w".to_vec(), true)));
        let memory = enter(&mut reader, "write", [1, 8, 12, 0, 0, 0]);
        assert_eq!(memory, CallMemory::default(), "an invalid address");
        let words = [c"ls".as_ptr() as u64, c"a-very-long-word".as_ptr() as u64, 0];
        let memory =
            enter(&mut reader, "execve", [c"/bin/ls".as_ptr() as u64, words.as_ptr() as u64, 0, 0, 0, 0]);
        assert_eq!(memory.bytes(0), Some(&b"/bin/ls"[..]));
        let list = vec![b"ls".to_vec(), b"a-very-l".to_vec()];
        assert_eq!(memory.get(1), Some(&CapturedMemory::Texts(list, false)));
        let memory = enter(&mut reader, "execve", [0, 0, words.as_ptr() as u64, 0, 0, 0]);
        assert_eq!(memory.get(2), Some(&CapturedMemory::Count(2)));
    }

    #[test]
    fn structures_are_read_with_the_data_they_point_to() {
        let mut reader = MemoryReader::new(8);
        let buffers = [b"abcdef".as_slice(), b"a-very-long-buffer"];
        let list: Vec<[u64; 2]> =
            buffers.iter().map(|buffer| [buffer.as_ptr() as u64, buffer.len() as u64]).collect();
        let message = [0, 0, list.as_ptr() as u64, 2, 0, 0, 0u64];
        let contents = |memory: &CallMemory| {
            let Some(CapturedMemory::Structure(message)) = memory.get(1) else { panic!("{memory:?}") };
            let [(16, vectors)] = &message.pointed[..] else { panic!("{message:?}") };
            let pieces = vectors.pointed.iter().map(|(at, piece)| (*at, piece.bytes.clone(), piece.is_cut));
            pieces.collect::<Vec<_>>()
        };
        let arguments = [3, message.as_ptr() as u64, 0, 0, 0, 0];
        let memory = enter(&mut reader, "sendmsg", arguments);
        assert_eq!(contents(&memory), [(0, b"abcdef".to_vec(), false), (16, b"a-very-l".to_vec(), true)]);
        // A call that receives 8 bytes has filled only the first buffer and two bytes of the second.
        assert_eq!(enter(&mut reader, "recvmsg", arguments), CallMemory::default());
        let memory = exit(&mut reader, "recvmsg", 8);
        assert_eq!(contents(&memory), [(0, b"abcdef".to_vec(), false), (16, b"a-".to_vec(), false)]);
    }

    #[test]
    fn lengths_are_read_where_the_call_writes_them() {
        let mut reader = MemoryReader::new(8);
        let (address, length) = ([2u8, 0, 0, 80, 127, 0, 0, 1], 4u32);
        let arguments = [3, address.as_ptr() as u64, &raw const length as u64, 0, 0, 0];
        let begin = enter(&mut reader, "getsockname", arguments);
        assert_eq!((begin.bytes(1), begin.bytes(2)), (None, Some(&4u32.to_ne_bytes()[..])));
        assert_eq!(exit(&mut reader, "getsockname", 0).bytes(1), Some(&address[..4]));
    }

    #[test]
    fn outputs_are_read_at_the_end_of_the_same_call() {
        let mut reader = MemoryReader::new(8);
        let data = b"abcdef";
        let arguments = [3, data.as_ptr() as u64, 100, 0, 0, 0];
        assert_eq!(enter(&mut reader, "read", arguments), CallMemory::default());
        assert_eq!(exit(&mut reader, "read", 3).bytes(1), Some(&b"abc"[..]));
        assert_eq!(exit(&mut reader, "read", 3), CallMemory::default(), "the begin is missing");
        enter(&mut reader, "read", arguments);
        assert_eq!(exit(&mut reader, "read", -4), CallMemory::default(), "an error");
        enter(&mut reader, "read", arguments);
        assert_eq!(exit(&mut reader, "pread64", 3), CallMemory::default(), "another call");
    }
}
