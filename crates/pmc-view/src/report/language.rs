//! The self cost and total cost of functions in languages with a runtime, for human readers. Self cost
//! includes the cost of the interpreter.
//!
//! ```text
//!   Functions by name of their runtime; Self includes the native code that they run
//!          Self        Total  Self time  Total time  Function
//!   81.6% ±3.1   100.0% ±0.8     204 ms      250 ms  ~ py::fib:/srv/shop.py
//! ```

use std::io::{self, Write};

use super::name::StyledWords;
use super::{ReportLayout, percent};
use pmc_analysis::profile::sampled::{CodeKind, LanguageFunction, Profile, ProfileEvent, is_clock};
use pmc_text::table::{self, right};
use pmc_text::terminal::theme::TextRole;
use pmc_text::text::width;
use pmc_text::units::{counted, duration};

/// Maximum number of functions to list, unless all rows are shown.
const MAX_FUNCTIONS: usize = 10;
/// Minimum share of a listed function, in percent, unless all rows are shown.
const LEAST: f64 = 1.0;

pub(super) fn write(
    out: &mut dyn Write,
    profile: &Profile,
    event: &ProfileEvent,
    layout: &ReportLayout,
) -> io::Result<()> {
    let functions = &event.language_functions;
    let share = |function: &LanguageFunction| event.share(event.cost(&function.total)) * 100.0;
    let shown: Vec<&LanguageFunction> = match layout.rows {
        usize::MAX => functions.iter().collect(),
        rows => functions.iter().filter(|of| share(of) >= LEAST).take(rows.min(MAX_FUNCTIONS)).collect(),
    };
    if shown.is_empty() {
        return Ok(());
    }
    let has_times = is_clock(&event.name);
    let heading = ["Self", "Total", "Self time", "Total time"];
    let columns = if has_times { 4 } else { 2 };
    let cells = |function: &&LanguageFunction| {
        let values = [&function.own, &function.total];
        let shares = values.map(|value| percent(event, event.share_of, value, layout));
        let times = values.map(|value| duration(value.period as f64));
        shares.into_iter().chain(times).take(columns).collect()
    };
    let heading = heading.into_iter().take(columns).map(str::to_owned).collect();
    let rows = std::iter::once(heading).chain(shown.iter().map(cells));
    let shapes = vec![right(2, 0); columns];
    let mut lines = table::lines(&shapes, rows).into_iter();

    writeln!(out)?;
    writeln!(out, "  Functions as named by their language runtime; Self includes the native code they run")?;
    let heading = lines.next().unwrap_or_default();
    writeln!(out, "{}", layout.paint.words(TextRole::Heading, &format!("{heading}  Function")))?;
    for (line, function) in lines.zip(&shown) {
        let room = layout.width().map_or(usize::MAX, |columns| columns.saturating_sub(width(&line) + 2));
        let name = profile.texts.get(function.symbol);
        let name = StyledWords::of_function(name, (CodeKind::Generated, false), "", room);
        writeln!(out, "{line}  {}", name.painted(layout.paint))?;
    }
    match functions.len() - shown.len() {
        0 => Ok(()),
        more => writeln!(out, "  … and {} (--limit 0 shows all)", counted(more as u64, "more function")),
    }
}
