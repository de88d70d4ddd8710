//! Converts JSON objects from vendors to events and metrics. Intel's files and the kernel's use the same
//! field names, but the kernel's have fewer fields.
//!
//! Numbers are written as `0x1F` or `31`; the words `na`, `null` and `tbd` mean that the value is missing. If
//! a code has alternatives (`"0xB7, 0xBB"`), pmc uses the first one; the kernel switches to the second if the
//! first is busy. An event whose code contains anything else is skipped, since pmc would count something
//! different.

use pmc_text::text::{clean, prefix};
use serde_json::{Map, Value};

use super::tables::{ImportedEvent, ImportedMetric};

/// An object of a file.
pub(super) type Object = Map<String, Value>;

/// Maximum length of a description, in bytes.
const LONGEST_TEXT: usize = 4000;
/// Maximum length of a formula, in bytes. The longest in Intel's data has about 4000.
const LONGEST_FORMULA: usize = 32 * 1024;

/// A field as text; numbers are converted.
pub(super) fn word<'a>(object: &'a Object, field: &str) -> std::borrow::Cow<'a, str> {
    match object.get(field) {
        Some(Value::String(text)) => text.trim().into(),
        Some(Value::Number(number)) => number.to_string().into(),
        Some(Value::Bool(true)) => "1".into(),
        _ => "".into(),
    }
}

/// A field as a table cell: one line without control characters, with single spaces.
fn line(object: &Object, field: &str, most: usize) -> String {
    let text = word(object, field);
    let spaced: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    let text = spaced.split_whitespace().collect::<Vec<_>>().join(" ");
    prefix(&clean(&text), most).to_owned()
}

/// The brief description, or else the long one.
pub(super) fn text(object: &Object, fields: &[&str]) -> String {
    fields
        .iter()
        .map(|field| line(object, field, LONGEST_TEXT))
        .find(|text| !text.is_empty())
        .unwrap_or_default()
}

fn number_of(text: &str) -> Option<u64> {
    let text = text.trim();
    match text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")) {
        Some(hex) => u64::from_str_radix(hex, 16).ok(),
        None => text.parse().ok(),
    }
}

/// The first number of a field; `None` if the field contains no number.
pub(super) fn number(object: &Object, field: &str) -> Option<u64> {
    number_of(word(object, field).split(',').next()?)
}

fn is_set(object: &Object, field: &str) -> bool {
    number(object, field).is_some_and(|number| number != 0)
}

/// A part of an event's code is not a number or is too large.
struct UnreadableCode;

/// A part of an event's code; 0 if it is missing.
fn code(object: &Object, field: &str) -> Result<u64, UnreadableCode> {
    Ok(code_if_any(object, field)?.unwrap_or(0))
}

/// A part of an event's code, or the first of several alternatives; `None` if it is missing.
fn code_if_any(object: &Object, field: &str) -> Result<Option<u64>, UnreadableCode> {
    if matches!(object.get(field), Some(Value::Array(_) | Value::Object(_))) {
        return Err(UnreadableCode);
    }
    let text = word(object, field);
    let of_word = |word: &str| match number_of(word) {
        None if !["", "na", "null", "tbd"].contains(&word.trim().to_ascii_lowercase().as_str()) => {
            Err(UnreadableCode)
        }
        number => Ok(number),
    };
    let numbers = text.split(',').map(of_word).collect::<Result<Vec<_>, _>>()?;
    Ok(numbers.first().copied().flatten())
}

/// The code shifted above the lowest eight bits.
fn above(code: u64) -> Result<u64, UnreadableCode> {
    code.checked_mul(0x100).ok_or(UnreadableCode)
}

/// The PMU of a `Unit`; empty for the cores.
pub(super) fn pmu(unit: &str) -> String {
    match unit {
        "" | "cpu" | "core" => String::new(),
        "cpu_core" | "cpu_atom" | "cpu_lowpower" => String::new(),
        "CBO" => "uncore_cbox".to_owned(),
        "SBO" => "uncore_sbox".to_owned(),
        "QPI LL" => "uncore_qpi".to_owned(),
        "UPI LL" => "uncore_upi".to_owned(),
        "iMPH-U" => "uncore_arb".to_owned(),
        "L3PMC" => "amd_l3".to_owned(),
        "DFPMC" => "amd_df".to_owned(),
        "UMCPMC" => "amd_umc".to_owned(),
        "CPU-M-CF" => "cpum_cf".to_owned(),
        "CPU-M-SF" => "cpum_sf".to_owned(),
        "PAI-CRYPTO" => "pai_crypto".to_owned(),
        "PAI-EXT" => "pai_ext".to_owned(),
        // These units have the same names as the kernel's PMUs.
        unit if ["hisi_", "imx8_", "imx9_", "ali_", "arm_", "amd_", "uncore_"]
            .iter()
            .any(|own| unit.starts_with(own)) =>
        {
            unit.replace(',', "_")
        }
        unit => format!("uncore_{}", unit.to_lowercase().replace(' ', "_")),
    }
}

/// Converts an event; `None` if its name is missing or its code is invalid. `experimental` applies to all
/// events of the file.
pub(super) fn event(object: &Object, experimental: bool) -> Option<ImportedEvent> {
    coded(object, experimental).ok()
}

fn coded(object: &Object, experimental: bool) -> Result<ImportedEvent, UnreadableCode> {
    let name = word(object, "EventName")
        .replace("OFFCORE_RESPONSE_0", "OFFCORE_RESPONSE")
        .replace(":request=", ".")
        .replace(":response=", ".");
    if name.is_empty() {
        return Err(UnreadableCode);
    }
    let pmu = pmu(&word(object, "Unit"));
    let is_core = pmu.is_empty();
    let (mut event, mut umask) = (code_if_any(object, "EventCode")?, code(object, "UMask")?);
    let mut any = code(object, "AnyThread")? != 0;
    let mut extra = Vec::new();
    // Linux does not support Intel's codes for fixed counters as events, and uses the general codes instead.
    let is_fixed = word(object, "Counter").to_ascii_lowercase().starts_with("fixed");
    let general = match name.as_str() {
        "INST_RETIRED.ANY" => Some((0xc0, 0)),
        "CPU_CLK_UNHALTED.THREAD" | "CPU_CLK_UNHALTED.CORE" => Some((0x3c, 0)),
        "CPU_CLK_UNHALTED.THREAD_ANY" => Some((0x3c, 0)),
        "CPU_CLK_UNHALTED.REF" => Some((0, 3)),
        _ => None,
    };
    if let Some((code, mask)) = general.filter(|_| is_core && is_fixed) {
        extra.push(format!("pseudo={:#x}", above(umask)? | event.unwrap_or(0)));
        (event, umask, any) = (Some(code), mask, name.ends_with("_ANY"));
    }
    let event = event.unwrap_or(0) | above(code(object, "ExtSel")?)?;
    let mut terms = match code_if_any(object, "ConfigCode")? {
        Some(config) => vec![format!("config={config:#x}")],
        None => vec![format!("event={event:#x}")],
    };
    let wide = code(object, "UMaskExt")?;
    let mut masks = [code(object, "PortMask")?, code(object, "FCMask")?];
    // On these PMUs, the kernel has separate terms for the bits above the mask.
    if pmu == "uncore_iio" {
        if masks == [0, 0] {
            masks = [wide >> 4 & 0xfff, wide >> 16 & 7];
        }
    } else {
        umask |= above(wide)?;
    }
    for (term, value) in [
        ("umask", umask),
        ("ch_mask", masks[0]),
        ("fc_mask", masks[1]),
        ("rdwrmask", code(object, "RdWrMask")?),
        ("enallcores", code(object, "EnAllCores")?),
        ("enallslices", code(object, "EnAllSlices")?),
        ("sliceid", code(object, "SliceId")?),
        ("threadmask", code(object, "ThreadMask")?),
        ("type", code(object, "NodeType")?),
        ("eventid", code(object, "EventidCode")?),
    ] {
        if value != 0 {
            terms.push(format!("{term}={value:#x}"));
        }
    }
    for (term, value) in [
        ("cmask", code(object, "CounterMask")?),
        ("inv", code(object, "Invert")?),
        ("edge", code(object, "EdgeDetect")?),
        ("any", u64::from(any)),
    ] {
        if value != 0 {
            terms.push(format!("{term}={value}"));
        }
    }
    register(object, &mut terms, &mut extra)?;
    filter(object, &mut terms, &mut extra)?;
    let second = |field: &str| number_of(word(object, field).split(',').nth(1)?);
    for (field, key) in [("EventCode", "event2"), ("UMask", "umask2")] {
        extra.extend(second(field).map(|value| format!("{key}={value:#x}")));
    }
    Ok(ImportedEvent {
        name,
        pmu,
        terms: terms.join(","),
        counters: counters(&word(object, "Counter")),
        flags: flags(object, experimental),
        period: number(object, "SampleAfterValue").filter(|&period| period != 0),
        extra: extra.join(" "),
        text: text(object, &["BriefDescription", "PublicDescription"]),
    })
}

/// Adds a register that is set along with the event.
fn register(object: &Object, terms: &mut Vec<String>, extra: &mut Vec<String>) -> Result<(), UnreadableCode> {
    let (index, value) = (code_if_any(object, "MSRIndex")?, code_if_any(object, "MSRValue")?);
    let Some(value) = value else { return Ok(()) };
    match index {
        None | Some(0) => {}
        Some(0x1a6 | 0x1a7) => terms.push(format!("offcore_rsp={value:#x}")),
        Some(0x3f6) => terms.extend((value != 0).then(|| format!("ldlat={value:#x}"))),
        Some(0x3f7) => terms.push(format!("frontend={value:#x}")),
        Some(register) => extra.push(format!("msr={register:#x}:{value:#x}")),
    }
    Ok(())
}

/// Adds a filter's terms, or the register that the user must set.
fn filter(object: &Object, terms: &mut Vec<String>, extra: &mut Vec<String>) -> Result<(), UnreadableCode> {
    let filter = word(object, "Filter");
    let plain = |c: char| c.is_ascii_alphanumeric() || "_:[]".contains(c);
    let given: Vec<&str> = filter.split(',').map(str::trim).filter(|term| !term.is_empty()).collect();
    let as_term = |term: &&str| {
        let (name, value) = term.split_once('=')?;
        (!name.is_empty() && name.chars().all(|c| c.is_ascii_lowercase() || "_0123456789".contains(c)))
            .then_some(())?;
        Some(format!("{name}={:#x}", number_of(value)?))
    };
    match given.iter().map(as_term).collect::<Option<Vec<String>>>() {
        Some(own) => terms.extend(own),
        None => {
            let names: Vec<&str> = given.into_iter().filter(|name| name.chars().all(plain)).collect();
            if !names.is_empty() && !names[0].eq_ignore_ascii_case("na") {
                extra.push(format!("filter={}", names.join("+")));
            }
            let value = code(object, "FILTER_VALUE")?;
            if value != 0 {
                terms.push(format!("config1={value:#x}"));
            }
        }
    }
    Ok(())
}

/// `0,1,2,3` → `0-3`, `Fixed counter 1` → `F1`, `FIXED` → `F`.
fn counters(text: &str) -> String {
    let lower = text.to_ascii_lowercase();
    if let Some(fixed) = lower.strip_prefix("fixed") {
        let number: String = fixed.chars().filter(char::is_ascii_digit).collect();
        return format!("F{number}");
    }
    let mut numbers: Vec<u32> = lower.split(',').filter_map(|word| word.trim().parse().ok()).collect();
    numbers.retain(|&number| number < 64);
    numbers.sort_unstable();
    numbers.dedup();
    let mut ranges: Vec<(u32, u32)> = Vec::new();
    for number in numbers {
        match ranges.last_mut() {
            Some((_, last)) if *last + 1 == number => *last = number,
            _ => ranges.push((number, number)),
        }
    }
    let range = |(first, last): (u32, u32)| match first == last {
        true => first.to_string(),
        false => format!("{first}-{last}"),
    };
    ranges.into_iter().map(range).collect::<Vec<_>>().join(",")
}

/// The flag letters used in the tables.
fn flags(object: &Object, experimental: bool) -> String {
    let mut flags = String::new();
    match number(object, "PEBS").max(number(object, "Precise")) {
        Some(1) => flags.push('p'),
        Some(2..) => flags.push('P'),
        _ => {}
    }
    if let Some(number @ 1..=3) = number(object, "CollectPEBSRecord") {
        flags.push_str(&number.to_string());
    }
    for (field, letter) in [
        ("Data_LA", 'a'),
        ("L1_Hit_Indication", 'h'),
        ("PRECISE_STORE", 'w'),
        ("TakenAlone", 't'),
        ("Speculative", 's'),
        ("Offcore", 'o'),
        ("Offmodule", 'm'),
        ("Deprecated", 'd'),
    ] {
        if is_set(object, field) {
            flags.push(letter);
        }
    }
    if experimental || is_set(object, "Experimental") {
        flags.push('x');
    }
    if word(object, "CounterType").eq_ignore_ascii_case("freerun") {
        flags.push('f');
    }
    flags
}

/// Converts a metric in perf's language; `None` if its name or formula is missing or does not fit into a
/// table.
pub(super) fn metric(object: &Object) -> Option<ImportedMetric> {
    let formula = |field: &str| {
        let text = line(object, field, usize::MAX);
        (text.len() <= LONGEST_FORMULA).then_some(text)
    };
    let groups = line(object, "MetricGroup", LONGEST_TEXT).replace(' ', "");
    let own = groups.split(';').filter(|group| !group.is_empty());
    let level = own.clone().find_map(|group| group.strip_prefix("TopdownL")?.parse().ok());
    let mut parents = own.clone().filter_map(|group| group.strip_suffix("_group"));
    let parent = parents.rfind(|name| name.starts_with("tma_") && !name.starts_with("tma_L"));
    let long = line(object, "PublicDescription", LONGEST_TEXT);
    let locate = long.split_once("Sample with: ").map_or("", |(_, rest)| rest);
    let locate = locate.split(". ").next().unwrap_or_default().trim_end_matches('.');
    Some(ImportedMetric {
        // The kernel's tree contains the name `power_self_refresh %`, which ends in a unit.
        name: word(object, "MetricName").trim_end_matches([' ', '%']).to_owned(),
        scale: line(object, "ScaleUnit", 100),
        level,
        parent: parent.unwrap_or_default().to_owned(),
        expr: formula("MetricExpr")?,
        threshold: formula("MetricThreshold")?,
        locate: locate.split([',', ' ']).filter(|name| !name.is_empty()).collect::<Vec<_>>().join(";"),
        text: text(object, &["BriefDescription", "PublicDescription"]),
        groups,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn read(value: Value) -> ImportedEvent {
        event(value.as_object().unwrap(), false).unwrap()
    }

    #[test]
    fn vendor_fields_become_event_terms() {
        let core = read(json!({
            "EventCode": "0xB7, 0xBB", "UMask": "0x01", "Counter": "0,1,2,3", "Offcore": "1", "MSRIndex": "0x1a6,0x1a7",
            "EventName": "OFFCORE_RESPONSE:request=DEMAND_DATA_RD:response=L3_MISS.ANY_SNOOP", "MSRValue": "0x3FBC000001",
            "SampleAfterValue": "100003", "BriefDescription": "Reads\tthat\u{1b}[31m miss.",
        }));
        assert_eq!(core.name, "OFFCORE_RESPONSE.DEMAND_DATA_RD.L3_MISS.ANY_SNOOP");
        assert_eq!(core.terms, "event=0xb7,umask=0x1,offcore_rsp=0x3fbc000001");
        assert_eq!(
            (core.counters.as_str(), core.flags.as_str(), core.extra.as_str()),
            ("0-3", "o", "event2=0xbb")
        );
        assert_eq!((core.period, core.text.as_str()), (Some(100_003), "Reads that [31m miss."));

        let fixed =
            read(json!({"EventName": "INST_RETIRED.ANY", "UMask": "0x1", "Counter": "Fixed counter 0"}));
        assert_eq!((fixed.terms.as_str(), fixed.counters.as_str()), ("event=0xc0", "F0"));
        assert_eq!(fixed.extra, "pseudo=0x100");

        let masked = read(json!({
            "EventName": "UOPS_RETIRED.TOTAL_CYCLES", "EventCode": "0xC2", "UMask": "0x2", "CounterMask": "16", "Invert": "1",
        }));
        assert_eq!(masked.terms, "event=0xc2,umask=0x2,cmask=16,inv=1");

        let wide = read(json!({
            "Unit": "CHA", "EventCode": "0x35", "UMask": "0x01", "UMaskExt": "0xC817FE", "EventName": "UNC_CHA_TOR_INSERTS.IA_MISS_DRD",
        }));
        assert_eq!((wide.pmu.as_str(), wide.terms.as_str()), ("uncore_cha", "event=0x35,umask=0xc817fe01"));

        let ports = read(json!({
            "Unit": "IIO", "EventCode": "0x83", "UMask": "0x04", "PortMask": "0x01", "FCMask": "0x07", "EventName": "A.B",
        }));
        assert_eq!(ports.terms, "event=0x83,umask=0x4,ch_mask=0x1,fc_mask=0x7");

        let latency = read(json!({
            "EventName": "MEM_TRANS_RETIRED.LOAD_LATENCY_GT_128", "EventCode": "0xCD", "UMask": "0x1", "MSRIndex": "0x3F6",
            "MSRValue": "0x80", "PEBS": "2", "Data_LA": "1", "TakenAlone": "1",
        }));
        assert_eq!(
            (latency.terms.as_str(), latency.flags.as_str()),
            ("event=0xcd,umask=0x1,ldlat=0x80", "Pat")
        );

        let filtered = read(json!({
            "Unit": "CHA", "EventName": "UNC_CHA_TOR_INSERTS.X", "EventCode": "0x35", "Filter": "config1=0x40233",
        }));
        assert_eq!(filtered.terms, "event=0x35,config1=0x40233");
        let amd = read(
            json!({"Unit": "UMCPMC", "EventName": "umc_cas_cmd.rd", "EventCode": "0x0a", "RdWrMask": "0x1"}),
        );
        assert_eq!((amd.pmu.as_str(), amd.terms.as_str()), ("amd_umc", "event=0xa,rdwrmask=0x1"));
    }

    #[test]
    fn event_with_invalid_code_is_skipped() {
        let with = |field: &str, value: Value| {
            let mut object =
                json!({"EventName": "A", "EventCode": "0x1", "UMask": "0x2", "MSRIndex": "0x1a6"});
            object[field] = value;
            event(object.as_object().unwrap(), false).map(|event| event.terms)
        };
        for (field, value) in [
            ("EventCode", json!("0xZZ")),
            ("EventCode", json!("0xFFFFFFFFFFFFFFFFFF")),
            ("EventCode", json!("0xB7, 0xZZ")),
            ("EventCode", json!([1])),
            ("UMask", json!("-1")),
            ("UMask", json!(-1)),
            ("UMask", json!({"x": 1})),
            ("UMaskExt", json!("0xFF00000000000000")),
            ("ExtSel", json!("yes")),
            ("CounterMask", json!("1e3")),
            ("MSRValue", json!("0xffffffffffffffffff")),
            ("AnyThread", json!("perhaps")),
        ] {
            assert_eq!(with(field, value.clone()), None, "{field}: {value}");
        }
        for none in [json!(""), json!("na"), json!("NULL"), json!("tbd"), json!(" NA "), json!(null)] {
            assert_eq!(with("UMask", none.clone()).as_deref(), Some("event=0x1"), "{none}");
        }
        assert_eq!(with("SampleAfterValue", json!("-1")).as_deref(), Some("event=0x1,umask=0x2"), "no code");
    }

    #[test]
    fn empty_words_are_not_numbers() {
        for word in ["", "na", "null", "tbd", "NULL", "0x", "-1", "1e3"] {
            let object = json!({"EventCode": word});
            assert_eq!(number(object.as_object().unwrap(), "EventCode"), None, "{word:?}");
        }
        assert_eq!(counters("Fixed"), "F");
        assert_eq!(counters("0,1,3, 2, 7"), "0-3,7");
        assert_eq!(counters("4294967296,x"), "");
    }

    #[test]
    fn metrics_have_a_tree_level() {
        let object = json!({
            "MetricName": "tma_dram_bound", "MetricExpr": "A / B", "ScaleUnit": "100%", "MetricThreshold": "tma_dram_bound > 0.1",
            "MetricGroup": "MemoryBound;TmaL3mem;TopdownL3;tma_L3_group;tma_memory_bound_group", "BriefDescription": "In short",
            "PublicDescription": "At length. Sample with: MEM_LOAD_RETIRED.L3_MISS, OTHER. Related metrics: none",
        });
        let metric = metric(object.as_object().unwrap()).unwrap();
        assert_eq!((metric.level, metric.parent.as_str()), (Some(3), "tma_memory_bound"));
        assert_eq!(
            (metric.locate.as_str(), metric.text.as_str()),
            ("MEM_LOAD_RETIRED.L3_MISS;OTHER", "In short")
        );
    }

    #[test]
    fn unit_is_not_part_of_the_name() {
        let object = json!({"MetricName": "power_self_refresh %", "MetricExpr": "A / B"});
        assert_eq!(super::metric(object.as_object().unwrap()).unwrap().name, "power_self_refresh");
    }
}
