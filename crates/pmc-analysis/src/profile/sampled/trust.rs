//! The data quality statement. `report`, `profile`, `top`, `annotate`, `diff`, the full-screen view and the
//! HTML page all show it with the same wording.
//!
//! Receives the counts of [`ProfileQuality`] and [`ModuleQuality`]. Decides which problems to mention, and
//! suggests remedies. For copied stacks, the unwinder's reason for stopping is known. For call chains from
//! the kernel, only the module of the last frame is known. That module was usually built without frame
//! pointers.

use super::code::is_generated_module;
use super::profile_quality::{ModuleQuality, ProfileQuality};
use pmc_sys::abi::attr::LARGEST_STACK_COPY;
use pmc_sys::text::clean;
use pmc_sys::units::{duration, thousands};

/// Percentage of broken stacks below which no remark explains them.
const WORTH: f64 = 1.0;
/// Maximum number of modules named in a remark about stacks.
const MOST: usize = 3;
/// Maximum number of modules without symbols that get a remark.
const MOST_NAMELESS: usize = 5;
/// Percentage of the event count that may be missing from the samples before a remark mentions it.
const MOST_UNSAMPLED: f64 = 5.0;
/// Percentage of samples below which an interpreter needs no remark.
const INTERPRETED: f64 = 5.0;

/// The data quality statement: clean text without a trailing full stop.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TrustStatement {
    /// One line about samples, losses, complete stacks and names.
    pub summary: String,
    /// The remarks, most important first.
    pub remarks: Vec<TrustRemark>,
}

/// A remark, with a suggested remedy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TrustRemark {
    /// One sentence: clean text without a trailing full stop.
    pub text: String,
    /// Suggested remedy.
    pub remedy: Option<String>,
}

impl TrustRemark {
    fn new(text: String, remedy: Option<String>) -> Self {
        Self { text, remedy }
    }
}

/// Returns the number of lost samples or records, and their share of the total. The losses in a damaged file
/// are unknown.
pub fn losses(samples: u64, lost: u64, is_damaged: bool) -> String {
    match lost {
        0 if is_damaged => "the file is damaged".to_owned(),
        0 => "none lost".to_owned(),
        _ => format!("{} lost ({:.1}%)", thousands(lost), share(lost, lost.saturating_add(samples))),
    }
}

/// Returns the statement about the quality of the data.
pub fn statement(quality: &ProfileQuality, modules: &[ModuleQuality]) -> TrustStatement {
    let mut remarks: Vec<TrustRemark> = unsampled(quality).into_iter().collect();
    if quality.ends.copied > 0 {
        remarks.extend(copied(quality));
    } else {
        remarks.extend(chains(quality));
    }
    if quality.joined > 0 {
        let joined = share(quality.joined, quality.stacks);
        let with = "were completed using earlier samples of their threads";
        let text = format!(
            "{joined:.1}% of the stacks were truncated at the copy size, and {with} (--no-join disables this)"
        );
        remarks.push(TrustRemark::new(text, None));
    }
    if are_many_cut_off(quality) {
        let cut_off = share(quality.cut_off, quality.stacks);
        let text = format!("{cut_off:.1}% of the stacks led to unmapped addresses and were truncated there");
        remarks.push(TrustRemark::new(text, None));
    }
    if share(quality.erlang_ends, quality.stacks) >= WORTH {
        let ends = share(quality.erlang_ends, quality.stacks);
        let why = "Erlang processes have separate stacks, which are not copied";
        remarks.push(TrustRemark::new(
            format!("{ends:.1}% of the stacks end where Erlang calls C code: {why}"),
            None,
        ));
    }
    for of in &quality.nameless_languages {
        let percent = share(of.samples, quality.samples);
        if percent >= INTERPRETED {
            let text = format!(
                "{} functions have no names: {percent:.1}% of the samples are in the interpreter",
                of.language
            );
            remarks.push(TrustRemark::new(text, Some(of.remedy.to_owned())));
        }
    }
    remarks.extend(quality.notes.iter().map(|note| TrustRemark::new(clean(note).into_owned(), None)));
    nameless(quality, modules, &mut remarks);
    TrustStatement { summary: summary(quality), remarks }
}

fn share(part: u64, all: u64) -> f64 {
    part as f64 / all.max(1) as f64 * 100.0
}

fn are_many_cut_off(quality: &ProfileQuality) -> bool {
    share(quality.cut_off, quality.stacks) >= WORTH
}

fn summary(quality: &ProfileQuality) -> String {
    let lost = quality.lost_samples.max(quality.lost_records);
    let mut parts = vec![
        format!("{} samples", thousands(quality.samples)),
        losses(quality.samples, lost, quality.is_damaged),
    ];
    if quality.throttled > 0 {
        parts.push(format!("throttled {} times", thousands(quality.throttled)));
    }
    if quality.yielded_ns > 0 {
        let off = duration(quality.yielded_ns as f64);
        parts.push(format!(
            "hardware events were off for {off}, while another program had reserved the counters"
        ));
    }
    if quality.unknown > 0 {
        parts.push(format!("{} of unknown events", thousands(quality.unknown)));
    }
    if quality.stacks > 0 && !quality.is_imported {
        parts.push(format!("{:.1}% of the stacks reach a root", share(quality.rooted, quality.stacks)));
    }
    // If no callers were recorded, each sample has one frame.
    let frames = match (quality.stacks > 0, are_many_cut_off(quality)) {
        (false, _) => "samples",
        (true, false) => "frames",
        (true, true) => "mapped frames",
    };
    match (quality.frames, quality.unnamed) {
        (0, _) => {}
        (_, 0) => parts.push(format!("all {frames} have symbols")),
        (all, unnamed) => parts.push(format!("{:.1}% of the {frames} have no symbol", share(unnamed, all))),
    }
    if quality.chains_unread && quality.samples > 0 {
        parts.push("call chains were not read".to_owned());
    }
    parts.join(", ")
}

fn unsampled(quality: &ProfileQuality) -> Option<TrustRemark> {
    let of = quality.unsampled?;
    let missing = of.counted.saturating_sub(of.sampled);
    let each = of.sampled / quality.samples.max(1);
    // A process usually ends before its next sample, so a small difference is normal.
    if share(missing, of.counted) < MOST_UNSAMPLED || missing < each.saturating_mul(10) {
        return None;
    }
    let percent = share(missing, of.counted);
    let text = match of.is_time {
        // Clocks also skip ticks while interrupts are off or a virtual machine waits for its CPU.
        true => {
            let [missing, all] = [missing, of.counted].map(|ns| duration(ns as f64));
            let why = "short-lived processes without samples, or late clock ticks";
            format!("samples miss {percent:.1}% of the command's CPU time ({missing} of {all}): {why}")
        }
        false => {
            format!(
                "samples miss {percent:.1}% of the command's cycles: some processes were too short-lived to be sampled"
            )
        }
    };
    let remedy = "use a higher rate (-F), or pmc stat --children";
    Some(TrustRemark::new(text, Some(remedy.to_owned())))
}

fn nameless(quality: &ProfileQuality, modules: &[ModuleQuality], remarks: &mut Vec<TrustRemark>) {
    let mut nameless: Vec<&ModuleQuality> = modules.iter().filter(|module| module.unnamed > 0).collect();
    nameless.sort_by_key(|module| std::cmp::Reverse(module.unnamed));
    for module in nameless.iter().take(MOST_NAMELESS) {
        let why = module.data.missing.first();
        let why = why
            .map_or_else(|| "its symbol tables do not cover these addresses".to_owned(), ToString::to_string);
        let percent = share(module.unnamed, quality.frames);
        let path = module.path.to_string_lossy();
        let (path, why) = (clean(&path), clean(&why));
        let text = format!("{path}: {percent:.1}% of all frames have no symbol; {why}");
        remarks
            .push(TrustRemark::new(text, module.remedy.as_deref().map(|remedy| clean(remedy).into_owned())));
    }
    if let Some(more) = nameless.len().checked_sub(MOST_NAMELESS).filter(|more| *more > 0) {
        remarks.push(TrustRemark::new(format!("… and {more} more modules"), None));
    }
}

fn copied(quality: &ProfileQuality) -> Option<TrustRemark> {
    let ends = &quality.ends;
    let of_all = |part: u64| share(part, ends.copied);
    if of_all(ends.early()) < WORTH {
        return None;
    }
    let mut parts = Vec::new();
    let mut part = |samples: u64, words: &str| {
        if samples > 0 {
            parts.push((samples, format!("{:.1}% {words}", of_all(samples))));
        }
    };
    part(ends.cut, "at the end of the stack copy");
    part(ends.lost, "where the unwind tables yield no caller");
    part(ends.long, "because they are deeper than --max-stack");
    part(ends.compat, "in 32-bit Arm processes, whose stacks pmc does not unwind");
    for (module, samples) in ends.no_tables.iter().take(MOST) {
        match module {
            Some(name) => {
                part(*samples, &format!("in {}, which has no unwind tables for this code", clean(name)))
            }
            None => part(*samples, "at unmapped addresses"),
        }
    }
    let rest: u64 = ends.no_tables.iter().skip(MOST).map(|(_, samples)| samples).sum();
    part(rest, "in other code without unwind tables");
    parts.sort_by_key(|(samples, _)| std::cmp::Reverse(*samples));
    let words: Vec<String> = parts.into_iter().map(|(_, words)| words).collect();
    let text = format!("{:.1}% of the copied stacks end early: {}", of_all(ends.early()), words.join(", "));
    let remedy = if of_all(ends.cut) >= WORTH { larger_copies("dwarf", quality) } else { None };
    Some(TrustRemark::new(text, remedy))
}

fn chains(quality: &ProfileQuality) -> Option<TrustRemark> {
    let broken: u64 = quality.broken.iter().map(|(_, samples)| samples).sum();
    if quality.is_imported || share(broken, quality.stacks) < WORTH {
        return None;
    }
    let named = quality.broken.iter().take(MOST);
    let mut words: Vec<String> = named
        .map(|(name, samples)| format!("{:.1}% in {}", share(*samples, quality.stacks), clean(name)))
        .collect();
    let rest: u64 = quality.broken.iter().skip(MOST).map(|(_, samples)| samples).sum();
    if rest > 0 {
        words.push(format!("{:.1}% elsewhere", share(rest, quality.stacks)));
    }
    let text = format!("{:.1}% end early: {}", share(broken, quality.stacks), words.join(", "));
    let remedy = match quality.unwound_live {
        Some(how) => larger_copies(how, quality),
        None if end_in_generated_code(quality) => Some("record --call-graph auto".to_owned()),
        None => Some("record --call-graph auto, or build that code with -fno-omit-frame-pointer".to_owned()),
    };
    Some(TrustRemark::new(text, remedy))
}

/// Returns a remedy for stack copies that are too small. If the copies already have the maximum size and the
/// code is generated, there is no remedy, because no compiler flag helps.
fn larger_copies(how: &str, quality: &ProfileQuality) -> Option<String> {
    match quality.largest_copies {
        true if end_in_generated_code(quality) => None,
        true => Some(
            "build that code with -fno-omit-frame-pointer, since stack copies cannot be larger".to_owned(),
        ),
        false => Some(format!("copy more of each stack (--call-graph {how},{LARGEST_STACK_COPY})")),
    }
}

/// Whether most stacks that do not reach a root end in generated code.
fn end_in_generated_code(quality: &ProfileQuality) -> bool {
    let samples = |of: &dyn Fn(&str) -> bool| -> u64 {
        quality.broken.iter().filter(|(module, _)| of(module)).map(|(_, samples)| samples).sum()
    };
    samples(&is_generated_module) * 2 > samples(&|_| true)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profile::sampled::interpreters::NamelessLanguage;
    use crate::profile::sampled::profile_quality::{UnsampledEvent, UnwindEnds};

    fn texts(quality: &ProfileQuality) -> Vec<String> {
        statement(quality, &[]).remarks.into_iter().map(|remark| remark.text).collect()
    }

    #[test]
    fn stack_copies_report_why_they_end() {
        let no_tables = vec![(Some("jit\x1b.so".to_owned()), 30), (None, 5)];
        let ends = UnwindEnds { copied: 1000, cut: 100, lost: 0, long: 2, compat: 0, no_tables };
        let said = statement(&ProfileQuality { ends, ..ProfileQuality::default() }, &[]).remarks;
        let (text, remedy) = (&said[0].text, said[0].remedy.as_deref().unwrap_or_default());
        let want = "13.7% of the copied stacks end early: 10.0% at the end of the stack copy, ";
        assert!(text.starts_with(want) && text.contains("3.0% in jit") && !text.contains('\x1b'), "{text}");
        assert!(remedy.contains("dwarf,65528"), "{remedy}");
        let few = UnwindEnds { copied: 1000, cut: 5, ..UnwindEnds::default() };
        assert!(texts(&ProfileQuality { ends: few, ..ProfileQuality::default() }).is_empty());
    }

    #[test]
    fn truncated_stacks_are_counted() {
        let said = |cut_off| texts(&ProfileQuality { stacks: 200, cut_off, ..ProfileQuality::default() });
        assert_eq!(said(50), ["25.0% of the stacks led to unmapped addresses and were truncated there"]);
        assert!(said(1).is_empty());
    }

    #[test]
    fn joined_stacks_are_counted() {
        let said = |joined| texts(&ProfileQuality { stacks: 200, joined, ..ProfileQuality::default() });
        assert!(said(50)[0].starts_with(
            "25.0% of the stacks were truncated at the copy size, and \
                                         were completed"
        ));
        assert!(said(0).is_empty());
    }

    #[test]
    fn broken_chains_report_the_module() {
        let broken = ["a", "b", "c", "d"].map(|name| (name.to_owned(), 10)).into();
        let said =
            statement(&ProfileQuality { stacks: 200, broken, ..ProfileQuality::default() }, &[]).remarks;
        assert_eq!(said[0].text, "20.0% end early: 5.0% in a, 5.0% in b, 5.0% in c, 5.0% elsewhere");
        assert!(said[0].remedy.as_ref().is_some_and(|remedy| remedy.contains("--call-graph auto")));
    }

    #[test]
    fn ends_of_imported_stacks_are_not_judged() {
        let broken = vec![("unknown".to_owned(), 200)];
        let quality = ProfileQuality { stacks: 200, broken, is_imported: true, ..ProfileQuality::default() };
        let statement = statement(&quality, &[]);
        assert!(statement.remarks.is_empty() && !statement.summary.contains("root"), "{statement:?}");
    }

    #[test]
    fn frame_pointers_are_suggested_for_the_users_own_code() {
        let remedy = |module: &str, unwound_live, largest_copies| {
            let broken = vec![(module.to_owned(), 100), ("libc.so.6".to_owned(), 10)];
            let quality = ProfileQuality {
                stacks: 200,
                broken,
                unwound_live,
                largest_copies,
                ..ProfileQuality::default()
            };
            statement(&quality, &[]).remarks.remove(0).remedy.unwrap_or_default()
        };
        for (unwound_live, largest) in [(None, false), (Some("auto"), true)] {
            assert!(remedy("prog", unwound_live, largest).contains("-fno-omit-frame-pointer"));
            for module in ["[JIT] tid 7", "[anon:v8]", "jitted-7-1.so"] {
                let remedy = remedy(module, unwound_live, largest);
                assert!(!remedy.contains("-fno-omit-frame-pointer"), "{module}: {remedy}");
            }
        }
        assert_eq!(remedy("[JIT] tid 7", None, false), "record --call-graph auto");
        assert!(remedy("[JIT] tid 7", Some("auto"), false).contains("auto,65528"));
    }

    #[test]
    fn languages_without_names_get_a_note() {
        let of = |samples| {
            let python = NamelessLanguage { language: "Python", samples, remedy: "Python 3.12" };
            let nameless_languages = vec![python];
            let quality = ProfileQuality { samples: 200, nameless_languages, ..ProfileQuality::default() };
            statement(&quality, &[]).remarks
        };
        let [remark] = &of(150)[..] else { panic!("one remark") };
        assert_eq!(
            remark.text,
            "Python functions have no names: 75.0% of the samples are in the interpreter"
        );
        assert_eq!(remark.remedy.as_deref(), Some("Python 3.12"));
        assert!(of(5).is_empty(), "too few to care");
    }

    #[test]
    fn erlang_chain_ends_are_explained() {
        let said =
            |erlang_ends| texts(&ProfileQuality { stacks: 200, erlang_ends, ..ProfileQuality::default() });
        assert!(said(80)[0].starts_with("40.0% of the stacks end where Erlang calls C code: "));
        assert!(said(1).is_empty());
    }

    #[test]
    fn name_coverage_is_reported_only_if_names_exist() {
        let said = |quality: ProfileQuality| statement(&quality, &[]).summary;
        let some = ProfileQuality { samples: 200, frames: 200, ..ProfileQuality::default() };
        assert_eq!(said(ProfileQuality::default()), "0 samples, none lost");
        assert_eq!(said(some.clone()), "200 samples, none lost, all samples have symbols");
        // The statement makes no claims about stacks that were not read.
        let flat = ProfileQuality { chains_unread: true, ..some.clone() };
        assert_eq!(said(flat), "200 samples, none lost, all samples have symbols, call chains were not read");
        let cut = ProfileQuality { stacks: 200, rooted: 100, frames: 900, cut_off: 80, ..some };
        assert_eq!(
            said(cut),
            "200 samples, none lost, 50.0% of the stacks reach a root, all mapped frames have symbols"
        );
    }

    #[test]
    fn unsampled_time_is_reported_if_significant() {
        let said = |counted, sampled| {
            let unsampled = Some(UnsampledEvent { counted, sampled, is_time: true });
            texts(&ProfileQuality { samples: 100, unsampled, ..ProfileQuality::default() })
        };
        assert!(
            said(270_000_000, 73_000_000)[0]
                .starts_with("samples miss 73.0% of the command's CPU time (197 ms of 270 ms)")
        );
        assert!(said(103_000_000, 100_000_000).is_empty() && said(100, 200).is_empty());
        // A difference of a few periods is normal, because the process ends before its next sample.
        assert!(said(109_000_000, 100_000_000).is_empty());
    }
}
