//! Recognizes functions that wait on a futex, and determines what they use the futex for.
//!
//! ```text
//!   __lll_lock_wait ◄ pthread_mutex_lock ◄ std::mutex::lock ◄ Cache::get
//!   passes it on      uses it              library            unknown
//! ```

use super::user::{FutexUse, OwnerField};

/// Parts of the names of functions whose locks store their holder in the same place as glibc's locks.
const GLIBC: &[(&str, FutexUse)] = &[
    ("pthread_mutex", FutexUse::Mutex),
    ("mtx_lock", FutexUse::Mutex),
    ("mtx_timedlock", FutexUse::Mutex),
    ("pthread_rwlock", FutexUse::RwLock),
];

/// Parts of the names of functions that wait on behalf of their callers: libc's low-level locks (also used by
/// malloc and stdio), and parking_lot's thread parking. The purpose in this table applies if no caller
/// indicates another one.
const PASSING: &[(&str, FutexUse)] =
    &[("lll_lock", FutexUse::Mutex), ("lll_timedlock", FutexUse::Mutex), ("thread_parker", FutexUse::Park)];

/// Parts of the names of other functions. If several match one name, the first one applies.
const OTHERS: &[(&str, FutexUse)] = &[
    ("pthread_cond", FutexUse::Condition),
    ("cnd_wait", FutexUse::Condition),
    ("cnd_timedwait", FutexUse::Condition),
    ("pthread_join", FutexUse::Join),
    ("pthread_clockjoin", FutexUse::Join),
    ("pthread_timedjoin", FutexUse::Join),
    ("thrd_join", FutexUse::Join),
    ("pthread_barrier", FutexUse::Barrier),
    ("pthread_once", FutexUse::Once),
    ("sem_wait", FutexUse::Semaphore),
    ("sem_timedwait", FutexUse::Semaphore),
    ("sem_clockwait", FutexUse::Semaphore),
    // C++: waiting for atomics, semaphores, latches and barriers.
    ("__atomic_wait", FutexUse::Other),
    ("__cxa_guard_acquire", FutexUse::Once),
    // Rust's standard library and parking_lot.
    ("condvar", FutexUse::Condition),
    ("Condvar", FutexUse::Condition),
    ("thread_parking", FutexUse::Park),
    ("sync::mutex", FutexUse::Mutex),
    ("futex_mutex", FutexUse::Mutex),
    ("RawMutex", FutexUse::Mutex),
    ("sync::rwlock", FutexUse::RwLock),
    ("futex_rwlock", FutexUse::RwLock),
    ("raw_rwlock", FutexUse::RwLock),
    ("RawRwLock", FutexUse::RwLock),
    ("sync::once", FutexUse::Once),
    // Python's locks.
    ("PyThread_acquire_lock", FutexUse::Mutex),
    ("_PyMutex_Lock", FutexUse::Mutex),
    // The Go runtime. A thread is idle if it has no goroutine to run.
    ("runtime.lock", FutexUse::RuntimeLock),
    ("runtime.notesleep", FutexUse::Park),
    ("runtime.notetsleep", FutexUse::Park),
    // Locks of other libraries.
    ("Mutex::", FutexUse::Mutex),
    ("SpinLock", FutexUse::Mutex),
];

/// Prefixes of the names of library functions between the system call and the function that locks.
const LIBRARIES: &[&str] = &[
    "std::",
    "<std::",
    "core::",
    "<core::",
    "alloc::",
    "<alloc::",
    "__gthread",
    "parking_lot",
    "<parking_lot",
    "lock_api",
    "<lock_api",
    "runtime.",
    "runtime/",
    "sync.",
    "absl::",
    "boost::",
    "__libc_",
    "pthread_",
    "___pthread",
    "__pthread",
    "__GI_",
    "__lll_",
    "lll_",
    "syscall",
];

/// What a function's name indicates about a futex.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum FutexFunction {
    /// The function waits on a futex for this purpose. Its lock stores the holder in this place.
    Uses(FutexUse, OwnerField),
    /// The function waits on a futex on behalf of its caller, or else for this purpose.
    PassesOn(FutexUse),
    /// Another function of a library.
    Library,
    /// The name indicates nothing.
    #[default]
    Unknown,
}

impl FutexFunction {
    pub(crate) fn of(name: &str) -> Self {
        let found = |table: &[(&str, FutexUse)]| {
            table.iter().find(|(part, _)| name.contains(part)).map(|(_, is)| *is)
        };
        if let Some(is) = found(GLIBC) {
            return Self::Uses(is, OwnerField::Glibc);
        }
        if let Some(is) = found(OTHERS) {
            return Self::Uses(is, OwnerField::Nowhere);
        }
        match found(PASSING) {
            Some(is) => Self::PassesOn(is),
            None if LIBRARIES.iter().any(|start| name.starts_with(start)) => Self::Library,
            None => Self::Unknown,
        }
    }
}

/// Returns the purpose for which a stack uses its futex, and where the lock stores its holder; `None` if the
/// purpose is unknown.
///
/// Receives the functions of the stack, innermost first. If a function waits on behalf of its caller, only
/// callers in libraries indicate the purpose, because `malloc` waits for its own lock no matter who calls it.
pub(crate) fn stack_use(stack: impl IntoIterator<Item = FutexFunction>) -> Option<(FutexUse, OwnerField)> {
    let mut passed = None;
    for function in stack {
        match function {
            FutexFunction::Uses(is, owner_field) => return Some((is, owner_field)),
            FutexFunction::PassesOn(is) => passed = passed.or(Some((is, OwnerField::Nowhere))),
            FutexFunction::Unknown if passed.is_some() => break,
            FutexFunction::Library | FutexFunction::Unknown => {}
        }
    }
    passed
}
