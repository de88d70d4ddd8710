//! What other processes and users send while pmc runs: settings, orders, requests over HTTP, and the messages
//! between a holder of persistent events and its clients.

use std::io::Read;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;
use std::sync::OnceLock;

use pmc::config::{self, Config};
use pmc_formats::export::push::reply::read_reply;
use pmc_formats::export::push::said;
use pmc_persist::holder::hold;
use pmc_recording::persistent::PersistentEntry;
use pmc_recording::persistent::client::ask;
use pmc_recording::persistent::directory::RunDirectory;
use pmc_recording::persistent::message::HolderRequest;
use pmc_recording::recording::control::CommandLines;
use pmc_recording::recording::file::snapshot;
use pmc_sys::host::Host;
use pmc_view::openmetrics;
use rustix::fs::{MemfdFlags, memfd_create};
use rustix::io::retry_on_intr;
use rustix::net::sockopt::Timeout;
use rustix::net::sockopt::set_socket_timeout;
use rustix::net::{
    AddressFamily, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage, SendFlags, SocketAddrUnix,
    SocketType, accept, bind, connect, listen, recv, sendmsg, socket,
};

use crate::with_text;

/// perf's settings, as text and in files: those of the system, and those of a user, which the input's first byte
/// makes a link or a damaged file. A setting that is written can be read, and the others stay the same.
pub fn settings(data: &[u8]) {
    let read = |text: &str| {
        let mut config = Config::default();
        config.add(text, Path::new("file"));
        settings_of(&config)
    };
    let mut own = Vec::new();
    with_text(data, |text| {
        let before = read(text);
        // `pmc config` sets no other keys.
        let is_key = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "-_.".contains(c);
        own =
            before.iter().map(|(key, _)| key.clone()).filter(|key| key.chars().all(is_key)).take(4).collect();
        let value: String = text.chars().rev().take(20).collect();
        let given =
            [("report.children", "no"), ("a.b", "x ; \"\\\n"), ("top.call-graph", ""), ("a.b", &value)];
        let given = given.into_iter().chain(own.iter().map(|key| (key.as_str(), value.as_str())));
        for (key, value) in given {
            let changed = config::changed(text, key, value);
            check_change(&before, &read(&changed), key, value, &changed);
        }
    });

    let folder = crate::folder();
    let [system, user, link] = ["system", "user", "link"].map(|name| folder.path().join(name));
    let write = |path: &Path, bytes: &[u8]| std::fs::write(path, bytes).expect("a file");
    let (first, second) = data.split_at(data.len() / 2);
    write(&system, first);
    let user = match data.first().map_or(0, |byte| byte % 8) {
        0 => user,
        1 => {
            std::os::unix::fs::symlink(&user, &link).expect("a link");
            link
        }
        2 => folder.path().to_owned(),
        _ => {
            write(&user, second);
            user
        }
    };
    let files = [system, user];
    let config = Config::load(&files);
    assert!(
        config
            .left_out
            .iter()
            .all(|said| files.iter().any(|file| said.starts_with(file.to_str().expect("a name"))))
    );
    let before = settings_of(&config);
    for key in own.iter().map(String::as_str).chain(["report.children", "report.percent-limit"]) {
        let _ = config.is(key).map_err(|error| error.to_string());
        let number = config.read(key, "a number", |value| value.parse::<f64>().ok());
        let _ = number.map_err(|error| error.to_string());
        let whole = std::fs::read(&files[1]);
        match config::set(&files[1], key, "yes") {
            Ok(()) => {
                let after = Config::load(&files);
                assert!(matches!(after.is(key), Ok(Some(true))), "{key} in {:?}", std::fs::read(&files[1]));
                check_change(&before, &settings_of(&after), key, "yes", key);
                write(&files[1], &whole.unwrap_or_default());
            }
            Err(error) => {
                assert!(!error.to_string().is_empty());
                assert_eq!(std::fs::read(&files[1]).ok(), whole.ok(), "the file changed");
            }
        }
    }
}

fn settings_of(config: &Config) -> Vec<(String, String)> {
    config.all().map(|(key, value)| (key.to_owned(), value.to_owned())).collect()
}

/// Checks that a key has its new value, and that the other settings are the same as before.
fn check_change(before: &[(String, String)], after: &[(String, String)], key: &str, value: &str, text: &str) {
    assert!(after.iter().any(|(name, now)| name == key && now == value), "{key}={value:?} in {text:?}");
    let same = |all: &[(String, String)]| {
        let mut rest: Vec<_> = all.iter().filter(|(name, _)| name != key).cloned().collect();
        rest.sort();
        rest
    };
    assert_eq!(same(before), same(after), "{key} in {text:?}");
}

/// Bytes of a control FIFO, which mean the same however they are split.
pub fn orders(data: &[u8]) {
    let read = |size: usize| {
        let (mut lines, mut all) = (CommandLines::default(), Vec::new());
        data.chunks(size).for_each(|part| lines.add(part, |order| all.push(order)));
        all
    };
    assert_eq!(read(4096), read(7));
}

/// An HTTP request of a scraper.
pub fn http(data: &[u8]) {
    let answer = openmetrics::http_response(data, "# EOF\n");
    let text = str::from_utf8(&answer).expect("the request is not part of the answer");
    let (head, body) = text.split_once("\r\n\r\n").expect("a head");
    let length = head.lines().find_map(|line| line.strip_prefix("Content-Length: ")).expect("a length");
    assert!(body.is_empty() || length == body.len().to_string(), "{text}");
}

/// A server's reply to a push, which arrives in parts of any size.
pub fn http_reply(data: &[u8]) {
    struct Slowly<'a>(&'a [u8]);
    impl Read for Slowly<'_> {
        fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
            let most = buffer.len().min(3);
            self.0.read(&mut buffer[..most])
        }
    }
    let whole = read_reply(data);
    match (&whole, read_reply(Slowly(data))) {
        (Ok(whole), Ok(slow)) => assert_eq!(*whole, slow),
        (Err(_), Err(_)) => {}
        (whole, slow) => panic!("{whole:?} and {slow:?}"),
    }
    if let Ok(reply) = whole {
        assert!(reply.body.len() <= 64 << 10 && reply.status <= 999);
        for said in said(&reply).into_iter().flatten() {
            assert!(said.chars().count() < 500 && !said.contains(char::is_control), "{said:?}");
        }
    }
}

/// Seconds after which a peer that has not answered hangs.
const PATIENCE: u64 = 20;

fn connected(path: &Path) -> OwnedFd {
    let client = socket(AddressFamily::UNIX, SocketType::SEQPACKET, None).expect("a socket");
    connect(&client, &SocketAddrUnix::new(path).expect("a short path")).expect("the holder listens");
    let patience = std::time::Duration::from_secs(PATIENCE);
    set_socket_timeout(&client, Timeout::Recv, Some(patience)).expect("a timeout");
    client
}

fn send(socket: &OwnedFd, bytes: &[u8], descriptors: &[OwnedFd]) {
    let descriptors: Vec<_> = descriptors.iter().map(AsFd::as_fd).collect();
    let mut space = [std::mem::MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(8))];
    let mut beside = SendAncillaryBuffer::new(&mut space);
    if !descriptors.is_empty() {
        beside.push(SendAncillaryMessage::ScmRights(&descriptors));
    }
    // The peer may have closed the connection.
    let _ = sendmsg(socket, &[std::io::IoSlice::new(bytes)], &mut beside, SendFlags::NOSIGNAL);
}

/// A holder of this process, which lasts as long as the process.
fn holder() -> &'static RunDirectory {
    static HOLDER: OnceLock<RunDirectory> = OnceLock::new();
    HOLDER.get_or_init(|| {
        let folder = tempfile::tempdir().expect("a temporary folder").keep();
        let directory = RunDirectory::at(folder);
        let own = directory.clone();
        std::thread::spawn(move || hold(own, false).map_err(|error| error.to_string()).expect("a holder"));
        while !directory.socket().exists() {
            std::thread::yield_now();
        }
        directory
    })
}

/// Messages to a holder, separated by zero bytes, each in a separate connection. The first byte is the number
/// of descriptors to send along.
pub fn holder_requests(data: &[u8]) {
    let [count, messages @ ..] = data else { return };
    let directory = holder();
    let null = || OwnedFd::from(std::fs::File::open("/dev/null").expect("it exists"));
    for message in messages.split(|byte| *byte == 0).take(8) {
        let client = connected(&directory.socket());
        let descriptors: Vec<OwnedFd> = (0..count % 4).map(|_| null()).collect();
        send(&client, message, &descriptors);
        let mut answer = vec![0; 1 << 18];
        if !message.is_empty() {
            // libFuzzer's alarm interrupts the call.
            let got = retry_on_intr(|| recv(&client, &mut answer[..], RecvFlags::empty()));
            assert!(got.expect("an answer in time").1 > 0, "the holder answers every message");
        }
    }
    for entry in directory.entries().expect("its own directory") {
        let _ = ask(directory, &HolderRequest::Remove { entry: entry.id.to_string() });
    }
}

/// An entry as a holder publishes it.
const ENTRY: &str = r#"{"id":1,"name":"x","event":"cpu-clock","pages":null,"mode":"overwrite","cpus":null,"pids":[],
    "call_graph":false,"share":"nothing","since":0,"ring_bytes":4096,"rings":1,"user_only":false,"attr":[]}"#;

/// What a hostile holder sends: the text of an answer (or nothing, for the usual one), the description of a
/// copy of rings, and the records in them, each but the last ended by a zero byte.
pub fn holder_answers(data: &[u8]) {
    let mut parts = data.splitn(3, |byte| *byte == 0);
    let [answer, description, records] =
        [parts.next(), parts.next(), parts.next()].map(Option::unwrap_or_default);
    let answer = if answer.is_empty() { b"\"copied\"".as_slice() } else { answer };
    let folder = tempfile::tempdir().expect("a temporary folder");
    let directory = RunDirectory::at(folder.path());
    let listener = socket(AddressFamily::UNIX, SocketType::SEQPACKET, None).expect("a socket");
    bind(&listener, &SocketAddrUnix::new(directory.socket()).expect("a short path")).expect("it is free");
    listen(&listener, 8).expect("a listener");
    let host = Host::rooted(crate::source("tests/data/host/two-sockets"));
    let entry: PersistentEntry = serde_json::from_str(ENTRY).expect("an entry");
    std::thread::scope(|scope| {
        let serve = scope.spawn(|| {
            let held = |bytes: &[u8]| {
                let file = memfd_create("copy", MemfdFlags::CLOEXEC).expect("a memfd");
                rustix::io::write(&file, bytes).expect("it has room");
                file
            };
            // One connection for each request, then one that ends the thread.
            loop {
                let Ok(client) = retry_on_intr(|| accept(&listener)) else { return };
                let mut request = vec![0; 1 << 16];
                let got = retry_on_intr(|| recv(&client, &mut request[..], RecvFlags::empty()));
                let got = got.map_or(0, |(_, got)| got);
                if got == 0 {
                    return;
                }
                send(&client, answer, &[held(description), held(records)]);
            }
        });
        let _ =
            ask(&directory, &HolderRequest::Read { entry: "1".into() }).map_err(|error| error.to_string());
        let to = folder.path().join("perf.data");
        let _ = snapshot::write(&directory, &entry, &to, &host).map_err(|error| error.to_string());
        drop(connected(&directory.socket()));
        let _ = serve.join();
    });
}
