//! Who wrote the code of a function: the program's authors, or those of a library that all programs of its
//! language use.
//!
//! Receives the modules and names of functions. Finds the program's own function in the stack of a wait, which
//! tells users more than the function that waits:
//!
//! ```text
//!   futex_do_wait ◄ __lll_lock_wait ◄ pthread_mutex_lock ◄ std::mutex::lock ◄ Cache::get ◄ main
//!   kernel          C library         C library            runtime            own function
//! ```
//! To add a language runtime, add its files to [`FILES`] or [`PROGRAMS`], and the names of its functions to
//! [`NAMES`].

use super::boilerplate::is_boilerplate;
use super::code::{CodeKind, LocationCall, LocationCalls, is_generated_module};
use super::interpreters::is_evaluator;
use super::language::{is_runtime_name, marked};
use super::strings::StringTable;
use crate::profile::lock::futex_functions::FutexFunction;

/// Who wrote the code of a function.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CodeOwner {
    /// The authors of the program, or of a library that only some programs use.
    Program,
    Kernel,
    /// The C library.
    Libc,
    /// The runtime or standard library of a language.
    Runtime,
    /// Functions of a runtime in which threads start.
    ThreadStart,
    /// The Go runtime. Its threads run goroutines, which have stacks of their own.
    GoRuntime,
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
    // JavaScript, Python, Ruby, Perl, PHP, Lua, .NET.
    "libnode",
    "libv8",
    "libpython",
    "libruby",
    "libperl",
    "libphp",
    "liblua",
    "libcoreclr",
    "libclrjit",
    "libSystem.Native",
    "libmono",
];

/// Names of the executables of language runtimes, without a version.
const PROGRAMS: &[&str] = &[
    "java", "node", "nodejs", "python", "ruby", "perl", "php", "php-fpm", "lua", "luajit", "beam.smp",
    "dotnet",
];

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
    "__rust_",
    // C++.
    "__gnu_cxx::",
    "__cxxabiv1::",
    "__gthread_",
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
    pub(crate) fn of_user(module: &str, symbol: Option<&str>) -> Self {
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
        let name = without_return_type(symbol);
        let is_runtime = || {
            is_file(FILES)
                || PROGRAMS.iter().any(|program| is_version_of(program, module))
                || NAMES.iter().any(|start| name.starts_with(start))
                || FutexFunction::of(symbol) != FutexFunction::Unknown
        };
        match symbol {
            _ if module == "[vdso]" || is_file(LIBC_FILES) => Self::Libc,
            _ if is_evaluator(symbol) => Self::Interpreter,
            _ if symbol.starts_with("runtime.") => Self::GoRuntime,
            _ if is_boilerplate(symbol) => Self::ThreadStart,
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

    pub(crate) fn of(call: &LocationCall, texts: &StringTable) -> Self {
        let (module, symbol) = (texts.get(call.dso), texts.get(call.symbol));
        match CodeKind::of(call.level, module) {
            CodeKind::Kernel => Self::Kernel,
            CodeKind::Unknown => Self::Unknown,
            CodeKind::Generated => Self::of_user(module, call.named.then_some(symbol)),
            CodeKind::Program | CodeKind::Library => Self::of_user(module, Some(symbol)),
        }
    }
}

/// Whether the function belongs to Python's standard library: `py::Thread.run:/usr/lib/python3.12/threading.py`.
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

/// Returns the function that waits at the location whose number is in an attribute: the innermost call of the
/// program, or else the innermost one.
pub(super) fn waiting_call<'a>(
    code: &'a LocationCalls,
    word: Option<u64>,
    texts: &StringTable,
) -> Option<&'a LocationCall> {
    let location = u32::try_from(word?).ok().filter(|location| (*location as usize) < code.len())?;
    let calls = &code.calls()[code.range(location)];
    calls.iter().find(|call| CodeOwner::of(call, texts) == CodeOwner::Program).or_else(|| calls.first())
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

/// The owners of all calls, by index.
#[derive(Debug)]
pub(crate) struct CodeOwners(Vec<CodeOwner>);

impl CodeOwners {
    pub(crate) fn new(code: &LocationCalls, texts: &StringTable) -> Self {
        Self(marked(code, texts, CodeOwner::of))
    }

    /// Returns the location to name for a wait, given the locations of its stack, innermost first: that of the
    /// program's own function, or else of the innermost function outside the kernel and the C library.
    pub(super) fn waiting_location(&self, stack: &[u32], code: &LocationCalls) -> Option<u32> {
        let find = |wanted: fn(CodeOwner) -> bool| {
            let has = |location: &&u32| code.range(**location).any(|call| wanted(self.0[call]));
            stack.iter().find(has).copied()
        };
        find(|owner| owner == CodeOwner::Program)
            .or_else(|| find(|owner| !matches!(owner, CodeOwner::Kernel | CodeOwner::Libc)))
    }

    /// Assesses the functions of a stack, given the indices of its calls, innermost first.
    pub(crate) fn of_stack(&self, calls: impl Iterator<Item = usize>) -> StackOwners {
        let (mut own, mut outermost, mut seen) = (None, None, Vec::new());
        for call in calls {
            let owner = self.0[call];
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
        let is_whole = is_go || matches!(outermost, Some(CodeOwner::Libc | CodeOwner::ThreadStart));
        let runs_program = own.is_some()
            || has(CodeOwner::Unknown)
            || has(CodeOwner::Interpreter) && !has(CodeOwner::GeneratedRuntime);
        // The C library's own threads are not a runtime's.
        let is_runtime = seen.iter().any(|owner| !matches!(owner, CodeOwner::Kernel | CodeOwner::Libc));
        StackOwners { own, is_service: is_whole && is_runtime && !runs_program, is_go }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pmc_sys::abi::CpuMode;

    fn owner(module: &str, symbol: &str) -> CodeOwner {
        let mut texts = StringTable::default();
        let level = if module == "[kernel.kallsyms]" { CpuMode::Kernel } else { CpuMode::User };
        CodeOwner::of(&LocationCall::new(texts.add(module), texts.add(symbol), level, true), &texts)
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
            ("python3.12", "PyThread_acquire_lock_timed", Runtime),
            ("python3.12", "_PyEval_EvalFrameDefault", Interpreter),
            ("python-shop", "serve", Program),
            ("shop", "runtime.futex.abi0", GoRuntime),
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
        let all = CodeOwners(owners.to_vec());
        let StackOwners { own, is_service, .. } = all.of_stack(0..owners.len());
        (own, is_service)
    }

    #[test]
    fn own_function_is_the_innermost_one_of_the_program() {
        use CodeOwner::*;
        assert_eq!(stack(&[Kernel, Libc, Runtime, Program, Program, Libc]), (Some(3), false));
        assert_eq!(stack(&[Kernel, Libc, Libc]), (None, false));
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
        let owners = CodeOwners::new(&code, &texts);
        let name = |stack: &[u32]| {
            let word = owners.waiting_location(stack, &code).map(u64::from);
            waiting_call(&code, word, &texts).map(|call| texts.get(call.symbol))
        };
        assert_eq!(name(&[0, 1, 2, 3]), Some("Cache::get"));
        assert_eq!(name(&[0, 1, 4]), Some("time_sleep"));
        assert_eq!(name(&[0, 1]), None);
        // An attribute of a row that is no wait, or of a damaged file.
        assert_eq!(waiting_call(&code, Some(u64::MAX), &texts), None);
        assert_eq!(waiting_call(&code, Some(5), &texts), None);
    }

    #[test]
    fn services_are_whole_stacks_of_the_runtime() {
        use CodeOwner::*;
        let is_service = |owners: &[CodeOwner]| stack(owners).1;
        assert!(is_service(&[Kernel, Libc, Runtime, Libc]) && is_service(&[Kernel, GoRuntime, GoRuntime]));
        // The caller of the runtime's function is missing.
        assert!(!is_service(&[Kernel, Libc, Runtime]));
        // An interpreter without frames of its language may run any function.
        assert!(!is_service(&[Kernel, Libc, Runtime, Interpreter, Libc]));
        assert!(!is_service(&[Kernel, Libc, Runtime, Interpreter, GeneratedRuntime, Unknown, Libc]));
        assert!(is_service(&[Kernel, Libc, Runtime, Interpreter, GeneratedRuntime, Libc]));
    }
}
