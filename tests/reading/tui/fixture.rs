//! A handmade profile and the screen that shows it: the same characters in every run.

use std::path::Path;
use std::sync::Arc;

use pmc_analysis::profile::annotate::{self, Instruction, Listing};
use pmc_analysis::profile::sampled::thread_sums::ThreadSum;
use pmc_analysis::profile::sampled::time_sums::TimeSums;
use pmc_analysis::profile::sampled::tree::CallNode;
use pmc_analysis::profile::sampled::{
    CallTree, FunctionRef, ModuleQuality, Profile, ProfileEvent, ProfileQuality, Query, QueryAnswer, RowCell,
    SampleValue, SortKey, StackDirection, StringId, TableRow,
};
use pmc_symbols::symbol::source_text::SourceLines;
use pmc_symbols::symbol::{MissingDataReason, ModuleDataQuality};
use pmc_sys::abi::CpuMode;
use pmc_text::terminal::Colours;
use pmc_text::terminal::theme::Background;
use pmc_tui::state::{ScreenEffect, ScreenInput, ScreenState};
use pmc_tui::theme::ScreenTheme;
use pmc_tui::{EngineStatus, EngineUpdates, panes};
use ratatui::Terminal;
use ratatui::backend::TestBackend;
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers, MouseEvent, MouseEventKind};

pub(crate) fn value(samples: u64) -> SampleValue {
    SampleValue { samples, period: samples * 1000, squares: samples as f64 * 1e6, ..SampleValue::default() }
}

/// Function, module, level, self samples, total samples.
const FUNCTIONS: &[(&str, &str, char, u64, u64)] = &[
    ("main", "shop", '.', 10, 1000),
    ("shop::serve(Request const&)", "shop", '.', 90, 890),
    ("shop::Basket::price() const", "shop", '.', 300, 500),
    ("memcpy", "libc.so.6", '.', 200, 200),
    ("数据库::查询", "libdb.so", '.', 150, 150),
    ("naïve e\u{301}vil\u{1b}[2J\tname", "[JIT] tid 7", '.', 100, 100),
    ("copy_user_generic", "[kernel.kallsyms]", 'k', 100, 100),
    (
        "a_very_long_name_that_goes_on_and_on_and_on_and_on_until_no_terminal_is_wide_enough_for_it_any_more_at_all<int, std::allocator<int> >::operator()",
        "shop",
        '.',
        50,
        50,
    ),
];

/// The tree's nodes: index of the parent, function, self and total samples.
const NODES: &[(Option<u32>, usize, u64, u64)] = &[
    (None, 0, 10, 1000),
    (Some(0), 1, 90, 890),
    (Some(1), 2, 300, 500),
    (Some(2), 3, 200, 200),
    (Some(1), 4, 150, 150),
    (Some(1), 6, 100, 100),
    (Some(0), 5, 100, 100),
    (Some(1), 7, 50, 50),
];

pub(crate) fn answer(query: &Query) -> QueryAnswer {
    let stripped = "/usr/lib/libdb.so";
    let mut profile = Profile {
        keys: query.keys.clone(),
        has_totals: true,
        trust: ProfileQuality {
            samples: 1000,
            stacks: 1000,
            rooted: 990,
            frames: 5000,
            unnamed: 25,
            ..ProfileQuality::default()
        },
        modules: vec![ModuleQuality {
            path: Path::new(stripped).into(),
            name: StringId::default(),
            build_id: None,
            data: ModuleDataQuality::lacking(MissingDataReason::Stripped {
                path: stripped.into(),
                build_id: None,
            })
            .into(),
            frames: 150,
            unnamed: 25,
            remedy: Some("apt install libdb-dbgsym".into()),
        }],
        ..Profile::default()
    };
    let texts = &mut profile.texts;
    let shop = texts.add("shop");
    let rows = FUNCTIONS.iter().map(|(symbol, dso, level, own, total)| {
        let cell = |key: &SortKey| match key {
            SortKey::Comm => RowCell::Text(shop),
            SortKey::Dso => RowCell::Text(texts.add(dso)),
            _ => RowCell::Symbol(*level, texts.add(symbol)),
        };
        TableRow {
            cells: query.keys.iter().map(cell).collect(),
            own: value(*own),
            total: value(*total),
            ..TableRow::default()
        }
    });
    let rows = rows.collect();
    let mut tree = CallTree::default();
    for (number, (parent, function, own, total)) in NODES.iter().enumerate() {
        let (symbol, dso, level, ..) = FUNCTIONS[*function];
        tree.nodes.push(CallNode {
            symbol: texts.add(symbol),
            dso: texts.add(dso),
            level: if level == 'k' { CpuMode::Kernel } else { CpuMode::User },
            inlined: *function == 7,
            own: value(*own),
            total: value(*total),
            children: Vec::new(),
        });
        match parent {
            Some(parent) => tree.nodes[*parent as usize].children.push(number as u32),
            None => tree.roots.push(number as u32),
        }
    }
    let worker = texts.add("work\u{1b}er\t1");
    let event = |name: &str, rows| ProfileEvent {
        name: name.to_owned(),
        total: value(1000),
        rows,
        tree: query.tree.map(|_| tree.clone()),
        ..ProfileEvent::default()
    };
    profile.events = vec![event("cpu-clock", rows), event("page-faults", Vec::new())];
    let threads = vec![
        ThreadSum { pid: 700, tid: 700, comm: shop, value: value(600) },
        ThreadSum { pid: 700, tid: 701, comm: worker, value: value(300) },
        ThreadSum { pid: 800, tid: 800, comm: shop, value: value(100) },
    ];
    let sums = (0..100).map(|at| [0, 3, 9, 27, 5][at % 5] * (at as u64 + 1)).collect();
    let times = Some(TimeSums { from: 5_000_000_000, slice: 10_000_000, sums });
    QueryAnswer { query: query.clone(), profile, times, threads, ..QueryAnswer::default() }
}

/// The same profile with the start-up frames that every program has.
pub(crate) fn started(query: &Query) -> QueryAnswer {
    let mut answer = answer(query);
    let profile = &mut answer.profile;
    let libc = profile.texts.add("libc.so.6");
    let event = &mut profile.events[0];
    for name in ["__libc_start_call_main", "__libc_start_main@@GLIBC_2.34", "_start"] {
        let symbol = profile.texts.add(name);
        let cell = |key: &SortKey| match key {
            SortKey::Symbol => RowCell::Symbol('.', symbol),
            _ => RowCell::Text(libc),
        };
        let cells = query.keys.iter().map(cell).collect();
        event.rows.insert(0, TableRow { cells, own: value(0), total: value(1000), ..TableRow::default() });
        if let Some(tree) = &mut event.tree {
            let children = tree.roots.clone();
            tree.roots = vec![tree.nodes.len() as u32];
            let level = CpuMode::User;
            let (own, total) = (value(0), value(1000));
            tree.nodes.push(CallNode { symbol, dso: libc, level, inlined: false, own, total, children });
        }
    }
    answer
}

pub(crate) fn listing() -> Listing {
    let text = ["int price(void) {", "\tint sum = 0;", "\tfor (int i = 0; i < n; i++)", "\t\tsum += i;", "}"];
    let text = SourceLines::whole(text.map(str::to_owned).to_vec());
    let instruction = |address: u64, mnemonic: &str, operands: &str| Instruction {
        address,
        bytes: vec![0x90; 4].into(),
        mnemonic: mnemonic.into(),
        operands: operands.into(),
        ..Instruction::default()
    };
    let row = |kind, samples: u64| annotate::ListingRow {
        kind,
        values: if samples > 0 { vec![value(samples)] } else { Vec::new() },
    };
    let source = |line, samples| {
        row(annotate::RowContent::Source { file: 0, line, depth: 0, has_code: samples > 0 }, samples)
    };
    let code = |i, samples| row(annotate::RowContent::Instruction(Box::new(i)), samples);
    Listing {
        symbol: "shop::Basket::price() const".to_owned(),
        dso: "shop".to_owned(),
        events: vec![annotate::ListingEvent {
            name: "cpu-clock".to_owned(),
            total: value(1000),
            own: value(300),
            ..Default::default()
        }],
        files: vec![annotate::SourceFile { path: "/src/shop/basket.c".into(), text: Some(text) }],
        rows: vec![
            source(1, 10),
            code(instruction(0x1150, "pushq", "%rbp"), 10),
            source(2, 0),
            source(3, 40),
            code(instruction(0x1154, "cmpq", "$0x64, %rax"), 40),
            source(4, 250),
            code(instruction(0x1158, "addq", "%rax, %rdx"), 50),
            code(instruction(0x115c, "jne", "0x1154"), 200),
            code(instruction(0x1160, "retq", ""), 0),
        ],
        jumps: vec![annotate::Arrow { from: 7, to: 4, lane: 0 }],
        lanes: 1,
        ..Listing::default()
    }
}

/// The same listing with inlined functions: `sum`, which contains `next` (at no cost) and continues after
/// it, and `add`, which has the highest cost.
pub(crate) fn listing_with_inlined() -> Listing {
    let function = |name: &str, depth| annotate::ListingRow {
        kind: annotate::RowContent::Function { name: name.into(), depth },
        values: vec![],
    };
    let mut listing = listing();
    let code = |at: usize| listing.rows[at].clone();
    listing.rows = vec![
        code(1),
        function("sum", 1),
        code(4),
        function("next", 2),
        code(8),
        function("sum", 1),
        code(6),
        function("price", 0),
        code(8),
        function("add", 1),
        code(7),
        function("price", 0),
    ];
    (listing.jumps, listing.lanes) = (vec![annotate::Arrow { from: 8, to: 4, lane: 0 }], 1);
    listing
}

/// A screen without a terminal, whose engine answers immediately.
pub(crate) struct Desk {
    pub(crate) state: ScreenState,
    /// Effects other than requests for answers, histories and code.
    pub(crate) effects: Vec<ScreenEffect>,
    terminal: Terminal<TestBackend>,
    answers: fn(&Query) -> QueryAnswer,
}

impl Desk {
    pub(crate) fn new(width: u16, height: u16) -> Self {
        Self::with(answer, width, height)
    }

    pub(crate) fn with(answers: fn(&Query) -> QueryAnswer, width: u16, height: u16) -> Self {
        let first =
            Query { event: Some(0), totals: true, tree: Some(StackDirection::Caller), ..Query::default() };
        let mut desk = Self {
            state: ScreenState::new(first, (width, height)),
            effects: Vec::new(),
            answers,
            terminal: Terminal::new(TestBackend::new(width, height)).unwrap(),
        };
        let status = EngineStatus { title: "perf.data".to_owned(), lost: 3, ..EngineStatus::default() };
        let answer = Arc::new(answers(&desk.state.query.clone()));
        desk.take(EngineUpdates { answer: Some(answer), status: Some(status), ..EngineUpdates::default() });
        desk
    }

    pub(crate) fn take(&mut self, poll: EngineUpdates) {
        self.update(ScreenInput::Poll(Box::new(poll)));
    }

    fn update(&mut self, input: ScreenInput) {
        let mut inputs = vec![input];
        while let Some(input) = inputs.pop() {
            for effect in self.state.update(input) {
                match effect {
                    ScreenEffect::Ask(query) => {
                        inputs.push(ScreenInput::Poll(Box::new(EngineUpdates {
                            answer: Some(Arc::new((self.answers)(&query))),
                            ..EngineUpdates::default()
                        })));
                        self.effects.push(ScreenEffect::Ask(query));
                    }
                    ScreenEffect::History(function) => {
                        let sums = (0..100).map(|at| at % 7 * 3).collect();
                        inputs.push(ScreenInput::Poll(Box::new(EngineUpdates {
                            history: Some((function, sums)),
                            ..EngineUpdates::default()
                        })));
                    }
                    ScreenEffect::Annotate(function) => {
                        let code = if function.symbol.contains("price") {
                            Ok(Arc::new(listing()))
                        } else {
                            Err(format!("no code of {}", function.symbol))
                        };
                        let function: FunctionRef = function;
                        inputs.push(ScreenInput::Poll(Box::new(EngineUpdates {
                            listing: Some((function, code)),
                            ..EngineUpdates::default()
                        })));
                    }
                    other => self.effects.push(other),
                }
            }
        }
    }

    /// Presses keys: characters, or names in angle brackets.
    pub(crate) fn press(&mut self, keys: &str) -> &mut Self {
        let mut rest = keys;
        while let Some(c) = rest.chars().next() {
            let (code, modifiers, len) = match rest.strip_prefix('<').and_then(|rest| rest.split_once('>')) {
                Some((name, _)) => {
                    let (code, modifiers) = named(name);
                    (code, modifiers, name.len() + 2)
                }
                None => (KeyCode::Char(c), KeyModifiers::NONE, c.len_utf8()),
            };
            self.update(ScreenInput::Key(KeyEvent::new(code, modifiers)));
            rest = &rest[len..];
        }
        self
    }

    pub(crate) fn mouse(&mut self, kind: MouseEventKind, column: u16, row: u16) -> &mut Self {
        self.update(ScreenInput::Mouse(MouseEvent { kind, column, row, modifiers: KeyModifiers::NONE }));
        self
    }

    pub(crate) fn resize(&mut self, width: u16, height: u16) -> &mut Self {
        self.terminal.backend_mut().resize(width, height);
        self.terminal.autoresize().unwrap();
        self.update(ScreenInput::Resize(width, height));
        self
    }

    /// Text of the screen, without trailing spaces.
    pub(crate) fn screen(&mut self) -> String {
        let state = &self.state;
        self.terminal
            .draw(|frame| panes::draw(frame, state, ScreenTheme::new(Colours::All, Background::Dark)))
            .unwrap();
        let buffer = self.terminal.backend().buffer();
        let mut out = String::new();
        for y in 0..buffer.area.height {
            let mut line = String::new();
            let mut x = 0;
            while x < buffer.area.width {
                let symbol = buffer[(x, y)].symbol();
                line.push_str(symbol);
                x += (pmc_text::text::width(symbol) as u16).max(1);
            }
            out.push_str(line.trim_end());
            out.push('\n');
        }
        out
    }

    /// The line shown in reverse video, if any.
    pub(crate) fn cursor_line(&mut self) -> Option<String> {
        let screen = self.screen();
        let buffer = self.terminal.backend().buffer();
        let is_reversed = |y: &u16| {
            buffer[(buffer.area.width - 1, *y)].modifier.contains(ratatui::style::Modifier::REVERSED)
        };
        let y = (2..buffer.area.height).find(is_reversed)?;
        screen.lines().nth(y.into()).map(str::to_owned)
    }
}

fn named(name: &str) -> (KeyCode, KeyModifiers) {
    let plain = |code| (code, KeyModifiers::NONE);
    match name {
        "Enter" => plain(KeyCode::Enter),
        "Esc" => plain(KeyCode::Esc),
        "Tab" => plain(KeyCode::Tab),
        "BackTab" => plain(KeyCode::BackTab),
        "Up" => plain(KeyCode::Up),
        "Down" => plain(KeyCode::Down),
        "Left" => plain(KeyCode::Left),
        "Right" => plain(KeyCode::Right),
        "PgUp" => plain(KeyCode::PageUp),
        "PgDn" => plain(KeyCode::PageDown),
        "End" => plain(KeyCode::End),
        "Backspace" => plain(KeyCode::Backspace),
        _ => match name.strip_prefix('^') {
            Some(c) => (KeyCode::Char(c.chars().next().unwrap()), KeyModifiers::CONTROL),
            None => panic!("no key is called {name}"),
        },
    }
}
