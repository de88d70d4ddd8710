//! libpfm4's event names, such as `skx::MEM_LOAD_RETIRED:L3_MISS:u`. The library resolves them if it is
//! installed; otherwise, pmc translates names for which it has an equivalent.
//!
//! Takes a name and a [`Host`]; returns a request or equivalent event text. The library is not used for saved
//! machines, because it examines the running one.
//!
//! ```text
//! skx        :: MEM_LOAD_RETIRED : L3_MISS : u : c=1      ->  cpu/event=0xd1,umask=0x20,cmask=1/u
//! optional PMU  event              unit mask  modifiers        the table's event of this name, and its terms
//! ```

use pmc_sys::abi::Attr;
use pmc_sys::host::Host;

use super::vendor::Vendor;

/// The meaning of a name.
#[derive(Debug)]
pub(super) enum Meaning {
    /// A request created by the library.
    Request(Box<Attr>),
    /// Equivalent pmc event text.
    Text(String),
}

/// Converts a list of libpfm4 names (`--pfm-events`) to event text: `{a,skx::b:u},c` becomes
/// `{::a,skx::b:u},::c`.
pub fn event_text(list: &str) -> String {
    let mut text = String::with_capacity(list.len() + 16);
    for part in list.split_inclusive([',', '{', '}']) {
        let name = part.trim_end_matches([',', '{', '}']);
        if !name.trim().is_empty() && !name.contains("::") {
            text.push_str("::");
        }
        text.push_str(part.trim_start());
    }
    text
}

/// Resolves `PMU::EVENT:UMASK:MODIFIER`; the PMU before `::` may be empty.
///
/// # Errors
/// Returns the reason why the name is invalid, as a clause.
pub(super) fn meaning(name: &str, host: &Host) -> Result<Meaning, String> {
    let (pmu, event) = name.split_once("::").unwrap_or(("", name));
    let asked = if pmu.is_empty() { event } else { name };
    let answer = host.libpfm(asked);
    if let Some(Ok(attr)) = answer {
        return Ok(Meaning::Request(Box::new(attr)));
    }
    match (plain(pmu, event, host), answer) {
        (Ok(text), _) => Ok(Meaning::Text(text)),
        (Err(why), Some(Err(theirs))) => Err(format!("libpfm4 reports: {theirs}; {why}")),
        (Err(why), _) => Err(why),
    }
}

/// libpfm4's prefix for each model's core PMU, and the model's name in the tables. AMD is not included, since
/// its events have different names in libpfm4 and in the tables.
const MODELS: [(&str, &str); 37] = [
    ("nhm", "nehalemep"),
    ("nhm_ex", "nehalemex"),
    ("wsm", "westmereep-sp"),
    ("wsm_dp", "westmereep-dp"),
    ("snb", "sandybridge"),
    ("snb_ep", "jaketown"),
    ("ivb", "ivybridge"),
    ("ivb_ep", "ivytown"),
    ("hsw", "haswell"),
    ("hsw_ep", "haswellx"),
    ("bdw", "broadwell"),
    ("bdw_ep", "broadwellx"),
    ("skl", "skylake"),
    ("skx", "skylakex"),
    ("clx", "cascadelakex"),
    ("icl", "icelake"),
    ("icx", "icelakex"),
    ("tgl", "tigerlake"),
    ("spr", "sapphirerapids"),
    ("emr", "emeraldrapids"),
    ("gnr", "graniterapids"),
    ("adl_glc", "alderlake"),
    ("adl_grt", "alderlake"),
    ("slm", "silvermont"),
    ("glm", "goldmont"),
    ("glp", "goldmontplus"),
    ("tmt", "snowridgex"),
    ("tmt", "elkhartlake"),
    ("knl", "knightslanding"),
    ("arm_ac53", "cortex-a53"),
    ("arm_ac55", "cortex-a55"),
    ("arm_ac57", "cortex-a57"),
    ("arm_ac72", "cortex-a72"),
    ("arm_ac76", "cortex-a76"),
    ("arm_n1", "neoverse-n1"),
    ("arm_n2", "neoverse-n2"),
    ("arm_v1", "neoverse-v1"),
];

/// Resolves the event with this CPU's vendor tables, if they contain the name with dots instead of colons.
fn plain(pmu: &str, event: &str, host: &Host) -> Result<String, String> {
    let vendor = Vendor::find(host);
    let model = vendor.models().first().map(|model| model.name.as_str());
    let (core, unit) = pmu.split_once("_unc_").map_or((pmu, None), |(core, unit)| (core, Some(unit)));
    let is_model = MODELS.iter().any(|(prefix, own)| *prefix == core && Some(*own) == model);
    if core.starts_with("amd64") {
        return Err("only libpfm4 knows its names for AMD events".to_owned());
    }
    if !pmu.is_empty() && !is_model {
        let here = model.unwrap_or("a CPU without a table in pmc");
        return Err(format!("pmc has no table named {pmu} for this CPU, which is {here}"));
    }
    let unit = unit.map(uncore_unit);
    let wanted_pmu = match (core, &unit) {
        ("adl_glc", _) => Some("cpu_core"),
        ("adl_grt", _) => Some("cpu_atom"),
        (_, Some((device, _))) => Some(device.as_str()),
        _ => None,
    };
    let mut parts = event.split(':');
    let event = parts.next().unwrap_or_default();
    let (mut letters, mut terms, mut masks) = (String::new(), Vec::new(), Vec::new());
    for part in parts {
        match part.split_once('=').unwrap_or((part, "1")) {
            ("u" | "k" | "h" | "e" | "i" | "t" | "intx" | "intxcp", "0") | ("mg", "0") | ("mh", "1") => {}
            ("u" | "k" | "h", "1") => letters.push_str(part.get(..1).unwrap_or_default()),
            ("e", "1") => terms.push("edge=1".to_owned()),
            ("i", "1") => terms.push("inv=1".to_owned()),
            ("t", "1") => terms.push("any=1".to_owned()),
            ("intx", "1") => terms.push("in_tx=1".to_owned()),
            ("intxcp", "1") => terms.push("in_tx_cp=1".to_owned()),
            ("c", number) => terms.push(format!("cmask={number}")),
            ("precise", level @ ("1" | "2" | "3")) => {
                letters.push_str(&"p".repeat(level.parse().unwrap_or(0)))
            }
            (word @ ("period" | "freq" | "ldlat"), number) => terms.push(format!("{word}={number}")),
            _ if part.contains('=') => return Err(format!("pmc's tables do not support `{part}`")),
            _ => masks.push(part),
        }
    }
    let name = [&[event], masks.as_slice()].concat().join(".");
    let found = vendor.named(&name);
    let mut fitting = found.iter().filter(|event| wanted_pmu.is_none_or(|pmu| event.pmu == pmu));
    let Some(event) = fitting.next() else {
        return Err(only_the_library(event, &masks, &vendor)
            .unwrap_or_else(|| format!("pmc's tables for this CPU have no event {name}")));
    };
    let device = match &unit {
        Some((_, instance)) if host.pmu(instance).is_some() => instance,
        _ => event.pmu,
    };
    // A term that the user gives replaces the event's own term of that name.
    let given = |term: &str| terms.iter().any(|own| own.split('=').next() == term.split('=').next());
    let own = event.terms.split(',').filter(|term| !given(term)).map(str::to_owned);
    let all: Vec<String> = own.chain(terms.iter().cloned()).collect();
    Ok(format!("{device}/{}/{letters}", all.join(",")))
}

/// Explains why an event is missing from the tables even though the library may support it: the tables list
/// complete events, while the library composes some events from parts.
fn only_the_library(event: &str, masks: &[&str], vendor: &Vendor) -> Option<String> {
    if event.to_ascii_uppercase().starts_with("OFFCORE_RESPONSE_") {
        return Some(format!("only libpfm4 can combine requests and responses of {event}"));
    }
    let is_event = |mask: &&str| !vendor.named(&format!("{event}.{mask}")).is_empty();
    (masks.len() > 1 && masks.iter().all(is_event))
        .then(|| format!("only libpfm4 can combine several unit masks: {}", masks.join(", ")))
}

/// `cha0` → `uncore_cha` and `uncore_cha_0`.
pub(super) fn uncore_unit(unit: &str) -> (String, String) {
    let letters = unit.trim_end_matches(|c: char| c.is_ascii_digit());
    let number = &unit[letters.len()..];
    let device = format!("uncore_{}", if letters == "cbo" { "cbox" } else { letters });
    let instance = if number.is_empty() { device.clone() } else { format!("{device}_{number}") };
    (device, instance)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kit::test_data;
    use pmc_sys::host::Host;

    fn said(cpu: &str, name: &str) -> Result<String, String> {
        match meaning(name, &Host::rooted(test_data(&format!("cpus/{cpu}"))))? {
            Meaning::Text(text) => Ok(text),
            Meaning::Request(attr) => panic!("{attr:?}"),
        }
    }

    #[test]
    fn vendor_names_use_dots_for_colons() {
        for (cpu, name, text) in [
            ("skylake-x", "skx::MEM_LOAD_RETIRED:L3_MISS:u", "cpu/event=0xd1,umask=0x20/u"),
            ("skylake-x", "::mem_load_retired:l3_miss:u=1:k=0", "cpu/event=0xd1,umask=0x20/u"),
            ("skylake-x", "skx::UOPS_ISSUED:ANY:c=1:i", "cpu/event=0xe,umask=0x1,cmask=1,inv=1/"),
            ("skylake-x", "skx::CYCLE_ACTIVITY:STALLS_L2_MISS:c=2", "cpu/event=0xa3,umask=0x5,cmask=2/"),
            ("skylake-x", "skx_unc_upi1::UNC_UPI_CLOCKTICKS", "uncore_upi_1/event=0x1/"),
            ("alder-lake", "adl_grt::INST_RETIRED:ANY_P", "cpu_atom/event=0xc0/"),
            ("neoverse-n1", "arm_n1::L1D_CACHE_REFILL:precise=1", "armv8_pmuv3_0/event=0x3/p"),
        ] {
            assert_eq!(said(cpu, name).as_deref(), Ok(text), "{name}");
        }
        for (cpu, name, why) in [
            ("skylake-x", "spr::INST_RETIRED:ANY_P", "for this CPU, which is skylakex"),
            ("skylake-x", "skx::NO_SUCH:EVENT", "have no event NO_SUCH.EVENT"),
            ("skylake-x", "skx::FRONTEND_RETIRED:DSB_MISS:fe_thres=2", "do not support `fe_thres=2`"),
            (
                "skylake-x",
                "skx::OFFCORE_RESPONSE_0:DMND_DATA_RD:ANY_RESPONSE",
                "only libpfm4 can combine requests",
            ),
            ("skylake-x", "skx::L2_RQSTS:MISS:REFERENCES", "several unit masks: MISS, REFERENCES"),
            (
                "zen4",
                "amd64_fam19h_zen4::RETIRED_INSTRUCTIONS",
                "only libpfm4 knows its names for AMD events",
            ),
        ] {
            assert!(said(cpu, name).unwrap_err().contains(why), "{name}");
        }
    }

    #[test]
    fn event_lists_become_event_text() {
        assert_eq!(event_text("inst_retired:any_p:u:c=1:i"), "::inst_retired:any_p:u:c=1:i");
        assert_eq!(event_text("{a:u,skx::b} , c"), "{::a:u,skx::b},::c");
        assert_eq!(event_text(""), "");
    }
}
