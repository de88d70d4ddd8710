//! Which capabilities the threads of each command have while they parse what other users wrote.

use std::io::Write;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{ChildStdin, Command, Stdio};

use super::{Scene, capabilities};
use crate::kit::burn::busy_shell;
use crate::kit::{self, ProcessGuard};

/// What keeps a command running while the test looks.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Busy {
    /// It measures `sleep`.
    Measuring,
    /// It waits for the rest of a recording on standard input.
    Reading,
    /// It prints more than a pipe holds, and the test does not read it.
    Printing,
    /// It waits for requests.
    Waiting,
    /// It answers a request about a large recording.
    Answering,
}

impl Busy {
    fn name(self) -> &'static str {
        match self {
            Self::Measuring => "measures a command",
            Self::Reading | Self::Answering => "reads a recording",
            Self::Printing => "prints functions of a program",
            Self::Waiting => "waits for requests",
        }
    }
}

const COMMANDS: [(&str, Busy); 27] = [
    ("record -e cpu-clock", Busy::Measuring),
    ("record --call-graph dwarf -e cpu-clock", Busy::Measuring),
    ("profile", Busy::Measuring),
    ("top --stdio -e cpu-clock", Busy::Measuring),
    ("trace", Busy::Measuring),
    ("latency syscalls:sys_enter_write syscalls:sys_exit_write", Busy::Measuring),
    ("sched record", Busy::Measuring),
    ("lock record", Busy::Measuring),
    ("lock contention", Busy::Measuring),
    ("stat -e task-clock", Busy::Measuring),
    ("report --stdio -i -", Busy::Reading),
    ("script -i -", Busy::Reading),
    ("annotate --stdio -i -", Busy::Reading),
    ("diff -", Busy::Reading),
    ("export --format folded -o - -i -", Busy::Reading),
    ("flamegraph -o - -i -", Busy::Reading),
    ("inject -i - -o out.data", Busy::Reading),
    ("archive -i - -o out.archive", Busy::Reading),
    ("evlist -i -", Busy::Reading),
    ("trace -i -", Busy::Reading),
    ("latency syscalls:sys_enter_write syscalls:sys_exit_write -i -", Busy::Reading),
    ("sched latency -i -", Busy::Reading),
    ("lock user -i -", Busy::Reading),
    ("lock contention -i -", Busy::Reading),
    ("probe -F -x PMC", Busy::Printing),
    ("mcp --allow-record", Busy::Waiting),
    ("mcp --allow-record", Busy::Answering),
];

/// The capabilities that pmc keeps for reading (`linux/capability.h`): `CHOWN`, `DAC_OVERRIDE`,
/// `DAC_READ_SEARCH`, `FOWNER`, `KILL`, `SYS_RAWIO`, `SYS_PTRACE`, `SYS_RESOURCE`, `SYSLOG` and
/// `CHECKPOINT_RESTORE`.
const KEPT: [u32; 10] = [0, 1, 2, 3, 5, 17, 19, 24, 34, 40];

/// Starts the command, and the input that keeps it waiting.
fn start((line, busy): (&str, Busy), folder: &Path, stream: &[u8]) -> (ProcessGuard, Option<ChildStdin>) {
    let mut command = kit::pmc();
    command.current_dir(folder).args(line.replace("PMC", kit::binary()).split(' '));
    if busy == Busy::Measuring {
        command.args(["--", "sleep", "600"]);
    } else {
        command.stdin(Stdio::piped());
    }
    command.stdout(Stdio::piped()).stderr(Stdio::null()).process_group(0);
    let mut pmc = ProcessGuard::start(&mut command);
    let mut input = pmc.0.stdin.take();
    match (busy, &mut input) {
        (Busy::Reading, Some(input)) => input.write_all(&stream[..stream.len() / 2]).unwrap(),
        (Busy::Answering, Some(input)) => {
            let call = serde_json::json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call",
                "params": {"name": "hot", "arguments": {"recording": "large.folded"}}});
            writeln!(input, "{call}").unwrap();
        }
        _ => {}
    }
    (pmc, input)
}

#[test]
fn capabilities_of_each_command_are_documented() {
    let Some(scene) = Scene::new() else { return };
    if !kit::need_tracefs("sched") {
        return;
    }
    let kept = KEPT.iter().fold(0, |set, number| set | 1_u64 << number);
    let all = capabilities(std::process::id())[0].1;
    if !kit::need("root", all >> 38 & 1 == 1, "root has no CAP_PERFMON") {
        return;
    }
    let folder = scene.root.path();
    let record = "exec $PMC record -q -e cpu-clock -o - -- sh -c \"$1\"";
    let mut recorder = Command::new("sh");
    recorder.args(["-c", record, "sh", busy_shell(50)]).env("PMC", kit::binary()).current_dir(folder);
    let stream = recorder.output().unwrap().stdout;
    // Reading it takes long enough for a look.
    let lines = (0..400_000).map(|line| format!("main;function_{line} 1\n"));
    std::fs::write(folder.join("large.folded"), lines.collect::<String>()).unwrap();
    let mut table = String::from("| command | while it | capabilities |\n|---|---|---|\n");
    for (line, busy) in COMMANDS {
        let (mut pmc, _input) = start((line, busy), folder, &stream);
        // A command that has opened everything waits for its input.
        let is_reader = |(name, set): &(String, u64)| name == "reader" && set & !kept == 0;
        let look = || Some(capabilities(pmc.id())).filter(|threads| threads.iter().any(is_reader));
        let threads = match busy {
            Busy::Answering => kit::wait_for_some("its reader", look),
            _ => {
                kit::wait_until_idle(pmc.id());
                capabilities(pmc.id())
            }
        };
        assert!(matches!(pmc.0.try_wait(), Ok(None)), "{line} has ended");
        let (reading, other): (Vec<_>, Vec<_>) = threads.iter().partition(|(_, set)| set & !kept == 0);
        let names = |threads: &[&(String, u64)]| {
            let mut names: Vec<_> = threads.iter().map(|(name, _)| format!("`{name}`")).collect();
            names.dedup();
            names.join(", ")
        };
        let has = match (reading.is_empty(), other.is_empty()) {
            (_, true) => "reading".to_owned(),
            (true, false) => "all".to_owned(),
            (false, false) => format!("reading in {}, all in {}", names(&reading), names(&other)),
        };
        let shown = line.replace("PMC", "FILE");
        table += &format!("| `pmc {shown}` | {} | {has} |\n", busy.name());
    }
    kit::table_of_page("docs/reliability.md", "tests/recording/attacked/capabilities.rs", &table);
}
