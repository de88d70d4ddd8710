//! Vendor event names: finds the PMUs of this machine that support an event from a table, and builds the
//! request.
//!
//! Takes a name or a PMU; returns rows of `vendor`'s tables, or the reason why this kernel does not support
//! the event. `terms` encodes the terms like those from sysfs. Each term is first checked against the PMU's
//! `format`, so that no value is silently truncated. The tables are searched only for names that the kernel
//! does not provide, so most events cost nothing.
//!
//! ```text
//! unc_cha_tor_inserts.ia_miss_drd ──vendor──► uncore_cha: event=0x35,umask=0xc817fe01
//!                                                │ instances            │ checked against format/*
//!                                  uncore_cha_0, uncore_cha_1 …         └► attr, or error
//! ```

use crate::hint::Hint;
use std::cell::OnceCell;

use super::PmuCounters;
use super::error::{Fault, ParseResult, TextSpan};
use super::syntax::number;
use super::vendor::{Vendor, VendorEvent};
use pmc_sys::host::Host;
use pmc_sys::host::pmu::Pmu;

/// Intel uncore units, by the generic PMU names that a kernel without support for the model uses
/// (`uncore_type_0_3` is the fourth `cha`). Lists only units that are the same on all self-describing models.
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

/// The vendor event names for this machine's CPUs.
#[derive(Debug)]
pub(super) struct VendorNames<'h> {
    host: &'h Host,
    vendor: OnceCell<Vendor>,
    /// Whether hardware threads share cores, and so share counters.
    smt: OnceCell<bool>,
}

impl<'h> VendorNames<'h> {
    pub(super) fn new(host: &'h Host) -> Self {
        Self { host, vendor: OnceCell::new(), smt: OnceCell::new() }
    }

    fn vendor(&self) -> &Vendor {
        self.vendor.get_or_init(|| Vendor::find(self.host))
    }

    /// All names.
    pub(super) fn all(&self) -> impl Iterator<Item = &str> {
        self.vendor().events().map(|event| event.name)
    }

    pub(super) fn on(&self, pmu: &Pmu, name: &str) -> Option<VendorEvent<'_>> {
        // An exact instance name takes precedence over the common name.
        let mut events = self.vendor().named(name);
        events.sort_by_key(|event| event.pmu != pmu.name);
        events.into_iter().find(|event| is_instance(&pmu.name, event.pmu))
    }

    /// The PMUs that have an event with this name, in sysfs order. Fails if the tables contain the event but
    /// the machine has none of its PMUs; `None` if no table contains it.
    pub(super) fn pmus(&self, name: &str, span: &TextSpan) -> Option<ParseResult<Vec<Pmu>>> {
        let events = self.vendor().named(name);
        let first = events.first()?;
        let mut pmus: Vec<Pmu> = self
            .host
            .pmu_names()
            .iter()
            .filter(|pmu| events.iter().any(|event| is_instance(pmu, event.pmu)))
            .filter_map(|pmu| self.host.pmu(pmu))
            .collect();
        // Core PMUs are returned in the kernel's order, as for generic events.
        if pmus.iter().all(|pmu| pmu.core_cpus().is_some()) {
            pmus.sort_by_key(|pmu| pmu.kind);
        }
        if !pmus.is_empty() {
            return Some(Ok(pmus));
        }
        Some(Err(Fault::at(
            span,
            format!("`{name}` is an event of {}, a PMU that this machine does not have", first.pmu),
        )
        .why(if first.pmu.starts_with("cpu") || first.pmu.starts_with("armv") {
            "virtual machines often have no hardware counters, and some kernels are built or booted without \
             them"
        } else {
            "its driver is not loaded (modprobe intel_uncore, amd_uncore), the kernel is too old for this CPU model, or this is a virtual machine"
        })
        .try_this(Hint::ShowMissingPmus)))
    }

    /// The name in the table for a FreeBSD spelling, in which `.`, `_`, `-` and spaces are equivalent.
    pub(super) fn spelled_freely(&self, name: &str) -> Option<&str> {
        let same = |own: &str| {
            let normal = |b: u8| if matches!(b, b'.' | b'_' | b' ') { b'-' } else { b.to_ascii_lowercase() };
            own.len() == name.len() && own.bytes().map(normal).eq(name.bytes().map(normal))
        };
        self.all().find(|own| same(own))
    }

    /// The general and fixed counters that the event can use.
    pub(super) fn counters(&self, event: &VendorEvent<'_>) -> Option<PmuCounters> {
        let alone = || {
            let text = event.extra.split(' ').find_map(|word| word.strip_prefix("htoff="))?;
            let smt =
                || self.host.text("/sys/devices/system/cpu/smt/active").is_none_or(|active| active != "0");
            (!self.smt.get_or_init(smt)).then(|| text.replace('+', ","))
        };
        PmuCounters::read(&alone().unwrap_or_else(|| event.counters.to_owned()))
    }
}

/// Whether a PMU is the one in the table, or one of its numbered instances.
fn is_instance(pmu: &str, of: &str) -> bool {
    let numbered = |stem: &str| {
        let digits = pmu.strip_prefix(stem).and_then(|rest| rest.strip_prefix('_'));
        digits.is_some_and(|digits| !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit()))
    };
    pmu == of || numbered(of) || DISCOVERED.iter().any(|(number, unit)| *unit == of && numbered(number))
}

/// Checks whether this kernel supports the event; returns the reason if not. `given` returns whether the user
/// typed a term with this name; the user's terms replace the event's own.
pub(super) fn check(
    pmu: &Pmu,
    event: &VendorEvent<'_>,
    given: &dyn Fn(&str) -> bool,
    span: &TextSpan,
) -> ParseResult<()> {
    let refused =
        |why: String| Fault::at(span, format!("cannot count `{}` on this machine", event.name)).why(why);
    if event.flags.contains('D') || pmu.name.starts_with("armv") && event.terms == "event=0x0" {
        return Err(refused(
            "this event code is reserved for software and the kernel driver; it counts nothing".to_owned(),
        )
        .try_this(Hint::UseOtherEvent));
    }
    let register = event.extra.split(' ').find_map(|word| word.strip_prefix("msr=")?.split_once(':'));
    if let Some((registers, _)) = register {
        return Err(refused(format!(
            "the event uses the registers {registers}, for which Linux has no terms yet"
        ))
        .try_this(
            "use a newer kernel with terms for these registers, and an event table that uses the terms",
        ));
    }
    for term in event.terms.split(',') {
        let (name, value) = term.split_once('=').unwrap_or((term, "1"));
        // `config`, `config1` and so on are fields of `perf_event_attr`, so every PMU accepts them.
        if given(name) || name.starts_with("config") {
            continue;
        }
        let older = "use a newer kernel; older kernels and virtual machines support fewer terms";
        let Some(format) = pmu.format(name).and_then(std::result::Result::ok) else {
            return Err(refused(format!(
                "the event requires the term {term}, but {} has no `{name}`",
                pmu.name
            ))
            .try_this(older));
        };
        if number(value).is_none_or(|value| value > format.largest()) {
            return Err(refused(format!(
                "it requires {term}, but {} supports at most {:#x} there ({format}); a truncated value would \
                 select another event",
                pmu.name,
                format.largest()
            ))
            .try_this(older));
        }
    }
    Ok(())
}
