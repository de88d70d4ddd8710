//! Determines the use of a futex from the functions on the stack of the system call.
//!
//! ```text
//!   futex ◄ __lll_lock_wait ◄ pthread_mutex_lock ◄ std::mutex::lock ◄ Cache::get ◄ main
//!                             a mutex              (library)          the function that locks
//! ```
//! The innermost known function decides. For example, `pthread_cond_wait` locks a mutex before it returns; if
//! it has to wait for that mutex, the futex is a mutex.

use crate::lock::user::LockSite;
use pmc_analysis::profile::sampled::code_owner::{CodeOwner, is_wait_wrapper, waiting_function};
use pmc_analysis::profile::sampled::futex_functions::{FutexFunction, FutexUse, OwnerField, stack_use};
use pmc_analysis::profile::script::{AddressFunction, AddressFunctions};

/// The use of the futex that a stack implies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct StackFutexUse {
    pub(super) purpose: FutexUse,
    pub(super) owner_field: OwnerField,
    pub(super) is_go: bool,
}

impl StackFutexUse {
    /// Whether threads may wait for a lock: only the threads that wait for a semaphore and post it show what
    /// it is used for. If threads are parked, pmc does not know which of them use the same semaphore.
    pub(super) fn may_be_lock(self) -> bool {
        let is_parked = matches!(self.owner_field, OwnerField::Parked(_));
        self.purpose.is_lock() || self.purpose == FutexUse::Semaphore && !is_parked
    }
}

/// Classifies a stack of functions, innermost first.
pub(super) fn classify<'a>(functions: impl Iterator<Item = &'a str>) -> StackFutexUse {
    let mut is_go = false;
    let functions = functions.inspect(|function| is_go |= function.starts_with("runtime.futex"));
    let found = stack_use(functions.map(FutexFunction::named));
    let (purpose, owner_field) = found.unwrap_or((FutexUse::Other, OwnerField::Nowhere));
    StackFutexUse { purpose, owner_field, is_go }
}

/// Iterates over the functions of a stack, including inlined ones, innermost first.
pub(super) fn functions<'a>(
    places: &'a AddressFunctions,
    stack: &'a [u32],
) -> impl Iterator<Item = &'a AddressFunction> {
    stack.iter().flat_map(|place| places.at(*place))
}

/// Returns the function to name for a futex call.
pub(super) fn site<'a>(stack: impl Iterator<Item = &'a AddressFunction>) -> LockSite {
    let mut outermost = None;
    let assess = |function: &'a AddressFunction| {
        outermost = Some(function);
        let name = function.symbol.as_deref();
        let file = function.dso.as_deref().unwrap_or("");
        let owner = CodeOwner::of_user(file.rsplit('/').next().unwrap_or(file), name);
        (owner, name.is_some_and(is_wait_wrapper), function)
    };
    let found = waiting_function(stack.map(assess)).or(outermost);
    let site = |function: &AddressFunction| LockSite {
        function: function.symbol.clone(),
        source: function.source.clone(),
    };
    found.map(site).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use pmc_analysis::profile::sampled::futex_functions::ParkingLibrary;

    fn purpose(stack: &[&str]) -> FutexUse {
        classify(stack.iter().copied()).purpose
    }

    #[test]
    fn innermost_function_decides() {
        assert_eq!(
            purpose(&["__GI___lll_lock_wait", "pthread_mutex_lock@@GLIBC_2.2.5", "main"]),
            FutexUse::Mutex
        );
        let relocks = ["__GI___lll_lock_wait", "__pthread_mutex_cond_lock", "pthread_cond_wait", "worker"];
        assert_eq!(purpose(&relocks), FutexUse::Mutex);
        let waits = ["__futex_abstimed_wait_common", "pthread_cond_wait@@GLIBC_2.3.2", "my_mutex_pool"];
        assert_eq!(purpose(&waits), FutexUse::Condition);
        assert_eq!(purpose(&["__futex_abstimed_wait_common", "__pthread_clockjoin_ex"]), FutexUse::Join);
        assert_eq!(purpose(&["__lll_lock_wait_private", "malloc"]), FutexUse::Mutex);
        assert_eq!(purpose(&["std::sys::sync::mutex::futex::Mutex::lock_contended"]), FutexUse::Mutex);
        assert_eq!(purpose(&["std::sys::sync::condvar::futex::Condvar::wait"]), FutexUse::Condition);
        assert_eq!(
            purpose(&["runtime.futex.abi0", "runtime.futexsleep", "runtime.notesleep"]),
            FutexUse::Park
        );
        assert_eq!(
            purpose(&["runtime.futex.abi0", "runtime.futexsleep", "runtime.lock2"]),
            FutexUse::RuntimeLock
        );
        let parks = "parking_lot_core::thread_parker::imp::ThreadParker::futex_wait";
        assert_eq!(purpose(&[parks, "parking_lot::raw_mutex::RawMutex::lock_slow", "main"]), FutexUse::Mutex);
        assert_eq!(purpose(&[parks, "pool::sleep", "pthread_once"]), FutexUse::Park);
        assert_eq!(purpose(&["__lll_lock_wait_private", "malloc", "table", "pthread_once"]), FutexUse::Mutex);
        assert_eq!(purpose(&["syscall", "own_queue_wait"]), FutexUse::Other);
        let semaphore = ["__futex_abstimed_wait_common64", "__new_sem_wait_slow64", "sem_wait@@GLIBC_2.34"];
        assert_eq!(purpose(&[&semaphore[..], &["lock", "pthread_once"]].concat()), FutexUse::Semaphore);
    }

    #[test]
    fn functions_of_the_language_decide_what_its_locks_are() {
        let python = |callers: &[&str]| {
            let lock =
                ["sem_clockwait@@GLIBC_2.34", "PyThread_acquire_lock_timed", "lock_PyThread_acquire_lock"];
            purpose(&[&lock[..], &["_PyEval_EvalFrameDefault"], callers].concat())
        };
        assert_eq!(python(&[]), FutexUse::Mutex);
        let threading = |function: &str| format!("py::{function}:/usr/lib/python3.12/threading.py");
        let [wait, start, join] = ["Condition.wait", "Thread.start", "Thread.join"].map(threading);
        assert_eq!(python(&["py::work:/srv/shop.py", &join]), FutexUse::Mutex);
        assert_eq!(python(&[&wait, "py::work:/srv/shop.py"]), FutexUse::Condition);
        assert_eq!(python(&[&start, &wait]), FutexUse::Mutex);
        assert_eq!(python(&[&join]), FutexUse::Join);
        assert_eq!(python(&["_queue_SimpleQueue_get_impl", "py::_worker:/x.py"]), FutexUse::Condition);
        let parks = ["sem_wait@@GLIBC_2.34", "_PySemaphore_Wait", "_PyParkingLot_Park", "PyEvent_WaitTimed"];
        assert_eq!(purpose(&[&parks[..], &["ThreadHandle_join"]].concat()), FutexUse::Join);
        let event = ["pthread_cond_wait@@GLIBC_2.3.2", "os::PlatformEvent::park()"];
        let java = |callers: &[&str]| purpose(&[&event[..], callers].concat());
        assert_eq!(java(&["ObjectMonitor::EnterI(JavaThread*)", "Interpreter"]), FutexUse::Mutex);
        assert_eq!(java(&["ObjectMonitor::wait(long, bool, JavaThread*)"]), FutexUse::Condition);
        let parks = |class: &str| {
            let method = format!("void java.util.concurrent.locks.AbstractQueuedSynchronizer{class}");
            purpose(&["pthread_cond_wait@@GLIBC_2.3.2", "Unsafe_Park", "Interpreter", &method])
        };
        assert_eq!(parks(".acquire(int)"), FutexUse::Mutex);
        assert_eq!(parks(".acquireSharedInterruptibly(int)"), FutexUse::Semaphore);
        assert_eq!(parks("$ConditionObject.await()"), FutexUse::Condition);
        let rust =
            ["std::sys::sync::thread_parking::futex::Parker::park", "std::thread::park", "wait_in_queue"];
        assert_eq!(purpose(&rust), FutexUse::Park);
        assert_eq!(
            purpose(&["pthread_cond_wait@@GLIBC_2.3.2", "Unsafe_Park", "Interpreter"]),
            FutexUse::Park
        );
        assert_eq!(purpose(&[]), FutexUse::Other);
    }

    #[test]
    fn only_glibc_locks_have_an_owner() {
        let field = |function| classify([function].into_iter()).owner_field;
        assert_eq!(field("pthread_mutex_lock"), OwnerField::Glibc);
        assert_eq!(field("std::sys::sync::mutex::futex::Mutex::lock_contended"), OwnerField::Nowhere);
        assert!(classify(["runtime.futex.abi0"].into_iter()).is_go);
    }

    #[test]
    fn parked_threads_are_told_from_threads_that_wait_on_the_lock() {
        use ParkingLibrary::*;
        let field = |stack: &[&str]| classify(stack.iter().copied()).owner_field;
        let rust = "<parking_lot_core::thread_parker::imp::ThreadParker as ThreadParkerT>::park";
        let parks = OwnerField::Parked(ParkingLot);
        assert_eq!(field(&[rust, "parking_lot::raw_mutex::RawMutex::lock_slow"]), parks);
        // Another library with the same queues.
        assert_eq!(field(&[rust, "dashmap::lock::RawRwLock::lock_exclusive_slow"]), parks);
        let event = ["pthread_cond_wait@@GLIBC_2.3.2", "os::PlatformEvent::park()"];
        let monitor = [&event[..], &["ObjectMonitor::EnterI(JavaThread*)"]].concat();
        assert_eq!(field(&monitor), OwnerField::Parked(JavaMonitors));
        // The parker's own mutex.
        let own = ["__lll_lock_wait", "pthread_mutex_lock", "os::PlatformEvent::park()"];
        assert_eq!(field(&own), OwnerField::Glibc);
        let method = "void java.util.concurrent.locks.AbstractQueuedSynchronizer.acquire(int)";
        let lock = ["pthread_cond_wait@@GLIBC_2.3.2", "Parker::park(bool, long)", "Unsafe_Park", method];
        assert_eq!(field(&lock), OwnerField::Parked(JavaConcurrent));
        let waiter = "absl::synchronization_internal::FutexWaiter::Wait";
        assert_eq!(field(&[waiter, "absl::Mutex::LockSlow"]), OwnerField::Parked(Abseil));
        let lock = ["sem_wait@@GLIBC_2.34", "_PySemaphore_Wait", "_PyParkingLot_Park", "_PyMutex_LockTimed"];
        assert_eq!(field(&lock), OwnerField::Parked(Python));
        let python = ["sem_clockwait@@GLIBC_2.34", "PyThread_acquire_lock_timed", "_PyEval_EvalFrameDefault"];
        assert_eq!(field(&python), OwnerField::Nowhere);
        let gil = ["pthread_cond_timedwait@@GLIBC_2.3.2", "PyCOND_TIMEDWAIT", "take_gil"];
        assert_eq!(field(&gil), OwnerField::InCondition);
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
        let lock = [
            function("PyThread_acquire_lock_timed", "/lib/libpython3.12.so.1.0"),
            function("method_vectorcall_NOARGS", "/lib/libpython3.12.so.1.0"),
        ];
        let python = [&lock[..], &[function("py::waiter:/srv/shop.py", "/tmp/perf-7.map")]].concat();
        assert_eq!(site(python.iter()).function.as_deref(), Some("py::waiter:/srv/shop.py"));
        assert_eq!(site(lock.iter()).function.as_deref(), Some("method_vectorcall_NOARGS"));
    }
}
