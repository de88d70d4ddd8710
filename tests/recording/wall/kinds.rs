//! What each kind of wait is called: a program with a thread for each kind, named after it. Each thread waits
//! about a hundred times.

use std::collections::BTreeMap;

use crate::Lab;
use crate::kit;

const KINDS: &str = include_str!("../../data/waits/kinds-of-waits.c");

/// The threads of the program, by the site for which they wait longest. The program has two more kinds, which
/// need a large file.
const SITES: [(&str, &str); 16] = [
    ("sleep", "sleep usleep holder wr flockh ticker barrier2"),
    ("mutex", "mutex"),
    ("condition", "cond condt"),
    ("rwlock", "rdlock"),
    ("semaphore", "sem semop"),
    ("barrier", "barrier"),
    ("thread", "join"),
    ("futex", "futex"),
    ("pipe", "pipe"),
    ("socket", "sock"),
    ("epoll", "epoll"),
    ("poll", "poll select"),
    ("notification", "eventfd timerfd mq msg"),
    ("child", "waitpid vfork"),
    ("signal", "sigwait"),
    ("file lock", "flock"),
];

#[test]
fn each_kind_of_wait_has_its_name() {
    if !kit::need_root() || !kit::need_kernel_mode() {
        return;
    }
    let lab = Lab::new();
    let Some(program) = lab.build(&["gcc", "-O1", "-w", "-pthread", "-x", "c"], KINDS) else { return };
    let wanted: Vec<(&str, &str)> =
        SITES.iter().flat_map(|(site, names)| names.split(' ').map(move |name| (name, *site))).collect();
    let mut command = vec![program.to_str().expect("UTF-8")];
    command.extend(wanted.iter().map(|(name, _)| *name));
    let (file, _) = lab.record(&["-q", "--wall"], &command);
    let words = ["-F", "period,comm,wait_site", "-g", "none", "-q", "--idle", "--state", "blocked"];
    let report = kit::run(&[&["report", "-i", file.to_str().expect("UTF-8")], &words[..]].concat());
    let mut sites: BTreeMap<String, (u64, String)> = BTreeMap::new();
    for line in report.expect(0).stdout.lines() {
        let words: Vec<&str> = line.split_whitespace().collect();
        let [period, comm, site @ ..] = &words[..] else { continue };
        let Ok(period) = period.parse() else { continue };
        let longest = sites.entry((*comm).to_owned()).or_default();
        *longest = (&*longest).max(&(period, site.join(" "))).clone();
    }
    let wrong: Vec<String> = wanted
        .iter()
        .filter_map(|(name, want)| {
            let got = sites.get(*name).map_or("", |(_, site)| site);
            (got != *want).then(|| format!("{name}: {got:?}, not {want}"))
        })
        .collect();
    assert!(wrong.is_empty(), "{wrong:#?}\n{sites:#?}");
}
