//! Effects of keys and the mouse on the state.

use std::path::PathBuf;
use std::sync::Arc;

use pmc_analysis::profile::annotate::ListingNote;
use pmc_analysis::profile::sampled::{FunctionRef, Query, RowCell, ShareOf, StackDirection};
use pmc_analysis::session::SampleValue;
use pmc_analysis::session::thread_time::ThreadState;
use pmc_formats::export::ExportFormat;
use pmc_tui::keys::Pane;
use pmc_tui::state::ScreenEffect;
use pmc_tui::{EngineStatus, EngineUpdates, LiveCommand, ViewFormat};
use ratatui::crossterm::event::{MouseButton, MouseEventKind};

use super::fixture::{Desk, answer, listing, listing_with_inlined, started, value};

fn last_query(desk: &Desk) -> &Query {
    let asked = desk.effects.iter().rev().find_map(|effect| match effect {
        ScreenEffect::Ask(query) => Some(query),
        _ => None,
    });
    asked.expect("a question")
}

#[test]
fn cursor_moves_and_selected_row_is_shown_in_full() {
    let mut desk = Desk::new(100, 30);
    assert!(desk.cursor_line().unwrap().contains("main"));
    assert!(desk.press("jj").cursor_line().unwrap().contains("Basket::price"));
    assert!(desk.press("G").cursor_line().unwrap().contains("a_very_long"));
    assert!(desk.press("g").cursor_line().unwrap().contains("main"));
    assert!(desk.press("<PgDn>").screen().contains("8 of 8"));
}

#[test]
fn rows_sort_by_each_column() {
    let mut desk = Desk::new(100, 30);
    desk.press("s");
    assert!(desk.cursor_line().unwrap().contains("Basket::price"), "the largest of its own");
    desk.press("r");
    assert!(desk.cursor_line().unwrap().contains("main"), "the smallest of its own");
    desk.press("r<r>".trim_end_matches("<r>")).press(">>>");
    assert!(desk.cursor_line().unwrap().contains("a_very_long"), "by symbol: {}", desk.screen());
    desk.press("<").press("<").press("<").press("<");
    assert!(desk.cursor_line().unwrap().contains("main"), "{}", desk.screen());
}

#[test]
fn wall_clock_shares_are_shown() {
    let mut desk = Desk::new(110, 30);
    assert!(desk.press("L").screen().contains("pmc record --latency"));
    let with_latency = |query: &Query| {
        let mut known = answer(query);
        known.profile.has_latency = true;
        let event = &mut known.profile.events[0];
        let set = |value: &mut SampleValue, latency| value.more.get_or_insert_default().latency = latency;
        event.share_of = query.share_of;
        set(&mut event.total, 4000);
        event.rows.iter_mut().map(|row| &mut row.own).for_each(|own| set(own, own.samples * 2));
        EngineUpdates { answer: Some(Arc::new(known)), ..EngineUpdates::default() }
    };
    desk.take(with_latency(&desk.state.query.clone()));
    let screen = desk.screen();
    assert!(screen.contains("Latency ") && screen.contains(" 15.00%"), "half of 30%: {screen}");
    desk.press("L");
    assert_eq!(last_query(&desk).share_of, ShareOf::Latency);
    desk.take(with_latency(&desk.state.query.clone()));
    let screen = desk.screen();
    assert!(screen.contains("Overhead ") && screen.contains("wall-clock time"), "{screen}");
    desk.press("L");
    assert_eq!(last_query(&desk).share_of, ShareOf::Period);
}

#[test]
fn incremental_search() {
    let mut desk = Desk::new(100, 30);
    assert!(desk.press("/mem").cursor_line().unwrap().contains("memcpy"));
    // Cancelling the search restores the cursor.
    assert!(desk.press("<Esc>").cursor_line().unwrap().contains("main"));
    assert!(desk.press("/shop::<Enter>").cursor_line().unwrap().contains("serve"));
    assert!(desk.press("n").cursor_line().unwrap().contains("price"));
    assert!(desk.press("n").cursor_line().unwrap().contains("serve"));
    assert!(desk.press("N").cursor_line().unwrap().contains("price"));
    // Anchors refer to a name as well as to the whole line, which begins with the module.
    assert!(desk.press("/^memcpy$<Enter>").cursor_line().unwrap().contains("memcpy"));
    assert!(desk.press("/nowhere<Enter>").screen().contains("nothing matches"));
    assert!(desk.press("/operator(<Enter>").screen().contains("not a valid regular expression"));
}

#[test]
fn rows_can_be_filtered() {
    let mut desk = Desk::new(100, 30);
    let screen = desk.press("&KERNEL<Enter>").screen();
    assert!(screen.contains("no row matches"), "a capital letter is one: {screen}");
    let screen = desk.press("&<^u>kernel|libc<Enter>").screen();
    assert!(
        screen.contains("copy_user") && screen.contains("memcpy") && !screen.contains("Basket"),
        "{screen}"
    );
    assert!(screen.contains("/kernel|libc/") && screen.contains("1 of 2"), "{screen}");
    assert!(desk.press("<Esc>").screen().contains("Basket"));
}

#[test]
fn drill_down_and_back() {
    let mut desk = Desk::new(100, 30);
    desk.press("jj<Enter>");
    assert_eq!(desk.state.pane, Pane::Tree);
    let query = last_query(&desk);
    assert_eq!(query.root.as_deref(), Some("shop::Basket::price() const"));
    assert_eq!(query.tree, Some(StackDirection::Caller));
    assert!(desk.screen().contains("Callees of shop::Basket::price"));
    desk.press("<Esc>");
    assert_eq!((desk.state.pane, last_query(&desk).root.clone()), (Pane::Functions, None));
    desk.press("c");
    assert_eq!(last_query(&desk).tree, Some(StackDirection::Callee));
    desk.press("<Backspace>").press("d");
    assert_eq!(last_query(&desk).filter.dso.as_deref(), Some("shop"));
    assert!(desk.screen().contains("only in shop"));
    desk.press("o").press("t").press("K");
    let filter = &last_query(&desk).filter;
    assert!(filter.symbol.is_some() && filter.comms.is_some() && filter.hide_kernel);
    // Each Escape undoes one filter.
    desk.press("<Esc>");
    assert!(!last_query(&desk).filter.hide_kernel && last_query(&desk).filter.comms.is_some());
    desk.press("<Esc><Esc><Esc>");
    assert!(last_query(&desk).filter.is_empty());
    assert!(desk.press("q").effects.contains(&ScreenEffect::Quit));
}

#[test]
fn search_is_kept_after_drill_down_and_back() {
    let mut desk = Desk::new(100, 30);
    desk.press("/serve<Enter><Enter>");
    assert_eq!(desk.state.pane, Pane::Tree);
    desk.press("<Esc>");
    assert_eq!((desk.state.pane, desk.state.search.text.as_str()), (Pane::Functions, "serve"));
    desk.press("<Enter>/price<Enter><Esc>");
    assert_eq!((desk.state.pane, desk.state.search.text.as_str()), (Pane::Tree, "serve"));
    desk.press("<Esc><Esc>");
    assert!(!desk.state.search.is_some());
}

#[test]
fn q_goes_back_before_quitting() {
    let mut desk = Desk::new(100, 30);
    desk.press("2q");
    assert!(!desk.effects.contains(&ScreenEffect::Quit));
    assert_eq!(desk.state.pane, Pane::Functions);
    assert!(desk.press("q").effects.contains(&ScreenEffect::Quit));
    for key in ["Q", "<^c>"] {
        let mut desk = Desk::new(100, 30);
        assert!(desk.press("3").press(key).effects.contains(&ScreenEffect::Quit), "{key}");
    }
}

#[test]
fn tree_nodes_expand_and_collapse() {
    let mut desk = Desk::new(100, 30);
    let lines = |desk: &Desk| desk.state.stacks.lines.len();
    desk.press("2");
    let open = lines(&desk);
    assert!(open > 5, "the costly path is open: {open}");
    desk.press("E");
    assert_eq!(lines(&desk), 8);
    desk.press("C");
    assert_eq!(lines(&desk), 1);
    desk.press("l");
    assert_eq!(lines(&desk), 3);
    desk.press("l<Enter>");
    assert_eq!(lines(&desk), 3 + 4, "a fork opens");
    desk.press("h");
    assert_eq!(lines(&desk), 3);
    desk.press("h");
    assert!(desk.cursor_line().unwrap().contains("main"), "left goes to the caller");
    desk.press("p");
    assert!(desk.cursor_line().unwrap().contains("memcpy"), "the hot path's end");
    desk.press("g/copy_user<Enter>");
    assert!(desk.cursor_line().unwrap().contains("copy_user"), "a search opens what is closed");
    desk.press("i");
    assert_eq!(last_query(&desk).tree, Some(StackDirection::Callee));
    assert!(desk.press("R").state.query.collapse);
}

#[test]
fn inlined_functions_fold_in_code_pane() {
    let mut desk = Desk::new(100, 30);
    desk.press("4");
    let name = FunctionRef { dso: "shop".to_owned(), symbol: "shop::Basket::price() const".to_owned() };
    desk.state.code.wait_for(name.clone());
    let listing = Ok(Arc::new(listing_with_inlined()));
    desk.take(EngineUpdates { listing: Some((name, listing)), ..EngineUpdates::default() });
    let shown = |desk: &mut Desk| desk.state.code.shown.clone();
    // The function with the highest cost is open. The others are folded into one row each, with a summary.
    assert_eq!(shown(&mut desk), [0, 1, 7, 8, 9, 10, 11]);
    assert_eq!(desk.state.code.row(), Some(10));
    let screen = desk.screen();
    let line = screen.lines().find(|line| line.contains("sum")).unwrap_or_else(|| panic!("{screen}"));
    assert!(line.contains("30.0") && line.contains("▸") && line.contains("sum: 3 instructions"), "{line}");
    assert!(screen.contains("▾") && screen.contains("add:"), "{screen}");
    // Enter opens the function at the cursor and keeps functions inlined into it folded. Enter again closes
    // it.
    desk.press("gj<Enter>");
    assert_eq!(shown(&mut desk), [0, 1, 2, 3, 5, 6, 7, 8, 9, 10, 11]);
    desk.press("<Enter>");
    assert_eq!(shown(&mut desk), [0, 1, 7, 8, 9, 10, 11]);
    assert_eq!(desk.state.code.row(), Some(1));
    // A jump and a search open the function that contains their target.
    desk.press("jj<Enter>");
    assert_eq!((desk.state.code.row(), shown(&mut desk).len()), (Some(4), 12));
    desk.press("gj<Enter>G/cmpq<Enter>");
    assert_eq!(desk.state.code.row(), Some(2));
}

#[test]
fn code_of_an_inlined_function_is_in_its_caller() {
    let mut desk = Desk::new(100, 30);
    desk.press("2E/very_long<Enter>a");
    assert_eq!(desk.state.code.function.as_ref().unwrap().symbol, "shop::serve(Request const&)");
}

#[test]
fn inlined_function_is_shown_at_its_hottest_line() {
    let function = |symbol: &str| FunctionRef { dso: "shop".to_owned(), symbol: symbol.to_owned() };
    // From the table: the listing shows the function it is inlined into. `next` has no cost.
    for (inlined, row) in [("sum", 6), ("next", 10), ("add", 10), ("shop::Basket::price() const", 10)] {
        let mut desk = Desk::new(100, 30);
        desk.press("4");
        desk.state.code.wait_for(function(inlined));
        let listing = Ok(Arc::new(listing_with_inlined()));
        desk.take(EngineUpdates { listing: Some((function(inlined), listing)), ..EngineUpdates::default() });
        assert_eq!(desk.state.code.row(), Some(row), "{inlined}");
    }
    // From the tree, where the enclosing function is known. Then again with its code already loaded.
    let mut desk = Desk::new(100, 30);
    desk.press("4");
    let host = function("shop::Basket::price() const");
    desk.state.code.wait_for(host.clone());
    desk.state.code.look_for("sum".to_owned(), 0, 20);
    let listing = Ok(Arc::new(listing_with_inlined()));
    desk.take(EngineUpdates { listing: Some((host, listing)), ..EngineUpdates::default() });
    assert_eq!(desk.state.code.row(), Some(6));
    desk.state.code.look_for("add".to_owned(), 0, 20);
    assert_eq!(desk.state.code.row(), Some(10));
}

#[test]
fn selected_line_wraps_between_words() {
    let mut desk = Desk::new(80, 24);
    let name = FunctionRef { dso: "shop".to_owned(), symbol: "shop::Basket::price() const".to_owned() };
    desk.press("4");
    desk.state.code.wait_for(name.clone());
    let mut listing = listing_with_inlined();
    let text = "source file ./malloc/malloc.c: No such file or directory (ENOENT)".to_owned();
    listing.notes = vec![ListingNote { text, remedy: None }];
    desk.take(EngineUpdates { listing: Some((name, Ok(Arc::new(listing)))), ..EngineUpdates::default() });
    let screen = desk.screen();
    assert!(screen.lines().any(|line| line.trim_end().ends_with("(ENOENT)")), "{screen}");
    assert!(screen.contains("./malloc/malloc.c:"), "{screen}");
}

#[test]
fn flame_graph_navigation_and_zoom() {
    let mut desk = Desk::new(100, 30);
    desk.press("3");
    let detail = |desk: &mut Desk| desk.screen().lines().nth(27).unwrap().to_owned();
    assert!(detail(&mut desk).contains("all"));
    desk.press("j");
    assert!(detail(&mut desk).contains("main"));
    desk.press("j");
    assert!(detail(&mut desk).contains("serve"), "the widest below");
    let before = desk.state.boxes().len();
    desk.press("<Enter>");
    let zoomed = desk.state.boxes();
    let serve = desk.state.flame_box(&zoomed).unwrap();
    assert_eq!((serve.x, serve.width, serve.depth), (0, 100, 2));
    desk.press("j").press("l");
    assert!(!detail(&mut desk).contains("serve"));
    desk.press("<Esc>");
    assert_eq!(desk.state.boxes().len(), before);
    assert!(desk.press("/memcpy").screen().contains("20.00% match"), "{}", desk.screen());
}

#[test]
fn flames_span_their_callees() {
    let mut desk = Desk::new(80, 30);
    desk.press("3");
    for width in [60, 77, 80, 133, 200] {
        desk.resize(width, 30);
        let boxes = desk.state.boxes();
        assert_eq!(boxes[0].width, usize::from(width));
        for b in
            boxes.iter().filter(|b| b.node != u32::MAX && desk.state.parents[b.node as usize] != u32::MAX)
        {
            let parent = boxes.iter().find(|p| p.node == desk.state.parents[b.node as usize]).unwrap();
            assert!(parent.x <= b.x && b.x + b.width <= parent.x + parent.width, "{parent:?} {b:?}");
        }
        for pair in boxes.windows(2).filter(|pair| pair[0].depth == pair[1].depth) {
            assert!(pair[0].x + pair[0].width <= pair[1].x, "{pair:?}");
        }
    }
}

#[test]
fn code_pane_starts_at_the_hottest_line_and_follows_jumps() {
    let mut desk = Desk::new(100, 30);
    desk.press("jja");
    assert_eq!(desk.state.pane, Pane::Code);
    assert!(desk.cursor_line().unwrap().contains("jne"), "{}", desk.screen());
    desk.press("<Enter>");
    assert!(desk.cursor_line().unwrap().contains("cmpq"));
    desk.press("H");
    assert!(desk.cursor_line().unwrap().contains("addq"), "the second hottest");
    let screen = desk.press("s").screen();
    assert!(!screen.contains("sum += i") && screen.contains("addq"), "{screen}");
    assert!(desk.press("s/sum \\+=<Enter>").cursor_line().unwrap().contains("sum += i"));
    assert!(desk.press("1ga").screen().contains("no code of main"));
}

#[test]
fn code_pane_states_that_filters_are_ignored() {
    let mut desk = Desk::new(100, 30);
    let before = desk.press("jja").screen();
    assert!(before.contains("of all: ") && !before.contains("ignoring filters"), "{before}");
    let after = desk.press("1Ka").screen();
    assert!(after.contains("of all, ignoring filters: "), "{after}");
}

#[test]
fn code_pane_defaults_to_the_hottest_function() {
    let mut desk = Desk::new(100, 30);
    // The list of threads selects no function.
    let screen = desk.press("54").screen();
    assert!(screen.contains("showing the hottest function, shop::Basket::price() const"), "{screen}");
    assert!(desk.cursor_line().unwrap().contains("jne"), "{screen}");
}

#[test]
fn no_query_for_functions_without_a_name() {
    let mut desk = Desk::new(100, 30);
    let mut young = answer(&desk.state.query);
    let soon = young.profile.texts.add("[looking up]");
    for row in &mut young.profile.events[0].rows {
        let cells = row.cells.iter().map(|cell| match cell {
            RowCell::Symbol(level, _) => RowCell::Symbol(*level, soon),
            other => *other,
        });
        row.cells = cells.collect();
    }
    desk.take(EngineUpdates { answer: Some(Arc::new(young)), ..EngineUpdates::default() });
    for key in ["a", "o", "c", "<Enter>", "4"] {
        let asked = desk.effects.len();
        let screen = desk.press(key).screen();
        assert!(screen.contains("its name is still being looked up"), "{key}:\n{screen}");
        assert_eq!((desk.state.pane, desk.effects.len()), (Pane::Functions, asked), "{key}");
    }
}

#[test]
fn screen_can_start_in_the_code_pane() {
    let mut desk = Desk::new(100, 30);
    desk.take(EngineUpdates { opens: Some(FunctionRef::default()), ..EngineUpdates::default() });
    assert!(desk.screen().contains("looking for the hottest function"), "{}", desk.screen());
    let listing = Arc::new(listing());
    let name = listing.symbol.clone();
    desk.take(EngineUpdates {
        listing: Some((FunctionRef::default(), Ok(listing))),
        ..EngineUpdates::default()
    });
    assert_eq!((desk.state.pane, desk.state.function().unwrap().symbol), (Pane::Code, name));
    // `q` first returns to the pane where the screen began, and quits there.
    desk.press("1q");
    assert!(desk.state.code.rows().is_some(), "the same code, not that of the cursor's row");
    assert_eq!(desk.state.pane, Pane::Code);
    assert!(!desk.effects.contains(&ScreenEffect::Quit));
    desk.press("q");
    assert_eq!(desk.effects.last(), Some(&ScreenEffect::Quit));
}

#[test]
fn threads_and_events_can_be_selected() {
    let mut desk = Desk::new(100, 30);
    desk.press("5");
    assert!(desk.cursor_line().unwrap().contains("90.00%"), "a process has its threads' sum");
    desk.press("jj<Enter>");
    assert_eq!(last_query(&desk).filter.tids, Some([701].into()));
    assert_eq!(desk.state.pane, Pane::Functions);
    desk.press("<Esc>");
    desk.press("5g<Enter>");
    assert_eq!(last_query(&desk).filter.pids, Some([700].into()));
    desk.press("6j<Enter>");
    assert_eq!(last_query(&desk).event, Some(1));
    assert!(desk.screen().contains("page-faults"));
    desk.press("[");
    assert_eq!(last_query(&desk).event, Some(0));
    desk.press("]");
    assert_eq!(last_query(&desk).event, Some(1));
}

#[test]
fn time_span_can_be_selected() {
    let mut desk = Desk::new(100, 30);
    desk.press("T").press("g").press(" ").press("<Right><Right><Right><Right>").press("<Enter>");
    // A hundred slices on a hundred columns; this selects five of them.
    assert_eq!(last_query(&desk).filter.time, Some((5_000_000_000, 5_049_999_999)));
    assert!(desk.screen().contains("0.000-0.050 s"));
    desk.press("<Esc>");
    assert_eq!(last_query(&desk).filter.time, None);
    // The same with the mouse.
    desk.mouse(MouseEventKind::Down(MouseButton::Left), 10, 2)
        .mouse(MouseEventKind::Drag(MouseButton::Left), 19, 2)
        .mouse(MouseEventKind::Up(MouseButton::Left), 19, 2);
    assert_eq!(last_query(&desk).filter.time, Some((5_100_000_000, 5_199_999_999)));
}

#[test]
fn mouse_selects_scrolls_and_opens() {
    let mut desk = Desk::new(100, 30);
    let click = MouseEventKind::Down(MouseButton::Left);
    // The rows start below the header, tabs, strip and headings.
    desk.mouse(click, 50, 6);
    assert!(desk.cursor_line().unwrap().contains("price"));
    desk.mouse(MouseEventKind::ScrollDown, 50, 6);
    assert!(desk.cursor_line().unwrap().contains("naïve"));
    desk.mouse(click, 50, 6).mouse(click, 50, 6);
    assert_eq!(desk.state.pane, Pane::Tree, "a second click is Enter");
    desk.mouse(click, 22, 1);
    assert_eq!(desk.state.pane, Pane::Flame);
    desk.mouse(click, 2, 5);
    assert!(desk.state.flame.cursor.is_some());
    desk.mouse(click, 2, 1).mouse(click, 12, 3);
    assert!(desk.cursor_line().unwrap().contains("price"), "a click on a heading sorts by it");
}

#[test]
fn hints_are_clickable() {
    for width in [60, 80, 100] {
        let mut desk = Desk::new(width, 24);
        let screen = desk.screen();
        let footer = screen.lines().last().unwrap();
        assert!(footer.starts_with("? help  q quit  / search  & filter"), "{footer}");
        let click = MouseEventKind::Down(MouseButton::Left);
        desk.mouse(click, footer.find('&').unwrap() as u16 + 2, 23);
        assert!(desk.screen().contains("Show only:"));
        desk.press("<Esc>").mouse(click, 1, 23);
        assert!(desk.screen().contains("Moving"));
        desk.press("q");
        // A narrow screen has no room for this hint.
        if width >= 80 {
            desk.mouse(click, footer.find("Tab").unwrap() as u16, 23);
            assert_eq!(desk.state.pane, Pane::Tree);
        }
    }
}

#[test]
fn startup_frames_are_collapsed() {
    let mut desk = Desk::with(started, 100, 24);
    let screen = desk.screen();
    assert!(screen.contains("3 start-up frames") && !screen.contains("_start "), "{screen}");
    assert!(screen.contains("1 of 9"), "{screen}");
    let screen = desk.press("b").screen();
    assert!(screen.contains("__libc_start_call_main") && !screen.contains("3 start-up frames"), "{screen}");
    let tree = desk.press("b2").screen();
    assert!(tree.contains("3 start-up frames (b): _start … __libc_start_call_main"), "{tree}");
    assert_eq!(tree.lines().filter(|line| line.contains("100.00%")).count(), 3, "{tree}");
    let flame = desk.press("3").screen();
    assert!(flame.contains("▏3 start-up frames (b)") && flame.contains("▏main"), "{flame}");
    // The cursor skips the hidden frames in both directions.
    desk.press("jj");
    assert!(desk.screen().lines().nth(21).unwrap().contains("main (shop)"), "{}", desk.screen());
    desk.press("kk");
    assert!(desk.screen().lines().nth(21).unwrap().contains("all"), "{}", desk.screen());
    // A search also finds hidden frames and shows them.
    for pane in ["1", "2", "3"] {
        desk.press(pane);
        let screen = desk.press("/libc_start_main<Enter>").screen();
        assert!(!screen.contains("nothing matches") && !screen.contains("3 start-up frames"), "{screen}");
        let screen = desk.press("b/nowhere<Enter>").screen();
        assert!(screen.contains("nothing matches"), "{screen}");
        assert!(desk.press("<Esc><Esc>").screen().contains("3 start-up frames"), "{pane}");
    }
}

#[test]
fn search_jumps_to_the_largest_match() {
    let mut desk = Desk::new(100, 30);
    // Sorted by symbol, the first name with an m does not have the largest share.
    desk.press("ssss");
    assert!(desk.press("/m").cursor_line().unwrap().contains("main"));
    let mut desk = Desk::new(100, 30);
    desk.press("G");
    assert!(desk.press("/r").cursor_line().unwrap().contains("serve"), "{}", desk.screen());
}

#[test]
fn sort_order_is_kept_for_other_rows() {
    let mut desk = Desk::new(100, 30);
    assert!(desk.press("s").screen().contains("Self▾"));
    assert!(desk.press("S").screen().contains("Self▾"));
}

#[test]
fn invalid_pattern_shows_an_error() {
    let mut desk = Desk::new(100, 30);
    let screen = desk.press("&price(<Enter>").screen();
    assert!(
        screen.contains("\"price(\" is not a valid regular expression") && screen.contains("1 of 1"),
        "{screen}"
    );
}

#[test]
fn marked_rows_are_summed() {
    let mut desk = Desk::new(100, 30);
    let screen = desk.press("jj  ").screen();
    assert!(screen.contains("2 marked") && screen.contains("50.00%"), "{screen}");
}

#[test]
fn view_export_format_follows_the_file_name() {
    let mut desk = Desk::new(100, 30);
    let written = |form, name| ScreenEffect::Export(form, PathBuf::from(name));
    desk.press("x<Enter>");
    assert_eq!(desk.effects.last(), Some(&written(ViewFormat::Format(ExportFormat::Html), "pmc-view.html")));
    desk.press("x<^u>a.json<Enter>");
    assert_eq!(desk.effects.last(), Some(&written(ViewFormat::Format(ExportFormat::Json), "a.json")));
    desk.press("P<^w>data<Enter>");
    assert_eq!(desk.effects.last(), Some(&written(ViewFormat::PerfData, "pmc-view.data")));
    let count = desk.effects.len();
    desk.press("x<^w>sgv<Enter>");
    assert_eq!(desk.effects.len(), count);
    let screen = desk.screen();
    assert!(
        screen.contains("the file name needs one of these extensions: .html, ") && screen.contains(".data"),
        "{screen}"
    );
    desk.press("x<Esc>");
    assert_eq!(desk.effects.len(), count);
}

#[test]
fn live_keys_work_only_in_live_views() {
    let mut desk = Desk::new(100, 30);
    assert!(desk.press("z").screen().contains("live view"));
    desk.take(EngineUpdates {
        status: Some(EngineStatus { is_live: true, ..EngineStatus::default() }),
        ..EngineUpdates::default()
    });
    desk.press("zfD()");
    let commands: Vec<_> = desk
        .effects
        .iter()
        .filter_map(|effect| match effect {
            ScreenEffect::Command(command) => Some(*command),
            _ => None,
        })
        .collect();
    use LiveCommand::{Decay, Faster, Freeze, Zero};
    assert_eq!(commands, [Zero, Freeze, Decay, Faster(false), Faster(true)]);
}

#[test]
fn row_keys_can_be_cycled() {
    let mut desk = Desk::new(100, 30);
    let first = desk.state.query.keys.clone();
    let mut seen = vec![first.clone()];
    loop {
        desk.press("S");
        let keys = last_query(&desk).keys.clone();
        if keys == first {
            break;
        }
        assert!(!seen.contains(&keys));
        seen.push(keys);
    }
    assert!(seen.len() > 5);
}

#[test]
fn cursor_stays_on_its_row_when_numbers_change() {
    use std::sync::Arc;
    let mut desk = Desk::new(100, 30);
    desk.press("jjj");
    assert!(desk.cursor_line().unwrap().contains("memcpy"));
    let mut next = super::fixture::answer(&desk.state.query);
    next.profile.events[0].rows.swap(3, 6);
    desk.take(EngineUpdates { answer: Some(Arc::new(next)), ..EngineUpdates::default() });
    assert!(desk.cursor_line().unwrap().contains("memcpy"));
    assert_eq!(desk.state.table.scroll.cursor, 6);
}

#[test]
fn random_key_sequences_do_not_panic() {
    // The same sequence in each run: every key of the table and some others, in all panes.
    let keys: Vec<char> = "jkhlgG123456scaodtKUFT[]/n&x?RipEC+-HsfzD()qQ S<>r".chars().collect();
    let mut desk = Desk::new(80, 24);
    let mut seed = 7u64;
    for round in 0..4000 {
        seed = seed.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        let pick = (seed >> 33) as usize;
        match pick % 10 {
            key @ 0..=2 => {
                desk.press(["<Enter>", "<Esc>", "<Tab>"][key]);
            }
            3 => {
                let (x, y) = ((pick / 10 % 80) as u16, (pick / 800 % 24) as u16);
                desk.mouse(MouseEventKind::Down(MouseButton::Left), x, y);
            }
            4 if round % 7 == 0 => {
                desk.resize(60 + (pick / 10 % 140) as u16, 12 + (pick / 2000 % 40) as u16);
            }
            _ => {
                let key = keys[pick / 10 % keys.len()].to_string();
                desk.press(&key);
            }
        }
        if round % 50 == 0 {
            desk.screen();
        }
    }
}

#[test]
fn flame_graph_shows_states_and_switches_between_them() {
    let mut desk = Desk::new(100, 30);
    assert!(desk.press("3W").screen().contains("no waiting time: use pmc record --wall"));
    assert!(!desk.screen().contains("blocked"));
    // Half of the time under `price` is waiting.
    let mut desk = Desk::with(
        |query| {
            let mut answer = answer(query);
            let event = &mut answer.profile.events[0];
            let wait = || value(500).waiting(ThreadState::Blocked);
            event.total += wait();
            if let Some(tree) = &mut event.tree {
                [0, 1, 2].iter().for_each(|node: &usize| tree.nodes[*node].total += wait());
            }
            answer
        },
        100,
        30,
    );
    let screen = desk.press("3").screen();
    assert!(screen.contains("33.33% of it blocked"), "{screen}");
    let states = |desk: &Desk| last_query(desk).filter.states;
    desk.press("W");
    assert_eq!(states(&desk), Some(&[ThreadState::Running][..]));
    assert!(desk.screen().contains("only running"));
    desk.press("W");
    assert_eq!(states(&desk), Some(&[ThreadState::Runnable, ThreadState::Blocked][..]));
    assert!(desk.screen().contains("only waiting"));
    desk.press("W");
    assert_eq!(states(&desk), None);
    // Escape undoes one step.
    desk.press("<Esc>");
    assert!(desk.screen().contains("only waiting"));
}

#[test]
fn hints_name_only_keys_that_have_an_effect() {
    let footer = |desk: &mut Desk| desk.screen().lines().last().unwrap().to_owned();
    // Without waits and start-up frames, and where q leaves the screen.
    let mut plain = Desk::new(80, 24);
    let first = footer(&mut plain);
    assert!(
        first.contains("q quit") && !first.contains("W waits") && !first.contains("b start-up"),
        "{first}"
    );
    let other_pane = footer(plain.press("2"));
    assert!(other_pane.contains("q back"), "{other_pane}");
    let all = footer(&mut Desk::with(super::waits::waited, 80, 24));
    assert!(all.contains("W waits"), "{all}");
    let mut with_callers = Desk::with(super::fixture::started, 80, 24);
    for pane in ["1", "2", "3"] {
        let shown = footer(with_callers.press(pane));
        assert!(shown.contains("b start-up"), "{pane}: {shown}");
    }
}
