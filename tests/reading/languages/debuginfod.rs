//! Debug files and sources from Debian's debuginfod server on the loopback address.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Child, Stdio};

use super::*;

/// A server that is killed when the test ends.
struct Server {
    child: Child,
    port: u16,
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Server {
    /// Serves the files of a folder. Returns once the server finds the debug file of this build.
    #[track_caller]
    fn start(folder: &str, build_id: &str) -> Self {
        let free = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let options = ["-F", "-d", ":memory:", "-p", &free.to_string(), folder];
        let mut command = Command::new("debuginfod");
        // The server would query other servers listed in the environment.
        command.env_remove("DEBUGINFOD_URLS").stdout(Stdio::null()).stderr(Stdio::null());
        let server = Self { child: command.args(options).spawn().unwrap(), port: free };
        kit::wait_for("the server has read its folder", || {
            server
                .answer(&format!("/buildid/{build_id}/debuginfo"))
                .is_some_and(|said| said.contains(" 200 "))
        });
        server
    }

    /// First line of the server's response.
    fn answer(&self, path: &str) -> Option<String> {
        let mut stream = TcpStream::connect(("127.0.0.1", self.port)).ok()?;
        write!(stream, "GET {path} HTTP/1.0\r\n\r\n").ok()?;
        let mut head = [0; 64];
        let len = stream.read(&mut head).ok()?;
        Some(String::from_utf8_lossy(&head[..len]).lines().next()?.to_owned())
    }

    fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }
}

#[test]
fn missing_debug_files_are_downloaded_and_cached() {
    if !ready(&["g++", "objcopy", "strip", "debuginfod", "debuginfod-find"]) {
        return;
    }
    let lab = Lab::new();
    let (program, copy) = (lab.text("prog"), lab.text("shop.cpp"));
    std::fs::copy(source("shop.cpp"), &copy).unwrap();
    lab.run("g++", &["-O2", "-g", "-fno-omit-frame-pointer", "-Wl,--build-id", "-o", &program, &copy]);
    std::fs::create_dir(lab.path("served")).unwrap();
    lab.run("objcopy", &["--only-keep-debug", "prog", "served/prog.debug"]);
    lab.run("strip", &["prog"]);
    let file = lab.record(&["--call-graph", "fp"], &[&program]);

    let pmc = |command: &[&str], urls: Option<&str>| {
        let mut pmc = kit::pmc();
        pmc.args(command).args(["--no-cache", "-i", file.to_str().unwrap()]);
        pmc.env("DEBUGINFOD_CACHE_PATH", lab.path("cache"));
        if let Some(urls) = urls {
            pmc.env("DEBUGINFOD_URLS", urls);
        }
        kit::Ran::from(pmc.output().unwrap()).expect(0)
    };
    let prog = |options: &[&str], urls: Option<&str>| {
        let ran = pmc(&[&["report", "--json"], options].concat(), urls);
        let document: Value = serde_json::from_str(&ran.stdout).unwrap();
        (module(&document, "prog").clone(), document["trust"]["notes"].clone())
    };
    // No server is configured, so pmc contacts none.
    let (bare, notes) = prog(&[], None);
    assert!(bare["unnamed"].as_u64() >= Some(*LEAST as u64) && bare["debug"].is_null(), "{bare}");
    assert_eq!(notes.as_array().map(Vec::len), Some(0), "{notes}");
    let build_id = bare["build_id"].as_str().unwrap();

    // An unreachable server: pmc reports it and keeps the names it finds without a server.
    let nobody = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let (still, notes) = prog(&[&format!("--debuginfod=http://{nobody}")], None);
    assert_eq!(still["unnamed"], bare["unnamed"]);
    assert!(notes[0].as_str().unwrap().contains("stopped asking the debuginfod servers"), "{notes}");

    let server = Server::start(&lab.text("served"), build_id);
    let (off, _) = prog(&["--no-debuginfod"], Some(&server.url()));
    let debug = format!("{}/{build_id}/debuginfo", lab.text("cache"));
    assert!(off["unnamed"] == bare["unnamed"] && !Path::new(&debug).exists(), "{off}");
    let (fetched, notes) = prog(&[], Some(&server.url()));
    assert_eq!((&fetched["unnamed"], &fetched["lines"]), (&0.into(), &true.into()), "{fetched} {notes}");
    assert_eq!(fetched["debug"], debug.as_str());
    // The source too. elfutils' client and pmc share the download cache.
    let annotate = ["annotate", "--stdio", "shop::serve"];
    lab.run(
        "env",
        &[
            &format!("DEBUGINFOD_CACHE_PATH={}", lab.text("cache")),
            &format!("DEBUGINFOD_URLS={}", server.url()),
            "debuginfod-find",
            "source",
            build_id,
            &copy,
        ],
    );
    let url = server.url();
    drop(server);
    std::fs::remove_file(&copy).unwrap();
    pmc(&annotate, Some(&url)).prints(&["mark ring"]);

    // Cached files need no server.
    let (kept, _) = prog(&[], None);
    assert_eq!((&kept["unnamed"], &kept["debug"]), (&0.into(), &fetched["debug"]));
    assert_eq!(prog(&["--no-debuginfod"], None).0["unnamed"], bare["unnamed"]);
}

#[test]
fn debuginfod_without_server_is_an_error() {
    let ran = kit::run(&["report", "--debuginfod", "-i", "/dev/null"]).expect(2);
    ran.says(&["no server given", "DEBUGINFOD_URLS", "try: "]);
}
