//! The formats of a gate's answer, with hostile names.

use super::*;
use pmc_analysis::profile::gate::{GateCondition, GateLocation, GateSubject, MeanChange, judge};

/// A name that tries to break out of every format.
const HOSTILE: &str = "f\r\n::error::x%0A|<b>&\"'`@me`*_[a](b)\u{1b}[31m\u{ffff}";

fn report(percent: f64, error: f64) -> GateReport {
    let subject = GateSubject {
        name: HOSTILE.to_owned(),
        selectors: vec!["cpu-clock".to_owned()],
        is_cost: true,
        share: Some(0.25),
        location: Some(GateLocation { file: "/work/repo/src/a,b:c.rs".to_owned(), line: 7 }),
        change: Ok(MeanChange { percent, error, df: 18.0 }),
    };
    let condition = GateCondition::parse("worse > 3% and p < 0.01").unwrap();
    judge(&condition, &[subject.clone(), GateSubject { share: Some(0.5), ..subject }], Vec::new())
}

fn written(write: impl Fn(&mut dyn Write) -> io::Result<()>) -> String {
    let mut out = Vec::new();
    write(&mut out).unwrap();
    String::from_utf8(out).unwrap()
}

#[test]
fn annotations_escape_names_and_files() {
    let regression = report(5.0, 0.5);
    let of = |workspace: &str| written(|out| annotations(out, &regression, workspace));
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
    let unusable = report(0.0, 9.0);
    let text = written(|out| annotations(out, &unusable, "/work/repo"));
    assert!(
        text.starts_with("::warning title=pmc%3A unusable::too noisy") && text.contains("%0Atry: "),
        "{text}"
    );
    let pass = written(|out| annotations(out, &report(0.0, 0.1), ""));
    assert!(
        pass.starts_with("::notice title=pmc%3A pass::`worse > 3%25 and p < 0.01` holds for none"),
        "{pass}"
    );
}

#[test]
fn step_summary_has_no_markup_from_names() {
    let page = step_summary(&report(5.0, 0.5));
    let row = page.lines().find(|line| line.starts_with("| **fails**")).unwrap();
    assert_eq!(row.matches('|').count(), 7, "{row}");
    for bad in ["<b>", "@me", "`", "[a]", "*_", "\u{1b}", "'"] {
        assert!(!page.contains(bad), "{bad}: {page}");
    }
    assert!(
        page.contains("### pmc: regression\n") && page.contains("| +5.0% | 1.1 | 0.000 | 25.0% |"),
        "{page}"
    );
    let page = step_summary(&report(0.0, 9.0));
    assert!(page.contains("### pmc: unusable") && page.contains("\n- too noisy&#58; "), "{page}");
}

#[test]
fn junit_is_well_formed() {
    let xml = |percent, error| written(|out| junit(out, &report(percent, error)));
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
    // Both functions change by far more than the noise, which would still hide a change of 3 %.
    assert!(text(&report(50.0, 5.0)).contains("Functions with 0% of the cost"));
    let condition = GateCondition::parse("worse > 3%").unwrap();
    let reasons = vec![
        UnusableReason::TooFewRuns { command: "A".into(), runs: 2 },
        UnusableReason::CommandFailed { command: "A".into(), status: 3 },
        UnusableReason::LostSamples { path: "x".into(), lost: Some(8) },
    ];
    let unusable = text(&judge(&condition, &[], reasons));
    for part in ["unusable: these runs cannot tell", "`A` ran 2 times", "status 3", "x lacks 8 samples"] {
        assert!(unusable.contains(part), "{part}: {unusable}");
    }
    assert_eq!(unusable.matches("   try: ").count(), 3);
}
