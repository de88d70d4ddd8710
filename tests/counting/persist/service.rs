//! The holder as a service: minutes without clients, its cost meanwhile, and socket activation.

use std::fs;
use std::os::fd::OwnedFd;
use std::process::{Command, Stdio};
use std::thread::{scope, sleep};
use std::time::Duration;

use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType};
use rustix::process::Signal;

use super::{EXEC, Run, Worker, ready};
use crate::kit::{self, oracle};

#[test]
fn unattended_minute_loses_no_record() {
    if !ready() || !kit::need_program("perf") {
        return;
    }
    let run = Run::held();
    let mut worker = Worker::start(&run);
    let pid = worker.pid();
    let held = [("execs", EXEC), ("clock", "cpu-clock"), ("faults", "page-faults,period=1")];
    for (name, event) in held {
        run.pmc(&["persist", "add", name, "-e", event, "-p", &pid]).expect(0);
    }
    // Idle entries cost nothing, however many there are.
    let idle: Vec<String> = (0..10).map(|number| format!("idle{number}")).collect();
    let sleeper = Worker::start(&run);
    for name in &idle {
        run.pmc(&["persist", "add", name, "-e", EXEC, "-p", &sleeper.pid(), "--pages", "1"]).expect(0);
    }
    worker.work(11);
    let holder = run.holder.as_ref().expect("there is one").id();
    let before = kit::ticks(holder).expect("it lives");
    sleep(Duration::from_secs(60));
    let ticks = kit::ticks(holder).expect("it lives") - before;
    assert!(ticks <= 6, "{ticks} ticks of 10 ms in a minute: a thousandth is 6");
    let status = fs::read_to_string(format!("/proc/{holder}/status")).expect("it lives");
    let own = status.lines().find_map(|line| line.strip_prefix("RssAnon:")?.trim().strip_suffix(" kB"));
    let own: u64 = own.and_then(|own| own.trim().parse().ok()).expect("a number");
    assert!(own < 8 << 10, "{own} KiB beside the rings");
    // Two readers and a snapshot, all in parallel.
    for (name, event) in held {
        let files = ["one", "two", "snapshot"].map(|reader| run.path(&format!("{name}.{reader}")));
        scope(|scope| {
            for file in &files {
                let (run, file) = (&run, file.display().to_string());
                scope.spawn(move || {
                    let event = format!("persistent/{name}/");
                    let words = match file.ends_with("snapshot") {
                        true => vec!["persist", "snapshot", name, "-o", &file],
                        false => vec!["record", "--backlog", "-e", &event, "-o", &file, "--", "true"],
                    };
                    run.pmc(&words).expect(0);
                });
            }
        });
        let event = event.split(',').next().expect("a name");
        let [one, two, snapshot] = files.map(|file| {
            let ran = run.pmc(&["script", "-i", &file.display().to_string()]).expect(0);
            let samples = |text: &str| text.lines().filter(|line| line.contains(event)).count();
            let ours = samples(&ran.stdout);
            for perf in oracle::perfs() {
                let words = ["script", "-F", "comm,event,trace", "-i", file.to_str().expect("plain")];
                assert_eq!(samples(&oracle::says(&perf, &words)), ours, "{}", perf.display());
            }
            ours
        });
        assert!(one == two && two == snapshot, "{name}: {one}, {two}, {snapshot}");
        match name {
            "execs" => assert_eq!(one, 11),
            // One sample per event, as many as were counted.
            "faults" => assert_eq!(one as u64, run.count(name)),
            _ => assert!(one > 0, "no sample of {name}"),
        }
    }
}

#[test]
fn socket_activation_starts_the_holder() {
    if !ready() {
        return;
    }
    let mut run = Run::new();
    fs::create_dir(run.path("run")).expect("a folder");
    let folder = run.path("");
    let listen = |kind: SocketType, name: &str| -> OwnedFd {
        let path = folder.join(name);
        let _ = fs::remove_file(&path);
        let socket = rustix::net::socket_with(AddressFamily::UNIX, kind, SocketFlags::CLOEXEC, None);
        let socket = socket.expect("a socket");
        rustix::net::bind(&socket, &SocketAddrUnix::new(path).expect("a short path")).expect("it is free");
        rustix::net::listen(&socket, 16).expect("it listens");
        socket
    };
    // As systemd does: descriptor 3, plus the process ID it is meant for.
    let hold = |socket: OwnedFd, more: &str| {
        let line = format!(
            "exec 3<&0 </dev/null; LISTEN_PID=$$ LISTEN_FDS=1 exec {} persist hold {more}",
            kit::binary()
        );
        let mut command = Command::new("sh");
        command.args(["-c", &line]).env("PMC_PERSISTENT_DIR", folder.join("run")).env("LC_ALL", "C");
        command.stdin(Stdio::from(socket)).stderr(fs::File::create(folder.join("said")).expect("a file"));
        command.spawn().expect("sh starts")
    };
    let ours = listen(SocketType::SEQPACKET, "run/socket");
    // A client that connects before the holder runs is answered once it runs.
    let early = run.command(&["persist", "rm", "1"]).stderr(Stdio::piped()).spawn().expect("pmc starts");
    let holder = hold(ours.try_clone().expect("a copy"), "");
    let early: kit::Ran = early.wait_with_output().expect("it ends").into();
    early.expect(1).says(&["no persistent event `1`"]);
    run.holder = Some(holder);
    run.pmc(&["persist", "add", "faults", "-e", "page-faults:u"]).expect(0).says(&["faults is held"]);
    run.end(Signal::TERM);
    // The socket remains after the holder ends; its creator reuses it for the next holder.
    assert!(run.path("run/socket").exists());
    let mut next = hold(ours, "--until-empty");
    run.pmc(&["persist", "add", "faults", "-e", "page-faults:u"]).expect(0);
    run.pmc(&["persist", "rm", "faults"]).expect(0);
    assert!(next.wait().expect("it ends with the last").success());
    assert!(run.path("run/socket").exists());
    // Another socket is not accepted.
    for (kind, name) in [(SocketType::STREAM, "run/socket"), (SocketType::SEQPACKET, "other")] {
        assert_eq!(hold(listen(kind, name), "").wait().expect("it ends").code(), Some(1));
        let said = fs::read_to_string(run.path("said")).expect("it said something");
        assert!(said.contains("ListenSequentialPacket="), "{said}");
    }
}
