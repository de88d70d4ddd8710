//! Compares the committed shell completions and docs/perf-options.md with those generated from the parser, and
//! tries the completions. `manual` checks the man pages, which are not committed.
//!
//! `PMC_BLESS=1 cargo test --test counting generated` rewrites them. The parser does not know this machine's
//! events, the terms of its PMUs or the running processes. The parts that do are written by hand in
//! `tests/counting/generated/values.*`, one file per shell. They are joined to clap's script here: `@EVENT@`,
//! `@PID@` and `@TID@` become the parser's options that take such values.

mod manual;
mod options;
mod syscalls;
mod table;

use crate::kit;
use crate::kit::terminal::Tmux;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::LazyLock;

use clap::builder::Resettable;
use clap::{Arg, ArgGroup, Command as Parser, CommandFactory, Id};
use clap_complete::Shell;
use pmc::cli::Cli;

/// Returns the parser. Building it takes a second in a debug build, which checks every option against every
/// other.
fn parser() -> &'static Parser {
    static PARSER: LazyLock<Parser> = LazyLock::new(|| {
        let mut parser = Cli::command();
        parser.build();
        parser
    });
    &PARSER
}

/// Returns the committed folder of completions.
fn completions() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("completions")
}

/// Names of options' values in clap's zsh script, and our functions that complete them.
const VALUES: [(&str, &str); 4] =
    [("event", "_pmc_events"), ("metrics", "_pmc_metrics"), ("pid", "_pmc_pids"), ("tid", "_pmc_tids")];

/// Returns every `subcommand:option` with a value of this kind (the option's long name).
fn options_taking(long: &str) -> Vec<String> {
    let mut options = Vec::new();
    for command in parser().get_subcommands() {
        for argument in command.get_arguments().filter(|a| a.get_long() == Some(long)) {
            options.extend(argument.get_short().map(|short| format!("{}:-{short}", command.get_name())));
            options.push(format!("{}:--{long}", command.get_name()));
        }
    }
    options
}

/// Returns a hand-written part with its options filled in, joined by `between` and quoted by `quote`.
fn values(text: &str, between: &str, quote: &str, around: (&str, &str)) -> String {
    VALUES.iter().fold(text.to_owned(), |text, (long, _)| {
        let options: Vec<String> =
            options_taking(long).iter().map(|option| format!("{quote}{option}{quote}")).collect();
        let list = format!("{}{}{}", around.0, options.join(between), around.1);
        text.replace(&format!("@{}@", long.to_uppercase()), &list)
    })
}

/// Returns the option without its conflicts with hidden options, which the parser of the scripts lacks.
fn without_hidden_conflicts(parser: &Parser, option: &Arg) -> Arg {
    let conflicts = parser.get_arg_conflicts_with(option);
    if !conflicts.iter().any(|other| other.is_hide_set()) {
        return option.clone();
    }
    let shown = conflicts.into_iter().filter(|other| !other.is_hide_set()).map(Arg::get_id);
    option.clone().conflicts_with(Resettable::<Id>::Reset).conflicts_with_all(shown)
}

/// Returns a parser without the hidden options, which clap's scripts would offer.
fn with_shown_options(parser: &Parser) -> Parser {
    let shown = parser.get_arguments().filter(|option| !option.is_hide_set());
    let shown = shown.map(|option| without_hidden_conflicts(parser, option));
    let subcommands =
        parser.get_subcommands().filter(|command| !command.is_hide_set()).map(with_shown_options);
    let name: &'static str = parser.get_name().to_owned().leak();
    let groups = parser.get_groups().map(|group| {
        let is_shown =
            |id: &&Id| parser.get_arguments().any(|option| option.get_id() == *id && !option.is_hide_set());
        ArgGroup::new(group.get_id().clone()).multiple(true).args(group.get_args().filter(is_shown))
    });
    let mut copy = Parser::new(name).args(shown).groups(groups).subcommands(subcommands);
    copy = copy.disable_help_flag(true).disable_version_flag(true);
    if let Some(version) = parser.get_version() {
        copy = copy.version(version.to_owned().leak() as &'static str);
    }
    if let Some(about) = parser.get_about() {
        copy = copy.about(about.clone());
    }
    copy.disable_help_subcommand(true)
}

/// Returns the complete script for a shell.
fn script(shell: Shell) -> String {
    let mut by_clap = Vec::new();
    clap_complete::generate(shell, &mut with_shown_options(parser()), "pmc", &mut by_clap);
    let by_clap = String::from_utf8(by_clap).expect("completions are UTF-8");
    match shell {
        Shell::Bash => {
            // Our function runs before clap's and takes over its registration.
            let end =
                by_clap.find("\nif [[ \"${BASH_VERSINFO").expect("clap's bash script registers its function");
            by_clap[..end].to_owned() + &values(include_str!("generated/values.bash"), " | ", "", ("", ""))
        }
        Shell::Zsh => {
            let end =
                by_clap.rfind("if [ \"$funcstack[1]\"").expect("clap's zsh script registers its function");
            let lines = by_clap[..end].lines().map(|line| format!("{}\n", zsh_line(line)));
            // After a command, complete the command's options, not pmc's own options with the same letter.
            let lines = lines.collect::<String>().replacen("_arguments ", "_arguments -A '-*' ", 1);
            lines + include_str!("generated/values.zsh") + &by_clap[end..]
        }
        Shell::Fish => by_clap + include_str!("generated/values.fish") + &fish_options(),
        Shell::Elvish => by_clap + &values(include_str!("generated/values.elv"), " ", "'", ("", "")),
        Shell::PowerShell => {
            let head = "param($wordToComplete, $commandAst, $cursorPosition)\n";
            let at = by_clap.find(head).expect("clap's PowerShell script takes parameters") + head.len();
            let ours = values(include_str!("generated/values.ps1"), ", ", "'", ("@(", ")"));
            by_clap[..at].to_owned() + &ours + &by_clap[at..]
        }
        other => panic!("no completions for {other}"),
    }
}

/// Returns a line of clap's zsh script, with our function in place of the default one where we can complete
/// better.
fn zsh_line(line: &str) -> String {
    for (long, function) in VALUES {
        let short = parser()
            .get_subcommands()
            .flat_map(|command| {
                command.get_arguments().filter(|a| a.get_long() == Some(long)).collect::<Vec<_>>()
            })
            .find_map(clap::Arg::get_short);
        let is_ours = line.contains(&format!("--{long}="))
            || short.is_some_and(|short| line.contains(&format!("-{short}+[")));
        if is_ours && let Some(before) = line.strip_suffix(":_default' \\") {
            return format!("{before}:{function}' \\");
        }
    }
    line.to_owned()
}

/// Returns extra lines for fish, which merges all lines about an option.
fn fish_options() -> String {
    let source = [
        "(__pmc_events)",
        "(__pmc_metrics)",
        "(__pmc_numbers /proc/[0-9]*)",
        "(__pmc_numbers /proc/[0-9]*/task/[0-9]*)",
    ];
    let source = source.map(|s| s.replace("[0-9]*", "*"));
    let mut lines = String::new();
    for ((long, _), source) in VALUES.iter().zip(source) {
        for command in parser().get_subcommands() {
            for argument in command.get_arguments().filter(|a| a.get_long() == Some(long)) {
                let short = argument.get_short().map(|short| format!("-s {short} ")).unwrap_or_default();
                let name = command.get_name();
                lines += &format!(
                    "complete -c pmc -n \"__fish_pmc_using_subcommand {name}\" {short}-l {long} -x -a '{source}'\n"
                );
            }
        }
    }
    lines
}

/// Returns every generated file: its committed path and its expected content.
fn generated() -> &'static [(PathBuf, String)] {
    static FILES: LazyLock<Vec<(PathBuf, String)>> = LazyLock::new(generate);
    &FILES
}

fn generate() -> Vec<(PathBuf, String)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut files: Vec<(PathBuf, String)> = [
        (Shell::Bash, "pmc.bash"),
        (Shell::Zsh, "_pmc"),
        (Shell::Fish, "pmc.fish"),
        (Shell::Elvish, "pmc.elv"),
        (Shell::PowerShell, "_pmc.ps1"),
    ]
    .into_iter()
    .map(|(shell, name)| (completions().join(name), script(shell)))
    .collect();
    let parser = parser();
    files.push((root.join("docs/perf-options.md"), options::page(parser)));
    files
}

#[test]
fn completions_and_options_match_the_parser() {
    for (path, want) in generated() {
        if std::env::var_os("PMC_BLESS").is_some() {
            fs::create_dir_all(path.parent().expect("a folder")).expect("the folder can be made");
            fs::write(path, want).expect("the file can be written");
        }
        let got = fs::read_to_string(path).unwrap_or_default();
        assert!(
            got == *want,
            "{} is out of date: PMC_BLESS=1 cargo test --test counting generated",
            path.display()
        );
    }
}

#[test]
fn every_completion_is_generated() {
    let wanted: Vec<&PathBuf> = generated().iter().map(|(path, _)| path).collect();
    for entry in fs::read_dir(completions()).expect("a committed folder") {
        let path = entry.expect("an entry").path();
        assert!(wanted.contains(&&path), "{} is generated by nothing", path.display());
    }
}

/// Returns a PATH on which `pmc` is the binary under test.
fn path() -> std::ffi::OsString {
    let ours = Path::new(kit::binary()).parent().expect("a folder").to_owned();
    let theirs = std::env::var_os("PATH").unwrap_or_default();
    std::env::join_paths(std::iter::once(ours).chain(std::env::split_paths(&theirs))).expect("a PATH")
}

/// Returns the output of a shell that runs this script with our binary first on the PATH.
#[track_caller]
fn shell(program: &str, arguments: &[&str]) -> Vec<String> {
    let ran = Command::new(program).args(arguments).env("PATH", path()).output().expect("the shell starts");
    assert!(ran.status.success(), "{program}: {}", String::from_utf8_lossy(&ran.stderr));
    String::from_utf8_lossy(&ran.stdout).lines().map(str::to_owned).collect()
}

/// Returns bash's completions for this line, with the cursor at its end.
#[track_caller]
fn bash(line: &str) -> Vec<String> {
    let script = "source \"$1\"; COMP_LINE=$2; COMP_POINT=${#COMP_LINE}; read -ra COMP_WORDS <<<\"$2\"
        [[ $2 == *' ' ]] && COMP_WORDS+=(''); COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
        _pmc_with_values pmc \"${COMP_WORDS[-1]}\" \"${COMP_WORDS[-2]}\"; printf '%s\\n' \"${COMPREPLY[@]}\"";
    let file = completions().join("pmc.bash");
    let offers = shell("bash", &["--norc", "-c", script, "bash", file.to_str().expect("UTF-8"), line]);
    // In bash a word ends at a colon and an equals sign, and a completion replaces only the text after the
    // last one.
    let word = line.rsplit(' ').next().unwrap_or_default();
    let kept = &word[..word.rfind([':', '=']).map_or(0, |at| at + 1)];
    offers.iter().map(|offer| format!("{kept}{offer}")).collect()
}

#[track_caller]
fn fish(line: &str) -> Vec<String> {
    let file = completions().join("pmc.fish");
    let script = format!("source {}; complete -C '{line}'", file.display());
    let offers = shell("fish", &["--no-config", "-c", &script]);
    offers.into_iter().map(|line| line.split('\t').next().unwrap_or_default().to_owned()).collect()
}

/// Checks that every shell must pass, given its completions for a line.
#[track_caller]
fn check_offers(offers: impl Fn(&str) -> Vec<String>) {
    let has = |line: &str, want: &str| {
        let got = offers(line);
        assert!(got.iter().any(|offer| offer == want), "{line:?} does not offer {want:?} but {got:?}");
    };
    has("pmc st", "stat");
    has("pmc stat --all-us", "--all-user");
    has("pmc stat -e task-cl", "task-clock");
    has("pmc stat -e page-faults,task-cl", "page-faults,task-clock");
    has("pmc stat --event task-cl", "task-clock");
    has("pmc stat -e upr", "uprobe/");
    has("pmc stat -e uprobe/ret", "uprobe/retprobe=");
    has(
        "pmc stat -e page-faults,uprobe/ref_ctr_offset=1,ret",
        "page-faults,uprobe/ref_ctr_offset=1,retprobe=",
    );
    has("pmc stat -e uprobe/retprobe/,task-cl", "uprobe/retprobe/,task-clock");
    let own = std::process::id().to_string();
    has("pmc stat -M ip", "ipc");
    has("pmc stat -M ipc,ghz,Cache", "ipc,ghz,CacheMisses");
    has(&format!("pmc stat -p {}", &own[..1]), &own);
    has(&format!("pmc stat --pid 1,{}", &own[..1]), &format!("1,{own}"));
    has(&format!("pmc stat -t {}", &own[..1]), &own);
    has("pmc profile -- tru", "true");
    has("pmc record -e task-clock -- tru", "true");
}

#[test]
fn bash_completes_events_terms_and_pids() {
    if !kit::need_program("bash") || !need_uprobe_pmu() {
        return;
    }
    check_offers(bash);
    assert_eq!(bash("pmc stat --event=task-cl"), ["--event=task-clock"]);
    assert!(
        bash("pmc stat -- ls -e task-cl").iter().all(|offer| offer != "task-clock"),
        "the command's own option"
    );
    if kit::need_tracefs("syscalls") {
        let offers = bash("pmc stat -e syscalls:sys_enter_openat,syscalls:sys_enter_clos");
        assert!(offers.iter().any(|offer| offer.ends_with("sys_enter_close")), "{offers:?}");
    }
}

#[test]
fn fish_completes_events_terms_and_pids() {
    if !kit::need_program("fish") || !need_uprobe_pmu() {
        return;
    }
    check_offers(fish);
}

/// A shell in a terminal.
struct Terminal {
    tmux: Tmux,
    /// The key that closes a menu of completions.
    leave: &'static str,
}

impl Terminal {
    #[track_caller]
    fn open(program: &str, leave: &'static str) -> Self {
        let path = path().into_string().expect("a PATH in UTF-8");
        Self { tmux: Tmux::start(150, 50, &[], &[&format!("env PATH={path} {program}")]), leave }
    }

    /// Types the start of a line and the tab key on an empty line, then waits until the screen shows this
    /// text.
    #[track_caller]
    fn completes(&self, line: &str, want: &str) {
        self.tmux.keys(&["C-u"]);
        self.tmux.text(line);
        self.tmux.until_shown(line);
        self.tmux.keys(&["Tab"]);
        self.tmux.until_shown(want);
        self.tmux.keys(&[self.leave]);
        self.tmux.wait_until_typed();
        self.tmux.until("the line again", |_| true);
    }
}

/// Runs the same checks on a screen.
#[track_caller]
fn check_completions(terminal: &Terminal, equals: &str) {
    terminal.completes("pmc stat -e task-cl", "task-clock");
    terminal.completes("pmc stat -e uprobe/ret", equals);
    terminal.completes("pmc stat -e page-faults,task-cl", "page-faults,task-clock");
    let mut child = Command::new("sleep").arg("60").spawn().expect("sleep starts");
    let pid = child.id().to_string();
    terminal.completes(&format!("pmc stat -p 1,{}", &pid[..pid.len() - 1]), &pid);
    terminal.completes(&format!("pmc stat --tid {}", &pid[..pid.len() - 1]), &pid);
    let _ = child.kill();
    let _ = child.wait();
}

#[test]
fn zsh_completes_events_terms_and_pids() {
    if !kit::need_program("zsh") || !kit::need_program("tmux") || !need_uprobe_pmu() {
        return;
    }
    let zsh = Terminal::open("zsh -f", "C-c");
    let folder = completions();
    zsh.tmux.keys(&[
        &format!("fpath=({} $fpath); autoload -U compinit; compinit -u -D; PS1=ready:", folder.display()),
        "Enter",
    ]);
    zsh.tmux.until_shown("\nready:");
    check_completions(&zsh, "uprobe/retprobe=");
}

#[test]
fn elvish_completes_events_terms_and_pids() {
    if !kit::need_program("elvish") || !kit::need_program("tmux") || !need_uprobe_pmu() {
        return;
    }
    let folder = tempfile::tempdir().expect("a temporary folder");
    let rc = folder.path().join("rc.elv");
    let script = fs::read_to_string(completions().join("pmc.elv")).expect("the committed script");
    fs::write(&rc, script + "\nset edit:prompt = { put 'ready:' }\n").expect("a file in the folder");
    let elvish = Terminal::open(&format!("elvish -rc {}", rc.display()), "Escape");
    elvish.tmux.until_shown("ready:");
    check_completions(&elvish, "'uprobe/retprobe='");
}

fn need_uprobe_pmu() -> bool {
    let there = Path::new("/sys/bus/event_source/devices/uprobe/format/retprobe").exists();
    kit::need("uprobe-pmu", there, "this kernel has no uprobe PMU")
}
