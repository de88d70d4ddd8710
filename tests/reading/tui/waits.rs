//! Waiting time on the screen: states in the table, timelines of threads, rates in the live view.

use pmc_analysis::profile::sampled::thread_states::StateRun;
use pmc_analysis::profile::sampled::waits::ThreadTimeSums;
use pmc_analysis::profile::sampled::{Query, QueryAnswer, RowCell, SampleValue, SortKey, ThreadState};
use pmc_text::units::{MS, S};

use super::fixture::{Desk, answer, value};
use ThreadState::{Blocked, Runnable, Running};

/// The handmade profile with waits: half of the time of `main` and all of `memcpy`.
pub(super) fn waited(query: &Query) -> QueryAnswer {
    let mut answer = answer(query);
    let event = &mut answer.profile.events[0];
    let half = || {
        let mut half = value(500);
        half += value(500).waiting(Blocked);
        half
    };
    event.name = "wall-clock".to_owned();
    event.total = half();
    event.rows[0].total = half();
    let memcpy = &mut event.rows[3];
    (memcpy.own, memcpy.total) = (value(200).waiting(Blocked), value(200).waiting(Blocked));
    event.rows[4].total = value(150).waiting(Runnable);
    let idle = if query.idle { (0, 0) } else { (2, 2 * S) };
    event.thread_time = Some(ThreadTimeSums { elapsed_ns: S, threads: 5, idle, ..ThreadTimeSums::default() });
    // The time strip shows the second from 5 s to 6 s.
    let run =
        |from: u64, until: u64, state| StateRun { from: 5 * S + from * MS, until: 5 * S + until * MS, state };
    answer.thread_states.extend([
        (
            700,
            vec![
                run(0, 300, Running),
                run(300, 700, Blocked),
                run(700, 800, Runnable),
                run(800, 1000, Running),
            ],
        ),
        (701, vec![run(250, 500, Blocked), run(500, 600, Running)]),
        (800, vec![run(0, 1000, Blocked)]),
    ]);
    answer
}

/// The same profile in an interval of 2 ms of a live view.
fn live(query: &Query) -> QueryAnswer {
    let mut answer = waited(query);
    let sums = answer.profile.events[0].thread_time.as_mut().expect("waits");
    (sums.is_live, sums.elapsed_ns) = (true, 2_000_000);
    answer.threads[1].value = SampleValue { period: 1_000_000, ..value(300) }.waiting(Blocked);
    answer
}

/// Returns the line that contains this text.
#[track_caller]
fn line<'a>(screen: &'a str, words: &str) -> &'a str {
    screen.lines().find(|line| line.contains(words)).unwrap_or_else(|| panic!("no {words} in\n{screen}"))
}

#[test]
fn table_shows_the_main_state_of_each_row() {
    for width in [60, 80, 120] {
        let screen = Desk::with(waited, width, 24).screen();
        let column = |words: &str, at: &str| {
            let line = line(&screen, words);
            pmc_text::text::width(&line[..line.find(at).expect("there")])
        };
        for (name, state) in
            [("main", "running "), ("memcpy", "blocked "), ("数据", "runnable"), ("price", "running")]
        {
            let row = line(&screen, name);
            assert!(row[..row.find(name).expect("there")].contains(state), "{name}: {screen}");
        }
        assert_eq!(column("memcpy", "blocked"), column("State", "State"), "{screen}");
    }
    // A recording without waits has no such column.
    assert!(!Desk::new(120, 24).screen().contains("State"));
}

#[test]
fn click_on_a_heading_behind_the_states_sorts_by_it() {
    use ratatui::crossterm::event::{MouseButton, MouseEventKind};
    for answers in [waited, live] {
        let mut desk = Desk::with(answers, 120, 24);
        let screen = desk.screen();
        let y = screen.lines().position(|line| line.contains("Symbol")).expect("a heading") as u16;
        let heading = line(&screen, "Symbol");
        let x = pmc_text::text::width(&heading[..heading.find("Symbol").expect("there")]) as u16;
        desk.mouse(MouseEventKind::Down(MouseButton::Left), x + 1, y);
        assert!(desk.screen().contains("Symbol▴"), "{}", desk.screen());
    }
}

#[test]
fn threads_have_timelines_with_a_legend() {
    let screen = Desk::with(waited, 100, 24).press("5").screen();
    assert!(line(&screen, "Command").contains("# running + runnable - blocked"), "{screen}");
    let timeline = |screen: &str, words: &str| {
        let row = line(screen, words);
        row[row.rfind(words).expect("there") + words.len()..].trim_start().to_owned()
    };
    // Processes with several threads have no timeline of their own.
    assert_eq!(timeline(&screen, "700          shop"), "");
    let main = timeline(&screen, "700   shop");
    let shape: String = main.chars().fold(String::new(), |mut shape, c| {
        if !shape.ends_with(c) {
            shape.push(c);
        }
        shape
    });
    assert_eq!(shape, "#-+#", "{screen}");
    let all = main.len() as f64;
    for (mark, share) in [('#', 0.5), ('-', 0.4), ('+', 0.1)] {
        let shown = main.chars().filter(|c| *c == mark).count() as f64 / all;
        assert!((shown - share).abs() < 0.03, "{mark}: {shown} {main}");
    }
    let worker = timeline(&screen, "work?er?1");
    assert!(worker.starts_with("---") && worker.ends_with('#'), "{screen}");
    assert!(timeline(&screen, "800          shop").chars().all(|c| c == '-'), "{screen}");
    // On a small screen, the legend is below.
    let small = Desk::with(waited, 60, 15).press("5").screen();
    assert!(small.contains(": # running, + runnable, - blocked"), "{small}");
    assert!(timeline(&small, "700   shop").contains("#"), "{small}");
    // Without waits, there is neither.
    let screen = Desk::new(100, 24).press("5").screen();
    assert!(!screen.contains("# running") && screen.contains("Samples"), "{screen}");
}

#[test]
fn idle_threads_are_folded_until_asked_for() {
    let mut desk = Desk::with(waited, 100, 24);
    assert!(desk.press("5").screen().contains("2 idle threads (I to show)"));
    desk.press("I");
    assert!(desk.state.query.idle);
    let screen = desk.screen();
    assert!(screen.contains("idle threads are shown") && screen.contains("I folds idle threads"), "{screen}");
    assert!(desk.press("<Esc>").screen().contains("2 idle threads"));
    assert!(!desk.state.query.idle);
    assert!(desk.press("II").screen().contains("idle threads are folded"));
    // Without waits, the key says how to measure them.
    assert!(Desk::new(100, 24).press("I").screen().contains("use pmc record --wall to measure it"));
}

#[test]
fn live_view_shows_rates() {
    for (width, height) in [(60, 15), (80, 24), (200, 50)] {
        let mut desk = Desk::with(live, width, height);
        let screen = desk.screen();
        assert!(line(&screen, "Symbol").contains("Run ms/s Blk ms/s"), "{screen}");
        // 500,000 of 2,000,000 ns.
        assert!(line(&screen, "main").contains("   250.0    250.0 "), "{screen}");
        assert!(line(&screen, "memcpy").contains("     0.0    100.0 "), "{screen}");
        let threads = desk.press("5").screen();
        assert!(line(&threads, "Command").contains("Run ms/s Blk ms/s"), "{threads}");
        assert!(line(&threads, "701").contains("     0.0    500.0 "), "{threads}");
        assert!(line(&threads, "700          shop").contains("   300.0    500.0 "), "{threads}");
    }
}

/// The same profile with a column for what threads wait for.
fn sited(query: &Query) -> QueryAnswer {
    let mut answer = waited(query);
    let profile = &mut answer.profile;
    profile.keys.insert(0, SortKey::WaitSite);
    let sites = ["running", "mutex", "CPU"].map(|site| profile.texts.add(site));
    for row in &mut profile.events[0].rows {
        let site = match row.total.main_state() {
            Running => sites[0],
            Blocked => sites[1],
            Runnable => sites[2],
        };
        row.cells = [RowCell::Text(site)].into_iter().chain(row.cells.iter().copied()).collect();
    }
    answer
}

#[test]
fn table_shows_states_and_sites_in_one_column() {
    for width in [60, 80, 120] {
        let mut desk = Desk::with(sited, width, 24);
        let screen = desk.screen();
        let heading = line(&screen, "Symbol");
        assert!(heading.contains("Waits") && !heading.contains("State"), "{screen}");
        assert!(line(&screen, "memcpy").contains("mutex"), "{screen}");
    }
}

#[test]
fn time_strip_shows_when_threads_run_and_what_they_do_otherwise() {
    let screen = Desk::with(waited, 100, 24).screen();
    let strip: Vec<char> = screen.lines().nth(2).expect("a strip").chars().collect();
    // From 0 to 0.3 s one thread runs, until 0.5 s all wait, and from 0.8 s on the first one runs again.
    assert!(strip[2] == '█' && strip[40] == '-' && strip[75] == '-' && strip[90] == '█', "{screen}");
}
