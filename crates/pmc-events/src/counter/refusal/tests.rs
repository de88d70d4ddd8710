//! Tests the explanation of every errno with saved machines, and of a few errnos on the running kernel.

use super::*;
use crate::counter::facts::KnownPmu;
use pmc_sys::abi::attr::{Flag, kind};
use pmc_sys::host::Host;

use crate::kit::test_data;
use pmc_sys::sys::credentials::{Credentials, Seccomp};

/// Returns the number of the errno with this name, as listed in `errno(3)`.
fn number(name: &str) -> i32 {
    (1..134).find(|&n| errno_name(n) == Some(name)).unwrap_or_else(|| panic!("no errno {name}"))
}

fn user() -> Credentials {
    Credentials { uid: 1000, ..Credentials::default() }
}

fn root() -> Credentials {
    Credentials { uid: 0, capabilities: u64::MAX, ..Credentials::default() }
}

fn facts(machine: &str, who: Credentials) -> MachineFacts {
    MachineFacts::read(&Host::rooted(test_data(&format!("host/{machine}"))), who)
}

/// The refusal of a single event in this slot. The test fills in the errno.
fn opening(attr: &Attr, slot: TargetSlot) -> Refusal {
    Refusal::new("event", attr.clone(), slot, &io::Error::from_raw_os_error(0))
}

fn refused(errno: &str, asked: &Refusal, facts: &MachineFacts) -> Explanation {
    let refusal = Refusal { errno: Some(number(errno)), ..asked.clone() }.explain(facts);
    assert_eq!(refusal.errno_name(), Some(errno));
    assert!(!refusal.cause.is_empty() && !refusal.cause.ends_with('.'), "{:?}", refusal.cause);
    refusal
}

#[track_caller]
fn says(refusal: &Explanation, kind: RefusalKind, cause: &str, remedy: &str) {
    assert_eq!(refusal.kind, kind, "{refusal:?}");
    assert!(refusal.cause.contains(cause), "{cause:?} not in {refusal:?}");
    assert!(refusal.remedy.to_string().contains(remedy), "{remedy:?} not in {refusal:?}");
}

const OWN: TargetSlot = TargetSlot::OURSELVES;

fn cpu(cpu: u32) -> TargetSlot {
    TargetSlot { tid: None, cpu: Some(cpu) }
}

fn thread(tid: u32) -> TargetSlot {
    TargetSlot { tid: Some(tid), cpu: None }
}

fn cycles() -> Attr {
    Attr::new(kind::HARDWARE, 0)
}

#[test]
fn hardware_event_without_pmu_is_explained() {
    let asked = cycles();
    let refusal = refused("ENOENT", &opening(&asked, OWN), &facts("vm-without-pmu", root()));
    says(
        &refusal,
        RefusalKind::NoHardware,
        "no hardware counters (hypervisor: Amazon EC2 t3.micro)",
        "task-clock",
    );
    assert_eq!(refusal.kind.freebsd_errno(), Some("ENXIO"));

    let mut bare = facts("vm-without-pmu", root());
    (bare.virtual_machine, bare.hypervisor) = (false, None);
    let refusal = refused("ENOENT", &opening(&asked, OWN), &bare);
    says(&refusal, RefusalKind::NoHardware, "has not registered a PMU for this machine's cores", "dmesg");

    let error = refusal.into_error("opening cycles").to_string();
    assert!(error.starts_with("opening cycles: No such file or directory (ENOENT)\n  why: "), "{error}");
}

#[test]
fn event_missing_in_the_pmu_is_explained() {
    let server = facts("two-sockets", root());
    for (attr, cause) in [
        (Attr::new(kind::HARDWARE, 7), "`cpu` of this CPU has no event with this generic name"),
        (Attr::new(kind::RAW, 0xffff), "`cpu` of this CPU has no event with this code"),
        (Attr::new(kind::SOFTWARE, 99), "no software event number 99"),
        (Attr::new(kind::TRACEPOINT, 9), "this kernel has no such tracepoint"),
        (Attr::new(12, 0x77), "`power` has no event with config 0x77"),
        (Attr::new(99, 0), "no PMU of type 99"),
        (Attr::new(kind::HARDWARE, 44 << 32), "PMU type 44"),
    ] {
        // The last attr requests a PMU (in the upper half of config) that does not exist.
        let refusal = refused("ENOENT", &opening(&attr, OWN), &server);
        says(&refusal, RefusalKind::NoHardware, cause, "choose ");
    }
    let mut probe = Attr::new(8, 0);
    probe.set_config1_text(c"/no/such/file".to_owned());
    let refusal = refused("ENOENT", &opening(&probe, OWN), &facts("hybrid", root()));
    says(&refusal, RefusalKind::BadRequest, "/no/such/file does not exist", "full path");
    let mut hybrid = facts("hybrid", root());
    hybrid.pmus.push(KnownPmu { name: "kprobe".to_owned(), kind: 7, cpus: None, cpumask: None });
    let mut probe = Attr::new(7, 0);
    probe.set_config1_text(c"do_nothing".to_owned());
    let asked = opening(&probe, OWN);
    says(&refused("ENOENT", &asked, &hybrid), RefusalKind::BadRequest, "no function do_nothing", "kallsyms");
    says(&refused("EINVAL", &asked, &hybrid), RefusalKind::BadRequest, "cannot be probed", "blacklist");
    hybrid.credentials = user();
    hybrid.settings.paranoid = Some(1);
    says(&refused("EACCES", &asked, &hybrid), RefusalKind::NoPrivilege, "placing a probe", "root");
}

#[test]
fn other_core_type_is_explained() {
    let hybrid = facts("hybrid", root());
    let attr = Attr::new(kind::HARDWARE, 10 << 32);
    for errno in ["ENOENT", "ENODEV"] {
        let refusal = refused(errno, &opening(&attr, cpu(2)), &hybrid);
        says(
            &refusal,
            RefusalKind::NoHardware,
            "CPU 2 is not a core of the PMU `cpu_atom` (it belongs to `cpu_core`)",
            "CPUs 4-7",
        );
    }
}

#[test]
fn missing_cpu_is_explained() {
    let server = facts("two-sockets", root());
    let attr = cycles();
    for (number, cause) in [(3, "CPU 3 is offline"), (99, "CPU 99 does not exist")] {
        for errno in ["EINVAL", "ENODEV"] {
            let refusal = refused(errno, &opening(&attr, cpu(number)), &server);
            says(&refusal, RefusalKind::CpuOffline, cause, "0-2,4-7");
        }
    }
}

#[test]
fn oversized_group_is_explained() {
    let server = facts("two-sockets", root());
    let refuse =
        |attr: &Attr, group_before| refused("EINVAL", &opening(attr, OWN).after(group_before), &server);

    let mut fast = cycles();
    fast.set_freq(200_000);
    says(&refuse(&fast, 0), RefusalKind::BadRequest, "max_sample_rate is 100000", "at most 100000");

    let mut long = cycles();
    long.set_period(1 << 63);
    says(&refuse(&long, 0), RefusalKind::BadRequest, "2^63", "smaller");

    says(
        &refuse(&Attr::new(12, 2), 0),
        RefusalKind::BadRequest,
        "`power` counts for a whole package",
        "list of CPUs",
    );

    says(&refuse(&cycles(), 4), RefusalKind::NoHardware, "which accepted 4 events", ":W");
    let mut pinned = cycles();
    pinned.set(Flag::Pinned, true);
    says(&refuse(&pinned, 1), RefusalKind::BadRequest, "pinned", "first event");

    says(
        &refuse(&Attr::new(kind::TRACEPOINT, 9), 0),
        RefusalKind::NoHardware,
        "tracepoint with id 9",
        "choose an existing",
    );
    says(&refuse(&Attr::new(kind::BREAKPOINT, 0), 0), RefusalKind::BadRequest, "length", "multiple");
    let mut in_kernel = Attr::new(kind::BREAKPOINT, 0);
    in_kernel.set_breakpoint(4, 0xffff_ffff_8100_0000, 8);
    says(&refuse(&in_kernel, 0), RefusalKind::BadRequest, "its own code", "kprobe:FUNCTION");
    says(&refuse(&Attr::new(kind::HW_CACHE, 0x10001), 0), RefusalKind::NoHardware, "generic event", "choose");
    says(
        &refuse(&Attr::new(kind::RAW, 0xabc), 0),
        RefusalKind::BadRequest,
        "does not support config 0xabc",
        "see the events of cpu",
    );
}

#[test]
fn unsupported_feature_found_by_trial_is_named() {
    let server = facts("two-sockets", root());
    let mut attr = Attr::new(12, 2);
    attr.set(Flag::ExcludeKernel, true);
    // A PMU that cannot filter privilege levels; the kernel's core code rejects the request.
    let found = refused_feature(&attr, |attr| !attr.get(Flag::ExcludeKernel));
    assert_eq!(found, Some(OmittableFeature::Levels));
    let asked = Refusal { refused_feature: found, ..opening(&attr, cpu(0)) };
    says(&refused("EINVAL", &asked, &server), RefusalKind::NoCapability, "privilege levels", "u, k and h");

    // A kernel before Linux 5.13, which does not have `inherit_thread`.
    let mut threads = Attr::new(kind::SOFTWARE, 2);
    [Flag::Inherit, Flag::InheritThread].into_iter().for_each(|flag| threads.set(flag, true));
    let found = refused_feature(&threads, |attr| !attr.get(Flag::InheritThread));
    assert_eq!(found, Some(OmittableFeature::InheritThread));
    let asked = Refusal { refused_feature: found, ..opening(&threads, cpu(0)) };
    says(
        &refused("EINVAL", &asked, &server),
        RefusalKind::BadRequest,
        "cannot follow new threads without",
        "Linux 5.13",
    );

    assert_eq!(refused_feature(&attr, |_| false), None, "nothing helps");
    // Neither feature alone is the cause, so the wider feature is reported.
    let mut sampled = attr.clone();
    sampled.set_period(1);
    let takes = |attr: &Attr| attr.period() == 0 && !attr.get(Flag::ExcludeKernel);
    assert_eq!(refused_feature(&sampled, takes), Some(OmittableFeature::Sampling));
    assert_eq!(refused_feature(&cycles(), |_| true), None, "nothing to leave out");
}

#[test]
fn sampling_without_interrupt_is_explained() {
    let mut sampling = Attr::new(12, 2);
    sampling.set_period(1000);
    let server = facts("two-sockets", root());
    says(
        &refused("EOPNOTSUPP", &opening(&sampling, cpu(0)), &server),
        RefusalKind::NoCapability,
        "`power` has no interrupt",
        "cpu-clock",
    );
    let mut precise = cycles();
    precise.set_period(1000);
    precise.set_precise_ip(3);
    says(
        &refused("EOPNOTSUPP", &opening(&precise, OWN), &server),
        RefusalKind::NoCapability,
        "precise sampling at level 3",
        "one p less",
    );
    let mut branches = cycles();
    branches.set_branch_sample_type(8);
    says(
        &refused("EOPNOTSUPP", &opening(&branches, OWN), &server),
        RefusalKind::NoCapability,
        "does not record branch stacks",
        "frame pointers",
    );
}

#[test]
fn paranoid_level_is_explained() {
    let asked = cycles();
    let refuse =
        |machine, who, attr: &Attr, place| refused("EACCES", &opening(attr, place), &facts(machine, who));
    says(
        &refuse("two-sockets", user(), &asked, cpu(0)),
        RefusalKind::NoPrivilege,
        "perf_event_paranoid is 2: counting a whole CPU requires 0",
        "sysctl kernel.perf_event_paranoid=0",
    );
    says(
        &refuse("two-sockets", user(), &asked, OWN),
        RefusalKind::NoPrivilege,
        "counting in the kernel requires 1",
        ":u",
    );
    let contained = Credentials { user_namespace: true, ..root() };
    says(
        &refuse("two-sockets", contained, &asked, cpu(0)),
        RefusalKind::NoPrivilege,
        "root is privileged only in a user namespace",
        "",
    );

    let mut in_user = cycles();
    in_user.set(Flag::ExcludeKernel, true);
    // Only distribution kernels refuse to let users count user-mode events of their own processes.
    says(
        &refuse("hybrid", user(), &in_user, OWN),
        RefusalKind::NoPrivilege,
        "perf_event_paranoid is 4, so this kernel denies perf events",
        "CAP_PERFMON",
    );
    says(
        &refuse("two-sockets", user(), &in_user, thread(1)),
        RefusalKind::NoPrivilege,
        "thread 1 belongs to another user",
        "run as the process's user",
    );
    let mut data = Attr::new(kind::TRACEPOINT, 5);
    data.set(Flag::ExcludeKernel, true);
    says(
        &refuse("two-sockets", user(), &data, OWN),
        RefusalKind::NoPrivilege,
        "tracepoint data requires -1",
        "=-1",
    );

    let mut enforcing = facts("two-sockets", root());
    enforcing.selinux = true;
    says(
        &refused("EACCES", &opening(&asked, OWN), &enforcing),
        RefusalKind::NoPrivilege,
        "SELinux",
        "ausearch",
    );
}

#[test]
fn filters_and_lockdown_are_explained() {
    let asked = cycles();
    let filtered = Credentials { seccomp: Seccomp::Filter, ..root() };
    let server = facts("two-sockets", filtered.clone());
    says(
        &refused("EPERM", &opening(&asked, OWN), &server),
        RefusalKind::NoPrivilege,
        "seccomp",
        "--cap-add PERFMON",
    );
    says(&refused("ENOSYS", &opening(&asked, OWN), &server), RefusalKind::NoPerfEvents, "seccomp", "sandbox");
    let mut locked = facts("two-sockets", root());
    locked.lockdown = Some("confidentiality".to_owned());
    says(&refused("EPERM", &opening(&asked, OWN), &locked), RefusalKind::NoPrivilege, "locked down", "boot");

    let ring = Refusal { call: FailedCall::Map { bytes: 1 << 20 }, ..opening(&asked, OWN) };
    says(
        &refused("EPERM", &ring, &facts("two-sockets", user())),
        RefusalKind::OutOfMemory,
        "perf_event_mlock_kb is 516",
        "smaller",
    );
    says(
        &refused("ENOSYS", &opening(&asked, OWN), &facts("no-such-machine", root())),
        RefusalKind::NoPerfEvents,
        "without perf events",
        "",
    );
}

#[test]
fn remaining_errnos_are_explained() {
    let mut server = facts("two-sockets", user());
    server.open_files = Some(1024);
    let attr = cycles();
    let mut deep = cycles();
    deep.set_sample_max_stack(500);
    let (watch, asked) = (Attr::new(kind::BREAKPOINT, 0), opening(&attr, OWN));
    for (errno, asked, kind, cause, remedy) in [
        ("E2BIG", asked.clone(), RefusalKind::BadRequest, "does not support a requested field", "config3"),
        (
            "ESRCH",
            opening(&attr, thread(999_999)),
            RefusalKind::NotFound,
            "thread 999999 does not exist",
            "ps",
        ),
        ("EBADF", asked.clone(), RefusalKind::BadRequest, "group leader", ""),
        ("EBUSY", asked.clone(), RefusalKind::Busy, "exclusively", "stop the other"),
        (
            "EBUSY",
            Refusal { call: FailedCall::Map { bytes: 1 }, ..asked.clone() },
            RefusalKind::Busy,
            "ring",
            "",
        ),
        ("ENODEV", asked.clone(), RefusalKind::NoHardware, "is not responding", ""),
        ("EMFILE", asked.clone(), RefusalKind::OutOfDescriptors, "all 1024 file descriptors", "ulimit -n"),
        (
            "ENFILE",
            asked.clone(),
            RefusalKind::OutOfDescriptors,
            "the system has no file descriptors",
            "fs.file-max",
        ),
        ("ENOSPC", opening(&watch, OWN), RefusalKind::Busy, "breakpoint register", "four"),
        ("EOVERFLOW", opening(&deep, OWN), RefusalKind::BadRequest, "500 frames", "max_stack"),
        ("ENOMEM", asked.clone(), RefusalKind::OutOfMemory, "memory", "fewer"),
        ("EFAULT", asked.clone(), RefusalKind::Other, "a bug in pmc", ""),
        ("EINTR", asked.clone(), RefusalKind::Busy, "interrupted", "again"),
        ("ENXIO", asked.clone(), RefusalKind::NoHardware, "absent", ""),
        ("EXDEV", asked.clone(), RefusalKind::Other, "the reason is unknown", ""),
    ] {
        says(&refused(errno, &asked, &server), kind, cause, remedy);
    }
}

#[test]
fn busy_counters_are_explained() {
    let mut server = facts("two-sockets", root());
    server.reservation = Some("pid 77 (perfalloc) has reserved the counters".to_owned());
    let refusal = never_ran(&cycles(), &server);
    says(&refusal, RefusalKind::Busy, "NMI watchdog", "nmi_watchdog=0");
    says(&refusal, RefusalKind::Busy, "pid 77", "");
    assert_eq!(refusal.errno, None);
    says(&never_ran(&cycles(), &facts("hybrid", root())), RefusalKind::Busy, "`cpu_core`", "fewer");
}

/// Checks that refusals by the running kernel are explained as expected.
#[test]
fn explanations_match_this_kernel() {
    let facts = MachineFacts::own(&Host::live());
    let mut own_process = Attr::new(kind::SOFTWARE, 1);
    own_process.set(Flag::ExcludeKernel, true);
    if OWN.opens(&own_process).is_err() {
        return;
    }
    let explain_trial = |attr: &Attr, place: TargetSlot| {
        let error = place.opens(attr).expect_err("refused");
        Refusal::new("event", attr.clone(), place, &error).explain(&facts)
    };
    let user_mode = |kind, config| {
        let mut attr = Attr::new(kind, config);
        attr.set(Flag::ExcludeKernel, true);
        attr
    };
    let no_software = explain_trial(&user_mode(kind::SOFTWARE, 99), OWN);
    says(&no_software, RefusalKind::NoHardware, "no software event number 99", "");
    assert_eq!(no_software.errno_name(), Some("ENOENT"));

    let nobody = explain_trial(&own_process, thread(4_194_303));
    says(&nobody, RefusalKind::NotFound, "4194303", "");

    let no_cpu = explain_trial(&own_process, TargetSlot { tid: Some(0), cpu: Some(9999) });
    says(&no_cpu, RefusalKind::CpuOffline, "CPU 9999", "");

    let no_pmu = explain_trial(&user_mode(0x7fff_0000, 0), OWN);
    says(&no_pmu, RefusalKind::NoHardware, "no PMU of type", "");

    if facts.core_pmus().count() == 0 {
        let refusal = explain_trial(&user_mode(kind::HARDWARE, 0), OWN);
        assert_eq!((refusal.errno_name(), refusal.kind), (Some("ENOENT"), RefusalKind::NoHardware));
    }
}
