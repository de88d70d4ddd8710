//! The words of `pmc report -g`: order, style, value and minimum size of call chains.

use std::str::FromStr;

use super::{ChainShape, ChainUnit};
use pmc_analysis::profile::sampled::StackDirection;
use pmc_sys::error::{Error, Result};

/// A word of `-g`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum ChainWord {
    /// Print call chains in this order.
    Order(StackDirection),
    /// Print no call chains.
    NoChains,
    Shape(ChainShape),
    Unit(ChainUnit),
    /// Minimum size of a branch in percent or, as the second number, the maximum number of lines.
    Number(f64),
    /// A word that selects the default.
    Usual,
}

impl FromStr for ChainWord {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let word = text.trim();
        Ok(match word {
            "caller" => Self::Order(StackDirection::Caller),
            "callee" => Self::Order(StackDirection::Callee),
            "none" => Self::NoChains,
            "graph" => Self::Shape(ChainShape::Tree),
            "fractal" => Self::Shape(ChainShape::Fractal),
            "flat" => Self::Shape(ChainShape::Flat),
            "folded" => Self::Shape(ChainShape::Folded),
            "percent" => Self::Unit(ChainUnit::Percent),
            "period" => Self::Unit(ChainUnit::Period),
            "count" => Self::Unit(ChainUnit::Count),
            "" | "function" => Self::Usual,
            "address" => {
                return Err(Error::usage("the call tree supports functions only, not addresses")
                    .try_options("-s sym,srcline splits functions by line"));
            }
            "branch" => {
                return Err(Error::usage("pmc does not combine branches with call chains").try_options("-b"));
            }
            _ => Self::Number(word.parse().map_err(|_| {
                Error::usage(format!("unknown word {word:?}")).try_this(
                    "use caller, callee or none; graph, fractal, flat or folded; percent, period or count; \
                     and a percentage such as 0.5",
                )
            })?),
        })
    }
}

/// Order of the call chains.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ChainOrder {
    Typed(StackDirection),
    /// The order depends on the output.
    #[default]
    Usual,
    NoChains,
}

/// How to show call chains.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct ChainOptions {
    pub order: ChainOrder,
    /// Minimum size of a branch, in percent.
    pub limit: Option<f64>,
    pub shape: ChainShape,
    pub unit: ChainUnit,
    /// Maximum number of lines in the tree.
    pub lines: Option<usize>,
    /// Whether the user asked for call chains, which are then printed under their rows.
    pub are_typed: bool,
}

impl ChainOptions {
    /// Combines the words of `-g`, which is `None` if it was not typed, and `-G`.
    pub fn new(words: Option<&[ChainWord]>, inverted: bool) -> Self {
        let mut chains = Self { are_typed: words.is_some() || inverted, ..Self::default() };
        for word in words.into_iter().flatten() {
            match *word {
                ChainWord::Order(order) => chains.order = ChainOrder::Typed(order),
                ChainWord::NoChains => chains.order = ChainOrder::NoChains,
                ChainWord::Shape(shape) => chains.shape = shape,
                ChainWord::Unit(unit) => chains.unit = unit,
                ChainWord::Number(percent) if chains.limit.is_none() => chains.limit = Some(percent),
                ChainWord::Number(lines) => {
                    chains.lines = Some(lines.max(0.0) as usize).filter(|lines| *lines > 0);
                }
                ChainWord::Usual => {}
            }
        }
        if inverted {
            chains.order = ChainOrder::Typed(StackDirection::Caller);
        }
        chains
    }
}
