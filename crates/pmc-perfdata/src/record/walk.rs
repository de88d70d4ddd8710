//! Iterates over the records in a ring: one slice, or two if the data wraps around.

use super::{RawRecord, Records};

/// Passes every record in the slices to `visit`. A record that spans two slices is first assembled in
/// `joint`. Skips an incomplete record at the end.
///
/// ```text
/// | record | record | rec      |ord | record |
/// '------ first slice ---------'--- second --'
///                     copied together into `joint`
/// ```
pub fn walk(slices: &[&[u8]], joint: &mut Vec<u8>, mut visit: impl FnMut(&RawRecord<'_>)) {
    joint.clear();
    for slice in slices {
        let mut slice = *slice;
        // Complete the record that began in the previous slice, starting with its header, which contains the
        // size.
        while !joint.is_empty() && !slice.is_empty() {
            let size =
                joint.get(6..8).and_then(|s| s.first_chunk()).map(|s| usize::from(u16::from_ne_bytes(*s)));
            let missing = size.unwrap_or(8).max(8).saturating_sub(joint.len()).min(slice.len());
            joint.extend_from_slice(&slice[..missing]);
            slice = &slice[missing..];
            if let Some(record) = RawRecord::first(joint) {
                visit(&record);
                joint.clear();
            } else if missing == 0 {
                return;
            }
        }
        let mut records = Records::new(slice);
        records.by_ref().for_each(|record| visit(&record));
        joint.extend_from_slice(records.rest());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::{Thread, encode::Encoder};

    #[test]
    fn record_across_the_wrap_is_seen_once() {
        let mut encoder = Encoder::new(8);
        for tid in 0..5 {
            encoder.comm(Thread { pid: 1, tid }, b"name");
        }
        let bytes = encoder.bytes();
        let mut joint = Vec::new();
        for cut in 0..=bytes.len() {
            let (mut seen, mut length) = (0, 0);
            let (first, second) = bytes.split_at(cut);
            walk(&[first, second], &mut joint, |record| {
                seen += 1;
                length += record.bytes.len();
            });
            assert_eq!((seen, length), (5, bytes.len()), "cut at {cut}");
        }
    }

    #[test]
    fn invalid_record_ends_the_walk() {
        let mut joint = Vec::new();
        walk(&[&[0; 24], &[0; 24]], &mut joint, |_| panic!("there is no record"));
    }
}
