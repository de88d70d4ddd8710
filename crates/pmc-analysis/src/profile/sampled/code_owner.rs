//! Who wrote the code of a function: the program's authors, or those of a library that all programs of its
//! language use.
//!
//! Receives the modules and names of functions. Finds the program's own function in the stack of a wait,
//! which tells users more than the function that waits:
//!
//! ```text
//!   futex_do_wait ◄ __lll_lock_wait ◄ pthread_mutex_lock ◄ std::mutex::lock ◄ Cache::get ◄ main
//!   kernel          C library         C library            runtime            own function
//! ```

use rustc_hash::FxHashMap;

use super::code::{CodeKind, LocationCall, LocationCalls, is_generated_module};
use super::futex_functions::FutexFunction;
use super::interpreters::is_evaluator;
use super::language::is_runtime_name;
use super::strings::{StringId, StringTable};

/// Who wrote the code of a function.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CodeOwner {
    /// The authors of the program, or of a library that only some programs use.
    Program,
    /// The kernel.
    Kernel,
    /// The C library.
    Libc,
    /// The runtime or standard library of a language.
    Runtime,
    /// Functions of a runtime in which threads start.
    ThreadStart,
    /// The Go runtime.
    GoRuntime,
    /// Go's scheduler and its monitor. Their callers are on the stack of a goroutine that no longer runs in
    /// this thread.
    GoScheduler,
    /// The standard library of a language, in generated code.
    GeneratedRuntime,
    /// An interpreter. It runs functions of the program, which may have frames of their own.
    Interpreter,
    /// Unknown: code without a name that a runtime generated, or that is not in a file.
    Unknown,
}

/// Prefixes of the file names of C libraries. Threads start in them.
const LIBC_FILES: &[&str] = &["libc.", "libc-", "libpthread", "ld-linux", "ld-musl", "ld-2", "ld.so"];

/// Prefixes of the file names of other libraries that belong to a language, or that provide threads or
/// memory for other code.
const FILES: &[&str] = &[
    // C, C++, allocators, OpenMP.
    "libstdc++",
    "libc++",
    "libgcc_s",
    "libm.",
    "libm-",
    "librt.",
    "librt-",
    "libdl.",
    "libdl-",
    "libjemalloc",
    "libtcmalloc",
    "libmimalloc",
    "libgomp",
    "libomp.",
    "libiomp",
    "libtbb",
    "libopenblas",
    // Event loops.
    "libuv.",
    "libglib-",
    "libgio-",
    "libgobject-",
    // Java.
    "libjvm.",
    "libjli.",
    "libjava.",
    "libnio.",
    "libnet.so",
    // JavaScript, .NET.
    "libnode",
    "libv8",
    "libcoreclr",
    "libclrjit",
    "libSystem.Native",
    "libmono",
];

/// Names of the executables of language runtimes, without a version.
const PROGRAMS: &[&str] = &["java", "node", "nodejs", "beam.smp", "dotnet"];

/// Prefixes of the file names of libraries that interpret programs. Often, they have no symbols.
const INTERPRETER_FILES: &[&str] = &["libpython", "libruby", "libperl", "libphp", "liblua"];

/// Names of the executables of interpreters, without a version.
const INTERPRETERS: &[&str] = &["python", "ruby", "perl", "php", "php-fpm", "lua", "luajit"];

/// Functions of Go that run while a thread has no goroutine.
const GO_SCHEDULER: &[&str] = &["runtime.schedule", "runtime.sysmon", "runtime.templateThread"];

/// Prefix of the functions with which V8 interprets programs.
const V8_INTERPRETER: &str = "Builtins_Interpreter";

/// Prefixes of the names of functions that are linked into the program.
const NAMES: &[&str] = &[
    // Rust's standard library, and libraries that provide threads, locks and event loops.
    "std::",
    "<std::",
    "core::",
    "<core::",
    "alloc::",
    "<alloc::",
    "parking_lot",
    "<parking_lot",
    "lock_api::",
    "<lock_api::",
    "crossbeam_",
    "<crossbeam_",
    "rayon_core::",
    "<rayon_core::",
    "tokio::",
    "<tokio::",
    "mio::",
    "<mio::",
    // Go's runtime, and the packages through which programs wait.
    "runtime/",
    "internal/",
    "syscall.",
    "sync.",
    "time.Sleep",
    "os.(*File)",
    "net.(*",
    // Allocators: jemalloc's background thread, also in Rust programs.
    "je_",
    "_rjem_je_",
    "background_thread_entry",
    "background_work_sleep_once",
];

/// Prefixes of the names of functions that a runtime generated from its own library: Java.
const GENERATED_NAMES: &[&str] =
    &["java.", "javax.", "jdk.", "sun.", "com.sun.", "Ljava/", "Ljavax/", "Ljdk/", "Lsun/", "Lcom/sun/"];

/// Parts of the names of such functions: the files of JavaScript and Python functions.
const GENERATED_FILES: &[&str] = &[" node:", ":<frozen "];

impl CodeOwner {
    /// Returns the owner of code in user space, given the file name of the module and the function, if known.
    pub fn of_user(module: &str, symbol: Option<&str>) -> Self {
        let is_generated =
            is_generated_module(module) || module.starts_with("perf-") && module.ends_with(".map");
        match symbol {
            Some(symbol) if is_generated => Self::of_generated(symbol),
            None if is_generated => Self::Unknown,
            symbol => Self::of_native(module, symbol.unwrap_or("")),
        }
    }

    /// Returns the owner of native code in user space, given the module's short name and the function.
    fn of_native(module: &str, symbol: &str) -> Self {
        let is_file = |names: &[&str]| names.iter().any(|start| module.starts_with(start));
        let is_program = |names: &[&str]| names.iter().any(|program| is_version_of(program, module));
        let name = without_return_type(symbol);
        let is_runtime = || {
            is_file(FILES)
                || is_program(PROGRAMS)
                || NAMES.iter().any(|start| name.starts_with(start))
                || is_reserved(name)
                || FutexFunction::named(symbol) != FutexFunction::Unknown
        };
        match symbol {
            _ if module == "[vdso]" || is_file(LIBC_FILES) => Self::Libc,
            _ if is_evaluator(symbol) || symbol.starts_with(V8_INTERPRETER) => Self::Interpreter,
            _ if is_file(INTERPRETER_FILES) || is_program(INTERPRETERS) => Self::Interpreter,
            _ if GO_SCHEDULER.contains(&symbol) => Self::GoScheduler,
            _ if symbol.starts_with("runtime.") => Self::GoRuntime,
            _ if is_start_up(symbol) => Self::ThreadStart,
            _ if is_runtime() => Self::Runtime,
            _ => Self::Program,
        }
    }

    fn of_generated(symbol: &str) -> Self {
        let name = without_return_type(symbol);
        let is_library = GENERATED_NAMES.iter().any(|start| name.starts_with(start))
            || GENERATED_FILES.iter().any(|part| symbol.contains(part))
            || is_python_library(symbol);
        match symbol {
            // The JVM's interpreter.
            _ if symbol.starts_with("Interpreter") => Self::Unknown,
            _ if is_library || is_runtime_name(symbol) => Self::GeneratedRuntime,
            _ => Self::Program,
        }
    }

    fn from_call(call: &LocationCall, texts: &StringTable) -> Self {
        let (module, symbol) = (texts.get(call.dso), texts.get(call.short));
        match CodeKind::from_mode(call.level, module) {
            CodeKind::Kernel => Self::Kernel,
            CodeKind::Unknown => Self::Unknown,
            CodeKind::Generated => Self::of_user(module, call.named.then_some(symbol)),
            CodeKind::Program | CodeKind::Library => Self::of_user(module, Some(symbol)),
        }
    }
}

/// Whether C and C++ reserve the name for their implementation: `__gthread_mutex_lock`, `__gnu_cxx::…`.
/// Fortran's compiler begins the names of the program's functions in the same way: `__shop_MOD_lookup`.
fn is_reserved(name: &str) -> bool {
    name.starts_with("__") && !name.contains("_MOD_")
}

/// Functions of the C library, the loader and Go's runtime that start programs and threads.
const START_NAMES: &[&str] = &[
    "_start",
    "__libc_start_main",
    "__libc_start_main_impl",
    "__libc_start_call_main",
    "_dl_start_user",
    "start_thread",
    "thread_start",
    "clone",
    "clone3",
    "__clone",
    "__clone3",
    "__GI___clone3",
    "execute_native_thread_routine",
    "runtime.goexit",
    "runtime.goexit.abi0",
    "runtime.main",
];

/// Prefixes of the names of other such functions: Rust's runtime and threads, C++ threads, the workers of
/// tokio and rayon.
const START_BEGINNINGS: &[&str] = &[
    "std::rt::",
    "std::panic::",
    "std::panicking::",
    "std::thread::",
    "std::sys::backtrace::",
    "std::sys::pal::unix::thread::",
    "std::sys::thread::",
    "std::sys_common::backtrace::",
    "core::ops::function::",
    "<alloc::boxed::Box<",
    "<core::panic::unwind_safe::AssertUnwindSafe",
    "rayon_core::",
    "<rayon_core::",
    "tokio::runtime::",
    "<tokio::runtime::",
];

/// Whether the name belongs to a function that starts a program, its threads or their workers.
pub(super) fn is_start_up(symbol: &str) -> bool {
    let name = symbol.split('@').next().unwrap_or(symbol);
    START_NAMES.contains(&name) || START_BEGINNINGS.iter().any(|beginning| name.starts_with(beginning))
}

/// Whether the function belongs to Python's standard library, such as
/// `py::Thread.run:/usr/lib/python3.12/threading.py`.
fn is_python_library(symbol: &str) -> bool {
    let Some((_, file)) = symbol.strip_prefix("py::").and_then(|name| name.rsplit_once(':')) else {
        return false;
    };
    let is_installed = file.contains("site-packages/") || file.contains("dist-packages/");
    file.contains("/lib/python3") && !is_installed
}

/// Whether a file is a version of this program: `python3.12`, `ruby-3.2`.
fn is_version_of(program: &str, file: &str) -> bool {
    let version = |rest: &str| rest.chars().all(|c| c.is_ascii_digit() || matches!(c, '.' | '-'));
    file.strip_prefix(program).is_some_and(version)
}

/// Returns a demangled name without the return type, which names of C++ templates and of Java methods begin
/// with: `void std::__invoke_impl<void, int (*)()>(…)`.
fn without_return_type(symbol: &str) -> &str {
    let (mut depth, mut start) = (0u32, 0);
    for (at, c) in symbol.char_indices() {
        match c {
            '<' => depth += 1,
            '>' => depth = depth.saturating_sub(1),
            '(' if depth == 0 => break,
            ' ' if depth == 0 => start = at + 1,
            _ => {}
        }
    }
    &symbol[start..]
}

/// Returns the function to name for a wait, given its stack, innermost first: the owner of each function,
/// whether it only waits on behalf of its caller, and the function.
///
/// This is the program's own function, or else the innermost one outside the kernel and the C library that
/// does more than wait. Without such a function, the outermost one that waits says most. The same applies to
/// a stack that ends in the C library, where even the innermost function is a hint.
pub fn waiting_function<T: Copy>(stack: impl Iterator<Item = (CodeOwner, bool, T)>) -> Option<T> {
    let (mut outside, mut wrapper, mut in_libc) = (None, None, None);
    for (owner, is_wrapper, function) in stack {
        match owner {
            CodeOwner::Program => return Some(function),
            CodeOwner::GoScheduler => break,
            CodeOwner::Kernel => {}
            CodeOwner::Libc if is_wrapper => in_libc = Some(function),
            CodeOwner::Libc => in_libc = in_libc.or(Some(function)),
            _ if outside.is_some() => {}
            // The callers run any function.
            CodeOwner::Unknown | CodeOwner::ThreadStart => outside = wrapper.or(Some(function)),
            CodeOwner::GoRuntime => outside = Some(function),
            _ if is_wrapper => wrapper = Some(function),
            _ => outside = Some(function),
        }
    }
    outside.or(wrapper).or(in_libc)
}

/// Whether the function only waits on behalf of its caller: a lock, or a layer above the system's threads.
pub fn is_wait_wrapper(symbol: &str) -> bool {
    FutexFunction::named(symbol) != FutexFunction::Unknown && !is_start_up(symbol)
}

/// Returns the function that waits at the location whose number is in an attribute.
pub(super) fn waiting_call<'a>(
    code: &'a LocationCalls,
    word: Option<u64>,
    texts: &StringTable,
) -> Option<&'a LocationCall> {
    let location = u32::try_from(word?).ok().filter(|location| (*location as usize) < code.len())?;
    let calls = &code.calls()[code.range(location)];
    let assess = |call: &'a LocationCall| {
        (CodeOwner::from_call(call, texts), is_wait_wrapper(texts.get(call.short)), call)
    };
    waiting_function(calls.iter().map(assess)).or_else(|| calls.first())
}

/// What the owners of a stack's functions tell about a wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct StackOwners {
    /// The program's own function: the index of the innermost call whose code belongs to the program.
    pub(crate) own: Option<usize>,
    /// Whether all functions belong to the runtime, from the function that waits to the start of the thread.
    /// Such a thread works for the runtime.
    pub(crate) is_service: bool,
    /// Whether the stack starts in the Go runtime.
    pub(crate) is_go: bool,
}

impl StackOwners {
    /// Assesses the functions of a stack, given the index and owner of each call, innermost first.
    fn from_calls(calls: impl Iterator<Item = (usize, CodeOwner)>) -> Self {
        let (mut own, mut outermost, mut seen) = (None, None, Vec::new());
        for (call, owner) in calls {
            if owner == CodeOwner::GoScheduler && own.is_none() {
                return Self { own: None, is_service: true, is_go: true };
            }
            if owner == CodeOwner::Program {
                own = own.or(Some(call));
            }
            outermost = Some(owner);
            if !seen.contains(&owner) {
                seen.push(owner);
            }
        }
        let is_go = outermost == Some(CodeOwner::GoRuntime);
        let has = |owner: CodeOwner| seen.contains(&owner);
        let is_complete = is_go || matches!(outermost, Some(CodeOwner::Libc | CodeOwner::ThreadStart));
        let runs_program = own.is_some()
            || has(CodeOwner::Unknown)
            || has(CodeOwner::Interpreter) && !has(CodeOwner::GeneratedRuntime);
        // The C library's own threads are not a runtime's.
        let is_runtime = seen.iter().any(|owner| !matches!(owner, CodeOwner::Kernel | CodeOwner::Libc));
        Self { own, is_service: is_complete && is_runtime && !runs_program, is_go }
    }
}

/// Determines the owners of calls. Checks each pair of module and function only once.
pub(crate) struct CodeOwners<'a> {
    code: &'a LocationCalls,
    texts: &'a StringTable,
    /// The owner of each function, and whether it only waits on behalf of its caller.
    known: FxHashMap<(StringId, StringId), (CodeOwner, bool)>,
}

impl<'a> CodeOwners<'a> {
    pub(crate) fn new(code: &'a LocationCalls, texts: &'a StringTable) -> Self {
        Self { code, texts, known: FxHashMap::default() }
    }

    fn owner(&mut self, call: usize) -> CodeOwner {
        self.assess(call).0
    }

    fn assess(&mut self, call: usize) -> (CodeOwner, bool) {
        let (call, texts) = (&self.code.calls()[call], self.texts);
        let assess = || (CodeOwner::from_call(call, texts), is_wait_wrapper(texts.get(call.short)));
        *self.known.entry((call.dso, call.symbol)).or_insert_with(assess)
    }

    /// Assesses the functions of a stack, given its locations, innermost first.
    pub(crate) fn of_stack(&mut self, stack: impl Iterator<Item = u32>) -> StackOwners {
        let code = self.code;
        StackOwners::from_calls(
            stack.flat_map(|location| code.range(location)).map(|call| (call, self.owner(call))),
        )
    }

    /// Returns the location to name for a wait, given the locations of its stack, innermost first.
    pub(super) fn waiting_location(&mut self, stack: &[u32]) -> Option<u32> {
        let code = self.code;
        let calls =
            stack.iter().flat_map(|location| code.range(*location).map(move |call| (*location, call)));
        waiting_function(calls.map(|(location, call)| {
            let (owner, is_wrapper) = self.assess(call);
            (owner, is_wrapper, location)
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pmc_sys::abi::CpuMode;

    fn owner(module: &str, symbol: &str) -> CodeOwner {
        let mut texts = StringTable::default();
        let level = if module == "[kernel.kallsyms]" { CpuMode::Kernel } else { CpuMode::User };
        CodeOwner::from_call(&LocationCall::new(texts.add(module), texts.add(symbol), level, true), &texts)
    }

    #[test]
    fn runtimes_are_told_from_programs() {
        use CodeOwner::*;
        for (module, symbol, wanted) in [
            ("[kernel.kallsyms]", "futex_do_wait", Kernel),
            ("libc.so.6", "pthread_mutex_lock@@GLIBC_2.2.5", Libc),
            ("ld-linux-x86-64.so.2", "_dl_open", Libc),
            ("[vdso]", "__vdso_clock_gettime", Libc),
            ("libstdc++.so.6.0.30", "std::condition_variable::wait", Runtime),
            ("libjvm.so", "Monitor::wait", Runtime),
            ("libjvm.so", "[libjvm.so]", Runtime),
            ("libjemalloc.so.2", "[libjemalloc.so.2]", Runtime),
            ("node", "uv__io_poll", Runtime),
            ("python3.12", "PyThread_acquire_lock_timed", Interpreter),
            ("libruby-3.1.so.3.1.2", "[libruby-3.1.so.3.1.2]", Interpreter),
            ("node", "Builtins_InterpreterEntryTrampoline", Interpreter),
            ("python3.12", "_PyEval_EvalFrameDefault", Interpreter),
            ("python-shop", "serve", Program),
            ("shop", "runtime.futex.abi0", GoRuntime),
            ("shop", "runtime.schedule", GoScheduler),
            ("shop", "internal/poll.(*FD).Read", Runtime),
            ("shop", "os.(*File).Read", Runtime),
            ("shop", "main.main", Program),
            ("shop", "os.part.0", Program),
            ("shop", "std::sys::sync::mutex::futex::Mutex::lock_contended", Runtime),
            ("shop", "<alloc::boxed::Box<F,A> as core::ops::function::FnOnce<Args>>::call_once", ThreadStart),
            ("shop", "<shop::Cart as core::fmt::Display>::fmt", Program),
            ("shop", "void std::__invoke_impl<void, void (*)(int)>(std::__invoke_other)", Runtime),
            ("shop", "int shop::fold<std::less<int> >(std::vector<int>)", Program),
            ("shop", "shop::operator()(std::string const&)", Program),
            ("shop", "__gthread_mutex_lock", Runtime),
            ("shop", "__glibcxx_rwlock_wrlock", Runtime),
            ("shop", "__shop_MOD_lookup", Program),
            ("shop", "start_thread", ThreadStart),
            ("libshop.so", "serve", Program),
            ("shop", "[shop]", Program),
            ("[JIT] tid 7", "int J.fib(int)", Program),
            ("[JIT] tid 7", "void java.lang.Thread.run()", GeneratedRuntime),
            ("[JIT] tid 7", "Interpreter", Unknown),
            ("[JIT] tid 7", "py::worker:/srv/lib/python3.12/site-packages/shop.py", Program),
            ("[JIT] tid 7", "py::Thread.run:/usr/lib/python3.12/threading.py", GeneratedRuntime),
            ("[JIT] tid 7", "JS:*serve /srv/shop.js:3:15", Program),
            ("[JIT] tid 7", "JS:~processTimers node:internal/timers:500:25", GeneratedRuntime),
            ("[unknown]", "[short waits]", Unknown),
        ] {
            assert_eq!(owner(module, symbol), wanted, "{module} {symbol}");
        }
    }

    /// Assesses a stack of owners, innermost first.
    fn stack(owners: &[CodeOwner]) -> (Option<usize>, bool) {
        let StackOwners { own, is_service, .. } = StackOwners::from_calls(owners.iter().copied().enumerate());
        (own, is_service)
    }

    #[test]
    fn own_function_is_the_innermost_one_of_the_program() {
        use CodeOwner::*;
        assert_eq!(stack(&[Kernel, Libc, Runtime, Program, Program, Libc]), (Some(3), false));
        assert_eq!(stack(&[Kernel, Libc, Libc]), (None, false));
        assert_eq!(stack(&[Kernel, GoRuntime, GoScheduler, Program]), (None, true));
        assert_eq!(stack(&[]), (None, false));
    }

    #[test]
    fn waits_are_named_by_the_programs_function() {
        let mut texts = StringTable::default();
        let mut code = LocationCalls::default();
        let mut add = |module: &str, symbols: &[&str]| {
            let level = if module.starts_with('[') { CpuMode::Kernel } else { CpuMode::User };
            let call = |symbol: &&str| LocationCall::new(texts.add(module), texts.add(symbol), level, true);
            code.push(&symbols.iter().map(call).collect::<Vec<_>>(), Some(0));
        };
        add("[kernel.kallsyms]", &["futex_do_wait"]);
        add("libc.so.6", &["pthread_mutex_lock"]);
        add("libshop.so", &["std::mutex::lock", "Cache::get", "serve"]);
        add("shop", &["main"]);
        add("libpython3.11.so.1.0", &["time_sleep"]);
        add("shop", &["runtime.schedule"]);
        add("libjvm.so", &["os::PlatformMonitor::wait"]);
        add("libjvm.so", &["Monitor::wait_without_safepoint_check"]);
        add("libjvm.so", &["Parker::park"]);
        add("libjvm.so", &["Unsafe_Park"]);
        add("[JIT] tid 7", &["Interpreter"]);
        add("libpython3.11.so.1.0", &["PyCOND_TIMEDWAIT", "take_gil", "acquire_timed"]);
        add("shop", &["std::__glibcxx_rwlock_wrlock", "__glibcxx_rwlock_wrlock", "Cache::set"]);
        let name = |stack: &[u32]| {
            let word = CodeOwners::new(&code, &texts).waiting_location(stack).map(u64::from);
            waiting_call(&code, word, &texts).map(|call| texts.get(call.symbol))
        };
        assert_eq!(name(&[0, 1, 2, 3]), Some("Cache::get"));
        assert_eq!(name(&[0, 1, 4]), Some("time_sleep"));
        assert_eq!(name(&[0, 1]), Some("pthread_mutex_lock"));
        assert_eq!(name(&[0]), None);
        assert_eq!(name(&[0, 5, 3]), None);
        // Functions that only wait on behalf of their callers.
        assert_eq!(name(&[0, 1, 6, 7]), Some("Monitor::wait_without_safepoint_check"));
        assert_eq!(name(&[0, 1, 8, 9, 10]), Some("Unsafe_Park"));
        assert_eq!(name(&[0, 1, 11]), Some("acquire_timed"));
        assert_eq!(name(&[0, 1, 12, 3]), Some("Cache::set"));
        // An attribute of a row that is no wait, or of a damaged file.
        assert_eq!(waiting_call(&code, Some(u64::MAX), &texts), None);
        assert_eq!(waiting_call(&code, Some(13), &texts), None);
    }

    #[test]
    fn services_are_whole_stacks_of_the_runtime() {
        use CodeOwner::*;
        let is_service = |owners: &[CodeOwner]| stack(owners).1;
        assert!(is_service(&[Kernel, Libc, Runtime, Libc]) && is_service(&[Kernel, GoRuntime, GoRuntime]));
        // The thread has left the goroutine.
        assert!(is_service(&[Kernel, GoRuntime, GoScheduler, GoRuntime, Program, GoRuntime]));
        assert!(!is_service(&[Kernel, GoRuntime, Program, GoRuntime]));
        // The caller of the runtime's function is missing.
        assert!(!is_service(&[Kernel, Libc, Runtime]));
        // An interpreter without frames of its language may run any function.
        assert!(!is_service(&[Kernel, Libc, Runtime, Interpreter, Libc]));
        assert!(!is_service(&[Kernel, Libc, Runtime, Interpreter, GeneratedRuntime, Unknown, Libc]));
        assert!(is_service(&[Kernel, Libc, Runtime, Interpreter, GeneratedRuntime, Libc]));
    }
}
