//! Pushes an export to a server.
//!
//! Sends each request once. If the server refuses a request or cannot be reached, pmc stops, and keeps the
//! contents of this request and of those after it in files, which another program can send later.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use super::http::{PATIENCE, PostRequest};
use pmc_formats::export::ExportContents;
use pmc_formats::export::push::{PushApi, PushMeasures, PushRequest, PushVerdict};
use pmc_formats::export::request::ExportPush;
use pmc_sys::error::{AdvisedOption, Error, Result, Warning, say};
use pmc_text::text::{clean, shell_word};

/// Environment variable with headers, for services whose secrets are not in files.
const HEADERS_VARIABLE: &str = "PMC_PUSH_HEADERS";
/// Maximum size of the headers.
const LONGEST_HEADERS: u64 = 16 << 10;
/// Maximum number of files that are kept under one name.
const MOST_KEPT: usize = 10_000;

/// A server that receives an export.
pub(super) struct PushClient<'a>(pub(super) &'a ExportPush);

impl PushClient<'_> {
    /// Returns the headers of all requests. Reads the file or the variable with the user's headers, which may
    /// be secret.
    ///
    /// # Errors
    /// Fails if the headers cannot be read, or are invalid.
    pub(super) fn headers(&self) -> Result<Vec<(String, String)>> {
        let (text, source) = match &self.0.headers {
            Some(path) => {
                let failed = |error| Error::io(format!("reading {}", path.display()), error);
                let mut text = Vec::new();
                let file = File::open(path).map_err(failed)?;
                file.take(LONGEST_HEADERS + 1).read_to_end(&mut text).map_err(failed)?;
                (text, path.display().to_string())
            }
            None => {
                let text = std::env::var_os(HEADERS_VARIABLE).unwrap_or_default();
                (text.into_encoded_bytes(), format!("${HEADERS_VARIABLE}"))
            }
        };
        let own =
            self.0.target.api.headers().iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        let all: Vec<_> = own.chain(parse_headers(&text, &source)?).collect();
        let is_secret = |name: &str| {
            let name = name.to_ascii_lowercase();
            ["auth", "cookie", "key", "secret", "token"].iter().any(|word| name.contains(word))
        };
        if self.0.target.url.is_exposed() && all.iter().any(|(name, _)| is_secret(name)) {
            say::warn(
                Warning::new("the credentials are sent without encryption")
                    .advise("use https:// unless the network is trusted"),
            );
        }
        Ok(all)
    }

    /// Sends the requests. `kept` is the file that receives the contents if the server refuses them.
    ///
    /// # Errors
    /// Fails if there is nothing to send, or if the server does not accept a request.
    pub(super) fn push(
        &self,
        contents: &ExportContents<'_>,
        headers: &[(String, String)],
        kept: &Path,
    ) -> Result<()> {
        let requests =
            self.0.target.api.requests(contents).map_err(|error| Error::output("the requests", error))?;
        if requests.is_empty() {
            return Err(
                Error::new("no samples to push").why("the recording has none, or the filters exclude them")
            );
        }
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos() as u64;
        for limit in PushMeasures::new(contents, &requests, now).exceeded(self.0.target.api) {
            say::warn(limit.warning(self.0.target.api));
        }
        for (done, request) in requests.iter().enumerate() {
            let body = request.body(self.0.target.api);
            let reply = PostRequest { url: &self.0.target.url, headers, body: &body }.send(PATIENCE);
            let error = match reply.map(|reply| self.0.target.api.verdict(&reply)) {
                Ok(PushVerdict::Accepted) => continue,
                Ok(PushVerdict::Refused { status, said }) => {
                    let error = Error::new(format!("{} refused the push: {said}", self.0.target.url.text()));
                    advised(error, status)
                }
                Err(said) => Error::new(format!("cannot push to {}: {said}", self.0.target.url.text()))
                    .try_this("check that the server runs, and that the URL has its port"),
            };
            return Err(self.keep(&requests[done..], requests.len(), kept, error));
        }
        let profiles = if requests.len() == 1 { "request" } else { "requests" };
        say::note(format!("pushed to {} ({} {profiles})", self.0.target.url.text(), requests.len()));
        Ok(())
    }

    /// Writes the contents of requests that were not accepted to files, and says so in the error.
    fn keep(&self, requests: &[PushRequest], all: usize, kept: &Path, error: Error) -> Error {
        let mut paths = Vec::new();
        for request in requests {
            match write_new(kept, &request.file) {
                Ok(path) => paths.push(path),
                Err(failed) => {
                    let failed = Error::create(AdvisedOption::ExportFile, kept, failed);
                    return error.detail(format!("  and the export is not kept: {}", failed.headline()));
                }
            }
        }
        let files = match paths.as_slice() {
            [one] => one.display().to_string(),
            [first, .., last] => format!("{} to {}", first.display(), last.display()),
            [] => String::new(),
        };
        let accepted = all - requests.len();
        let before = if accepted > 0 {
            format!("accepted before: {accepted} of {all} requests; ")
        } else {
            String::new()
        };
        let error = error.detail(format!("  {before}kept: {}", clean(&files)));
        match (self.0.target.api, paths.first()) {
            (PushApi::Otlp, Some(path)) => {
                let (name, value) = self.0.target.api.headers()[0];
                let (file, url) = (shell_word(path), self.0.target.url.text());
                error.try_this(format!(
                    "curl -H '{name}: {value}' --data-binary @{file} {url}, to send it later"
                ))
            }
            _ => error,
        }
    }
}

/// Adds the remedy for a status.
fn advised(error: Error, status: Option<u16>) -> Error {
    match status {
        Some(401 | 403) => error.why("the server requires credentials, or refuses these").try_options(
            format!("--push-headers FILE or {HEADERS_VARIABLE}, with a line `Authorization: Bearer TOKEN`"),
        ),
        Some(404 | 405 | 415 | 501) => error
            .why("the server does not have this interface, or has it under another path")
            .try_options("--push otlp=URL, pyroscope=URL or parca=URL")
            .try_this(
                "an OpenTelemetry collector needs version 0.148 and --feature-gates=service.profilesSupport",
            ),
        Some(413) => {
            error.why("the request is larger than the server accepts").try_options("a shorter --time")
        }
        Some(429 | 502 | 503 | 504) => error
            .why("the server is busy or limits the rate")
            .try_this("push again later, at most once per minute"),
        _ => error,
    }
}

/// Parses lines of the form `Name: value`. Ignores empty lines and lines that begin with `#`. Errors contain
/// no values.
fn parse_headers(text: &[u8], source: &str) -> Result<Vec<(String, String)>> {
    /// Headers that describe the message itself.
    const OURS: [&str; 5] = ["content-length", "transfer-encoding", "connection", "host", "content-type"];
    let refuse = |line: usize, why: &str| {
        let form = "one header per line: `Authorization: Bearer TOKEN`";
        Err(Error::usage(format!("{}, line {line}: {why}", clean(source))).try_this(form))
    };
    if text.len() as u64 > LONGEST_HEADERS {
        return Err(Error::usage(format!("{}: the headers are longer than 16 KiB", clean(source))));
    }
    let mut headers = Vec::new();
    for (number, line) in (1..).zip(text.split(|byte| *byte == b'\n')) {
        let line = line.trim_ascii();
        if line.is_empty() || line.starts_with(b"#") {
            continue;
        }
        let Ok(line) = std::str::from_utf8(line) else { return refuse(number, "the line is not UTF-8") };
        let Some((name, value)) = line.split_once(':') else {
            return refuse(number, "the line has no colon");
        };
        let (name, value) = (name.trim_end(), value.trim_start());
        let is_token = |c: char| c.is_ascii_alphanumeric() || "!#$%&'*+-.^_`|~".contains(c);
        if name.is_empty() || !name.chars().all(is_token) {
            return refuse(number, "the text before the colon is not a header's name");
        }
        if value.chars().any(char::is_control) {
            return refuse(number, "the value contains control characters");
        }
        if OURS.iter().any(|own| own.eq_ignore_ascii_case(name)) {
            return refuse(number, "pmc sets this header");
        }
        headers.push((name.to_owned(), value.to_owned()));
    }
    Ok(headers)
}

/// Writes a file that does not exist yet: with this name, or with a number before the extension.
fn write_new(path: &Path, contents: &[u8]) -> io::Result<PathBuf> {
    let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let (stem, ending) = name.split_at(name.find('.').filter(|at| *at > 0).unwrap_or(name.len()));
    for number in 0..MOST_KEPT {
        let numbered = match number {
            0 => path.to_owned(),
            _ => path.with_file_name(format!("{stem}.{number}{ending}")),
        };
        match OpenOptions::new().write(true).create_new(true).open(&numbered) {
            Ok(mut file) => return file.write_all(contents).map(|()| numbered),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error),
        }
    }
    Err(io::ErrorKind::AlreadyExists.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_are_checked_and_never_shown() {
        let of = |text: &str| parse_headers(text.as_bytes(), "the file");
        let read = of("# mine\r\nAuthorization: Bearer s3cret\r\n\nX-Scope-OrgID:7\n").unwrap();
        let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        assert_eq!(read, [pair("Authorization", "Bearer s3cret"), pair("X-Scope-OrgID", "7")]);
        assert!(of("").unwrap().is_empty());
        for (text, why) in [
            ("Bearer s3cret", "line 1: the line has no colon"),
            ("\nA b: s3cret", "line 2: the text before the colon"),
            (": s3cret", "not a header's name"),
            ("A: s3cret\u{b}x", "control characters"),
            ("content-length: s3cret", "pmc sets this header"),
        ] {
            let error = of(text).unwrap_err();
            assert!(error.headline().contains(why), "{}", error.headline());
            assert!(!format!("{} {:?}", error.headline(), error.remedies()).contains("s3cret"));
        }
        assert!(of(&"a: b\n".repeat(4000)).unwrap_err().headline().contains("16 KiB"));
        assert!(parse_headers(b"A: \xff", "the file").unwrap_err().headline().contains("UTF-8"));
    }

    #[test]
    fn kept_files_replace_no_others() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("perf.pb.gz");
        for name in ["perf.pb.gz", "perf.1.pb.gz", "perf.2.pb.gz"] {
            let written = write_new(&path, name.as_bytes()).unwrap();
            assert_eq!(written, folder.path().join(name));
            assert_eq!(std::fs::read(written).unwrap(), name.as_bytes());
        }
        assert!(write_new(&folder.path().join("no/perf.otlp"), b"").is_err());
    }
}
