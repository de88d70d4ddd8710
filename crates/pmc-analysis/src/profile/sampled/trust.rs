//! The data quality statement. `report`, `profile`, `top`, `annotate`, `diff`, the full-screen view and the
//! HTML page all show it with the same wording.
//!
//! Receives the counts of [`ProfileQuality`] and [`ModuleQuality`]. Decides which problems to mention, and
//! suggests remedies.

use std::borrow::Cow;
use std::fmt;

use super::code::is_generated_module;
use super::profile_quality::{ModuleQuality, ProfileQuality};
use pmc_sys::abi::attr::LARGEST_STACK_COPY;
use pmc_text::text::clean;
use pmc_text::units::{counted, duration, thousands};

/// Percentage of stacks or frames below which a problem does not change the reading of a profile.
const MIN_REPORTED_PERCENT: f64 = 1.0;
/// Percentage that is printed as 0.0.
const INVISIBLE: f64 = 0.05;
/// Maximum number of modules named in one remark.
const MAX_MODULES: usize = 3;
/// Maximum number of modules without symbols that get a remark of their own.
const MOST_NAMELESS: usize = 5;
/// Percentage of the event count that may be missing from the samples before a remark mentions it.
const MOST_UNSAMPLED: f64 = 5.0;
/// Percentage of samples below which an interpreter needs no remark.
const INTERPRETED: f64 = 5.0;

/// Which remarks a statement contains.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TrustDetail {
    /// Only problems that change the reading of the profile. All modules without symbols share one remark.
    Brief,
    /// Everything that is known, with a remark and a remedy for each module without symbols.
    Full,
}

/// The data quality statement: clean text without a trailing full stop.
///
/// A stack is *complete* if it reaches a root: a function in which a program, a thread or kernel work starts.
/// For copied stacks, the unwinder's reason for stopping is known. For call chains from the kernel, only the
/// module of the last frame is known. That module was usually built without frame pointers.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct TrustStatement {
    /// One line about samples, losses, complete stacks and names.
    pub summary: String,
    /// The remarks, most important first.
    pub remarks: Vec<TrustRemark>,
}

/// A remark, with a suggested remedy.
#[derive(Debug, Clone, PartialEq)]
pub struct TrustRemark {
    /// One sentence: clean text without a trailing full stop.
    pub text: String,
    /// Suggested remedy.
    pub remedy: Option<String>,
    /// Percentage of the samples, stacks or frames that the remark is about.
    percent: f64,
}

/// The text with the remedy.
impl fmt::Display for TrustRemark {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)?;
        self.remedy.iter().try_for_each(|remedy| write!(f, "; try: {remedy}"))
    }
}

impl TrustRemark {
    fn new(percent: f64, text: String, remedy: Option<String>) -> Self {
        Self { text, remedy, percent }
    }
}

/// Returns the number of lost samples or records, and their share of the total. The losses in a damaged file
/// are unknown.
pub fn losses(samples: u64, lost: u64, is_damaged: bool) -> String {
    match lost {
        0 if is_damaged => "the file is damaged".to_owned(),
        0 => "none lost".to_owned(),
        _ => format!("{} lost ({})", thousands(lost), percent(share(lost, lost.saturating_add(samples)))),
    }
}

/// Returns the share of complete stacks, rounded down, so that 100 means that all stacks are complete.
/// `decimals` is the number of digits after the decimal point.
pub fn complete_stacks(quality: &ProfileQuality, decimals: i32) -> f64 {
    let scale = 10f64.powi(decimals);
    (share(quality.rooted, quality.stacks) * scale).floor() / scale
}

/// Returns the statement about the quality of the data.
pub fn statement(quality: &ProfileQuality, modules: &[ModuleQuality], detail: TrustDetail) -> TrustStatement {
    let mut remarks: Vec<TrustRemark> = unsampled(quality).into_iter().collect();
    // Notes are about the whole file.
    remarks.extend(quality.notes.iter().map(|note| TrustRemark::new(100.0, clean(note).into_owned(), None)));
    remarks.extend(copied(quality).or_else(|| chains(quality)));
    let joined = share(quality.joined, quality.stacks);
    if joined >= INVISIBLE && detail == TrustDetail::Full {
        let with = "were completed using earlier samples of their threads";
        let text = format!(
            "{joined:.1}% of the stacks were truncated at the copy size, and {with} (--no-join disables this)"
        );
        remarks.push(TrustRemark::new(joined, text, None));
    }
    if are_many_cut_off(quality) {
        let cut_off = share(quality.cut_off, quality.stacks);
        let text = format!("{cut_off:.1}% of the stacks led to unmapped addresses and were truncated there");
        remarks.push(TrustRemark::new(cut_off, text, None));
    }
    let ends = share(quality.erlang_ends, quality.stacks);
    if ends >= MIN_REPORTED_PERCENT {
        let why = "Erlang processes have separate stacks, which are not copied";
        let text = format!("{ends:.1}% of the stacks end where Erlang calls C code: {why}");
        remarks.push(TrustRemark::new(ends, text, None));
    }
    for of in &quality.nameless_languages {
        let percent = share(of.samples, quality.samples);
        if percent >= INTERPRETED {
            let text = format!(
                "{} functions have no names: {percent:.1}% of the samples are in the interpreter",
                of.language
            );
            remarks.push(TrustRemark::new(percent, text, Some(of.remedy.to_owned())));
        }
    }
    nameless(quality, modules, detail, &mut remarks);
    remarks.sort_by(|a, b| b.percent.total_cmp(&a.percent));
    TrustStatement { summary: summary(quality), remarks }
}

fn share(part: u64, all: u64) -> f64 {
    part as f64 / all.max(1) as f64 * 100.0
}

/// Formats a percentage. A small one is not printed as 0.
fn percent(share: f64) -> String {
    if share > 0.0 && share < INVISIBLE { "<0.1%".to_owned() } else { format!("{share:.1}%") }
}

fn are_many_cut_off(quality: &ProfileQuality) -> bool {
    share(quality.cut_off, quality.stacks) >= MIN_REPORTED_PERCENT
}

fn summary(quality: &ProfileQuality) -> String {
    let lost = quality.lost_samples.max(quality.lost_records);
    let mut parts =
        vec![counted(quality.samples, "sample"), losses(quality.samples, lost, quality.is_damaged)];
    if quality.throttled > 0 {
        parts.push(format!("throttled {}", counted(quality.throttled, "time")));
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
        parts.push(format!("{:.1}% of stacks complete", complete_stacks(quality, 1)));
    }
    // If no callers were recorded, each sample has one frame.
    let frames = match (quality.stacks > 0, are_many_cut_off(quality)) {
        (false, _) => "samples",
        (true, false) => "frames",
        (true, true) => "mapped frames",
    };
    match (quality.frames, quality.unnamed) {
        (0, _) => {}
        (_, 0) => parts.push(format!("all {frames} named")),
        (all, unnamed) => parts.push(format!("{} of {frames} unnamed", percent(share(unnamed, all)))),
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
    Some(TrustRemark::new(percent, text, Some(remedy.to_owned())))
}

/// Adds remarks about modules without symbols.
fn nameless(
    quality: &ProfileQuality,
    modules: &[ModuleQuality],
    detail: TrustDetail,
    remarks: &mut Vec<TrustRemark>,
) {
    let smallest = if detail == TrustDetail::Full { INVISIBLE } else { MIN_REPORTED_PERCENT };
    let of_all = |module: &ModuleQuality| share(module.unnamed, quality.frames);
    let mut nameless: Vec<&ModuleQuality> =
        modules.iter().filter(|module| module.unnamed > 0 && of_all(module) >= smallest).collect();
    nameless.sort_by_key(|module| std::cmp::Reverse(module.unnamed));
    let why = |module: &ModuleQuality| match module.data.missing.first() {
        Some(why) => clean(&why.to_string()).into_owned(),
        None => "its symbol tables do not cover these addresses".to_owned(),
    };
    let remedy = |module: &ModuleQuality| module.remedy.as_deref().map(|text| clean(text).into_owned());
    match (detail, &nameless[..]) {
        (_, []) => {}
        (TrustDetail::Brief, [worst, ..]) => {
            let named = nameless
                .iter()
                .take(MAX_MODULES)
                .map(|module| format!("{:.1}% in {}", of_all(module), clean(&file_name(module))));
            let all: u64 = nameless.iter().map(|module| module.unnamed).sum();
            let rest: u64 = nameless.iter().skip(MAX_MODULES).map(|module| module.unnamed).sum();
            let rest = (rest > 0).then(|| format!("{:.1}% elsewhere", share(rest, quality.frames)));
            let words: Vec<String> = named.chain(rest).collect();
            // The percentages already name the file.
            let why = why(worst).replace(&*clean(&worst.path.to_string_lossy()), &clean(&file_name(worst)));
            let text = format!("unnamed frames: {}; {why}", words.join(", "));
            remarks.push(TrustRemark::new(share(all, quality.frames), text, remedy(worst)));
        }
        (TrustDetail::Full, _) => {
            for module in nameless.iter().take(MOST_NAMELESS) {
                let percent = of_all(module);
                let path = module.path.to_string_lossy();
                let text = format!("{}: {percent:.1}% of all frames unnamed; {}", clean(&path), why(module));
                remarks.push(TrustRemark::new(percent, text, remedy(module)));
            }
            if let Some(more) = nameless.len().checked_sub(MOST_NAMELESS).filter(|more| *more > 0) {
                let text = format!("{} with unnamed frames", counted(more as u64, "more module"));
                remarks.push(TrustRemark::new(0.0, text, None));
            }
        }
    }
}

fn file_name(module: &ModuleQuality) -> Cow<'_, str> {
    module.path.file_name().map_or_else(|| module.path.to_string_lossy(), |name| name.to_string_lossy())
}

fn copied(quality: &ProfileQuality) -> Option<TrustRemark> {
    let ends = &quality.ends;
    let of_all = |part: u64| share(part, ends.copied);
    // A recorder that falls behind copies only a few of the stacks.
    if share(ends.early(), quality.stacks) < MIN_REPORTED_PERCENT {
        return None;
    }
    let mut parts = Vec::new();
    let mut part = |samples: u64, words: &str| {
        if of_all(samples) >= INVISIBLE {
            parts.push((samples, format!("{:.1}% {words}", of_all(samples))));
        }
    };
    part(ends.cut, "at the end of the stack copy");
    for (module, samples) in ends.lost_in.iter().take(MAX_MODULES) {
        match module {
            Some(name) => part(*samples, &format!("in {}, whose unwind tables yield no caller", clean(name))),
            None => part(*samples, "where the unwind tables led to unmapped addresses"),
        }
    }
    let lost_in_named: u64 = ends.lost_in.iter().take(MAX_MODULES).map(|(_, samples)| samples).sum();
    part(ends.lost.saturating_sub(lost_in_named), "where the unwind tables yield no caller");
    part(ends.long, "because they are deeper than --max-stack");
    part(ends.compat, "in 32-bit Arm processes, whose stacks pmc does not unwind");
    for (module, samples) in ends.no_tables.iter().take(MAX_MODULES) {
        match module {
            Some(name) => {
                part(*samples, &format!("in {}, which has no unwind tables for this code", clean(name)))
            }
            None => part(*samples, "at unmapped addresses"),
        }
    }
    let rest: u64 = ends.no_tables.iter().skip(MAX_MODULES).map(|(_, samples)| samples).sum();
    part(rest, "in other code without unwind tables");
    parts.sort_by_key(|(samples, _)| std::cmp::Reverse(*samples));
    let words: Vec<String> = parts.into_iter().map(|(_, words)| words).collect();
    let text = format!("{:.1}% of the copied stacks end early: {}", of_all(ends.early()), words.join(", "));
    let compiled = ends.no_tables.iter().filter(|(module, _)| {
        module.as_deref().is_some_and(|module| !is_generated_module(module) && module != "[vdso]")
    });
    let without_tables: u64 = compiled.map(|(_, samples)| samples).sum();
    let remedy = match of_all(ends.cut) >= MIN_REPORTED_PERCENT && ends.cut >= without_tables {
        true => larger_copies("dwarf", quality),
        // Generated code may be the reason for most of them.
        false => {
            (of_all(without_tables) >= MIN_REPORTED_PERCENT && without_tables * 2 > ends.early()).then(|| {
                "build that code with -fno-omit-frame-pointer, or with -fasynchronous-unwind-tables"
                    .to_owned()
            })
        }
    };
    Some(TrustRemark::new(of_all(ends.early()), text, remedy))
}

fn chains(quality: &ProfileQuality) -> Option<TrustRemark> {
    let broken: u64 = quality.broken.iter().map(|(_, samples)| samples).sum();
    if quality.is_imported || share(broken, quality.stacks) < MIN_REPORTED_PERCENT {
        return None;
    }
    let of_all = |part: u64| share(part, quality.stacks);
    let named = quality.broken.iter().take(MAX_MODULES).filter(|(_, samples)| of_all(*samples) >= INVISIBLE);
    let mut words: Vec<String> =
        named.map(|(name, samples)| format!("{:.1}% in {}", of_all(*samples), clean(name))).collect();
    let rest: u64 = quality.broken.iter().skip(MAX_MODULES).map(|(_, samples)| samples).sum();
    if of_all(rest) >= INVISIBLE {
        words.push(format!("{:.1}% elsewhere", of_all(rest)));
    }
    let mut text = format!("{:.1}% of the stacks end early: {}", of_all(broken), words.join(", "));
    let is_cut = quality.cut_live.is_none_or(|percent| percent >= MIN_REPORTED_PERCENT);
    match (quality.unwound_live, quality.cut_live) {
        (Some(_), Some(percent)) if is_cut => {
            text.push_str(&format!("; {percent:.1}% at the end of the stack copy"));
        }
        (Some(_), Some(_)) if end_in_generated_code(quality) => {
            text.push_str("; generated code has no unwind tables");
        }
        (Some(_), Some(_)) => text.push_str("; the unwind tables there are missing or wrong"),
        _ => {}
    }
    let remedy = match quality.unwound_live {
        Some(how) if is_cut => larger_copies(how, quality),
        Some(_) => None,
        None if end_in_generated_code(quality) => Some("record --call-graph auto".to_owned()),
        None => Some("record --call-graph auto, or build that code with -fno-omit-frame-pointer".to_owned()),
    };
    Some(TrustRemark::new(of_all(broken), text, remedy))
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
    use crate::profile::sampled::StringId;
    use crate::profile::sampled::interpreters::NamelessLanguage;
    use crate::profile::sampled::profile_quality::{UnsampledEvent, UnwindEnds};

    fn texts(quality: &ProfileQuality) -> Vec<String> {
        statement(quality, &[], TrustDetail::Full).remarks.into_iter().map(|remark| remark.text).collect()
    }

    #[test]
    fn stack_copies_report_why_they_end() {
        let no_tables = vec![(Some("jit\x1b.so".to_owned()), 30), (None, 5)];
        let ends = UnwindEnds { copied: 1000, cut: 100, long: 2, no_tables, ..UnwindEnds::default() };
        let said =
            statement(&ProfileQuality { ends, ..ProfileQuality::default() }, &[], TrustDetail::Full).remarks;
        let (text, remedy) = (&said[0].text, said[0].remedy.as_deref().unwrap_or_default());
        let want = "13.7% of the copied stacks end early: 10.0% at the end of the stack copy, ";
        assert!(text.starts_with(want) && text.contains("3.0% in jit") && !text.contains('\x1b'), "{text}");
        assert!(remedy.contains("dwarf,65528"), "{remedy}");
        let few = UnwindEnds { copied: 1000, cut: 5, ..UnwindEnds::default() };
        assert!(texts(&ProfileQuality { stacks: 1000, ends: few, ..ProfileQuality::default() }).is_empty());
    }

    #[test]
    fn few_copies_of_a_recorder_that_fell_behind_do_not_matter() {
        let no_tables = vec![(Some("ld.so".to_owned()), 1)];
        let ends = UnwindEnds { copied: 7, no_tables, ..UnwindEnds::default() };
        let of =
            |broken| ProfileQuality { stacks: 2000, ends: ends.clone(), broken, ..ProfileQuality::default() };
        assert_eq!(texts(&of(Vec::new())), Vec::<String>::new());
        // Nor do they hide that other stacks end early.
        let said = texts(&of(vec![("blas.so".to_owned(), 200)]));
        assert!(said[0].starts_with("10.0% of the stacks end early: 10.0% in blas.so"), "{said:?}");
    }

    #[test]
    fn remedy_fits_the_reason_why_copies_end() {
        let said = |ends: UnwindEnds| {
            let quality = ProfileQuality { ends, ..ProfileQuality::default() };
            statement(&quality, &[], TrustDetail::Full).remarks.remove(0)
        };
        let lost_in = vec![(Some("blas.so".to_owned()), 90), (None, 5)];
        let wrong = said(UnwindEnds { copied: 1000, lost: 95, lost_in, ..UnwindEnds::default() });
        let want = "9.5% of the copied stacks end early: 9.0% in blas.so, whose unwind tables yield no caller, \
                    0.5% where the unwind tables led to unmapped addresses";
        assert_eq!((wrong.text.as_str(), wrong.remedy), (want, None));
        let without = |module: &str, cut| {
            let no_tables = vec![(Some(module.to_owned()), 50)];
            said(UnwindEnds { copied: 1000, cut, no_tables, ..UnwindEnds::default() }).remedy
        };
        let has = |remedy: Option<String>, word: &str| remedy.is_some_and(|remedy| remedy.contains(word));
        assert!(has(without("prog", 5), "-fno-omit-frame-pointer"));
        assert!(has(without("prog", 60), "dwarf,65528"));
        assert_eq!(without("[JIT] tid 7", 5), None);
        let no_tables = vec![(Some("[JIT] tid 7".to_owned()), 24), (Some("ld.so".to_owned()), 1)];
        assert_eq!(said(UnwindEnds { copied: 25, no_tables, ..UnwindEnds::default() }).remedy, None);
        // Stacks unwound while recording, of which this percentage ended at the end of the copy.
        let live = |module: &str, cut_live| {
            let broken = vec![(module.to_owned(), 20)];
            let unwound_live = Some("auto");
            let quality =
                ProfileQuality { stacks: 200, broken, unwound_live, cut_live, ..ProfileQuality::default() };
            statement(&quality, &[], TrustDetail::Full).remarks.remove(0).to_string()
        };
        let starts = "10.0% of the stacks end early: 10.0% in blas.so";
        assert_eq!(
            live("blas.so", Some(0.0)),
            format!("{starts}; the unwind tables there are missing or wrong")
        );
        assert!(
            live("blas.so", Some(8.0)).starts_with(&format!("{starts}; 8.0% at the end of the stack copy"))
        );
        assert!(
            live("blas.so", Some(8.0)).contains("auto,65528") && live("blas.so", None).contains("auto,65528")
        );
        assert!(live("[JIT] tid 7", Some(0.0)).ends_with("generated code has no unwind tables"));
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
        let said = statement(
            &ProfileQuality { stacks: 200, broken, ..ProfileQuality::default() },
            &[],
            TrustDetail::Full,
        )
        .remarks;
        assert_eq!(
            said[0].text,
            "20.0% of the stacks end early: 5.0% in a, 5.0% in b, 5.0% in c, 5.0% elsewhere"
        );
        assert!(said[0].remedy.as_ref().is_some_and(|remedy| remedy.contains("--call-graph auto")));
    }

    #[test]
    fn ends_of_imported_stacks_are_not_judged() {
        let broken = vec![("unknown".to_owned(), 200)];
        let quality = ProfileQuality { stacks: 200, broken, is_imported: true, ..ProfileQuality::default() };
        let statement = statement(&quality, &[], TrustDetail::Full);
        assert!(statement.remarks.is_empty() && !statement.summary.contains("complete"), "{statement:?}");
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
            statement(&quality, &[], TrustDetail::Full).remarks.remove(0).remedy.unwrap_or_default()
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
            statement(&quality, &[], TrustDetail::Full).remarks
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
        let said = |quality: ProfileQuality| statement(&quality, &[], TrustDetail::Full).summary;
        let some = ProfileQuality { samples: 200, frames: 200, ..ProfileQuality::default() };
        assert_eq!(said(ProfileQuality::default()), "0 samples, none lost");
        assert_eq!(said(some.clone()), "200 samples, none lost, all samples named");
        // The statement makes no claims about stacks that were not read.
        let flat = ProfileQuality { chains_unread: true, ..some.clone() };
        assert_eq!(said(flat), "200 samples, none lost, all samples named, call chains were not read");
        let cut = ProfileQuality { stacks: 200, rooted: 100, frames: 900, cut_off: 80, ..some };
        assert_eq!(said(cut), "200 samples, none lost, 50.0% of stacks complete, all mapped frames named");
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

    fn module(path: &str, unnamed: u64, remedy: Option<&str>) -> ModuleQuality {
        ModuleQuality {
            path: std::path::Path::new(path).into(),
            name: StringId(0),
            build_id: None,
            data: Default::default(),
            frames: unnamed,
            unnamed,
            remedy: remedy.map(Into::into),
        }
    }

    #[test]
    fn modules_without_symbols_share_a_remark_and_a_remedy() {
        let modules = [
            module("/bin/small", 4, None),
            module("/bin/cc1", 170, Some("apt install cc1-dbgsym")),
            module("/bin/ld", 80, Some("apt install ld-dbgsym")),
        ];
        let quality = ProfileQuality { frames: 1000, unnamed: 254, ..ProfileQuality::default() };
        let brief = statement(&quality, &modules, TrustDetail::Brief).remarks;
        let [remark] = &brief[..] else { panic!("{brief:?}") };
        assert!(remark.text.starts_with("unnamed frames: 17.0% in cc1, 8.0% in ld; "), "{}", remark.text);
        assert_eq!(remark.remedy.as_deref(), Some("apt install cc1-dbgsym"));
        let full = statement(&quality, &modules, TrustDetail::Full).remarks;
        let begins = ["/bin/cc1: 17.0%", "/bin/ld: 8.0%", "/bin/small: 0.4%"];
        assert!(full.len() == 3 && full.iter().zip(begins).all(|(one, begin)| one.text.starts_with(begin)));
    }

    #[test]
    fn no_share_is_printed_as_zero() {
        let ends = UnwindEnds {
            copied: 100_000,
            cut: 2000,
            long: 3,
            no_tables: vec![(Some("a.so".to_owned()), 4)],
            ..UnwindEnds::default()
        };
        let quality = ProfileQuality {
            samples: 100_000,
            lost_samples: 1,
            stacks: 100_000,
            rooted: 99_999,
            joined: 7,
            frames: 100_000,
            unnamed: 9,
            ends,
            ..ProfileQuality::default()
        };
        let broken = vec![("a".to_owned(), 2000), ("b".to_owned(), 4)];
        let of_kernel = ProfileQuality { ends: UnwindEnds::default(), broken, ..quality.clone() };
        for quality in [quality, of_kernel] {
            for detail in [TrustDetail::Brief, TrustDetail::Full] {
                let said = statement(&quality, &[module("/b.so", 9, None)], detail);
                assert!(said.remarks.len() == 1 && !format!("{said:?}").contains(" 0.0%"), "{said:?}");
                assert_eq!(
                    said.summary,
                    "100,000 samples, 1 lost (<0.1%), 99.9% of stacks complete, <0.1% of frames unnamed"
                );
            }
        }
    }

    #[test]
    fn most_important_remark_comes_first() {
        let nameless_languages = vec![NamelessLanguage { language: "Python", samples: 150, remedy: "3.12" }];
        let broken = vec![("a".to_owned(), 20)];
        let notes = vec!["damaged".to_owned()];
        let quality = ProfileQuality {
            samples: 200,
            stacks: 200,
            nameless_languages,
            broken,
            notes,
            joined: 50,
            ..ProfileQuality::default()
        };
        let said = statement(&quality, &[], TrustDetail::Brief).remarks;
        let begins = ["damaged", "Python", "10.0% of the stacks end early"];
        assert!(said.len() == 3, "{said:?}");
        assert!(said.iter().zip(begins).all(|(one, begin)| one.text.starts_with(begin)), "{said:?}");
    }
}
