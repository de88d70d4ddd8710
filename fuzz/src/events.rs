//! Text of events: of perf, pmcstat, NetBSD and libpfm4, in PCP's configuration, and of probes.

use std::ffi::OsString;
use std::path::Path;
use std::sync::OnceLock;

use pmc::cli::netbsd::{self, NetbsdCommand};
use pmc::cli::perfalloc;
use pmc::cli::pmcstat::PmcstatCommandLine;
use pmc::cli::tprof::TprofCommandLine;
use pmc_events::event::{EventParser, LineRange, ProbeSyntax, libpfm, parse_point, perfevent_conf};
use pmc_sys::host::Host;

use crate::with_text;

/// Saved machines, of which the first byte of an input selects one.
const MACHINES: [&str; 8] = [
    "virtual",
    "intel-hybrid",
    "intel-server",
    "amd-zen",
    "arm-biglittle",
    "arm-server",
    "persistent",
    "power-lpar",
];

fn machine(number: u8) -> &'static Host {
    static HOSTS: OnceLock<Vec<Host>> = OnceLock::new();
    let folder = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../tests/data/sysfs"));
    let hosts = HOSTS.get_or_init(|| MACHINES.map(|name| Host::rooted(folder.join(name))).into());
    &hosts[usize::from(number) % hosts.len()]
}

/// The machine, the personality, and the text: an event list or a command line.
pub fn text(data: &[u8]) {
    let [number, personality, text @ ..] = data else { return };
    let host = machine(*number);
    with_text(text, |text| match personality % 4 {
        0 => parse(host, text),
        1 => parse(host, &libpfm::event_text(text)),
        2 => {
            if let Some(Ok(NetbsdCommand::Count { event, .. })) = netbsd::parse(&words(text)) {
                let mut parser = EventParser::new(host);
                if parser.parse_single(&event, "hint").is_ok() {
                    parse(host, &format!("{event},usr"));
                }
            }
        }
        _ => {
            // pmcstat's events are the words after `-p`, `-s`, `-P` and `-S`.
            let _ = PmcstatCommandLine::parse(words(text)).map_err(|error| error.len());
            let _ = TprofCommandLine::parse(words(text)).map_err(|error| error.len());
            let _ = perfalloc::parse(words(text), false);
            text.split_whitespace().for_each(|word| parse(host, word));
        }
    });
}

fn words(text: &str) -> Vec<OsString> {
    text.split_whitespace().map(OsString::from).collect()
}

fn parse(host: &Host, text: &str) {
    match EventParser::new(host).parse(text) {
        Ok(groups) => {
            for event in groups.iter().flat_map(|group| &group.events) {
                let _ = (event.unique_name(), event.takes_counter(), event.has_levels(), event.hook());
            }
        }
        Err(error) => drop(error.to_string()),
    }
}

/// The machine, and the text of PCP's perfevent.conf.
pub fn perfevent(data: &[u8]) {
    let [number, text @ ..] = data else { return };
    let host = machine(*number);
    with_text(text, |text| match perfevent_conf::read(text, host, &mut EventParser::new(host)) {
        Ok(conf) => drop((conf.groups, conf.sums)),
        Err(line) => drop(line.to_string()),
    });
}

/// Definitions of probes, their places, and ranges of lines.
pub fn probe_syntax(data: &[u8]) {
    with_text(data, |text| {
        for line in text.lines() {
            let said = |error: Box<pmc_events::event::ParseError>| error.to_string();
            let _ = ProbeSyntax::parse(line).map(|probe| probe.point.needs_lines()).map_err(said);
            let _ = LineRange::parse(line).map_err(said);
            let _ = parse_point(line).map_err(said);
        }
    });
}
