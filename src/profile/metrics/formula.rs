//! Metrics that can be computed.
//!
//! Made by [`super::library`]: receives the values of events; hands on the metric's value in its unit, and
//! whether its threshold is crossed.

use std::collections::{HashMap, HashSet};
use std::rc::Rc;

use super::expression::{Node, Operator};
use crate::profile::counts::Reason;

/// A metric that can be computed on this machine: literals are replaced by their values, branches that cannot
/// be taken are left out, the metrics that it names are inside.
#[derive(Debug, Clone)]
pub struct Formula {
    /// The name shown.
    pub name: String,
    /// The PMU of the kind of core that it is about; empty where there is one kind, or it is about none.
    pub pmu: String,
    /// Unit of the value; empty for plain ratios.
    pub unit: String,
    /// What it says, in a few words; empty for the user's own.
    pub help: String,
    /// The groups that it is in.
    pub groups: Vec<String>,
    /// Its level in the tree of the top-down analysis, 1 at the top.
    pub level: Option<u8>,
    /// The metric above it in that tree; empty at the top.
    pub parent: String,
    /// The events to sample with where its value alarms, as the vendor's table has them.
    pub locate: String,
    pub(super) factor: f64,
    pub(super) value: Rc<Bound>,
    pub(super) threshold: Option<Rc<Bound>>,
    pub(super) operands: Vec<Operand>,
    pub(super) threshold_operands: Vec<Operand>,
}

/// An event that a formula needs.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Operand {
    /// The event, as `-e` takes it: `cpu_core/INST_RETIRED.ANY/`, `MEM_INST_RETIRED.ANY:u`; `duration_time`,
    /// in seconds, among them.
    pub name: String,
    /// Its count is meant as the kernel has it, not in the unit that it is shown in.
    pub raw: bool,
    /// Not its count is meant, but how many counters' counts were added up to it (perf's `aggr_nr`).
    pub counters: bool,
}

/// A leaf of an expression that is bound to this machine.
#[derive(Debug, Clone)]
pub(super) enum Leaf {
    Operand(Operand),
    Metric(Rc<Bound>),
    /// There is no value on this machine.
    Unknown(Reason),
}

/// An expression bound to this machine; metrics that several name are computed once.
#[derive(Debug)]
pub(super) struct Bound {
    pub(super) node: Node<Leaf>,
    pub(super) depth: usize,
}

/// Values of events, by name.
pub type Lookup<'a> = &'a mut dyn FnMut(&Operand) -> Result<f64, Reason>;

impl Formula {
    /// The sum of events as they are shown, each times a factor.
    pub fn sum(name: &str, unit: &str, terms: impl Iterator<Item = (String, f64)>) -> Self {
        let times = |(name, factor)| {
            let operand = Node::Leaf(Leaf::Operand(Operand { name, raw: false, counters: false }));
            Node::binary(Operator::Multiply, operand, Node::Number(factor))
        };
        let plus = |left, right| Node::binary(Operator::Add, left, right);
        let value = Bound::new(terms.map(times).reduce(plus).unwrap_or(Node::Number(0.0)));
        Self {
            name: name.to_owned(),
            pmu: String::new(),
            unit: unit.to_owned(),
            help: String::new(),
            groups: Vec::new(),
            level: None,
            parent: String::new(),
            locate: String::new(),
            factor: 1.0,
            operands: value.operands(),
            value: Rc::new(value),
            threshold: None,
            threshold_operands: Vec::new(),
        }
    }

    /// The events that the value needs, each once, in the order of the text (`duration_time` among them).
    pub fn operands(&self) -> &[Operand] {
        &self.operands
    }

    /// The events that the threshold needs besides.
    pub fn threshold_operands(&self) -> &[Operand] {
        &self.threshold_operands
    }

    /// Whether there is a threshold.
    pub fn has_threshold(&self) -> bool {
        self.threshold.is_some()
    }

    /// Computes the value, in the formula's unit.
    ///
    /// # Errors
    /// Why there is no value: `lookup`'s reason, or a division by zero.
    pub fn evaluate(&self, lookup: Lookup<'_>) -> Result<f64, Reason> {
        let value = self.value.compute(lookup)? * self.factor;
        if value.is_finite() {
            Ok(value)
        } else {
            let why = "the result is too large for a number, or rests on a retire latency that is not known";
            Err(Reason::new(why, ""))
        }
    }

    /// Whether the threshold is crossed; `None` where there is none, or a value is missing.
    pub fn crossed(&self, lookup: Lookup<'_>) -> Option<bool> {
        Some(self.threshold.as_ref()?.compute(lookup).ok()? != 0.0)
    }
}

impl Bound {
    pub(super) fn new(node: Node<Leaf>) -> Self {
        let depth = node.depth(&|leaf| match leaf {
            Leaf::Metric(inner) => inner.depth,
            _ => 0,
        });
        Self { node, depth }
    }

    fn compute(&self, lookup: Lookup<'_>) -> Result<f64, Reason> {
        self.compute_once(lookup, &mut HashMap::new())
    }

    fn compute_once(
        &self,
        lookup: Lookup<'_>,
        done: &mut HashMap<*const Bound, Result<f64, Reason>>,
    ) -> Result<f64, Reason> {
        self.node.value(&mut |leaf| match leaf {
            Leaf::Operand(operand) => lookup(operand),
            Leaf::Unknown(reason) => Err(reason.clone()),
            Leaf::Metric(inner) => match done.get(&Rc::as_ptr(inner)) {
                Some(value) => value.clone(),
                None => {
                    let value = inner.compute_once(lookup, done);
                    done.insert(Rc::as_ptr(inner), value.clone());
                    value
                }
            },
        })
    }

    /// The events in it, each once, in the order of the text.
    pub(super) fn operands(&self) -> Vec<Operand> {
        let mut found = Operands::default();
        found.see(self);
        found.order.into_iter().cloned().collect()
    }
}

/// Operands found so far.
#[derive(Default)]
struct Operands<'b> {
    order: Vec<&'b Operand>,
    seen: HashSet<&'b Operand>,
    metrics: HashSet<*const Bound>,
}

impl<'b> Operands<'b> {
    fn see(&mut self, bound: &'b Bound) {
        bound.node.leaves(&mut |leaf| match leaf {
            Leaf::Operand(operand) if self.seen.insert(operand) => self.order.push(operand),
            Leaf::Metric(inner) if self.metrics.insert(Rc::as_ptr(inner)) => self.see(inner),
            _ => {}
        });
    }
}
