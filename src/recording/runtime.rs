//! Language runtimes that write down the names of the code they generate when their environment asks them to.
//!
//! Receives a command line; hands on the runtime that it starts, if it is one of [`RUNTIMES`]. What a program
//! is, is read from its file: a script leads to its interpreter, and a runtime is known by functions that it
//! exports or imports, or by the folder it brings along. Names of commands say nothing.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use crate::symbol::{Image, elf};

/// A runtime, and how it is asked.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Runtime {
    /// As its users call it.
    pub(crate) name: &'static str,
    sign: Sign,
    /// What it must export besides, to have names at all; what to say where it does not.
    needs: Option<(&'static str, &'static str)>,
    variable: &'static str,
    value: &'static str,
    /// The variable holds options: the value is put behind those that are there.
    is_list: bool,
}

/// What a runtime is known by.
#[derive(Debug, PartialEq, Eq)]
enum Sign {
    /// A function in its program's dynamic symbol table, its own or another library's.
    Function(&'static str),
    /// A folder beside its program.
    Folder(&'static str),
}

/// Python: docs.python.org, "Python support for the Linux perf profiler" (3.12). Node.js:
/// `node --v8-options`. The JVM: `-XX:+DumpPerfMapAtExit` is a diagnostic option of JDK 17. .NET: "runtime
/// configuration options".
const RUNTIMES: &[Runtime] = &[
    Runtime {
        name: "Python",
        sign: Sign::Function("Py_BytesMain"),
        needs: Some(("PyUnstable_PerfMapState_Init", "Python names its functions from 3.12 on")),
        variable: "PYTHONPERFSUPPORT",
        value: "1",
        is_list: false,
    },
    Runtime {
        name: "Node.js",
        sign: Sign::Function("_ZN4node5StartEiPPc"),
        needs: None,
        variable: "NODE_OPTIONS",
        value: "--perf-basic-prof --interpreted-frames-native-stack",
        is_list: true,
    },
    Runtime {
        name: "the JVM",
        sign: Sign::Function("JLI_Launch"),
        needs: None,
        variable: "JAVA_TOOL_OPTIONS",
        value: "-XX:+PreserveFramePointer -XX:+UnlockDiagnosticVMOptions -XX:+DumpPerfMapAtExit",
        is_list: true,
    },
    Runtime {
        name: ".NET",
        sign: Sign::Folder("host/fxr"),
        needs: None,
        variable: "DOTNET_PerfMapEnabled",
        value: "1",
        is_list: false,
    },
];

impl Runtime {
    /// The variable, with what stands in it already. `None` where it asks for all of it by itself.
    pub(crate) fn asking(&self, present: Option<&OsStr>) -> Option<(OsString, OsString)> {
        let present = present.filter(|text| !text.is_empty());
        let value = match present {
            Some(text) if self.is_list => {
                let text = text.to_string_lossy();
                let missing: Vec<&str> =
                    self.value.split(' ').filter(|word| !text.split(' ').any(|have| have == *word)).collect();
                if missing.is_empty() {
                    return None;
                }
                format!("{text} {}", missing.join(" ")).into()
            }
            Some(_) => return None,
            None => self.value.into(),
        };
        Some((self.variable.into(), value))
    }

    /// The variable's name.
    pub(crate) fn variable(&self) -> &'static str {
        self.variable
    }
}

/// A program's runtime.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Found {
    /// It can be asked.
    Asks(&'static Runtime),
    /// It has no names to write: why.
    Cannot(&'static str),
}

/// The runtime that a command line starts; `None` for an ordinary program, and where there is none.
pub(crate) fn of(command: &[OsString]) -> Option<Found> {
    known(&executed(command)?)
}

/// The file that a command line executes in the end: of a script its interpreter.
pub(crate) fn executed(command: &[OsString]) -> Option<PathBuf> {
    program(command.first()?, &std::env::var_os("PATH").unwrap_or_default())
}

fn known(program: &Path) -> Option<Found> {
    let image = Image::open(program).ok()?;
    let file = image.elf().ok()?;
    let has = |name: &str| elf::has_dynamic_symbol(&file, name);
    let is_there = |folder: &str| program.parent().is_some_and(|beside| beside.join(folder).is_dir());
    let runtime = RUNTIMES.iter().find(|runtime| match runtime.sign {
        Sign::Function(name) => has(name),
        Sign::Folder(name) => is_there(name),
    })?;
    Some(match runtime.needs {
        Some((name, why)) if !has(name) => Found::Cannot(why),
        _ => Found::Asks(runtime),
    })
}

/// Interpreters of interpreters that are followed.
const MOST_SCRIPTS: usize = 4;

/// The file that is executed in the end for a command's first word.
fn program(word: &OsStr, path: &OsStr) -> Option<PathBuf> {
    let mut program = find(word, path)?;
    for _ in 0..MOST_SCRIPTS {
        let Some(words) = interpreter(&program) else { return Some(program) };
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
        let node = &RUNTIMES[1];
        let ask = |text: &str| node.asking(Some(OsStr::new(text))).map(|(_, value)| value);
        assert_eq!(ask(""), Some(node.value.into()));
        assert_eq!(
            ask("--perf-basic-prof --no-warnings"),
            Some("--perf-basic-prof --no-warnings --interpreted-frames-native-stack".into())
        );
        assert_eq!(ask(node.value), None);
        let python = &RUNTIMES[0];
        assert_eq!(python.asking(Some(OsStr::new("0"))), None);
        assert_eq!(python.asking(None), Some(("PYTHONPERFSUPPORT".into(), "1".into())));
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
        assert_eq!(known(&machine), None);
    }
}
