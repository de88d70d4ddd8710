//! Call chains that share what they begin with: see [`chains`](super::chains), which makes them.

use super::{StringId, Value};
use crate::abi::CpuMode;

/// A function of a chain.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Link {
    /// The function.
    pub symbol: StringId,
    /// Its module's short name.
    pub dso: StringId,
    /// Where it ran.
    pub level: CpuMode,
    /// Inlined into the next outer function.
    pub inlined: bool,
}

/// Functions that all chains through them have in common.
#[derive(Debug, Clone, PartialEq)]
pub struct ChainNode {
    /// The functions, in the order of the chains.
    pub links: Vec<Link>,
    /// Samples whose chain ends here.
    pub own: Value,
    /// All samples whose chain comes here.
    pub total: Value,
    /// Numbers of the nodes that follow, largest first.
    pub children: Vec<u32>,
}

/// The chains of a row.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ChainTree {
    /// By number; a node comes before those that follow it.
    pub nodes: Vec<ChainNode>,
    /// Numbers of the first ones, largest first.
    pub roots: Vec<u32>,
}
