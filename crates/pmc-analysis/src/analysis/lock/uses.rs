//! Determines the use of a futex from the functions on the stack of the system call.
//!
//! ```text
//!   futex ◄ __lll_lock_wait ◄ pthread_mutex_lock ◄ std::mutex::lock ◄ Cache::get ◄ main
//!                             a mutex              (library)          the function that locks
//! ```
//! The innermost known function decides. For example, `pthread_cond_wait` locks a mutex before it returns; if
//! it has to wait for that mutex, the futex is a mutex.

use crate::profile::lock::futex_functions::{FutexFunction, stack_use};
use crate::profile::lock::user::{FutexUse, LockSite, OwnerField};
use crate::profile::script::{AddressFunction, AddressFunctions};

/// File names of libraries whose functions do not belong to the program itself.
const LIBRARY_FILES: &[&str] =
    &["libc.", "libc-", "libpthread", "libstdc++", "libc++", "ld-musl", "libgcc_s"];

/// The use of the futex that a stack implies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct StackUse {
    pub(super) is: FutexUse,
    pub(super) owner_field: OwnerField,
    pub(super) is_go: bool,
}

/// Classifies a stack of functions, innermost first.
pub(super) fn classify<'a>(functions: impl Iterator<Item = &'a str>) -> StackUse {
    let mut is_go = false;
    let functions = functions.inspect(|function| is_go |= function.starts_with("runtime.futex"));
    let found = stack_use(functions.map(FutexFunction::of));
    let (is, owner_field) = found.unwrap_or((FutexUse::Other, OwnerField::Nowhere));
    StackUse { is, owner_field, is_go }
}

/// Iterates over the functions of a stack, including inlined ones, innermost first.
pub(super) fn functions<'a>(
    places: &'a AddressFunctions,
    stack: &'a [u32],
) -> impl Iterator<Item = &'a AddressFunction> {
    stack.iter().flat_map(|place| places.at(*place))
}

/// Returns the innermost function that is not part of a lock implementation.
pub(super) fn site<'a>(stack: impl Iterator<Item = &'a AddressFunction>) -> LockSite {
    let mut last = None;
    for function in stack {
        last = Some(function);
        if !is_library(function) {
            break;
        }
    }
    let site = |function: &AddressFunction| LockSite {
        function: function.symbol.clone(),
        source: function.source.clone(),
    };
    last.map(site).unwrap_or_default()
}

fn is_library(function: &AddressFunction) -> bool {
    let name = function.symbol.as_deref().unwrap_or("");
    let file = function.dso.as_deref().unwrap_or("");
    let file = file.rsplit('/').next().unwrap_or(file);
    FutexFunction::of(name) != FutexFunction::Unknown
        || LIBRARY_FILES.iter().any(|start| file.starts_with(start))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is(stack: &[&str]) -> FutexUse {
        classify(stack.iter().copied()).is
    }

    #[test]
    fn innermost_function_decides() {
        assert_eq!(is(&["__GI___lll_lock_wait", "pthread_mutex_lock@@GLIBC_2.2.5", "main"]), FutexUse::Mutex);
        let relocks = ["__GI___lll_lock_wait", "__pthread_mutex_cond_lock", "pthread_cond_wait", "worker"];
        assert_eq!(is(&relocks), FutexUse::Mutex);
        let waits = ["__futex_abstimed_wait_common", "pthread_cond_wait@@GLIBC_2.3.2", "my_mutex_pool"];
        assert_eq!(is(&waits), FutexUse::Condition);
        assert_eq!(is(&["__futex_abstimed_wait_common", "__pthread_clockjoin_ex"]), FutexUse::Join);
        assert_eq!(is(&["__lll_lock_wait_private", "malloc"]), FutexUse::Mutex);
        assert_eq!(is(&["std::sys::sync::mutex::futex::Mutex::lock_contended"]), FutexUse::Mutex);
        assert_eq!(is(&["std::sys::sync::condvar::futex::Condvar::wait"]), FutexUse::Condition);
        assert_eq!(is(&["runtime.futex.abi0", "runtime.futexsleep", "runtime.notesleep"]), FutexUse::Park);
        assert_eq!(is(&["runtime.futex.abi0", "runtime.futexsleep", "runtime.lock2"]), FutexUse::RuntimeLock);
        let parks = "parking_lot_core::thread_parker::imp::ThreadParker::futex_wait";
        assert_eq!(is(&[parks, "parking_lot::raw_mutex::RawMutex::lock_slow", "main"]), FutexUse::Mutex);
        assert_eq!(is(&[parks, "pool::sleep", "pthread_once"]), FutexUse::Park);
        assert_eq!(is(&["__lll_lock_wait_private", "malloc", "table", "pthread_once"]), FutexUse::Mutex);
        assert_eq!(is(&["syscall", "own_queue_wait"]), FutexUse::Other);
        assert_eq!(is(&[]), FutexUse::Other);
    }

    #[test]
    fn only_glibc_locks_have_an_owner() {
        let field = |function| classify([function].into_iter()).owner_field;
        assert_eq!(field("pthread_mutex_lock"), OwnerField::Glibc);
        assert_eq!(field("std::sys::sync::mutex::futex::Mutex::lock_contended"), OwnerField::Nowhere);
        assert!(classify(["runtime.futex.abi0"].into_iter()).is_go);
    }

    #[test]
    fn site_is_the_first_function_outside_libraries() {
        let function = |name: &str, dso: &str| AddressFunction {
            symbol: Some(name.into()),
            dso: Some(dso.into()),
            ..AddressFunction::default()
        };
        let stack = [
            function("__GI___lll_lock_wait", "/lib/libc.so.6"),
            function("pthread_mutex_lock", "/lib/libc.so.6"),
            function("__gthread_mutex_lock", "/a"),
            function("std::mutex::lock()", "/a"),
            function("Cache::get", "/a"),
            function("main", "/a"),
        ];
        assert_eq!(site(stack.iter()).function.as_deref(), Some("Cache::get"));
        assert_eq!(site(stack[..2].iter()).function.as_deref(), Some("pthread_mutex_lock"));
        assert_eq!(site([].iter()), LockSite::default());
    }
}
