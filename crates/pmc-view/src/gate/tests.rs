//! The formats of a gate's answer, with hostile names.

use super::*;
use pmc_analysis::profile::gate::{GateCondition, GateLocation, GateSubject, MeanChange, RunFailures, judge};

/// A name that tries to break out of every format.
const HOSTILE: &str = "f\r\n::error::x%0A|<b>&\"'`@me`*_[a](b)\u{1b}[31m\u{ffff}";

fn verdict(percent: f64, error: f64) -> ComparisonVerdict {
    let subject = GateSubject {
        name: HOSTILE.to_owned(),
        selectors: vec!["cpu-clock".to_owned()],
        side: 1,
        is_cost: true,
        is_optional: false,
        headline: None,
        share: Some(0.25),
        location: Some(GateLocation { file: "/work/repo/src/a,b:c.rs".to_owned(), line: 7 }),
        change: Ok(MeanChange { percent, error, df: 18.0 }),
        p: 1.0,
    };
    let condition: GateCondition = "worse > 3% and p < 0.01".parse().unwrap();
    let subjects = [subject.clone(), GateSubject { share: Some(0.5), ..subject }];
    let report = judge(&condition, &subjects, Vec::new());
    let names = ["A", "B"].map(str::to_owned);
    ComparisonVerdict::new(&names, &[], &subjects, Some(report))
}

fn gate_of(verdict: &ComparisonVerdict) -> &GateReport {
    verdict.gate.as_ref().unwrap()
}

fn written(write: impl Fn(&mut dyn Write) -> io::Result<()>) -> String {
    let mut out = Vec::new();
    write(&mut out).unwrap();
    String::from_utf8(out).unwrap()
}

#[test]
fn annotations_escape_names_and_files() {
    let regression = verdict(5.0, 0.5);
    let of = |workspace: &str| written(|out| annotations(out, &regression, gate_of(&regression), workspace));
    let lines = of("/work/repo/");
    assert_eq!(lines.lines().count(), 2, "{lines}");
    for line in lines.lines() {
        assert!(
            line.starts_with("::error file=src/a%2Cb%3Ac.rs,line=7,title=pmc%3A regression::f?"),
            "{line}"
        );
        assert!(
            line.contains("::error::x%250A|<b>") && line.contains("+5.0% ±1.1".replace('%', "%25").as_str())
        );
        assert!(!line.contains(['\u{1b}', '\r']), "{line}");
    }
    // A file outside the repository has no line to annotate.
    for outside in ["/work/rep", "/other", ""] {
        assert!(of(outside).starts_with("::error title="), "{outside}: {}", of(outside));
    }
    let unusable = verdict(0.0, 9.0);
    let text = written(|out| annotations(out, &unusable, gate_of(&unusable), "/work/repo"));
    assert!(
        text.starts_with("::warning title=pmc%3A unusable::too noisy") && text.contains("%0Atry: "),
        "{text}"
    );
    let passed = verdict(0.0, 0.1);
    let pass = written(|out| annotations(out, &passed, gate_of(&passed), ""));
    assert!(
        pass.starts_with("::notice title=pmc%3A pass::`worse > 3%25 and p < 0.01` holds for none"),
        "{pass}"
    );
}

#[test]
fn step_summary_has_no_markup_from_names() {
    let summary = |verdict: &ComparisonVerdict| step_summary(verdict, gate_of(verdict));
    let page = summary(&verdict(5.0, 0.5));
    let row = page.lines().find(|line| line.starts_with("| **fails**")).unwrap();
    assert_eq!(row.matches('|').count(), 7, "{row}");
    for bad in ["<b>", "@me", "`", "[a]", "*_", "\u{1b}", "'"] {
        assert!(!page.contains(bad), "{bad}: {page}");
    }
    assert!(
        page.contains("### pmc: regression\n") && page.contains("| +5.0% | 1.1 | 0.000 | 25.0% |"),
        "{page}"
    );
    let page = summary(&verdict(0.0, 9.0));
    assert!(page.contains("### pmc: unusable") && page.contains("\n- too noisy&#58; "), "{page}");
}

#[test]
fn junit_is_well_formed() {
    let xml = |percent, error| {
        let verdict = verdict(percent, error);
        written(|out| junit(out, &verdict, gate_of(&verdict)))
    };
    let failed = xml(5.0, 0.5);
    assert!(failed.contains("tests=\"3\" failures=\"2\" errors=\"0\""), "{failed}");
    assert!(
        failed.contains(
            "<failure type=\"regression\" message=\"+5.0% ±1.1, p &lt; 0.001, 25.0% of the cost\"/>"
        )
    );
    assert!(failed.contains("file=\"/work/repo/src/a,b:c.rs\" line=\"7\""), "{failed}");
    assert!(failed.contains("name=\"f??::error::x%0A|&lt;b&gt;&amp;&quot;'`@me"), "{failed}");
    let unusable = xml(0.0, 9.0);
    assert!(unusable.contains("errors=\"1\" skipped=\"2\"") && unusable.contains("<error type=\"unusable\""));
    for xml in [failed, unusable, xml(0.0, 0.1)] {
        assert_well_formed(&xml);
    }
}

/// Checks that tags are balanced, and that text contains no markup characters.
fn assert_well_formed(xml: &str) {
    let mut open: Vec<&str> = Vec::new();
    for piece in xml.split('<').skip(1) {
        let (tag, text) = piece.split_once('>').expect(xml);
        assert!(!text.contains('>') && !tag.contains('\u{ffff}'), "{piece}");
        let name = tag.split([' ', '/']).find(|word| !word.is_empty()).unwrap();
        if let Some(closed) = tag.strip_prefix('/') {
            assert_eq!(open.pop(), Some(closed), "{xml}");
        } else if !tag.ends_with('/') && !tag.starts_with('?') {
            open.push(name);
        }
    }
    assert!(open.is_empty(), "{open:?}");
}

#[test]
fn text_explains_each_answer() {
    let text = |report: &GateReport| written(|out| super::text(out, report, None));
    let report = |percent, error| gate_of(&verdict(percent, error)).clone();
    let regression = text(&report(5.0, 0.5));
    assert!(
        regression
            .starts_with(" regression: `worse > 3% and p < 0.01` holds for 2 of 2 measures\n   f??::error")
    );
    assert!(
        regression.contains("/work/repo/src/a,b:c.rs:7\n") && !regression.contains('\u{1b}'),
        "{regression}"
    );
    assert!(text(&report(0.0, 0.1)).contains("Functions with 75% of the cost are measured precisely enough"));
    // Both functions change by far more than the noise, which would still hide a change of 3 %. What else
    // might have been missed is no matter then.
    let noisy = report(50.0, 5.0);
    assert_eq!((noisy.verdict, noisy.covered), (GateVerdict::Regression, Some(0.75)));
    assert!(!text(&noisy).contains("precisely enough"), "{}", text(&noisy));
    let condition: GateCondition = "worse > 3%".parse().unwrap();
    let reasons = vec![
        UnusableReason::TooFewRuns { command: "A".into(), runs: 2 },
        UnusableReason::CommandFailed {
            command: "A".into(),
            failures: RunFailures { failed: 2, runs: 9, status: 3 },
        },
        UnusableReason::LostSamples { path: "x".into(), lost: Some(8) },
    ];
    let unusable = text(&judge(&condition, &[], reasons));
    for part in [
        "unusable: these runs cannot tell",
        "`A` ran 2 times",
        "status 3 in 2 of 9 runs",
        "x lacks 8 samples",
    ] {
        assert!(unusable.contains(part), "{part}: {unusable}");
    }
    assert_eq!(unusable.matches("   try: ").count(), 3);
}

/// A whole measure, or a function if it has a share.
fn subject(name: &str, share: Option<f64>, percent: f64, error: f64, p: f64) -> GateSubject {
    GateSubject {
        name: name.to_owned(),
        selectors: vec![name.to_owned()],
        side: 1,
        is_cost: true,
        is_optional: false,
        headline: share.is_none().then(|| name.to_owned()),
        share,
        location: None,
        change: Ok(MeanChange { percent, error, df: 18.0 }),
        p,
    }
}

fn headline(subjects: &[GateSubject], failures: &[RunFailures], condition: Option<&str>) -> String {
    let names = ["A", "B"].map(str::to_owned);
    let report = condition.map(|condition| judge(&condition.parse().unwrap(), subjects, Vec::new()));
    headlines(&ComparisonVerdict::new(&names, failures, subjects, report)).concat()
}

#[test]
fn headline_is_the_strongest_finding() {
    let elapsed = subject("elapsed time", None, 2.0, 5.0, 0.7);
    let cpu = |percent, p| subject("CPU time", None, percent, 0.4, p);
    let render = subject("render", Some(0.1), 32.0, 4.3, 1e-4);
    let of = |subjects: &[&GateSubject]| {
        headline(&subjects.iter().map(|one| (*one).clone()).collect::<Vec<_>>(), &[], None)
    };
    assert_eq!(
        of(&[&elapsed, &cpu(3.5, 1e-3), &render]),
        "B is slower: render +32.0% ±9.0 (p < 0.001), CPU time +3.5% ±0.8 (p = 0.001); elapsed time cannot tell."
    );
    // The sampled CPU time is the same quantity as the counted one, and more certain here.
    assert_eq!(of(&[&cpu(1.0, 0.3), &cpu(-3.5, 1e-4)]), "B is faster: CPU time -3.5% ±0.8 (p < 0.001).");
    assert_eq!(
        of(&[&elapsed, &cpu(0.1, 0.9)]),
        "No difference between B and A found: CPU time +0.1% ±0.8; elapsed time cannot tell."
    );
    assert_eq!(
        of(&[&elapsed]),
        "These runs cannot tell whether B is slower or faster: elapsed time +2.0% ±10.5."
    );
    let precise = subject("elapsed time", None, 0.3, 0.4, 0.6);
    assert_eq!(
        of(&[&precise, &render]),
        "B is slower: render +32.0% ±9.0 (p < 0.001); no change of elapsed time shown (+0.3% ±0.8)."
    );
    // A slower function counts, even if the total hides it. One that is gone may have another name.
    let gone = subject("old", Some(0.3), -100.0, 0.1, 1e-9);
    assert_eq!(
        of(&[&elapsed, &gone, &render]),
        "B is slower: render +32.0% ±9.0 (p < 0.001); elapsed time cannot tell."
    );
    let faster = subject("parse", Some(0.5), -20.0, 1.0, 1e-5);
    assert!(
        of(&[&render, &faster]).starts_with("B differs from A: render +32.0%"),
        "{}",
        of(&[&render, &faster])
    );
    // Whole measures decide; functions that agree come first, then those with the largest effect.
    let small = subject("store", Some(0.01), 50.0, 5.0, 1e-3);
    let all = of(&[&small, &faster, &render, &cpu(3.5, 1e-3)]);
    assert!(all.starts_with("B is slower: render +32.0%") && all.contains("store +50.0%"), "{all}");
    assert!(all.contains(", 1 more function, CPU time +3.5%"), "{all}");
}

#[test]
fn headline_and_gate_agree() {
    // The measure is significant as the only one of the condition, but not among all in its table.
    let cpu = subject("CPU time", None, 5.0, 1.0, 0.2);
    let text = headline(std::slice::from_ref(&cpu), &[], Some("worse > 3% and p < 0.01"));
    assert_eq!(text, "B is slower: CPU time +5.0% ±2.1 (p < 0.001).");
    let noisy = subject("CPU time", None, 0.5, 2.0, 0.9);
    let text = headline(&[noisy], &[], Some("worse > 3% and p < 0.01"));
    assert_eq!(text, "These runs cannot tell whether B is slower or faster: CPU time +0.5% ±4.2.");
    assert_eq!(headline(&[], &[], None), "Too few runs to compare B with A: make at least 5 of each.");
}

#[test]
fn failed_command_is_never_faster() {
    let faster = subject("CPU time", None, -90.0, 1.0, 1e-9);
    let ran = RunFailures { runs: 10, ..RunFailures::default() };
    let failed = RunFailures { failed: 1, runs: 10, status: 3 };
    for (failures, words) in [
        ([ran, failed], "B failed with status 3 in 1 of 10 runs, so that their times cannot be compared."),
        ([failed, ran], "A failed with status 3 in 1 of 10 runs, so that their times cannot be compared."),
    ] {
        assert_eq!(headline(std::slice::from_ref(&faster), &failures, None), words);
    }
}

#[test]
fn every_format_has_the_headline() {
    let subjects = [subject("CPU time", None, 12.0, 1.0, 1e-4)];
    let names = ["A", "B"].map(str::to_owned);
    let report = judge(&"worse > 50% and p < 0.01".parse().unwrap(), &subjects, Vec::new());
    let verdict = ComparisonVerdict::new(&names, &[], &subjects, Some(report));
    let report = gate_of(&verdict);
    for text in [
        written(|out| headline_text(out, &verdict, None)),
        written(|out| annotations(out, &verdict, report, "")),
        written(|out| junit(out, &verdict, report)),
        step_summary(&verdict, report),
        serde_json::to_string(&VerdictJson::all(&verdict)).unwrap(),
    ] {
        assert!(text.contains("B is slower"), "{text}");
    }
}
