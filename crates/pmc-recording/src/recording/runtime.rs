//! Language runtimes that can write the names of their generated functions to a file, usually if an
//! environment variable is set.
//!
//! Receives a command line; returns the runtime that the command starts, if it is one of [`RUNTIMES`].

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use pmc_events::event;
use pmc_symbols::symbol::{Image, elf, runtime_names};
use pmc_sys::host::Host;

/// A runtime, and how to make it write the names.
pub struct Runtime {
    /// The runtime's name, as users know it.
    pub name: &'static str,
    /// Whether a program belongs to this runtime.
    is_of: fn(&StartingProgram<'_>) -> bool,
    /// Returns the reason if the program's functions will have no names; `None` if they will have names.
    lacks: fn(&StartingProgram<'_>) -> Option<MissingRuntimeNames>,
    /// The variable that requests the names; `None` if the runtime always writes them.
    variable: Option<Variable>,
}

/// Why functions in a language will have no names.
pub struct MissingRuntimeNames {
    /// The language.
    pub language: &'static str,
    /// The reason, as a sentence.
    pub why: &'static str,
    /// How to get names.
    pub remedy: &'static str,
}

impl MissingRuntimeNames {
    fn when(lacks: bool, language: &'static str, why: &'static str, remedy: &'static str) -> Option<Self> {
        lacks.then_some(Self { language, why, remedy })
    }
}

/// An environment variable.
struct Variable {
    name: &'static str,
    /// The required value. If the variable is a list, `values` are options to append to the existing list.
    values: &'static [&'static str],
    is_list: bool,
}

/// The supported runtimes, with the sources of their settings. Python: docs.python.org, "Python support for
/// the Linux perf profiler" (3.12). Node.js: `node --v8-options`. The JVM: `-XX:+DumpPerfMapAtExit` is a
/// diagnostic option of JDK 17. .NET: "runtime configuration options". BEAM: "BeamAsm, the Erlang JIT" (OTP
/// 24). LuaJIT: its `lj_trace.c`. Ruby: its "YJIT" page; versions before 3.3 reject the option, and 3.4
/// prints a line to stdout with it, so `pmc` never sets it. PHP: `zend_jit.h`; no variable sets its options.
const RUNTIMES: &[Runtime] = &[
    Runtime {
        name: "Python",
        is_of: |program| (program.has)("Py_BytesMain"),
        lacks: |program| {
            let lacks = !program.has_or_links("PyUnstable_PerfMapState_Init");
            MissingRuntimeNames::when(
                lacks,
                "Python",
                "this Python is older than 3.12",
                runtime_names::PYTHON,
            )
        },
        variable: Some(Variable { name: "PYTHONPERFSUPPORT", values: &["1"], is_list: false }),
    },
    Runtime {
        name: "Node.js",
        is_of: |program| (program.has)("_ZN4node5StartEiPPc"),
        lacks: |_| None,
        variable: Some(Variable {
            name: "NODE_OPTIONS",
            values: &["--perf-basic-prof", "--interpreted-frames-native-stack"],
            is_list: true,
        }),
    },
    Runtime {
        name: "the JVM",
        is_of: |program| (program.has)("JLI_Launch"),
        lacks: |_| None,
        variable: Some(Variable {
            name: "JAVA_TOOL_OPTIONS",
            values: &[
                "-XX:+PreserveFramePointer",
                "-XX:+UnlockDiagnosticVMOptions",
                "-XX:+DumpPerfMapAtExit",
            ],
            is_list: true,
        }),
    },
    Runtime {
        name: ".NET",
        is_of: |program| program.file.parent().is_some_and(|beside| beside.join("host/fxr").is_dir()),
        lacks: |_| None,
        variable: Some(Variable { name: "DOTNET_PerfMapEnabled", values: &["1"], is_list: false }),
    },
    Runtime {
        name: "BEAM",
        is_of: |program| program.file.file_name().is_some_and(|name| name == BEAM),
        lacks: |program| {
            let why = "this BEAM cannot write them";
            MissingRuntimeNames::when(!program.holds("JPperf"), "Erlang", why, runtime_names::ERLANG)
        },
        variable: Some(Variable { name: "ERL_AFLAGS", values: &["+JPperf true"], is_list: true }),
    },
    Runtime {
        name: "LuaJIT",
        is_of: |program| (program.has)("luaJIT_setmode"),
        lacks: |program| {
            let lacks = !program.holds("/tmp/perf-%d.map");
            MissingRuntimeNames::when(
                lacks,
                "Lua",
                "this LuaJIT was built without support for perf map files",
                runtime_names::LUAJIT,
            )
        },
        variable: None,
    },
    Runtime {
        name: "Ruby",
        is_of: |program| (program.has)("ruby_sysinit"),
        lacks: |program| {
            let lacks = !program.has_option_set("--yjit-perf") && !program.inherits("RUBYOPT", "--yjit-perf");
            MissingRuntimeNames::when(
                lacks,
                "Ruby",
                "only YJIT writes perf map files, and only when enabled",
                runtime_names::RUBY,
            )
        },
        variable: None,
    },
    Runtime {
        name: "PHP",
        is_of: |program| (program.has)("php_execute_script"),
        lacks: |program| {
            let why = "only its JIT writes function names, and only if enabled";
            MissingRuntimeNames::when(!program.mentions("opcache.jit_debug"), "PHP", why, runtime_names::PHP)
        },
        variable: None,
    },
    Runtime {
        name: "Perl",
        // Programs that embed Perl import the same functions.
        is_of: |program| (program.has)("perl_run") && program.is_called("perl"),
        lacks: |_| MissingRuntimeNames::when(true, "Perl", "perl does not write them", runtime_names::PERL),
        variable: None,
    },
];

impl Runtime {
    /// Returns the variable to set and its value, or `None` if nothing needs to be set. `present` returns the
    /// current value of a variable.
    pub fn asking(&self, present: impl FnOnce(&str) -> Option<OsString>) -> Option<(OsString, OsString)> {
        let Variable { name, values, is_list } = self.variable.as_ref()?;
        let present = present(name).filter(|text| !text.is_empty());
        let value = match present {
            Some(text) if *is_list => {
                let text = text.to_string_lossy();
                // If the user has already set the option, keep that value.
                let has = |value: &str| text.split(' ').any(|have| Some(have) == value.split(' ').next());
                let missing: Vec<&str> = values.iter().copied().filter(|value| !has(value)).collect();
                if missing.is_empty() {
                    return None;
                }
                format!("{text} {}", missing.join(" "))
            }
            Some(_) => return None,
            None => values.join(" "),
        };
        Some((name.into(), value.into()))
    }
}

/// A program that is about to be started.
struct StartingProgram<'a> {
    file: &'a Path,
    image: &'a [u8],
    /// Whether the program's dynamic symbol table contains a function.
    has: &'a dyn Fn(&str) -> bool,
    /// The program's arguments.
    words: &'a [OsString],
}

impl StartingProgram<'_> {
    /// Whether the dynamic symbol table of the program, or of a library that it needs, contains the function.
    /// Python is often in a library (`libpython3.12.so`).
    fn has_or_links(&self, function: &str) -> bool {
        let exports = |file: PathBuf| {
            let image = Image::open(&file).ok()?;
            Some(elf::has_dynamic_symbol(&image.elf().ok()?, function))
        };
        let path = std::env::var("LD_LIBRARY_PATH").unwrap_or_default();
        let libraries = || event::with_libraries(&Host::live(), self.file, &path);
        (self.has)(function) || libraries().into_iter().skip(1).any(|file| exports(file) == Some(true))
    }

    /// Whether the program's file contains this text.
    fn holds(&self, text: &str) -> bool {
        self.image.windows(text.len()).any(|bytes| bytes == text.as_bytes())
    }

    /// Whether the program's file name begins with `name`.
    fn is_called(&self, name: &str) -> bool {
        self.file.file_name().is_some_and(|file| file.as_bytes().starts_with(name.as_bytes()))
    }

    /// Whether an argument contains this text.
    fn mentions(&self, text: &str) -> bool {
        self.words.iter().any(|word| word.to_string_lossy().contains(text))
    }

    /// Whether an inherited variable contains this option.
    fn inherits(&self, variable: &str, option: &str) -> bool {
        std::env::var(variable).is_ok_and(|text| text.split_whitespace().any(|word| word == option))
    }

    /// Whether this option is among the arguments, with or without a value.
    fn has_option_set(&self, option: &str) -> bool {
        let rests = self.words.iter().filter_map(|word| word.as_bytes().strip_prefix(option.as_bytes()));
        rests.into_iter().any(|rest| rest.is_empty() || rest.starts_with(b"="))
    }
}

/// The result of the detection.
pub enum RuntimeDetection {
    /// The runtime can export the names of its generated functions.
    Writes(&'static Runtime),
    /// The program's functions will have no names.
    Lacks(MissingRuntimeNames),
}

/// Returns the runtime that a command line starts; `None` for an ordinary or missing program.
///
/// Reads the program's executable, or the interpreter's executable for a script. Recognizes a runtime by the
/// executable's exported or imported functions, or by a directory of the installation, and ignores the
/// command's name.
pub fn detect(command: &[OsString]) -> Option<RuntimeDetection> {
    known(&executed(command)?, command.get(1..)?)
}

/// Returns the file that a command line finally executes. For a script, this is the interpreter.
pub(crate) fn executed(command: &[OsString]) -> Option<PathBuf> {
    program(command.first()?, &std::env::var_os("PATH").unwrap_or_default())
}

fn known(file: &Path, words: &[OsString]) -> Option<RuntimeDetection> {
    let image = Image::open(file).ok()?;
    let elf = image.elf().ok()?;
    let has = |function: &str| elf::has_dynamic_symbol(&elf, function);
    let program = StartingProgram { file, image: &image, has: &has, words };
    let runtime = RUNTIMES.iter().find(|runtime| (runtime.is_of)(&program))?;
    Some(match (runtime.lacks)(&program) {
        Some(lack) => RuntimeDetection::Lacks(lack),
        None => RuntimeDetection::Writes(runtime),
    })
}

/// Maximum number of nested scripts, because a script's interpreter may also be a script.
const MOST_SCRIPTS: usize = 4;

/// Returns the file that is ultimately executed for a command's first word.
fn program(word: &OsStr, path: &OsStr) -> Option<PathBuf> {
    let mut program = find(word, path)?;
    for _ in 0..MOST_SCRIPTS {
        if let Some(machine) = find_erlang_vm(&program) {
            return Some(machine);
        }
        let Some(words) = interpreter(&program) else { return Some(program) };
        if words.iter().any(is_shell)
            && let Some(wrapped) = wrapped(&program, path)
        {
            program = wrapped;
            continue;
        }
        if is_elixir_script(&program) {
            program = find(OsStr::new("erl"), path)?;
            continue;
        }
        let mut words = words.iter();
        program = find(words.next()?, path)?;
        if program.file_name() == Some(OsStr::new("env")) {
            let is_word =
                |word: &&OsString| !word.as_bytes().starts_with(b"-") && !word.as_bytes().contains(&b'=');
            program = find(words.find(is_word)?, path)?;
        }
    }
    None
}

/// The file name of Erlang's virtual machine.
const BEAM: &str = "beam.smp";

/// Returns the file that the programs in `…/erlang/bin`, such as `erl`, finally execute:
/// `…/erlang/erts-VERSION/bin/beam.smp`. The version is the first word of a file in the installation
/// directory.
fn find_erlang_vm(program: &Path) -> Option<PathBuf> {
    let root = program.parent()?.parent()?;
    let release = Image::open(&root.join("releases/start_erl.data")).ok()?;
    let version = str::from_utf8(&release).ok()?.split_whitespace().next()?;
    let machine = root.join(format!("erts-{version}")).join("bin").join(BEAM);
    machine.is_file().then_some(machine)
}

/// Whether a script belongs to Elixir. Elixir's scripts execute the first `erl` in `PATH`.
fn is_elixir_script(script: &Path) -> bool {
    let root = script.parent().and_then(Path::parent);
    root.is_some_and(|root| root.join("lib/elixir/ebin/elixir.app").is_file())
}

/// Maximum size of a script that is searched for an `exec` command. Wrapper scripts are short.
const LARGEST_WRAPPER: usize = 16 * 1024;

fn is_shell(word: &OsString) -> bool {
    let name = Path::new(word).file_name().and_then(OsStr::to_str);
    name.is_some_and(|name| ["sh", "bash", "dash", "ksh", "zsh"].contains(&name))
}

/// Returns the program with which a shell script replaces itself, as wrappers do: `exec /opt/bin/python3
/// "$@"`. Shims of version managers (pyenv, rbenv, nodenv, asdf) execute `MANAGER exec NAME`; `MANAGER which
/// NAME` prints the program that this command would execute.
fn wrapped(script: &Path, path: &OsStr) -> Option<PathBuf> {
    let image = Image::open(script).ok()?;
    let text = str::from_utf8(image.get(..image.len().min(LARGEST_WRAPPER))?).ok()?;
    let last = text.lines().filter_map(|line| line.trim().strip_prefix("exec ")).next_back()?;
    let unquoted = |word: &str| word.trim_matches(['"', '\'']).to_owned();
    let words: Vec<String> = last.split_whitespace().map(unquoted).collect();
    let words = if words.first()? == "-a" { words.get(2..)? } else { &words[..] };
    // Give up if only the shell knows the value.
    let target = words.first().filter(|word| !word.contains(['$', '`', '\\']))?;
    let target = find(OsStr::new(target), path)?;
    if words.get(1).is_none_or(|word| word != "exec") {
        return Some(target);
    }
    let exports = text.lines().filter_map(|line| line.trim().strip_prefix("export ")?.split_once('='));
    let exports = exports.filter(|(_, value)| !value.contains(['$', '`']));
    let mut which = Command::new(target);
    which.arg("which").arg(script.file_name()?).stdin(Stdio::null());
    which.envs(exports.map(|(name, value)| (name, unquoted(value))));
    let output = which.output().ok().filter(|output| output.status.success())?;
    let program = str::from_utf8(&output.stdout).ok()?.lines().next()?;
    find(OsStr::new(program), path).filter(|program| program != script)
}

/// Finds a program as `execvp(3)` does, and resolves symbolic links.
fn find(word: &OsStr, path: &OsStr) -> Option<PathBuf> {
    let named = word.as_bytes().contains(&b'/').then(|| PathBuf::from(word));
    let searched = || std::env::split_paths(path).map(|folder| folder.join(word)).find(|file| file.is_file());
    named.or_else(searched)?.canonicalize().ok()
}

/// Returns the words after a script's `#!`.
fn interpreter(file: &Path) -> Option<Vec<OsString>> {
    let image = Image::open(file).ok()?;
    let line = image.strip_prefix(b"#!")?.split(|byte| *byte == b'\n').next()?;
    // The kernel reads only this much of the line (`BINPRM_BUF_SIZE`).
    let words = line.get(..line.len().min(254))?.split(|byte| byte.is_ascii_whitespace());
    Some(words.filter(|word| !word.is_empty()).map(|word| OsStr::from_bytes(word).to_owned()).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn existing_runtime_options_are_kept() {
        let ask = |name: &str, text: Option<&str>| {
            let runtime = RUNTIMES.iter().find(|runtime| runtime.name == name).unwrap();
            runtime.asking(|_| text.map(OsString::from)).map(|(_, value)| value.into_string().unwrap())
        };
        let all = "--perf-basic-prof --interpreted-frames-native-stack";
        assert_eq!(ask("Node.js", Some("")).as_deref(), Some(all));
        assert_eq!(
            ask("Node.js", Some("--perf-basic-prof --no-warnings")).as_deref(),
            Some("--perf-basic-prof --no-warnings --interpreted-frames-native-stack")
        );
        assert_eq!(ask("Node.js", Some(all)), None);
        assert_eq!(ask("Python", Some("0")), None);
        assert_eq!(ask("Python", None).as_deref(), Some("1"));
        assert_eq!(ask("BEAM", Some("+JPperf false")), None);
        assert_eq!(ask("BEAM", Some("+S 2")).as_deref(), Some("+S 2 +JPperf true"));
        assert_eq!(ask("LuaJIT", None), None);
    }

    #[test]
    fn functions_of_needed_libraries_are_found() {
        let file = std::env::current_exe().unwrap();
        let program = StartingProgram { file: &file, image: &[], has: &|_| false, words: &[] };
        assert!(program.has_or_links("getenv") && !program.has_or_links("PyUnstable_PerfMapState_Init"));
    }

    #[test]
    fn erlang_scripts_resolve_to_the_vm() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        let make = |name: &str| {
            let file = root.join(name);
            std::fs::create_dir_all(file.parent().unwrap()).unwrap();
            std::fs::write(&file, "#!/bin/sh\n").unwrap();
            file
        };
        let release = make("erlang/releases/start_erl.data");
        std::fs::write(release, "13.1 25").unwrap();
        let machine = make("erlang/erts-13.1/bin/beam.smp");
        make("erlang/erts-9.3/bin/beam.smp");
        make("elixir/lib/elixir/ebin/elixir.app");
        let (erl, elixir) = (make("erlang/bin/erl"), make("elixir/bin/elixir"));
        let path = erl.parent().unwrap().as_os_str();
        for script in [&erl, &elixir] {
            assert_eq!(program(script.as_os_str(), path).as_ref(), Some(&machine), "{}", script.display());
        }
    }

    #[test]
    fn wrappers_and_shims_resolve_to_their_program() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        let write = |name: &str, text: &str| {
            let file = root.join(name);
            std::fs::create_dir_all(file.parent().unwrap()).unwrap();
            std::fs::write(&file, text).unwrap();
            std::fs::set_permissions(&file, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
            file
        };
        let at = root.display();
        let machine = write("versions/3/bin/python3", "\x7fELF");
        write("sh", "\x7fELF");
        // This version manager answers only if the shim has exported its root directory.
        write("libexec/manager", "#!/bin/sh\necho $ROOT/versions/3/bin/$2; test $1 = which\n");
        let manager = format!("exec \"{at}/libexec/manager\" exec \"$program\" \"$@\"\n");
        let shim = write("shims/python3", &format!("#!/usr/bin/env bash\nexport ROOT=\"{at}\"\n{manager}"));
        let wrapper = write("wrapper", &format!("#!/bin/sh\nexec -a \"$0\" {} -X dev\n", machine.display()));
        let script = write("script", &format!("#!/usr/bin/env python3\nexec {at}/nothing\n"));
        let path = root.join("shims");
        for program in [&shim, &wrapper, &script] {
            let found = super::program(program.as_os_str(), path.as_os_str());
            assert_eq!(found.as_ref(), Some(&machine), "{}", program.display());
        }
        // If the exec target is unknown, the result is the script's interpreter.
        let sh = Path::new("/bin/sh").canonicalize().unwrap();
        for text in ["exec \"$BINDIR/erlexec\"", "exec 3>&1", "echo exec /bin/true", "true"] {
            let script = write("other", &format!("#!/bin/sh\n{text}\n"));
            assert_eq!(super::program(script.as_os_str(), path.as_os_str()), Some(sh.clone()), "{text}");
        }
    }

    #[test]
    fn script_resolves_to_its_interpreter() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().as_os_str();
        let write = |name: &str, text: &str| std::fs::write(folder.path().join(name), text).unwrap();
        write("machine", "\x7fELF");
        write("by-path", &format!("#! {}/machine -x\nmore", folder.path().display()));
        write("by-name", &format!("#!{}/env -S A=b by-path\n", folder.path().display()));
        write("env", "\x7fELF");
        write("round", &format!("#!{}/round\n", folder.path().display()));
        let machine = folder.path().join("machine").canonicalize().unwrap();
        for name in ["machine", "by-path", "by-name"] {
            assert_eq!(program(OsStr::new(name), path), Some(machine.clone()), "{name}");
        }
        assert_eq!(program(OsStr::new("round"), path), None);
        assert_eq!(program(OsStr::new("nothing"), path), None);
        assert!(known(&machine, &[]).is_none());
    }
}
