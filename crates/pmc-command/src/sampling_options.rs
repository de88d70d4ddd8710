//! Options that select targets, shared by `record`, `top` and `stat`, and options for the rate, call chains
//! and ring buffer size, shared by `record` and `top`.
//!
//! Converts the parsed options into parts of a plan. Invalid values are usage errors (exit status 2).

use super::warning::CommandWarning;
use pmc_events::counter::request::sampling::{CallGraph, DEFAULT_STACK, Rate};
use pmc_events::counter::rings::pages_of;
use pmc_events::counter::target;
use pmc_events::event::libpfm::event_text;
use pmc_recording::recording::launch;
use pmc_recording::recording::plan::MeasurementScope;
use pmc_sys::abi::attr::LARGEST_STACK_COPY;
use pmc_sys::abi::sample_type;
use pmc_sys::error::{AdvisedOption, Error, Result};
use pmc_sys::host::{CpuList, Host};
use pmc_sys::sys::page_size;

/// The sample field in which this architecture reports the cost of a sample.
pub const WEIGHT: u64 =
    if cfg!(target_arch = "x86_64") { sample_type::WEIGHT_STRUCT } else { sample_type::WEIGHT };

/// Converts the events of `--pfm-events` to pmc's event syntax.
pub fn pfm_events(lists: &[String]) -> impl Iterator<Item = String> {
    lists.iter().map(|list| event_text(list))
}

/// The options that select the targets.
#[derive(Debug, Clone, Copy)]
pub struct TargetArgs<'a> {
    pub pids: &'a [String],
    pub tids: &'a [String],
    pub user: Option<&'a str>,
    pub cpus: Option<&'a str>,
    pub all_cpus: bool,
}

/// Returns a warning if `-p`, `-t` or `-u` override `-a` or `-C`, as in perf.
pub fn overridden(typed: TargetArgs<'_>) -> Option<CommandWarning> {
    let named =
        [("-p", !typed.pids.is_empty()), ("-t", !typed.tids.is_empty()), ("-u", typed.user.is_some())];
    let whole = [("-a", typed.all_cpus), ("-C", typed.cpus.is_some())];
    let (by, _) = named.into_iter().find(|(_, is_typed)| *is_typed)?;
    let (option, _) = whole.into_iter().find(|(_, is_typed)| *is_typed)?;
    Some(CommandWarning::TargetOverridden { option, by })
}

/// Whether all of these events are persistent, so that their targets were already chosen when they were added
/// to the holder.
pub fn are_held(events: &[String]) -> bool {
    let is_held = |events: &String| events.split(',').all(|event| event.starts_with("persistent/"));
    !events.is_empty() && events.iter().all(is_held)
}

/// Returns the selected targets, or the command if no other target is selected.
pub fn scope(typed: TargetArgs<'_>, host: &Host) -> Result<MeasurementScope> {
    if !typed.pids.is_empty() {
        let lists = typed.pids.iter().map(|word| processes(word, host)).collect::<Result<Vec<_>>>()?;
        return Ok(MeasurementScope::Processes(lists.concat()));
    }
    if !typed.tids.is_empty() {
        let id = |word: &String| {
            number(word).ok_or_else(|| {
                Error::usage(format!("`{word}` is not a thread id")).try_this("a list of numbers: 12,345")
            })
        };
        return Ok(MeasurementScope::Threads(typed.tids.iter().map(id).collect::<Result<_>>()?));
    }
    if let Some(user) = typed.user {
        return Ok(MeasurementScope::User(user.to_owned()));
    }
    let cpus = typed.cpus.map(|text| text.parse::<CpuList>().map_err(|error| error.of_option("-C ", text)));
    let cpus = cpus.transpose()?;
    if cpus.as_ref().is_some_and(CpuList::is_empty) {
        return Err(Error::usage("-C: the list of CPUs is empty").try_this("a list such as 0-3,8"));
    }
    if typed.all_cpus || cpus.is_some() {
        return Ok(MeasurementScope::Cpus(target::cpus(host, cpus.as_ref()).map_err(launch::no_target)?));
    }
    Ok(MeasurementScope::Command)
}

/// Returns the target if no command is given: all CPUs, as in perf.
pub fn whole_machine(host: &Host) -> Result<MeasurementScope> {
    Ok(MeasurementScope::Cpus(target::cpus(host, None).map_err(launch::no_target)?))
}

fn number(word: &str) -> Option<u32> {
    word.trim().parse().ok().filter(|&id| id > 0)
}

/// Parses a process id, or finds all processes with this exact name, as `pgrep -x` does.
pub fn processes(word: &str, host: &Host) -> Result<Vec<u32>> {
    /// The kernel truncates names to this length (`TASK_COMM_LEN`).
    const MOST: usize = 15;
    let is_name = !word.trim().is_empty() && !word.bytes().all(|byte| byte.is_ascii_digit());
    if !is_name {
        let wrong = || {
            Error::usage(format!("`{word}` is not a process id"))
                .try_option(AdvisedOption::Processes, "{option} 12,345, or {option} NAME")
        };
        return number(word).map(|pid| vec![pid]).ok_or_else(wrong);
    }
    let name = &word.as_bytes()[..word.len().min(MOST)];
    let own = std::process::id();
    let is_it = |pid: &u32| *pid != own && host.comm(*pid).as_bytes() == name;
    let found: Vec<u32> = host.processes().into_iter().filter(is_it).collect();
    if found.is_empty() {
        return Err(Error::usage(format!("no process is named `{word}`"))
            .why("pmc compares with the names that ps -e shows, which have at most 15 characters")
            .try_this(format!("pgrep -af {word}, then -p PID")));
    }
    Ok(found)
}

/// Parses `-F` and `-c`.
pub fn rate(freq: Option<&str>, count: Option<&str>, host: &Host) -> Result<Rate> {
    let number = |option: &str, text: &str| {
        text.parse().ok().filter(|&n: &u64| n > 0 && n < 1 << 63).ok_or_else(|| {
            Error::usage(format!("{option} {text}: not a valid number")).try_this(match option {
                "-F" => "use samples per second, such as 999, or max",
                _ => "use a number of occurrences, such as 100000, or auto",
            })
        })
    };
    match (freq, count) {
        (Some("max"), _) => {
            let most = host.number("/proc/sys/kernel/perf_event_max_sample_rate");
            most.map(Rate::Frequency).ok_or_else(|| {
                Error::usage("-F max: /proc/sys/kernel/perf_event_max_sample_rate cannot be read")
                    .try_this("use a number")
            })
        }
        (Some(text), _) => Ok(Rate::Frequency(number("-F", text)?)),
        (_, Some("auto")) => Ok(Rate::Recommended),
        (_, Some(text)) => Ok(Rate::Period(number("-c", text)?)),
        _ => Ok(Rate::Default),
    }
}

/// Parses `--call-graph` and `-g`.
pub fn call_graph(text: Option<&str>, stacks: bool) -> Result<Option<CallGraph>> {
    let Some(text) = text else {
        return Ok(stacks.then_some(CallGraph::Fp));
    };
    let (mode, size) = text.split_once(',').map_or((text, None), |(mode, size)| (mode, Some(size)));
    let wrong = || {
        Error::usage(format!("--call-graph {text}: expected auto[,BYTES], dwarf[,BYTES], fp[,defer] or lbr"))
            .try_this("--call-graph dwarf,16384: copies of up to 16 KiB of stack (at most 65528 bytes)")
    };
    match (mode, size) {
        ("fp", None) => Ok(Some(CallGraph::Fp)),
        ("fp", Some("defer")) => Ok(Some(CallGraph::FpDeferred)),
        ("lbr", None) => Ok(Some(CallGraph::Lbr)),
        ("dwarf" | "auto", size) => {
            // The size must be a multiple of 8 and leave room for the rest of the record.
            let bytes: u32 = size.map_or(Ok(DEFAULT_STACK), str::parse).map_err(|_| wrong())?;
            let rounded = bytes.next_multiple_of(8);
            match (mode, bytes == 0 || rounded > LARGEST_STACK_COPY) {
                (_, true) => Err(wrong()),
                ("auto", false) => Ok(Some(CallGraph::Auto(rounded))),
                (_, false) => Ok(Some(CallGraph::Dwarf(rounded))),
            }
        }
        _ => Err(wrong()),
    }
}

/// Parses a size in bytes with a unit: `100M`.
pub fn size(option: &str, text: &str) -> Result<u64> {
    let (digits, factor) = match text.as_bytes().last().map(u8::to_ascii_uppercase) {
        Some(b'B') => (&text[..text.len() - 1], 1),
        Some(b'K') => (&text[..text.len() - 1], 1 << 10),
        Some(b'M') => (&text[..text.len() - 1], 1 << 20),
        Some(b'G') => (&text[..text.len() - 1], 1 << 30),
        _ => (text, 1),
    };
    let bytes = digits.parse::<u64>().ok().and_then(|n| n.checked_mul(factor)).filter(|&bytes| bytes > 0);
    bytes.ok_or_else(|| {
        Error::usage(format!("{option} {text}: not a valid size"))
            .try_this("use a size such as 64K, 100M or 2G")
    })
}

/// Parses `-m`: pages, or bytes with a unit; rounds up to a power of two.
pub fn ring_pages(text: &str) -> Result<usize> {
    let pages = match text.parse::<u64>() {
        Ok(pages) => pages.saturating_mul(page_size() as u64),
        Err(_) => size("-m", text)?,
    };
    if pages == 0 || pages > 1 << 40 {
        return Err(Error::usage(format!("-m {text}: not a valid ring buffer size"))
            .try_this("use a size such as 128 (pages) or 4M"));
    }
    Ok(pages_of(pages))
}
