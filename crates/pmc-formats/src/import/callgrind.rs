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
//! own costs of functions and lines are exact. Inclusive costs are exact except for rounding.
//!
//! Callgrind counts the cost of a call only if the called function is not already active. So with recursion,
//! a function's calls can cost more than the function itself and its own calls (the missing part is the cost
//! of active functions that it called again), and others cost more than the calls to them:
//!
//! ```text
//!   main calls f: 100    f: 70, calls g: 60    g: 30, calls f: not counted
//!   in 100, out 130                            in 60, out 30
//!   stacks: main f: 40   main f g: 30   main f g f: 30
//! ```
//!
//! The importer matches both (see [`CallFlows`]). Xdebug's files hold each single call, so their stacks are
//! exact ([`call_order`](super::call_order)).

use std::collections::{HashMap, HashSet, VecDeque};

use super::call_order::CallList;
use super::error::ImportError;
use super::profile::{ImportId, ImportedCall, ImportedProfile, ImportedSample};
use super::text::{head_lines, hex, is_kernel, lines};
use crate::export::callgrind::event_word;
use pmc_text::units::thousands;

/// Maximum number of different stacks of functions.
const MOST_CONTEXTS: usize = 200_000;
/// Contexts with less than this share of the total cost are not divided further.
const SMALLEST_SHARE: f64 = 1e-6;
/// Maximum depth of a stack.
const MOST_DEPTH: usize = 500;
/// Maximum number of lines and calls to visit in all contexts of an event, and of all events.
const MOST_STEPS: usize = 20_000_000;
const MOST_STEPS_IN_ALL: usize = 100_000_000;
/// Smallest share of the totals that is reported if no function has it. Writers round.
const LEAST_MISSING: f64 = 0.01;
/// Number of rounds that divide the costs of recursive functions among their contexts.
const ROUNDS: usize = 16;

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
    calls: indexmap::IndexMap<(usize, CostLine), Vec<u64>>,
}

impl GraphFunction {
    /// Returns the sum of the function's own costs of an event.
    fn own_cost(&self, event: usize) -> u64 {
        self.own.values().map(|costs| cost_of(costs, event)).fold(0, u64::saturating_add)
    }

    /// Iterates over the calls of other functions with their costs of an event. `function` is the number of
    /// this function.
    fn calls(&self, function: usize, event: usize) -> impl Iterator<Item = GraphCall> {
        let calls = self.calls.iter().enumerate().filter(move |(_, ((callee, _), _))| *callee != function);
        calls.map(move |(number, ((callee, at), costs))| GraphCall {
            number,
            callee: *callee,
            at: *at,
            cost: cost_of(costs, event) as f64,
        })
    }
}

/// A call with its cost of one event.
struct GraphCall {
    /// Index of the call in its function.
    number: usize,
    callee: usize,
    at: CostLine,
    cost: f64,
}

/// Returns the cost of an event. Lines may have costs of the first events only.
fn cost_of(costs: &[u64], event: usize) -> u64 {
    costs.get(event).copied().unwrap_or(0)
}

/// Adds costs per event.
fn add_costs(sums: &mut Vec<u64>, costs: &[u64]) {
    sums.resize(costs.len().max(sums.len()), 0);
    sums.iter_mut().zip(costs).for_each(|(sum, cost)| *sum = sum.saturating_add(*cost));
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
    /// Full names of pmc's events, by their words in "events:".
    event_names: HashMap<String, String>,
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
    /// The file's own sums of all costs, one per event.
    totals: Vec<u64>,
    /// All calls, of a file by Xdebug.
    list: Option<CallList>,
}

pub(super) fn read(bytes: &[u8], mut profile: ImportedProfile) -> Result<ImportedProfile, ImportError> {
    let mut parser = GraphParser { positions: 1, line_at: Some(0), ..GraphParser::default() };
    for (number, line) in lines(bytes) {
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        if let Err(what) = parser.line(line, &mut profile) {
            profile.lose(ImportError::line(number, what))?;
        }
    }
    if parser.events.is_empty() {
        return Err(ImportError::file("it has no line \"events:\""));
    }
    let missing = parser.missing_costs(&profile);
    profile.notes.extend(missing);
    let thread = profile.named_thread("")?;
    let sample = ImportedSample { thread, ..ImportedSample::default() };
    if let Some(list) = parser.list.as_ref().filter(|list| list.is_tree()) {
        list.add_samples(&parser.events, sample, &mut profile)?;
        return Ok(profile);
    }
    divide(&mut parser, sample, &mut profile)?;
    profile.notes.push(
        "callgrind's format has no stacks; pmc divides costs among callers in proportion to their calls"
            .to_owned(),
    );
    Ok(profile)
}

impl GraphParser {
    fn line(&mut self, line: &str, profile: &mut ImportedProfile) -> Result<(), String> {
        if line.starts_with(|c: char| c.is_ascii_digit() || "+-*".contains(c)) {
            return self.costs(line, profile);
        }
        if let Some(event) = line.strip_prefix("event:") {
            let named = event.split_once(" : ").map(|(word, name)| (word.trim(), name.trim()));
            if let Some((word, name)) = named.filter(|(word, name)| event_word(name) == *word) {
                self.event_names.insert(word.to_owned(), name.to_owned());
            }
            return Ok(());
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
                    // The costs that follow an invalid name belong to no function.
                    self.function = None;
                    let name = self.names.parse(value, profile).ok_or_else(unknown)?;
                    self.line_file = self.file;
                    let function = self.number(self.module, self.file, name);
                    self.function = Some(function);
                    if let Some(list) = &mut self.list {
                        list.begin(function, self.events.len());
                    }
                    (self.called_module, self.called_file, self.called) = (None, None, None);
                }
                "cob" => self.called_module = Some(self.modules.parse(value, profile).ok_or_else(unknown)?),
                "cfi" | "cfl" => {
                    self.called_file = Some(self.files.parse(value, profile).ok_or_else(unknown)?)
                }
                "cfn" => self.called = Some(self.names.parse(value, profile).ok_or_else(unknown)?),
                "calls" => self.is_call = true,
                // Jumps do not contribute to costs, but they define names.
                "jfi" => drop(self.files.parse(value, profile)),
                "jfn" | "frfn" => drop(self.names.parse(value, profile)),
                "jump" | "jcnd" | "rcalls" => {}
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
                for word in value.split_ascii_whitespace() {
                    let name = self.event_names.get(word).map_or(word, String::as_str);
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
            // A file may contain several runs.
            "creator" if value.trim().starts_with("xdebug") && self.functions.is_empty() => {
                self.list = Some(CallList::default());
            }
            // Files with several parts have a line for each.
            "totals" => {
                let costs: Vec<u64> =
                    value.split_ascii_whitespace().map_while(|word| word.parse().ok()).collect();
                add_costs(&mut self.totals, &costs);
            }
            _ => {}
        }
        Ok(())
    }

    /// Returns a note if the costs of all functions are less than the file's totals. `stackprof --callgrind`
    /// leaves out the own costs of functions in C.
    fn missing_costs(&self, profile: &ImportedProfile) -> Option<String> {
        if profile.lost().is_some() {
            return None;
        }
        (0..self.events.len()).zip(&self.totals).find_map(|(event, total)| {
            let own = self.functions.values().map(|function| function.own_cost(event));
            let sum = own.fold(0, u64::saturating_add);
            let name = &profile.events[self.events[event] as usize].name;
            let is_less = (sum as f64) < *total as f64 * (1.0 - LEAST_MISSING);
            is_less.then(|| {
                format!(
                    "its totals are {} {name}, but the costs of its functions are only {}: its writer left out the rest",
                    thousands(*total),
                    thousands(sum)
                )
            })
        })
    }

    fn number(&mut self, module: ImportId, file: ImportId, name: ImportId) -> usize {
        let entry = self.functions.entry((module, file, name));
        let number = entry.index();
        let call = ImportedCall { name, module, file, ..ImportedCall::default() };
        entry.or_insert_with(|| GraphFunction { call, ..GraphFunction::default() });
        number
    }

    /// Parses a line with positions and costs. A position may be relative to the last one.
    fn costs(&mut self, line: &str, profile: &mut ImportedProfile) -> Result<(), String> {
        let is_call = std::mem::take(&mut self.is_call);
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
        let line = self.line_at.map_or(0, |at| u32::try_from(self.last[at]).unwrap_or(0));
        let function = self.function.ok_or("a cost before the first function (fn=)")?;
        let at = (self.line_file, line);
        let location = self.list.is_some().then(|| location(profile, &self.functions[function], at));
        if !is_call {
            if let (Some(list), Some(location)) = (&mut self.list, location) {
                list.own(location, &costs);
            }
            add_costs(self.functions[function].own.entry(at).or_default(), &costs);
            return Ok(());
        }
        let name = self.called.take().ok_or("calls= without a called function (cfn=)")?;
        let module = self.called_module.take().unwrap_or(self.module);
        // As in KCachegrind, the default is the file of the line.
        let file = self.called_file.take().unwrap_or(self.line_file);
        let callee = self.number(module, file, name);
        if let (Some(list), Some(location)) = (&mut self.list, location) {
            list.call(callee, location);
        }
        add_costs(self.functions[function].calls.entry((callee, at)).or_default(), &costs);
        Ok(())
    }
}

/// The costs of an event that flow between functions.
struct CallFlows {
    /// Sum of the own costs of all functions.
    total: f64,
    /// By function: the cost with which it is entered, through calls by others and from outside.
    entered: Vec<f64>,
    /// By function: the part of `entered` that no call explains.
    outside: Vec<f64>,
    /// By function: functions that were active and called again, and the cost of these calls.
    again: Vec<Vec<(usize, f64)>>,
}

impl CallFlows {
    fn new(functions: &[GraphFunction], own: &[f64], event: usize, most_steps: usize) -> Self {
        let mut called = vec![0.0; functions.len()];
        let mut cost = own.to_vec();
        let total: f64 = own.iter().sum();
        for (number, function) in functions.iter().enumerate() {
            for call in function.calls(number, event) {
                called[call.callee] += call.cost;
                cost[number] += call.cost;
            }
        }
        // What a function costs beyond the calls to it.
        let mut outside: Vec<f64> =
            cost.iter().zip(&called).map(|(cost, called)| (cost - called).max(0.0)).collect();
        let mut again = vec![Vec::new(); functions.len()];
        let mut steps = 0;
        let least = total * SMALLEST_SHARE;
        for number in 0..functions.len() {
            let mut missing = called[number] - cost[number];
            if missing <= least {
                continue;
            }
            // The nearest functions that it calls, directly or not, that cost more than the calls to them.
            let (mut seen, mut queue) = (HashSet::from([number]), VecDeque::from([number]));
            while let Some(at) = queue.pop_front().filter(|_| missing > least && steps < most_steps) {
                for (callee, _) in functions[at].calls.keys() {
                    steps += 1;
                    if !seen.insert(*callee) {
                        continue;
                    }
                    queue.push_back(*callee);
                    let part = outside[*callee].min(missing);
                    if part > 0.0 {
                        outside[*callee] -= part;
                        missing -= part;
                        again[number].push((*callee, part));
                    }
                }
            }
        }
        let entered = called.iter().zip(&outside).map(|(called, outside)| called + outside).collect();
        Self { total, entered, outside, again }
    }
}

/// A function in one of its contexts, while the call graph is divided into stacks.
struct OpenContext {
    function: usize,
    depth: usize,
    /// How the function was entered; `None` from outside.
    entry: Option<ContextEntry>,
    part: ContextPart,
    /// The part of the function's cost that belongs to this context: of its own cost, and of each call unless
    /// the called function is active.
    factor: f64,
}

/// A call that leads to a context.
#[derive(Clone, Copy)]
struct ContextEntry {
    /// Index of the caller's context.
    caller: usize,
    /// Index of the caller's call; `None` if callgrind did not count its cost.
    call: Option<usize>,
    cost: f64,
    /// Location of the call.
    location: ImportId,
}

/// What a context receives of the cost with which it is entered.
#[derive(Clone, Copy)]
enum ContextPart {
    /// A share of the function's cost.
    Share,
    /// A cost, because the function is already active. `all` is the cost of the function without its calls of
    /// active functions.
    Again { all: f64 },
}

/// Sums over the contexts of a function.
#[derive(Clone)]
struct ContextSums {
    /// Sum of the shares.
    shares: f64,
    /// By call: the part of its cost that belongs to contexts in which the function was already active.
    calls_again: Vec<f64>,
}

/// Divides the costs of all events. `sample` has their thread.
fn divide(
    parser: &mut GraphParser,
    sample: ImportedSample,
    profile: &mut ImportedProfile,
) -> Result<(), ImportError> {
    let functions: Vec<GraphFunction> = std::mem::take(&mut parser.functions).into_values().collect();
    for (number, event) in parser.events.iter().enumerate() {
        let most_steps = (MOST_STEPS_IN_ALL / parser.events.len()).min(MOST_STEPS);
        let mut graph = EventGraph::new(&functions, number, most_steps);
        graph.find_contexts(profile);
        for _ in 0..ROUNDS {
            graph.divide();
        }
        graph.add_samples(ImportedSample { event: *event, ..sample }, profile)?;
    }
    Ok(())
}

/// The call graph with the costs of one event.
struct EventGraph<'a> {
    functions: &'a [GraphFunction],
    /// Index of the event in the costs.
    number: usize,
    /// Own costs by function.
    own: Vec<f64>,
    flows: CallFlows,
    /// All contexts, callers first.
    contexts: Vec<OpenContext>,
    /// Sums by function.
    sums: Vec<ContextSums>,
    /// Number of lines and calls visited, and its maximum.
    steps: usize,
    most_steps: usize,
}

impl<'a> EventGraph<'a> {
    fn new(functions: &'a [GraphFunction], number: usize, most_steps: usize) -> Self {
        let own: Vec<f64> = functions.iter().map(|function| function.own_cost(number) as f64).collect();
        let flows = CallFlows::new(functions, &own, number, most_steps);
        let sums = functions
            .iter()
            .map(|function| ContextSums { shares: 1.0, calls_again: vec![0.0; function.calls.len()] })
            .collect();
        Self { functions, number, own, flows, contexts: Vec::new(), sums, steps: 0, most_steps }
    }

    /// Finds the contexts of all functions, with preliminary factors.
    fn find_contexts(&mut self, profile: &mut ImportedProfile) {
        let least = self.flows.total * SMALLEST_SHARE;
        for (function, outside) in
            self.flows.outside.iter().enumerate().filter(|(_, outside)| **outside > least)
        {
            let factor = outside / self.flows.entered[function];
            let part = ContextPart::Share;
            self.contexts.push(OpenContext { function, depth: 0, entry: None, part, factor });
        }
        let mut at = 0;
        while at < self.contexts.len() {
            let OpenContext { function: number, depth, .. } = self.contexts[at];
            let function = &self.functions[number];
            self.steps += (function.own.len() + function.calls.len()) * (depth + 1);
            if depth < MOST_DEPTH && self.contexts.len() < MOST_CONTEXTS && self.steps < self.most_steps {
                self.add_callees(at, profile);
            }
            at += 1;
        }
    }

    /// Adds the contexts of the functions that a context calls.
    fn add_callees(&mut self, at: usize, profile: &mut ImportedProfile) {
        let OpenContext { function: number, depth, factor, part, .. } = self.contexts[at];
        let function = &self.functions[number];
        let is_again = matches!(part, ContextPart::Again { .. });
        let calls = function
            .calls(number, self.number)
            .map(|call| (Some(call.number), call.callee, call.at, call.cost));
        let again = self.flows.again[number].iter().filter(|_| !is_again).map(|(callee, cost)| {
            let call = function.calls.keys().find(|(known, _)| known == callee);
            let line = call.map(|(_, line)| *line).or(function.own.keys().next().copied());
            (None, *callee, line.unwrap_or_default(), *cost)
        });
        let calls: Vec<_> = calls.chain(again).collect();
        for (call, callee, line, cost) in calls {
            let is_open = self.is_open_in(at, callee);
            if cost * factor <= self.flows.total * SMALLEST_SHARE || is_open && is_again {
                continue;
            }
            let entry = ContextEntry { caller: at, call, cost, location: location(profile, function, line) };
            let index = self.contexts.len();
            let (depth, part) = (depth + 1, ContextPart::Share);
            self.contexts.push(OpenContext {
                function: callee,
                depth,
                entry: Some(entry),
                part,
                factor: 0.0,
            });
            if is_open {
                let calls = self.functions[callee].calls(callee, self.number);
                let open = calls.filter(|call| !self.is_open_in(index, call.callee));
                let all = self.own[callee] + open.map(|call| call.cost).sum::<f64>();
                self.contexts[index].part = ContextPart::Again { all };
            }
            self.contexts[index].factor = self.factor_of(index);
        }
    }

    /// Whether a function is in this context or one of its callers.
    fn is_open_in(&self, mut at: usize, function: usize) -> bool {
        loop {
            if self.contexts[at].function == function {
                return true;
            }
            match self.contexts[at].entry {
                Some(entry) => at = entry.caller,
                None => return false,
            }
        }
    }

    /// Returns the factor of a context, from that of its caller.
    fn factor_of(&self, at: usize) -> f64 {
        let OpenContext { function, entry, part, factor, .. } = self.contexts[at];
        let Some(ContextEntry { caller, call, cost, .. }) = entry else { return factor };
        let OpenContext { function: calling, part: caller_part, factor, .. } = self.contexts[caller];
        let sums = &self.sums[calling];
        let factor = match (caller_part, call) {
            (ContextPart::Again { .. }, None) => factor,
            (ContextPart::Again { .. }, Some(call)) => factor / sums.calls_again[call].max(1.0),
            (ContextPart::Share, None) => factor / sums.shares,
            (ContextPart::Share, Some(call)) => {
                factor / sums.shares * (1.0 - sums.calls_again[call]).max(0.0)
            }
        };
        let divisor = match part {
            ContextPart::Share => self.flows.entered[function],
            ContextPart::Again { all } => all,
        };
        if divisor > 0.0 { (cost * factor / divisor).min(1.0) } else { 0.0 }
    }

    /// Computes the factors of all contexts with the sums of the round before, and new sums. So the contexts
    /// of a function receive its whole cost, although recursion may enter it with more or less.
    fn divide(&mut self) {
        let mut sums = self.sums.clone();
        for sum in &mut sums {
            sum.shares = 0.0;
            sum.calls_again.fill(0.0);
        }
        for at in 0..self.contexts.len() {
            let factor = self.factor_of(at);
            self.contexts[at].factor = factor;
            let OpenContext { function, entry, part, .. } = self.contexts[at];
            if let ContextPart::Share = part {
                sums[function].shares += factor;
            }
            if let Some(ContextEntry { caller, call: Some(call), .. }) = entry
                && let OpenContext { function, part: ContextPart::Again { .. }, factor, .. } =
                    self.contexts[caller]
            {
                sums[function].calls_again[call] += factor;
            }
        }
        sums.iter_mut().filter(|sum| sum.shares <= 0.0).for_each(|sum| sum.shares = 1.0);
        self.sums = sums;
    }

    /// Divides the own costs of each function among its contexts. `sample` has their event and thread.
    fn add_samples(
        &mut self,
        sample: ImportedSample,
        profile: &mut ImportedProfile,
    ) -> Result<(), ImportError> {
        let mut of_function: Vec<Vec<usize>> = vec![Vec::new(); self.functions.len()];
        for (at, context) in self.contexts.iter().enumerate() {
            of_function[context.function].push(at);
        }
        for (number, of_function) in of_function.iter().enumerate() {
            let function = &self.functions[number];
            if self.own[number] == 0.0 {
                continue;
            }
            let mut weights = self.weights(of_function);
            if weights.is_empty() {
                weights.push((self.contexts.len(), 1.0));
                let part = ContextPart::Share;
                self.contexts.push(OpenContext {
                    function: number,
                    depth: 0,
                    entry: None,
                    part,
                    factor: 1.0,
                });
            }
            for (position, costs) in &function.own {
                let cost = cost_of(costs, self.number);
                let (mut weight, mut given) = (0.0, 0);
                for (at, (context, part)) in weights.iter().enumerate() {
                    weight += part;
                    let is_last = at + 1 == weights.len();
                    let upto = if is_last { cost } else { ((cost as f64 * weight).round() as u64).min(cost) };
                    let value = upto.saturating_sub(given);
                    given = upto.max(given);
                    if value > 0 {
                        let stack = self.stack(*context, location(profile, function, *position), profile)?;
                        profile.add(ImportedSample { stack, value, ..sample })?;
                    }
                }
            }
        }
        Ok(())
    }

    /// Returns the contexts of a function with their parts of its own cost, whose sum is 1.
    fn weights(&self, of_function: &[usize]) -> Vec<(usize, f64)> {
        let (mut shares, mut again) = (0.0, 0.0);
        for context in of_function.iter().map(|at| &self.contexts[*at]) {
            match context.part {
                ContextPart::Share => shares += context.factor,
                ContextPart::Again { .. } => again += context.factor,
            }
        }
        // Only the rest is divided by shares.
        let of_again = if shares > 0.0 { again.min(1.0) } else { 1.0 };
        let weight = |at: &usize| {
            let OpenContext { part, factor, .. } = &self.contexts[*at];
            match part {
                ContextPart::Share => (*at, factor / shares * (1.0 - of_again)),
                ContextPart::Again { .. } => (*at, factor / again * of_again),
            }
        };
        of_function.iter().map(weight).filter(|(_, weight)| *weight > 0.0).collect()
    }

    /// Adds the stack of a location in a context.
    fn stack(
        &self,
        context: usize,
        innermost: ImportId,
        profile: &mut ImportedProfile,
    ) -> Result<ImportId, ImportError> {
        let mut locations = vec![innermost];
        let mut entry = self.contexts[context].entry;
        while let Some(ContextEntry { location, caller, .. }) = entry {
            locations.push(location);
            entry = self.contexts[caller].entry;
        }
        profile.stack(&locations)
    }
}

fn location(profile: &mut ImportedProfile, function: &GraphFunction, (file, line): CostLine) -> ImportId {
    let is_kernel = is_kernel(profile.get_text(function.call.module));
    profile.plain_location(ImportedCall { file, line, is_kernel, ..function.call })
}

#[cfg(test)]
mod tests {
    use super::*;

    const EXAMPLE: &str = "# callgrind format\nversion: 1\nevents: Ir Dr\n\nob=(1) app\nfl=(1) a.c\nfn=(1) main\n\
        10 5 1\ncfn=(2) work\ncalls=2 20\n+2 60 6\ncfn=(3) other\ncalls=1 30\n* 40 4\n\nfn=(2)\n20 60 6\n\n\
        fn=(3)\n30 10 1\ncfn=(2)\ncalls=1 20\n31 30 3\n\ntotals: 75 8\n";

    /// Returns the costs of the first event by stack, as `function:line`, innermost first.
    fn stacks(profile: &ImportedProfile) -> Vec<(String, u64)> {
        let name = |location: &ImportId| {
            let call = profile.calls[profile.locations[*location as usize][0] as usize];
            format!("{}:{}", profile.get_text(call.name), call.line)
        };
        let samples = profile.samples.iter().filter(|sample| sample.event == 0);
        let row = |sample: &ImportedSample| {
            let stack = profile.stacks[sample.stack as usize].iter().map(name);
            (stack.collect::<Vec<_>>().join(" "), sample.value)
        };
        let mut rows: Vec<(String, u64)> = samples.map(row).collect();
        rows.sort();
        rows
    }

    #[test]
    fn costs_are_divided_among_callers() {
        let text = EXAMPLE.replace("20 60 6", "20 90 9");
        assert!(is_format(text.as_bytes()));
        let profile = read(text.as_bytes(), ImportedProfile::new()).unwrap();
        let rows = stacks(&profile);
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
    fn calls_one_by_one_give_exact_stacks() {
        let tree = "fl=a.php\nfn=leaf\n2 10\n\nfn=work\n5 30\ncfn=leaf\ncalls=1 0 0\n6 10\n\nfn=leaf\n2 12\n\n\
                    fn=main\n1 50\ncfn=work\ncalls=1 0 0\n8 40\ncfn=leaf\ncalls=1 0 0\n9 12\n\nsummary: 102\n";
        let head = "version: 1\ncreator: xdebug 3.2.0 (PHP 8.2)\npositions: line\n\nevents: Time\n\n";
        let imported = |text: &str| read(text.as_bytes(), ImportedProfile::new()).unwrap();
        let profile = imported(&format!("{head}{tree}"));
        assert!(profile.notes.is_empty());
        let rows = stacks(&profile);
        let expected =
            [("leaf:2 main:9", 12), ("leaf:2 work:6 main:8", 10), ("main:1", 50), ("work:5 main:8", 30)];
        assert_eq!(rows, expected.map(|(stack, cost)| (stack.to_owned(), cost)));
        // The end is missing: the calls that are there are exact.
        let cut = &tree[..tree.find("fn=main").unwrap()];
        let rows = stacks(&imported(&format!("{head}{cut}")));
        assert_eq!(rows.iter().map(|(_, cost)| cost).sum::<u64>(), 52);
        assert!(rows.contains(&("leaf:2 work:6".to_owned(), 10)), "{rows:?}");
        // A call whose block is missing, and a block without a cost.
        for other in [tree.replacen("cfn=leaf", "cfn=other", 1), format!("{tree}fn=late\n")] {
            assert_eq!(imported(&format!("{head}{other}")).notes.len(), 1, "{other}");
        }
    }

    #[test]
    fn costs_that_the_writer_left_out_are_noted() {
        let notes = |totals: &str| {
            let text = format!("events: Ir Dr\nfn=a\n1 700 0\n2 299 5\n{totals}");
            read(text.as_bytes(), ImportedProfile::new()).unwrap().notes
        };
        for complete in ["", "totals: 999 5\n", "totals: 1000\n", "totals: 500 2\ntotals: 500 3\n"] {
            assert_eq!(notes(complete).len(), 1, "{complete}");
        }
        let missing =
            "its totals are 9 Dr, but the costs of its functions are only 5: its writer left out the rest";
        assert_eq!(notes("totals: 500 4\ntotals: 500 5\n")[0], missing);
    }

    #[test]
    fn costs_beyond_the_limit_are_rejected() {
        let text = format!("events: Ir\nfn=a\n1 {0}\n2 {0}\n", u64::MAX);
        let error = read(text.as_bytes(), ImportedProfile::new()).unwrap_err().to_string();
        assert!(error.contains("more than pmc imports"), "{error}");
    }

    #[test]
    fn bad_lines_are_reported_with_their_number() {
        let lost = |text: &str| {
            let profile = read(text.as_bytes(), ImportedProfile::new()).unwrap();
            profile.lost().unwrap().to_string()
        };
        assert!(lost("events: Ir\nfn=(7)\n").starts_with("line 2: fn= refers"));
        assert!(lost("events: Ir\n5 6\n").contains("before the first function"));
        assert!(lost("events: Ir\nfn=a\n5 6 7\n").contains("2 costs, but 1 events"));
        assert!(lost("events: Ir\nfn=a\n5 x\n").contains("invalid cost"));
        let error = read(b"version: 1\n", ImportedProfile::new()).unwrap_err().to_string();
        assert!(error.contains("events:"));
    }
}
