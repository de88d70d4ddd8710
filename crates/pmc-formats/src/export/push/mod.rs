//! Requests that push an export to a server of profiles, the limits of these servers, and the meaning of
//! their replies.
//!
//! ```text
//!   OTLP       POST /v1development/profiles                            the message of the file
//!   Pyroscope  POST /push.v1.PusherService/Push                        labels and a pprof file
//!   Parca      POST /parca.profilestore.v1alpha1.ProfileStoreService/WriteRaw   the same, as gRPC-Web
//! ```
//!
//! Parca's own API is gRPC, which requires HTTP/2. It also accepts gRPC-Web, which works with HTTP/1.1: the
//! message and the status at the end of the reply are in frames of the body.
//!
//! Sends nothing: `command::export::push` does.

pub mod reply;
pub mod target;

use std::borrow::Cow;
use std::io;
use std::time::Duration;

use prost::Message;
use rustc_hash::FxHashSet;

use super::otlp::{self, OtlpReply, OtlpStatus};
use super::{ExportContents, ExportFormat, metric_name, pprof};
use pmc_sys::error::{Advice, Warning};
use pmc_text::text::clean;
use pmc_text::units::{bytes, duration, thousands};
use reply::{HttpReply, quoted};

/// An interface of a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PushApi {
    Otlp,
    Pyroscope,
    Parca,
}

impl PushApi {
    /// All interfaces, with the names for `--push`.
    pub const ALL: [(&str, Self); 3] =
        [("otlp", Self::Otlp), ("pyroscope", Self::Pyroscope), ("parca", Self::Parca)];

    /// Returns the format of the pushed files.
    pub fn format(self) -> ExportFormat {
        match self {
            Self::Otlp => ExportFormat::Otlp,
            Self::Pyroscope | Self::Parca => ExportFormat::Pprof,
        }
    }

    /// Returns the path to add to the URL of the server.
    pub fn path(self) -> &'static str {
        match self {
            Self::Otlp => "/v1development/profiles",
            Self::Pyroscope => "/push.v1.PusherService/Push",
            Self::Parca => "/parca.profilestore.v1alpha1.ProfileStoreService/WriteRaw",
        }
    }

    /// Returns the headers of each request.
    pub fn headers(self) -> &'static [(&'static str, &'static str)] {
        match self {
            Self::Otlp => &[("Content-Type", "application/x-protobuf")],
            Self::Pyroscope => &[("Content-Type", "application/proto"), ("Connect-Protocol-Version", "1")],
            Self::Parca => &[("Content-Type", "application/grpc-web+proto"), ("X-Grpc-Web", "1")],
        }
    }

    /// Returns the requests that push the rows.
    ///
    /// # Errors
    /// Fails if there are too many samples.
    pub fn requests(self, contents: &ExportContents<'_>) -> io::Result<Vec<PushRequest>> {
        if self == Self::Otlp {
            let request = |file| PushRequest { file, labels: Vec::new(), samples: 0, size: 0 };
            return Ok(otlp::requests(contents)?.into_iter().map(request).collect());
        }
        let events = contents.stacks.events.iter().enumerate();
        let used = events.filter(|(_, event)| event.kept.samples > 0);
        let requests = used.map(|(number, event)| {
            let pushed = pprof::pushed(contents, number);
            let name = metric_name(event);
            let labels = [
                ("__name__", if name == "cpu" { "process_cpu".to_owned() } else { name }),
                ("service_name", contents.service()),
                ("service_version", clean(&contents.recording.origin.version).into_owned()),
                ("hostname", clean(contents.host()).into_owned()),
            ];
            let labels = labels.into_iter().filter(|(_, value)| !value.is_empty()).collect();
            PushRequest { file: pushed.bytes, labels, samples: pushed.samples, size: pushed.size }
        });
        Ok(requests.collect())
    }

    /// Returns whether a server accepted a request.
    pub fn verdict(self, reply: &HttpReply) -> PushVerdict {
        if !(200..300).contains(&reply.status) {
            let (status, said) = (reply.status_words(), self.words(reply));
            let said = if said.is_empty() { said } else { format!(": {said}") };
            return PushVerdict::Refused { status: Some(reply.status), said: format!("{status}{said}") };
        }
        let refused = |said: String| PushVerdict::Refused { status: None, said };
        if !reply.is_complete {
            return refused("its reply is incomplete or too long, so the profile may be lost".to_owned());
        }
        match self {
            Self::Pyroscope => PushVerdict::Accepted,
            Self::Otlp => {
                match OtlpReply::decode(reply.body.as_slice()).ok().and_then(|of| of.partial_success) {
                    Some(part) if part.rejected_profiles != 0 => {
                        let said = quoted(&part.error_message);
                        refused(format!("it rejected {} profiles: {said}", part.rejected_profiles))
                    }
                    _ => PushVerdict::Accepted,
                }
            }
            Self::Parca => match grpc_status(reply) {
                Some((0, _)) => PushVerdict::Accepted,
                Some((status, said)) => {
                    let said = format!("gRPC status {status}: {}", quoted(&said));
                    // The gRPC statuses that have the same remedies as an HTTP status.
                    let status = match status {
                        16 => Some(401),
                        7 => Some(403),
                        12 => Some(404),
                        8 => Some(429),
                        _ => None,
                    };
                    PushVerdict::Refused { status, said }
                }
                None => refused("its reply has no gRPC status".to_owned()),
            },
        }
    }

    /// Returns the text of a reply that reports an error.
    fn words(self, reply: &HttpReply) -> String {
        if self == Self::Otlp
            && reply.header("content-type").contains("protobuf")
            && let Ok(status) = OtlpStatus::decode(reply.body.as_slice())
        {
            return quoted(&status.message);
        }
        if (300..400).contains(&reply.status) {
            return quoted(&format!("to {}", reply.header("location")));
        }
        let message = serde_json::from_slice::<serde_json::Value>(&reply.body).ok();
        let message = message.as_ref().and_then(|json| json.get("message")?.as_str());
        quoted(&message.map_or_else(|| String::from_utf8_lossy(&reply.body), Cow::Borrowed))
    }
}

/// Returns what pmc would print about a reply, for each interface; `None` if it means success.
pub fn said(reply: &HttpReply) -> [Option<String>; 3] {
    PushApi::ALL.map(|(_, api)| match api.verdict(reply) {
        PushVerdict::Accepted => None,
        PushVerdict::Refused { said, .. } => Some(said),
    })
}

/// The result of a request.
#[derive(Debug, PartialEq, Eq)]
pub enum PushVerdict {
    Accepted,
    Refused {
        /// The status that determines the remedy, as in HTTP.
        status: Option<u16>,
        /// The server's text, cleaned and cut.
        said: String,
    },
}

/// A request of a push.
pub struct PushRequest {
    /// The contents of a file in [`PushApi::format`].
    pub file: Vec<u8>,
    /// Labels of the series.
    labels: Vec<(&'static str, String)>,
    /// Number of samples of a pprof file.
    samples: usize,
    /// Uncompressed size of a pprof file.
    size: usize,
}

impl PushRequest {
    /// Returns the body of the request.
    pub fn body(&self, api: PushApi) -> Cow<'_, [u8]> {
        let label =
            |(name, value): &(&str, String)| PushLabel { name: (*name).to_owned(), value: value.clone() };
        let labels = self.labels.iter().map(label).collect();
        let samples = || vec![PushSample { raw_profile: self.file.clone() }];
        match api {
            PushApi::Otlp => Cow::Borrowed(&self.file),
            PushApi::Pyroscope => {
                let series = vec![PyroscopeSeries { labels, samples: samples() }];
                Cow::Owned(PyroscopePush { series }.encode_to_vec())
            }
            PushApi::Parca => {
                let series = vec![ParcaSeries { labels: Some(ParcaLabels { labels }), samples: samples() }];
                Cow::Owned(grpc_frame(0, &ParcaWrite { series }.encode_to_vec()))
            }
        }
    }
}

/// The measures of a push that servers limit.
#[derive(Debug, Default)]
pub struct PushMeasures {
    /// Age of the newest sample.
    age: Option<Duration>,
    /// Maximum number of samples of a pprof file.
    samples: usize,
    /// Maximum size of a pprof file.
    size: usize,
    /// Maximum number of frames in a stack.
    depth: usize,
    /// Number of different names of threads.
    series: usize,
}

impl PushMeasures {
    /// Measures requests. `now` is in nanoseconds since 1970.
    pub fn new(contents: &ExportContents<'_>, requests: &[PushRequest], now: u64) -> Self {
        let newest = contents.recording.span.and_then(|(_, last)| contents.recording.since_1970(last));
        let stacks = contents.stacks;
        let names = stacks.threads.iter().map(|thread| (&thread.comm, &thread.process));
        Self {
            age: newest.map(|newest| Duration::from_nanos(now.saturating_sub(newest))),
            samples: requests.iter().map(|request| request.samples).max().unwrap_or(0),
            size: requests.iter().map(|request| request.size).max().unwrap_or(0),
            depth: stacks.rows.iter().map(|row| stacks.stack(row.stack).len()).max().unwrap_or(0),
            series: names.collect::<FxHashSet<_>>().len(),
        }
    }

    /// Returns the limits that the measures exceed.
    pub fn exceeded(&self, api: PushApi) -> Vec<PushLimit> {
        /// The defaults of Grafana Pyroscope. OTLP requests always keep those of samples and size.
        const OLDEST: Duration = Duration::from_secs(3600);
        const MOST_SAMPLES: usize = 16_000;
        const LARGEST: usize = 4 << 20;
        const DEEPEST: usize = 1000;
        const MOST_SERIES: usize = 5000;
        if api == PushApi::Parca {
            return Vec::new();
        }
        let limits = [
            self.age.filter(|age| *age > OLDEST).map(PushLimit::Age),
            (self.samples > MOST_SAMPLES).then_some(PushLimit::Samples(self.samples)),
            (self.size > LARGEST).then_some(PushLimit::Size(self.size)),
            (self.depth > DEEPEST).then_some(PushLimit::Depth(self.depth)),
            (api == PushApi::Otlp && self.series > MOST_SERIES).then_some(PushLimit::Series(self.series)),
        ];
        limits.into_iter().flatten().collect()
    }
}

/// A limit of Grafana Pyroscope that a push exceeds; the variants hold the actual values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PushLimit {
    Age(Duration),
    Samples(usize),
    Size(usize),
    Depth(usize),
    Series(usize),
}

impl PushLimit {
    /// Returns the warning for a push to this interface.
    pub fn warning(self, api: PushApi) -> Warning {
        let (what, rule, remedy) = match self {
            Self::Age(age) => (
                format!("the newest sample is {} old", duration(age.as_nanos() as f64)),
                "rejects profiles older than 1 h",
                "push soon after recording; pmc does not change times".into(),
            ),
            Self::Samples(samples) => (
                format!("a profile has {} different stacks", thousands(samples as u64)),
                "rejects profiles with more than 16,000",
                Advice::options("--no-inline, --max-stack or a shorter --time make fewer"),
            ),
            Self::Size(size) => (
                format!("a profile has {}", bytes(size as u64)),
                "rejects profiles of more than 4 MiB",
                Advice::options("--no-inline, --max-stack or a shorter --time make it smaller"),
            ),
            Self::Depth(depth) => (
                format!("a stack has {} frames", thousands(depth as u64)),
                "cuts stacks after 1,000 frames without a message",
                Advice::options("--max-stack 1000 cuts them here"),
            ),
            Self::Series(series) => (
                format!("the threads have {} different names", thousands(series as u64)),
                "accepts 5,000 series per tenant, and each name is one",
                Advice::options("--comms or --pid selects threads; --push pyroscope=URL pushes no names"),
            ),
        };
        let whose = if api == PushApi::Otlp {
            "Grafana Pyroscope, if it is the receiver,"
        } else {
            "Grafana Pyroscope"
        };
        Warning::new(format!("{what}: by default, {whose} {rule}")).advise(remedy)
    }
}

#[derive(Clone, PartialEq, Message)]
struct PyroscopePush {
    #[prost(message, repeated, tag = "1")]
    series: Vec<PyroscopeSeries>,
}

#[derive(Clone, PartialEq, Message)]
struct PyroscopeSeries {
    #[prost(message, repeated, tag = "1")]
    labels: Vec<PushLabel>,
    #[prost(message, repeated, tag = "2")]
    samples: Vec<PushSample>,
}

#[derive(Clone, PartialEq, Message)]
struct ParcaWrite {
    #[prost(message, repeated, tag = "2")]
    series: Vec<ParcaSeries>,
}

#[derive(Clone, PartialEq, Message)]
struct ParcaSeries {
    #[prost(message, optional, tag = "1")]
    labels: Option<ParcaLabels>,
    #[prost(message, repeated, tag = "2")]
    samples: Vec<PushSample>,
}

#[derive(Clone, PartialEq, Message)]
struct ParcaLabels {
    #[prost(message, repeated, tag = "1")]
    labels: Vec<PushLabel>,
}

#[derive(Clone, PartialEq, Message)]
struct PushLabel {
    #[prost(string, tag = "1")]
    name: String,
    #[prost(string, tag = "2")]
    value: String,
}

#[derive(Clone, PartialEq, Message)]
struct PushSample {
    #[prost(bytes = "vec", tag = "1")]
    raw_profile: Vec<u8>,
}

/// Returns a frame of gRPC: flags, length, contents.
fn grpc_frame(flags: u8, contents: &[u8]) -> Vec<u8> {
    [&[flags], (contents.len() as u32).to_be_bytes().as_slice(), contents].concat()
}

/// Returns the status and message of a gRPC-Web reply: from the frame with the trailers, or from the header.
fn grpc_status(reply: &HttpReply) -> Option<(u32, String)> {
    /// Flag of the frame with the trailers.
    const TRAILERS: u8 = 0x80;
    let mut rest = reply.body.as_slice();
    let mut text = String::new();
    while let Some(([flags, length @ ..], after)) = rest.split_first_chunk::<5>() {
        let length = u32::from_be_bytes(*length) as usize;
        let Some((contents, after)) = after.split_at_checked(length) else { break };
        if flags & TRAILERS != 0 {
            text = String::from_utf8_lossy(contents).into_owned();
        }
        rest = after;
    }
    let trailer = |name: &str| {
        let mut fields = text.lines().filter_map(|line| line.split_once(':'));
        let found = fields.rfind(|(of, _)| of.trim().eq_ignore_ascii_case(name));
        found.map_or_else(|| reply.header(name).to_owned(), |(_, value)| value.trim().to_owned())
    };
    Some((trailer("grpc-status").parse().ok()?, percent_decoded(&trailer("grpc-message"))))
}

fn percent_decoded(text: &str) -> String {
    let mut bytes = Vec::new();
    let mut rest = text.as_bytes();
    while let Some((first, after)) = rest.split_first() {
        let digits = after.first_chunk::<2>().and_then(|two| std::str::from_utf8(two).ok());
        let byte = digits.filter(|_| *first == b'%').and_then(|two| u8::from_str_radix(two, 16).ok());
        rest = if byte.is_some() { &after[2..] } else { after };
        bytes.push(byte.unwrap_or(*first));
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reply(text: &[u8]) -> HttpReply {
        reply::read_reply(text).unwrap()
    }

    fn refused(status: Option<u16>, said: &str) -> PushVerdict {
        PushVerdict::Refused { status, said: said.to_owned() }
    }

    #[test]
    fn errors_are_quoted_from_text_json_and_protobuf() {
        let text = b"HTTP/1.1 401 X\r\nContent-Length: 9\r\n\r\nno org id";
        let said = refused(Some(401), "HTTP status 401 (unauthorized): no org id");
        for (_, api) in PushApi::ALL {
            assert_eq!(api.verdict(&reply(text)), said);
        }
        let json = b"HTTP/1.1 400 X\r\n\r\n{\"code\":\"invalid_argument\",\"message\":\"too \\u001b many\"}";
        let said = refused(Some(400), "HTTP status 400 (bad request): too ? many");
        assert_eq!(PushApi::Pyroscope.verdict(&reply(json)), said);
        let status = OtlpStatus { message: "queue is full".to_owned() }.encode_to_vec();
        let head = b"HTTP/1.1 503 X\r\nContent-Type: application/x-protobuf\r\n\r\n".to_vec();
        let said = refused(Some(503), "HTTP status 503 (service unavailable): queue is full");
        assert_eq!(PushApi::Otlp.verdict(&reply(&[head, status].concat())), said);
        let moved = b"HTTP/1.1 307 X\r\nLocation: http://b/\r\n\r\n";
        let said = refused(Some(307), "HTTP status 307 (redirect): to http://b/");
        assert_eq!(PushApi::Otlp.verdict(&reply(moved)), said);
    }

    #[test]
    fn limits_are_those_of_the_receiver() {
        let age = Some(Duration::from_secs(3600));
        let most = PushMeasures { age, samples: 16_000, size: 4 << 20, depth: 1000, series: 5000 };
        assert_eq!(most.exceeded(PushApi::Pyroscope), []);
        let age = Duration::from_secs(3601);
        let more = PushMeasures { age: Some(age), samples: 16_001, size: 5 << 20, depth: 1001, series: 5001 };
        let limits = [
            PushLimit::Age(age),
            PushLimit::Samples(16_001),
            PushLimit::Size(5 << 20),
            PushLimit::Depth(1001),
        ];
        assert_eq!(more.exceeded(PushApi::Pyroscope), limits);
        assert_eq!(more.exceeded(PushApi::Otlp)[4..], [PushLimit::Series(5001)]);
        assert_eq!(more.exceeded(PushApi::Parca), []);
        let said = limits.map(|limit| limit.warning(PushApi::Pyroscope).what().to_owned());
        assert_eq!(
            said[0],
            "the newest sample is 60 min 1 s old: by default, Grafana Pyroscope rejects profiles older than 1 h"
        );
        assert_eq!(
            said[2],
            "a profile has 5.00 MiB: by default, Grafana Pyroscope rejects profiles of more than 4 MiB"
        );
        let said = PushLimit::Depth(1001).warning(PushApi::Otlp);
        assert!(said.what().contains("Grafana Pyroscope, if it is the receiver, cuts stacks"), "{said:?}");
    }

    #[test]
    fn partial_success_is_no_success() {
        use super::super::otlp::OtlpPartialSuccess;
        let of = |rejected_profiles| {
            let part = OtlpPartialSuccess { rejected_profiles, error_message: "no stack".to_owned() };
            let body = OtlpReply { partial_success: Some(part) }.encode_to_vec();
            PushApi::Otlp.verdict(&reply(&[b"HTTP/1.1 200 OK\r\n\r\n".to_vec(), body].concat()))
        };
        assert_eq!(of(0), PushVerdict::Accepted);
        assert_eq!(of(2), refused(None, "it rejected 2 profiles: no stack"));
        let cut = PushApi::Otlp.verdict(&reply(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nabc"));
        assert!(matches!(cut, PushVerdict::Refused { .. }));
    }

    #[test]
    fn grpc_status_is_in_the_last_frame_or_in_the_head() {
        let of = |head: &str, body: &[u8]| {
            let head = format!("HTTP/1.1 200 OK\r\n{head}\r\n");
            PushApi::Parca.verdict(&reply(&[head.as_bytes(), body].concat()))
        };
        let whole = [grpc_frame(0, b""), grpc_frame(0x80, b"grpc-status: 0\r\n")].concat();
        assert_eq!(of("", &whole), PushVerdict::Accepted);
        let failed = grpc_frame(0x80, b"Grpc-Status:3\r\nGrpc-Message:bad%20100%\r\n");
        assert_eq!(of("", &failed), refused(None, "gRPC status 3: bad 100%"));
        let denied = refused(Some(401), "gRPC status 16: who are you");
        assert_eq!(of("grpc-status: 16\r\ngrpc-message: who are you\r\n", b""), denied);
        assert_eq!(of("", b"<html>"), refused(None, "its reply has no gRPC status"));
        assert_eq!(of("", &[0x80, 255, 255, 255, 255, 0]), refused(None, "its reply has no gRPC status"));
    }
}
