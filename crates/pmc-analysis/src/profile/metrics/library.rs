//! Metrics by name and group, and the conversion of their expressions to computable formulas.
//!
//! Receives the [`MetricDefinition`]s that are built into pmc ([`super::named`]), that vendors provide in
//! tables, and that the user types. Returns [`Formula`]s for this machine. [`Binder`] decides the meaning of
//! names in expressions.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::rc::Rc;
use std::str::FromStr;

use super::expression::ExpressionNode;
use super::formula::{BoundExpression, BoundLeaf, Formula, Operand};
use super::grammar::{self, MetricWord};
use super::literals::MetricEnvironment;
use crate::profile::counts::MissingValueReason;
use pmc_sys::error::{Error, Result};
use pmc_text::text;

/// Maximum nesting depth of metrics and their expressions, which are traversed recursively.
const MOST_DEEP: usize = 1000;

/// A metric's definition, as text.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct MetricDefinition<'a> {
    /// The displayed name.
    pub name: &'a str,
    /// Alternative names.
    pub aliases: &'a [&'a str],
    /// The PMU of the kind of core that the table describes; empty for pmc's own metrics and the user's.
    pub pmu: &'a str,
    /// perf's `ScaleUnit`: a factor, unless it is 1, and the unit (`100%`, `1e3per_1k_instr`, `GHz`).
    pub scale: &'a str,
    /// The metric's groups, separated by `;`. Requesting a group requests all metrics in it.
    pub groups: &'a str,
    /// Level in the top-down analysis, from the vendor's table; 1 is the top level.
    pub level: Option<u8>,
    /// The parent metric in the tree of the top-down analysis; empty at the top level.
    pub parent: &'a str,
    /// The expression that computes the value.
    pub expression: &'a str,
    /// The condition under which the value indicates a problem; empty if the table has no such condition.
    pub threshold: &'a str,
    /// The events to sample when the condition holds.
    pub locate: &'a str,
    /// Short description.
    pub help: &'a str,
    /// Whether the expression uses the kernel's counts. perf's and the vendors' metrics do so. Metrics from
    /// pmc and from the user use the displayed values instead, such as joules or milliseconds.
    pub raw: bool,
}

impl<'a> MetricDefinition<'a> {
    pub(crate) fn groups(&self) -> impl Iterator<Item = &'a str> + use<'a> {
        self.groups.split(';').filter(|group| !group.is_empty())
    }

    /// Returns the level if the metric is a node in the tree of the top-down analysis. Vendors also give a
    /// level to metrics derived from nodes.
    fn tree_level(&self) -> Option<u8> {
        let is_of = |level: &u8| self.groups().any(|group| group == format!("TopdownL{level}"));
        self.level.filter(is_of)
    }

    /// Returns the factor and the unit of the value.
    pub fn factor_and_unit(&self) -> (f64, &'a str) {
        let (factor, unit) = self.scale.split_at(grammar::number_length(self.scale));
        (factor.parse().unwrap_or(1.0), unit)
    }

    /// Whether the metric has this name or alias, ignoring case and the difference between `-` and `_`.
    fn is_called(&self, name: &str) -> bool {
        let same = |own: &str| {
            let plain = |byte: u8| if byte == b'-' { b'_' } else { byte.to_ascii_lowercase() };
            own.bytes().map(plain).eq(name.bytes().map(plain))
        };
        same(self.name) || self.aliases.iter().any(|alias| same(alias))
    }
}

/// A metric that the user defines: `NAME=EXPRESSION`. The expression is checked only when it is bound.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UserMetric {
    name: String,
    expression: String,
}

impl UserMetric {
    /// Returns the definition for the metric library.
    pub fn definition(&self) -> MetricDefinition<'_> {
        MetricDefinition { name: &self.name, expression: &self.expression, ..MetricDefinition::default() }
    }
}

impl FromStr for UserMetric {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let MetricDefinition { name, expression, .. } = definition(text)?;
        Ok(Self { name: name.to_owned(), expression: expression.to_owned() })
    }
}

/// Parses `NAME=EXPRESSION`. The expression is checked only when it is bound.
///
/// # Errors
/// Fails if the name or the expression is missing.
pub fn definition(text: &str) -> Result<MetricDefinition<'_>> {
    let Some((name, expression)) = text.split_once('=') else {
        return Err(Error::usage(format!("`{}` is not a metric", text::clean(text)))
            .why("use NAME=EXPRESSION")
            .try_options("--metric 'ipc=instructions / cycles'"));
    };
    let name = name.trim();
    if name.is_empty() {
        return Err(Error::usage(format!(
            "the metric definition `{}` has no name before the `=`",
            text::clean(text)
        ))
        .try_options("--metric 'ipc=instructions / cycles'"));
    }
    Ok(MetricDefinition { name, expression, ..MetricDefinition::default() })
}

/// Metrics by name and group. Expressions are parsed only when they are bound.
#[derive(Debug, Default)]
pub struct MetricLibrary<'a> {
    definitions: Vec<MetricDefinition<'a>>,
    /// Indices of definitions, by name in lower case.
    names: HashMap<String, Vec<usize>>,
}

impl<'a> MetricLibrary<'a> {
    /// Creates a library of these definitions. A later definition replaces an earlier definition with the
    /// same name if the earlier one belongs to the same PMU or to no PMU. For example, a vendor's metric
    /// replaces pmc's metric.
    pub fn new(definitions: impl IntoIterator<Item = MetricDefinition<'a>>) -> Self {
        let mut library = Self::default();
        for definition in definitions {
            let named = library.names.entry(definition.name.to_ascii_lowercase()).or_default();
            named.retain(|&older| !["", definition.pmu].contains(&library.definitions[older].pmu));
            named.push(library.definitions.len());
            library.definitions.push(definition);
        }
        library
    }

    /// Returns all definitions, in the order in which they were given.
    pub fn definitions(&self) -> impl Iterator<Item = &MetricDefinition<'a>> {
        self.definitions.iter()
    }

    /// Returns the definitions with this name or alias, one per PMU. Ignores case and the difference between
    /// `-` and `_`.
    pub fn named(&self, name: &str) -> impl Iterator<Item = &MetricDefinition<'a>> {
        let exact = self.names.get(&name.to_ascii_lowercase());
        let others = self.definitions.iter().filter(move |definition| definition.is_called(name));
        let others = others.take(if exact.is_some() { 0 } else { usize::MAX });
        exact.into_iter().flatten().map(|&at| &self.definitions[at]).chain(others)
    }

    /// Returns all definitions in this group, ignoring case.
    pub fn of_group(&self, group: &str) -> impl Iterator<Item = &MetricDefinition<'a>> {
        let is_in = move |of: &MetricDefinition<'a>| of.groups().any(|own| own.eq_ignore_ascii_case(group));
        self.definitions.iter().filter(move |definition| is_in(definition))
    }

    /// Returns the names of the groups.
    pub fn groups(&self) -> BTreeSet<&'a str> {
        self.definitions.iter().flat_map(MetricDefinition::groups).collect()
    }

    /// Returns the metric to which this name refers in an expression for this PMU.
    fn meant(&self, name: &str, pmu: &str) -> Option<&MetricDefinition<'a>> {
        let all = self.names.get(&name.to_ascii_lowercase())?.iter().map(|&at| &self.definitions[at]);
        all.min_by_key(|definition| (definition.pmu != pmu, !definition.pmu.is_empty()))
    }
}

/// Converts definitions to formulas for a machine. Use a single binder for all definitions, because it caches
/// its results.
///
/// A name refers to a metric of the same PMU, of no PMU, or of any PMU, in this order of preference. Case is
/// ignored. If no metric has the name, the name refers to an event. If an expression contains the name of its
/// own metric, that name also refers to an event.
pub struct Binder<'l, 'a> {
    library: &'l MetricLibrary<'a>,
    environment: &'l MetricEnvironment<'l>,
    /// Results by the address of the definition.
    done: HashMap<*const MetricDefinition<'a>, Rc<BoundExpression>>,
}

/// A definition with its parsed expression, and the metrics in it that are not yet bound.
struct UnboundMetric<'l, 'a> {
    definition: &'l MetricDefinition<'a>,
    expression: ExpressionNode<MetricWord>,
    named: Vec<&'l MetricDefinition<'a>>,
}

impl<'l, 'a> Binder<'l, 'a> {
    /// Creates a binder for metrics that may refer to metrics in `library`.
    pub fn new(library: &'l MetricLibrary<'a>, environment: &'l MetricEnvironment<'l>) -> Self {
        Self { library, environment, done: HashMap::new() }
    }

    /// Prepares a definition for evaluation.
    ///
    /// # Errors
    /// Fails if an expression is malformed, or if metrics refer to each other in a cycle.
    pub fn formula(&mut self, definition: &'l MetricDefinition<'a>) -> Result<Formula> {
        let value = self.bound(definition)?;
        let threshold = match definition.threshold {
            "" => None,
            text => {
                let expression = grammar::parse(definition.name, text)?;
                for named in self.named_in(&expression, definition) {
                    self.bound(named)?;
                }
                Some(Rc::new(self.bind(definition, &expression, true)?))
            }
        };
        let operands = value.operands();
        let mut more = threshold.as_ref().map(|threshold| threshold.operands()).unwrap_or_default();
        more.retain(|operand| !operands.contains(operand));
        let (factor, unit) = definition.factor_and_unit();
        Ok(Formula {
            name: definition.name.to_owned(),
            pmu: definition.pmu.to_owned(),
            unit: unit.to_owned(),
            help: definition.help.to_owned(),
            level: definition.tree_level(),
            parent: definition.parent.to_owned(),
            locate: definition.locate.to_owned(),
            factor,
            value,
            threshold,
            operands,
            threshold_operands: more,
        })
    }

    /// Binds a definition after binding all definitions that it refers to. Does not recurse, because
    /// untrusted definitions may be nested deeply.
    fn bound(&mut self, wanted: &'l MetricDefinition<'a>) -> Result<Rc<BoundExpression>> {
        let mut path: Vec<UnboundMetric<'l, 'a>> = Vec::new();
        // The definitions in `path`, which may be very long.
        let mut on_path = HashSet::new();
        let mut next = Some(wanted);
        loop {
            if let Some(definition) =
                next.take().filter(|own| !self.done.contains_key(&std::ptr::from_ref(*own)))
            {
                if !on_path.insert(std::ptr::from_ref(definition)) {
                    let from = path.iter().position(|open| std::ptr::eq(open.definition, definition));
                    let from = from.unwrap_or_default();
                    let circle = path[from..].iter().map(|open| open.definition.name);
                    return Err(in_a_circle(circle.chain([definition.name])));
                }
                let expression = grammar::parse(definition.name, definition.expression)?;
                let named = self.named_in(&expression, definition);
                path.push(UnboundMetric { definition, expression, named });
            }
            let Some(open) = path.last_mut() else { break };
            next = open.named.pop();
            if next.is_none() {
                let value = self.bind(open.definition, &open.expression, false)?;
                on_path.remove(&std::ptr::from_ref(open.definition));
                self.done.insert(std::ptr::from_ref(open.definition), Rc::new(value));
                path.pop();
            }
        }
        Ok(Rc::clone(&self.done[&std::ptr::from_ref(wanted)]))
    }

    /// Returns the other metrics to which a definition's expression refers.
    fn named_in(
        &self,
        expression: &ExpressionNode<MetricWord>,
        definition: &MetricDefinition<'a>,
    ) -> Vec<&'l MetricDefinition<'a>> {
        let mut found = Vec::new();
        expression.leaves(&mut |word| match word {
            MetricWord::Name(name) if !name.eq_ignore_ascii_case(definition.name) => {
                found.extend(self.library.meant(name, definition.pmu));
            }
            _ => {}
        });
        found
    }

    /// Binds an expression whose metrics are already bound.
    fn bind(
        &self,
        definition: &MetricDefinition<'a>,
        expression: &ExpressionNode<MetricWord>,
        is_threshold: bool,
    ) -> Result<BoundExpression> {
        let event = |name: &str| self.event(name, definition.raw);
        let unknown =
            |what: String| ExpressionNode::Leaf(BoundLeaf::Unknown(MissingValueReason::new(what, "")));
        let node = expression.bind(&mut |word| match word {
            MetricWord::Name(name) if name.eq_ignore_ascii_case(definition.name) => match is_threshold {
                true => self.metric(definition),
                false => event(name),
            },
            MetricWord::Name(name) => match self.library.meant(name, definition.pmu) {
                Some(metric) => self.metric(metric),
                None => event(name),
            },
            MetricWord::Event(name) => event(name),
            MetricWord::Literal(name) => match self.environment.literals.get(name) {
                Some(value) => ExpressionNode::Number(value),
                None => unknown(format!("#{name} is unknown on this machine")),
            },
            MetricWord::HasEvent(name) => {
                ExpressionNode::Number(f64::from((self.environment.has_event)(name)))
            }
            MetricWord::SourceCount(name) => match (self.environment.source_count)(name) {
                Some(count) => ExpressionNode::Number(count),
                None => unknown(format!("no known PMU counts {name}")),
            },
            MetricWord::AggrNr(name) => {
                let name = name.to_owned();
                ExpressionNode::Leaf(BoundLeaf::Operand(Operand {
                    name,
                    raw: definition.raw,
                    counters: true,
                }))
            }
            MetricWord::IsCpuid(pattern) => {
                ExpressionNode::Number(f64::from((self.environment.is_cpuid)(pattern)))
            }
            MetricWord::Nothing => unknown("this machine lacks the required events".to_owned()),
        });
        let bound = BoundExpression::new(node);
        if bound.depth > MOST_DEEP {
            return Err(Error::usage(format!(
                "the metric `{}` nests other metrics too deeply",
                text::clean(definition.name)
            ))
            .why(format!("at most {MOST_DEEP} nested operations are supported")));
        }
        Ok(bound)
    }

    fn metric(&self, definition: &MetricDefinition<'a>) -> ExpressionNode<BoundLeaf> {
        let bound = &self.done[&std::ptr::from_ref(definition)];
        match bound.node {
            ExpressionNode::Number(number) => ExpressionNode::Number(number),
            _ => ExpressionNode::Leaf(BoundLeaf::Metric(Rc::clone(bound))),
        }
    }

    fn event(&self, name: &str, raw: bool) -> ExpressionNode<BoundLeaf> {
        let Some(event) =
            name.strip_suffix(":R").or_else(|| name.strip_suffix('R').filter(|n| n.ends_with('/')))
        else {
            return ExpressionNode::Leaf(BoundLeaf::Operand(Operand {
                name: name.to_owned(),
                raw,
                counters: false,
            }));
        };
        match (self.environment.retire_latency)(event) {
            Some(cycles) => ExpressionNode::Number(cycles),
            // With NaN, comparisons are false, and `min` and `max` return the other operand.
            None => ExpressionNode::Number(f64::NAN),
        }
    }
}

fn in_a_circle<'a>(names: impl Iterator<Item = &'a str>) -> Error {
    let names = names.map(|name| format!("`{}`", text::clean(name))).collect::<Vec<_>>();
    Error::usage(format!("the metric {} refers to itself", names[0]))
        .why(format!("the cycle is: {}", names.join(", ")))
        .try_this("quote the name if it is an event")
}

#[cfg(test)]
mod tests {
    use super::super::literals::Literals;
    use super::*;

    const METRICS: [MetricDefinition<'_>; 7] = {
        const NONE: MetricDefinition<'_> = MetricDefinition {
            name: "",
            aliases: &[],
            pmu: "cpu_core",
            scale: "",
            groups: "",
            level: None,
            parent: "",
            expression: "",
            threshold: "",
            locate: "",
            help: "",
            raw: true,
        };
        [
            MetricDefinition {
                name: "tma_Bound",
                scale: "100%",
                groups: "TopdownL1;tma_L1_group",
                level: Some(1),
                expression: "tma_stalls / tma_slots",
                threshold: "tma_bound > 0.2 & tma_slots > 10 & OTHER:u < 5",
                ..NONE
            },
            MetricDefinition { name: "tma_stalls", expression: "A if #SMT_on else B - tma_width", ..NONE },
            MetricDefinition { name: "tma_slots", expression: "tma_width * CYCLES", ..NONE },
            MetricDefinition { name: "tma_slots", pmu: "cpu_atom", expression: "cpu_atom@CYCLES@", ..NONE },
            MetricDefinition { name: "tma_width", expression: "4", ..NONE },
            MetricDefinition { name: "ring", expression: "1 + ring_b", ..NONE },
            MetricDefinition { name: "ring_b", expression: "ring_c + 'ring'", ..NONE },
        ]
    };

    fn formula(definitions: &[MetricDefinition<'_>], name: &str, smt_on: f64) -> Result<Formula> {
        let library = MetricLibrary::new(definitions.iter().copied());
        let literals = Literals { smt_on: Some(smt_on), ..Literals::default() };
        let environment = MetricEnvironment { literals, ..MetricEnvironment::UNKNOWN };
        Binder::new(&library, &environment).formula(library.named(name).next().unwrap())
    }

    fn names(operands: &[Operand]) -> Vec<&str> {
        operands.iter().map(|operand| operand.name.as_str()).collect()
    }

    #[test]
    fn metrics_may_reference_metrics_and_count_only_needed_events() {
        let with = formula(&METRICS, "tma_bound", 1.0).unwrap();
        assert_eq!(names(with.operands()), ["A", "CYCLES"]);
        assert_eq!(names(with.threshold_operands()), ["OTHER:u"]);
        assert!(with.operands().iter().all(|operand| operand.raw));
        let without = formula(&METRICS, "TMA_BOUND", 0.0).unwrap();
        assert_eq!(names(without.operands()), ["B", "CYCLES"]);
        let count = |name: &str| match name {
            "B" => Ok(16.0),
            "CYCLES" => Ok(8.0),
            "OTHER:u" => Ok(1.0),
            _ => Err(MissingValueReason::new("", "")),
        };
        assert_eq!(without.evaluate(&mut |operand| count(&operand.name)), Ok(37.5));
        assert_eq!((without.unit.as_str(), without.level), ("%", Some(1)));
        assert_eq!(without.crossed(&mut |operand| count(&operand.name)), Some(true));
        let less = |name: &str| if name == "CYCLES" { Ok(1.0) } else { Err(MissingValueReason::new("", "")) };
        // If one part of the condition is known to be false, the threshold is not crossed. If no part is
        // known, the result is unknown.
        assert_eq!(without.crossed(&mut |operand| less(&operand.name)), Some(false));
        assert_eq!(without.crossed(&mut |_| Err(MissingValueReason::new("", ""))), None);
        assert!(!formula(&METRICS, "tma_width", 0.0).unwrap().has_threshold());
    }

    #[test]
    fn metrics_are_found_by_pmu_and_group() {
        let library = MetricLibrary::new(METRICS);
        let pmus: Vec<_> = library.named("tma-slots").map(|definition| definition.pmu).collect();
        assert_eq!(pmus, ["cpu_core", "cpu_atom"]);
        assert_eq!(library.of_group("tma_l1_GROUP").map(|own| own.name).collect::<Vec<_>>(), ["tma_Bound"]);
        assert_eq!(library.groups().into_iter().collect::<Vec<_>>(), ["TopdownL1", "tma_L1_group"]);
        // The user's metrics can refer to vendors' metrics, to each other, and to events with their own name.
        let mine = definition("mine = tma_slots + mine + 'tma_slots'").unwrap();
        let all = METRICS.iter().copied().chain([mine]).collect::<Vec<_>>();
        let mine = formula(&all, "mine", 0.0).unwrap();
        assert_eq!(names(mine.operands()), ["CYCLES", "mine", "tma_slots"]);
        // A vendor's metric replaces pmc's metric of the same name.
        let own = MetricDefinition { name: "tma_width", expression: "5", ..MetricDefinition::default() };
        let all = [own].into_iter().chain(METRICS).collect::<Vec<_>>();
        assert_eq!(
            MetricLibrary::new(all).named("tma_width").map(|own| own.expression).collect::<Vec<_>>(),
            ["4"]
        );
    }

    #[test]
    fn units_apply_their_factor() {
        for (scale, expected) in [
            ("100%", (100.0, "%")),
            ("1e3per_1k_instr", (1e3, "per_1k_instr")),
            ("1per_instr", (1.0, "per_instr")),
            ("7.11e-06MB/s", (7.11e-6, "MB/s")),
            ("GHz", (1.0, "GHz")),
            ("", (1.0, "")),
            ("1elements", (1.0, "elements")),
        ] {
            let definition = MetricDefinition { scale, ..MetricDefinition::default() };
            assert_eq!(definition.factor_and_unit(), expected, "{scale}");
        }
    }

    #[test]
    fn cycles_and_deep_nesting_are_rejected() {
        let error = |texts: &[String]| {
            let definitions: Vec<_> = texts.iter().map(|text| definition(text).unwrap()).collect();
            formula(&definitions, "a0", 0.0).unwrap_err().to_string()
        };
        let circle = ["a0=1+b", "b=c*2", "c=a0"].map(str::to_owned);
        let shown = error(&circle);
        assert!(shown.contains("the metric `a0` refers to itself") && shown.contains("`c`"), "{shown}");
        let tower = |height| (0..height).map(|at| format!("a{at} = x + a{}", at + 1)).collect::<Vec<_>>();
        assert!(error(&tower(5000)).contains("metrics too deeply"));
        let highest = (0..MOST_DEEP).step_by(99).rev().find_map(|height| {
            let texts = tower(height);
            let definitions: Vec<_> = texts.iter().map(|text| definition(text).unwrap()).collect();
            Some((height, formula(&definitions, "a0", 0.0).ok()?))
        });
        let (height, highest) = highest.unwrap();
        assert_eq!(highest.evaluate(&mut |_| Ok(1.0)), Ok(height as f64 + 1.0));
        // A quoted name is an event.
        assert_eq!(names(formula(&METRICS, "ring", 0.0).unwrap().operands()), ["ring_c", "ring"]);
    }

    #[test]
    fn events_without_influence_are_not_counted() {
        // As in perf's own test of its expressions.
        for (text, expected) in [
            ("1.0 if EVENT1 > 100.0 else 1.0", &[][..]),
            ("0 & EVENT1 > 0", &[]),
            ("EVENT1 > 0 & 0", &[]),
            ("1 & EVENT1 > 0", &["EVENT1"]),
            ("EVENT1 > 0 & 1", &["EVENT1"]),
            ("1 | EVENT1 > 0", &[]),
            ("EVENT1 > 0 | 1", &[]),
            ("0 | EVENT1 > 0", &["EVENT1"]),
            ("EVENT1 if #smt_on else EVENT2", &["EVENT2"]),
            (r"dash\-event1 - dash\-event2 + dash\-event1", &["dash-event1", "dash-event2"]),
        ] {
            let text = format!("m={text}");
            let formula = formula(&[definition(&text).unwrap()], "m", 0.0).unwrap();
            assert_eq!(names(formula.operands()), expected, "{text}");
        }
    }

    #[test]
    fn definition_requires_a_name() {
        assert_eq!(definition(" ipc = cycles / 2 ").unwrap().name, "ipc");
        assert!(definition("cycles").is_err());
        assert!(definition("=cycles").is_err());
    }
}
