//! libpfm4, a library that resolves event names from the vendors' manuals. pmc is not linked with the
//! library, but loads it on first use if it is installed.
//!
//! Translates an event name in the library's syntax to the words of an attr. Source:
//! `pfm_get_os_event_encoding(3)`, `pfm_initialize(3)`.

use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::sync::OnceLock;

use crate::abi::Attr;
use crate::abi::attr::WORDS;

/// The initialized library.
#[derive(Debug)]
pub(crate) struct PfmLibrary {
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

/// Default privilege levels: user and kernel (`PFM_PLM3 | PFM_PLM0`).
const LEVELS: c_int = 0x08 | 0x01;
/// Requests all of `perf_event_attr`, including precision and guest bits (`PFM_OS_PERF_EVENT_EXT`).
const PERF_EVENT_EXT: c_int = 2;
/// Number of words reserved for the attr: more than any version of the struct has. The library's own version
/// may be shorter, and the library writes only the fields that it knows.
const ROOM: usize = 64;

impl PfmLibrary {
    /// Returns the system's library; `None` if it is not installed or its initialization fails.
    pub(crate) fn get() -> Option<&'static Self> {
        static LIBRARY: OnceLock<Option<PfmLibrary>> = OnceLock::new();
        LIBRARY.get_or_init(Self::load).as_ref()
    }

    fn load() -> Option<Self> {
        // SAFETY: the name ends with NUL; loading runs the initializers of the system's own library.
        let library = unsafe { libc::dlopen(c"libpfm.so.4".as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL) };
        if library.is_null() {
            return None;
        }
        let symbol = |name: &CStr| {
            // SAFETY: the library is loaded and stays loaded; the name ends with NUL.
            let symbol = unsafe { libc::dlsym(library, name.as_ptr()) };
            (!symbol.is_null()).then_some(symbol)
        };
        let (initialize, encode) = (symbol(c"pfm_initialize")?, symbol(c"pfm_get_os_event_encoding")?);
        let describe = symbol(c"pfm_strerror")?;
        // SAFETY: the signatures are those of <perfmon/pfmlib.h>, unchanged since version 4.0.
        let (initialize, encode, describe) = unsafe {
            (
                std::mem::transmute::<*mut c_void, unsafe extern "C" fn() -> c_int>(initialize),
                std::mem::transmute::<*mut c_void, Encode>(encode),
                std::mem::transmute::<*mut c_void, Describe>(describe),
            )
        };
        // SAFETY: takes no arguments; called once.
        let status = unsafe { initialize() };
        (status == 0).then_some(Self { encode, describe })
    }

    /// Returns the attr for an event name.
    ///
    /// # Errors
    /// Returns the library's message, such as `event not found`.
    pub(crate) fn request(&self, name: &str) -> Result<Attr, String> {
        let Ok(name) = CString::new(name) else { return Err("the name contains a NUL".to_owned()) };
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
        // SAFETY: the name ends with NUL. `arguments` is the struct that this encoding expects, with its
        // actual size, and its attr has more space than any version of the kernel's struct.
        let status =
            unsafe { (self.encode)(name.as_ptr(), LEVELS, PERF_EVENT_EXT, (&raw mut arguments).cast()) };
        if status != 0 {
            // SAFETY: the library returns a string that it owns for every number.
            let text = unsafe { (self.describe)(status) };
            if text.is_null() {
                return Err(format!("error {status}"));
            }
            // SAFETY: not null, and ends with NUL.
            return Err(unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned());
        }
        let mut attr = Attr::new(words[0] as u32, words[1]);
        // Only the period, levels and precision are used, because pmc itself configures sampling and reading.
        for index in [2, 5, 7, 8, 16, 17] {
            attr.set_word(index, words[index]);
        }
        Ok(attr)
    }
}
