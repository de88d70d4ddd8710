//! The lines of call chains. The text of each address is formatted only once, then copied.

use std::io::Write as _;

use super::digits::hex;
use super::{ScriptLayout, ScriptWriter};
use pmc_analysis::profile::script::{
    AddressFunction, AddressFunctions, ScriptEntry, ScriptField, ScriptFields,
};
use pmc_text::text::clean;

/// Cache of the formatted text of each address, for each field selection.
///
/// ```text
///   made   (start, length) of address 0 in choice 0, choice 1, address 1 in choice 0, …; length 0: none yet
///   text   …\t           113c leaf+0x13 (/tmp/deep)\n…
/// ```
#[derive(Debug)]
pub(super) struct AddressLines {
    choices: Vec<ScriptFields>,
    made: Vec<(usize, u32)>,
    text: Vec<u8>,
    full_paths: bool,
    /// Whether chains are cut off after an address, by address number.
    stops: Vec<bool>,
}

/// Maximum size of the cached text in bytes, which is enough for the most frequent addresses.
const MOST_TEXT: usize = 8 << 20;

impl AddressLines {
    pub(super) fn new(choices: Vec<ScriptFields>, places: &AddressFunctions, layout: &ScriptLayout) -> Self {
        let stop_at = &layout.stop_at;
        let made = vec![(0, 0); places.len() * choices.len()];
        let is_stop = |place: &AddressFunction| {
            place.symbol.as_ref().is_some_and(|name| stop_at.iter().any(|stop| **stop == **name))
        };
        let stops = if stop_at.is_empty() {
            Vec::new()
        } else {
            (0..places.len() as u32).map(|number| places.at(number).iter().any(is_stop)).collect()
        };
        Self { choices, made, text: Vec::new(), full_paths: layout.full_paths, stops }
    }

    fn line(&mut self, places: &AddressFunctions, number: u32, choice: usize) -> &[u8] {
        let at = number as usize * self.choices.len() + choice;
        let Some(&(start, length)) = self.made.get(at) else { return &[] };
        if length > 0 {
            return &self.text[start..start + length as usize];
        }
        if self.text.len() > MOST_TEXT {
            self.text.clear();
            self.made.fill((0, 0));
        }
        let (start, fields) = (self.text.len(), self.choices[choice]);
        for place in places.at(number) {
            if fields.has(ScriptField::Ip) {
                self.text.push(b'\t');
                hex(&mut self.text, if place.in_kernel { place.address } else { place.offset }, 16);
            }
            words(&mut self.text, place, fields, self.full_paths);
            self.text.push(b'\n');
        }
        let length = u32::try_from(self.text.len() - start).unwrap_or(0);
        self.made[at] = (start, length);
        &self.text[start..]
    }
}

impl ScriptWriter<'_> {
    pub(super) fn places(&mut self, entry: &ScriptEntry<'_>, fields: ScriptFields) {
        if entry.has_chain {
            self.out.push(b'\n');
            let choice = self.choices[entry.event];
            let mut numbers = entry.places;
            while let Some((&number, others)) = numbers.split_first() {
                numbers = others;
                let line = self.lines.line(self.places, number, choice);
                self.out.extend_from_slice(line);
                if self.lines.stops.get(number as usize).copied().unwrap_or(false) {
                    return;
                }
                let alike =
                    if self.layout.joins_unknown { unknown_behind(self.places, number, others) } else { 0 };
                if alike >= FEWEST_JOINED {
                    let _ = writeln!(self.out, "\t                 … {alike} more frames in unknown code");
                    numbers = &others[alike..];
                }
            }
            return;
        }
        self.out.push(b' ');
        if let Some(place) = entry.places.last().and_then(|number| self.places.at(*number).last()) {
            if fields.has(ScriptField::Ip) {
                hex(&mut self.out, place.address, 16);
            }
            words(&mut self.out, place, fields, self.layout.full_paths);
        }
    }
}

/// Minimum number of consecutive unknown frames that are combined.
const FEWEST_JOINED: usize = 3;

/// Returns the number of unknown frames that directly follow this frame; 0 if this frame is known.
fn unknown_behind(places: &AddressFunctions, number: u32, others: &[u32]) -> usize {
    let is_unknown =
        |number: &u32| places.at(*number).iter().all(|place| place.symbol.is_none() && place.dso.is_none());
    if !is_unknown(&number) {
        return 0;
    }
    others.iter().take_while(|number| is_unknown(number)).count()
}

/// Appends the text after the address: function, module, line.
fn words(line: &mut Vec<u8>, place: &AddressFunction, fields: ScriptFields, full_paths: bool) {
    if fields.has(ScriptField::Sym) {
        line.push(b' ');
        symbol(line, place, fields.has(ScriptField::SymOff));
    }
    if fields.has(ScriptField::Dso) && !place.inlined {
        line.push(b' ');
        dso(line, Some(place));
        if fields.has(ScriptField::DsOff) && place.dso.is_some() && !place.in_kernel && !place.is_imported {
            // Insert the offset inside the brackets.
            line.pop();
            line.extend(b"+0x");
            hex(line, place.offset, 0);
            line.push(b')');
        }
    }
    if fields.has(ScriptField::SrcLine) {
        match (&place.source, &place.dso) {
            (Some((file, number)), _) => {
                let name = if full_paths { file } else { file.rsplit('/').next().unwrap_or(file) };
                let _ = write!(line, "\n  {}:{number}", clean(name));
            }
            (None, Some(dso)) if !place.is_imported => {
                let name = dso.rsplit('/').next().unwrap_or(dso);
                let _ = write!(line, "\n  {}[{:x}]", clean(name), place.offset);
            }
            (None, _) => {}
        }
    }
    if place.inlined {
        line.extend(b" (inlined)");
    }
}

/// Appends the function, optionally with the offset from its start.
pub(super) fn symbol(line: &mut Vec<u8>, place: &AddressFunction, with_offset: bool) {
    match &place.symbol {
        Some(symbol) => {
            line.extend_from_slice(clean(symbol).as_bytes());
            if with_offset && !place.is_imported {
                line.extend(b"+0x");
                hex(line, place.into, 0);
            }
        }
        None => line.extend(b"[unknown]"),
    }
}

/// Appends the module in brackets.
pub(super) fn dso(line: &mut Vec<u8>, place: Option<&AddressFunction>) {
    let name = place.and_then(|place| place.dso.as_deref()).unwrap_or("[unknown]");
    line.push(b'(');
    line.extend_from_slice(clean(name).as_bytes());
    line.push(b')');
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn consecutive_unknown_frames_are_counted() {
        let mut places = AddressFunctions::default();
        places.push([AddressFunction { symbol: Some("main".into()), ..AddressFunction::default() }]);
        (0..3).for_each(|_| places.push([AddressFunction::default()]));
        assert_eq!(unknown_behind(&places, 1, &[2, 3, 1, 0, 2]), 3);
        assert_eq!((unknown_behind(&places, 0, &[1, 2]), unknown_behind(&places, 1, &[])), (0, 0));
    }

    #[test]
    fn cached_lines_are_rebuilt_after_eviction() {
        let mut places = AddressFunctions::default();
        let long = |number: usize| Some(number.to_string().repeat(MOST_TEXT / 4).into());
        (0..8).for_each(|number| {
            places.push([AddressFunction { symbol: long(number), ..AddressFunction::default() }])
        });
        let choices = vec![ScriptFields::from_list(&[ScriptField::Sym])];
        let mut lines = AddressLines::new(choices, &places, &ScriptLayout::default());
        for number in [0, 1, 2, 0, 3, 4, 5, 6, 7, 1, 0] {
            let line = lines.line(&places, number, 0).to_vec();
            assert!(line.iter().filter(|byte| **byte == b'0' + number as u8).count() == MOST_TEXT / 4);
            assert!(lines.text.len() < 2 * MOST_TEXT);
        }
    }
}
