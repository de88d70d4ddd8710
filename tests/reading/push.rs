//! `pmc export --push`, against a server in the test that applies the recorded rules of the real ones.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on ends there")]

use std::fs;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread::JoinHandle;

use pmc_text::text::hex;
use tempfile::TempDir;

use crate::kit;
use crate::kit::lab::Lab;
use crate::otlp::{program, sums};

/// A request that the server received.
struct Received {
    head: String,
    body: Vec<u8>,
}

/// A server that gives one reply to each connection, in order, and then stops listening.
struct Server {
    url: String,
    thread: JoinHandle<Vec<Received>>,
}

impl Server {
    fn start(replies: Vec<Vec<u8>>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let thread = std::thread::spawn(move || {
            replies.into_iter().map(|reply| answer(&listener.accept().unwrap().0, &reply)).collect()
        });
        Self { url, thread }
    }

    fn received(self) -> Vec<Received> {
        self.thread.join().unwrap()
    }
}

/// Reads a request and writes a reply. The client may close the connection before it has read all of it.
fn answer(mut stream: &TcpStream, reply: &[u8]) -> Received {
    let mut bytes = Vec::new();
    let mut part = [0; 1 << 16];
    loop {
        let end = bytes.windows(4).position(|four| four == b"\r\n\r\n").map(|at| at + 4);
        if let Some(end) = end {
            let head = String::from_utf8(bytes[..end].to_vec()).unwrap();
            let length = head.lines().find_map(|line| line.strip_prefix("Content-Length: ")).unwrap();
            if bytes.len() - end == length.parse::<usize>().unwrap() {
                let _ = stream.write_all(reply);
                return Received { head, body: bytes[end..].to_vec() };
            }
        }
        let read = stream.read(&mut part).unwrap();
        assert!(read > 0, "the request ends early");
        bytes.extend_from_slice(&part[..read]);
    }
}

fn reply(status: &str, body: &str) -> Vec<u8> {
    format!("HTTP/1.1 {status}\r\nContent-Length: {}\r\n\r\n{body}", body.len()).into_bytes()
}

/// A folder with a stored recording of known date.
struct Folder(TempDir);

impl Folder {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        fs::copy(kit::data("perfdata/fp.data"), folder.path().join("perf.data")).unwrap();
        Self(folder)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn command(&self, words: &[&str]) -> Command {
        let mut pmc = kit::pmc();
        pmc.args(["export", "--no-cache"]).args(words).current_dir(self.0.path());
        pmc.env_remove("PMC_PUSH_HEADERS");
        pmc
    }

    fn pmc(&self, words: &[&str]) -> kit::Ran {
        self.command(words).output().unwrap().into()
    }

    /// Names of the files, without the recording.
    fn files(&self) -> Vec<String> {
        let entries = fs::read_dir(self.0.path()).unwrap();
        let mut names: Vec<String> =
            entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.retain(|name| name != "perf.data");
        names.sort();
        names
    }
}

#[test]
fn accepted_push_writes_no_file() {
    let folder = Folder::new();
    let server = Server::start(vec![reply("200 OK", "")]);
    let url = server.url.clone();
    folder
        .pmc(&["--push", &url, "--service", "shop"])
        .expect(0)
        .says(&[&format!("pushed to {url}/v1development/profiles")]);
    let received = server.received();
    let head = &received[0].head;
    assert!(head.starts_with("POST /v1development/profiles HTTP/1.1\r\n"), "{head}");
    for line in [&format!("Host: {}", &url[7..]), "Content-Type: application/x-protobuf", "Connection: close"]
    {
        assert!(head.contains(&format!("\r\n{line}\r\n")), "{head}");
    }
    assert!(folder.files().is_empty(), "{:?}", folder.files());
    // The request is the file.
    folder.pmc(&["-o", "a.otlp", "--service", "shop"]).expect(0);
    assert!(fs::read(folder.path("a.otlp")).unwrap() == received[0].body);
    // The path may be part of the URL.
    let server = Server::start(vec![reply("204 No Content", "")]);
    folder.pmc(&["--push", &format!("otlp={}/base/v1development/profiles/", server.url)]).expect(0);
    assert!(server.received()[0].head.starts_with("POST /base/v1development/profiles HTTP"));
}

#[test]
fn refused_push_is_quoted_and_kept() {
    let folder = Folder::new();
    let json = r#"{"code":"invalid_argument","message":"no \u001b[31m tenant"}"#;
    for (status, body, said, remedy) in [
        ("401 Unauthorized", "no org id\n", "401 (unauthorized): no org id", "PMC_PUSH_HEADERS"),
        ("413 X", "", "413 (content too large)\n", "a shorter --time"),
        ("429 Too Many Requests", json, "429 (too many requests): no ?[31m tenant", "push again later"),
        ("404 Not Found", "404 page not found", "404 (not found)", "service.profilesSupport"),
        ("302 Found", "", "302 (redirect)", "kept: perf."),
    ] {
        let before = folder.files().len();
        let server = Server::start(vec![reply(status, body)]);
        let ran = folder.pmc(&["--push", &server.url]).expect(1);
        ran.says(&["refused the push: HTTP status", said, remedy, "kept: perf.", "curl -H"]);
        let files = folder.files();
        assert_eq!(files.len(), before + 1, "{files:?}");
        let received = server.received().remove(0).body;
        let kept = files.iter().filter(|name| fs::read(folder.path(name)).unwrap() == received);
        assert!(kept.count() > 0);
    }
    assert_eq!(folder.files(), ["perf.1.otlp", "perf.2.otlp", "perf.3.otlp", "perf.4.otlp", "perf.otlp"]);
    // An accepted request whose profiles are rejected: field 1 of field 1 is the number, field 2 the message.
    let server = Server::start(vec![reply("200 OK", "\x0a\x08\x08\x02\x12\x04full")]);
    folder
        .pmc(&["--push", &server.url, "-o", "x.otlp"])
        .expect(1)
        .says(&["rejected 2 profiles: full", "kept: x.otlp"]);
    // Nothing listens.
    let url = server_that_closes();
    folder.pmc(&["--push", &url, "-o", "y.otlp"]).expect(1).says(&[
        "cannot push to",
        "ECONNREFUSED",
        "kept: y.otlp",
    ]);
    // The file cannot be kept either.
    let ran = folder.pmc(&["--push", &url, "-o", "no/y.otlp"]).expect(1);
    ran.says(&["ECONNREFUSED", "the export is not kept", "no/y.otlp"]);
}

/// Returns the URL of a port on which nothing listens.
fn server_that_closes() -> String {
    format!("http://{}", TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap())
}

#[test]
fn hostile_replies_are_bounded() {
    let folder = Folder::new();
    let head = "HTTP/1.1 200 OK\r\n";
    let megabytes = "x".repeat(8 << 20);
    for (reply, said) in [
        (String::new(), "the server closed the connection"),
        ("SSH-2.0-OpenSSH\r\n".to_owned(), "not HTTP: \"SSH-2.0-OpenSSH\""),
        (format!("{head}Content-Length: 5\r\n\r\nabc"), "incomplete or too long"),
        (format!("{head}\r\n{megabytes}"), "incomplete or too long"),
        (
            format!("{head}Transfer-Encoding: chunked\r\n\r\nfffffffffffffff\r\n{megabytes}"),
            "incomplete or too long",
        ),
        (format!("{head}A: {megabytes}"), "longer than 32 KiB"),
        ("HTTP/1.1 100 Continue\r\n\r\n".repeat(1000), "interim replies only"),
        (format!("HTTP/1.1 500 X\r\n\r\n{megabytes}"), "xxx…"),
    ] {
        let server = Server::start(vec![reply.into_bytes()]);
        let ran = folder.pmc(&["--push", &server.url]).expect(1).says(&[said, "kept: "]);
        assert!(ran.stderr.len() < 2000, "{}", ran.stderr);
        server.received();
    }
}

#[test]
fn secrets_are_sent_and_never_shown() {
    let folder = Folder::new();
    fs::write(folder.path("headers"), "# mine\nAuthorization: Bearer s3cret\nX-Scope-OrgID: 7\n").unwrap();
    let server = Server::start(vec![reply("401 X", "")]);
    let ran = folder.pmc(&["--push", &server.url, "--push-headers", "headers"]).expect(1);
    assert!(!ran.stderr.contains("s3cret") && !ran.stdout.contains("s3cret"), "{}", ran.stderr);
    let head = server.received().remove(0).head;
    assert!(head.contains("\r\nAuthorization: Bearer s3cret\r\nX-Scope-OrgID: 7\r\n"), "{head}");

    let server = Server::start(vec![reply("200 OK", "")]);
    let mut pmc = folder.command(&["--push", &server.url]);
    kit::Ran::from(pmc.env("PMC_PUSH_HEADERS", "Authorization: Basic s3cret").output().unwrap()).expect(0);
    assert!(server.received()[0].head.contains("\r\nAuthorization: Basic s3cret\r\n"));

    fs::write(folder.path("wrong"), "Bearer s3cret").unwrap();
    let ran = folder.pmc(&["--push", "http://a", "--push-headers", "wrong"]).expect(2);
    assert!(!ran.says(&["wrong, line 1: the line has no colon"]).stderr.contains("s3cret"));
    folder.pmc(&["--push", "http://a", "--push-headers", "missing"]).expect(1).says(&["missing", "ENOENT"]);
}

/// The types of a pprof file's values, as `go tool pprof` names them, and the sum of each.
fn pprof(lab: &Lab, bytes: &[u8]) -> Vec<(String, String)> {
    let path = lab.path("received.pb.gz");
    fs::write(&path, bytes).unwrap();
    let types = crate::export::said("go", &["tool", "pprof", "-raw", path.to_str().unwrap()]);
    assert!(!types.contains("thread:"), "{types}");
    let line = types.lines().skip_while(|line| !line.starts_with("Samples:")).nth(1).unwrap().to_owned();
    let names = line.split_whitespace().map(|name| name.split("[dflt]").next().unwrap().to_owned());
    names
        .map(|name| {
            let index = name.split('/').next().unwrap();
            let words = ["tool", "pprof", "-symbolize=none", "-unit=ns", "-sample_index", index, "-top"];
            let top = crate::export::said("go", &[&words[..], &[path.to_str().unwrap()]].concat());
            let total = top.lines().find_map(|line| line.split(" of ").nth(1)).unwrap();
            (name.clone(), total.split(' ').next().unwrap().to_owned())
        })
        .collect()
}

/// Returns the field with this number of a protocol buffer message whose fields are all of the wire type 2.
fn field(mut message: &[u8], number: u8) -> Vec<&[u8]> {
    let mut found = Vec::new();
    while let Some((tag, rest)) = message.split_first() {
        assert_eq!(tag & 7, 2, "{}", hex(message, " "));
        let digits = rest.iter().position(|byte| byte & 0x80 == 0).unwrap() + 1;
        let length = rest[..digits].iter().rev().fold(0, |sum, byte| sum << 7 | usize::from(byte & 0x7f));
        let (value, after) = rest[digits..].split_at(length);
        found.extend((tag >> 3 == number).then_some(value));
        message = after;
    }
    found
}

fn label_pairs<'a>(labels: impl IntoIterator<Item = &'a [u8]>) -> Vec<(String, String)> {
    let text = |label: &[u8], number| String::from_utf8(field(label, number)[0].to_vec()).unwrap();
    labels.into_iter().map(|label| (text(label, 1), text(label, 2))).collect()
}

#[test]
fn pprof_reaches_pyroscope_and_parca_in_the_form_they_accept() {
    let Some(lab) = Lab::new() else { return };
    if !kit::need_program("go") {
        return;
    }
    let program = program(&lab);
    let file =
        lab.record("perf.data", &["-e", "cpu-clock,page-faults", "-F", "2000", "-g", "-k", "mono"], &program);
    let file = file.to_str().unwrap();
    let words = ["report", "--json", "--no-cache", file];
    let report: serde_json::Value = serde_json::from_str(&kit::run(&words).expect(0).stdout).unwrap();
    // Parca's status is in a frame at the end of the body.
    let parca = b"HTTP/1.1 200 OK\r\n\r\n\0\0\0\0\0\x80\0\0\0\x10grpc-status: 0\r\n".to_vec();
    for (api, path, ok) in [
        ("pyroscope", "/push.v1.PusherService/Push", reply("200 OK", "{}")),
        ("parca", "/parca.profilestore.v1alpha1.ProfileStoreService/WriteRaw", parca),
    ] {
        let server = Server::start(vec![ok.clone(), ok]);
        let push = format!("{api}={}", server.url);
        kit::run(&[
            "export",
            "--no-cache",
            "--push",
            &push,
            "--service",
            "shop",
            "--service-version",
            "1.4",
            file,
        ])
        .expect(0)
        .says(&[path, "(2 requests)"]);
        let received = server.received();
        for (request, event) in received.iter().zip(report["events"].as_array().unwrap()) {
            assert!(request.head.starts_with(&format!("POST {path} HTTP/1.1")), "{}", request.head);
            let (labels, samples) = if api == "parca" {
                let (frame, message) = request.body.split_at(5);
                assert_eq!(frame[0], 0);
                assert_eq!(u32::from_be_bytes(frame[1..].try_into().unwrap()) as usize, message.len());
                let series = field(message, 2)[0];
                (label_pairs(field(field(series, 1)[0], 1)), field(series, 2))
            } else {
                let series = field(&request.body, 1)[0];
                (label_pairs(field(series, 1)), field(series, 2))
            };
            let is_clock = event["name"] == "cpu-clock";
            let value = |name: &str| labels.iter().find(|(of, _)| of == name).unwrap().1.clone();
            assert_eq!(value("__name__"), if is_clock { "process_cpu" } else { "page_faults" });
            assert_eq!(value("service_name"), "shop");
            assert_eq!(value("service_version"), "1.4");
            assert!(!value("hostname").is_empty());
            let [profile] = samples.as_slice() else { panic!("{} samples", samples.len()) };
            let types = pprof(&lab, field(profile, 1)[0]);
            // Pyroscope rejects the character `-` in types.
            let names: Vec<&str> = types.iter().map(|(name, _)| name.as_str()).collect();
            assert_eq!(
                names,
                ["samples/count", if is_clock { "cpu/nanoseconds" } else { "page_faults/count" }]
            );
            assert_eq!(types[0].1.trim_end_matches("ns"), event["samples"].to_string());
            assert_eq!(types[1].1.trim_end_matches("ns"), event["period"].to_string());
        }
    }
}

#[test]
fn limits_of_pyroscope_are_known_beforehand() {
    let folder = Folder::new();
    let old = fs::File::options().write(true).open(folder.path("perf.data")).unwrap();
    old.set_modified(std::time::SystemTime::now() - std::time::Duration::from_secs(3 * 3600)).unwrap();
    for (api, is_said) in [("pyroscope", true), ("otlp", true), ("parca", false)] {
        let url = format!("{api}={}", server_that_closes());
        let ran = folder.pmc(&["--push", &url]).expect(1);
        assert_eq!(ran.stderr.contains("rejects profiles older than 1 h"), is_said, "{}", ran.stderr);
        assert_eq!(ran.stderr.contains("newest sample is 3 h 0 min old"), is_said, "{}", ran.stderr);
    }
}

#[test]
fn large_push_is_split_and_only_the_rest_is_kept() {
    let Some(lab) = Lab::new() else { return };
    let file = lab.path("perf.data");
    let file = file.to_str().unwrap();
    // Each sample has a time of 8 bytes, so that 410,000 samples exceed one request.
    let words =
        ["record", "-q", "-e", "page-faults,context-switches", "-c", "1", "-k", "monotonic", "-o", file];
    let faults = "import mmap\nfor _ in range(25):\n m = mmap.mmap(-1, 64 << 20)\n for at in range(0, len(m), 4096):\n  m[at] = 1\n m.close()\n";
    if !kit::need_program("python3") {
        return;
    }
    kit::run(&[&words[..], &["--", "python3", "-c", faults]].concat()).expect(0);
    let ok = reply("200 OK", "");
    let server = Server::start(vec![ok, reply("503 X", "full")]);
    let push = ["export", "--no-cache", "--push", &server.url, file, "-o"];
    let out = lab.path("rest.otlp");
    let ran = kit::run(&[&push[..], &[out.to_str().unwrap()]].concat()).expect(1);
    ran.says(&["full", "accepted before: 1 of 2 requests", "kept: ", "rest.otlp"]);
    let received = server.received();
    let mut files = vec![];
    for (number, request) in received[..1].iter().enumerate() {
        files.push(lab.path(&format!("{number}.sent")));
        fs::write(&files[number], &request.body).unwrap();
    }
    assert!(fs::read(&out).unwrap() == received[1].body);
    let numbered = |number: usize| match number {
        0 => out.clone(),
        _ => lab.path(&format!("rest.{number}.otlp")),
    };
    files.extend((0..).map(numbered).take_while(|path| path.exists()));
    assert!(files.len() == 2, "{files:?}");
    assert!(files.iter().all(|path| fs::metadata(path).unwrap().len() <= 3 << 20));
    // Together they are the whole, and each has its own dictionary.
    let Some(parts) = sums(&files) else { return };
    crate::export::export(&lab, Path::new(file), "whole.otlp", &[]);
    let whole = sums(&[lab.path("whole.otlp")]).unwrap();
    let count = |of: &serde_json::Value, event: &str| {
        let profiles = of["profiles"].as_array().unwrap().iter();
        let mut own = profiles.filter(|one| one["attributes"]["pmc.event"] == event);
        own.next().map_or(0, |one| one["times"].as_u64().unwrap())
    };
    for event in ["page-faults", "context-switches"] {
        let all: u64 = parts.iter().map(|part| count(part, event)).sum();
        assert_eq!(all, count(&whole[0], event), "{event}");
    }
    // In order of time.
    let first = |part: &serde_json::Value| part["profiles"][0]["time"].as_u64().unwrap();
    assert!(parts.is_sorted_by_key(first));
}

#[test]
fn curl_sends_https_without_secrets_in_its_arguments() {
    let folder = Folder::new();
    // In place of curl: saves its arguments, its environment and its input, and prints a reply.
    let script = "#!/bin/sh\nprintf '%s\\n' \"$@\" >args\nenv >environment\ncat >config\n\
        file=$(sed -n 's/^data-binary = \"@\\(.*\\)\"$/\\1/p' config)\ncat \"$file\" >body\n\
        printf 'HTTP/1.1 200 OK\\r\\n\\r\\n'\n";
    fs::create_dir(folder.path("bin")).unwrap();
    let curl = folder.path("bin/curl");
    fs::write(&curl, script).unwrap();
    fs::set_permissions(&curl, fs::Permissions::from_mode(0o755)).unwrap();
    let search = format!("{}:/usr/bin:/bin", folder.path("bin").display());
    fs::write(folder.path("headers"), "Authorization: Bearer s3cret\n").unwrap();
    let push = |more: &[&str]| -> kit::Ran {
        let words = [&["--push", "https://example.org", "--push-headers", "headers"], more].concat();
        folder.command(&words).env("PATH", &search).output().unwrap().into()
    };
    let ran = push(&[]).expect(0);
    assert!(!ran.stderr.contains("s3cret") && !ran.stderr.contains("without encryption"), "{}", ran.stderr);
    let text = |name: &str| fs::read_to_string(folder.path(name)).unwrap();
    assert_eq!(text("args"), "--disable\n--config\n-\n");
    assert!(!text("environment").contains("s3cret"));
    let config = text("config");
    assert!(config.contains("header = \"Authorization: Bearer s3cret\"\n"), "{config}");
    assert!(config.contains("url = \"https://example.org/v1development/profiles\"\n"), "{config}");
    folder.pmc(&["-o", "a.otlp"]).expect(0);
    assert!(fs::read(folder.path("body")).unwrap() == fs::read(folder.path("a.otlp")).unwrap());
    // curl fails.
    fs::write(&curl, "#!/bin/sh\ncat >/dev/null\necho 'curl: (6) no \u{1b}[31m host' >&2\nexit 6\n").unwrap();
    push(&["-o", "b.otlp"]).expect(1).says(&[
        "cannot push to https://example.org",
        "curl: (6) no ?[31m host",
        "kept: b.otlp",
    ]);
    // curl is missing.
    fs::remove_file(&curl).unwrap();
    let words = ["--push", "https://example.org", "-o", "c.otlp"];
    let ran: kit::Ran = folder.command(&words).env("PATH", folder.path("bin")).output().unwrap().into();
    ran.expect(1).says(&["https requires curl", "ENOENT", "kept: c.otlp"]);
}

/// An HTTPS server in Python, which saves the body of a request.
const HTTPS: &str = r#"
import http.server, ssl
class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    def log_message(self, *_): pass
    def do_POST(self):
        with open("received", "wb") as file:
            file.write(self.rfile.read(int(self.headers["Content-Length"])))
        authorized = self.headers["Authorization"] == "Bearer s3cret"
        self.send_response(200 if authorized else 401)
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        self.wfile.write(b"4\r\nwho?\r\n0\r\n\r\n" if not authorized else b"0\r\n\r\n")
server = http.server.HTTPServer(("127.0.0.1", 0), Handler)
context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
context.load_cert_chain("cert.pem", "key.pem")
server.socket = context.wrap_socket(server.socket, server_side=True)
print(server.server_port, flush=True)
server.serve_forever()
"#;

#[test]
fn real_curl_pushes_over_tls() {
    if !(kit::need_program("curl") && kit::need_program("openssl") && kit::need_program("python3")) {
        return;
    }
    let folder = Folder::new();
    let words = "req -x509 -newkey rsa:2048 -nodes -keyout key.pem -out cert.pem -days 1 -subj /CN=localhost -addext subjectAltName=DNS:localhost";
    let made = Command::new("openssl").args(words.split(' ')).current_dir(folder.path("")).output().unwrap();
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    let mut python = Command::new("python3");
    python.args(["-c", HTTPS]).current_dir(folder.path("")).stdout(std::process::Stdio::piped());
    let mut server = kit::ProcessGuard::start(&mut python);
    let mut port = String::new();
    std::io::BufRead::read_line(&mut std::io::BufReader::new(server.0.stdout.take().unwrap()), &mut port)
        .unwrap();
    let push = |headers: &str, out: &str| -> kit::Ran {
        let url = format!("https://localhost:{}", port.trim());
        let mut pmc = folder.command(&["--push", &url, "-o", out]);
        pmc.env("PMC_PUSH_HEADERS", headers)
            .env("CURL_CA_BUNDLE", folder.path("cert.pem"))
            .env_remove("https_proxy");
        pmc.output().unwrap().into()
    };
    push("Authorization: Bearer s3cret", "a.otlp").expect(0).says(&["pushed to https://localhost:"]);
    folder.pmc(&["-o", "b.otlp"]).expect(0);
    assert!(fs::read(folder.path("received")).unwrap() == fs::read(folder.path("b.otlp")).unwrap());
    push("", "c.otlp").expect(1).says(&["401 (unauthorized): who?", "kept: c.otlp"]);
    // The certificate is checked.
    let url = format!("https://localhost:{}", port.trim());
    let ran: kit::Ran = folder.command(&["--push", &url]).env_remove("https_proxy").output().unwrap().into();
    ran.expect(1).says(&["cannot push to", "curl: (60)", "kept: "]);
}
