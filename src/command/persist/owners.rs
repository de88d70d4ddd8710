//! `pmc persist adopt` and `attach`: the events of a running recording go to the holder, and to another
//! recording.

use std::fs;
use std::thread::sleep;
use std::time::{Duration, Instant};

use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

use super::{find, misunderstood};
use crate::abi::attr::Flag;
use crate::command::persist::plan::Attach;
use crate::error::{Error, Exit, Result, say};
use crate::host::Host;
use crate::persistent::client::ask;
use crate::persistent::directory::check_name;
use crate::persistent::message::{Answer, Request};
use crate::recording::file::features;
use crate::recording::file::output::{Events, Output};
use crate::recording::file::recorder::{self, Recording};
use crate::recording::plan::{BuildIdChoice, Course, FilePlan, SamplePlan};
use crate::recording::sources::Sources;
use crate::recording::{handover, launch, open};
use crate::sys::process::Streams;
use crate::sys::signal::{self, Signals};
use crate::units::thousands;

/// How long a recorder may take to hand its events over.
const PATIENCE: Duration = Duration::from_secs(10);

/// Has a recorder hand its events over, and calls them so.
pub(super) fn adopt(name: &str, pid: u32, host: &Host) -> Result<()> {
    check_name(name)?;
    let refused = |why: &str| Error::new(format!("process {pid} has no events to hand over")).why(why);
    if find(name, host).is_ok() {
        return Err(Error::usage(format!("a persistent event called {name} is held already"))
            .try_this(format!("another name, or first: pmc persist rm {name}")));
    }
    // The number stands for the same process from here on.
    let process = i32::try_from(pid).ok().and_then(Pid::from_raw);
    let process = process.and_then(|pid| pidfd_open(pid, PidfdFlags::empty()).ok());
    let Some(process) = process.filter(|_| hears(host, pid)) else {
        return Err(refused("it is no pmc record, or it has ended").try_this("pgrep -af 'pmc record'"));
    };
    let sent = pidfd_send_signal(&process, Signal::USR1);
    sent.map_err(|error| Error::io(format!("asking process {pid}"), error))?;
    let (given, begun) = (handover::name(pid), Instant::now());
    let (directory, entry) = loop {
        if let Ok(found) = find(&given, host) {
            break found;
        }
        if begun.elapsed() > PATIENCE || !hears(host, pid) {
            return Err(refused("it has said why, or it publishes where we do not look"));
        }
        sleep(Duration::from_millis(10));
    };
    ask(&directory, &Request::Rename { entry: entry.id.to_string(), name: name.to_owned() })?;
    say::note(format!("{name} is held: {}, id {}", entry.definition.event, entry.id));
    Ok(())
}

/// Whether a process waits for SIGUSR1 in the way of `pmc record`: others would be killed by it.
fn hears(host: &Host, pid: u32) -> bool {
    let is_perf = |file: fs::DirEntry| {
        fs::read_link(file.path()).is_ok_and(|to| to.as_os_str() == "anon_inode:[perf_event]")
    };
    let descriptors = fs::read_dir(host.path(format!("/proc/{pid}/fd"))).into_iter().flatten().flatten();
    let status = host.text(format!("/proc/{pid}/status")).unwrap_or_default();
    let blocked = status.lines().find_map(|line| line.strip_prefix("SigBlk:"));
    let blocked = blocked.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0);
    blocked >> (signal::USR1 - 1) & 1 == 1 && descriptors.into_iter().any(is_perf)
}

/// Records the events of an entry, which is held no more, until the end; then they are closed.
pub(super) fn attach(plan: &Attach, host: &Host) -> Result<Exit> {
    let (directory, entry) = find(&plan.entry, host)?;
    let signals = Signals::catch(&[signal::INT, signal::TERM, signal::HUP, signal::CHLD, signal::USR1])
        .map_err(|error| Error::io("catching signals", error))?;
    let course = Course { command: plan.command.clone(), ..Course::default() };
    let held = launch::hold_for(&course, Streams::Shared)?;
    let (answer, descriptors) = ask(&directory, &Request::Attach { entry: entry.id.to_string() })?;
    let Answer::Given(given) = answer else { return Err(misunderstood()) };
    let sources = Sources::of(handover::take(&given, descriptors)?);
    // The rings are ours as well, and keep what they hold.
    ask(&directory, &Request::Remove { entry: entry.id.to_string() })?;
    let recorded = sources.events();
    let clock =
        recorded.iter().find(|event| event.attr.get(Flag::UseClockid)).map(|event| event.attr.clockid());
    let mut sample = SamplePlan::on(handover::scope(&given)?, open::held_options());
    (sample.options.clock, sample.course) = (clock, course);
    let file = FilePlan { build_ids: BuildIdChoice::Hit, ..FilePlan::of(plan.output.clone()) };
    let events = Events::new(&sample, recorded);
    let features = features::at_the_start(host, clock, &sources.groups(), &events.written);
    let output = Output::create(&file, None, events, features, sources.owners())?;
    let recording = Recording {
        host,
        plan: &sample,
        file: &file,
        sources,
        triggers: None,
        threads: handover::threads(&sample.scope, host),
        output,
        held,
        signals: &signals,
        control: None,
        watcher: None,
        status: &mut (),
        counted: None,
    };
    let run = recording.run()?;
    drop(signals);
    let exit = run.exit(!plan.command.is_empty());
    let lost = match recorder::lost(&run.totals, &run.readings) {
        0 => "none lost".to_owned(),
        lost => format!("{} records lost", thousands(lost)),
    };
    say::note(format!("{}: {} samples, {lost}", plan.output.display(), thousands(run.totals.samples)));
    match run.failed {
        Some(error) => Err(error),
        None => Ok(exit),
    }
}
