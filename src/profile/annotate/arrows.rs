//! Jumps as arrows beside the code: which lane each takes.
//!
//! Receives where jumps begin and end, by row; decides lanes so that no two arrows share one where both pass.
//! Short jumps are nearest to the code. What would need more than [`LANES`] lanes is left without an arrow.
//!
//! ```text
//!   lane 1 0
//!        │╭─ jle 30
//!        ╭┼─ jmp 10      lane 1 begins
//!        │╰▸ 30: …
//! ```

use crate::sort;
use std::collections::BTreeMap;

/// Most lanes that are drawn.
pub const LANES: usize = 8;

/// An arrow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Jump {
    /// Row of the jump.
    pub from: usize,
    /// Row where it leads.
    pub to: usize,
    /// 0 is nearest to the code.
    pub lane: usize,
}

/// What an arrow does in a row, as seen by one lane.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Piece {
    /// It passes.
    Pass,
    /// It has its upper end here.
    Top,
    /// It has its lower end here.
    Bottom,
    /// It begins and ends here: an instruction that jumps to itself.
    Both,
}

impl Jump {
    /// First and last row.
    pub fn span(&self) -> (usize, usize) {
        (self.from.min(self.to), self.from.max(self.to))
    }

    /// What it does in a row.
    pub fn at(&self, row: usize) -> Option<Piece> {
        let (top, bottom) = self.span();
        match row {
            _ if row < top || row > bottom => None,
            _ if top == bottom => Some(Piece::Both),
            _ if row == top => Some(Piece::Top),
            _ if row == bottom => Some(Piece::Bottom),
            _ => Some(Piece::Pass),
        }
    }
}

/// What a lane holds: stretches that do not touch, by their first row, with the last row and the row where
/// they lead.
type Lane = BTreeMap<usize, (usize, usize)>;

/// Puts a stretch into a lane if it is free there. Stretches that lead to one row all hold that row, so they
/// make one.
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

/// Gives lanes to jumps (from, to); says also how many lanes are taken. Jumps to one place share a lane where
/// they can.
pub fn lanes(mut jumps: Vec<(usize, usize)>) -> (Vec<Jump>, usize) {
    sort::by_key(&mut jumps, |(from, to)| (from.abs_diff(*to), *from));
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
        all.push(Jump { from, to, lane });
    }
    sort::by_key(&mut all, |jump| (jump.from, jump.to));
    (all, taken.len())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn short_jumps_are_nearest_and_crossing_ones_apart() {
        let (all, count) = lanes(vec![(0, 10), (2, 4), (8, 3), (20, 20)]);
        let lane = |from: usize| all.iter().find(|jump| jump.from == from).unwrap().lane;
        assert_eq!((lane(2), lane(8), lane(0), lane(20)), (0, 1, 2, 0));
        assert_eq!(count, 3);
        assert_eq!(all[0].at(5), Some(Piece::Pass));
        assert_eq!(
            (all[0].at(0), all[0].at(10), all[0].at(11)),
            (Some(Piece::Top), Some(Piece::Bottom), None)
        );
    }

    #[test]
    fn jumps_to_one_place_share_a_lane() {
        let (all, count) = lanes(vec![(1, 9), (3, 9), (5, 9)]);
        assert_eq!((all.len(), count), (3, 1));
    }

    #[test]
    fn very_many_jumps_are_no_burden() {
        let jumps = (0..200_000usize).map(|n| (n, n.wrapping_mul(2_654_435_761) % 200_000)).collect();
        let (all, count) = lanes(jumps);
        assert!(count == LANES && all.len() > 1000, "{}", all.len());
    }

    proptest! {
        #[test]
        fn no_two_arrows_run_into_each_other(jumps in prop::collection::vec((0usize..60, 0usize..60), 0..50)) {
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
