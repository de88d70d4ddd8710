//! Callgrind's format: valgrind's callgrind, and the converters for KCachegrind.
//!
//! ```text
//!   events: Ir Dr                fl=(1) main.c          file; fn=(2) main    function; ob=(3) app   module
//!   positions: line              12 500 7               line, its own cost per event
//!                                cfn=(4) work           the function called from here
//!                                calls=3 20             number of calls
//!                                14 900 30              line of the call, inclusive cost
//! ```
//!
//! The format holds costs of functions and of calls between two functions, but no stacks. The importer makes
//! stacks: it divides a function's own cost among its callers in proportion to the costs of their calls. The
//! own costs of functions and lines are exact. Inclusive costs are exact unless functions are recursive.

use std::collections::HashMap;

use super::error::ImportError;
use super::profile::{ImportId, ImportedCall, ImportedProfile, ImportedSample};
use super::text::{head_lines, hex, lines};

/// Maximum number of different stacks of functions.
const MOST_CONTEXTS: usize = 200_000;
/// Contexts with less than this share of the total cost are not divided further.
const SMALLEST_SHARE: f64 = 1e-6;
/// Maximum depth of a stack.
const MOST_DEPTH: usize = 500;
/// Maximum number of lines and calls to visit in all contexts. The remaining costs go to one context of each
/// function.
const MOST_STEPS: usize = 20_000_000;

pub(super) fn is_format(head: &[u8]) -> bool {
    let lines: Vec<_> = head_lines(head).take(100).collect();
    let has = |start: &str| lines.iter().any(|line| line.starts_with(start));
    has("# callgrind format")
        || has("events:") && (has("fn=") || has("fl=") || has("ob=") || has("positions:"))
}

/// A line of a function.
type CostLine = (ImportId, u32);

#[derive(Default)]
struct GraphFunction {
    call: ImportedCall,
    /// Own costs by file and line, one per event.
    own: indexmap::IndexMap<CostLine, Vec<u64>>,
    /// Called functions, by function, file and line.
    calls: indexmap::IndexMap<(usize, CostLine), f64>,
    /// Sum of the costs of calls to this function by others.
    called: f64,
}

/// Names by their numbers, of one kind of name.
#[derive(Default)]
struct NumberedNames(HashMap<u64, ImportId>);

impl NumberedNames {
    /// Parses `(12) name`, `(12)` or `name`.
    fn parse(&mut self, text: &str, profile: &mut ImportedProfile) -> Option<ImportId> {
        let Some((number, name)) = text.strip_prefix('(').and_then(|rest| rest.split_once(')')) else {
            return Some(profile.text(text));
        };
        let Ok(number) = number.parse() else { return Some(profile.text(text)) };
        if name.trim().is_empty() {
            return self.0.get(&number).copied();
        }
        let name = profile.text(name);
        self.0.insert(number, name);
        Some(name)
    }
}

#[derive(Default)]
struct GraphParser {
    events: Vec<ImportId>,
    /// Number of positions before the costs, and the index of the line among them.
    positions: usize,
    line_at: Option<usize>,
    last: Vec<u64>,
    files: NumberedNames,
    names: NumberedNames,
    modules: NumberedNames,
    functions: indexmap::IndexMap<(ImportId, ImportId, ImportId), GraphFunction>,
    module: ImportId,
    /// The file of the function, and that of the current lines.
    file: ImportId,
    line_file: ImportId,
    function: Option<usize>,
    called_module: Option<ImportId>,
    called_file: Option<ImportId>,
    called: Option<ImportId>,
    /// Whether the next line is the cost of a call.
    is_call: bool,
}

pub(super) fn read(bytes: &[u8], mut profile: ImportedProfile) -> Result<ImportedProfile, ImportError> {
    let mut parser = GraphParser { positions: 1, line_at: Some(0), ..GraphParser::default() };
    for (number, line) in lines(bytes) {
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        parser.line(line, &mut profile).map_err(|what| ImportError::line(number, what))?;
    }
    if parser.events.is_empty() {
        return Err(ImportError::file("it has no line \"events:\""));
    }
    divide(&mut parser, &mut profile)?;
    profile.notes.push(
        "callgrind's format has no stacks; pmc divides costs among callers in proportion to their calls"
            .to_owned(),
    );
    Ok(profile)
}

impl GraphParser {
    fn line(&mut self, line: &str, profile: &mut ImportedProfile) -> Result<(), String> {
        if line.starts_with(|c: char| c.is_ascii_digit() || "+-*".contains(c)) {
            return self.costs(line);
        }
        if let Some((key, value)) = line.split_once('=') {
            let value = value.trim();
            let unknown = || format!("{key}= refers to a number without a name: {value}");
            match key {
                "fl" => {
                    self.file = self.files.parse(value, profile).ok_or_else(unknown)?;
                    self.line_file = self.file;
                }
                "fi" | "fe" => self.line_file = self.files.parse(value, profile).ok_or_else(unknown)?,
                "ob" => self.module = self.modules.parse(value, profile).ok_or_else(unknown)?,
                "fn" => {
                    let name = self.names.parse(value, profile).ok_or_else(unknown)?;
                    self.line_file = self.file;
                    self.function = Some(self.number(self.module, self.file, name));
                    (self.called_module, self.called_file, self.called) = (None, None, None);
                }
                "cob" => self.called_module = Some(self.modules.parse(value, profile).ok_or_else(unknown)?),
                "cfi" | "cfl" => {
                    self.called_file = Some(self.files.parse(value, profile).ok_or_else(unknown)?)
                }
                "cfn" => self.called = Some(self.names.parse(value, profile).ok_or_else(unknown)?),
                "calls" => self.is_call = true,
                // Jumps do not contribute to costs.
                "jump" | "jcnd" | "jfi" | "jfn" | "rcalls" | "frfn" => {}
                _ if key.contains(':') => {}
                _ => return Err(format!("unknown key {key:?}")),
            }
            return Ok(());
        }
        let Some((key, value)) = line.split_once(':') else {
            return Err("neither a cost line nor a key with a value".to_owned());
        };
        match key {
            "events" => {
                self.events.clear();
                for name in value.split_ascii_whitespace() {
                    self.events.push(profile.event(name, "").map_err(|error| error.to_string())?);
                }
            }
            "positions" => {
                let words: Vec<&str> = value.split_ascii_whitespace().collect();
                if words.is_empty() || words.len() > 2 {
                    return Err("positions must be line, instr, or both".to_owned());
                }
                self.positions = words.len();
                self.line_at = words.iter().position(|word| *word == "line");
            }
            _ => {}
        }
        Ok(())
    }

    fn number(&mut self, module: ImportId, file: ImportId, name: ImportId) -> usize {
        let entry = self.functions.entry((module, file, name));
        let number = entry.index();
        let call = ImportedCall { name, module, file, ..ImportedCall::default() };
        entry.or_insert_with(|| GraphFunction { call, ..GraphFunction::default() });
        number
    }

    /// Parses a line with positions and costs. A position may be relative to the last one.
    fn costs(&mut self, line: &str) -> Result<(), String> {
        let mut words = line.split_ascii_whitespace();
        self.last.resize(self.positions, 0);
        for last in &mut self.last {
            let word = words.next().ok_or("a position is missing")?;
            let number = |text: &str| match text.strip_prefix("0x") {
                Some(_) => hex(text),
                None => text.parse().ok(),
            };
            let invalid = || format!("invalid position {word:?}");
            *last = match word.as_bytes().first() {
                Some(b'*') => *last,
                Some(b'+') => last.wrapping_add(number(&word[1..]).ok_or_else(invalid)?),
                Some(b'-') => last.wrapping_sub(number(&word[1..]).ok_or_else(invalid)?),
                _ => number(word).ok_or_else(invalid)?,
            };
        }
        let mut costs = Vec::with_capacity(self.events.len());
        for word in words {
            costs.push(word.parse::<u64>().map_err(|_| format!("invalid cost {word:?}"))?);
        }
        if costs.len() > self.events.len() {
            return Err(format!("{} costs, but {} events", costs.len(), self.events.len()));
        }
        costs.resize(self.events.len(), 0);
        let line = self.line_at.map_or(0, |at| u32::try_from(self.last[at]).unwrap_or(0));
        let function = self.function.ok_or("a cost before the first function (fn=)")?;
        let at = (self.line_file, line);
        if !std::mem::take(&mut self.is_call) {
            let own = self.functions[function].own.entry(at).or_insert_with(|| vec![0; costs.len()]);
            own.resize(costs.len().max(own.len()), 0);
            own.iter_mut().zip(&costs).for_each(|(sum, cost)| *sum = sum.saturating_add(*cost));
            return Ok(());
        }
        let name = self.called.take().ok_or("calls= without a called function (cfn=)")?;
        let module = self.called_module.take().unwrap_or(self.module);
        // As in KCachegrind, the default is the file of the line.
        let file = self.called_file.take().unwrap_or(self.line_file);
        let callee = self.number(module, file, name);
        let cost = costs.first().copied().unwrap_or(0) as f64;
        *self.functions[function].calls.entry((callee, at)).or_default() += cost;
        if callee != function {
            self.functions[callee].called += cost;
        }
        Ok(())
    }
}

/// A function in one of its contexts, while the call graph is divided into stacks.
struct OpenContext {
    function: usize,
    /// Locations of the callers, as a list: the innermost caller, and the context that it belongs to.
    caller: Option<(ImportId, usize)>,
    depth: usize,
    /// The share of the function's cost that belongs to this context.
    share: f64,
}

fn divide(parser: &mut GraphParser, profile: &mut ImportedProfile) -> Result<(), ImportError> {
    let thread = profile.named_thread("")?;
    let functions = std::mem::take(&mut parser.functions);
    let functions: Vec<GraphFunction> = functions.into_values().collect();
    let own = functions.iter().flat_map(|function| function.own.values());
    let total: f64 = own.filter_map(|costs| costs.first()).map(|cost| *cost as f64).sum();
    // The costs that no context has received yet.
    let mut rest: Vec<Vec<Vec<u64>>> =
        functions.iter().map(|function| function.own.values().cloned().collect()).collect();
    let roots = (0..functions.len()).filter(|number| functions[*number].called <= 0.0);
    let mut contexts: Vec<OpenContext> =
        roots.map(|function| OpenContext { function, caller: None, depth: 0, share: 1.0 }).collect();
    // The context with the largest share of each function, which gets what rounding leaves.
    let mut largest: HashMap<usize, (f64, usize)> = HashMap::new();
    let (mut at, mut steps) = (0, 0usize);
    while at < contexts.len() {
        let OpenContext { function: number, share, depth, .. } = contexts[at];
        let function = &functions[number];
        steps += (function.own.len() + function.calls.len()) * (depth + 1);
        if largest.get(&number).is_none_or(|(known, _)| *known < share) {
            largest.insert(number, (share, at));
        }
        for (row, (position, costs)) in function.own.iter().enumerate().filter(|_| steps < MOST_STEPS) {
            let shares: Vec<u64> = costs
                .iter()
                .zip(&rest[number][row])
                .map(|(cost, left)| ((*cost as f64 * share) as u64).min(*left))
                .collect();
            rest[number][row].iter_mut().zip(&shares).for_each(|(left, share)| *left -= share);
            add(profile, parser, &contexts, at, (function, *position), &shares, thread)?;
        }
        let is_open = depth < MOST_DEPTH && contexts.len() < MOST_CONTEXTS && steps < MOST_STEPS;
        for ((callee, position), cost) in function.calls.iter().filter(|_| is_open) {
            let called = functions[*callee].called;
            let is_small = cost * share < total * SMALLEST_SHARE;
            if called <= 0.0 || is_small || is_open_in(&contexts, at, *callee) {
                continue;
            }
            let caller = location(profile, function, *position);
            let share = (share * cost / called).min(1.0);
            contexts.push(OpenContext {
                function: *callee,
                caller: Some((caller, at)),
                depth: depth + 1,
                share,
            });
        }
        at += 1;
    }
    // Costs of recursive functions, of small contexts, and those lost by rounding.
    for (number, function) in functions.iter().enumerate() {
        let context = match largest.get(&number) {
            Some((_, context)) => *context,
            None => {
                contexts.push(OpenContext { function: number, caller: None, depth: 0, share: 0.0 });
                contexts.len() - 1
            }
        };
        for (row, position) in function.own.keys().enumerate() {
            add(profile, parser, &contexts, context, (function, *position), &rest[number][row], thread)?;
        }
    }
    Ok(())
}

/// Whether a function is in this context or one of its callers.
fn is_open_in(contexts: &[OpenContext], mut at: usize, function: usize) -> bool {
    loop {
        if contexts[at].function == function {
            return true;
        }
        match contexts[at].caller {
            Some((_, caller)) => at = caller,
            None => return false,
        }
    }
}

fn location(profile: &mut ImportedProfile, function: &GraphFunction, (file, line): CostLine) -> ImportId {
    profile.plain_location(ImportedCall { file, line, ..function.call })
}

fn add(
    profile: &mut ImportedProfile,
    parser: &GraphParser,
    contexts: &[OpenContext],
    context: usize,
    (function, position): (&GraphFunction, CostLine),
    costs: &[u64],
    thread: ImportId,
) -> Result<(), ImportError> {
    if costs.iter().all(|cost| *cost == 0) {
        return Ok(());
    }
    let mut locations = vec![location(profile, function, position)];
    let mut caller = contexts[context].caller;
    while let Some((location, outer)) = caller {
        locations.push(location);
        caller = contexts[outer].caller;
    }
    let stack = profile.stack(&locations)?;
    for (event, value) in parser.events.iter().zip(costs).filter(|(_, value)| **value > 0) {
        let (event, value) = (*event, *value);
        profile.add(ImportedSample { event, stack, thread, value, ..ImportedSample::default() })?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    const EXAMPLE: &str = "# callgrind format\nversion: 1\nevents: Ir Dr\n\nob=(1) app\nfl=(1) a.c\nfn=(1) main\n\
        10 5 1\ncfn=(2) work\ncalls=2 20\n+2 60 6\ncfn=(3) other\ncalls=1 30\n* 40 4\n\nfn=(2)\n20 60 6\n\n\
        fn=(3)\n30 10 1\ncfn=(2)\ncalls=1 20\n31 30 3\n\ntotals: 75 8\n";

    #[test]
    fn costs_are_divided_among_callers() {
        let text = EXAMPLE.replace("20 60 6", "20 90 9");
        assert!(is_format(text.as_bytes()));
        let profile = read(text.as_bytes(), ImportedProfile::new()).unwrap();
        let name = |location: &ImportId| {
            let call = profile.calls[profile.locations[*location as usize][0] as usize];
            format!("{}:{}", profile.get_text(call.name), call.line)
        };
        let mut rows: Vec<(String, u64)> = profile
            .samples
            .iter()
            .filter(|sample| sample.event == 0)
            .map(|sample| {
                let stack = profile.stacks[sample.stack as usize].iter().map(name);
                (stack.collect::<Vec<_>>().join(" "), sample.value)
            })
            .collect();
        rows.sort();
        let expected = [
            ("main:10", 5),
            ("other:30 main:12", 10),
            ("work:20 main:12", 60),
            ("work:20 other:31 main:12", 30),
        ];
        assert_eq!(rows, expected.map(|(stack, cost)| (stack.to_owned(), cost)));
    }

    #[test]
    fn own_costs_of_recursive_functions_are_kept() {
        let text = "events: Ir\nfn=a\n1 7\ncfn=b\ncalls=1 2\n1 9\nfn=b\n2 9\ncfn=a\ncalls=1 1\n2 5\n";
        let profile = read(text.as_bytes(), ImportedProfile::new()).unwrap();
        assert_eq!(profile.samples.iter().map(|sample| sample.value).sum::<u64>(), 16);
    }

    #[test]
    fn costs_beyond_the_limit_are_rejected() {
        let text = format!("events: Ir\nfn=a\n1 {0}\n2 {0}\n", u64::MAX);
        let error = read(text.as_bytes(), ImportedProfile::new()).unwrap_err().to_string();
        assert!(error.contains("more than pmc imports"), "{error}");
    }

    #[test]
    fn bad_lines_are_reported_with_their_number() {
        let error = |text: &str| read(text.as_bytes(), ImportedProfile::new()).unwrap_err().to_string();
        assert!(error("events: Ir\nfn=(7)\n").starts_with("line 2: fn= refers"));
        assert!(error("events: Ir\n5 6\n").contains("before the first function"));
        assert!(error("events: Ir\nfn=a\n5 6 7\n").contains("2 costs, but 1 events"));
        assert!(error("events: Ir\nfn=a\n5 x\n").contains("invalid cost"));
        assert!(error("version: 1\n").contains("events:"));
    }
}
