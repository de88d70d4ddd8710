//! Arithmetic expressions as trees. Expressions can be evaluated, and they can be simplified if some of their
//! values are known.
//!
//! Handles the trees of [`super::grammar`], whose leaves are words, and of [`super::library`], whose leaves
//! are bound to this machine.

use crate::profile::counts::MissingValueReason;

/// A part of an expression. Leaves are numbers or values of type `L`.
///
/// A missing value (an event that was not counted, a division by zero) is not an error but "no value" with a
/// reason. It has no effect in a branch that is not taken, or as the other operand of `0 &`.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum ExpressionNode<L> {
    Number(f64),
    Leaf(L),
    Negated(Box<Self>),
    Binary(Operator, Box<[Self; 2]>),
    /// The value if the condition holds, the condition, and the value otherwise, in source order.
    If(Box<[Self; 3]>),
    Call(MetricFunction, Vec<Self>),
}

/// A binary operator. Bit operators work on integers; a comparison yields 0 or 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Operator {
    Or,
    Xor,
    And,
    Less,
    More,
    AtLeast,
    Add,
    Subtract,
    Multiply,
    Divide,
    Remainder,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum MetricFunction {
    Min,
    Max,
    /// `a / b`, or 0 if `b` is 0.
    Ratio,
}

impl<L> ExpressionNode<L> {
    pub(super) fn binary(operator: Operator, left: Self, right: Self) -> Self {
        Self::Binary(operator, Box::new([left, right]))
    }

    /// Evaluates the expression, with `leaf` providing the values of the leaves.
    pub(super) fn value(
        &self,
        leaf: &mut dyn FnMut(&L) -> Result<f64, MissingValueReason>,
    ) -> Result<f64, MissingValueReason> {
        match self {
            Self::Number(number) => Ok(*number),
            Self::Leaf(own) => leaf(own),
            Self::Negated(node) => node.value(leaf).map(|value| -value),
            Self::Binary(operator, sides) => {
                let left = sides[0].value(leaf);
                operator.apply(left, sides[1].value(leaf))
            }
            Self::If(parts) => match parts[1].value(leaf)? {
                0.0 => parts[2].value(leaf),
                _ => parts[0].value(leaf),
            },
            Self::Call(function, arguments) => {
                let arguments = arguments.iter().map(|argument| argument.value(leaf));
                Ok(function.apply(&arguments.collect::<Result<Vec<_>, _>>()?))
            }
        }
    }

    /// Replaces the leaves, and removes branches that are never taken and operands that cannot affect the
    /// result. As in perf, `0 & x` is 0 and `1 | x` is 1. All remaining parts can affect the result.
    pub(super) fn bind<M>(&self, leaf: &mut dyn FnMut(&L) -> ExpressionNode<M>) -> ExpressionNode<M> {
        match self {
            Self::Number(number) => ExpressionNode::Number(*number),
            Self::Leaf(own) => leaf(own),
            Self::Negated(node) => node.bind(leaf).negated(),
            Self::Binary(operator, sides) => {
                let left = sides[0].bind(leaf);
                left.combined(*operator, sides[1].bind(leaf))
            }
            Self::If(parts) => match parts[1].bind(leaf) {
                ExpressionNode::Number(0.0) => parts[2].bind(leaf),
                ExpressionNode::Number(_) => parts[0].bind(leaf),
                condition => {
                    let yes = parts[0].bind(leaf);
                    condition.decides(yes, parts[2].bind(leaf))
                }
            },
            Self::Call(function, arguments) => ExpressionNode::called(
                *function,
                arguments.iter().map(|argument| argument.bind(leaf)).collect(),
            ),
        }
    }

    fn negated(self) -> Self {
        match self {
            Self::Number(number) => Self::Number(-number),
            node => Self::Negated(Box::new(node)),
        }
    }

    fn combined(self, operator: Operator, right: Self) -> Self {
        match (operator, &self, &right) {
            (_, &Self::Number(a), &Self::Number(b)) => match operator.apply(Ok(a), Ok(b)) {
                Ok(number) => Self::Number(number),
                Err(_) => Self::binary(operator, self, right),
            },
            (Operator::And, Self::Number(0.0), _) | (Operator::And, _, Self::Number(0.0)) => {
                Self::Number(0.0)
            }
            (Operator::Or, &Self::Number(a), _) | (Operator::Or, _, &Self::Number(a)) if a != 0.0 => {
                Self::Number(1.0)
            }
            _ => Self::binary(operator, self, right),
        }
    }

    fn decides(self, yes: Self, no: Self) -> Self {
        match (&yes, &no) {
            (Self::Number(a), Self::Number(b)) if a == b => yes,
            _ => Self::If(Box::new([yes, self, no])),
        }
    }

    fn called(function: MetricFunction, arguments: Vec<Self>) -> Self {
        let number = |node: &Self| match node {
            Self::Number(number) => Some(*number),
            _ => None,
        };
        if let (MetricFunction::Ratio, [_, Self::Number(0.0)]) = (function, arguments.as_slice()) {
            return Self::Number(0.0);
        }
        match arguments.iter().map(number).collect::<Option<Vec<_>>>() {
            Some(numbers) => Self::Number(function.apply(&numbers)),
            None => Self::Call(function, arguments),
        }
    }

    /// Calls `see` for each leaf, in text order.
    pub(super) fn leaves<'n>(&'n self, see: &mut dyn FnMut(&'n L)) {
        match self {
            Self::Number(_) => {}
            Self::Leaf(own) => see(own),
            Self::Negated(node) => node.leaves(see),
            Self::Binary(_, nodes) => nodes.iter().for_each(|node| node.leaves(see)),
            Self::If(nodes) => nodes.iter().for_each(|node| node.leaves(see)),
            Self::Call(_, nodes) => nodes.iter().for_each(|node| node.leaves(see)),
        }
    }

    /// Returns the nesting depth of the expression; `leaf` returns the depth of a leaf.
    pub(super) fn depth(&self, leaf: &dyn Fn(&L) -> usize) -> usize {
        let deepest = |nodes: &[Self]| nodes.iter().map(|node| node.depth(leaf)).max().unwrap_or_default();
        1 + match self {
            Self::Number(_) => 0,
            Self::Leaf(own) => leaf(own),
            Self::Negated(node) => node.depth(leaf),
            Self::Binary(_, nodes) => deepest(&**nodes),
            Self::If(nodes) => deepest(&**nodes),
            Self::Call(_, nodes) => deepest(nodes),
        }
    }
}

impl Operator {
    fn apply(
        self,
        left: Result<f64, MissingValueReason>,
        right: Result<f64, MissingValueReason>,
    ) -> Result<f64, MissingValueReason> {
        let is_nothing =
            |side: &Result<f64, MissingValueReason>| matches!(side, Ok(number) if *number as i64 == 0);
        if self == Self::And && (is_nothing(&left) || is_nothing(&right)) {
            return Ok(0.0);
        }
        let (left, right) = (left?, right?);
        let bits = |of: fn(i64, i64) -> i64| of(left as i64, right as i64) as f64;
        let divisor = if self == Self::Remainder { right.trunc() } else { right };
        if matches!(self, Self::Divide | Self::Remainder) && divisor == 0.0 {
            return Err(MissingValueReason::new("division by zero: the divisor's count is 0", ""));
        }
        Ok(match self {
            Self::Or => bits(|a, b| a | b),
            Self::Xor => bits(|a, b| a ^ b),
            Self::And => bits(|a, b| a & b),
            Self::Less => f64::from(left < right),
            Self::More => f64::from(left > right),
            Self::AtLeast => f64::from(left >= right),
            Self::Add => left + right,
            Self::Subtract => left - right,
            Self::Multiply => left * right,
            Self::Divide => left / right,
            Self::Remainder => bits(i64::wrapping_rem),
        })
    }
}

impl MetricFunction {
    fn apply(self, arguments: &[f64]) -> f64 {
        match (self, arguments) {
            (Self::Ratio, [_, 0.0]) => 0.0,
            (Self::Ratio, [a, b]) => a / b,
            (Self::Min, all) => all.iter().copied().fold(f64::INFINITY, f64::min),
            (Self::Max | Self::Ratio, all) => all.iter().copied().fold(f64::NEG_INFINITY, f64::max),
        }
    }
}
