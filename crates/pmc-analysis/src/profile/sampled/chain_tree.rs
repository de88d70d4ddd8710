//! Call chains, merged by their common prefixes. [`chains`](super::chains) builds these trees.

use super::strings::StringId;
use crate::session::SampleValue;
use pmc_sys::abi::CpuMode;

/// A function in a call chain.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ChainLink {
    /// The function.
    pub symbol: StringId,
    /// Its module's short name.
    pub dso: StringId,
    /// CPU mode of the function.
    pub level: CpuMode,
    /// Whether the function is inlined into the next outer function.
    pub inlined: bool,
}

/// A sequence of functions shared by all chains through this node.
#[derive(Debug, Clone, PartialEq)]
pub struct ChainNode {
    /// The functions, in chain order.
    pub links: Vec<ChainLink>,
    /// Samples whose chain ends here.
    pub own: SampleValue,
    /// Samples whose chain passes through or ends here.
    pub total: SampleValue,
    /// Indices of the child nodes, largest first.
    pub children: Vec<u32>,
}

/// The call chains of a table row.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ChainTree {
    /// The nodes, by index; a node comes before its children.
    pub nodes: Vec<ChainNode>,
    /// Indices of the root nodes, largest first.
    pub roots: Vec<u32>,
}
