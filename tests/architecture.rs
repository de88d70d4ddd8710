//! The rules of the house, read from the sources: wings and floors, one address for `unsafe`, one mouth, doc comments.
//!
//! Each rule is a function from one source file to the lines that break it, so that the rules themselves are tested
//! on small bad snippets below. An offender is printed as `file:line: what is wrong`.

use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};

/// Who may name whom, drawn as the house stands: a module may name what its line lists, and itself.
///
/// ```text
///                     main
///                   command   <- cli        wires the rest
///           tui                view
///        recording  analysis
///                   profile
///
/// counter                    symbol  unwind
/// event                      session
/// host                       perfdata
///           record
///           sys  abi
///           error  units  text  terminal  address
/// ```
const HOUSE: &[(&str, &[&str])] = &[
    // The binary leaves with the status that a command decided, or dies by the signal that ended it.
    ("main", &["command", "error", "sys"]),
    (
        "command",
        &[
            "cli",
            "tui",
            "view", // the top
            "recording",
            "analysis",
            "profile", // the engines
            "counter",
            "event",
            "host", // the measuring wing
            "symbol",
            "unwind",
            "session",
            "perfdata", // the reading wing
            "sys",
            "record",
            "abi",
            "error",
            "units",
            "text",
            "terminal",
            "address",
        ],
    ),
    ("cli", &[]),
    (
        "recording",
        &[
            "counter", "event", "host", // the measuring wing
            "symbol", "unwind", "session", "perfdata", // the reading wing
            "sys", "record", "abi", "error", "units", "text", "address",
        ],
    ),
    ("tui", &["view", "profile", "error", "units", "text", "terminal"]),
    ("view", &["profile", "record", "abi", "error", "units", "text"]),
    (
        "analysis",
        &[
            "profile", "host", // of this machine: its files
            "symbol", "unwind", "session", "perfdata", "sys", "record", "abi", "error", "units", "text",
            "address",
        ],
    ),
    ("profile", &["session", "symbol", "record", "abi", "error", "units", "text", "address"]),
    // The measuring wing.
    ("counter", &["event", "host", "sys", "abi", "error", "units", "text"]),
    ("event", &["host", "sys", "abi", "error", "units", "text"]),
    ("host", &["sys", "abi", "error", "units", "text"]),
    // The reading wing.
    ("symbol", &["session", "perfdata", "record", "sys", "abi", "error", "units", "text", "address"]),
    ("unwind", &["session", "perfdata", "record", "sys", "abi", "error", "units", "text", "address"]),
    ("session", &["perfdata", "record", "sys", "abi", "error", "units", "text", "address"]),
    ("perfdata", &["record", "sys", "abi", "error", "units", "text", "address"]),
    // The ground: the kernel and its bytes, words and numbers. `error` asks `sys` for the name of an errno.
    ("record", &["abi", "sys", "error", "units", "text", "address"]),
    ("sys", &["abi", "error", "units", "text"]),
    ("error", &["sys", "text"]),
    ("abi", &[]),
    ("address", &[]),
    ("units", &[]),
    ("text", &[]),
    ("terminal", &[]),
];

/// A line that breaks a rule.
#[derive(Debug, PartialEq, Eq)]
struct Offence {
    file: PathBuf,
    line: usize,
    what: String,
}

impl fmt::Display for Offence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}", self.file.display(), self.line, self.what)
    }
}

/// One source file: its path below `src`, its text, and its text with comments and the insides of literals blanked.
struct Source {
    path: PathBuf,
    text: String,
    code: String,
}

impl Source {
    fn new(path: impl Into<PathBuf>, text: &str) -> Self {
        Self { path: path.into(), text: text.to_owned(), code: blank(text) }
    }

    /// The module at the top of the house: `counter` for `counter/open.rs`; `None` for `lib.rs`, which only lists them.
    fn floor(&self) -> Option<&str> {
        let first = self.path.iter().next()?.to_str()?;
        let name = first.strip_suffix(".rs").unwrap_or(first);
        (name != "lib").then_some(name)
    }

    /// The code of the product: what stands before the tests at the end of the file.
    fn product(&self) -> &str {
        self.code.split("#[cfg(test)]\nmod ").next().unwrap_or_default()
    }

    fn offence(&self, line: usize, what: impl Into<String>) -> Offence {
        Offence { file: Path::new("src").join(&self.path), line, what: what.into() }
    }

    /// An offence for each place where `word` stands as a word of its own.
    fn each(&self, code: &str, word: &str, what: &str) -> Vec<Offence> {
        places(code, word).map(|at| self.offence(line_of(code, at), format!("`{word}` {what}"))).collect()
    }
}

/// Where `word` stands in `code` without being part of a longer word.
fn places<'a>(code: &'a str, word: &'a str) -> impl Iterator<Item = usize> + 'a {
    let part = |c: char| c.is_alphanumeric() || c == '_';
    code.match_indices(word).map(|(at, _)| at).filter(move |&at| {
        let before = code[..at].chars().next_back();
        let after = code[at + word.len()..].chars().next();
        !(word.starts_with(part) && before.is_some_and(part)
            || word.ends_with(part) && after.is_some_and(part))
    })
}

fn line_of(text: &str, at: usize) -> usize {
    text[..at].matches('\n').count() + 1
}

/// The text with comments, and what stands inside string and character literals, turned to spaces; lines stay.
fn blank(text: &str) -> String {
    let chars: Vec<char> = text.chars().collect();
    let mut out = String::with_capacity(text.len());
    let mut at = 0;
    let starts = |at: usize, what: &str| what.chars().enumerate().all(|(i, c)| chars.get(at + i) == Some(&c));
    while at < chars.len() {
        let end = if starts(at, "//") {
            (at..chars.len()).find(|&i| chars[i] == '\n').unwrap_or(chars.len())
        } else if starts(at, "/*") {
            end_of_block_comment(&chars, at)
        } else if let Some(end) = end_of_literal(&chars, at) {
            end
        } else {
            out.push(chars[at]);
            at += 1;
            continue;
        };
        out.extend(chars[at..end].iter().map(|&c| if c == '\n' { '\n' } else { ' ' }));
        at = end;
    }
    out
}

/// Block comments nest.
fn end_of_block_comment(chars: &[char], start: usize) -> usize {
    let (mut depth, mut at) = (0usize, start);
    while at + 1 < chars.len() {
        match (chars[at], chars[at + 1]) {
            ('/', '*') => (depth, at) = (depth + 1, at + 2),
            ('*', '/') => (depth, at) = (depth - 1, at + 2),
            _ => at += 1,
        }
        if depth == 0 {
            return at;
        }
    }
    chars.len()
}

/// Past the end of the string or character literal that begins here; `None` if none does.
fn end_of_literal(chars: &[char], at: usize) -> Option<usize> {
    let in_word = at > 0 && (chars[at - 1].is_alphanumeric() || chars[at - 1] == '_');
    match chars[at] {
        '"' => Some(end_of_string(chars, at + 1)),
        'r' if !in_word || chars[at - 1] == 'b' || chars[at - 1] == 'c' => {
            let hashes = chars[at + 1..].iter().take_while(|&&c| c == '#').count();
            let open = at + 1 + hashes;
            if chars.get(open) != Some(&'"') {
                return None;
            }
            let closes = |i: usize| chars[i] == '"' && (1..=hashes).all(|h| chars.get(i + h) == Some(&'#'));
            Some((open + 1..chars.len()).find(|&i| closes(i)).map_or(chars.len(), |i| i + 1 + hashes))
        }
        // A lifetime has no quote after its first letter.
        '\'' if chars.get(at + 1) == Some(&'\\') => {
            (at + 3..chars.len()).find(|&i| chars[i] == '\'').map(|i| i + 1)
        }
        '\'' if chars.get(at + 2) == Some(&'\'') => Some(at + 3),
        _ => None,
    }
}

fn end_of_string(chars: &[char], mut at: usize) -> usize {
    while at < chars.len() {
        match chars[at] {
            '\\' => at += 2,
            '"' => return at + 1,
            _ => at += 1,
        }
    }
    chars.len()
}

// --- the rules ---

/// Wings and floors as drawn.
fn floors(source: &Source) -> Vec<Offence> {
    let Some(floor) = source.floor() else { return Vec::new() };
    let Some((_, below)) = HOUSE.iter().find(|(name, _)| *name == floor) else {
        return vec![source.offence(1, format!("`{floor}` has no place in the house: draw it in HOUSE"))];
    };
    named_floors(source)
        .into_iter()
        .filter(|(_, name)| name != floor && !below.contains(&name.as_str()))
        .map(|(line, name)| source.offence(line, format!("`{floor}` must not name `{name}`")))
        .collect()
}

/// The top modules named as `crate::x`, `pmc::x` or inside `use crate::{…}`, with their lines.
fn named_floors(source: &Source) -> Vec<(usize, String)> {
    let is_floor = |name: &str| HOUSE.iter().any(|(floor, _)| *floor == name);
    let mut named = Vec::new();
    for root in ["crate", "pmc"] {
        for at in places(&source.code, root) {
            let Some(rest) = source.code[at + root.len()..].trim_start().strip_prefix("::") else { continue };
            let line = line_of(&source.code, at);
            let heads = match rest.trim_start().strip_prefix('{') {
                Some(list) => heads_of_list(list),
                None => vec![head(rest)],
            };
            named.extend(heads.into_iter().filter(|name| is_floor(name)).map(|name| (line, name)));
        }
    }
    named
}

fn head(path: &str) -> String {
    path.trim_start().chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect()
}

/// The first word of each entry of a `use` list whose `{` is already behind us.
fn heads_of_list(list: &str) -> Vec<String> {
    let (mut depth, mut start, mut heads) = (1, 0, Vec::new());
    for (at, c) in list.char_indices() {
        match c {
            '{' => depth += 1,
            '}' => depth -= 1,
            _ => {}
        }
        if depth == 0 || (depth == 1 && c == ',') {
            heads.push(head(&list[start..at]));
            start = at + 1;
        }
        if depth == 0 {
            break;
        }
    }
    heads
}

/// `unsafe` and libc have one address.
fn unsafe_below_sys(source: &Source) -> Vec<Offence> {
    if source.floor() == Some("sys") {
        return Vec::new();
    }
    let mut offences = source.each(&source.code, "unsafe", "belongs below src/sys");
    offences.extend(source.each(&source.code, "libc", "belongs below src/sys"));
    offences
}

/// Diagnostics leave through `error::say`, results through a `Write`, and only `main` ends the process, by returning.
fn one_mouth(source: &Source) -> Vec<Offence> {
    let words = [
        ("println!", "panics when the reader leaves: use a `Write` and `Error::output`"),
        ("print!", "panics when the reader leaves: use a `Write` and `Error::output`"),
        ("eprintln!", "goes round the one mouth: use `error::say`"),
        ("eprint!", "goes round the one mouth: use `error::say`"),
        ("process::exit", "skips every destructor: return an `Exit`"),
    ];
    words.iter().flat_map(|(word, why)| source.each(source.product(), word, why)).collect()
}

/// Pages are as large as `sys::page_size` says.
fn no_fixed_pages(source: &Source) -> Vec<Offence> {
    ["4096", "4_096"]
        .iter()
        .flat_map(|number| {
            source.each(
                source.product(),
                number,
                "is no page size: ask `sys::page_size`, or say it otherwise",
            )
        })
        .collect()
}

/// Every module says first what it decides, receives, hands on, and leaves to others.
fn opens_with_doc(source: &Source) -> Vec<Offence> {
    if source.text.starts_with("//! ") {
        return Vec::new();
    }
    vec![source.offence(1, "does not open with a `//!` comment that says what the module is for")]
}

/// No module is called after what it is not about.
fn named_for_its_idea(source: &Source) -> Vec<Offence> {
    let vague = ["utils", "util", "common", "helpers", "helper", "misc"];
    let parts = source.path.iter().filter_map(|part| part.to_str());
    let bad = parts.map(|part| part.strip_suffix(".rs").unwrap_or(part)).find(|part| vague.contains(part));
    bad.map(|name| source.offence(1, format!("`{name}` names no idea"))).into_iter().collect()
}

/// A file of this many lines holds two ideas.
const LONGEST: usize = 700;

fn one_idea(source: &Source) -> Vec<Offence> {
    let lines = source.text.lines().count();
    if lines <= LONGEST {
        return Vec::new();
    }
    vec![source.offence(LONGEST + 1, format!("{lines} lines hold two ideas: find the second one's name"))]
}

const RULES: &[fn(&Source) -> Vec<Offence>] =
    &[floors, unsafe_below_sys, one_mouth, no_fixed_pages, opens_with_doc, named_for_its_idea, one_idea];

/// Every Rust source below `src`.
fn sources() -> Vec<Source> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut folders = vec![root.clone()];
    let mut sources = Vec::new();
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).expect("a folder of the sources") {
            let path = entry.expect("an entry of the sources").path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                let text = fs::read_to_string(&path).expect("a source file in UTF-8");
                sources.push(Source::new(path.strip_prefix(&root).expect("below src"), &text));
            }
        }
    }
    sources.sort_by(|a, b| a.path.cmp(&b.path));
    sources
}

#[test]
fn the_sources_keep_the_rules() {
    let sources = sources();
    assert!(sources.len() > 10, "only {} sources found", sources.len());
    let offences: Vec<String> =
        RULES.iter().flat_map(|rule| sources.iter().flat_map(rule)).map(|o| o.to_string()).collect();
    assert!(offences.is_empty(), "{} lines break a rule:\n{}", offences.len(), offences.join("\n"));
}

#[test]
fn the_house_stands_on_its_ground() {
    // Whoever is named in the drawing is drawn, and nobody stands above and below another at once
    // (but for `error`, which asks `sys` for names).
    for (module, below) in HOUSE {
        for name in *below {
            let (_, back) = HOUSE.iter().find(|(drawn, _)| drawn == name).expect("every name is drawn");
            let asks_for_names = [*module, *name].contains(&"error");
            assert!(asks_for_names || !back.contains(module), "{module} and {name} name each other");
        }
    }
}

// --- the rules can fail ---

/// The offences of one snippet, as `line: what`.
fn breaks(rule: fn(&Source) -> Vec<Offence>, path: &str, text: &str) -> Vec<String> {
    rule(&Source::new(path, text)).iter().map(ToString::to_string).collect()
}

#[test]
fn a_name_from_another_wing_is_found() {
    let bad = "//! A view.\nuse crate::profile::Counts;\nuse crate::counter::open;\n";
    assert_eq!(breaks(floors, "view/table.rs", bad), ["src/view/table.rs:3: `view` must not name `counter`"]);
    let list = "use crate::{\n    units::Count,\n    session::{Sample, event},\n    symbol,\n};";
    assert_eq!(
        breaks(floors, "event/mod.rs", list).len(),
        2,
        "session and symbol, but not the `event` in the list"
    );
    let path = "fn f() { crate::host::Host::live(); }";
    assert_eq!(
        breaks(floors, "profile/mod.rs", path),
        ["src/profile/mod.rs:1: `profile` must not name `host`"]
    );
    assert_eq!(breaks(floors, "host/mod.rs", "use pmc::event::parse;").len(), 1);
    assert!(breaks(floors, "counter/mod.rs", "use crate::event::EventSpec; // crate::view").is_empty());
    assert!(breaks(floors, "lib.rs", "pub use crate::cli;").is_empty());
    assert_eq!(
        breaks(floors, "attic.rs", ""),
        ["src/attic.rs:1: `attic` has no place in the house: draw it in HOUSE"]
    );
}

#[test]
fn unsafe_outside_sys_is_found() {
    let bad = "fn f() {\n    unsafe { libc::fork() };\n}\n";
    assert_eq!(
        breaks(unsafe_below_sys, "counter/open.rs", bad),
        [
            "src/counter/open.rs:2: `unsafe` belongs below src/sys",
            "src/counter/open.rs:2: `libc` belongs below src/sys"
        ]
    );
    assert!(breaks(unsafe_below_sys, "sys/perf.rs", bad).is_empty());
    assert!(
        breaks(unsafe_below_sys, "host/mod.rs", "// unsafe\nlet unsafe_code = \"libc::open\";").is_empty()
    );
}

#[test]
fn a_second_mouth_is_found() {
    for bad in ["println!(\"x\")", "eprint!(\"x\")", "std::process::exit(1)", "print!(\"x\")", "eprintln!()"]
    {
        assert_eq!(breaks(one_mouth, "view/mod.rs", &format!("fn f() {{\n {bad};\n}}")).len(), 1, "{bad}");
    }
    assert!(breaks(one_mouth, "view/mod.rs", "#[cfg(test)]\nmod tests { fn f() { println!() } }").is_empty());
    assert!(breaks(one_mouth, "view/mod.rs", "/// Not `println!`.\nfn writeln_not_println() {}").is_empty());
}

#[test]
fn a_fixed_page_is_found() {
    assert_eq!(breaks(no_fixed_pages, "sys/ring.rs", "//! R\nlet a = 4096;\nlet b = 4_096;").len(), 2);
    assert!(breaks(no_fixed_pages, "sys/ring.rs", "let a = 40960; let b = 4_0960; // 4096").is_empty());
}

#[test]
fn a_silent_module_is_found() {
    assert_eq!(breaks(opens_with_doc, "view/csv.rs", "use std::fmt;\n").len(), 1);
    assert_eq!(breaks(opens_with_doc, "view/csv.rs", "").len(), 1);
    assert!(breaks(opens_with_doc, "view/csv.rs", "//! Rows.\n").is_empty());
}

#[test]
fn a_vague_or_swollen_module_is_found() {
    assert_eq!(breaks(named_for_its_idea, "view/utils.rs", "").len(), 1);
    assert_eq!(breaks(named_for_its_idea, "helpers/mod.rs", "").len(), 1);
    assert!(breaks(named_for_its_idea, "view/table.rs", "").is_empty());
    assert_eq!(breaks(one_idea, "view/table.rs", &"x\n".repeat(LONGEST + 1)).len(), 1);
    assert!(breaks(one_idea, "view/table.rs", &"x\n".repeat(LONGEST)).is_empty());
}

#[test]
fn comments_and_literals_are_blanked_and_lines_stay() {
    let text = "a /* b /* c\n */ d */ e \"f \\\" // g\" h 'i' '\\'' 'j: r#\"k \" l\"# m // n\no";
    let code = blank(text);
    assert_eq!(code.matches('\n').count(), text.matches('\n').count());
    assert_eq!(code.split_whitespace().collect::<Vec<_>>(), ["a", "e", "h", "'j:", "m", "o"]);
}
