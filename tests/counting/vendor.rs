//! The vendors' events on the recorded CPUs (`tests/data/cpus`): each name in the tables must produce a
//! request or be refused with a reason, and perf 7.2 must ask the kernel for the same.

use crate::kit;
use crate::kit::oracle;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::Path;
use std::process::Command;

use pmc_events::event::vendor::Vendor;
use pmc_events::event::{EventParser, EventSpec, ParseError, PmuCounters, parse};
use pmc_sys::abi::attr::Flag;
use pmc_sys::host::Host;
use pmc_sys::host::pmu::Pmu;

/// Expected numbers for a recorded CPU's event names.
struct Saved {
    cpu: &'static str,
    /// Names that produce a request, and names that are refused.
    requests: usize,
    refused: usize,
    /// Of the requests: those that match perf's, those listed by perf under another name, and those missing
    /// from perf's list.
    same: usize,
    renamed: usize,
    unlisted: usize,
    /// perf loses the wide part of a `umask` whose low byte is 0; its data are older.
    wide: usize,
    older: usize,
}

const SAVED: Saved =
    Saved { cpu: "", requests: 0, refused: 0, same: 0, renamed: 0, unlisted: 0, wide: 0, older: 0 };
const CPUS: [Saved; 8] = [
    Saved { cpu: "skylake-x", requests: 3775, refused: 3, same: 2998, renamed: 745, unlisted: 32, ..SAVED },
    Saved { cpu: "sapphire-rapids", requests: 2693, same: 2619, renamed: 9, wide: 65, ..SAVED },
    Saved { cpu: "alder-lake", requests: 567, same: 533, renamed: 27, unlisted: 7, ..SAVED },
    Saved {
        cpu: "lunar-lake",
        requests: 668,
        same: 619,
        renamed: 13,
        unlisted: 29,
        wide: 3,
        older: 4,
        ..SAVED
    },
    Saved { cpu: "zen3", requests: 243, same: 243, ..SAVED },
    Saved { cpu: "zen4", requests: 502, same: 502, ..SAVED },
    Saved { cpu: "zen5", requests: 602, same: 596, renamed: 6, ..SAVED },
    // A perf for x86 has no tables for Arm.
    Saved { cpu: "neoverse-n1", requests: 110, refused: 1, ..SAVED },
];

fn tree(cpu: &str) -> Host {
    Host::rooted(kit::data("cpus").join(cpu))
}

/// Returns the requests for event text.
fn specs(parser: &mut EventParser<'_>, text: &str) -> Result<Vec<EventSpec>, Box<ParseError>> {
    Ok(parser.parse(text)?.into_iter().flat_map(|group| group.events).collect())
}

#[track_caller]
fn all(cpu: &str, text: &str) -> Vec<EventSpec> {
    let host = tree(cpu);
    specs(&mut EventParser::new(&host), text).unwrap_or_else(|error| panic!("{cpu}: {text}\n{error}"))
}

#[track_caller]
fn refused(host: &Host, text: &str) -> String {
    parse(text, host).err().unwrap_or_else(|| panic!("{text} is taken")).to_string()
}

/// Returns the PMU, `config` and `config1` of a request.
fn asked(spec: &EventSpec) -> (String, u64, u64) {
    let attr = spec.attr().expect("the kernel counts this event");
    (spec.pmu.clone().unwrap_or_default(), attr.config(), attr.config1())
}

#[track_caller]
fn asks(cpu: &str, text: &str, wanted: &[(&str, u64, u64)]) {
    let got: Vec<_> = all(cpu, text).iter().map(asked).collect();
    let wanted: Vec<_> = wanted.iter().map(|&(pmu, config, more)| (pmu.to_owned(), config, more)).collect();
    assert_eq!(got, wanted, "{cpu}: {text}");
}

#[test]
fn every_vendor_event_encodes_or_is_rejected_with_a_reason() {
    std::thread::scope(|scope| {
        for saved in &CPUS {
            scope.spawn(|| {
                let host = tree(saved.cpu);
                let vendor = Vendor::find(&host);
                let mut parser = EventParser::new(&host);
                let (mut requests, mut refused) = (0, 0);
                for event in vendor.events() {
                    match specs(&mut parser, &event.name.to_ascii_lowercase()) {
                        Ok(specs) => {
                            let has =
                                |spec: &EventSpec| spec.pmu.as_deref().unwrap_or("").starts_with(event.pmu);
                            assert!(specs.iter().any(has), "{}: {}", saved.cpu, event.name);
                            requests += 1;
                        }
                        Err(error) => {
                            assert!(
                                error.cause.is_some() && error.remedy.is_some(),
                                "{}: {error}",
                                saved.cpu
                            );
                            refused += 1;
                        }
                    }
                }
                assert_eq!((requests, refused), (saved.requests, saved.refused), "{}", saved.cpu);
            });
        }
    });
}

/// A recorded CPU's PMUs, with the positions of their terms, used to place perf's own encodings.
struct Formats<'h> {
    pmus: Vec<Pmu>,
    host: &'h Host,
    known: HashMap<String, Option<pmc_sys::host::pmu::TermFormat>>,
}

impl<'h> Formats<'h> {
    fn of(host: &'h Host) -> Self {
        let pmus = host.pmu_names().iter().filter_map(|name| host.pmu(name)).collect();
        Self { pmus, host, known: HashMap::new() }
    }

    /// Returns the first instance of a unit.
    fn first(&self, unit: &str) -> Option<&Pmu> {
        self.pmus.iter().find(|pmu| {
            let rest = pmu.name.strip_prefix(unit);
            rest.is_some_and(|rest| rest.trim_start_matches('_').bytes().all(|b| b.is_ascii_digit()))
        })
    }

    /// Returns the PMU, `config` and `config1` of terms, or `None` if a term has no position.
    fn place(&mut self, unit: &str, terms: &str) -> Option<(String, u64, u64)> {
        let pmu = self.first(unit)?.clone();
        let (mut config, mut config1) = (0, 0);
        for term in terms.split(',').filter(|term| !term.starts_with("period=")) {
            let (name, value) = term.split_once('=').unwrap_or((term, "1"));
            let value = match value.strip_prefix("0x") {
                Some(hex) => u64::from_str_radix(hex, 16).ok()?,
                None => value.parse().ok()?,
            };
            if name == "config1" {
                config1 |= value;
                continue;
            }
            let key = format!("{}/{name}", pmu.name);
            let format =
                self.known.entry(key).or_insert_with(|| self.host.pmu(&pmu.name)?.format(name)?.ok());
            let format = format.as_ref()?;
            match format.word {
                1 => config |= format.place(value),
                7 => config1 |= format.place(value),
                word => panic!("{terms}: word {word}"),
            }
        }
        Some((pmu.name, config, config1))
    }
}

/// Returns a perf command that runs on a recorded CPU.
fn played(perf: &Path, cpu: &str) -> Command {
    let folder = kit::data("cpus").join(cpu);
    let id = std::fs::read_to_string(folder.join("cpuid")).expect("the CPU has an id");
    let mut command = Command::new(perf);
    command.env("SYSFS_PATH", folder.join("sys")).env("PERF_CPUID", id.trim());
    command
}

#[test]
fn vendor_requests_match_perf() {
    let Some(newest) = oracle::perfs().into_iter().nth(1) else { return };
    std::thread::scope(|scope| {
        for saved in CPUS.iter().filter(|saved| saved.same > 0) {
            scope.spawn(|| compare(&newest, saved));
        }
    });
}

fn compare(newest: &Path, saved: &Saved) {
    let listed = oracle::ask_until_answered(|_| {
        let mut perf = played(newest, saved.cpu);
        perf.args(["list", "--json", "--deprecated"]);
        perf
    });
    let listed: serde_json::Value = serde_json::from_slice(&listed.stdout).expect("perf lists in JSON");
    let host = tree(saved.cpu);
    let mut formats = Formats::of(&host);
    // By name, and as a whole set; perf lists only one of several names that ask for the same.
    let mut theirs = BTreeMap::<String, Vec<(String, u64, u64)>>::new();
    let mut any = BTreeSet::new();
    for event in listed.as_array().expect("a list") {
        let (Some(name), Some(encoding)) = (event["EventName"].as_str(), event["Encoding"].as_str()) else {
            continue;
        };
        let Some((unit, terms)) = encoding.trim_end_matches('/').split_once('/') else { continue };
        let Some(request) = formats.place(unit, terms) else { continue };
        any.insert(request.clone());
        theirs.entry(name.split('/').nth(1).unwrap_or(name).to_owned()).or_default().push(request);
    }
    let vendor = Vendor::find(&host);
    let mut parser = EventParser::new(&host);
    let (mut same, mut renamed, mut unlisted, mut wide, mut older) = (0, 0, 0, 0, 0);
    let mut common = Vec::new();
    for event in vendor.events() {
        let name = event.name.to_ascii_lowercase();
        let pmu = formats.first(event.pmu).expect("the saved CPU has it").name.clone();
        let Ok(ours) = specs(&mut parser, &format!("{pmu}/{name}/")) else { continue };
        let ours = asked(&ours[0]);
        let own = theirs.get(&name).and_then(|requests| requests.iter().find(|request| request.0 == pmu));
        match own {
            Some(own) if *own == ours => {
                same += 1;
                common.push(name);
            }
            Some(_) if name.contains("cond_taken_") => older += 1,
            Some(own) => {
                assert_eq!((ours.1 & 0xffff, ours.2), (own.1, own.2), "{}: {name}", saved.cpu);
                assert_eq!(own.1 >> 8, 0, "{}: {name}", saved.cpu);
                wide += 1;
            }
            None if any.contains(&ours) => renamed += 1,
            None => unlisted += 1,
        }
    }
    let wanted = (saved.same, saved.renamed, saved.unlisted, saved.wide, saved.older);
    assert_eq!((same, renamed, unlisted, wide, older), wanted, "{}", saved.cpu);
    opens_the_same(newest, saved.cpu, &mut parser, &common);
}

/// Checks the requests that perf opens for some of the names, as reported by `-vv`.
fn opens_the_same(newest: &Path, cpu: &str, parser: &mut EventParser<'_>, common: &[String]) {
    let sample: Vec<&str> = common.iter().step_by(common.len() / 30).map(String::as_str).collect();
    let said = oracle::ask_until_answered(|_| {
        let mut perf = played(newest, cpu);
        // perf reports its first event in pieces: in between it tests which features the kernel supports.
        perf.args(["stat", "-vv", "-e", sample[0]])
            .args(sample.iter().flat_map(|name| ["-e", name]))
            .arg("true");
        perf
    });
    let said = String::from_utf8_lossy(&said.stderr).into_owned();
    let field = |block: &str, name: &str| {
        let line =
            block.lines().find(|line| line.trim_start().trim_start_matches("{ bp_addr, ").starts_with(name));
        let number = line.and_then(|line| {
            line.split_whitespace().find(|word| word.starts_with(|c: char| c.is_ascii_digit()))
        });
        number.map_or(0, |number| match number.strip_prefix("0x") {
            Some(hex) => u64::from_str_radix(hex, 16).expect("a number"),
            None => number.parse().expect("a number"),
        })
    };
    let blocks = said.split("perf_event_attr:").skip(2);
    let theirs: BTreeSet<_> = blocks
        .map(|block| {
            let block = block.split("-----").next().unwrap_or(block);
            (field(block, "type "), field(block, "config "), field(block, "config1 "))
        })
        .filter(|&(kind, ..)| kind != 0)
        .collect();
    let mut ours = BTreeSet::new();
    for name in sample {
        for spec in specs(parser, name).expect("it is a request") {
            let attr = spec.attr().expect("the kernel counts this event");
            ours.insert((u64::from(attr.kind()), attr.config(), attr.config1()));
        }
    }
    assert_eq!(ours, theirs, "{cpu}");
}

#[test]
fn vendor_names_parse_in_every_spelling() {
    type Case = (&'static str, &'static str, &'static [(&'static str, u64, u64)]);
    let cases: [Case; 22] = [
        ("skylake-x", "CYCLE_ACTIVITY.STALLS_L2_MISS", &[("cpu", 0x50005a3, 0)]),
        ("skylake-x", "cpu/cycle_activity.stalls_l2_miss/", &[("cpu", 0x50005a3, 0)]),
        // Terms that the user writes override those in the table.
        ("skylake-x", "cpu/CYCLE_ACTIVITY.STALLS_L2_MISS,cmask=2/", &[("cpu", 0x20005a3, 0)]),
        ("skylake-x", "CYCLE_ACTIVITY.STALLS_L2_MISS,cmask=2", &[("cpu", 0x20005a3, 0)]),
        ("skylake-x", "OFFCORE_RESPONSE.DEMAND_DATA_RD.L3_MISS.ANY_SNOOP", &[("cpu", 0x1b7, 0x3f_bc00_0001)]),
        ("skylake-x", "MEM_TRANS_RETIRED.LOAD_LATENCY_GT_128", &[("cpu", 0x1cd, 0x80)]),
        ("skylake-x", "cpu/MEM_TRANS_RETIRED.LOAD_LATENCY_GT_128,ldlat=30/", &[("cpu", 0x1cd, 30)]),
        ("skylake-x", "mem_trans_retired.load_latency_gt_128,ldlat=30", &[("cpu", 0x1cd, 30)]),
        ("skylake-x", "mem-loads", &[("cpu", 0x1cd, 3)]),
        (
            "skylake-x",
            "UNC_IIO_DATA_REQ_OF_CPU.MEM_READ.PART0",
            &[("uncore_iio_0", 0x7010_0000_0483, 0), ("uncore_iio_1", 0x7010_0000_0483, 0)],
        ),
        (
            "skylake-x",
            "uncore_iio_1/UNC_IIO_DATA_REQ_OF_CPU.MEM_READ.PART0/",
            &[("uncore_iio_1", 0x7010_0000_0483, 0)],
        ),
        ("skylake-x", "cha/UNC_CHA_CLOCKTICKS/", &[("uncore_cha_0", 0, 0), ("uncore_cha_1", 0, 0)]),
        (
            "sapphire-rapids",
            "unc_cha_tor_inserts.ia_miss_drd",
            &[("uncore_cha_0", 0xc8_17fe_0000_0135, 0), ("uncore_cha_1", 0xc8_17fe_0000_0135, 0)],
        ),
        ("alder-lake", "inst_retired.any", &[("cpu_core", 0xc0, 0), ("cpu_atom", 0xc0, 0)]),
        ("alder-lake", "cpu_atom/INST_RETIRED.ANY/", &[("cpu_atom", 0xc0, 0)]),
        ("alder-lake", "topdown.slots", &[("cpu_core", 0x400, 0)]),
        ("lunar-lake", "mem_load_l3_miss_retired.memside_cache", &[("cpu_core", 0x100_0000_00d3, 0)]),
        ("zen4", "ex_ret_instr", &[("cpu", 0xc0, 0)]),
        ("zen4", "ic_tag_hit_miss.instruction_cache_miss", &[("cpu", 0x1_0000_188e, 0)]),
        ("zen4", "local_processor_read_data_beats_cs0", &[("amd_df", 0x700_fe1f, 0)]),
        ("neoverse-n1", "STALL_BACKEND", &[("armv8_pmuv3_0", 0x24, 0)]),
        ("neoverse-n1", "armv8_pmuv3_0/ll_cache_miss_rd/", &[("armv8_pmuv3_0", 0x37, 0)]),
    ];
    for (cpu, text, wanted) in cases {
        asks(cpu, text, wanted);
    }
}

#[test]
fn terms_after_a_vendor_name_apply() {
    let [event] = &all("skylake-x", "mem_load_retired.l3_miss:u,period=1000")[..] else { panic!() };
    let attr = event.attr().unwrap();
    assert_eq!((attr.config(), attr.period()), (0x20d1, 1000));
    assert!(attr.get(Flag::ExcludeKernel) && !attr.get(Flag::ExcludeUser));
    assert_eq!(event.name, "mem_load_retired.l3_miss:u", "shown as it was typed");
    assert_eq!(event.recommended_period, Some(100_007));
    assert_eq!(event.counters, Some(PmuCounters { general: 0b1111, fixed: None }));
    let fixed = &all("skylake-x", "inst_retired.any")[0];
    assert_eq!(fixed.counters, Some(PmuCounters { general: 0, fixed: Some(0) }));

    let both = all("alder-lake", "inst_retired.any");
    assert!(both[0].merge.is_some() && both[0].merge == both[1].merge, "shown as one");
    assert_eq!(both[1].unique_name(), "cpu_atom/inst_retired.any/");
    assert!(both.iter().all(|event| event.core_cpus.is_some()));
    assert!(all("skylake-x", "unc_cha_clockticks").iter().all(|event| event.system_wide));
}

#[test]
fn precise_only_events_are_sampled_precisely() {
    const LATENCY: &str = "mem_trans_retired.load_latency_gt_128";
    let precise = |text: &str| {
        let event = &all("skylake-x", text)[0];
        (event.precise_max, event.attr().unwrap().precise_ip())
    };
    assert_eq!(precise(LATENCY), (true, 0), "counted as it is, sampled as precisely as can be");
    assert_eq!(precise(&format!("{LATENCY}:u")), (true, 0));
    assert_eq!(precise(&format!("{LATENCY}:pp")), (false, 2), "the user's word");
    assert_eq!(precise(&format!("{LATENCY},precise=1")), (false, 1));
    assert_eq!(precise("inst_retired.any"), (false, 0));
}

/// Creates a machine with this CPU ID and PMUs with these formats.
fn machine(cpuinfo: &str, pmus: &[(&str, &[(&str, &str)])]) -> (tempfile::TempDir, Host) {
    let root = tempfile::tempdir().expect("a folder");
    let write = |path: String, text: &str| {
        let path = root.path().join(path);
        std::fs::create_dir_all(path.parent().expect("it is below the folder")).expect("it can be made");
        std::fs::write(path, text).expect("it can be written");
    };
    write("proc/cpuinfo".to_owned(), cpuinfo);
    for (number, (pmu, formats)) in pmus.iter().enumerate() {
        let folder = format!("sys/bus/event_source/devices/{pmu}");
        write(format!("{folder}/type"), &(20 + number).to_string());
        if pmu.starts_with("cpu_") {
            write(format!("{folder}/cpus"), "0");
        }
        for (term, bits) in *formats {
            write(format!("{folder}/format/{term}"), bits);
        }
    }
    let host = Host::rooted(root.path());
    (root, host)
}

fn intel(family: u32, model: u32) -> String {
    format!("vendor_id : GenuineIntel\ncpu family : {family}\nmodel : {model}\nstepping : 1\n")
}

const NARROW: &[(&str, &str)] =
    &[("event", "config:0-7"), ("umask", "config:8-15"), ("cmask", "config:24-31")];

#[test]
fn values_too_large_for_a_field_are_rejected() {
    let (_root, host) = machine(&intel(6, 0xbd), &[("cpu_core", NARROW)]);
    let said = refused(&host, "mem_load_retired.l1_hit_l1");
    assert!(said.contains("umask=0x100") && said.contains("config:8-15"), "{said}");
    assert!(said.contains("another event") && said.contains("newer kernel"), "{said}");
    assert!(parse("cpu_core/mem_load_retired.l1_hit_l1,umask=1/", &host).is_ok(), "the user's own mask fits");
    let said = refused(&host, "ocr.demand_data_rd.any_response");
    assert!(said.contains("no `offcore_rsp`"), "{said}");

    let (_root, host) = machine(&intel(18, 1), &[("cpu_core", NARROW)]);
    let vendor = Vendor::find(&host);
    let beyond: Vec<_> = vendor.events().filter(|event| event.extra.contains("msr=0x3e0")).collect();
    assert_eq!(beyond.len(), 4);
    for event in beyond {
        let said = refused(&host, event.name);
        assert!(said.contains("0x3e0") && said.contains("Linux has no terms"), "{said}");
    }
    assert!(refused(&tree("neoverse-n1"), "CHAIN").contains("counts nothing"));
    let said = refused(&tree("skylake-x"), "mem_load_retired.l3_mis");
    assert!(said.contains("mem_load_retired.l3_miss"), "{said}");
}

#[test]
fn vendor_event_without_its_pmu_is_explained() {
    let (_root, host) = machine(&intel(6, 0x8f), &[("software", &[])]);
    let said = refused(&host, "inst_retired.any");
    assert!(said.contains("an event of cpu") && said.contains("virtual machines"), "{said}");
    let said = refused(&host, "unc_cha_clockticks");
    assert!(said.contains("an event of uncore_cha") && said.contains("driver"), "{said}");
}

#[test]
fn uncore_units_known_by_number_are_found() {
    let units = [("uncore_type_0_0", NARROW), ("uncore_type_0_1", NARROW), ("uncore_type_1_0", NARROW)];
    let (_root, host) = machine(&intel(6, 0x8f), &units);
    let found = specs(&mut EventParser::new(&host), "unc_cha_clockticks").unwrap();
    let pmus: Vec<_> = found.iter().map(|event| event.pmu.as_deref().unwrap()).collect();
    assert_eq!(pmus, ["uncore_type_0_0", "uncore_type_0_1"]);
    assert!(refused(&host, "unc_cha_tor_inserts.ia_miss_drd").contains("config:8-15"));
}

#[test]
fn freebsd_spellings_are_accepted() {
    for text in
        ["Inst-Retired.Any_P", "inst_retired_any_p", "iap-inst-retired.any-p", "IAP-INST_RETIRED.ANY_P"]
    {
        asks("skylake-x", text, &[("cpu", 0xc0, 0)]);
    }
    asks("zen4", "k8-ex-ret-instr", &[("cpu", 0xc0, 0)]);
}

#[test]
fn auto_period_requires_a_recommended_period() {
    let arguments = ["record", "-c", "auto", "-o", "/dev/null", "-e", "cpu-clock", "--", "true"];
    kit::run(&arguments).expect(2).says(&["no period is recommended for `cpu-clock`", "-c N"]);
    let mut uncore = kit::pmc_on("skylake-x");
    uncore.args(["record", "-c", "auto", "-a", "-o", "/dev/null", "-e", "unc_m_cas_count.rd", "--", "true"]);
    let ran: kit::Ran = uncore.output().expect("the binary starts").into();
    let ran = ran.expect(2).says(&["no period is recommended for `unc_m_cas_count.rd`", "package or device"]);
    assert!(!ran.stderr.contains("generic"), "{}", ran.stderr);
}
