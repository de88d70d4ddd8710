//! Text of events: of perf, pmcstat, NetBSD and libpfm4, in PCP's configuration, and of probes.

use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::{MetadataExt, symlink};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use pmc_compat::{netbsd, perfalloc, pmcstat, tprof};
use pmc_events::event::{
    EventParser, EventTarget, LineRange, ProbeNames, ProbePoint, ProbeSyntax, kernel_functions, libpfm,
    perfevent_conf, probe_event_name, probe_group, with_libraries,
};
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
    let saved = |name| Host::rooted(crate::source("tests/data/sysfs").join(name));
    let hosts = HOSTS.get_or_init(|| MACHINES.map(saved).into());
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
            if let Some(Ok(netbsd::CommandLine::Count { event, .. })) = netbsd::parse(&words(text)) {
                let mut parser = EventParser::new(host);
                if parser.parse_single(&event, "hint").is_ok() {
                    parse(host, &format!("{event},usr"));
                }
            }
        }
        _ => {
            // pmcstat's events are the words after `-p`, `-s`, `-P` and `-S`.
            let _ = pmcstat::options::CommandLine::parse(words(text)).map_err(|error| error.len());
            let _ = tprof::CommandLine::parse(words(text)).map_err(|error| error.len());
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
            let _ = line.parse::<ProbeSyntax>().map(|probe| probe.point.needs_lines()).map_err(said);
            let _ = line.parse::<LineRange>().map_err(said);
            let _ = line.parse::<ProbePoint>().map_err(said);
        }
    });
}

/// Kernel symbols, two of which have the same name.
const KALLSYMS: &str = "ffff1000 T _stext\nffff1000 T _text\nffff1010 T open\nffff1020 t twin\nffff1030 t twin\n\
    ffff1040 D jiffies\nffff2000 t io\t[disk]\n";

/// A process that runs the program.
const PID: u32 = 7;

/// Events in a program: probes at functions and at their return, markers, breakpoints at variables, by path, and
/// in a command or process. `root` contains the program as `file`, and becomes the root of a machine.
pub(crate) fn in_program(root: &Path, functions: &[String]) {
    let process = root.join(format!("proc/{PID}"));
    fs::create_dir_all(&process).expect("a folder");
    fs::write(root.join("proc/kallsyms"), KALLSYMS).expect("a file");
    symlink(crate::source("tests/data/sysfs/intel-server/sys"), root.join("sys")).expect("a link");
    let inode = fs::metadata(root.join("file")).expect("the program").ino();
    let maps = format!("555500000000-555500010000 r-xp 00000000 00:2d {inode} /file\n");
    fs::write(process.join("maps"), maps).expect("a file");
    let host = Host::rooted(root);
    let target = |command: bool| EventTarget {
        command: Vec::from_iter(command.then(|| "/file".into())),
        find_program: Some(|words| words.first().map(PathBuf::from)),
        tasks: Vec::from_iter((!command).then_some(PID)),
        ..EventTarget::default()
    };
    for target in [EventTarget { cpus: true, ..EventTarget::default() }, target(true), target(false)] {
        let mut parser = EventParser::new(&host).with_target(target);
        let mut parse = |text: String| drop(parser.parse(&text).map_err(|error| error.to_string()));
        for name in functions {
            parse(format!("uprobe:/file:{name}"));
            parse(format!("uprobe:/file:{name}+1"));
            parse(format!("uprobe:/file:{name}%return,period=3"));
            parse(format!("mem:&{name}:w"));
            parse(format!("mem:&{name}+4/4:r"));
        }
        for text in [
            "sdt:/file:*:*",
            "sdt_*:*",
            "sdt_none:none",
            "mem:&counter",
            "mem:0x1000/8:rw:k",
            "mem:&jiffies:k",
        ] {
            parse(text.to_owned());
        }
        for text in ["open", "open+4", "open%return", "twin", "disk:io", "disk:open", "nodisk:io", "nothing"]
        {
            parse(format!("kprobe:{text}"));
        }
    }
    let _ = with_libraries(&host, Path::new("/file"), "/lib:.").len();
    let group = probe_group(Some(Path::new("/file")));
    let mut names = ProbeNames::new([(group.clone(), "taken".to_owned())]);
    for name in functions {
        for (line, returns) in [(None, false), (None, true), (Some(3), false)] {
            let event = probe_event_name(name, line, returns);
            let _ = names
                .reserve(&group, &event, true)
                .or_else(|| names.reserve(&probe_group(None), &event, false));
        }
        for module in [None, Some("disk")] {
            let _ = kernel_functions(Some(KALLSYMS.as_bytes()), module, name).map(|found| found.len());
        }
    }
}
