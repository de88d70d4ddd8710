//! OpenMetrics: the text parsed by its grammar, the scrape file that is never incomplete, the served page.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;

use super::{kit, start, wait_for};

/// Parses an exposition as the specification defines it: families with their metadata before their samples,
/// `# EOF` at the end.
#[track_caller]
pub(super) fn parse(text: &str) -> BTreeMap<String, f64> {
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
fn openmetrics_output_is_valid() {
    if !crate::kit::need_kernel_mode() {
        return;
    }
    let ran = kit::run(&["stat", "--openmetrics", "-o", "-", "-e", "task-clock,page-faults", "--", "true"]);
    let samples = parse(&ran.expect(0).stdout);
    assert!(samples["pmc_events_total{event=\"page-faults\"}"] > 10.0, "{samples:?}");
    let seconds = samples["pmc_event_time_seconds_total{event=\"task-clock\"}"];
    assert!(seconds > 0.0 && seconds < 1.0, "{samples:?}");
}

#[test]
fn scrape_file_is_always_complete_and_monotonic() {
    if !crate::kit::need_kernel_mode() {
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
    kit::wait_for("its end", || {
        if let Ok(text) = std::fs::read_to_string(&file) {
            let samples = parse(&text);
            let now = samples.get("pmc_events_total{event=\"page-faults\"}").copied().unwrap_or(0.0);
            assert!(now >= last, "{now} after {last}");
            (last, seen) = (now, seen + 1);
        }
        child.try_wait().unwrap().is_some()
    });
    assert!(seen > 3 && last > 0.0, "{seen} readings, {last}");
    let left: Vec<_> = std::fs::read_dir(dir.path()).unwrap().flatten().map(|e| e.file_name()).collect();
    assert_eq!(left, ["pmc.prom"], "nothing else is left behind");
}

#[test]
fn openmetrics_page_is_served() {
    if !crate::kit::need_kernel_mode() {
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
    // Each client may take a second, but others do not wait for it. Neither do they wait for clients that
    // read nothing.
    let crowd: Vec<TcpStream> = (0..500)
        .map(|number| {
            let mut stream = TcpStream::connect(&address).unwrap();
            let part = if number % 2 == 0 { "GET /met" } else { "GET /metrics HTTP/1.1\r\n\r\n" };
            // The server closes the oldest connections.
            let _ = stream.write_all(part.as_bytes());
            stream
        })
        .collect();
    let mut last = TcpStream::connect(&address).unwrap();
    last.set_read_timeout(Some(std::time::Duration::from_secs(60))).unwrap();
    last.write_all(b"GET / HTTP/1.0\r\n\r\n").unwrap();
    let mut answer = String::new();
    last.read_to_string(&mut answer).expect("an answer before 500 clients have timed out");
    assert!(answer.contains("# EOF"), "{answer}");
    drop(crowd);
    // Invalid requests and a silent client must not affect other clients.
    let _silent = TcpStream::connect(&address).unwrap();
    let mut rude = TcpStream::connect(&address).unwrap();
    let _ = rude.write_all(&[0xff; 20_000]);
    drop(rude);
    assert!(ask("GET / HTTP/1.0\r\n\r\n").contains("# EOF"));
    // A client that sends one byte now and then gets no more time than others. It is served first.
    let mut slow = TcpStream::connect(&address).unwrap();
    let sending = std::thread::spawn(move || {
        let pause = std::time::Duration::from_millis(50);
        (0..4000).find(|_| {
            kit::let_pass(pause);
            slow.write_all(b"x").is_err()
        })
    });
    assert!(ask("GET / HTTP/1.0\r\n\r\n").contains("# EOF"));
    assert!(sending.join().unwrap().is_some(), "the slow client was never left");
    rustix::process::kill_process(rustix::process::Pid::from_child(&child), rustix::process::Signal::TERM)
        .unwrap();
    child.wait().unwrap();

    kit::run(&["stat", "--listen", "256.0.0.1:1", "-I", "20", "--", "true"])
        .expect(1)
        .says(&["--listen 256.0.0.1:1"]);
}
