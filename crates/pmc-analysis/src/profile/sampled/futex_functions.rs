//! Recognizes functions that wait on a futex, and determines what they use the futex for.
//!
//! ```text
//!   __lll_lock_wait ◄ pthread_mutex_lock ◄ std::mutex::lock ◄ Cache::get
//!   passes it on      uses it              library            unknown
//! ```
//! A lock of Python or Java waits in a semaphore or a condition variable of the C library. Only the innermost
//! functions of the language show its purpose, if their names are known.

/// The purpose for which a program uses a futex.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum FutexUse {
    /// A mutex.
    Mutex,
    /// A reader-writer lock.
    RwLock,
    /// A lock of the language runtime itself, such as a lock of the Go scheduler.
    RuntimeLock,
    /// A condition variable.
    Condition,
    /// The end of another thread.
    Join,
    /// A semaphore.
    Semaphore,
    /// A semaphore used as a lock: threads that wait for it also post it.
    SemaphoreLock,
    /// A barrier.
    Barrier,
    /// Code that runs once.
    Once,
    /// The end of a sleep: a wait on a condition variable that no thread signals.
    Sleep,
    /// A thread that parks itself, such as an idle thread in a thread pool.
    Park,
    /// Several futexes (`futex_waitv`).
    Several,
    /// Unknown, because no function in the stack indicates the purpose.
    Other,
}

impl FutexUse {
    /// Whether threads wait here until another thread releases a lock.
    pub fn is_lock(self) -> bool {
        matches!(self, Self::Mutex | Self::RwLock | Self::RuntimeLock | Self::SemaphoreLock)
    }

    /// Returns the name shown to users.
    pub fn name(self) -> &'static str {
        match self {
            Self::Mutex => "mutex",
            Self::RwLock => "rwlock",
            Self::RuntimeLock => "runtime lock",
            Self::Condition => "condition variables",
            Self::Join => "thread ends",
            Self::Semaphore => "semaphores",
            Self::SemaphoreLock => "semaphore",
            Self::Barrier => "barriers",
            Self::Once => "one-time initialization",
            Self::Sleep => "sleeps",
            Self::Park => "parked threads",
            Self::Several => "several futexes",
            Self::Other => "unknown futexes",
        }
    }
}

/// Where a lock stores its holder.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum OwnerField {
    /// Next to the futex: glibc's mutexes and reader-writer locks.
    Glibc,
    /// In the futex itself: locks with priority inheritance, robust locks, and musl's locks.
    Futex,
    /// Nowhere: locks of Rust's standard library, of Go, and locks that a program implements itself.
    Nowhere,
    /// Nowhere: the lock consists of a condition variable and a flag, like Python's GIL.
    InCondition,
    /// Nowhere: the library parks each waiting thread on a futex of the thread, not of the lock.
    Parked(ParkingLibrary),
}

impl OwnerField {
    /// Whether the lock stores its holder.
    pub fn is_stored(self) -> bool {
        matches!(self, Self::Glibc | Self::Futex)
    }
}

/// A library that parks threads which wait for its locks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ParkingLibrary {
    /// Rust's crate `parking_lot`, and libraries that use its queues.
    ParkingLot,
    /// Java's `java.util.concurrent`: `LockSupport.park`.
    JavaConcurrent,
    /// Java's monitors: `synchronized`.
    JavaMonitors,
    /// Python's own parking lot, since 3.13.
    Python,
    /// Abseil.
    Abseil,
}

impl ParkingLibrary {
    /// Returns the name shown to users.
    pub fn name(self) -> &'static str {
        match self {
            Self::ParkingLot => "parking_lot",
            Self::JavaConcurrent => "java.util.concurrent",
            Self::JavaMonitors => "Java",
            Self::Python => "Python",
            Self::Abseil => "Abseil",
        }
    }
}

/// Parts of the names of functions whose locks store their holder in the same place as glibc's locks.
const GLIBC: &[(&str, FutexUse)] = &[
    ("pthread_mutex", FutexUse::Mutex),
    ("mtx_lock", FutexUse::Mutex),
    ("mtx_timedlock", FutexUse::Mutex),
    ("pthread_rwlock", FutexUse::RwLock),
];

/// Parts of the names of functions that wait on behalf of their callers: libc's low-level locks (also used by
/// malloc and stdio), and its semaphores and condition variables, of which other locks consist. The purpose
/// in this table applies if no caller indicates another one.
const PASSING: &[(&str, FutexUse)] = &[
    ("lll_lock", FutexUse::Mutex),
    ("lll_timedlock", FutexUse::Mutex),
    ("sem_wait", FutexUse::Semaphore),
    ("sem_timedwait", FutexUse::Semaphore),
    ("sem_clockwait", FutexUse::Semaphore),
    ("pthread_cond", FutexUse::Condition),
    ("cnd_wait", FutexUse::Condition),
    ("cnd_timedwait", FutexUse::Condition),
];

/// Parts of the names of functions that park a thread on the thread's futex, on behalf of a lock or another
/// part of their library.
const PARKERS: &[(&str, ParkingLibrary)] = &[
    ("parking_lot_core::", ParkingLibrary::ParkingLot),
    ("thread_parker", ParkingLibrary::ParkingLot),
    ("PlatformEvent::park", ParkingLibrary::JavaMonitors),
    ("_PyParkingLot", ParkingLibrary::Python),
    ("PerThreadSem", ParkingLibrary::Abseil),
    ("absl::synchronization_internal", ParkingLibrary::Abseil),
];

/// Parts of the names of functions that wait on behalf of functions of a language, with the purpose that
/// applies if these have no names: Python's locks, and parked threads of the JVM.
const OF_LANGUAGE: &[(&str, FutexUse)] = &[
    ("PyThread_acquire_lock", FutexUse::Mutex),
    ("Unsafe_Park", FutexUse::Park),
    ("Parker::park", FutexUse::Park),
];

/// Parts of the names of functions of languages that wait. In the recorded names, Python functions begin with
/// `py::`. The first match applies.
const LANGUAGE: &[(&str, FutexUse)] = &[
    ("py::Thread.join:", FutexUse::Join),
    ("py::Thread._wait_for_tstate_lock:", FutexUse::Join),
    ("py::Condition.wait:", FutexUse::Condition),
    ("AbstractQueuedSynchronizer$ConditionObject", FutexUse::Condition),
    ("AbstractQueuedSynchronizer.acquireShared", FutexUse::Semaphore),
    ("AbstractQueuedSynchronizer.acquire", FutexUse::Mutex),
    ("AbstractQueuedSynchronizer;::acquireShared", FutexUse::Semaphore),
    ("AbstractQueuedSynchronizer;::acquire", FutexUse::Mutex),
];

/// Parts of the names of other functions. If several match one name, the first one applies.
const OTHERS: &[(&str, FutexUse)] = &[
    ("pthread_join", FutexUse::Join),
    ("pthread_clockjoin", FutexUse::Join),
    ("pthread_timedjoin", FutexUse::Join),
    ("thrd_join", FutexUse::Join),
    ("pthread_barrier", FutexUse::Barrier),
    ("pthread_once", FutexUse::Once),
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
    // Python's other locks, and its queue and its threads in C.
    ("ThreadHandle_join", FutexUse::Join),
    ("_PyMutex_Lock", FutexUse::Mutex),
    // Python's global lock (GIL). Compilers may inline the function that takes it.
    ("take_gil", FutexUse::Mutex),
    ("PyEval_RestoreThread", FutexUse::Mutex),
    ("PyEval_AcquireThread", FutexUse::Mutex),
    ("PyGILState_Ensure", FutexUse::Mutex),
    ("_PyThreadState_Attach", FutexUse::Mutex),
    ("_queue_SimpleQueue_get", FutexUse::Condition),
    // The JVM's monitors: `synchronized`, and `Object.wait`.
    ("ObjectMonitor::enter", FutexUse::Mutex),
    ("ObjectMonitor::EnterI", FutexUse::Mutex),
    ("ObjectMonitor::ReenterI", FutexUse::Mutex),
    ("ObjectMonitor::wait", FutexUse::Condition),
    // `Thread.sleep`.
    ("JavaThread::sleep", FutexUse::Sleep),
    ("JVM_Sleep", FutexUse::Sleep),
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
    // The layers with which the JVM and Python use the system's threads.
    "os::Platform",
    "PyCOND_",
    "PyMUTEX_",
    "PyThread_",
    "_PySemaphore",
    "PyEvent_Wait",
];

/// What a function's name indicates about a futex.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum FutexFunction {
    /// The function waits on a futex for this purpose. Its lock stores the holder in this place.
    Uses(FutexUse, OwnerField),
    /// The function waits on a futex on behalf of its caller, or else for this purpose.
    PassesOn(FutexUse),
    /// The function parks its thread on a futex of the thread.
    Parks(ParkingLibrary),
    /// The function waits on a futex on behalf of a function of a language, or else for this purpose.
    PassesOnToLanguage(FutexUse),
    /// The function of a language waits for this purpose.
    Language(FutexUse),
    /// Another function of Python, which ends the search for the purpose.
    OtherLanguage,
    /// Another function of a library.
    Library,
    /// The name indicates nothing.
    #[default]
    Unknown,
}

impl FutexFunction {
    /// Returns what this name indicates.
    pub fn named(name: &str) -> Self {
        let found = |table: &[(&str, FutexUse)]| {
            table.iter().find(|(part, _)| name.contains(part)).map(|(_, is)| *is)
        };
        if let Some(is) = found(GLIBC) {
            return Self::Uses(is, OwnerField::Glibc);
        }
        if let Some(is) = found(LANGUAGE) {
            return Self::Language(is);
        }
        if name.starts_with("py::") {
            return Self::OtherLanguage;
        }
        if let Some((_, library)) = PARKERS.iter().find(|(part, _)| name.contains(part)) {
            return Self::Parks(*library);
        }
        // Rust's libraries have a type of the same name as the JVM's `Parker`.
        if let Some(is) = found(OF_LANGUAGE).filter(|_| !name.contains("::Parker::")) {
            return Self::PassesOnToLanguage(is);
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
pub fn stack_use(stack: impl IntoIterator<Item = FutexFunction>) -> Option<(FutexUse, OwnerField)> {
    let (mut passed, mut is_of_language, mut parks) = (None, false, None);
    for function in stack {
        match function {
            FutexFunction::Uses(is, OwnerField::Nowhere) => {
                let in_condition =
                    || (passed == Some(FutexUse::Condition)).then_some(OwnerField::InCondition);
                let field = parks.map(OwnerField::Parked).or_else(in_condition);
                return Some((is, field.unwrap_or(OwnerField::Nowhere)));
            }
            FutexFunction::Uses(is, owner_field) => return Some((is, owner_field)),
            FutexFunction::PassesOn(is) => passed = passed.or(Some(is)),
            FutexFunction::Parks(library) => {
                passed = passed.or(Some(FutexUse::Park));
                parks = parks.or(Some(library));
            }
            FutexFunction::PassesOnToLanguage(is) => {
                (passed, is_of_language) = (Some(is), true);
                // Only Java parks threads this way; each Python lock has its own semaphore.
                if is == FutexUse::Park {
                    parks = Some(ParkingLibrary::JavaConcurrent);
                }
            }
            FutexFunction::Language(is) if is_of_language => {
                return Some((is, parks.map_or(OwnerField::Nowhere, OwnerField::Parked)));
            }
            FutexFunction::Unknown if passed.is_some() && !is_of_language => break,
            FutexFunction::OtherLanguage if passed.is_some() => break,
            FutexFunction::Library
            | FutexFunction::Unknown
            | FutexFunction::Language(_)
            | FutexFunction::OtherLanguage => {}
        }
    }
    passed.map(|is| (is, OwnerField::Nowhere))
}
