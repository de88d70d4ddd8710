//! `docs/tui.md`: its table of keys and its screens are generated from the code.

use pmc_analysis::profile::sampled::{Query, QueryAnswer};

use super::fixture::{Desk, answer};
use super::waits::waited;

#[test]
fn documentation_matches_keys_and_screens() {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/tui.md");
    let page = std::fs::read_to_string(&path).unwrap();
    let mut made = replaced(&page, "keys", &format!("\n{}", pmc_tui::keys::markdown()));
    for (name, keys, answers) in [
        ("functions", "jj", answer as fn(&Query) -> QueryAnswer),
        ("tree", "2", answer),
        ("flame", "3jj", answer),
        ("code", "jja", answer),
        ("threads", "5", answer),
        ("timeline", "5", waited),
        ("events", "6", answer),
    ] {
        let screen = Desk::with(answers, 100, 21).press(keys).screen();
        // Drop repeated empty lines, which only take up space on the page.
        let mut lines: Vec<&str> = screen.lines().collect();
        while let Some(at) = lines.windows(2).position(|pair| pair[0].is_empty() && pair[1].is_empty()) {
            lines.remove(at);
        }
        made = replaced(&made, name, &format!("\n```text\n{}\n```\n", lines.join("\n")));
    }
    if std::env::var_os("PMC_BLESS").is_some() {
        std::fs::write(&path, made).unwrap();
    } else {
        assert!(page == made, "docs/tui.md differs from the code: PMC_BLESS=1 rewrites it");
    }
}

/// Replaces the text between `<!-- NAME -->` and the next `<!-- end -->`.
fn replaced(page: &str, name: &str, by: &str) -> String {
    let begin = format!("<!-- {name} -->");
    let (before, rest) = page.split_once(&begin).unwrap_or_else(|| panic!("{begin} is missing"));
    let (_, after) = rest.split_once("<!-- end -->").unwrap();
    format!("{before}{begin}{by}<!-- end -->{after}")
}

#[test]
fn help_page_fits_a_standard_terminal() {
    let mut desk = Desk::new(80, 24);
    let mut screen = desk.press("?").screen();
    for _ in 0..6 {
        let words = screen.lines().skip(3).take(20);
        let cut: Vec<&str> = words.filter(|line| line.ends_with('…')).collect();
        assert!(cut.is_empty(), "{cut:?}");
        screen = desk.press("<PgDn>").screen();
    }
    assert!(screen.contains("quit immediately"), "{screen}");
}
