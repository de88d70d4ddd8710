//! `--listen ADDR`: serves the latest OpenMetrics text to scrapers, over HTTP.
//!
//! A single thread serves all clients, none of which can delay another. It drops clients that take longer
//! than [`PATIENCE`] in total, and the oldest client if there are too many. Each interval updates the text.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, PoisonError, RwLock};
use std::thread;
use std::time::{Duration, Instant};

use pmc_sys::error::{Error, Result};
use pmc_sys::sys::{lacks_resources, wait};
use pmc_view::openmetrics;
use rustix::event::{PollFd, PollFlags};
use rustix::io::Errno;

/// The server and its current page.
pub(super) struct MetricsServer {
    page: Arc<RwLock<String>>,
    address: SocketAddr,
}

/// Maximum time for a client to send its request and read the page.
const PATIENCE: Duration = Duration::from_secs(1);
/// Maximum length of a request. The rest of a longer request is not read.
const LONGEST_REQUEST: usize = 8 << 10;
/// Maximum number of simultaneous clients.
const MOST_CLIENTS: usize = 128;
/// Number of clients to accept before serving existing ones. It is less than the maximum, so that a client is
/// served before it becomes the oldest.
const MAX_ACCEPTED: usize = 32;
/// Pause while the process has no descriptor for another client.
const OUT_OF_DESCRIPTORS: Duration = Duration::from_millis(50);

impl MetricsServer {
    /// Starts listening. `:9100` and `9100` select the loopback address.
    pub(super) fn start(address: &str) -> Result<Self> {
        let full = match address.rsplit_once(':') {
            None => format!("127.0.0.1:{address}"),
            Some(("", port)) => format!("127.0.0.1:{port}"),
            Some(_) => address.to_owned(),
        };
        let listen = |full: &str| -> io::Result<_> {
            let listener = TcpListener::bind(full)?;
            listener.set_nonblocking(true)?;
            let address = listener.local_addr()?;
            Ok((listener, address))
        };
        let (listener, address) = listen(&full).map_err(|error| {
            Error::io(format!("--listen {address}"), error)
                .try_this("use an address and a free port, such as 127.0.0.1:9100")
        })?;
        let page = Arc::new(RwLock::new(String::from("# EOF\n")));
        let shown = Arc::clone(&page);
        thread::Builder::new()
            .name("pmc-listen".into())
            .spawn(move || serve(&listener, &shown))
            .map_err(|error| Error::io("--listen: starting a thread", error))?;
        Ok(Self { page, address })
    }

    /// Returns the actual address, since port 0 requests any free port.
    pub(super) fn address(&self) -> SocketAddr {
        self.address
    }

    /// Replaces the page.
    pub(super) fn show(&self, text: String) {
        *self.page.write().unwrap_or_else(PoisonError::into_inner) = text;
    }
}

fn serve(listener: &TcpListener, page: &RwLock<String>) {
    let mut clients: Vec<HttpClient> = Vec::new();
    loop {
        let mut fds = vec![PollFd::new(listener, PollFlags::IN)];
        fds.extend(clients.iter().map(|client| PollFd::new(&client.stream, client.waits_for())));
        let left = clients.first().map(|oldest| PATIENCE.saturating_sub(oldest.since.elapsed()));
        // After the time for a client, all clients are tried.
        if wait::poll(&mut fds, left).is_err() {
            return;
        }
        let is_connecting = !fds[0].revents().is_empty();
        clients.retain_mut(|client| {
            // A client that fails or is done is dropped, which closes its connection.
            client.since.elapsed() < PATIENCE && matches!(client.advance(page), Ok(true))
        });
        if is_connecting {
            accept(listener, &mut clients);
        }
    }
}

fn accept(listener: &TcpListener, clients: &mut Vec<HttpClient>) {
    for _ in 0..MAX_ACCEPTED {
        match listener.accept() {
            Ok((stream, _)) if stream.set_nonblocking(true).is_ok() => clients.push(HttpClient::new(stream)),
            Ok(_) => {}
            Err(error) if Errno::from_io_error(&error).is_some_and(lacks_resources) => {
                clients.truncate(clients.len() / 2);
                return thread::sleep(OUT_OF_DESCRIPTORS);
            }
            Err(_) => return,
        }
        if clients.len() > MOST_CLIENTS {
            clients.remove(0);
        }
    }
}

struct HttpClient {
    stream: TcpStream,
    since: Instant,
    request: Vec<u8>,
    /// The answer, once the request is complete.
    answer: Option<Vec<u8>>,
    sent: usize,
}

impl HttpClient {
    fn new(stream: TcpStream) -> Self {
        Self { stream, since: Instant::now(), request: Vec::new(), answer: None, sent: 0 }
    }

    fn waits_for(&self) -> PollFlags {
        if self.answer.is_some() { PollFlags::OUT } else { PollFlags::IN }
    }

    /// Reads and writes as much as possible without waiting. Returns whether there is more to do.
    fn advance(&mut self, page: &RwLock<String>) -> io::Result<bool> {
        match self.exchange(page) {
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => Ok(true),
            done => done.map(|()| false),
        }
    }

    fn exchange(&mut self, page: &RwLock<String>) -> io::Result<()> {
        let mut part = [0u8; 1024];
        let is_complete =
            |request: &[u8]| request.windows(4).any(|w| w == b"\r\n\r\n") || request.len() >= LONGEST_REQUEST;
        while self.answer.is_none() {
            let got = self.stream.read(&mut part)?;
            self.request.extend_from_slice(&part[..got]);
            if got == 0 || is_complete(&self.request) {
                let page = page.read().unwrap_or_else(PoisonError::into_inner);
                self.answer = Some(openmetrics::http_response(&self.request, &page));
            }
        }
        let whole = self.answer.as_deref().unwrap_or_default();
        while self.sent < whole.len() {
            self.sent += self.stream.write(&whole[self.sent..])?;
        }
        Ok(())
    }
}
