//! libpfm4, the library that knows events by the names of the makers' manuals, where the system has it:
//! loaded when it is first asked, never linked.
//!
//! Receives the name of an event as the library spells it; hands on the words of the request that it
//! stands for. Source: `pfm_get_os_event_encoding(3)`, `pfm_initialize(3)`.

use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::sync::OnceLock;

use crate::abi::Attr;
use crate::abi::attr::WORDS;

/// The library, ready to be asked.
#[derive(Debug)]
pub struct Library {
    encode: Encode,
    describe: Describe,
}

/// `pfm_get_os_event_encoding`
type Encode = unsafe extern "C" fn(*const c_char, c_int, c_int, *mut c_void) -> c_int;
/// `pfm_strerror`
type Describe = unsafe extern "C" fn(c_int) -> *const c_char;

/// `pfm_perf_encode_arg_t`
#[repr(C)]
struct Arguments {
    attr: *mut c_void,
    fstr: *mut *mut c_char,
    size: usize,
    idx: c_int,
    cpu: c_int,
    flags: c_int,
    pad0: c_int,
}

/// User and kernel (`PFM_PLM3 | PFM_PLM0`), where the name does not say.
const LEVELS: c_int = 0x08 | 0x01;
/// All of `perf_event_attr`, precision and guests too (`PFM_OS_PERF_EVENT_EXT`).
const PERF_EVENT_EXT: c_int = 2;
/// `sizeof(struct perf_event_attr)` as the library has it may be less than ours: what it knows it says.
const ROOM: usize = 64;

impl Library {
    /// The system's library; `None` where it is not installed or does not start.
    pub fn get() -> Option<&'static Self> {
        static LIBRARY: OnceLock<Option<Library>> = OnceLock::new();
        LIBRARY.get_or_init(Self::load).as_ref()
    }

    fn load() -> Option<Self> {
        // SAFETY: a name that ends in NUL; loading runs the initializers of the system's own library.
        let library = unsafe { libc::dlopen(c"libpfm.so.4".as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL) };
        if library.is_null() {
            return None;
        }
        let symbol = |name: &CStr| {
            // SAFETY: the library is loaded and stays so; the name ends in NUL.
            let symbol = unsafe { libc::dlsym(library, name.as_ptr()) };
            (!symbol.is_null()).then_some(symbol)
        };
        let (initialize, encode) = (symbol(c"pfm_initialize")?, symbol(c"pfm_get_os_event_encoding")?);
        let describe = symbol(c"pfm_strerror")?;
        // SAFETY: the signatures are those of <perfmon/pfmlib.h>, the same since version 4.0.
        let (initialize, encode, describe) = unsafe {
            (
                std::mem::transmute::<*mut c_void, unsafe extern "C" fn() -> c_int>(initialize),
                std::mem::transmute::<*mut c_void, Encode>(encode),
                std::mem::transmute::<*mut c_void, Describe>(describe),
            )
        };
        // SAFETY: takes nothing; called once.
        let status = unsafe { initialize() };
        (status == 0).then_some(Self { encode, describe })
    }

    /// The request that a name stands for.
    ///
    /// # Errors
    /// The library's own words, such as `event not found`.
    pub fn request(&self, name: &str) -> Result<Attr, String> {
        let Ok(name) = CString::new(name) else { return Err("the name holds a NUL".to_owned()) };
        let mut words = [0u64; ROOM];
        words[0] = ((WORDS * 8) as u64) << 32;
        let mut arguments = Arguments {
            attr: words.as_mut_ptr().cast(),
            fstr: std::ptr::null_mut(),
            size: size_of::<Arguments>(),
            idx: 0,
            cpu: -1,
            flags: 0,
            pad0: 0,
        };
        // SAFETY: the name ends in NUL; `arguments` is the struct that this layer asks for, of the size it
        // says, and its attr has more room than any version of the kernel's struct.
        let status =
            unsafe { (self.encode)(name.as_ptr(), LEVELS, PERF_EVENT_EXT, (&raw mut arguments).cast()) };
        if status != 0 {
            // SAFETY: the library hands out a text of its own for every number.
            let text = unsafe { (self.describe)(status) };
            if text.is_null() {
                return Err(format!("error {status}"));
            }
            // SAFETY: not null, and ends in NUL.
            return Err(unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned());
        }
        let mut attr = Attr::new(words[0] as u32, words[1]);
        // What is said of sampling and reading is pmc's own concern but for the period, levels and precision.
        for index in [2, 5, 7, 8, 16, 17] {
            attr.set_word(index, words[index]);
        }
        Ok(attr)
    }
}
