//! Finds the sources and the blocks of commands on a page.

/// A command on a page and the lines below it.
#[derive(Debug)]
pub(crate) struct ShownCommand {
    /// The text after `$ `, without an explanation that follows two spaces.
    pub(crate) command: String,
    /// Index of the command's line on the page.
    pub(crate) at: usize,
    /// The lines of its output, without empty ones, with their indices on the page.
    pub(crate) lines: Vec<(usize, String)>,
}

/// Consecutive commands of one block of code.
#[derive(Debug)]
pub(crate) struct Block {
    pub(crate) commands: Vec<ShownCommand>,
    /// Index of the line after the block.
    pub(crate) end: usize,
    /// The indentation of its lines.
    pub(crate) indent: &'static str,
}

impl Block {
    /// The first command of the block that runs pmc. It names the block.
    pub(crate) fn name(&self) -> &str {
        let runs_pmc = |shown: &&ShownCommand| shown.command.contains("pmc ");
        self.commands.iter().find(runs_pmc).map_or("", |shown| &shown.command)
    }

    /// Whether the block shows output.
    pub(crate) fn has_output(&self) -> bool {
        self.commands.iter().any(|shown| !shown.lines.is_empty())
    }
}

/// The code on a page.
#[derive(Debug, Default)]
pub(crate) struct PageCode {
    /// The C and C++ sources, each with the file name that precedes it.
    pub(crate) sources: Vec<(String, String)>,
    /// The blocks that run pmc.
    pub(crate) blocks: Vec<Block>,
}

/// Returns the code of a page. A block of code is fenced or indented by four spaces. It is a source if its
/// first line includes a header, and a block of commands if its first line begins with `$ ` or `guest# `.
pub(crate) fn code(page: &str) -> PageCode {
    let mut found = PageCode::default();
    let (mut paragraph, mut file) = (String::new(), String::new());
    let mut block: Vec<(usize, &str)> = Vec::new();
    let mut is_fenced = false;
    let end = page.lines().count();
    for (at, line) in page.lines().enumerate().chain([(end, ""), (end + 1, "end")]) {
        if line.starts_with("```") {
            is_fenced = !is_fenced;
        } else if is_fenced {
            block.push((at, line));
            continue;
        } else if let Some(code) = line.strip_prefix("    ") {
            block.push((at, code));
            continue;
        } else if line.is_empty() && !block.is_empty() {
            // An indented block continues after empty lines.
            block.push((at, ""));
            continue;
        }
        // Only the end of a fence follows a fenced block; its start may follow an indented one.
        let indent = if line.starts_with("```") && !is_fenced { "" } else { "    " };
        add(&mut found, &file, std::mem::take(&mut block), indent);
        paragraph.push_str(line);
        if let Some(name) =
            paragraph.split('`').rev().find(|word| word.ends_with(".cpp") || word.ends_with(".c"))
        {
            file = name.to_owned();
        }
        if line.is_empty() {
            paragraph.clear();
        }
    }
    found
}

fn add(found: &mut PageCode, file: &str, mut block: Vec<(usize, &str)>, indent: &'static str) {
    while block.last().is_some_and(|(_, line)| line.is_empty()) {
        block.pop();
    }
    let (Some(&(_, first)), Some(&(last, _))) = (block.first(), block.last()) else { return };
    if first.starts_with("#include") {
        let lines: Vec<&str> = block.iter().map(|(_, line)| *line).collect();
        found.sources.push((file.to_owned(), lines.join("\n")));
    }
    if prompted(first).is_none() {
        return;
    }
    let mut commands: Vec<ShownCommand> = Vec::new();
    for (at, line) in block {
        match (prompted(line), commands.last_mut()) {
            (Some(command), _) => {
                let command = command.split("  ").next().unwrap_or(command).trim_end().to_owned();
                commands.push(ShownCommand { command, at, lines: Vec::new() });
            }
            (None, Some(shown)) if !line.trim().is_empty() => {
                shown.lines.push((at, line.trim_end().to_owned()))
            }
            _ => {}
        }
    }
    let block = Block { commands, end: last + 1, indent };
    if !block.name().is_empty() {
        found.blocks.push(block);
    }
}

/// Returns the command of a line with a prompt.
fn prompted(line: &str) -> Option<&str> {
    line.strip_prefix("$ ").or_else(|| line.strip_prefix("guest# "))
}

#[test]
fn sources_and_commands_are_found() {
    let page = "Text about `x.cpp`:\n\n    #include <a>\n\n    int x;\n\nThen:\n\n    $ g++ x.cpp\n    $ pmc stat -- ./x  explained\n\n      1 ms\n    …\n\n```\n$ pmc report\nrow\n```\n\n    $ ls\n\n    pmc stat\n";
    let PageCode { sources, blocks } = code(page);
    assert_eq!(sources, [("x.cpp".to_owned(), "#include <a>\n\nint x;".to_owned())]);
    let names: Vec<&str> = blocks.iter().map(Block::name).collect();
    assert_eq!(names, ["pmc stat -- ./x", "pmc report"]);
    assert_eq!(blocks[0].commands[1].lines, [(11, "  1 ms".to_owned()), (12, "…".to_owned())]);
    assert_eq!((blocks[0].end, blocks[1].end), (13, 17));
    assert_eq!((blocks[0].indent, blocks[1].indent), ("    ", ""));
}
