//! pmc next to Performance Co-Pilot's own programs. PCP's openmetrics agent reads pmc's output, and pmc
//! counts the events in the configuration of PCP's hardware counter agent. Each collector (`pmcd`) has its
//! own folder with a socket.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Stdio};

use super::openmetrics::parse;
use super::{kit, start, wait_for};

const OPENMETRICS_AGENT: &str = "/usr/lib/pcp/pmdas/openmetrics/pmdaopenmetrics.python";
const PERFEVENT: &str = "/usr/lib/pcp/pmdas/perfevent/pmdaperfevent";
const PMCD: &str = "/usr/lib/pcp/bin/pmcd";

/// PCP's collector with its OpenMetrics agent, in a private folder, reached through a socket in it.
struct Collector {
    dir: tempfile::TempDir,
    pmcd: Option<std::process::Child>,
}

impl Collector {
    /// Debian's python, to which the packages belong, must come first.
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
        for folder in ["config.d", "config/pmda", "perfevent"] {
            std::fs::create_dir_all(dir.path().join(folder)).unwrap();
        }
        Self { dir, pmcd: None }
    }

    fn path(&self, name: &str) -> String {
        self.dir.path().join(name).display().to_string()
    }

    /// Adds a source of metrics: a script if it is executable, otherwise a file whose first line is the URL.
    fn source(&self, name: &str, text: &str) {
        let path = self.dir.path().join("config.d").join(name);
        std::fs::write(&path, text).unwrap();
        let mode = if name.ends_with(".sh") { 0o700 } else { 0o600 };
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
    }

    fn command(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        command.env(Self::PATH.0, Self::PATH.1).env("LC_ALL", "C.UTF-8").stdin(Stdio::null());
        for name in ["PCP_VAR_DIR", "PCP_TMP_DIR", "PCP_RUN_DIR", "PCP_LOG_DIR", "PCP_PMDAS_DIR"] {
            command.env(name, self.dir.path());
        }
        command
    }

    /// Starts the collector with one agent, given its root name, its domain and its command line.
    fn start(&mut self, root: &str, domain: u32, agent: &str) {
        std::fs::write(self.path("names"), format!("root {{\n\t{root}\t{domain}:*:*\n}}\n")).unwrap();
        let agent = format!(
            "pmcd 2 dso pmcd_init /usr/lib/pcp/pmdas/pmcd/pmda_pmcd.so\n{root} {domain} pipe {agent} -l {}\n",
            self.path("agent.log"),
        );
        std::fs::write(self.path("conf"), agent).unwrap();
        let mut command = self.command(PMCD);
        // The tests use its socket, so they do not care whether it gets the port.
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

    /// Returns the output of `pminfo` for a metric and its descendants.
    fn pminfo(&self, options: &[&str], metric: &str) -> String {
        let mut command = self.command("pminfo");
        command.arg("-h").arg(format!("unix://{}", self.path("socket"))).args(options).arg(metric);
        String::from_utf8_lossy(&command.output().unwrap().stdout).into_owned()
    }

    /// Returns a metric's values by the agent's instance names, without the instance numbers.
    fn values(&self, metric: &str) -> BTreeMap<String, f64> {
        let shown = self.pminfo(&["-f"], metric);
        let instances = shown.lines().filter_map(|line| {
            let (name, value) = line.trim().rsplit_once("value ")?;
            let name = name.split_once(" or \"").map_or("", |(_, name)| name.trim_end_matches("\"] "));
            Some((name.split_once(' ').map_or(name, |(_, name)| name).to_owned(), value.parse().ok()?))
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

/// The three ways to get the counts into PCP that docs/output-formats.md describes.
#[test]
fn pcp_openmetrics_agent_scrapes_script_file_and_page() {
    if !Collector::need() || !kit::need_perf_events() {
        return;
    }
    let mut collector = Collector::new();
    // A file left by a run, for a thread whose name needs every kind of escaping.
    let file = collector.path("pmc.prom");
    let rude = collector.path("a\"b\\ {x=,}");
    kit::copy_program("/bin/sh", &rude);
    let mut busy = Command::new(&rude).args(["-c", "while :; do :; done"]).spawn().unwrap();
    let pid = busy.id().to_string();
    kit::wait_for_program(busy.id(), "a\"b\\ {x=,}");
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
    // A script that counts on each request.
    let script = format!(
        "#!/bin/sh\nexec {} stat --openmetrics -o - -a -A -e page-faults,task-clock -- true\n",
        kit::binary()
    );
    collector.source("script.sh", &script);
    // A served page.
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
    let agent = format!(
        "binary notready /usr/bin/pmpython {OPENMETRICS_AGENT} -t 60 -c {}",
        collector.path("config.d")
    );
    collector.start("openmetrics", 144, &agent);

    let all = |source: &str| format!("openmetrics.{source}.pmc_event_enabled_seconds_total");
    for source in ["file", "script", "page"] {
        wait_for(source, || !collector.values(&all(source)).is_empty());
    }

    // Every sample of the file is present, under the name that the agent makes from its labels.
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
    // The kind of number, its unit and its help arrive.
    let seconds = collector.pminfo(&["-d", "-T"], "openmetrics.file.pmc_event_time_seconds_total");
    for word in ["Semantics: counter", "Units: sec", "Time measured by a clock event."] {
        assert!(seconds.contains(word), "{seconds}");
    }
    let metric = collector.pminfo(&["-d"], "openmetrics.file.pmc_metric");
    assert!(metric.contains("Semantics: instant"), "{metric}");

    let of_cpu_0 = collector.values("openmetrics.script.pmc_events_total");
    assert!(of_cpu_0.contains_key("cpu:0 event:page-faults"), "{of_cpu_0:?}");
    // The page's counts grow from fetch to fetch.
    let elapsed =
        || collector.values("openmetrics.page.pmc_elapsed_seconds_total").into_values().next().unwrap();
    let first = elapsed();
    wait_for("a later page", || elapsed() > first);
    rustix::process::kill_process(rustix::process::Pid::from_child(&counting), rustix::process::Signal::TERM)
        .unwrap();
    counting.wait().unwrap();
}

/// With the configuration of PCP's agent, pmc counts the same events on the same CPUs.
#[test]
fn perfevent_conf_counts_match_the_pcp_agent() {
    let is_there = Path::new(PMCD).exists() && Path::new(PERFEVENT).exists();
    if !kit::need("pcp", is_there, "PCP's pmdaperfevent is not installed (Debian: pcp)")
        || !kit::need_root()
        || !kit::need_perf_events()
    {
        return;
    }
    let mut collector = Collector::new();
    let conf = collector.path("perfevent/perfevent.conf");
    // Derived events come before dynamic ones, because the agent of PCP 6.0 otherwise mixes them up.
    let text = "[no_such_pmu]\nNO_SUCH_EVENT\n\
                [perf] # the generic PMU\nPERF_COUNT_SW_PAGE_FAULTS\nminor-faults node\n\
                perf::PERF_COUNT_SW_CONTEXT_SWITCHES LAST\n\
                [several:derived]\nno-such-event\n||\nPERF_COUNT_SW_PAGE_FAULTS 2.5\n\
                [dynamic]\nsoftware.page-faults\nsoftware.context-switches\n";
    let last = pmc_sys::host::Host::live().online_cpus().iter().last().unwrap();
    std::fs::write(&conf, text.replace("LAST", &last.to_string())).unwrap();
    collector.start("perfevent", 127, &format!("binary {PERFEVENT} -U root -d 127"));
    let metric = |event: &str| {
        let event = event.replace([':', '-'], "_");
        if event == "several" {
            return "perfevent.derived.several.value".to_owned();
        }
        format!("perfevent.hwcounters.{event}.value")
    };
    // The agent enables its counters some time after its start.
    wait_for("counts", || {
        collector.values(&metric("software.page-faults")).values().any(|faults| *faults > 0.0)
    });
    let events = [
        "PERF_COUNT_SW_PAGE_FAULTS",
        "minor-faults",
        "perf::PERF_COUNT_SW_CONTEXT_SWITCHES",
        "software.page-faults",
        "software.context-switches",
    ];
    let read = || events.map(|event| collector.values(&metric(event)));
    let before = read();
    let words = ["stat", "-a", "-A", "--json=2", "-o", "-", "--perfevent-conf", &conf, "--", "true"];
    let ran = kit::run(&words).expect(0);
    let after = read();
    let document: serde_json::Value = serde_json::from_str(&ran.stdout).unwrap();
    let names: Vec<_> =
        document["events"].as_array().unwrap().iter().map(|e| e["name"].as_str().unwrap()).collect();
    assert_eq!(names, events, "in the order of the file");
    for (index, event) in events.iter().enumerate() {
        let rows = document["total"]["rows"].as_array().unwrap();
        let counted: BTreeMap<String, f64> = rows
            .iter()
            .filter_map(|row| {
                let value = row["values"].as_array().unwrap().iter().find(|value| value["event"] == index)?;
                Some((format!("cpu{}", row["place"]["cpu"]), value["value"].as_f64().unwrap()))
            })
            .collect();
        assert_eq!(
            counted.keys().collect::<Vec<_>>(),
            before[index].keys().collect::<Vec<_>>(),
            "{event} on the same CPUs"
        );
        // The agent has counted for longer.
        for (cpu, count) in counted {
            let agents = after[index][&cpu] - before[index][&cpu];
            assert!(count <= agents, "{event} on {cpu}: {count}, the agent's {agents}");
        }
    }
    // Derived: two and a half times the page faults, at each place.
    for row in document["total"]["rows"].as_array().unwrap() {
        let faults = row["values"].as_array().unwrap().iter().find(|value| value["event"] == 0).unwrap();
        assert_eq!(row["metrics"][0]["name"], "several");
        assert_eq!(row["metrics"][0]["value"].as_f64().unwrap(), faults["value"].as_f64().unwrap() * 2.5);
    }
    let derived = collector.values(&metric("several"));
    assert_eq!(derived.len(), before[0].len(), "{}", collector.pminfo(&["-f"], "perfevent.derived"));
}
