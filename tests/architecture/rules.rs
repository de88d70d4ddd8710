//! The architecture rules. Each rule is a function from the sources and the tables to the lines that break
//! it.
//!
//! Receives a [`Tree`] and the [`Tables`] of allowed imports. Returns [`Offence`]s, which print as
//! `file:line: what is wrong`. Test code must respect the floors, but is exempt from the rules about cycles,
//! imports of parents, printing and page sizes.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fmt;
use std::path::{Path, PathBuf};

use crate::sources::{BINARY, Construct, Tree, entry};

/// Allowed imports. The tables must match the imports in use exactly: an unused edge is an offence, too.
pub(crate) struct Tables {
    /// A floor, and the floors that it imports.
    pub(crate) floors: &'static [(&'static str, &'static [&'static str])],
    /// An external crate, or a part of the standard library with effects outside the process, and the floors
    /// that use it.
    pub(crate) outside: &'static [(&'static str, &'static [&'static str])],
    /// A floor, and the external crate that it re-exports under its own name.
    pub(crate) handed_out: &'static [(&'static str, &'static str)],
    /// Files below `command` that several commands share.
    pub(crate) shared_by_commands: &'static [&'static str],
    /// Files below `command` that name `cli` but are not plans. Remaining work.
    pub(crate) without_plan: &'static [&'static str],
}

/// A line that breaks a rule.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Offence {
    file: PathBuf,
    line: usize,
    what: String,
}

impl fmt::Display for Offence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}", self.file.display(), self.line, self.what)
    }
}

/// A rule: returns its offences, given the tree, the tables and the edges in use.
type Rule = fn(&Tree, &Tables, &[Edge]) -> Vec<Offence>;

/// All rules.
const RULES: &[Rule] = &[
    floors,
    outside,
    cycles,
    detours,
    commands,
    constructs,
    opens_with_doc,
    has_specific_name,
    is_short_enough,
    comments_fit,
];

/// Returns every line that breaks a rule, sorted. For an offence that a file repeats, returns only the first
/// line.
pub(crate) fn offences(tree: &Tree, tables: &Tables) -> Vec<Offence> {
    let edges = edges(tree, tables);
    let mut found: Vec<Offence> = RULES.iter().flat_map(|rule| rule(tree, tables, &edges)).collect();
    found.sort();
    let mut seen = BTreeSet::new();
    found.retain(|offence| seen.insert((offence.file.clone(), offence.what.clone())));
    found
}

/// One import or use from a file.
pub(crate) struct Edge {
    from: usize,
    line: usize,
    in_test: bool,
    to: Target,
}

enum Target {
    /// A file of this workspace.
    File(usize),
    /// A path that begins with a crate's name.
    Outside(String),
    /// A path that leads through an import of this module, which is above the file.
    ImportAbove(usize, String),
}

fn edges(tree: &Tree, tables: &Tables) -> Vec<Edge> {
    let mut edges = Vec::new();
    let mut known = BTreeMap::new();
    for reference in &tree.references {
        let resolve = || tree.resolve(reference.module, &reference.path);
        let found = known.entry((reference.module, &reference.path)).or_insert_with(resolve);
        let Some(found) = found else { continue };
        let from = tree.modules[reference.module].file;
        let edge = |to| Edge { from, line: reference.line, in_test: reference.in_test, to };
        let files: Vec<usize> = found.through.iter().map(|&module| tree.modules[module].file).collect();
        edges.extend(files.iter().filter(|&&to| to != from).map(|&to| edge(Target::File(to))));
        let module = &tree.modules[reference.module];
        // A name that the file itself imports counts where it is imported.
        if !module.aliases.contains_key(&reference.path[0]) {
            let is_above = |importer: &&usize| {
                let importer = &tree.modules[**importer];
                importer.file != from && module.path.starts_with(&importer.path)
            };
            let path = || reference.path.join("::");
            let above = found.importers.iter().filter(is_above);
            edges.extend(above.map(|&importer| edge(Target::ImportAbove(importer, path()))));
        }
        let Some(path) = &found.outside else { continue };
        let hands_out =
            |file: &usize| tables.handed_out.contains(&(tree.files[*file].floor(), path[0].as_str()));
        if !files.iter().any(|file| *file != from && hands_out(file)) {
            edges.push(edge(Target::Outside(path.join("::"))));
        }
    }
    edges
}

fn offence(tree: &Tree, file: usize, line: usize, what: impl Into<String>) -> Offence {
    Offence { file: tree.files[file].folder.join(&tree.files[file].path), line, what: what.into() }
}

/// Returns an offence of the tables themselves.
fn in_tables(what: String) -> Offence {
    Offence { file: "tests/architecture/main.rs".into(), line: 1, what }
}

/// Returns the floors that a floor can reach, directly or indirectly.
fn reach<'t>(tables: &'t Tables, floor: &'t str) -> BTreeSet<&'t str> {
    let mut reached = BTreeSet::from([floor]);
    let mut open = vec![floor];
    while let Some(floor) = open.pop() {
        let below = tables.floors.iter().find(|(name, _)| *name == floor).map_or(&[][..], |(_, below)| below);
        open.extend(below.iter().filter(|name| reached.insert(**name)));
    }
    reached
}

/// Every import between floors is in the table, and every table entry is in use.
fn floors(tree: &Tree, tables: &Tables, edges: &[Edge]) -> Vec<Offence> {
    let mut offences = Vec::new();
    let mut used = BTreeSet::new();
    for (number, file) in tree.files.iter().enumerate() {
        if file.floor() != "lib" && !tables.floors.iter().any(|(name, _)| *name == file.floor()) {
            let what = format!("`{}` has no place in the house: draw it in FLOORS", file.floor());
            offences.push(offence(tree, number, 1, what));
        }
    }
    for edge in edges {
        let Target::File(to) = edge.to else { continue };
        let (from, to) = (tree.files[edge.from].floor(), tree.files[to].floor());
        if from == to || from == "lib" || to == "lib" {
            continue;
        }
        let below = tables.floors.iter().find(|(name, _)| *name == from).map_or(&[][..], |(_, below)| below);
        if edge.in_test {
            if !reach(tables, from).contains(to) {
                let what = format!("the tests of `{from}` must not name `{to}`, which `{from}` cannot reach");
                offences.push(offence(tree, edge.from, edge.line, what));
            }
        } else if below.contains(&to) {
            used.insert((from, to));
        } else {
            offences.push(offence(tree, edge.from, edge.line, format!("`{from}` must not name `{to}`")));
        }
    }
    for (from, below) in tables.floors {
        for to in below.iter().filter(|to| !used.contains(&(from, **to))) {
            offences.push(in_tables(format!("`{from}` may name `{to}` and does not: strike it from FLOORS")));
        }
    }
    offences
}

/// Returns the table row of an external path: the longest row that is a prefix of the path.
fn row_of<'t>(tables: &'t Tables, path: &str) -> Option<&'t (&'static str, &'static [&'static str])> {
    let begins =
        |name: &str| path.strip_prefix(name).is_some_and(|rest| rest.is_empty() || rest.starts_with("::"));
    tables.outside.iter().filter(|(name, _)| begins(name)).max_by_key(|(name, _)| name.len())
}

/// Every use of an external crate or of an effectful part of the standard library is in the table.
fn outside(tree: &Tree, tables: &Tables, edges: &[Edge]) -> Vec<Offence> {
    let mut offences = Vec::new();
    let mut used = BTreeSet::new();
    for edge in edges.iter().filter(|edge| !edge.in_test) {
        let Target::Outside(path) = &edge.to else { continue };
        let floor = tree.files[edge.from].floor();
        let name = path.split("::").next().unwrap_or_default();
        match row_of(tables, path) {
            Some((row, floors)) if floors.contains(&floor) => drop(used.insert((*row, floor))),
            Some((row, _)) => {
                offences.push(offence(
                    tree,
                    edge.from,
                    edge.line,
                    format!("`{floor}` must not name `{row}`"),
                ));
            }
            None if name == "std" => {}
            None => {
                let what = format!("`{name}` has no row: say in OUTSIDE which floors may name it");
                offences.push(offence(tree, edge.from, edge.line, what));
            }
        }
    }
    for (row, floors) in tables.outside {
        for floor in floors.iter().filter(|floor| !used.contains(&(*row, **floor))) {
            offences
                .push(in_tables(format!("`{floor}` may name `{row}` and does not: strike it from OUTSIDE")));
        }
    }
    // `Path` has methods that touch files without naming `std::fs`.
    const TOUCHES_FILES: [&str; 9] = [
        "canonicalize",
        "exists",
        "is_dir",
        "is_file",
        "is_symlink",
        "read_dir",
        "read_link",
        "symlink_metadata",
        "try_exists",
    ];
    let with_files =
        tables.outside.iter().find(|(row, _)| *row == "std::fs").map_or(&[][..], |(_, floors)| floors);
    for finding in tree.findings.iter().filter(|finding| !finding.in_test) {
        let Construct::Method(name) = &finding.what else { continue };
        let floor = tree.files[finding.file].floor();
        if TOUCHES_FILES.contains(&name.as_str()) && !with_files.contains(&floor) {
            let what = format!("`.{name}()` asks the file system, which `{floor}` must not");
            offences.push(offence(tree, finding.file, finding.line, what));
        }
    }
    offences
}

/// Returns the deepest folder that contains both files, and the entry of that folder that each file is in.
/// Returns `None` if one is the other's ancestor: a module and its own children may name each other's items.
fn common_folder(tree: &Tree, from: usize, to: usize) -> Option<(PathBuf, &str, &str)> {
    let (from, to) = (&tree.files[from].path, &tree.files[to].path);
    let mut folder = PathBuf::new();
    for index in 0.. {
        let (a, b) = (entry(from, index), entry(to, index));
        if a.is_empty() || b.is_empty() {
            return None;
        }
        if a != b {
            return Some((folder, a, b));
        }
        folder.push(a);
    }
    None
}

/// No import cycle between the entries (files and folders) of any folder.
fn cycles(tree: &Tree, _: &Tables, edges: &[Edge]) -> Vec<Offence> {
    type Graph<'t> = BTreeMap<&'t str, BTreeMap<&'t str, (usize, usize)>>;
    let mut graphs: BTreeMap<PathBuf, Graph<'_>> = BTreeMap::new();
    for edge in edges.iter().filter(|edge| !edge.in_test) {
        let Target::File(to) = edge.to else { continue };
        let Some((folder, from, to)) = common_folder(tree, edge.from, to) else { continue };
        if folder.as_os_str().is_empty() && (from == "lib" || to == "lib") {
            continue;
        }
        let seen = graphs.entry(folder).or_default().entry(from).or_default();
        seen.entry(to).or_insert((edge.from, edge.line));
    }
    let mut offences = Vec::new();
    for (folder, graph) in &graphs {
        for (from, next) in graph {
            for (to, (file, line)) in next {
                let Some(way) = shortest_path(graph, to, from) else { continue };
                let what =
                    format!("a circle of imports in {}: {from} -> {}", folder.display(), way.join(" -> "));
                offences.push(offence(tree, *file, *line, what));
            }
        }
    }
    offences
}

/// No module names an item through an import or a re-export of a module above it: re-exports are for code
/// outside the folder. Inside, they hide which sibling a file needs.
fn detours(tree: &Tree, _: &Tables, edges: &[Edge]) -> Vec<Offence> {
    let mut offences = Vec::new();
    for edge in edges.iter().filter(|edge| !edge.in_test) {
        let Target::ImportAbove(importer, path) = &edge.to else { continue };
        let importer = tree.modules[*importer].path.join("::");
        let what = format!(
            "`{path}` is not defined in `{importer}`, which only imports it: name the module that defines it"
        );
        offences.push(offence(tree, edge.from, edge.line, what));
    }
    offences
}

/// Returns the shortest path in a graph.
fn shortest_path<'t, T>(
    graph: &BTreeMap<&'t str, BTreeMap<&'t str, T>>,
    from: &'t str,
    to: &'t str,
) -> Option<Vec<&'t str>> {
    let mut open = VecDeque::from([vec![from]]);
    let mut seen = BTreeSet::from([from]);
    while let Some(way) = open.pop_front() {
        let last = way[way.len() - 1];
        if last == to {
            return Some(way);
        }
        for next in graph.get(last).into_iter().flat_map(BTreeMap::keys).filter(|next| seen.insert(next)) {
            open.push_back(way.iter().copied().chain([*next]).collect());
        }
    }
    None
}

/// A command names no other command. Only `command/mod.rs` and the plans may name the typed options.
fn commands(tree: &Tree, tables: &Tables, edges: &[Edge]) -> Vec<Offence> {
    let mut offences = Vec::new();
    let mut used = BTreeSet::new();
    for edge in edges.iter().filter(|edge| tree.files[edge.from].floor() == "command") {
        let Target::File(to) = edge.to else { continue };
        let path = &tree.files[edge.from].path;
        match tree.files[to].floor() {
            "cli" => {
                let is_plan = path.file_name().is_some_and(|name| name == "plan.rs");
                let debt = tables.without_plan.iter().find(|name| path == Path::new(name));
                if let Some(debt) = debt {
                    used.insert(*debt);
                } else if !is_plan && *path != Path::new("command/mod.rs") {
                    let what = "only `command/mod.rs` and plans (`plan.rs`) may name `cli`";
                    offences.push(offence(tree, edge.from, edge.line, what));
                }
            }
            "command" => {
                let (own, other) = (entry(path, 1), entry(&tree.files[to].path, 1));
                if own.is_empty() || other.is_empty() || own == other {
                    continue;
                }
                if tables.shared_by_commands.contains(&other) {
                    used.insert(other);
                } else {
                    let what = format!("the command `{own}` must not name the command `{other}`");
                    offences.push(offence(tree, edge.from, edge.line, what));
                }
            }
            _ => {}
        }
    }
    for name in tables.shared_by_commands.iter().filter(|name| !used.contains(**name)) {
        offences.push(in_tables(format!(
            "no command names `command::{name}`: strike it from SHARED_BY_COMMANDS"
        )));
    }
    for name in tables.without_plan.iter().filter(|name| !used.contains(**name)) {
        offences.push(in_tables(format!("src/{name} does not name `cli`: strike it from WITHOUT_PLAN")));
    }
    offences
}

/// Constructs that hide names, and constructs that are allowed in one place only.
fn constructs(tree: &Tree, _: &Tables, _: &[Edge]) -> Vec<Offence> {
    let mut offences = Vec::new();
    for finding in &tree.findings {
        let floor = tree.files[finding.file].floor();
        let is_lib = floor == "lib";
        let what = match &finding.what {
            // The crates' unit tests share the kit.
            Construct::PathAttribute if is_lib && finding.in_test => continue,
            Construct::PathAttribute => "`#[path]` hides where a module is".to_owned(),
            Construct::Include => "`include!` hides what a file names".to_owned(),
            Construct::ExternCrate => "`extern crate` hides what a file names".to_owned(),
            Construct::Unreadable(why) => format!("is no Rust that syn reads: {why}"),
            Construct::Unsafe if floor != "sys" => "`unsafe` belongs into `sys`".to_owned(),
            Construct::Print(name) if !finding.in_test => match name.as_str() {
                "println" | "print" => {
                    format!("`{name}!` panics when the reader leaves: use a `Write` and `Error::output`")
                }
                _ => format!("`{name}!` goes round the one mouth: use `error::say`"),
            },
            Construct::Number(4096) if !finding.in_test => {
                "4096 is no page size: ask `sys::page_size`, or say it otherwise".to_owned()
            }
            _ => continue,
        };
        offences.push(offence(tree, finding.file, finding.line, what));
    }
    offences
}

/// Every module begins with a comment that says what it decides, receives, returns, and leaves to other
/// modules.
fn opens_with_doc(tree: &Tree, _: &Tables, _: &[Edge]) -> Vec<Offence> {
    let silent = |number: &usize| !tree.files[*number].text.starts_with("//! ");
    let what = "does not open with a `//!` comment that says what the module is for";
    (0..tree.files.len()).filter(silent).map(|number| offence(tree, number, 1, what)).collect()
}

/// No module has a vague name.
fn has_specific_name(tree: &Tree, _: &Tables, _: &[Edge]) -> Vec<Offence> {
    const VAGUE: [&str; 6] = ["utils", "util", "common", "helpers", "helper", "misc"];
    let vague = tree.modules.iter().filter_map(|module| {
        let name = module.path.iter().find(|name| VAGUE.contains(&name.as_str()))?;
        // This name is the kernel's: its record headers have a field `misc`.
        (module.path != ["abi", "record_header", "misc"])
            .then(|| offence(tree, module.file, 1, format!("`{name}` names no idea")))
    });
    vague.collect()
}

/// Maximum number of lines of a file. A longer one probably holds two ideas.
const LONGEST: usize = 700;

fn is_short_enough(tree: &Tree, _: &Tables, _: &[Edge]) -> Vec<Offence> {
    let lines = |number: usize| tree.files[number].text.lines().count();
    (0..tree.files.len())
        .filter(|&number| lines(number) > LONGEST)
        .map(|number| {
            let what = format!("{} lines hold two ideas: find the second one's name", lines(number));
            offence(tree, number, LONGEST + 1, what)
        })
        .collect()
}

/// Maximum width of a comment line: the width that rustfmt gives to code.
const COLUMNS: usize = 110;

fn comments_fit(tree: &Tree, _: &Tables, _: &[Edge]) -> Vec<Offence> {
    let mut offences = Vec::new();
    for (number, file) in tree.files.iter().enumerate() {
        for (at, line) in file.text.lines().enumerate() {
            let columns = line.chars().count();
            if line.trim_start().starts_with("//") && columns > COLUMNS {
                let what = format!("a comment of {columns} columns: wrap it at {COLUMNS}");
                offences.push(offence(tree, number, at + 1, what));
            }
        }
    }
    offences
}

/// Returns the tables that match the current sources, as Rust code to paste when they are out of date.
pub(crate) fn tables_in_use(tree: &Tree, tables: &Tables) -> String {
    let mut floors: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    let mut crates: BTreeMap<String, BTreeSet<&str>> = BTreeMap::new();
    for edge in edges(tree, tables).iter().filter(|edge| !edge.in_test) {
        let from = tree.files[edge.from].floor();
        match &edge.to {
            Target::File(to) => {
                let to = tree.files[*to].floor();
                if from != to && ![from, to].contains(&"lib") {
                    floors.entry(from).or_default().insert(to);
                }
            }
            Target::ImportAbove(..) => {}
            Target::Outside(path) => {
                let row = row_of(tables, path).map(|(row, _)| (*row).to_owned());
                let name = path.split("::").next().unwrap_or_default();
                if let Some(row) = row.or_else(|| (name != "std").then(|| name.to_owned())) {
                    crates.entry(row).or_default().insert(from);
                }
            }
        }
    }
    let row = |(name, list): (&str, &BTreeSet<&str>)| format!("    ({name:?}, &{list:?}),\n");
    let floors: String = floors.iter().map(|(name, list)| row((name, list))).collect();
    let crates: String = crates.iter().map(|(name, list)| row((name, list))).collect();
    format!("FLOORS\n{floors}OUTSIDE\n{crates}").replace(&format!("{BINARY:?}"), "\"main\"")
}
