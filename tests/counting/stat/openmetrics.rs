//! OpenMetrics: the text parsed by its grammar, the scrape file that is never half there, the page that is served.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Stdio};

use super::{kit, start, wait_for};

/// Reads an exposition as the specification has it: families with their metadata before their samples, `# EOF` at the end.
#[track_caller]
fn parse(text: &str) -> BTreeMap<String, f64> {
    assert!(text.ends_with("# EOF\n"), "{text}");
    let mut family = String::new();
    let mut samples = BTreeMap::new();
    for line in text.strip_suffix("# EOF\n").unwrap().lines() {
        if let Some(metadata) = line.strip_prefix("# ") {
            let words: Vec<&str> = metadata.splitn(3, ' ').collect();
            assert!(["TYPE", "UNIT", "HELP"].contains(&words[0]) && words.len() == 3, "{line}");
            if words[0] == "TYPE" {
                assert!(["counter", "gauge"].contains(&words[2]), "{line}");
                family = words[1].to_owned();
            }
            assert_eq!(words[1], family, "metadata of another family: {line}");
        } else {
            let (name, value) = line.rsplit_once(' ').unwrap();
            let base = name.split('{').next().unwrap();
            assert!(base == family || base == format!("{family}_total"), "{line} in family {family}");
            let old = samples.insert(name.to_owned(), value.parse().unwrap());
            assert!(old.is_none(), "twice: {line}");
        }
    }
    samples
}

#[test]
fn a_form_of_its_own() {
    if !kit::need_perf_events() {
        return;
    }
    let ran = kit::run(&["stat", "--openmetrics", "-o", "-", "-e", "task-clock,page-faults", "--", "true"]);
    let samples = parse(&ran.expect(0).stdout);
    assert!(samples["pmc_events_total{event=\"page-faults\"}"] > 10.0, "{samples:?}");
    let seconds = samples["pmc_event_time_seconds_total{event=\"task-clock\"}"];
    assert!(seconds > 0.0 && seconds < 1.0, "{samples:?}");
}

#[test]
fn a_scrape_file_is_whole_at_any_moment_and_only_grows() {
    if !kit::need_perf_events() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("pmc.prom");
    let option = format!("--openmetrics={}", file.display());
    let script = "for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do dd if=/dev/zero of=/dev/null bs=1M count=1 2>/dev/null; sleep 0.03; done";
    let mut child = start(&[
        "stat",
        &option,
        "-I",
        "10",
        "-o",
        "/dev/null",
        "-e",
        "page-faults",
        "--",
        "sh",
        "-c",
        script,
    ]);
    let mut last = 0.0;
    let mut seen = 0;
    while child.try_wait().unwrap().is_none() {
        if let Ok(text) = std::fs::read_to_string(&file) {
            let samples = parse(&text);
            let now = samples.get("pmc_events_total{event=\"page-faults\"}").copied().unwrap_or(0.0);
            assert!(now >= last, "{now} after {last}");
            (last, seen) = (now, seen + 1);
        }
        std::thread::sleep(std::time::Duration::from_millis(3));
    }
    assert!(seen > 3 && last > 0.0, "{seen} readings, {last}");
    let left: Vec<_> = std::fs::read_dir(dir.path()).unwrap().flatten().map(|e| e.file_name()).collect();
    assert_eq!(left, ["pmc.prom"], "nothing else is left behind");
}

#[test]
fn the_page_is_served() {
    if !kit::need_perf_events() {
        return;
    }
    let mut child = start(&[
        "stat",
        "--listen",
        "127.0.0.1:0",
        "-I",
        "20",
        "-o",
        "/dev/null",
        "-e",
        "page-faults",
        "--",
        "sleep",
        "30",
    ]);
    let mut stderr = BufReader::new(child.stderr.take().unwrap());
    let mut line = String::new();
    stderr.read_line(&mut line).unwrap();
    let address = line.trim().split("http://").nth(1).unwrap().split('/').next().unwrap().to_owned();
    let ask = |request: &str| -> String {
        let mut stream = TcpStream::connect(&address).unwrap();
        stream.write_all(request.as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    };
    let mut page = String::new();
    wait_for("a page with counts", || {
        page = ask("GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n");
        page.contains("pmc_events_total")
    });
    let (head, body) = page.split_once("\r\n\r\n").unwrap();
    assert!(head.starts_with("HTTP/1.1 200 OK"), "{head}");
    assert!(head.contains("application/openmetrics-text; version=1.0.0"), "{head}");
    assert!(head.contains(&format!("Content-Length: {}", body.len())), "{head}");
    assert!(parse(body)["pmc_events_total{event=\"page-faults\"}"] > 0.0);
    assert!(ask("GET /other HTTP/1.1\r\n\r\n").starts_with("HTTP/1.1 404"));
    assert!(ask("POST /metrics HTTP/1.1\r\n\r\n").starts_with("HTTP/1.1 405"));
    assert!(!ask("HEAD /metrics HTTP/1.1\r\n\r\n").contains("# EOF"));
    // Nonsense and a client that says nothing harm nobody.
    let _silent = TcpStream::connect(&address).unwrap();
    let mut rude = TcpStream::connect(&address).unwrap();
    let _ = rude.write_all(&[0xff; 20_000]);
    drop(rude);
    assert!(ask("GET / HTTP/1.0\r\n\r\n").contains("# EOF"));
    rustix::process::kill_process(rustix::process::Pid::from_child(&child), rustix::process::Signal::TERM)
        .unwrap();
    child.wait().unwrap();

    kit::run(&["stat", "--listen", "256.0.0.1:1", "-I", "20", "--", "true"])
        .expect(1)
        .says(&["--listen 256.0.0.1:1"]);
}

const OPENMETRICS_AGENT: &str = "/usr/lib/pcp/pmdas/openmetrics/pmdaopenmetrics.python";
const PMCD: &str = "/usr/lib/pcp/bin/pmcd";

/// PCP's collector with its OpenMetrics agent, in a folder of their own, reached through a socket there.
struct Collector {
    dir: tempfile::TempDir,
    pmcd: Option<std::process::Child>,
}

impl Collector {
    /// Debian's python, of which the packages are, before any other.
    const PATH: (&'static str, &'static str) = ("PATH", "/usr/bin:/bin");

    fn need() -> bool {
        let is_there = Path::new(PMCD).exists()
            && Path::new(OPENMETRICS_AGENT).exists()
            && Command::new("/usr/bin/python3")
                .args(["-c", "import pcp, requests"])
                .output()
                .is_ok_and(|o| o.status.success());
        let why = "PCP's openmetrics agent is not installed (Debian: pcp, python3-pcp, python3-requests)";
        kit::need("pcp-openmetrics", is_there, why) && kit::need_root()
    }

    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        for folder in ["config.d", "config/pmda"] {
            std::fs::create_dir_all(dir.path().join(folder)).unwrap();
        }
        Self { dir, pmcd: None }
    }

    fn path(&self, name: &str) -> String {
        self.dir.path().join(name).display().to_string()
    }

    /// A source of metrics: a script if it may be executed, else a file whose first line is the URL.
    fn source(&self, name: &str, text: &str) {
        let path = self.dir.path().join("config.d").join(name);
        std::fs::write(&path, text).unwrap();
        let mode = if name.ends_with(".sh") { 0o700 } else { 0o600 };
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
    }

    fn command(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        command.env(Self::PATH.0, Self::PATH.1).env("LC_ALL", "C.UTF-8").stdin(Stdio::null());
        for name in ["PCP_VAR_DIR", "PCP_TMP_DIR", "PCP_RUN_DIR", "PCP_LOG_DIR"] {
            command.env(name, self.dir.path());
        }
        command
    }

    fn start(&mut self) {
        std::fs::write(self.path("names"), "root {\n\topenmetrics\t144:*:*\n}\n").unwrap();
        let agent = format!(
            "pmcd 2 dso pmcd_init /usr/lib/pcp/pmdas/pmcd/pmda_pmcd.so\n\
             openmetrics 144 pipe binary notready /usr/bin/pmpython {OPENMETRICS_AGENT} -t 60 -c {} -l {}\n",
            self.path("config.d"),
            self.path("agent.log"),
        );
        std::fs::write(self.path("conf"), agent).unwrap();
        let mut command = self.command(PMCD);
        // Its socket is what is used; whether it gets the port too is no matter.
        command.args([
            "-f",
            "-A",
            "-U",
            "root",
            "-H",
            "here",
            "-i",
            "127.0.0.1",
            "-p",
            "44399",
            "-q",
            "60",
            "-t",
            "60",
        ]);
        for (option, file) in
            [("-n", "names"), ("-c", "conf"), ("-s", "socket"), ("-l", "log"), ("-x", "fatal")]
        {
            command.arg(option).arg(self.path(file));
        }
        self.pmcd = Some(command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap());
    }

    /// What `pminfo` shows of a metric and all below it.
    fn pminfo(&self, options: &[&str], metric: &str) -> String {
        let mut command = self.command("pminfo");
        command.arg("-h").arg(format!("unix://{}", self.path("socket"))).args(options).arg(metric);
        String::from_utf8_lossy(&command.output().unwrap().stdout).into_owned()
    }

    /// The values of a metric by the agent's names of its instances, without their numbers.
    fn values(&self, metric: &str) -> BTreeMap<String, f64> {
        let shown = self.pminfo(&["-f"], metric);
        let instances = shown.lines().filter_map(|line| {
            let (name, value) = line.trim().rsplit_once("value ")?;
            let name = name.split_once(" or \"").map_or("", |(_, name)| name.trim_end_matches("\"] "));
            Some((name.split_once(' ').map_or("", |(_, name)| name).to_owned(), value.parse().ok()?))
        });
        instances.collect()
    }
}

impl Drop for Collector {
    fn drop(&mut self) {
        let Some(mut pmcd) = self.pmcd.take() else { return };
        let _ = rustix::process::kill_process(
            rustix::process::Pid::from_child(&pmcd),
            rustix::process::Signal::TERM,
        );
        let _ = pmcd.wait();
    }
}

/// The three ways in which docs/output-formats.md says that PCP gets at the counts.
#[test]
fn pcps_openmetrics_agent_scrapes_a_script_a_file_and_the_page() {
    if !Collector::need() || !kit::need_perf_events() {
        return;
    }
    let mut collector = Collector::new();
    // A file as a run has left it, of a thread with a name that wants every kind of care.
    let file = collector.path("pmc.prom");
    let rude = collector.path("a\"b\\ {x=,}");
    std::fs::copy("/bin/sh", &rude).unwrap();
    let mut busy = Command::new(&rude).args(["-c", "while :; do :; done"]).spawn().unwrap();
    let pid = busy.id().to_string();
    let comm = format!("/proc/{pid}/comm");
    wait_for("its name", || std::fs::read_to_string(&comm).is_ok_and(|comm| comm == "a\"b\\ {x=,}\n"));
    let option = format!("--openmetrics={file}");
    let half = "half a fault=page-faults/2";
    let events = "page-faults,task-clock,context-switches";
    let words =
        ["stat", &option, "-o", "/dev/null", "--per-thread", "-p", &pid, "-e", events, "--metric", half];
    wait_for("its counts", || {
        kit::run(&[&words[..], &["--", "true"]].concat()).expect(0);
        !std::fs::read_to_string(&file).unwrap().contains("pmc_event_missing")
    });
    busy.kill().unwrap();
    busy.wait().unwrap();
    collector.source("file.url", &format!("file://{file}\n"));
    // A script that counts whenever it is asked.
    let script = format!(
        "#!/bin/sh\nexec {} stat --openmetrics -o - -a -A -e page-faults,task-clock -- true\n",
        kit::binary()
    );
    collector.source("script.sh", &script);
    // A page that is served.
    let mut counting = start(&[
        "stat",
        "--listen",
        "127.0.0.1:0",
        "-I",
        "20",
        "-o",
        "/dev/null",
        "-e",
        "page-faults,task-clock",
        "--",
        "sleep",
        "1000",
    ]);
    let mut line = String::new();
    BufReader::new(counting.stderr.take().unwrap()).read_line(&mut line).unwrap();
    collector
        .source("page.url", &format!("{}\n", line.trim().strip_prefix("pmc: metrics at ").expect(&line)));
    collector.start();

    let all = |source: &str| format!("openmetrics.{source}.pmc_event_enabled_seconds_total");
    for source in ["file", "script", "page"] {
        wait_for(source, || !collector.values(&all(source)).is_empty());
    }

    // Every sample of the file is there, under the name that the agent makes of its labels.
    let samples = parse(&std::fs::read_to_string(&file).unwrap());
    let labels = format!("comm:a\"b\\ {{x=,}} event:page-faults tid:{pid}");
    assert!(collector.values("openmetrics.file.pmc_events_total").contains_key(&labels));
    let mut families: Vec<&str> = samples.keys().map(|name| name.split('{').next().unwrap()).collect();
    families.sort_unstable();
    families.dedup();
    assert_eq!(families.len(), 6, "{families:?}");
    for family in families {
        let mut want: Vec<f64> = samples
            .iter()
            .filter(|(name, _)| name.split('{').next() == Some(family))
            .map(|(_, v)| *v)
            .collect();
        let mut got: Vec<f64> =
            collector.values(&format!("openmetrics.file.{family}")).into_values().collect();
        want.sort_by(f64::total_cmp);
        got.sort_by(f64::total_cmp);
        let is_same = |(a, b): (&f64, &f64)| (a - b).abs() <= a.abs() * 1e-4;
        assert!(want.len() == got.len() && want.iter().zip(&got).all(is_same), "{family}: {want:?}, {got:?}");
    }
    // What kind of number it is, its unit and its help arrive.
    let seconds = collector.pminfo(&["-d", "-T"], "openmetrics.file.pmc_event_time_seconds_total");
    for word in ["Semantics: counter", "Units: sec", "Time that a clock event measured."] {
        assert!(seconds.contains(word), "{seconds}");
    }
    let metric = collector.pminfo(&["-d"], "openmetrics.file.pmc_metric");
    assert!(metric.contains("Semantics: instant"), "{metric}");

    let of_cpu_0 = collector.values("openmetrics.script.pmc_events_total");
    assert!(of_cpu_0.contains_key("cpu:0 event:page-faults"), "{of_cpu_0:?}");
    // Counts of the page grow from fetch to fetch.
    let elapsed =
        || collector.values("openmetrics.page.pmc_elapsed_seconds_total").into_values().next().unwrap();
    let first = elapsed();
    wait_for("a later page", || elapsed() > first);
    rustix::process::kill_process(rustix::process::Pid::from_child(&counting), rustix::process::Signal::TERM)
        .unwrap();
    counting.wait().unwrap();
}
