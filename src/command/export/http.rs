//! Sends a request over HTTP/1.1: `http://` through a socket, `https://` through the installed `curl`.
//!
//! curl receives the headers on its standard input, because other users can read its arguments. It prints the
//! reply unchanged, so both ways share one reader. pmc sends nothing twice, and follows no redirect.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use pmc_formats::export::push::reply::{HttpReply, read_reply};
use pmc_formats::export::push::target::ServerUrl;
use pmc_sys::error::kernel_message;
use pmc_sys::sys::descriptor;
use pmc_sys::sys::helper_program::helper;
use pmc_sys::sys::replacement::create_temporary;
use pmc_text::text::clean;

/// Maximum time for a request and its reply.
pub(super) const PATIENCE: Duration = Duration::from_secs(60);
const USER_AGENT: &str = concat!("pmc/", env!("CARGO_PKG_VERSION"));

/// A POST request.
pub(super) struct PostRequest<'a> {
    pub(super) url: &'a ServerUrl,
    /// Names and values; the values may be secret.
    pub(super) headers: &'a [(String, String)],
    pub(super) body: &'a [u8],
}

impl PostRequest<'_> {
    /// Sends the request and reads the reply.
    ///
    /// # Errors
    /// Returns a sentence about the connection.
    pub(super) fn send(&self, patience: Duration) -> Result<HttpReply, String> {
        if self.url.is_encrypted {
            return self.send_by_curl(patience);
        }
        self.send_by_socket(Instant::now() + patience).map_err(|error| match error.kind() {
            io::ErrorKind::TimedOut => format!("no answer within {} s", patience.as_secs_f64()),
            io::ErrorKind::InvalidData => clean(&error.to_string()).into_owned(),
            _ => clean(&kernel_message(&error)).into_owned(),
        })
    }

    fn send_by_socket(&self, deadline: Instant) -> io::Result<HttpReply> {
        let mut stream = LimitedStream { stream: connect(self.url, deadline)?, deadline };
        let url = self.url;
        let path = if url.path.is_empty() { "/" } else { &url.path };
        let mut head = format!("POST {path} HTTP/1.1\r\nHost: {}\r\n", url.authority);
        let length = self.body.len().to_string();
        let framing = [
            ("Content-Length", length.as_str()),
            ("Connection", "close"),
            ("Accept", "*/*"),
            ("User-Agent", USER_AGENT),
        ];
        let own = self.headers.iter().map(|(name, value)| (name.as_str(), value.as_str()));
        for (name, value) in framing.into_iter().chain(own) {
            head.push_str(&format!("{name}: {value}\r\n"));
        }
        head.push_str("\r\n");
        let sent = stream.write_all(head.as_bytes()).and_then(|()| stream.write_all(self.body));
        // A server may refuse a request, and close the connection, before it has read all of it.
        match (read_reply(&mut stream), sent) {
            (Ok(reply), _) => Ok(reply),
            (Err(_), Err(error)) | (Err(error), Ok(())) => Err(error),
        }
    }

    fn send_by_curl(&self, patience: Duration) -> Result<HttpReply, String> {
        let mut body = create_temporary().map_err(|error| kernel_message(&error))?;
        let written = body.write_all(self.body).and_then(|()| body.seek(SeekFrom::Start(0)));
        written.map_err(|error| kernel_message(&error))?;
        let config = self.curl_config(&body, patience);
        let mut command = helper("curl");
        // --disable must be the first option. It ignores ~/.curlrc, whose options would change the output.
        command.args(["--disable", "--config", "-"]);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut curl = command.spawn().map_err(|error| {
            format!("https requires curl, which cannot be started: {}", kernel_message(&error))
        })?;
        let told = curl.stdin.take().map(|mut stdin| stdin.write_all(config.as_bytes()));
        let reply = curl.stdout.take().map(read_reply);
        // After the limits of the reply, curl finds its output closed and ends.
        let said = end(curl).map_err(|error| kernel_message(&error))?;
        match (reply, told) {
            (Some(Ok(reply)), _) => Ok(reply),
            (_, _) if !said.is_empty() => Err(said),
            (Some(Err(error)), _) | (None, Some(Err(error))) => Err(clean(&error.to_string()).into_owned()),
            (None, _) => Err("curl cannot be reached".to_owned()),
        }
    }

    /// Returns the configuration for curl.
    fn curl_config(&self, body: &File, patience: Duration) -> String {
        // The path is that of a descriptor of this process, because curl does not inherit it.
        let file =
            descriptor::path_of(body).to_string_lossy().replace("self", &std::process::id().to_string());
        let mut config =
            String::from("silent\nshow-error\ninclude\nraw\nhttp1.1\nsuppress-connect-headers\n");
        let mut set = |option: &str, value: &str| {
            let value = value.replace('\\', "\\\\").replace('"', "\\\"");
            config.push_str(&format!("{option} = \"{value}\"\n"));
        };
        set("url", &self.url.text());
        set("proto", "=https");
        set("user-agent", USER_AGENT);
        set("max-time", &patience.as_secs_f64().to_string());
        set("data-binary", &format!("@{file}"));
        // An empty value removes curl's own header.
        set("header", "Expect:");
        for (name, value) in self.headers {
            set("header", &format!("{name}: {value}"));
        }
        config
    }
}

/// Waits for curl and returns what it wrote to stderr, cut and cleaned.
fn end(mut curl: Child) -> io::Result<String> {
    const LONGEST: u64 = 1000;
    let mut said = Vec::new();
    if let Some(stderr) = curl.stderr.take() {
        stderr.take(LONGEST).read_to_end(&mut said)?;
    }
    curl.wait()?;
    Ok(clean(String::from_utf8_lossy(&said).trim()).into_owned())
}

fn connect(url: &ServerUrl, deadline: Instant) -> io::Result<TcpStream> {
    let mut last = io::Error::new(io::ErrorKind::NotFound, "the host has no address");
    for address in (url.host(), url.port().unwrap_or(80)).to_socket_addrs()? {
        match TcpStream::connect_timeout(&address, left(deadline)?) {
            Ok(stream) => return Ok(stream),
            Err(error) => last = error,
        }
    }
    Err(last)
}

/// Returns the time until the deadline, which is never 0.
fn left(deadline: Instant) -> io::Result<Duration> {
    let left = deadline.saturating_duration_since(Instant::now());
    if left.is_zero() { Err(io::ErrorKind::TimedOut.into()) } else { Ok(left) }
}

/// A connection whose reads and writes share one deadline.
struct LimitedStream {
    stream: TcpStream,
    deadline: Instant,
}

/// Sockets report a timeout as `WouldBlock`.
fn timed<T>(result: io::Result<T>) -> io::Result<T> {
    result.map_err(|error| match error.kind() {
        io::ErrorKind::WouldBlock => io::ErrorKind::TimedOut.into(),
        _ => error,
    })
}

impl Read for LimitedStream {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.stream.set_read_timeout(Some(left(self.deadline)?))?;
        timed(self.stream.read(buffer))
    }
}

impl Write for LimitedStream {
    fn write(&mut self, buffer: &[u8]) -> io::Result<usize> {
        self.stream.set_write_timeout(Some(left(self.deadline)?))?;
        timed(self.stream.write(buffer))
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;

    #[test]
    fn curl_reads_secrets_from_its_input() {
        let url = "https://a/b".parse().unwrap();
        let headers = [("Authorization".to_owned(), "Bearer a\"b\\c".to_owned())];
        let request = PostRequest { url: &url, headers: &headers, body: b"" };
        let config = request.curl_config(&File::open("/dev/null").unwrap(), PATIENCE);
        let lines: Vec<&str> = config.lines().collect();
        assert!(lines.contains(&r#"header = "Authorization: Bearer a\"b\\c""#), "{config}");
        assert!(lines.contains(&"url = \"https://a/b\"") && lines.contains(&"max-time = \"60\""), "{config}");
        let file = format!("data-binary = \"@/proc/{}/fd/", std::process::id());
        assert!(config.contains(&file), "{config}");
    }

    #[test]
    fn silent_server_is_given_up() {
        let server = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", server.local_addr().unwrap()).parse().unwrap();
        // It accepts the connection, but the buffers of both sides are smaller than the body.
        for body in [vec![0; 8], vec![0; 64 << 20]] {
            let request = PostRequest { url: &url, headers: &[], body: &body };
            let said = request.send(Duration::from_millis(100)).unwrap_err();
            assert!(said.contains("no answer within 0.1 s"), "{said}");
        }
    }
}
