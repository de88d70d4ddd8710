//! Sends a request over HTTP/1.1: `http://` through a socket, `https://` through the installed `curl`.
//!
//! curl receives the headers on its standard input, because other users can read its arguments. It prints the
//! reply unchanged, so both ways share one reader. pmc sends nothing twice, and follows no redirect.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::net::{IpAddr, TcpStream, ToSocketAddrs};
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use pmc_formats::export::push::reply::{HttpReply, read_reply};
use pmc_sys::error::{Error, Result, kernel_words};
use pmc_sys::sys::descriptor;
use pmc_sys::sys::helper_program::helper;
use pmc_sys::sys::replacement::create_temporary;
use pmc_text::text::clean;

/// Maximum time for a request and its reply.
pub(super) const PATIENCE: Duration = Duration::from_secs(60);
const USER_AGENT: &str = concat!("pmc/", env!("CARGO_PKG_VERSION"));

/// The URL of a server, without a user, a query or a fragment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ServerUrl {
    is_encrypted: bool,
    /// Host and port, as typed.
    authority: String,
    /// The path, without a slash at the end.
    path: String,
}

impl ServerUrl {
    /// Parses a URL.
    ///
    /// # Errors
    /// Fails if the URL is invalid, or has parts that pmc does not send.
    pub(super) fn parse(text: &str) -> Result<Self> {
        let refuse = |why: &str| {
            Err(Error::usage(format!("--push {}: {why}", clean(text)))
                .try_this("--push http://HOST:PORT")
                .try_this("--push pyroscope=https://HOST"))
        };
        let (is_encrypted, rest) = match text.split_once("://") {
            Some(("http", rest)) => (false, rest),
            Some(("https", rest)) => (true, rest),
            _ => return refuse("the URL must begin with http:// or https://"),
        };
        let is_allowed = |c: char| c.is_ascii_graphic() && !matches!(c, '"' | '\\' | '<' | '>' | '`');
        if !rest.chars().all(is_allowed) {
            return refuse("the URL must consist of printable ASCII characters");
        }
        if rest.contains(['?', '#']) {
            return refuse("the URL must not have a query or a fragment");
        }
        let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
        if authority.contains('@') {
            let error = Error::usage("--push: the URL must not contain a user or password")
                .why("other users of the machine can read command lines")
                .try_this("--push-headers FILE, with a line `Authorization: Basic …`");
            return Err(error);
        }
        if authority.is_empty() || authority.starts_with(':') {
            return refuse("the URL has no host");
        }
        let (authority, path) = (authority.to_owned(), path.trim_end_matches('/').to_owned());
        let url = Self { is_encrypted, authority, path };
        if url.port().is_none() {
            return refuse("invalid port");
        }
        Ok(url)
    }

    /// Adds a path, unless the URL ends with it.
    pub(super) fn with_path(mut self, path: &str) -> Self {
        if !self.path.ends_with(path) {
            self.path.push_str(path);
        }
        self
    }

    /// Whether other machines may be able to read the request.
    pub(super) fn is_exposed(&self) -> bool {
        let host = self.host();
        let is_local = host == "localhost" || host.parse().is_ok_and(|ip: IpAddr| ip.is_loopback());
        !self.is_encrypted && !is_local
    }

    pub(super) fn text(&self) -> String {
        let scheme = if self.is_encrypted { "https" } else { "http" };
        format!("{scheme}://{}{}", self.authority, self.path)
    }

    /// Returns the position of the colon before the port.
    fn colon(&self) -> Option<usize> {
        let colon = self.authority.rfind(':')?;
        (!self.authority[colon..].contains(']')).then_some(colon)
    }

    fn host(&self) -> &str {
        let host = &self.authority[..self.colon().unwrap_or(self.authority.len())];
        host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host)
    }

    fn port(&self) -> Option<u16> {
        let default = if self.is_encrypted { 443 } else { 80 };
        self.colon().map_or(Some(default), |colon| self.authority[colon + 1..].parse().ok())
    }
}

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
            _ => clean(&kernel_words(&error)).into_owned(),
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
        let mut body = create_temporary().map_err(|error| kernel_words(&error))?;
        let written = body.write_all(self.body).and_then(|()| body.seek(SeekFrom::Start(0)));
        written.map_err(|error| kernel_words(&error))?;
        let config = self.curl_config(&body, patience);
        let mut command = helper("curl");
        // --disable must be the first option. It ignores ~/.curlrc, whose options would change the output.
        command.args(["--disable", "--config", "-"]);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut curl = command.spawn().map_err(|error| {
            format!("https requires curl, which cannot be started: {}", kernel_words(&error))
        })?;
        let told = curl.stdin.take().map(|mut stdin| stdin.write_all(config.as_bytes()));
        let reply = curl.stdout.take().map(read_reply);
        // After the limits of the reply, curl finds its output closed and ends.
        let said = end(curl).map_err(|error| kernel_words(&error))?;
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
    fn urls_have_a_scheme_a_host_and_no_secrets() {
        let url = |text: &str| ServerUrl::parse(text).unwrap().with_path("/v1/p");
        let parts = |text: &str| {
            let url = url(text);
            (url.host().to_owned(), url.port(), url.text())
        };
        let of = |host: &str, port, text: &str| (host.to_owned(), Some(port), text.to_owned());
        assert_eq!(parts("http://a:4318"), of("a", 4318, "http://a:4318/v1/p"));
        assert_eq!(parts("http://a/"), of("a", 80, "http://a/v1/p"));
        assert_eq!(parts("https://a.b/x/v1/p/"), of("a.b", 443, "https://a.b/x/v1/p"));
        assert_eq!(parts("http://[::1]:80/x"), of("::1", 80, "http://[::1]:80/x/v1/p"));
        assert_eq!(parts("http://[::1]"), of("::1", 80, "http://[::1]/v1/p"));
        for wrong in [
            "",
            "a:4318",
            "ftp://a",
            "http://",
            "http://:80",
            "http://a:x",
            "http://a:70000",
            "http://a b/",
            "http://a/?token=x",
            "http://a/#x",
            "http://a/\u{1b}",
            "http://a/\"",
        ] {
            assert!(ServerUrl::parse(wrong).is_err(), "{wrong}");
        }
        let error = ServerUrl::parse("http://user:secret@a").unwrap_err();
        assert!(!format!("{} {:?}", error.headline(), error.remedies()).contains("secret"));
        assert!(url("http://example.org").is_exposed() && !url("https://example.org").is_exposed());
        assert!(!url("http://localhost:1").is_exposed() && !url("http://127.0.0.1").is_exposed());
    }

    #[test]
    fn curl_reads_secrets_from_its_input() {
        let url = ServerUrl::parse("https://a/b").unwrap();
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
        let url = ServerUrl::parse(&format!("http://{}", server.local_addr().unwrap())).unwrap();
        // It accepts the connection, but the buffers of both sides are smaller than the body.
        for body in [vec![0; 8], vec![0; 64 << 20]] {
            let request = PostRequest { url: &url, headers: &[], body: &body };
            let said = request.send(Duration::from_millis(100)).unwrap_err();
            assert!(said.contains("no answer within 0.1 s"), "{said}");
        }
    }
}
