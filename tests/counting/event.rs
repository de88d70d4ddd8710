//! Event text against recorded machines (`tests/data/sysfs`): the resulting requests, and the errors for
//! invalid text.
//!
//! The tables of `tests/data/events` list, for each text, the requests that Linux perf 6.1 made on the same
//! tree (with `SYSFS_PATH`, watched with strace). Rows marked `table` are those that perf 6.1 refuses or
//! abandons half-way; their requests follow from the format files. Rows marked `not yet` are those that perf
//! accepts and pmc refuses, because pmc would ignore part of the text.

use crate::kit;

use pmc_events::counter::facts::MachineFacts;
use pmc_events::counter::{CounterFlags, Mode};
use pmc_events::event::listing::{EventKind, ListingSources};
use pmc_events::event::{
    self, EventGroup, EventParser, EventSource, EventSpec, Hook, PersistentEvent, Tool, perfevent_conf,
};
use pmc_events::hint::Hint;
use pmc_sys::abi::attr::{Flag, kind};
use pmc_sys::error::{Error, Exit};
use pmc_sys::host::{CpuList, Host};
use proptest::prelude::*;

/// Returns a recorded machine. Messages have pmc's advice from here on, as in the program.
fn tree(name: &str) -> Host {
    pmc_command::advice::install();
    Host::rooted(kit::data("sysfs").join(name))
}

#[track_caller]
fn parse(machine: &str, text: &str) -> Vec<EventGroup> {
    event::parse(text, &tree(machine)).unwrap_or_else(|error| panic!("{machine}: {text}\n{error}"))
}

#[track_caller]
fn one(machine: &str, text: &str) -> EventSpec {
    let mut groups = parse(machine, text);
    assert_eq!((groups.len(), groups[0].events.len()), (1, 1), "{text}");
    groups.remove(0).events.remove(0)
}

/// Formats a request as the tables do: `4:0x1cd config1=0x1e -G p=2`, where `-u -k -h -I -H -G` are excluded
/// levels.
fn encoded(event: &EventSpec) -> String {
    let attr = match &event.source {
        EventSource::Tool(tool) => return format!("{tool:?}"),
        EventSource::Held(held) => return format!("held {}", held.id),
        EventSource::Kernel(attr) => attr,
    };
    let mut out = format!("{}:{:#x}", attr.kind(), attr.config());
    if attr.kind() == kind::BREAKPOINT {
        out += &format!(" bp={},{:#x},{}", attr.bp_type(), attr.config1(), attr.config2());
    } else {
        for (name, value) in [("config1", attr.config1()), ("config2", attr.config2())] {
            if value != 0 {
                out += &format!(" {name}={value:#x}");
            }
        }
    }
    for (flag, word) in [
        (Flag::ExcludeUser, " -u"),
        (Flag::ExcludeKernel, " -k"),
        (Flag::ExcludeHv, " -h"),
        (Flag::ExcludeIdle, " -I"),
        (Flag::ExcludeHost, " -H"),
        (Flag::ExcludeGuest, " -G"),
        (Flag::Pinned, " pinned"),
        (Flag::Exclusive, " exclusive"),
    ] {
        if attr.get(flag) {
            out += word;
        }
    }
    if attr.precise_ip() > 0 {
        out += &format!(" p={}", attr.precise_ip());
    }
    out
}

/// Returns all events of the groups, in order.
fn flat(groups: &[EventGroup]) -> impl Iterator<Item = &EventSpec> {
    groups.iter().flat_map(|group| &group.events)
}

fn rows(table: &str) -> Vec<Vec<String>> {
    let text = std::fs::read_to_string(kit::data("events").join(table)).expect("the table can be read");
    let lines = text.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
    lines.map(|line| line.split('\t').map(str::to_owned).collect()).collect()
}

/// Checks every row of a table and shows all that differ.
fn agree(table: &str, at_least: usize) {
    let rows = rows(table);
    assert!(rows.len() >= at_least, "{table} has lost rows: {}", rows.len());
    let mut wrong = String::new();
    for row in &rows {
        let got = match event::parse(&row[1], &tree(&row[0])) {
            Ok(groups) => flat(&groups).map(encoded).collect::<Vec<_>>().join("; "),
            Err(error) if error.message.ends_with("has no effect") => "not yet".to_owned(),
            Err(error) => error.to_string(),
        };
        if got != row[2] {
            wrong += &format!("{} {}\n  want {}\n  got  {got}\n", row[0], row[1], row[2]);
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
}

#[test]
fn events_from_perfs_documentation_encode_like_perf() {
    agree("perf-documentation.txt", 100);
}

#[test]
fn requests_match_perf() {
    agree("perf-requests.txt", 200);
}

#[test]
fn parse_errors_have_a_caret_and_help() {
    let mut told = String::new();
    let mut count = 0;
    for row in rows("wrong.txt") {
        let text = row.get(1).map_or("", String::as_str);
        let Err(wrong) = event::parse(text, &tree(&row[0])) else { panic!("{text:?} was understood") };
        let blank = text.trim().is_empty();
        assert!(blank || wrong.drawing().contains('^'), "{text}");
        let error = Error::from(wrong);
        assert_eq!(error.exit_status(), Exit::Usage, "{text}");
        let said = error.to_string();
        let helps =
            ["expected", "try:", "why:", "duplicate", "is too large"].iter().any(|word| said.contains(word));
        assert!(helps, "no help for {text}:\n{said}");
        told += &format!("[{}] {text}\n{said}\n\n", row[0]);
        count += 1;
    }
    assert!(count >= 40);
    kit::golden("event-wrong.txt", &told);
}

#[test]
fn typos_get_suggestions() {
    for (machine, text, meant) in [
        ("virtual", "cycels", "cycles"),
        ("virtual", "cycles,usrr", "usr"),
        ("virtual", "cycles,perod=1000", "period"),
        ("virtual", "sched:sched_swich", "sched_switch"),
        ("virtual", "sched_switch", "sched:sched_switch"),
        ("intel-server", "cpu/mem-laods/", "mem-loads"),
        ("intel-server", "uncore_imx/clockticks/", "uncore_imc"),
        ("intel-server", "energy-pgk", "energy-pkg"),
        ("persistent", "persistent/mce_recrod/", "mce_record"),
    ] {
        let wrong = event::parse(text, &tree(machine)).unwrap_err();
        assert_eq!(wrong.suggestions.first().map(String::as_str), Some(meant), "{text}");
    }
}

#[test]
fn generic_events_need_no_machine() {
    let nowhere = Host::rooted("/nonexistent");
    for text in ["task-clock", "cycles:u", "LLC-load-misses", "r1a8", "duration_time", "mem:0x1000:w", "1:0"]
    {
        assert!(event::parse(text, &nowhere).is_ok(), "{text}");
    }
}

#[test]
fn only_needed_sysfs_files_are_read() {
    if !kit::need_program("strace")
        || !kit::need_root()
        || !kit::need_perf_events()
        || !kit::need_tracefs("sched")
    {
        return;
    }
    // Paths in the folders of PMUs and tracepoints that the program opened or looked up.
    let read = |text: &str| -> Vec<String> {
        let log = tempfile::NamedTempFile::new().expect("a temporary file");
        let status = std::process::Command::new("strace")
            .args(["-qq", "-e", "trace=%file", "-o"])
            .arg(log.path())
            .arg(kit::binary())
            .args(["stat", "--reserve", "off", "-o", "/dev/null", "-e", text, "--", "true"])
            .status()
            .expect("strace starts");
        assert!(status.success(), "{text}");
        let trace = std::fs::read_to_string(log.path()).expect("strace's output");
        let paths = trace.lines().filter_map(|line| line.split('"').nth(1));
        // pmc's own tracefs appears only as a descriptor, not as a path.
        let wanted = |path: &&str| {
            ["event_source/devices", "tracing", "/events/"].iter().any(|part| path.contains(part))
        };
        paths.filter(wanted).map(str::to_owned).collect()
    };
    assert_eq!(read("task-clock,page-faults:u"), Vec::<String>::new());
    let tracepoint = read("sched:sched_switch");
    assert!(tracepoint.iter().any(|path| path.ends_with("sched/sched_switch/id")), "{tracepoint:?}");
    assert!(tracepoint.len() <= 4, "{tracepoint:?}");
}

#[test]
fn qualifier_belongs_to_the_preceding_event() {
    let groups = parse("virtual", "cycles,usr,instructions,period=1000,task-clock,cpu=0,2-3,faults");
    let events: Vec<_> = flat(&groups).collect();
    assert_eq!(
        events.iter().map(|e| e.name.as_str()).collect::<Vec<_>>(),
        ["cycles:u", "instructions", "task-clock", "faults"]
    );
    assert_eq!(encoded(events[0]), encoded(&one("virtual", "cycles:u")));
    assert_eq!(events[1].attr().unwrap().period(), 1000);
    assert_eq!(events[2].cpus.as_ref().map(CpuList::to_string).as_deref(), Some("0,2-3"));
    assert!(events[3].cpus.is_none());
}

#[test]
fn qualifiers_equal_modifiers() {
    for (words, letters) in [
        ("cycles,usr", "cycles:u"),
        ("cycles,os", "cycles:k"),
        ("cycles,usr,os", "cycles:uk"),
        ("cycles:u,os", "cycles:uk"),
        ("cycles,guest", "cycles:G"),
        ("cycles,pinned", "cycles:D"),
        ("cycles,exclusive", "cycles:e"),
        ("cycles,idle=0", "cycles:I"),
        ("msr/tsc/,os", "msr/tsc/k"),
        ("{cycles,instructions},usr", "{cycles,instructions}:u"),
    ] {
        let encode = |text| flat(&parse("virtual", text)).map(encoded).collect::<Vec<_>>();
        assert_eq!(encode(words), encode(letters), "{words}");
    }
    assert_eq!(one("virtual", "msr/tsc/,os").name, "msr/tsc/k");
    assert_eq!(one("virtual", "cycles,usr,name=mine").name, "mine");
    assert_eq!(one("virtual", "cycles,precise=2").attr().unwrap().precise_ip(), 2);
}

#[test]
fn fields_refine_listed_event_codes() {
    assert_eq!(encoded(&one("intel-server", "instructions,cmask=1,inv")), "4:0x18000c0 -G");
    assert_eq!(encoded(&one("intel-server", "cpu/event=0xa8/,umask=1,edge")), "4:0x401a8 -G");
    assert_eq!(encoded(&one("amd-zen", "cycles,count=2")), "4:0x2000076 -G");
    assert_eq!(encoded(&one("intel-server", "r1a8,edge")), "4:0x401a8 -G");
}

#[test]
fn opening_qualifiers_are_kept() {
    let event = one("virtual", "cycles,descendants,call-graph=dwarf,stack-size=4096,freq=99");
    let told = &event.qualifiers;
    assert_eq!(told.inherit, Some(true));
    assert_eq!((told.call_graph.as_deref(), told.stack_size), (Some("dwarf"), Some(4096)));
    assert!(event.attr().unwrap().get(Flag::Freq));
    let event = one("virtual", "cycles/no-inherit,overwrite,time=0,max-stack=7,branch_type=any_call/");
    let told = &event.qualifiers;
    assert_eq!(
        (told.inherit, told.overwrite, told.time, told.max_stack, told.branch_type),
        (Some(false), Some(true), Some(false), Some(7), Some(1 << 4))
    );
    // A whole process: its threads, without its children.
    let whole = one("virtual", "cycles,descendants=0");
    assert!(whole.attr().unwrap().get(Flag::InheritThread), "{whole:?}");
    assert_eq!((whole.qualifiers.inherit, whole.qualifiers.descendants), (Some(true), false));
    assert!(!one("virtual", "cycles,descendants").attr().unwrap().get(Flag::InheritThread));
    let logs = |text| (one("virtual", text).qualifiers.log_exit, one("virtual", text).qualifiers.log_cswitch);
    assert_eq!(logs("cycles,log-exit"), (true, false));
    assert_eq!(logs("cycles,usr,log-cswitch,log-exit=0"), (false, true));
}

/// FreeBSD's words for counter bits that are the same for all events; numbers are always accepted.
#[test]
fn freebsd_masks_become_fields() {
    let code = |text: &str| encoded(&one("intel-server", text));
    for (text, field) in [
        ("core=this", "umask=0x40"),
        ("core=all,agent=any", "umask=0xe0"),
        ("prefetch=only", "umask=0x10"),
        ("cachestate=m+E", "umask=0xc"),
        ("unitmask=moesi", "umask=0x1f"),
        ("mask=0x3", "umask=3"),
        ("rsp=0x10001", "offcore_rsp=0x10001"),
    ] {
        let own = code(&format!("cpu/event=0x2e/,{text}"));
        assert_eq!(own, code(&format!("cpu/event=0x2e,{field}/")), "{text}");
    }
    for (text, words) in [
        ("cpu/event=1/,cachestate=m+x", "words from i, s, e, m, joined by `+`"),
        ("cpu/event=1/,rsp=DMND_DATA_RD+RES_ANY", "rsp=0x1"),
        ("cpu/event=1/,mask=segment", "only FreeBSD's tables define them"),
        ("page-faults,core=this", "counts this event in software"),
        ("iap-nosuch.event", "FreeBSD's name for Intel's programmable counters"),
        ("k8-ls-buffer-2-full", "cpu/event=0xNN,umask=0xNN/"),
    ] {
        let said = Error::from(event::parse(text, &tree("intel-server")).unwrap_err()).to_string();
        assert!(said.contains(words), "{text}: {said}");
    }
    assert_eq!(code("iap-mem-loads"), code("mem-loads"));
    assert_eq!(code("IAF-instructions"), code("instructions"));
    let qualifiers = |text| one("intel-server", text).qualifiers;
    assert_eq!(qualifiers("cycles,callchain").call_graph.as_deref(), Some("fp"));
    assert!(qualifiers("cycles,descendants").descendants);
}

/// Words that pmc would parse and then ignore are refused, with a reason and today's replacement.
#[test]
fn unused_words_are_rejected() {
    for (text, word, why, instead) in [
        ("cycles,kgmon", "kgmon", "no kernel supports it", "EVENT:k"),
        ("cycles,usr,percore", "percore", "cannot sum", "pmc stat -a --per-core"),
        ("cycles/percore/", "percore", "cannot sum", "pmc stat -a --per-core"),
        ("cpu/event=1,percore/", "percore", "cannot sum", "pmc stat -a --per-core"),
        ("cycles/@driver=word/", "@driver", "driver-specific terms", "omit it"),
        ("cycles:b", "b", "BPF programs", "omit it"),
        ("{cycles,instructions}:Wb", "b", "BPF programs", "omit it"),
    ] {
        let wrong = event::parse(text, &tree("intel-server")).unwrap_err();
        assert!(text[wrong.span.clone()].starts_with(word), "{text}: {:?}", wrong.span);
        let said = Error::from(wrong).to_string();
        assert!(said.starts_with(&format!("`{word}` has no effect")), "{said}");
        assert!(said.contains(why) && said.contains(instead), "{text}: {said}");
    }
    for text in ["cycles/call-graph=fast/", "cycles/branch_type=any,sideways/"] {
        assert!(event::parse(text, &tree("virtual")).is_err(), "{text}");
    }
}

#[test]
fn groups_keep_braces_and_modifiers() {
    let groups = parse("virtual", "{cycles,instructions}:WS,faults,{cs:S,faults}");
    assert_eq!(
        groups.iter().map(|g| (g.braces, g.weak, g.leader_sampling)).collect::<Vec<_>>(),
        [(true, true, true), (false, false, false), (true, false, false)]
    );
    assert!(groups[2].events[0].sample_read && !groups[2].events[1].sample_read);
}

#[test]
fn pinned_applies_to_the_leader() {
    for text in ["{cs,faults}:D", "{cs,faults:D}", "{cs:D,faults}"] {
        let groups = parse("virtual", text);
        let pinned: Vec<bool> = flat(&groups).map(|e| e.attr().unwrap().get(Flag::Pinned)).collect();
        assert_eq!(pinned, [true, false], "{text}");
    }
}

#[test]
fn hybrid_cores_get_one_event_each() {
    let groups = parse("intel-hybrid", "cycles");
    assert_eq!(flat(&groups).map(encoded).collect::<Vec<_>>(), ["0:0x400000000 -G", "0:0xa00000000 -G"]);
    let halves: Vec<_> = flat(&groups).collect();
    assert_eq!(halves[0].merge, halves[1].merge);
    assert!(halves[0].merge.is_some() && !halves[0].system_wide);
    assert_eq!(halves[1].core_cpus.as_ref().map(CpuList::to_string).as_deref(), Some("4-7"));
    assert_eq!(halves[1].unique_name(), "cpu_atom/cycles/");
}

#[test]
fn group_on_hybrid_cores_is_split() {
    let groups = parse("intel-hybrid", "{cycles,instructions,task-clock}:u");
    let pmus: Vec<Vec<_>> = groups
        .iter()
        .map(|g| g.events.iter().map(|e| (e.name.as_str(), e.pmu.as_deref())).collect())
        .collect();
    assert_eq!(
        pmus,
        [
            vec![("cycles", Some("cpu_core")), ("instructions", Some("cpu_core")), ("task-clock", None)],
            vec![("cycles", Some("cpu_atom")), ("instructions", Some("cpu_atom"))],
        ]
    );
    assert!(groups.iter().all(|group| group.braces));
}

#[test]
fn group_over_pmu_instances_becomes_one_group_each() {
    let groups = parse("intel-server", "{imc/cas_count_read/,imc/cas_count_write/}");
    assert_eq!(groups.len(), 8);
    assert!(groups.iter().all(|g| g.events.len() == 2 && g.events[0].pmu == g.events[1].pmu));
    assert_eq!(groups[3].events[1].unique_name(), "uncore_imc_3/cas_count_write/");
    assert!(groups[3].events[1].system_wide);
}

#[test]
fn separate_texts_do_not_share_merge_ids() {
    let host = tree("intel-server");
    let mut parser = event::EventParser::new(&host);
    let first = parser.parse("imc/clockticks/").unwrap()[0].events[0].merge;
    let second = parser.parse("imc/clockticks/").unwrap()[0].events[0].merge;
    assert!(first.is_some() && second.is_some() && first != second);
}

#[test]
fn units_are_read_from_sysfs() {
    let energy = one("intel-server", "power/energy-pkg/");
    assert_eq!((energy.unit.as_str(), energy.scale), ("Joules", 2.328_306_436_538_696_3e-10));
    assert_eq!(energy.cpus.as_ref().map(CpuList::to_string).as_deref(), Some("0,2"));
    let margin = one("intel-server", "msr/cpu_thermal_margin/");
    assert!(margin.snapshot);
    assert_eq!(margin.unit, "C");
}

#[test]
fn arm_spe_supports_tasks_despite_its_cpumask() {
    let spe = one("arm-server", "arm_spe//");
    assert!(!spe.system_wide && spe.cpus.is_none());
    assert_eq!(spe.core_cpus.as_ref().map(CpuList::to_string).as_deref(), Some("0-3"));
}

#[test]
fn persistent_events_use_the_holder_unless_the_kernel_has_them() {
    // If the kernel lists the PMU, pmc sends the kernel's own encoding.
    let kernels = one("persistent", "persistent/mce_record/");
    let attr = kernels.attr().unwrap();
    assert_eq!((attr.kind(), attr.config(), attr.word(5).unwrap() >> 23 & 1), (6, 106, 1));
    // A holder's published events never reach the kernel.
    let folder = tempfile::tempdir().unwrap();
    let run = folder.path().join("run/pmc/persistent");
    for (name, text) in [
        ("type", "persistent\n"),
        ("format/persistent", "attr5:23\n"),
        ("events/faults", "persistent,config=7\n"),
    ] {
        std::fs::create_dir_all(run.join(name).parent().unwrap()).unwrap();
        std::fs::write(run.join(name), text).unwrap();
    }
    let host = Host::rooted(folder.path());
    let read = |text: &str| event::parse(text, &host);
    let held = read("persistent/faults/").unwrap().remove(0).events.remove(0);
    let EventSource::Held(PersistentEvent { run_directory, id }) = &held.source else { panic!("{held:?}") };
    assert_eq!((run_directory, *id), (&run, 7));
    assert!(held.attr().is_none() && !held.takes_counter());
    let refusal =
        pmc_events::counter::allocate(&held, Mode::TaskCounting, CounterFlags::default(), None).unwrap_err();
    assert!(refusal.explain(&MachineFacts::default()).cause.contains("a holder keeps the event open"));
    let missing = read("persistent/fault/").unwrap_err();
    assert_eq!(missing.suggestions, ["faults"]);
    // If both exist, each has its own events.
    let sysfs = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/sysfs/persistent/sys");
    std::os::unix::fs::symlink(sysfs, folder.path().join("sys")).unwrap();
    let kernels = read("persistent/mce_record/").unwrap().remove(0).events.remove(0);
    assert_eq!(kernels.attr().map(|attr| (attr.kind(), attr.config())), Some((6, 106)));
    let held = read("persistent/faults/").unwrap().remove(0).events.remove(0);
    assert!(matches!(held.source, EventSource::Held(_)));
    assert_eq!(missing.remedy, Some(Hint::HoldEvent { name: "fault".to_owned() }));
}

#[test]
fn attr_terms_set_attr_words() {
    let event = one("intel-server", "cpu/event=1,attr5=0x4,config3=7,config4=9/");
    let attr = event.attr().unwrap();
    assert!(attr.get(Flag::Pinned));
    assert_eq!((attr.word(16), attr.word(17)), (Some(7), Some(9)));
}

/// Terms that pmc would overwrite are refused, and accepted terms reach the kernel.
#[test]
fn attr_words_set_by_pmc_are_rejected() {
    for (term, instead) in [
        ("attr0=4", "TYPE:CONFIG"),
        ("attr2=1000", "period=N"),
        ("attr3=1", "pmc record"),
        ("attr4=1", "omit it"),
        ("attr5=1", "-D MS"),
        ("attr5=2", "no-inherit"),
        ("attr6=1", "mem:ADDRESS"),
        ("attr9=1", "branch_type"),
        ("attr11=1", "stack-size"),
    ] {
        let text = format!("cpu/event=1,{term}/");
        let error = event::parse(&text, &tree("intel-server")).unwrap_err().to_string();
        assert!(error.contains("pmc sets it itself") && error.contains(instead), "{text}: {error}");
    }
    for (word, value) in [(1, 0x3c), (5, 0x4), (7, 7), (8, 8), (13, 13), (14, 14), (15, 15), (16, 16)] {
        let spec = one("intel-server", &format!("cpu/attr{word}={value}/"));
        let request =
            pmc_events::counter::allocate(&spec, Mode::TaskCounting, CounterFlags::default(), None).unwrap();
        assert_eq!(request.attr().word(word).unwrap() & value, value, "attr{word}");
    }
}

#[test]
fn tracepoints_are_resolved_and_globbed() {
    let groups = parse("virtual", "sched:sched_process_*:k");
    let names: Vec<_> = flat(&groups).map(|e| e.name.as_str()).collect();
    assert_eq!(names, ["sched:sched_process_exec", "sched:sched_process_exit", "sched:sched_process_fork"]);
    assert!(
        flat(&groups).all(|e| e.attr().unwrap().period() == 1 && e.attr().unwrap().get(Flag::ExcludeUser))
    );
    let fields = tree("virtual").tracepoint_fields("sched", "sched_switch").unwrap();
    assert_eq!(fields[0].name, "prev_comm");
    assert_eq!(fields[0].size, 16);
}

#[test]
fn freebsd_names_resolve_last() {
    assert_eq!(encoded(&one("virtual", "UNHALTED_CYCLES")), "0:0x0 -G");
    assert_eq!(encoded(&one("virtual", "dc-misses,usr")), "3:0x10000 -k -h -G");
    assert_eq!(encoded(&one("virtual", "TSC")), "9:0x0 -G");
    assert_eq!(encoded(&one("intel-server", "interrupts")), "4:0x1cb -G");
    assert_eq!(encoded(&one("amd-zen", "interrupts")), "4:0x2c -G");
    assert_eq!(one("virtual", "interrupts").pmu.as_deref(), Some("tracepoint"));
    let ticks = one("virtual", "SOFT-CLOCK.HARD");
    assert_eq!((ticks.name.as_str(), ticks.attr().unwrap().period()), ("SOFT-CLOCK.HARD", 1_000_000));
    assert_eq!(one("virtual", "PAGE_FAULT.WRITE").filter.as_deref(), Some("error_code & 2"));
    assert_eq!(encoded(&one("virtual", "LLC-MISSES")), "0:0x3 -G");
    assert_eq!(encoded(&one("virtual", "LLC-misses")), "3:0x10002 -G");
    // perf's meaning has priority if both know the name.
    assert_eq!(encoded(&one("virtual", "cycles")), "0:0x0 -G");
    assert!(matches!(one("virtual", "duration_time").source, EventSource::Tool(Tool::DurationTime)));
}

#[test]
fn freebsd_alias_fails_like_its_target() {
    let error = event::parse("cycles,lock.failed", &Host::rooted("/nonexistent")).unwrap_err().to_string();
    let words = ["`lock.failed` means `lock:contention_begin`", "tracefs is not mounted", "mount -t tracefs"];
    words.iter().for_each(|word| assert!(error.contains(word), "{error}"));
}

/// The kernel counts system calls and uprobes with `:u`, and no other tracepoint.
#[test]
fn tracepoints_have_their_privilege_level() {
    let hook = |name: &str| one("virtual", name).hook();
    assert_eq!(hook("syscalls:sys_enter_read"), Some(Hook::User));
    for name in
        ["sched:sched_switch", "raw_syscalls:sys_enter", "exceptions:page_fault_user", "page_fault.read"]
    {
        assert_eq!(hook(name), Some(Hook::Kernel), "{name}");
    }
    assert_eq!((hook("page-faults"), hook("cycles")), (None, None));
    let root = tempfile::tempdir().unwrap();
    let tracing = root.path().join("sys/kernel/tracing");
    std::fs::create_dir_all(tracing.join("events/probe_sh/main")).unwrap();
    std::fs::write(tracing.join("events/probe_sh/main/id"), "7\n").unwrap();
    let probe = || event::parse("probe_sh:main", &Host::rooted(root.path())).unwrap()[0].events[0].hook();
    assert_eq!(probe(), Some(Hook::Kernel));
    std::fs::write(tracing.join("uprobe_events"), "p:probe_sh/main /bin/sh:0x0000000000004700\n").unwrap();
    assert_eq!(probe(), Some(Hook::User));
}

/// Returns a program with two functions, `alpha` at address 0x401010 and `beta` twice, in one segment loaded
/// from offset 0x200.
fn tiny_elf() -> Vec<u8> {
    let mut elf = vec![0u8; 0x500];
    let mut put = |at: usize, bytes: &[u8]| elf[at..at + bytes.len()].copy_from_slice(bytes);
    put(0, b"\x7fELF\x02\x01\x01");
    put(16, &2u16.to_le_bytes()); // ET_EXEC
    put(18, &62u16.to_le_bytes()); // EM_X86_64
    put(20, &1u32.to_le_bytes());
    put(32, &64u64.to_le_bytes()); // program headers
    put(40, &0x400u64.to_le_bytes()); // section headers
    for (at, value) in [(52, 64u16), (54, 56), (56, 1), (58, 64), (60, 3), (62, 2)] {
        put(at, &value.to_le_bytes());
    }
    // PT_LOAD: file 0x200..0x300 at address 0x401000.
    put(64, &1u32.to_le_bytes());
    put(68, &5u32.to_le_bytes());
    for (at, value) in
        [(72, 0x200u64), (80, 0x40_1000), (88, 0x40_1000), (96, 0x100), (104, 0x100), (112, 0x100)]
    {
        put(at, &value.to_le_bytes());
    }
    // Symbols at 0x310: null, alpha, beta, beta. Names at 0x380.
    put(0x380, b"\0alpha\0beta\0");
    for (index, (name, address)) in
        [(1u32, 0x40_1010u64), (7, 0x40_1020), (7, 0x40_1030)].into_iter().enumerate()
    {
        let at = 0x310 + 24 * (index + 1);
        put(at, &name.to_le_bytes());
        put(at + 4, &[0x12, 0]); // global function
        put(at + 6, &1u16.to_le_bytes());
        put(at + 8, &address.to_le_bytes());
    }
    // Sections at 0x400: null, .symtab, its strings.
    for (at, kind, offset, size, link, entry) in
        [(0x440, 2u32, 0x310u64, 96u64, 2u32, 24u64), (0x480, 3, 0x380, 12, 0, 0)]
    {
        put(at + 4, &kind.to_le_bytes());
        put(at + 24, &offset.to_le_bytes());
        put(at + 32, &size.to_le_bytes());
        put(at + 40, &link.to_le_bytes());
        put(at + 56, &entry.to_le_bytes());
    }
    elf
}

#[test]
fn uprobe_functions_become_file_offsets() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir(folder.path().join("bin")).unwrap();
    std::fs::write(folder.path().join("bin/tiny"), tiny_elf()).unwrap();
    std::fs::write(folder.path().join("bin/text"), "no program").unwrap();
    let pmu = folder.path().join("sys/bus/event_source/devices/uprobe");
    std::fs::create_dir_all(pmu.join("format")).unwrap();
    std::fs::write(pmu.join("type"), "8\n").unwrap();
    std::fs::write(pmu.join("format/retprobe"), "config:0\n").unwrap();
    let host = Host::rooted(folder.path());
    let read = |text: &str| event::parse(text, &host).map(|groups| groups[0].events[0].clone());

    let entry = read("uprobe:/bin/tiny:alpha:u").unwrap();
    let attr = entry.attr().unwrap();
    assert_eq!((attr.kind(), attr.config(), attr.config2()), (8, 0, 0x210));
    assert_eq!(attr.config1_text().unwrap().to_str(), Ok("/bin/tiny"));
    assert!(attr.get(Flag::ExcludeKernel));
    assert_eq!(read("uprobe:/bin/tiny:alpha+0x4").unwrap().attr().unwrap().config2(), 0x214);
    assert_eq!(read("uprobe:/bin/tiny:alpha%return").unwrap().attr().unwrap().config(), 1);
    assert_eq!(read("uprobe:/bin/tiny:alpha,retprobe").unwrap().attr().unwrap().config(), 1);
    assert_eq!(read("uprobe:/bin/tiny:alpha/retprobe/u").unwrap().attr().unwrap().config(), 1);
    assert_eq!(read("uprobe:/bin/tiny:0x123").unwrap().attr().unwrap().config2(), 0x123);

    assert_eq!(read("uprobe:/bin/tiny:alpah").unwrap_err().suggestions, ["alpha"]);
    assert!(
        read("uprobe:/bin/tiny:beta").unwrap_err().expected.unwrap().to_string().contains("0x220, 0x230")
    );
    assert!(read("uprobe:/bin/text:alpha").unwrap_err().message.contains("/bin/text"));
    assert!(read("uprobe:/bin:alpha").unwrap_err().message.contains("not a regular file"));
}

#[test]
fn kprobes_resolve_kernel_functions() {
    let folder = tempfile::tempdir().unwrap();
    let pmu = folder.path().join("sys/bus/event_source/devices/kprobe");
    std::fs::create_dir_all(pmu.join("format")).unwrap();
    std::fs::write(pmu.join("type"), "7\n").unwrap();
    std::fs::write(pmu.join("format/retprobe"), "config:0\n").unwrap();
    let host = Host::rooted(folder.path());
    let read = |text: &str| event::parse(text, &host).map(|groups| groups[0].events[0].clone());
    // If the kernel hides its symbols, pmc accepts any name and leaves it to the kernel.
    read("kprobe:anything").unwrap();
    let names = "ffffffff81000000 T _stext\nffffffff81000100 T vfs_read\nffffffff81000200 t show\n\
                 ffffffff81000300 t show\nffffffff82000000 D jiffies\nffffffffc0000000 t show\t[ext4]\n\
                 ffffffffc0000100 t SW\t[ext4]\n";
    std::fs::create_dir(folder.path().join("proc")).unwrap();
    std::fs::write(folder.path().join("proc/kallsyms"), names).unwrap();

    let place = |text: &str| {
        let spec = read(text).unwrap_or_else(|error| panic!("{error}"));
        let attr = spec.attr().unwrap();
        assert_eq!((attr.kind(), spec.name.as_str()), (7, text.split(',').next().unwrap()));
        (attr.config1_text().unwrap().to_str().unwrap().to_owned(), attr.config2(), attr.config())
    };
    let read_at = |offset, returns| ("vfs_read".to_owned(), offset, returns);
    assert_eq!(place("kprobe:vfs_read"), read_at(0, 0));
    assert_eq!(place("kprobe:vfs_read:k"), read_at(0, 0));
    assert_eq!(place("kprobe:vfs_read+0x10"), read_at(16, 0));
    let returns = [
        "kretprobe:vfs_read",
        "kprobe:vfs_read%return",
        "kprobe:vfs_read,retprobe",
        "kprobe:vfs_read/retprobe/k",
    ];
    returns.iter().for_each(|text| assert_eq!(place(text), read_at(0, 1)));
    assert_eq!(place("kprobe:ext4:show"), ("ext4:show".to_owned(), 0, 0));
    // A name that consists only of modifier letters is still a name if modifiers follow it.
    assert_eq!(place("kprobe:ext4:SW:k").0, "ext4:SW");

    assert_eq!(read("kprobe:vfs_raed").unwrap_err().suggestions, ["vfs_read"]);
    assert!(read("kprobe:jiffies").unwrap_err().message.contains("no function `jiffies`"));
    assert!(read("kprobe:btrfs:show").unwrap_err().message.contains("no loaded module named `btrfs`"));
    assert_eq!(
        read("kprobe:show").unwrap_err().expected.unwrap(),
        "one of _stext+0x200, _stext+0x300, ext4:show".into()
    );
    assert_eq!(read("kretprobe:vfs_read+4").unwrap_err().expected.unwrap(), "kretprobe:vfs_read".into());
    assert!(read("uprobe:/bin/sh:0x1").unwrap_err().message.contains("no uprobe PMU"));

    // Kernel breakpoints on data and on functions, each with its own access type.
    let watched = |text: &str| {
        let spec = read(text).unwrap_or_else(|error| panic!("{error}"));
        let attr = spec.attr().unwrap();
        (attr.config1(), attr.config2(), attr.bp_type())
    };
    assert_eq!(watched("mem:&jiffies:k"), (0xffff_ffff_8200_0000, 4, 3));
    assert_eq!(watched("mem:&jiffies+8/8:w,os"), (0xffff_ffff_8200_0008, 8, 2));
    assert_eq!(watched("mem:&vfs_read:k"), (0xffff_ffff_8100_0100, 8, 4));
    assert!(
        read("mem:&show:k").unwrap_err().expected.unwrap().to_string().contains("mem:0xffffffff81000200")
    );
    assert_eq!(read("mem:&jifies:k").unwrap_err().suggestions, ["jiffies"]);
    // Without levels the symbol belongs to a program, and there is no program.
    assert!(read("mem:&jiffies").unwrap_err().message.contains("no program to search"));
    std::fs::write(folder.path().join("proc/kallsyms"), "0000000000000000 D jiffies\n").unwrap();
    assert!(read("mem:&jiffies:k").unwrap_err().message.contains("hides its addresses"));
}

#[test]
fn every_listed_event_parses() {
    for machine in ["intel-server", "intel-hybrid", "amd-zen", "arm-server", "virtual", "persistent"] {
        let host = tree(machine);
        let kinds =
            [EventKind::Hardware, EventKind::Software, EventKind::Cache, EventKind::Tool, EventKind::Pmu];
        let (sources, mut seen) = (ListingSources::new(&host), 0);
        for listed in kinds.into_iter().flat_map(|kind| sources.of_kind(kind)).filter(|l| !l.form) {
            for name in std::iter::once(listed.name.as_str()).chain(listed.aliases.iter().copied()) {
                let groups =
                    event::parse(name, &host).unwrap_or_else(|error| panic!("{machine}: {name}\n{error}"));
                // The clocks have a unit too, but the list shows it in words.
                if listed.kind == EventKind::Pmu {
                    let event = &groups[0].events[0];
                    assert_eq!((event.scale, &event.unit), (listed.scale, &listed.unit), "{name}");
                }
                seen += 1;
            }
        }
        assert!(seen > 60, "{machine}: {seen}");
    }
    let lpar = tree("power-lpar");
    assert!(
        ListingSources::new(&lpar)
            .of_kind(EventKind::Pmu)
            .any(|l| l.name == "hv_gpci/dtbp_ptitc,phys_processor_idx=?/")
    );
}

/// Parts for generating hostile and reasonable event text.
const PIECES: &[&str] = &[
    "cycles",
    "instructions",
    "task-clock",
    "LLC-loads",
    "r1a8",
    "cpu/",
    "event=0x3c",
    "umask=1",
    "/",
    "imc/clockticks/",
    "sched:sched_switch",
    "sched:*",
    ":",
    ",",
    "{",
    "}",
    "u",
    "k",
    "pp",
    "S",
    "usr",
    "period=1000",
    "cpu=0,1",
    "name=",
    "'",
    "mem:0x1000",
    "/8",
    ":rw",
    "uprobe:",
    "4:0x1a8",
    "*",
    "?",
    "[",
    "=",
    "@",
    "%",
    " ",
    "\u{1b}",
    "é",
    "🦀",
    "0x",
    "attr5=4",
    "mem-loads",
    "msr/tsc/",
    "TSC",
];

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn arbitrary_bytes_do_not_panic(bytes in proptest::collection::vec(any::<u8>(), 0..60)) {
        let text = String::from_utf8_lossy(&bytes);
        if let Err(error) = event::parse(&text, &tree("virtual")) {
            let _ = error.to_string();
        }
    }

    #[test]
    fn random_token_mixtures_do_not_panic(pieces in proptest::collection::vec(proptest::sample::select(PIECES), 0..14)) {
        let text = pieces.concat();
        for machine in ["intel-server", "virtual"] {
            match event::parse(&text, &tree(machine)) {
                Ok(groups) => prop_assert!(!groups.is_empty()),
                Err(error) => {
                    prop_assert!(text.get(error.span.clone()).is_some(), "{text:?}: {:?}", error.span);
                    let _ = error.to_string();
                }
            }
        }
    }

    #[test]
    fn displayed_name_parses_to_the_same_event(
        machine in proptest::sample::select(&["intel-server", "amd-zen", "virtual"][..]),
        name in proptest::sample::select(&["cycles", "cs", "l1d-misses", "r1a8", "msr/tsc/", "4:0x1a8", "branches"][..]),
        letters in "(u|k|h|uk|p|ppp|G|H|I|uDS|uPe)?",
        words in proptest::sample::subsequence(vec!["usr", "os", "guest", "host"], 0..3),
    ) {
        let colon = if letters.is_empty() || name.ends_with('/') { "" } else { ":" };
        let text = [&[format!("{name}{colon}{letters}").as_str()], words.as_slice()].concat().join(",");
        let first = one(machine, &text);
        let again = one(machine, &first.name);
        prop_assert_eq!(encoded(&first), encoded(&again), "{} {}", text, first.name);
        prop_assert_eq!(&first.name, &again.name);
    }
}

proptest! {
    // Each case writes files.
    #![proptest_config(ProptestConfig::with_cases(100))]

    #[test]
    fn arbitrary_elf_files_do_not_panic(changes in proptest::collection::vec((0usize..0x500, any::<u8>()), 1..8)) {
        let folder = tempfile::tempdir()?;
        let mut elf = tiny_elf();
        for (at, byte) in changes {
            elf[at] = byte;
        }
        std::fs::write(folder.path().join("tiny"), elf)?;
        let pmu = folder.path().join("sys/bus/event_source/devices/uprobe");
        std::fs::create_dir_all(&pmu)?;
        std::fs::write(pmu.join("type"), "8")?;
        for text in ["uprobe:/tiny:alpha", "sdt:/tiny:*:*"] {
            if let Err(error) = event::parse(text, &Host::rooted(folder.path())) {
                let _ = error.to_string();
            }
        }
    }

    #[test]
    fn arbitrary_sysfs_content_does_not_panic(
        format in "(config|config[0-9]|attr[0-9]{1,3}|x)?:?[0-9,-]{0,12}",
        terms in "[a-z=?,0-9x@' .-]{0,30}",
        scale in "[0-9.eE+-]{0,8}",
        mask in "[0-9,:/-]{0,10}",
        text in "(p/e/|p/t=[0-9]{1,22}/|p/e,t=1/|e|p/e=1/u)",
    ) {
        let folder = tempfile::tempdir()?;
        let pmu = folder.path().join("sys/bus/event_source/devices/p");
        for (file, content) in
            [("type", "9"), ("format/t", &format), ("events/e", &terms), ("events/e.scale", &scale), ("cpumask", &mask)]
        {
            let path = pmu.join(file);
            std::fs::create_dir_all(path.parent().expect("a folder"))?;
            std::fs::write(path, content)?;
        }
        match event::parse(&text, &Host::rooted(folder.path())) {
            Ok(groups) => prop_assert!(flat(&groups).all(|event| event.scale.is_finite())),
            Err(error) => drop(error.to_string()),
        }
    }
}

#[test]
fn hostile_lengths_are_bounded() {
    let host = tree("virtual");
    let begin = std::time::Instant::now();
    for text in [
        "{".repeat(100_000),
        "cycles,".repeat(20_000),
        format!("cycles:{}", "p".repeat(100_000)),
        format!("sched:{}x", "*".repeat(50_000)),
        format!("{}:x", "a*".repeat(20_000)),
        format!("cpu/{}/", "event=1,".repeat(20_000)),
        "a".repeat(200_000),
        format!("cycles/name='{}'/", "x".repeat(100_000)),
    ] {
        if let Err(error) = event::parse(&text, &host) {
            assert!(error.to_string().len() < 4000, "the message repeats the text");
        }
    }
    assert!(begin.elapsed() < kit::PATIENCE, "{:?}", begin.elapsed());
    let many = format!("{{{}}}", vec!["syscalls:*"; 20_000].join(","));
    assert!(event::parse(&many, &host).unwrap_err().message.contains("more than"));
}

/// Reads a configuration of PCP's agent on a recorded machine, and formats it as text.
fn configured(text: &str, host: &Host) -> String {
    let conf = perfevent_conf::read(text, host, &mut EventParser::new(host)).expect("it is understood");
    let mut out = String::new();
    for event in conf.groups.iter().flat_map(|group| &group.events) {
        let cpus = event.cpus.as_ref().map(|cpus| format!(" on {cpus}")).unwrap_or_default();
        let scaled = match event.unit.as_str() {
            "" => String::new(),
            unit => format!(" in {unit} of {}", event.scale),
        };
        out += &format!("{}: {}{cpus}{scaled}\n", event.name, encoded(event));
    }
    for sum in conf.sums {
        let terms = sum.terms.iter().map(|(name, factor)| match factor {
            Some(factor) => format!("{name} x {factor}"),
            None => format!("{name} x sysfs"),
        });
        out += &format!("{} = {}\n", sum.name, terms.collect::<Vec<_>>().join(" + "));
    }
    for left in conf.left_out {
        out += &format!("line {}: {} left out: {}\n", left.line, left.entry, left.why);
    }
    out
}

#[test]
fn perfevent_conf_parses_on_every_machine() {
    let text = std::fs::read_to_string(kit::data("events/perfevent.conf")).unwrap();
    for machine in ["intel-server", "amd-zen", "power-lpar", "virtual"] {
        let host = tree(machine);
        kit::golden(&format!("perfevent-conf/{machine}.txt"), &configured(&text, &host));
    }
}

#[test]
fn perfevent_conf_supports_libpfm_modifiers() {
    let host = Host::rooted(kit::data("cpus/skylake-x"));
    let text = "[skx]\nskx::UOPS_ISSUED:ANY:u cpu\nskx::UOPS_ISSUED:ANY:c=1:u\nUOPS_ISSUED:ANY:e=1\n\
        skx::UOPS_ISSUED:ANY:c=1 cpu_rr\nskx_unc_cha0::UNC_CHA_TOR_INSERTS:IA_MISS\nskx::UOPS_ISSUED:NONE:u\n\
        cycles:u\ncycles:q\n";
    let conf = perfevent_conf::read(text, &host, &mut EventParser::new(&host)).expect("it is understood");
    for event in conf.groups.iter().flat_map(|group| &group.events).filter(|event| event.name.contains("::"))
    {
        let direct = &event::parse(&event.name, &host).expect("it is understood")[0].events[0];
        assert_eq!(encoded(event), encoded(direct), "{}", event.name);
    }
    let names: Vec<&str> =
        conf.groups.iter().flat_map(|group| &group.events).map(|event| event.name.as_str()).collect();
    assert_eq!(
        names,
        [
            "skx::UOPS_ISSUED:ANY:u",
            "skx::UOPS_ISSUED:ANY:c=1:u",
            "UOPS_ISSUED:ANY:e=1",
            "skx::UOPS_ISSUED:ANY:c=1",
            "skx_unc_cha0::UNC_CHA_TOR_INSERTS:IA_MISS",
            "cycles:u"
        ]
    );
    let why: Vec<&str> = conf.left_out.iter().map(|left| left.why.as_str()).collect();
    assert!(why[0].contains("have no event UOPS_ISSUED.NONE"), "{why:?}");
    assert!(why[1].contains("unknown modifier `q`"), "{why:?}");
}

#[test]
fn double_colon_selects_libpfm_syntax() {
    let host = Host::rooted(kit::data("cpus/skylake-x"));
    for (text, said) in [
        ("NOPE::X", "cannot resolve libpfm4's `NOPE::X`: pmc has no table named NOPE for this CPU"),
        ("::", "an event is missing after `::`"),
        ("cycles,skx::", "an event is missing after `::`"),
    ] {
        let error = event::parse(text, &host).expect_err("it means nothing").to_string();
        assert!(error.contains(said), "{text}: {error}");
    }
}

#[test]
fn perfevent_conf_from_pcp_parses_completely() {
    let shipped = "/etc/pcp/perfevent/perfevent.conf";
    let is_there = std::path::Path::new(shipped).exists();
    if !kit::need("pcp", is_there, "PCP's perfevent.conf is not installed (Debian: pcp)") {
        return;
    }
    let text = std::fs::read_to_string(shipped).unwrap();
    for machine in std::fs::read_dir(kit::data("sysfs")).unwrap() {
        let got = configured(&text, &Host::rooted(machine.unwrap().path()));
        assert!(got.contains("software.page-faults: 1:0x2"), "{got}");
    }
}

#[test]
fn invalid_perfevent_conf_is_rejected_with_line_number() {
    let host = Host::rooted(kit::data("sysfs/virtual"));
    for (text, error) in [
        ("cycles\n", "line 1: an event before the first `[…]`"),
        ("[perf\n", "line 1: the `[` is not closed"),
        ("[]\n", "line 1: `[]` does not name a PMU"),
        ("\n[perf]\ncycles nodes\n", "line 3: unknown word `nodes` after an event"),
        ("[perf]\ncycles 0.5\n", "line 2: unknown word `0.5` after an event"),
        ("[perf]\nRAW:X rawcode=0xg\n", "line 2: `rawcode=0xg` is not a hexadecimal number"),
        ("[perf]\n||\n", "line 2: `||` is not an event"),
        ("[x:derived]\n-5\n", "line 2: `-5` is not an event"),
    ] {
        let got = perfevent_conf::read(text, &host, &mut EventParser::new(&host));
        assert_eq!(got.unwrap_err().to_string(), error);
    }
}
