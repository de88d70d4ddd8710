//! Decodes the payloads of the tracepoints for system calls.
//!
//! Receives the tracepoint's fields: `raw_syscalls:sys_enter` and `sys_exit`, which cover all calls, or
//! `syscalls:sys_enter_NAME` and `sys_exit_NAME`, which cover one call each.

use pmc_perfdata::record::tracepoint::Payload;
use pmc_sys::abi::TracepointField;

use super::memory::{CallMemory, CapturedMemory};

/// The meaning of a payload.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SyscallEvent {
    /// The start of a call, with its number and arguments.
    Enter(u64, [u64; 6]),
    /// The end of a call, with its number and result.
    Exit(u64, i64),
}

/// Decodes the payloads of one tracepoint.
#[derive(Debug, Clone)]
pub(super) struct SyscallDecoder {
    number: NumberField,
    /// Offset of each argument. Empty if the tracepoint is for the end of a call.
    arguments: Vec<usize>,
    /// Offset of the result.
    result: Option<NumberField>,
    /// The strings in the payload, which the kernel records since Linux 6.19. Each has the index of the
    /// argument that points to it.
    texts: Vec<(usize, TracepointField)>,
    /// Whether the tracepoint covers only one system call.
    is_of_one_call: bool,
    is_byte_swapped: bool,
}

#[derive(Debug, Clone, Copy)]
struct NumberField {
    offset: usize,
    size: usize,
}

impl SyscallDecoder {
    /// Returns a decoder for a tracepoint; `None` if the tracepoint is not for system calls.
    /// `is_byte_swapped` says whether payloads have the opposite byte order.
    pub(super) fn new(name: &str, fields: &[TracepointField], is_byte_swapped: bool) -> Option<Self> {
        let (system, tracepoint) = name.split_once(':')?;
        let is_enter = tracepoint.starts_with("sys_enter");
        if !matches!(system, "raw_syscalls" | "syscalls") || !is_enter && !tracepoint.starts_with("sys_exit")
        {
            return None;
        }
        let number = |name: &str| {
            let field = fields.iter().find(|field| field.name == name && !field.is_array)?;
            matches!(field.size, 4 | 8).then_some(NumberField { offset: field.offset, size: field.size })
        };
        // `quotactl` also has an argument called `id`.
        let own = number("__syscall_nr").or_else(|| number("id"))?;
        let mut arguments = Vec::new();
        let list = fields.iter().find(|field| field.name == "args" && field.is_array);
        match (is_enter, list) {
            (false, _) => {}
            (true, Some(list)) => arguments.extend((0..list.size / 8).map(|at| list.offset + 8 * at)),
            (true, None) => {
                let is_argument = |field: &&TracepointField| {
                    field.offset > own.offset && field.size == 8 && !field.is_array && !field.is_common()
                };
                arguments.extend(fields.iter().filter(is_argument).map(|field| field.offset));
            }
        }
        arguments.truncate(6);
        // `__data_loc char[] __filename_val` is the string to which the argument `filename` points.
        let argument = |name: &str| {
            let pointer = fields.iter().find(|field| field.name == name)?;
            arguments.iter().position(|offset| *offset == pointer.offset)
        };
        let text = |field: &TracepointField| {
            let name = field.name.strip_prefix("__")?.strip_suffix("_val")?;
            Some((argument(name).filter(|_| field.is_text())?, field.clone()))
        };
        let texts = fields.iter().filter_map(text).collect();
        let result = number("ret");
        if !is_enter && result.is_none() {
            return None;
        }
        let result = result.filter(|_| !is_enter);
        let is_of_one_call = system == "syscalls";
        Some(Self { number: own, arguments, result, texts, is_of_one_call, is_byte_swapped })
    }

    /// Whether the tracepoint covers only one system call (`syscalls:sys_enter_NAME`).
    pub(super) fn is_of_one_call(&self) -> bool {
        self.is_of_one_call
    }

    /// Whether the tracepoint marks the end of a call.
    pub(super) fn is_of_end(&self) -> bool {
        self.result.is_some()
    }

    /// Whether payloads contain strings.
    pub(super) fn has_texts(&self) -> bool {
        !self.texts.is_empty()
    }

    /// Reads the strings in a payload.
    pub(super) fn texts(&self, payload: &[u8]) -> CallMemory {
        let mut memory = CallMemory::default();
        let payload = Payload { bytes: payload, is_byte_swapped: self.is_byte_swapped };
        for (argument, field) in &self.texts {
            if let Some(text) = payload.text_in(field) {
                memory.set(*argument, CapturedMemory::Recorded(text.to_vec()));
            }
        }
        memory
    }

    /// Decodes a payload; `None` if it is too short.
    #[inline]
    pub(super) fn decode(&self, payload: &[u8]) -> Option<SyscallEvent> {
        let number = self.read(payload, self.number)?;
        if let Some(result) = self.result {
            return Some(SyscallEvent::Exit(number, self.read(payload, result)? as i64));
        }
        let mut arguments = [0; 6];
        for (argument, &offset) in arguments.iter_mut().zip(&self.arguments) {
            *argument = self.read(payload, NumberField { offset, size: 8 })?;
        }
        Some(SyscallEvent::Enter(number, arguments))
    }

    /// Reads a sign-extended number, because the number of a call can be -1.
    #[inline]
    fn read(&self, bytes: &[u8], field: NumberField) -> Option<u64> {
        let number = bytes.get(field.offset..)?.get(..field.size)?;
        Payload { bytes, is_byte_swapped: self.is_byte_swapped }
            .integer(number, true)
            .map(|number| number as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NUMBER: &str = "field:int __syscall_nr;\toffset:8;\tsize:4;\tsigned:1;";
    const ID: &str = "field:long id;\toffset:8;\tsize:8;\tsigned:1;";

    fn of_lines(event: &str, lines: &[&str], is_byte_swapped: bool) -> Option<SyscallDecoder> {
        let fields: Vec<TracepointField> =
            lines.iter().filter_map(|line| TracepointField::parse(line)).collect();
        SyscallDecoder::new(event, &fields, is_byte_swapped)
    }

    fn payload(words: &[u64]) -> Vec<u8> {
        words.iter().flat_map(|word| word.to_ne_bytes()).collect()
    }

    #[test]
    fn payloads_of_all_calls_are_read() {
        let enter = [
            "field:int common_pid;\toffset:4;\tsize:4;\tsigned:1;",
            ID,
            "field:unsigned long args[6];\toffset:16;\tsize:48;\tsigned:0;",
        ];
        let decoder = of_lines("raw_syscalls:sys_enter", &enter, false).unwrap();
        let words = payload(&[0, 257, 1, 2, 3, 4, 5, 6]);
        assert_eq!(decoder.decode(&words), Some(SyscallEvent::Enter(257, [1, 2, 3, 4, 5, 6])));
        assert_eq!(decoder.decode(&words[..40]), None);
        let exit = [ID, "field:long ret;\toffset:16;\tsize:8;\tsigned:1;"];
        let decoder = of_lines("raw_syscalls:sys_exit", &exit, false).unwrap();
        let words = payload(&[0, 257, -2i64 as u64]);
        assert_eq!(decoder.decode(&words), Some(SyscallEvent::Exit(257, -2)));
    }

    #[test]
    fn payloads_of_one_call_are_read_in_either_byte_order() {
        let enter = [
            NUMBER,
            "field:unsigned int fd;\toffset:16;\tsize:8;\tsigned:0;",
            "field:char * buf;\toffset:24;\tsize:8;\tsigned:0;",
        ];
        let decoder = of_lines("syscalls:sys_enter_read", &enter, false).unwrap();
        let words = payload(&[0, 0, 3, 4]);
        assert_eq!(decoder.decode(&words), Some(SyscallEvent::Enter(0, [3, 4, 0, 0, 0, 0])));
        let decoder = of_lines("syscalls:sys_enter_read", &enter, true).unwrap();
        let mut words = payload(&[0, 0, 3u64.swap_bytes(), 4u64.swap_bytes()]);
        words[8..12].copy_from_slice(&5u32.swap_bytes().to_ne_bytes());
        assert_eq!(decoder.decode(&words), Some(SyscallEvent::Enter(5, [3, 4, 0, 0, 0, 0])));
    }

    #[test]
    fn an_argument_named_id_is_not_the_number() {
        let enter = [
            NUMBER,
            "field:unsigned int cmd;\toffset:16;\tsize:8;\tsigned:0;",
            "field:qid_t id;\toffset:24;\tsize:8;\tsigned:0;",
        ];
        let decoder = of_lines("syscalls:sys_enter_quotactl", &enter, false).unwrap();
        let words = payload(&[0, 179, 1, 1000]);
        assert_eq!(decoder.decode(&words), Some(SyscallEvent::Enter(179, [1, 1000, 0, 0, 0, 0])));
    }

    #[test]
    fn texts_in_payloads_belong_to_their_arguments() {
        let enter = [
            NUMBER,
            "field:int dfd;\toffset:16;\tsize:8;\tsigned:0;",
            "field:const char * filename;\toffset:24;\tsize:8;\tsigned:0;",
            "field:__data_loc char[] __filename_val;\toffset:32;\tsize:4;\tsigned:0;",
        ];
        let decoder = of_lines("syscalls:sys_enter_openat", &enter, false).unwrap();
        assert!(decoder.is_of_one_call() && decoder.has_texts());
        let mut words = payload(&[0, 257, 3, 4, 5 << 16 | 36]);
        words.truncate(36);
        words.extend(b"/etc\0");
        assert_eq!(decoder.decode(&words), Some(SyscallEvent::Enter(257, [3, 4, 0, 0, 0, 0])));
        let texts = decoder.texts(&words);
        assert_eq!((texts.bytes(1), texts.is_recorded(1), texts.get(0)), (Some(&b"/etc"[..]), true, None));
    }

    #[test]
    fn other_tracepoints_have_no_decoder() {
        let some = [ID];
        assert!(of_lines("sched:sched_switch", &some, false).is_none());
        assert!(of_lines("raw_syscalls:sys_exit", &some, false).is_none());
        assert!(of_lines("raw_syscalls:sys_enter", &[], false).is_none());
    }
}
