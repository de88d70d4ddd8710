//! What the panes look like: goldens, rewritten with `PMC_BLESS=1`.

use super::fixture::Desk;
use crate::kit::golden;

#[test]
fn every_pane_in_three_sizes() {
    for (width, height) in [(60, 15), (100, 30), (200, 50)] {
        for (name, keys) in [
            ("functions", ""),
            ("tree", "2"),
            ("flame", "3jj"),
            ("flame-found", "3/price<Enter>"),
            ("code", "jja"),
            ("threads", "5j"),
            ("events", "6"),
            ("help", "?"),
            ("filter", "&mem|price<Enter>"),
            ("strip", "T<Left> <Left><Left>"),
        ] {
            let screen = Desk::new(width, height).press(keys).screen();
            golden(&format!("tui/{name}-{width}x{height}.txt"), &screen);
        }
    }
}

#[test]
fn a_small_terminal_says_so() {
    let mut desk = Desk::new(100, 30);
    for (width, height) in [(59, 30), (100, 14), (20, 5), (3, 2), (1, 1)] {
        let screen = desk.resize(width, height).screen();
        assert!(screen.starts_with(&"pmc needs 60x15"[..usize::from(width).min(15)]), "{screen}");
    }
    // It comes back, and keys worked meanwhile.
    let screen = desk.press("2").resize(100, 30).screen();
    assert!(screen.contains("Call tree"), "{screen}");
}

#[test]
fn foreign_names_are_harmless_and_columns_stay() {
    for keys in ["", "2", "3", "5", "jjjjj"] {
        let screen = Desk::new(120, 30).press(keys).screen();
        assert!(!screen.contains(['\u{1b}', '\t']), "{keys}: {screen}");
    }
    let screen = Desk::new(120, 30).screen();
    let column = |line: &str, word: &str| line.find(word).map(|at| pmc::text::width(&line[..at]));
    let heading = screen.lines().find_map(|line| column(line, "Symbol")).unwrap();
    let marks: Vec<_> = screen
        .lines()
        .filter(|line| line.contains('%'))
        .filter_map(|line| column(line, "[.]").or(column(line, "[k]")))
        .collect();
    assert_eq!(marks, [heading; 8], "{screen}");
}

#[test]
fn nothing_to_show_is_said() {
    use pmc::profile::sampled::Query;
    use pmc::tui::state::State;
    let mut desk = Desk::new(80, 20);
    desk.state = State::new(Query::default(), (80, 20));
    for keys in
        ["", "2", "3", "4", "5", "6", "/x<Enter>", "gGjkhl<Enter>", "ncadotK", "T", "&y<Enter>", "pis[]"]
    {
        let screen = desk.press(keys).screen();
        assert!(screen.contains("Functions"), "{keys}: {screen}");
    }
}
