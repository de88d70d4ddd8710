//! Shows jumps as arrows next to the code. This module assigns a lane to each arrow.
//!
//! Receives the row in which each jump starts and the row of its target. Arrows in the same lane do not
//! overlap. Short jumps get the lanes nearest to the code. A jump that would need more than [`LANES`] lanes
//! gets no arrow.
//!
//! ```text
//!   lane 1 0
//!        │╭─ jle 30
//!        ╭┼─ jmp 10      lane 1 begins
//!        │╰▸ 30: …
//! ```

use std::collections::BTreeMap;

/// Maximum number of lanes.
pub(crate) const LANES: usize = 8;

/// An arrow that shows a jump.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Arrow {
    /// Row of the jump.
    pub from: usize,
    /// Row of the target.
    pub to: usize,
    /// The arrow's lane; 0 is nearest to the code.
    pub lane: usize,
}

/// The part of an arrow that one lane shows in one row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ArrowPiece {
    /// The arrow passes through the row.
    Pass,
    /// The arrow's upper end.
    Top,
    /// The arrow's lower end.
    Bottom,
    /// Both ends: the instruction jumps to itself.
    Both,
}

impl Arrow {
    /// Returns the first and the last row.
    pub fn span(&self) -> (usize, usize) {
        (self.from.min(self.to), self.from.max(self.to))
    }

    /// Returns the part of the arrow in a row, or `None` outside the arrow.
    pub fn at(&self, row: usize) -> Option<ArrowPiece> {
        let (top, bottom) = self.span();
        match row {
            _ if row < top || row > bottom => None,
            _ if top == bottom => Some(ArrowPiece::Both),
            _ if row == top => Some(ArrowPiece::Top),
            _ if row == bottom => Some(ArrowPiece::Bottom),
            _ => Some(ArrowPiece::Pass),
        }
    }
}

/// The arrows in a lane, which do not overlap. Maps each arrow's first row to its last row and its target
/// row.
type Lane = BTreeMap<usize, (usize, usize)>;

/// Adds an arrow to a lane if the lane is free in these rows. Arrows with the same target may overlap in the
/// row of the target, where they are joined.
fn put(lane: &mut Lane, top: usize, bottom: usize, to: usize) -> bool {
    let mut same = None;
    for (&start, &(end, leads)) in lane.range(..=bottom).rev() {
        if end < top {
            break;
        }
        if leads != to {
            return false;
        }
        same = Some((start, end));
    }
    let (mut first, mut last) = (top, bottom);
    if let Some((start, end)) = same {
        lane.remove(&start);
        (first, last) = (first.min(start), last.max(end));
    }
    lane.insert(first, (last, to));
    true
}

/// Assigns lanes to jumps, which are pairs of source row and target row. Also returns the number of lanes in
/// use. Jumps with the same target share a lane if possible.
pub fn lanes(mut jumps: Vec<(usize, usize)>) -> (Vec<Arrow>, usize) {
    jumps.sort_by_key(|(from, to)| (from.abs_diff(*to), *from));
    jumps.dedup();
    let mut taken: Vec<Lane> = Vec::new();
    let mut all = Vec::new();
    for (from, to) in jumps {
        let (top, bottom) = (from.min(to), from.max(to));
        let lane = match taken.iter_mut().position(|lane| put(lane, top, bottom, to)) {
            Some(lane) => lane,
            None if taken.len() < LANES => {
                taken.push(Lane::from([(top, (bottom, to))]));
                taken.len() - 1
            }
            None => continue,
        };
        all.push(Arrow { from, to, lane });
    }
    all.sort_by_key(|jump| (jump.from, jump.to));
    (all, taken.len())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn short_jumps_are_innermost_and_crossing_jumps_separated() {
        let (all, count) = lanes(vec![(0, 10), (2, 4), (8, 3), (20, 20)]);
        let lane = |from: usize| all.iter().find(|jump| jump.from == from).unwrap().lane;
        assert_eq!((lane(2), lane(8), lane(0), lane(20)), (0, 1, 2, 0));
        assert_eq!(count, 3);
        assert_eq!(all[0].at(5), Some(ArrowPiece::Pass));
        assert_eq!(
            (all[0].at(0), all[0].at(10), all[0].at(11)),
            (Some(ArrowPiece::Top), Some(ArrowPiece::Bottom), None)
        );
    }

    #[test]
    fn jumps_to_one_target_share_a_lane() {
        let (all, count) = lanes(vec![(1, 9), (3, 9), (5, 9)]);
        assert_eq!((all.len(), count), (3, 1));
    }

    #[test]
    fn many_jumps_have_bounded_lanes() {
        let jumps = (0..200_000usize).map(|n| (n, n.wrapping_mul(2_654_435_761) % 200_000)).collect();
        let (all, count) = lanes(jumps);
        assert!(count == LANES && all.len() > 1000, "{}", all.len());
    }

    proptest! {
        #[test]
        fn arrows_never_overlap(jumps in prop::collection::vec((0usize..60, 0usize..60), 0..50)) {
            let (all, count) = lanes(jumps);
            prop_assert!(count <= LANES);
            for a in &all {
                for b in &all {
                    let apart = a.span().1 < b.span().0 || b.span().1 < a.span().0;
                    prop_assert!(a == b || a.lane != b.lane || a.to == b.to || apart);
                }
            }
        }
    }
}
