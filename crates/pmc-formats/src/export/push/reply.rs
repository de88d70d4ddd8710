//! Reads a server's reply over HTTP/1.1, which is untrusted: sizes are limited, and text is cleaned.

use std::io::{self, BufRead, BufReader, Read};

use pmc_text::text::clean;

/// Maximum length of the status line and all header lines.
const LONGEST_HEAD: u64 = 32 << 10;
/// Maximum length of the body.
const LONGEST_BODY: u64 = 64 << 10;
/// Maximum number of interim replies, such as `100 Continue`, before the reply.
const MOST_INTERIM: usize = 8;
/// Maximum number of characters that pmc quotes from a reply.
const QUOTED: usize = 300;

/// A reply to a request.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct HttpReply {
    /// The status code.
    pub status: u16,
    /// The body, without its transfer encoding.
    pub body: Vec<u8>,
    /// Whether the body ended where the server announced, within the limit.
    pub is_complete: bool,
    /// Names in lower case, and values.
    headers: Vec<(String, String)>,
}

impl HttpReply {
    /// Returns a header's value; empty if it is missing.
    pub(super) fn header(&self, name: &str) -> &str {
        self.headers.iter().find(|(of, _)| of == name).map_or("", |(_, value)| value)
    }

    /// Returns the status code with its standard name.
    pub(super) fn status_words(&self) -> String {
        let name = match self.status {
            301 | 302 | 303 | 307 | 308 => "redirect",
            400 => "bad request",
            401 => "unauthorized",
            403 => "forbidden",
            404 => "not found",
            405 => "method not allowed",
            408 => "request timeout",
            413 => "content too large",
            415 => "unsupported media type",
            422 => "unprocessable content",
            426 => "upgrade required",
            429 => "too many requests",
            500 => "internal server error",
            501 => "not implemented",
            502 => "bad gateway",
            503 => "service unavailable",
            504 => "gateway timeout",
            _ => return format!("HTTP status {}", self.status),
        };
        format!("HTTP status {} ({name})", self.status)
    }
}

/// Returns a server's text on one line, cleaned and cut.
pub(super) fn quoted(text: &str) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let cut: String = line.chars().take(QUOTED).collect();
    let rest = if cut.len() < line.len() { "…" } else { "" };
    format!("{}{rest}", clean(&cut))
}

fn invalid(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what)
}

/// Reads a reply. Does not read further than the end of the body or the limits.
///
/// # Errors
/// Fails if reading the head fails or if it is no head of an HTTP reply. An error in the body only makes the
/// reply incomplete.
pub fn read_reply(input: impl Read) -> io::Result<HttpReply> {
    let mut input = BufReader::new(input);
    for _ in 0..MOST_INTERIM {
        let mut reply = read_head(&mut input)?;
        if !(100..200).contains(&reply.status) {
            reply.is_complete = read_body(&mut input, &mut reply).unwrap_or(false);
            return Ok(reply);
        }
    }
    Err(invalid("the server sends interim replies only"))
}

fn read_head(input: &mut impl BufRead) -> io::Result<HttpReply> {
    let mut head = input.take(LONGEST_HEAD);
    let mut line = |what: &str| -> io::Result<String> {
        let mut bytes = Vec::new();
        head.read_until(b'\n', &mut bytes)?;
        if bytes.last() == Some(&b'\n') {
            return Ok(String::from_utf8_lossy(bytes.trim_ascii_end()).into_owned());
        }
        Err(match (head.limit(), bytes.is_empty()) {
            (0, _) => invalid("the head of the reply is longer than 32 KiB"),
            (_, true) => io::Error::new(io::ErrorKind::UnexpectedEof, "the server closed the connection"),
            _ => io::Error::new(io::ErrorKind::UnexpectedEof, what.to_owned()),
        })
    };
    let first = line("the reply ends within its first line")?;
    let status = first.strip_prefix("HTTP/").and_then(|rest| rest.split(' ').nth(1));
    let status = status.filter(|digits| digits.len() == 3).and_then(|digits| digits.parse().ok());
    let status = status.ok_or_else(|| invalid(&format!("the reply is not HTTP: {:?}", quoted(&first))))?;
    let mut headers = Vec::new();
    loop {
        let line = line("the reply ends within its head")?;
        if line.is_empty() {
            return Ok(HttpReply { status, headers, ..HttpReply::default() });
        }
        if let Some((name, value)) = line.split_once(':') {
            headers.push((name.trim().to_ascii_lowercase(), value.trim().to_owned()));
        }
    }
}

/// Reads the body. Returns whether it is complete.
fn read_body(input: &mut impl BufRead, reply: &mut HttpReply) -> io::Result<bool> {
    if matches!(reply.status, 204 | 304) {
        return Ok(true);
    }
    if reply.header("transfer-encoding").to_ascii_lowercase().ends_with("chunked") {
        return read_chunks(input, &mut reply.body);
    }
    let length: Option<u64> = reply.header("content-length").parse().ok();
    let most = length.unwrap_or(LONGEST_BODY + 1).min(LONGEST_BODY + 1);
    let read = input.take(most).read_to_end(&mut reply.body);
    let is_complete = match length {
        Some(length) => reply.body.len() as u64 == length,
        None => true,
    };
    let fits = reply.body.len() as u64 <= LONGEST_BODY;
    reply.body.truncate(LONGEST_BODY as usize);
    read.map(|_| is_complete && fits)
}

fn read_chunks(input: &mut impl BufRead, body: &mut Vec<u8>) -> io::Result<bool> {
    /// Maximum length of the line with a chunk's size.
    const LONGEST_LINE: u64 = 256;
    loop {
        let mut line = Vec::new();
        input.take(LONGEST_LINE).read_until(b'\n', &mut line)?;
        let text = String::from_utf8_lossy(&line);
        let digits = text.split([';', '\r', '\n']).next().unwrap_or_default().trim();
        let size = u64::from_str_radix(digits, 16).map_err(|_| invalid("invalid size of a chunk"))?;
        if size == 0 {
            return Ok(true);
        }
        let room = LONGEST_BODY - body.len() as u64;
        let read = input.take(size.min(room)).read_to_end(body)?;
        if size > room || (read as u64) < size {
            return Ok(false);
        }
        input.take(LONGEST_LINE).read_until(b'\n', &mut Vec::new())?;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(text: &str) -> HttpReply {
        read_reply(text.as_bytes()).unwrap()
    }

    fn body(reply: &HttpReply) -> &str {
        std::str::from_utf8(&reply.body).unwrap()
    }

    #[test]
    fn bodies_end_where_the_head_says() {
        let reply = parsed("HTTP/1.1 401 Unauthorized\r\nContent-Length: 4\r\nX: a:b\r\n\r\nno id");
        assert_eq!((reply.status, body(&reply), reply.is_complete), (401, "no i", true));
        assert_eq!((reply.header("x"), reply.header("y")), ("a:b", ""));
        let reply = parsed("HTTP/1.0 200 OK\n\nall of it");
        assert_eq!((body(&reply), reply.is_complete), ("all of it", true));
        let reply = parsed("HTTP/1.1 100 Continue\r\n\r\nHTTP/2 204\r\n\r\nnot read");
        assert_eq!((reply.status, body(&reply), reply.is_complete), (204, "", true));
        let reply = parsed(
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\nB;x=y\r\n 0123456789\r\n0\r\n\r\n",
        );
        assert_eq!((body(&reply), reply.is_complete), ("abc 0123456789", true));
    }

    #[test]
    fn incomplete_and_endless_bodies_are_noticed() {
        assert!(!parsed("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nabc").is_complete);
        assert!(!parsed("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n9\r\nabc").is_complete);
        assert!(!parsed("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\nabc").is_complete);
        let chunked = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nffffffffffffffff\r\n";
        for head in
            ["HTTP/1.1 200 OK\r\n\r\n", "HTTP/1.1 200 OK\r\nContent-Length: 99999999999\r\n\r\n", chunked]
        {
            let reply = read_reply(head.as_bytes().chain(io::repeat(b'x'))).unwrap();
            assert_eq!((reply.body.len() as u64, reply.is_complete), (LONGEST_BODY, false), "{head}");
        }
    }

    #[test]
    fn invalid_heads_are_errors() {
        let said = |text: &[u8]| read_reply(text).unwrap_err().to_string();
        assert!(said(b"").contains("closed the connection"));
        assert!(said(b"SSH-2.0-x\x1b[31m\r\n").contains("not HTTP: \"SSH-2.0-x?[31m\""));
        assert!(said(b"HTTP/1.1 2xx OK\r\n\r\n").contains("not HTTP"));
        assert!(said(b"HTTP/1.1 200 OK\r\nA: b\r\n").contains("closed the connection"));
        assert!(said(b"HTTP/1.1 200 OK\r\nA: b").contains("within its head"));
        let endless = read_reply(b"HTTP/1.1 200 OK\r\n".chain(io::repeat(b'x'))).unwrap_err();
        assert!(endless.to_string().contains("32 KiB"));
        assert!(said(&b"HTTP/1.1 100 Continue\r\n\r\n".repeat(9)).contains("interim"));
    }

    #[test]
    fn quotes_are_short_and_clean() {
        assert_eq!(quoted(" no\r\n  org\u{1b}[2J id\n"), "no org?[2J id");
        assert_eq!(quoted(&"é".repeat(400)).chars().count(), QUOTED + 1);
    }
}
