//! The makers' names for events: which PMUs of this machine an event of the tables is for, and what is asked
//! of them.
//!
//! Receives a name or a PMU; hands on rows of `vendor`'s tables, and says with the reason what this kernel
//! cannot be asked. Terms are placed by `terms` as those of sysfs are; before that each is held against the
//! PMU's own `format`, so that nothing is cut to what fits. The tables are looked up only for names that the
//! kernel does not have itself, so that most event texts cost nothing.
//!
//! ```text
//! unc_cha_tor_inserts.ia_miss_drd ──vendor──► uncore_cha: event=0x35,umask=0xc817fe01
//!                                                │ instances            │ held against format/*
//!                                  uncore_cha_0, uncore_cha_1 …         └► attr, or why not
//! ```

use std::cell::OnceCell;

use super::Counters;
use super::error::{Fault, Result, Span};
use super::syntax::number;
use super::vendor::{Event, Vendor};
use crate::host::Host;
use crate::host::pmu::Pmu;
use crate::sort;

/// Units of Intel's uncore by the numbers under which a kernel that does not know the model finds them
/// (`uncore_type_0_3` is the fourth `cha`): those that are the same on each model that describes itself.
const DISCOVERED: [(&str, &str); 12] = [
    ("uncore_type_0", "uncore_cha"),
    ("uncore_type_1", "uncore_iio"),
    ("uncore_type_2", "uncore_irp"),
    ("uncore_type_3", "uncore_m2pcie"),
    ("uncore_type_4", "uncore_pcu"),
    ("uncore_type_5", "uncore_ubox"),
    ("uncore_type_6", "uncore_imc"),
    ("uncore_type_7", "uncore_m2m"),
    ("uncore_type_8", "uncore_upi"),
    ("uncore_type_9", "uncore_m3upi"),
    ("uncore_type_16", "uncore_b2cmi"),
    ("uncore_type_17", "uncore_b2cxl"),
];

/// The names that the makers of this machine's CPUs gave to events.
#[derive(Debug)]
pub(super) struct Names<'h> {
    host: &'h Host,
    vendor: OnceCell<Vendor>,
    /// Whether hardware threads share cores, and with them counters.
    smt: OnceCell<bool>,
}

impl<'h> Names<'h> {
    pub(super) fn new(host: &'h Host) -> Self {
        Self { host, vendor: OnceCell::new(), smt: OnceCell::new() }
    }

    fn vendor(&self) -> &Vendor {
        self.vendor.get_or_init(|| Vendor::of(self.host))
    }

    /// All names.
    pub(super) fn all(&self) -> impl Iterator<Item = &str> {
        self.vendor().events().map(|event| event.name)
    }

    /// The event of this name on this PMU.
    pub(super) fn on(&self, pmu: &Pmu, name: &str) -> Option<Event<'_>> {
        // A whole name of an instance before the name of all.
        let mut events = self.vendor().named(name);
        sort::by_key(&mut events, |event| event.pmu != pmu.name);
        events.into_iter().find(|event| is_instance(&pmu.name, event.pmu))
    }

    /// The PMUs that have an event of this name, in the order of sysfs; a fault where the tables have it and
    /// the machine none of its PMUs. `None`: no table has it.
    pub(super) fn pmus(&self, name: &str, span: &Span) -> Option<Result<Vec<Pmu>>> {
        let events = self.vendor().named(name);
        let first = events.first()?;
        let mut pmus: Vec<Pmu> = self
            .host
            .pmu_names()
            .iter()
            .filter(|pmu| events.iter().any(|event| is_instance(pmu, event.pmu)))
            .filter_map(|pmu| self.host.pmu(pmu))
            .collect();
        // Kinds of cores stand in the kernel's order, as for generic events.
        if pmus.iter().all(|pmu| pmu.core_cpus().is_some()) {
            sort::by_key(&mut pmus, |pmu| pmu.kind);
        }
        if !pmus.is_empty() {
            return Some(Ok(pmus));
        }
        Some(Err(Fault::at(
            span,
            format!("`{name}` is an event of {}, a PMU that this machine does not show", first.pmu),
        )
        .why(if first.pmu.starts_with("cpu") || first.pmu.starts_with("armv") {
            "virtual machines often have no hardware counters, and kernels may be built or started without"
        } else {
            "its driver is not loaded (modprobe intel_uncore, amd_uncore), the kernel is older than the \
                 model, or this is a virtual machine"
        })
        .try_this("pmc info says which PMUs there are, and why others are not")))
    }

    /// The name that FreeBSD's spelling of it means, where `.`, `_`, `-` and blanks are the same character.
    pub(super) fn spelled_freely(&self, name: &str) -> Option<&str> {
        let same = |own: &str| {
            let normal = |b: u8| if matches!(b, b'.' | b'_' | b' ') { b'-' } else { b.to_ascii_lowercase() };
            own.len() == name.len() && own.bytes().map(normal).eq(name.bytes().map(normal))
        };
        self.all().find(|own| same(own))
    }

    /// The general counters, and the fixed one, that the event can be counted on.
    pub(super) fn counters(&self, event: &Event<'_>) -> Option<Counters> {
        let alone = || {
            let text = event.extra.split(' ').find_map(|word| word.strip_prefix("htoff="))?;
            let smt =
                || self.host.text("/sys/devices/system/cpu/smt/active").is_none_or(|active| active != "0");
            (!self.smt.get_or_init(smt)).then(|| text.replace('+', ","))
        };
        Counters::read(&alone().unwrap_or_else(|| event.counters.to_owned()))
    }
}

/// Whether a PMU is this one of a table, or one of its numbered instances.
fn is_instance(pmu: &str, of: &str) -> bool {
    let numbered = |stem: &str| {
        let digits = pmu.strip_prefix(stem).and_then(|rest| rest.strip_prefix('_'));
        digits.is_some_and(|digits| !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit()))
    };
    pmu == of || numbered(of) || DISCOVERED.iter().any(|(number, unit)| *unit == of && numbered(number))
}

/// Says why this kernel cannot be asked for an event, if it cannot. `given`: terms that the user wrote, which
/// stand in place of the event's own.
pub(super) fn check(pmu: &Pmu, event: &Event<'_>, given: &dyn Fn(&str) -> bool, span: &Span) -> Result<()> {
    let refused = |why: String| Fault::at(span, format!("`{}` cannot be counted here", event.name)).why(why);
    if event.flags.contains('D') || pmu.name.starts_with("armv") && event.terms == "event=0x0" {
        return Err(refused(
            "software and the kernel's own driver use this code: it counts nothing by itself".to_owned(),
        )
        .try_this("another event; pmc list shows them"));
    }
    let register = event.extra.split(' ').find_map(|word| word.strip_prefix("msr=")?.split_once(':'));
    if let Some((registers, _)) = register {
        return Err(refused(format!(
            "it is set up in the registers {registers}, which no term of Linux reaches yet"
        ))
        .try_this("a newer kernel, once it has a term for them, with a table that names it"));
    }
    for term in event.terms.split(',') {
        let (name, value) = term.split_once('=').unwrap_or((term, "1"));
        // `config1` and its like are words of the request, whatever the PMU.
        if given(name) || name.starts_with("config") {
            continue;
        }
        let older = "a newer kernel; older ones, and virtual machines, know less of a PMU";
        let Some(format) = pmu.format(name).and_then(std::result::Result::ok) else {
            return Err(refused(format!("it needs the term {term}, and {} has no `{name}`", pmu.name))
                .try_this(older));
        };
        if number(value).is_none_or(|value| value > format.largest()) {
            return Err(refused(format!(
                "it needs {term}, and {} takes at most {:#x} there ({format}): what fits would be another event",
                pmu.name,
                format.largest()
            ))
            .try_this(older));
        }
    }
    Ok(())
}
