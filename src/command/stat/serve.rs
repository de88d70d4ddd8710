//! `--listen ADDR`: serves the latest OpenMetrics text over HTTP, for a scraper.
//!
//! A single thread answers one request after the other. It drops clients that take longer than a second
//! in total or send invalid requests. Receives the text at each interval; measures nothing.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, RwLock};
use std::time::{Duration, Instant};

use pmc_sys::error::{Error, Result};

/// The server and its current page.
pub(super) struct MetricsServer {
    page: Arc<RwLock<String>>,
    address: SocketAddr,
}

/// Maximum time for a client to send its request and read the page.
const PATIENCE: Duration = Duration::from_secs(1);
/// Maximum length of a request; the rest is not read.
const LONGEST_REQUEST: usize = 8 << 10;

impl MetricsServer {
    /// Starts listening. `:9100` and `9100` mean the loopback address.
    pub(super) fn start(address: &str) -> Result<Self> {
        let full = match address.rsplit_once(':') {
            None => format!("127.0.0.1:{address}"),
            Some(("", port)) => format!("127.0.0.1:{port}"),
            Some(_) => address.to_owned(),
        };
        let listen = |full: &str| -> std::io::Result<_> {
            let listener = TcpListener::bind(full)?;
            let address = listener.local_addr()?;
            Ok((listener, address))
        };
        let (listener, address) = listen(&full).map_err(|error| {
            Error::io(format!("--listen {address}"), error)
                .try_this("use an address and a free port, such as 127.0.0.1:9100")
        })?;
        let page = Arc::new(RwLock::new(String::from("# EOF\n")));
        let shown = Arc::clone(&page);
        std::thread::Builder::new()
            .name("pmc-listen".into())
            .spawn(move || {
                for client in listener.incoming().flatten() {
                    // Ignores errors of clients.
                    let _ = answer(client, &shown);
                }
            })
            .map_err(|error| Error::io("--listen: starting a thread", error))?;
        Ok(Self { page, address })
    }

    /// Returns the actual address; port 0 requests any free port.
    pub(super) fn address(&self) -> SocketAddr {
        self.address
    }

    /// Replaces the page.
    pub(super) fn show(&self, text: String) {
        if let Ok(mut page) = self.page.write() {
            *page = text;
        }
    }
}

fn answer(mut client: TcpStream, page: &RwLock<String>) -> std::io::Result<()> {
    let end = Instant::now() + PATIENCE;
    // The kernel interprets a timeout of zero as no timeout.
    let left = || {
        let left = end.saturating_duration_since(Instant::now());
        if left.is_zero() { Err(std::io::Error::from(std::io::ErrorKind::TimedOut)) } else { Ok(Some(left)) }
    };
    let mut request = Vec::new();
    let mut part = [0u8; 1024];
    while !request.windows(4).any(|w| w == b"\r\n\r\n") && request.len() < LONGEST_REQUEST {
        client.set_read_timeout(left()?)?;
        match client.read(&mut part)? {
            0 => break,
            got => request.extend_from_slice(&part[..got]),
        }
    }
    let line = request.split(|&b| b == b'\r' || b == b'\n').next().unwrap_or_default();
    let mut words = line.split(|&b| b == b' ');
    let (method, path) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
    let path = path.split(|&b| b == b'?').next().unwrap_or_default();
    let (status, kind, body) = match (method, path) {
        (b"GET" | b"HEAD", b"/metrics" | b"/") => (
            "200 OK",
            "application/openmetrics-text; version=1.0.0; charset=utf-8",
            page.read().map(|p| p.clone()).unwrap_or_default(),
        ),
        (b"GET" | b"HEAD", _) => ("404 Not Found", "text/plain", "the page is /metrics\n".to_owned()),
        _ => ("405 Method Not Allowed", "text/plain", "GET /metrics\n".to_owned()),
    };
    let head = format!(
        "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
        body.len()
    );
    let body = if method == b"HEAD" { "" } else { &body };
    let whole = [head.as_bytes(), body.as_bytes()].concat();
    let mut rest = &whole[..];
    while !rest.is_empty() {
        client.set_write_timeout(left()?)?;
        let taken = client.write(rest)?;
        rest = &rest[taken..];
    }
    Ok(())
}
