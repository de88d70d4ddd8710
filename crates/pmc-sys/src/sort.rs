//! One shared sort for all short lists.
//!
//! The standard library's sorts are compiled anew for each type and each comparison, at 5 to 10 KB each.
//! Most lists here are short (displayed rows, PMUs, files of a folder). They share one sort that handles
//! elements only by index. Long lists (symbols, samples) and plain numbers use the library's sorts.

use std::cmp::Ordering;

/// Sorts a list with `compare`; equal elements keep their order.
pub fn by<T>(list: &mut [T], mut compare: impl FnMut(&T, &T) -> Ordering) {
    let order = order(list.len(), &mut |one, other| compare(&list[one], &list[other]));
    arrange(order, &mut |one, other| list.swap(one, other));
}

/// Sorts a list by keys, each computed once; equal elements keep their order.
pub fn by_key<T, K: Ord>(list: &mut [T], key: impl FnMut(&T) -> K) {
    let keys: Vec<K> = list.iter().map(key).collect();
    let order = order(list.len(), &mut |one, other| keys[one].cmp(&keys[other]));
    arrange(order, &mut |one, other| list.swap(one, other));
}

/// Returns for each position the index of the element that belongs there.
fn order(length: usize, compare: &mut dyn FnMut(usize, usize) -> Ordering) -> Vec<usize> {
    let mut order: Vec<usize> = (0..length).collect();
    order.sort_by(|&one, &other| compare(one, other));
    order
}

/// Moves the elements into this order, cycle by cycle: each position that becomes free is filled next.
fn arrange(mut order: Vec<usize>, swap: &mut dyn FnMut(usize, usize)) {
    for first in 0..order.len() {
        let mut place = first;
        loop {
            let from = std::mem::replace(&mut order[place], place);
            if from == first {
                break;
            }
            swap(place, from);
            place = from;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sorting_matches_the_standard_library() {
        let mut state = 1u64;
        for length in (0..100).chain([1000]) {
            let mut next = || {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                (state >> 60) as u8
            };
            let list: Vec<(u8, usize)> = (0..length).map(|number| (next(), number)).collect();
            let (mut wanted, mut by_comparison, mut by_keys) = (list.clone(), list.clone(), list);
            wanted.sort_by_key(|(key, _)| *key);
            by(&mut by_comparison, |one, other| one.0.cmp(&other.0));
            by_key(&mut by_keys, |(key, _)| *key);
            assert_eq!(by_comparison, wanted);
            assert_eq!(by_keys, wanted);
        }
    }
}
