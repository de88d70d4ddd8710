//! Tries the completions in the shells, with the scripts in `completions`, which ask `pmc complete` for the
//! words.

use crate::kit;
use crate::kit::terminal::Tmux;

use std::ffi::OsStr;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Returns the folder of the scripts.
fn completions() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("completions")
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
        _pmc pmc \"${COMP_WORDS[-1]}\" \"${COMP_WORDS[-2]}\"; printf '%s\\n' \"${COMPREPLY[@]}\"";
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
    has("pmc stat record --all-us", "--all-user");
    has("pmc stat --reserve y", "yield");
    has("pmc stat --reserve=y", "--reserve=yield");
    has("pmc lock us", "user");
    has("pmc help sch", "sched");
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
    has("pmc record -e task-clock tru", "true");
    let commands = offers("pmc comp");
    assert!(
        commands.contains(&"compare".to_owned()) && commands.len() == 1,
        "a hidden command: {commands:?}"
    );
}

#[test]
fn bash_function_completes_what_pmc_knows() {
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
fn fish_completes_what_pmc_knows() {
    if !kit::need_program("fish") || !need_uprobe_pmu() {
        return;
    }
    check_offers(fish);
    let script =
        format!("source {}; complete -C 'pmc stat --all-us'", completions().join("pmc.fish").display());
    assert_eq!(shell("fish", &["--no-config", "-c", &script]), ["--all-user\tCount in user mode only"]);
    for option in ["-i ", "--input="] {
        let line = format!("pmc report {option}{}/pmc.fi", completions().display());
        let offers = fish(&line);
        assert!(offers.len() == 1 && offers[0].ends_with("/completions/pmc.fish"), "{line}: {offers:?}");
    }
}

/// A shell in a terminal.
struct Terminal {
    tmux: Tmux,
    /// The key that closes a menu of completions.
    leave: &'static str,
}

impl Terminal {
    /// Starts a shell with pmc from the first folder of `path`, and runs a line that loads the script.
    #[track_caller]
    fn open(program: &str, path: &OsStr, (load, leave): (&str, &'static str)) -> Self {
        let path = path.to_str().expect("a PATH in UTF-8");
        let tmux = Tmux::start(150, 50, &[], &[&format!("env PATH={path} {program}")]);
        if !load.is_empty() {
            tmux.keys(&[load, "Enter"]);
        }
        tmux.until_shown("ready:");
        Self { tmux, leave }
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

/// Runs the same checks on the screen of a shell: with this pmc, with an older one that does not know the
/// words, and without pmc. In the last two, names of files are completed.
#[track_caller]
fn check_shell(program: &str, load: (&str, &'static str), equals: &str) {
    let terminal = Terminal::open(program, &path(), load);
    terminal.completes("pmc stat -e task-cl", "task-clock");
    terminal.completes("pmc stat -e uprobe/ret", equals);
    terminal.completes("pmc stat -e page-faults,task-cl", "page-faults,task-clock");
    terminal.completes("pmc stat --all-us", "--all-user");
    for option in ["-p 1,", "--tid "] {
        let mut child = Command::new("sleep").arg("60").spawn().expect("sleep starts");
        let pid = child.id().to_string();
        terminal.completes(&format!("pmc stat {option}{}", &pid[..pid.len() - 1]), &pid);
        let _ = child.kill();
        let _ = child.wait();
    }
    let folder = tempfile::tempdir().expect("a temporary folder");
    fs::write(folder.path().join("recording.data"), "").expect("a file in the folder");
    let line = format!("pmc report -i {}/recor", folder.path().display());
    terminal.completes(&line, "recording.data");
    drop(terminal);
    let old = folder.path().join("pmc");
    fs::write(&old, "#!/bin/sh\necho usage\nexit 2\n").expect("a file in the folder");
    fs::set_permissions(&old, fs::Permissions::from_mode(0o755)).expect("our file");
    let others = std::env::var_os("PATH").unwrap_or_default();
    let with_old = std::iter::once(folder.path().to_owned()).chain(std::env::split_paths(&others));
    let with_old = std::env::join_paths(with_old).expect("a PATH");
    for path in [with_old, others] {
        Terminal::open(program, &path, load).completes(&line, "recording.data");
    }
}

#[test]
fn bash_completes_on_the_screen() {
    if !kit::need_program("bash") || !kit::need_program("tmux") || !need_uprobe_pmu() {
        return;
    }
    // Otherwise, bash shows several candidates only at the second tab.
    let show_all = "bind 'set show-all-if-ambiguous on'";
    let load = format!("source {}; {show_all}; PS1=ready:", completions().join("pmc.bash").display());
    check_shell("bash --norc --noprofile", (&load, "C-u"), "uprobe/retprobe=");
}

#[test]
fn zsh_completes_on_the_screen() {
    if !kit::need_program("zsh") || !kit::need_program("tmux") || !need_uprobe_pmu() {
        return;
    }
    let folder = completions();
    let load =
        format!("fpath=({} $fpath); autoload -U compinit; compinit -u -D; PS1=ready:", folder.display());
    check_shell("zsh -f", (&load, "C-c"), "uprobe/retprobe=");
}

#[test]
fn elvish_completes_on_the_screen() {
    if !kit::need_program("elvish") || !kit::need_program("tmux") || !need_uprobe_pmu() {
        return;
    }
    let folder = tempfile::tempdir().expect("a temporary folder");
    let rc = folder.path().join("rc.elv");
    let script = fs::read_to_string(completions().join("pmc.elv")).expect("the script");
    fs::write(&rc, script + "\nset edit:prompt = { put 'ready:' }\n").expect("a file in the folder");
    check_shell(&format!("elvish -rc {}", rc.display()), ("", "Escape"), "'uprobe/retprobe='");
}

fn need_uprobe_pmu() -> bool {
    let there = Path::new("/sys/bus/event_source/devices/uprobe/format/retprobe").exists();
    kit::need("uprobe-pmu", there, "this kernel has no uprobe PMU")
}
