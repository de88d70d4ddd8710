//! Modules: each says at its top what it is for, and those of one folder do not import each other in a cycle.
//!
//! Cargo forbids cycles between crates; this checks the modules in each crate. A path in the code counts as an
//! import if it begins with `crate`, `self` or `super`. Names of re-exports are followed to the module that
//! defines them. Code for tests may import anything. A module and its own children may name each other.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::path::Path;

use proc_macro2::{Delimiter, TokenStream, TokenTree};

use super::sources::{SourceFile, root, sources};

/// Maximum width of a comment line: the width that rustfmt gives to code.
const COLUMNS: usize = 110;

/// Words of a path: `["crate", "record", "Layout"]`, or of a module: `["record"]`.
type Words = Vec<String>;

/// A word or sign of the code, and its line. `::` is one sign.
type Token = (String, usize);

/// The modules of a crate and the paths that their code names.
#[derive(Default)]
struct Modules {
    paths: BTreeMap<Words, Vec<(Words, usize)>>,
    /// What each module imports or re-exports: its name there, and its path.
    imports: BTreeMap<(Words, String), Words>,
}

/// Appends the tokens of a file without the items that are only for tests. Returns the names of the modules
/// for tests that have their own files.
fn flatten(stream: TokenStream, flat: &mut Vec<Token>) -> Vec<String> {
    let mut for_tests = Vec::new();
    let mut tokens = stream.into_iter().peekable();
    while let Some(token) = tokens.next() {
        let line = token.span().start().line;
        match token {
            TokenTree::Punct(sign) if sign.as_char() == '#' && is_for_tests(tokens.peek()) => {
                let mut before = String::new();
                for token in tokens.by_ref() {
                    match &token {
                        TokenTree::Group(group) if group.delimiter() == Delimiter::Brace => break,
                        TokenTree::Punct(sign) if sign.as_char() == ';' => {
                            for_tests.push(before);
                            break;
                        }
                        _ => before = token.to_string(),
                    }
                }
            }
            TokenTree::Group(group) => {
                flat.push(("{".into(), line));
                for_tests.extend(flatten(group.stream(), flat));
                flat.push(("}".into(), line));
            }
            TokenTree::Punct(sign) => match flat.last_mut() {
                Some((last, _)) if sign.as_char() == ':' && last == ":" => last.push(':'),
                _ => flat.push((sign.to_string(), line)),
            },
            other => flat.push((other.to_string(), line)),
        }
    }
    for_tests
}

/// Returns the string literals of a file outside comments and tests, with their lines.
pub(crate) fn texts(text: &str) -> Vec<Token> {
    let mut flat = Vec::new();
    flatten(text.parse().expect("Rust"), &mut flat);
    let is_comment = |at: usize| at > 1 && flat[at - 1].0 == "=" && flat[at - 2].0 == "doc";
    let is_text = |at: &usize| flat[*at].0.starts_with(['"', 'r', 'b']) && flat[*at].0.ends_with(['"', '#']);
    let texts = (0..flat.len()).filter(is_text).filter(|at| !is_comment(*at));
    texts.map(|at| flat[at].clone()).collect()
}

/// Whether this is the rest of `#[test]`, `#[cfg(test)]` or `#[cfg(all(test, ...))]`.
fn is_for_tests(attribute: Option<&TokenTree>) -> bool {
    let text = attribute.map(ToString::to_string).unwrap_or_default().replace(' ', "");
    ["[test]", "[cfg(test", "[cfg(all(test"].iter().any(|start| text.starts_with(start))
}

/// Appends the paths that begin at a token, with the names that they have there: `a::{b, c as d}` is `a::b`
/// with the name `b`, and `a::c` with the name `d`. Returns the index of the token after them.
fn read_paths(flat: &[Token], mut at: usize, mut path: Words, found: &mut Vec<(String, Words)>) -> usize {
    let word = |at: usize| flat.get(at).map_or("", |(word, _)| word.as_str());
    loop {
        if word(at) == "{" {
            at += 1;
            while at < flat.len() && word(at) != "}" {
                at = if word(at) == "," { at + 1 } else { read_paths(flat, at, path.clone(), found) };
            }
            return at + 1;
        }
        path.push(word(at).to_owned());
        at += 1;
        if word(at) != "::" {
            break;
        }
        at += 1;
    }
    if path.len() > 1 && path.last().is_some_and(|last| last == "self") {
        path.pop();
    }
    let mut name = path.last().cloned().unwrap_or_default();
    if word(at) == "as" {
        name = word(at + 1).to_owned();
        at += 2;
    }
    found.push((name, path));
    at
}

/// Returns the module of a file.
fn module_of(path: &Path) -> Words {
    let mut words: Words = path.with_extension("").iter().map(|word| word.to_string_lossy().into()).collect();
    if words.last().is_some_and(|last| last == "mod") || words == ["lib"] {
        words.pop();
    }
    words
}

impl Modules {
    /// Reads the sources of one crate.
    fn new<'a>(files: impl IntoIterator<Item = (&'a Path, &'a str)>) -> Self {
        let mut modules = Self::default();
        let mut for_tests: Vec<Words> = Vec::new();
        for (path, text) in files {
            let module = module_of(path);
            let mut flat = Vec::new();
            for name in flatten(text.parse().expect("Rust"), &mut flat) {
                for_tests.push(module.iter().cloned().chain([name]).collect());
            }
            let paths = modules.read(&module, &flat);
            modules.paths.insert(module, paths);
        }
        modules.paths.retain(|module, _| !for_tests.iter().any(|test| module.starts_with(test)));
        modules
    }

    /// Returns the paths in a module's tokens, and notes its imports.
    fn read(&mut self, module: &Words, flat: &[Token]) -> Vec<(Words, usize)> {
        let mut paths = Vec::new();
        let mut at = 0;
        while let Some((word, line)) = flat.get(at) {
            let mut found = Vec::new();
            let is_path = ["crate", "self", "super"].contains(&word.as_str())
                && flat.get(at + 1).is_some_and(|(next, _)| next == "::");
            if word == "use" {
                at = read_paths(flat, at + 1, Vec::new(), &mut found);
                for (name, path) in &found {
                    self.imports.insert((module.clone(), name.clone()), path.clone());
                }
            } else if is_path {
                at = read_paths(flat, at, Vec::new(), &mut found);
            } else {
                at += 1;
            }
            paths.extend(found.into_iter().map(|(_, path)| (path, *line)));
        }
        paths
    }

    /// Returns the module that a path leads to. `depth` bounds imports that name each other.
    fn resolve(&self, module: &Words, path: &[String], depth: usize) -> Words {
        let mut at = module.clone();
        for word in path {
            match word.as_str() {
                "crate" => at.clear(),
                "self" => {}
                "super" => drop(at.pop()),
                name => {
                    at.push(name.to_owned());
                    if self.paths.contains_key(&at) {
                        continue;
                    }
                    at.pop();
                    let import = self.imports.get(&(at.clone(), name.to_owned()));
                    return match import.filter(|_| depth > 0 && at != *module) {
                        Some(import) => self.resolve(&at, import, depth - 1),
                        None => at,
                    };
                }
            }
        }
        at
    }

    /// Returns the imports that are part of a cycle: the module, the line and the cycle.
    fn cycles(&self) -> Vec<(&Words, usize, String)> {
        // For each folder: which entry imports which other entry.
        let mut folders: BTreeMap<&[String], BTreeMap<&str, BTreeSet<String>>> = BTreeMap::new();
        let mut edges = Vec::new();
        for (from, path, line) in self.all() {
            let to = self.resolve(from, path, 8);
            let depth = from.iter().zip(&to).take_while(|(from, to)| from == to).count();
            if let (Some(entry), Some(next)) = (from.get(depth), to.get(depth)) {
                let folder = folders.entry(&from[..depth]).or_default();
                folder.entry(entry).or_default().insert(next.clone());
                edges.push((from, line, depth, next.clone()));
            }
        }
        let mut cycles = Vec::new();
        for (from, line, depth, next) in edges {
            if let Some(way) = way(&folders[&from[..depth]], &next, &from[depth]) {
                cycles.push((from, line, format!("{} -> {}", from[depth], way.join(" -> "))));
            }
        }
        cycles
    }

    fn all(&self) -> impl Iterator<Item = (&Words, &[String], usize)> {
        self.paths.iter().flat_map(|(module, paths)| {
            paths.iter().map(move |(path, line)| (module, path.as_slice(), *line))
        })
    }
}

/// Returns the shortest way from one entry to another.
fn way(folder: &BTreeMap<&str, BTreeSet<String>>, from: &str, to: &str) -> Option<Vec<String>> {
    let mut open = VecDeque::from([vec![from.to_owned()]]);
    let mut seen = BTreeSet::from([from.to_owned()]);
    while let Some(way) = open.pop_front() {
        let last = &way[way.len() - 1];
        if last == to {
            return Some(way);
        }
        for next in folder.get(last.as_str()).into_iter().flatten() {
            if seen.insert(next.clone()) {
                open.push_back(way.iter().cloned().chain([next.clone()]).collect());
            }
        }
    }
    None
}

#[test]
fn modules_do_not_import_each_other_in_a_cycle() {
    let mut crates: BTreeMap<String, Vec<SourceFile>> = BTreeMap::new();
    for source in sources(&root()) {
        crates.entry(source.folder.display().to_string()).or_default().push(source);
    }
    assert!(crates.len() > 5, "{:?}", crates.keys());
    let mut found = Vec::new();
    for (folder, files) in &crates {
        let modules = Modules::new(files.iter().map(|file| (file.path.as_path(), file.text.as_str())));
        let cycles = modules.cycles();
        let line = |(module, line, cycle): &(&Words, usize, String)| {
            format!("{folder}/{}:{line}: a cycle of imports: {cycle}", module.join("/"))
        };
        found.extend(cycles.iter().map(line));
    }
    assert!(found.is_empty(), "{}", found.join("\n"));
}

#[test]
fn modules_say_what_they_are_for_in_lines_that_fit() {
    let mut faults = Vec::new();
    for source in sources(&root()) {
        let name = source.folder.join(&source.path).display().to_string();
        if !source.text.starts_with("//! ") {
            faults
                .push(format!("{name}: does not open with a `//!` comment that says what the module is for"));
        }
        for (number, line) in (1..).zip(source.text.lines()) {
            let columns = line.chars().count();
            if line.trim_start().starts_with("//") && columns > COLUMNS {
                faults.push(format!("{name}:{number}: a comment of {columns} columns: wrap it at {COLUMNS}"));
            }
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

#[test]
fn cycles_are_found() {
    // `file` imports `line`; `line` contains the code under test.
    let cycles = |code: &str| {
        let files = [
            ("lib.rs", "pub mod read; pub use read::file::Other;"),
            ("read/mod.rs", "mod file; mod line; mod deep; #[cfg(test)] mod tests; pub use file::Other;"),
            ("read/file.rs", "use super::line::Line; pub struct Other;"),
            ("read/deep/mod.rs", "use crate::read::file::Other;"),
            ("read/tests.rs", "use super::{file, line};"),
            ("read/line.rs", code),
        ];
        let modules = Modules::new(files.map(|(path, text)| (Path::new(path), text)));
        let lines = modules.cycles().into_iter().filter(|(module, ..)| **module == ["read", "line"]);
        lines.map(|(_, line, cycle)| format!("{line}: {cycle}")).collect::<Vec<_>>()
    };
    for code in [
        "\nuse super::file;",
        "\nuse crate::read::file::Other;",
        "\nuse crate::{read::{self, file::{Other as O}}};",
        "\nuse super::Other;",
        "\nuse crate::Other;",
        "\nfn f() { vec![super::file::f(1)] }",
        "\n#[derive(Debug)] struct S { field: Vec<crate::read::file::Other> }",
        "#[cfg(test)] mod tests { use super::*; }\nuse super::file;",
    ] {
        assert_eq!(cycles(code), ["2: line -> file -> line"], "{code}");
    }
    assert_eq!(cycles("use super::deep::Deep;"), ["1: line -> deep -> file -> line"]);
    for code in [
        "use super::Plain; use crate::read; use std::fs; use super::tests;",
        "#[cfg(test)] mod tests { use super::super::file; }",
        "#[cfg(test)] use super::file;",
        "// use super::file;\nconst TEXT: &str = \"super::file::f\";",
    ] {
        assert_eq!(cycles(code), Vec::<String>::new(), "{code}");
    }
}
