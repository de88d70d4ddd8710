//! Profiles that pmc recognizes but does not read: what they are, why pmc does not read them, and the
//! commands of their own tools that convert them.

use pmc_sys::error::Error;

/// A format that pmc does not read.
pub(super) struct UnreadFormat {
    /// What a file is, with an article.
    what: &'static str,
    /// Whether a file that starts with these bytes (at most [`HEAD`](super::HEAD)) has the format.
    is_format: fn(&[u8]) -> bool,
    why: &'static str,
    remedies: &'static [&'static str],
}

/// All formats, in the order in which they are tried.
const UNREAD: &[UnreadFormat] = &[
    UnreadFormat {
        what: "a heap dump of jemalloc in text form",
        is_format: |head| head.starts_with(b"heap_v2/"),
        why: ONLY_ADDRESSES,
        remedies: &[
            "convert it: jeprof --collapsed PROGRAM FILE > heap.folded (in jemalloc, or Debian's libjemalloc-dev)",
        ],
    },
    UnreadFormat {
        what: "a heap dump in text form",
        is_format: |head| head.starts_with(b"heap profile:") || head.starts_with(b"--- symbol"),
        why: ONLY_ADDRESSES,
        remedies: &[GOOGLE_PPROF, "for a program in Go: go tool pprof -proto PROGRAM FILE > heap.pb.gz"],
    },
    UnreadFormat {
        what: "a CPU profile of gperftools",
        // The words 0, 3, 0 start one, in 64 and 32 bits.
        is_format: |head| {
            head.starts_with(b"\0\0\0\0\0\0\0\0\x03\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0")
                || head.starts_with(b"\0\0\0\0\x03\0\0\0\0\0\0\0")
        },
        why: ONLY_ADDRESSES,
        remedies: &[GOOGLE_PPROF],
    },
    UnreadFormat {
        what: "a profile of memray",
        is_format: |head| {
            let is_packed = head.starts_with(LZ4) && contains(&head[..head.len().min(64)], b"memray\0");
            is_packed || head.starts_with(b"memray\0")
        },
        why: OWN_TOOL,
        remedies: &[MEMRAY],
    },
    UnreadFormat {
        what: "a table of memray",
        is_format: |head| head.starts_with(b"allocator,num_allocations,size,tid,thread_name,stack_trace"),
        why: "pmc does not read CSV",
        remedies: &[MEMRAY],
    },
    UnreadFormat {
        what: "a profile of Perl's NYTProf",
        is_format: |head| head.starts_with(b"NYTProf "),
        why: OWN_TOOL,
        remedies: &[
            "convert it: nytprofcalls FILE > profile.folded",
            "if nytprofcalls fails: nytprofcg -f FILE -o profile.callgrind",
        ],
    },
    UnreadFormat {
        what: "a profile of Ruby's stackprof",
        // Ruby's dump of a Hash of which the first key is `version`.
        is_format: |head| head.starts_with(b"\x04\x08{") && head.get(4..).is_some_and(is_version),
        why: OWN_TOOL,
        remedies: &[
            "convert it: stackprof --stackcollapse FILE > profile.folded (if recorded with raw: true)",
        ],
    },
    UnreadFormat {
        what: "a profile of Python's cProfile",
        // Python's dump of a dict of which the first key is a tuple of three: file, line and function.
        is_format: |head| {
            matches!(head, [b'{' | 0xfb, b')' | 0xa9, 3, ..]) // 0x80 marks values that occur again.
        },
        why: "it contains costs of functions and of their callers, in Python's own encoding",
        remedies: &["convert it: pyprof2calltree -i FILE -o profile.callgrind (from PyPI)"],
    },
    UnreadFormat {
        what: "a session of pyinstrument",
        is_format: |head| is_pyinstrument(head) && contains(head, b"\"start_call_stack\""),
        why: OWN_TOOL,
        remedies: &["convert it: pyinstrument --load FILE -r speedscope -o profile.speedscope.json"],
    },
    UnreadFormat {
        what: "a report of pyinstrument in JSON",
        is_format: |head| is_pyinstrument(head) && contains(head, b"\"root_frame\""),
        why: "pyinstrument does not convert it to another format",
        remedies: &["run pyinstrument again with -r speedscope instead of -r json"],
    },
    UnreadFormat {
        what: "a trace of PHP's Xdebug",
        is_format: |head| {
            head.starts_with(b"TRACE START [")
                || head.starts_with(b"Version: ") && contains(head, b"\nTRACE START [")
        },
        why: "it contains the calls one by one",
        remedies: &["run PHP again with -d xdebug.mode=profile instead of -d xdebug.mode=trace"],
    },
];

const ONLY_ADDRESSES: &str = "it contains only addresses, no function names";
const OWN_TOOL: &str = "only its own tool reads this format";
const GOOGLE_PPROF: &str = "convert it: google-pprof --collapsed PROGRAM FILE > profile.folded (in gperftools, or Debian's \
                            google-perftools)";
const MEMRAY: &str = "convert memray's own file: memray transform speedscope FILE -o profile.speedscope.json";
/// The start of files packed with lz4, as memray packs its own.
const LZ4: &[u8] = b"\x04\x22\x4d\x18";

fn contains(bytes: &[u8], part: &[u8]) -> bool {
    bytes.windows(part.len()).any(|window| window == part)
}

/// Whether this is Ruby's encoding of the symbol `:version`.
fn is_version(bytes: &[u8]) -> bool {
    bytes.starts_with(b":\x0cversion")
}

fn is_pyinstrument(head: &[u8]) -> bool {
    head.trim_ascii_start().starts_with(b"{\"start_time\"") && contains(head, b"\"sample_count\"")
}

/// Returns the format of a file that pmc recognizes but does not read.
pub(super) fn find(bytes: &[u8]) -> Option<&'static UnreadFormat> {
    let head = &bytes[..bytes.len().min(super::HEAD)];
    UNREAD.iter().find(|format| (format.is_format)(head))
}

impl UnreadFormat {
    /// Returns the error for a file of this format. `name` is the file's name for messages.
    pub(super) fn error(&self, name: &str) -> Error {
        let error = Error::new(format!("{name}: {}", self.what)).why(self.why);
        self.remedies.iter().fold(error, |error, remedy| error.try_this(*remedy))
    }
}
