//! Drawings of the panes, compared with golden files. `PMC_BLESS=1` rewrites the files.

use super::fixture::Desk;
use crate::kit::golden;

#[test]
fn every_pane_renders_in_three_sizes() {
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
fn small_terminal_shows_a_message() {
    let mut desk = Desk::new(100, 30);
    for (width, height) in [(59, 30), (100, 14), (20, 5), (3, 2), (1, 1)] {
        let screen = desk.resize(width, height).screen();
        assert!(screen.starts_with(&"pmc needs 60x15"[..usize::from(width).min(15)]), "{screen}");
    }
    // The screen returns, and keys pressed meanwhile took effect.
    let screen = desk.press("2").resize(100, 30).screen();
    assert!(screen.contains("Call tree"), "{screen}");
}

#[test]
fn untrusted_names_are_sanitized_and_columns_align() {
    for keys in ["", "2", "3", "5", "jjjjj"] {
        let screen = Desk::new(120, 30).press(keys).screen();
        assert!(!screen.contains(['\u{1b}', '\t']), "{keys}: {screen}");
    }
    let screen = Desk::new(120, 30).screen();
    let column = |line: &str, word: &str| line.find(word).map(|at| pmc_text::text::width(&line[..at]));
    let heading = screen.lines().find_map(|line| column(line, "Symbol")).unwrap();
    let names = ["main", "shop::serve", "shop::Basket", "memcpy", "数", "naïve", "copy_user", "a_very"];
    let rows: Vec<&str> = screen.lines().filter(|line| line.contains('%')).collect();
    let columns = rows.iter().filter_map(|line| names.iter().find_map(|name| column(line, name)));
    assert_eq!(columns.collect::<Vec<_>>(), [heading; 8], "{screen}");
}

#[test]
fn symbol_column_gets_half_of_the_screen() {
    for width in [60u16, 72, 80, 100, 132] {
        let screen = Desk::new(width, 24).screen();
        let heading = screen.lines().find(|line| line.contains("Symbol")).unwrap();
        let at = pmc_text::text::width(&heading[..heading.find("Symbol").unwrap()]);
        // The two columns before it belong to the mark.
        assert!(usize::from(width) - (at - 2) >= usize::from(width) / 2, "{screen}");
        // The command is the same in all rows; the library differs.
        assert!(heading.contains("Shared") && (width > 100) == heading.contains("Command"), "{screen}");
    }
}

#[test]
fn names_are_shortened_and_shown_in_full_below() {
    let mut desk = Desk::new(80, 24);
    let screen = desk.press("jjjjjjj").screen();
    // The function name stays visible without its scope; the line below shows the full name.
    let row = screen.lines().find(|line| line.contains("::operator()") && line.contains('%')).unwrap();
    assert!(row.contains("…") && !row.contains("allocator"), "{screen}");
    assert!(screen.contains("◆ copy_user_generic") && screen.contains("~ naïve"), "{screen}");
    let below: String = screen.lines().rev().skip(1).take(2).collect::<Vec<_>>().into_iter().rev().collect();
    assert!(below.contains("no_terminal_is_wide_enough_for_it_any_more_at_all<int"), "{screen}");
    // Scrolling sideways shows the original name.
    let moved = desk.press("<Right>").screen();
    assert!(moved.contains("erve(Request const&)"), "{moved}");
    let tree = desk.press("2").screen();
    assert!(tree.contains("↳ ") && tree.contains("◆ copy_user_generic"), "{tree}");
}

#[test]
fn flame_graph_shows_depth_and_zoom() {
    let mut desk = Desk::new(100, 30);
    let zoomed = desk.press("3jj<Enter>j").screen();
    assert!(zoomed.contains("% of the zoomed part, "), "{zoomed}");
    let screen = desk.resize(100, 15).screen();
    assert!(!screen.contains("below ↓"), "{screen}");
    let mut desk = Desk::new(80, 15);
    assert!(desk.screen().contains("99 % of stacks complete"), "{}", desk.screen());
}

#[test]
fn live_view_without_call_chains_explains_how_to_record_them() {
    use pmc_analysis::profile::sampled::{ProfileQuality, Query, QueryAnswer};
    use pmc_tui::{EngineStatus, EngineUpdates};
    fn flat(query: &Query) -> QueryAnswer {
        let mut answer = super::fixture::answer(query);
        answer.profile.has_totals = false;
        answer.profile.trust = ProfileQuality::default();
        answer.profile.events.iter_mut().for_each(|event| event.tree = None);
        answer
    }
    for (is_live, said) in [(true, "pmc top -g samples them"), (false, "pmc record -g records them")] {
        for key in ["2", "3"] {
            let mut desk = Desk::with(flat, 100, 30);
            desk.take(EngineUpdates {
                status: Some(EngineStatus { is_live, ..EngineStatus::default() }),
                ..EngineUpdates::default()
            });
            let screen = desk.press(key).screen();
            assert!(screen.contains(said), "{key}: {screen}");
        }
    }
}

#[test]
fn empty_views_show_a_message() {
    use pmc_analysis::profile::sampled::Query;
    use pmc_tui::state::ScreenState;
    let mut desk = Desk::new(80, 20);
    desk.state = ScreenState::new(Query::default(), (80, 20));
    for keys in
        ["", "2", "3", "4", "5", "6", "/x<Enter>", "gGjkhl<Enter>", "ncadotK", "T", "&y<Enter>", "pis[]"]
    {
        let screen = desk.press(keys).screen();
        assert!(screen.contains("Functions"), "{keys}: {screen}");
    }
}
