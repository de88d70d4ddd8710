//! Language runtimes that write down the names of the code they generate when their environment asks them to.
//!
//! Receives a command line; hands on the runtime that it starts, if it is one of [`RUNTIMES`]. What a program
//! is, is read from its file: a script leads to its interpreter, and a runtime is known by functions that it
//! exports or imports, or by the folder it brings along. Names of commands say nothing.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use crate::event;
use crate::host::Host;
use crate::symbol::{Image, elf};

/// A runtime, and how it is asked.
pub(crate) struct Runtime {
    /// As its users call it.
    pub(crate) name: &'static str,
    /// Whether a program is of it.
    is_of: fn(&Program<'_>) -> bool,
    /// Why it has no names to write, if it has none.
    lacks: fn(&Program<'_>) -> Option<&'static str>,
    /// What asks it; nothing where it writes them unasked.
    variable: Option<Variable>,
}

/// A variable of the environment.
struct Variable {
    name: &'static str,
    /// What it shall hold; where it is a list, an option each, put behind those that are there.
    values: &'static [&'static str],
    is_list: bool,
}

/// Python: docs.python.org, "Python support for the Linux perf profiler" (3.12). Node.js:
/// `node --v8-options`. The JVM: `-XX:+DumpPerfMapAtExit` is a diagnostic option of JDK 17. .NET: "runtime
/// configuration options". BEAM: "BeamAsm, the Erlang JIT" (OTP 24). LuaJIT: its `lj_trace.c`. Ruby: its
/// "YJIT" page; the option is refused by those that have it not, and costs.
const RUNTIMES: &[Runtime] = &[
    Runtime {
        name: "Python",
        is_of: |program| (program.has)("Py_BytesMain"),
        lacks: |program| {
            let lacks = !program.has_or_links("PyUnstable_PerfMapState_Init");
            lacks.then_some("Python names its functions from 3.12 on")
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
            (!program.holds("JPperf")).then_some("BEAM names its functions from OTP 24 on, with its JIT")
        },
        variable: Some(Variable { name: "ERL_AFLAGS", values: &["+JPperf true"], is_list: true }),
    },
    Runtime {
        name: "LuaJIT",
        is_of: |program| (program.has)("luaJIT_setmode"),
        lacks: |program| {
            let lacks = !program.holds("/tmp/perf-%d.map");
            lacks.then_some("LuaJIT writes them only where it was built with LUAJIT_USE_PERFTOOLS")
        },
        variable: None,
    },
    Runtime {
        name: "Ruby",
        is_of: |program| (program.has)("ruby_sysinit"),
        lacks: |program| {
            let lacks = program.is_told("--yjit") && !program.is_told("--yjit-perf");
            lacks.then_some("YJIT writes them from Ruby 3.3 on, where it is told to: ruby --yjit-perf")
        },
        variable: None,
    },
];

impl Runtime {
    /// The variable to be set and its value, `present` being what a variable holds already. `None` where
    /// nothing need be said.
    pub(crate) fn asking(
        &self,
        present: impl FnOnce(&str) -> Option<OsString>,
    ) -> Option<(OsString, OsString)> {
        let Variable { name, values, is_list } = self.variable.as_ref()?;
        let present = present(name).filter(|text| !text.is_empty());
        let value = match present {
            Some(text) if *is_list => {
                let text = text.to_string_lossy();
                // An option that is there, whatever it is set to, is its user's.
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
struct Program<'a> {
    file: &'a Path,
    image: &'a [u8],
    /// Whether a function stands in its dynamic symbol table.
    has: &'a dyn Fn(&str) -> bool,
    /// The words of the command line behind it.
    words: &'a [OsString],
}

impl Program<'_> {
    /// Whether a function stands in its dynamic symbol table, or in that of a library that it needs: Python
    /// is often all in one (`libpython3.12.so`).
    fn has_or_links(&self, function: &str) -> bool {
        let exports = |file: PathBuf| {
            let image = Image::open(&file).ok()?;
            Some(elf::has_dynamic_symbol(&image.elf().ok()?, function))
        };
        let path = std::env::var("LD_LIBRARY_PATH").unwrap_or_default();
        let libraries = || event::with_libraries(&Host::live(), self.file, &path);
        (self.has)(function) || libraries().into_iter().skip(1).any(|file| exports(file) == Some(true))
    }

    /// Whether its file holds a text.
    fn holds(&self, text: &str) -> bool {
        self.image.windows(text.len()).any(|bytes| bytes == text.as_bytes())
    }

    /// Whether an option is typed, with a value or without.
    fn is_told(&self, option: &str) -> bool {
        let rests = self.words.iter().filter_map(|word| word.as_bytes().strip_prefix(option.as_bytes()));
        rests.into_iter().any(|rest| rest.is_empty() || rest.starts_with(b"="))
    }
}

/// A program's runtime.
pub(crate) enum Found {
    /// It has names to write.
    Writes(&'static Runtime),
    /// It has none: why.
    Lacks(&'static str),
}

/// The runtime that a command line starts; `None` for an ordinary program, and where there is none.
pub(crate) fn of(command: &[OsString]) -> Option<Found> {
    known(&executed(command)?, command.get(1..)?)
}

/// The file that a command line executes in the end: of a script its interpreter.
pub(crate) fn executed(command: &[OsString]) -> Option<PathBuf> {
    program(command.first()?, &std::env::var_os("PATH").unwrap_or_default())
}

fn known(file: &Path, words: &[OsString]) -> Option<Found> {
    let image = Image::open(file).ok()?;
    let elf = image.elf().ok()?;
    let has = |function: &str| elf::has_dynamic_symbol(&elf, function);
    let program = Program { file, image: &image, has: &has, words };
    let runtime = RUNTIMES.iter().find(|runtime| (runtime.is_of)(&program))?;
    Some(match (runtime.lacks)(&program) {
        Some(why) => Found::Lacks(why),
        None => Found::Writes(runtime),
    })
}

/// Interpreters of interpreters that are followed.
const MOST_SCRIPTS: usize = 4;

/// The file that is executed in the end for a command's first word.
fn program(word: &OsStr, path: &OsStr) -> Option<PathBuf> {
    let mut program = find(word, path)?;
    for _ in 0..MOST_SCRIPTS {
        if let Some(machine) = erlangs_machine(&program) {
            return Some(machine);
        }
        let Some(words) = interpreter(&program) else { return Some(program) };
        if is_elixirs(&program) {
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

/// The file of Erlang's machine.
const BEAM: &str = "beam.smp";

/// What `erl` and the other programs in `…/erlang/bin` execute in the end:
/// `…/erlang/erts-VERSION/bin/beam.smp`. The version is the first word of a file of the installation's.
fn erlangs_machine(program: &Path) -> Option<PathBuf> {
    let root = program.parent()?.parent()?;
    let release = Image::open(&root.join("releases/start_erl.data")).ok()?;
    let version = str::from_utf8(&release).ok()?.split_whitespace().next()?;
    let machine = root.join(format!("erts-{version}")).join("bin").join(BEAM);
    machine.is_file().then_some(machine)
}

/// Whether a script is one of Elixir's, which execute the `erl` that is found.
fn is_elixirs(script: &Path) -> bool {
    let root = script.parent().and_then(Path::parent);
    root.is_some_and(|root| root.join("lib/elixir/ebin/elixir.app").is_file())
}

/// As `execvp(3)` looks for it, links followed.
fn find(word: &OsStr, path: &OsStr) -> Option<PathBuf> {
    let named = word.as_bytes().contains(&b'/').then(|| PathBuf::from(word));
    let searched = || std::env::split_paths(path).map(|folder| folder.join(word)).find(|file| file.is_file());
    named.or_else(searched)?.canonicalize().ok()
}

/// The words behind `#!` of a script.
fn interpreter(file: &Path) -> Option<Vec<OsString>> {
    let image = Image::open(file).ok()?;
    let line = image.strip_prefix(b"#!")?.split(|byte| *byte == b'\n').next()?;
    // The kernel reads no more of it (`BINPRM_BUF_SIZE`).
    let words = line.get(..line.len().min(254))?.split(|byte| byte.is_ascii_whitespace());
    Some(words.filter(|word| !word.is_empty()).map(|word| OsStr::from_bytes(word).to_owned()).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_asked_for_already_stays() {
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
    fn functions_of_needed_libraries_count() {
        let file = std::env::current_exe().unwrap();
        let program = Program { file: &file, image: &[], has: &|_| false, words: &[] };
        assert!(program.has_or_links("getenv") && !program.has_or_links("PyUnstable_PerfMapState_Init"));
    }

    #[test]
    fn erlangs_scripts_lead_to_its_machine() {
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
    fn a_script_leads_to_its_interpreter() {
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
