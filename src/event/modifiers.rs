//! The letters behind an event or a group, and the qualifiers that say the same in words.
//!
//! Receives a word of letters; changes the levels, the precision and the scheduling of specs by perf's rules:
//!
//! * The first of `u k h` leaves out all three levels, then each letter takes its own back in; so with `G` and `H`.
//! * Letters on an event replace what it had by default: without `u`, `p` or `H`, guests are counted too. Letters on a
//!   group add to what its members have.

use super::error::{Fault, Result};
use super::syntax::Word;
use super::{EventSpec, Source};
use crate::abi::attr::Flag;

/// What each letter means; shown when a letter is wrong.
const LETTERS: &str = "u user, k kernel, h hypervisor, I not idle, G guest, H host, p (to ppp) precise, P most precise, \
     S read with the leader, D pinned, e exclusive, W weak group, b by BPF, R not regrouped";

/// Checked letters.
#[derive(Debug, Clone, Copy)]
pub(super) struct Modifiers<'a>(&'a str);

impl<'a> Modifiers<'a> {
    /// Checks the letters.
    pub(super) fn read(word: Word<'a>) -> Result<Self> {
        let mut precise = 0;
        for (at, letter) in word.text.char_indices() {
            let span = word.at + at..word.at + at + letter.len_utf8();
            if !super::syntax::MODIFIERS.contains(letter) {
                return Err(Fault::at(&span, format!("`{letter}` is no modifier")).expected(LETTERS));
            }
            precise += u32::from(letter == 'p');
            if letter != 'p' && word.text[..at].contains(letter) {
                return Err(Fault::at(&span, format!("the modifier `{letter}` is there twice")));
            }
            if precise > 3 {
                return Err(Fault::at(&span, "a fourth `p`: there are three levels of precision")
                    .expected("p (constant skid), pp (requested zero skid) or ppp (zero skid)"));
            }
        }
        Ok(Self(word.text))
    }

    /// Letters that are known to be right.
    pub(super) fn trusted(letters: &'a str) -> Self {
        Self(letters)
    }

    pub(super) fn has(self, letter: char) -> bool {
        self.0.contains(letter)
    }

    /// Applies the letters of the event itself, which replace its defaults.
    pub(super) fn replace(self, spec: &mut EventSpec) {
        if let Source::Kernel(attr) = &mut spec.source {
            for flag in [
                Flag::ExcludeUser,
                Flag::ExcludeKernel,
                Flag::ExcludeHv,
                Flag::ExcludeHost,
                Flag::ExcludeGuest,
                Flag::ExcludeIdle,
            ] {
                attr.set(flag, false);
            }
            attr.set_precise_ip(0);
        }
        self.add(spec);
    }

    /// Applies letters that add to what the event has: those of its group, and qualifiers.
    pub(super) fn add(self, spec: &mut EventSpec) {
        spec.levels_chosen |= self.0.contains(['u', 'k', 'h']);
        spec.precise_max |= self.has('P');
        spec.sample_read |= self.has('S');
        spec.bpf_counter |= self.has('b');
        let Source::Kernel(attr) = &mut spec.source else { return };
        let mut levels =
            [Flag::ExcludeUser, Flag::ExcludeKernel, Flag::ExcludeHv].iter().any(|&f| attr.get(f));
        let mut sides = spec.sides_chosen;
        let mut precise = 0;
        for letter in self.0.chars() {
            match letter {
                'u' | 'k' | 'h' => {
                    if !levels {
                        for flag in [Flag::ExcludeUser, Flag::ExcludeKernel, Flag::ExcludeHv] {
                            attr.set(flag, true);
                        }
                        levels = true;
                    }
                    let own = match letter {
                        'u' => Flag::ExcludeUser,
                        'k' => Flag::ExcludeKernel,
                        _ => Flag::ExcludeHv,
                    };
                    attr.set(own, false);
                    if letter == 'u' && !sides {
                        attr.set(Flag::ExcludeGuest, true);
                    }
                }
                'G' | 'H' => {
                    if !sides {
                        attr.set(Flag::ExcludeHost, true);
                        attr.set(Flag::ExcludeGuest, true);
                        sides = true;
                    }
                    attr.set(if letter == 'G' { Flag::ExcludeGuest } else { Flag::ExcludeHost }, false);
                }
                'I' => attr.set(Flag::ExcludeIdle, true),
                'p' => {
                    precise += 1;
                    if !sides {
                        attr.set(Flag::ExcludeGuest, true);
                    }
                }
                'D' => attr.set(Flag::Pinned, true),
                'e' => attr.set(Flag::Exclusive, true),
                _ => {}
            }
        }
        if precise > 0 {
            attr.set_precise_ip(attr.precise_ip().saturating_add(precise).min(3));
        }
        spec.sides_chosen = sides;
    }
}
