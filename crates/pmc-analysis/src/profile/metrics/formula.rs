//! Metrics in computable form.
//!
//! [`super::library`] creates a [`Formula`] for each metric. A formula receives the values of events and
//! returns the metric's value in its unit, and whether it crosses its threshold.

use std::collections::{HashMap, HashSet};
use std::rc::Rc;

use super::expression::{ExpressionNode, Operator};
use crate::profile::counts::MissingValueReason;

/// A metric that can be computed on this machine. Literals are replaced by their values, and branches that
/// cannot be taken are removed. Other metrics that the metric refers to are included.
#[derive(Debug, Clone)]
pub struct Formula {
    /// The displayed name.
    pub name: String,
    /// The PMU of the kind of core that the metric describes. Empty if there is only one kind of core, or if
    /// the metric does not describe cores.
    pub(crate) pmu: String,
    /// Unit of the value; empty for plain ratios.
    pub unit: String,
    /// Short description; empty for the user's own metrics.
    pub(crate) help: String,
    /// Level in the tree of the top-down analysis; 1 is the top level.
    pub(crate) level: Option<u8>,
    /// The parent metric in that tree; empty at the top level.
    pub(crate) parent: String,
    /// The events to sample when the value exceeds its threshold, as in the vendor's table.
    pub(crate) locate: String,
    pub(super) factor: f64,
    pub(super) value: Rc<BoundExpression>,
    pub(super) threshold: Option<Rc<BoundExpression>>,
    pub(super) operands: Vec<Operand>,
    pub(super) threshold_operands: Vec<Operand>,
}

/// An event that a formula needs.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Operand {
    /// The event, as the user types it after `-e`, such as `cpu_core/INST_RETIRED.ANY/` or
    /// `MEM_INST_RETIRED.ANY:u`. Can also be `duration_time`, whose value is in seconds.
    pub name: String,
    /// Whether the formula uses the kernel's count instead of the displayed value.
    pub(crate) raw: bool,
    /// Whether the formula uses the number of counters in the sum (perf's `aggr_nr`) instead of the count.
    pub(crate) counters: bool,
}

/// A leaf of an expression bound to this machine.
#[derive(Debug, Clone)]
pub(super) enum BoundLeaf {
    Operand(Operand),
    Metric(Rc<BoundExpression>),
    /// A leaf without a value on this machine.
    Unknown(MissingValueReason),
}

/// An expression bound to this machine. A metric to which several other metrics refer is computed only once.
#[derive(Debug)]
pub(super) struct BoundExpression {
    pub(super) node: ExpressionNode<BoundLeaf>,
    pub(super) depth: usize,
}

/// A function that returns the value of an operand, or why it is missing.
pub(crate) type ValueLookup<'a> = &'a mut dyn FnMut(&Operand) -> Result<f64, MissingValueReason>;

impl Formula {
    /// Creates the sum of events in their displayed units, each multiplied by a factor.
    pub fn sum(name: &str, unit: &str, terms: impl Iterator<Item = (String, f64)>) -> Self {
        let times = |(name, factor)| {
            let operand =
                ExpressionNode::Leaf(BoundLeaf::Operand(Operand { name, raw: false, counters: false }));
            ExpressionNode::binary(Operator::Multiply, operand, ExpressionNode::Number(factor))
        };
        let plus = |left, right| ExpressionNode::binary(Operator::Add, left, right);
        let value =
            BoundExpression::new(terms.map(times).reduce(plus).unwrap_or(ExpressionNode::Number(0.0)));
        Self {
            name: name.to_owned(),
            pmu: String::new(),
            unit: unit.to_owned(),
            help: String::new(),
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

    /// Returns the events that the value needs, without duplicates and in text order (including
    /// `duration_time`).
    pub fn operands(&self) -> &[Operand] {
        &self.operands
    }

    /// Returns the additional events that the threshold needs.
    pub fn threshold_operands(&self) -> &[Operand] {
        &self.threshold_operands
    }

    /// Whether the formula has a threshold.
    pub fn has_threshold(&self) -> bool {
        self.threshold.is_some()
    }

    /// Computes the value, in the formula's unit.
    ///
    /// # Errors
    /// Returns why there is no value: the reason from `lookup`, a division by zero, or a result that is not
    /// finite.
    pub fn evaluate(&self, lookup: ValueLookup<'_>) -> Result<f64, MissingValueReason> {
        let value = self.value.compute(lookup)? * self.factor;
        if value.is_finite() {
            Ok(value)
        } else {
            let why = "the result is too large, or depends on an unknown retire latency";
            Err(MissingValueReason::new(why, ""))
        }
    }

    /// Whether the value crosses its threshold; `None` if there is no threshold or a value is missing.
    pub fn crossed(&self, lookup: ValueLookup<'_>) -> Option<bool> {
        Some(self.threshold.as_ref()?.compute(lookup).ok()? != 0.0)
    }
}

impl BoundExpression {
    pub(super) fn new(node: ExpressionNode<BoundLeaf>) -> Self {
        let depth = node.depth(&|leaf| match leaf {
            BoundLeaf::Metric(inner) => inner.depth,
            _ => 0,
        });
        Self { node, depth }
    }

    fn compute(&self, lookup: ValueLookup<'_>) -> Result<f64, MissingValueReason> {
        self.compute_once(lookup, &mut HashMap::new())
    }

    fn compute_once(
        &self,
        lookup: ValueLookup<'_>,
        done: &mut HashMap<*const BoundExpression, Result<f64, MissingValueReason>>,
    ) -> Result<f64, MissingValueReason> {
        self.node.value(&mut |leaf| match leaf {
            BoundLeaf::Operand(operand) => lookup(operand),
            BoundLeaf::Unknown(reason) => Err(reason.clone()),
            BoundLeaf::Metric(inner) => match done.get(&Rc::as_ptr(inner)) {
                Some(value) => value.clone(),
                None => {
                    let value = inner.compute_once(lookup, done);
                    done.insert(Rc::as_ptr(inner), value.clone());
                    value
                }
            },
        })
    }

    /// Returns the events in the expression, without duplicates and in text order.
    pub(super) fn operands(&self) -> Vec<Operand> {
        let mut found = Operands::default();
        found.see(self);
        found.order.into_iter().cloned().collect()
    }
}

#[derive(Default)]
struct Operands<'b> {
    order: Vec<&'b Operand>,
    seen: HashSet<&'b Operand>,
    metrics: HashSet<*const BoundExpression>,
}

impl<'b> Operands<'b> {
    fn see(&mut self, bound: &'b BoundExpression) {
        bound.node.leaves(&mut |leaf| match leaf {
            BoundLeaf::Operand(operand) if self.seen.insert(operand) => self.order.push(operand),
            BoundLeaf::Metric(inner) if self.metrics.insert(Rc::as_ptr(inner)) => self.see(inner),
            _ => {}
        });
    }
}
