//! Translates advice to pmcstat's options.
//!
//! The pmcstat personality runs pmc's own commands. Their advice names pmc's options, which have different
//! letters in pmcstat or do not exist there. This module rewords the advice before it is printed.

use std::sync::atomic::{AtomicU32, Ordering};

use pmc_sys::error::say;

/// Options with different letters in pmcstat; the letter for `-o` depends on the step.
const LETTERS: [(&str, char); 3] = [("-c", 'n'), ("-i", 'R'), ("-p", 't')];
/// Programs whose command lines appear in advice.
const PROGRAMS: [&str; 11] =
    ["pmc", "perf", "mkdir", "mount", "pgrep", "ps", "sh", "sudo", "sysctl", "taskset", "ulimit"];
/// pmcstat's letter for `-o` in the current step.
static WRITTEN_BY: AtomicU32 = AtomicU32::new('o' as u32);

/// Translates all later advice; `written_by` is pmcstat's letter for pmc's `-o`.
pub(super) fn speak(written_by: char) {
    WRITTEN_BY.store(written_by.into(), Ordering::Relaxed);
    say::translate(|advice| {
        translated(advice, char::from_u32(WRITTEN_BY.load(Ordering::Relaxed)).unwrap_or('o'))
    });
}

fn translated(advice: &str, written_by: char) -> String {
    let mut text = String::new();
    let mut is_known = true;
    // After a program's name, the words up to a comma are that program's options.
    let mut is_program_s = false;
    for word in advice.split_inclusive(' ') {
        let start = word.find(|c: char| c.is_alphanumeric() || c == '-').unwrap_or(word.len());
        let length = word[start..].find(|c: char| c != '-' && !c.is_alphanumeric());
        let (option, behind) = word[start..].split_at(length.unwrap_or(word.len() - start));
        let is_option = option.len() > 1 && option.starts_with('-');
        let here = match option {
            "-o" => Some(written_by),
            _ => LETTERS.iter().find(|(own, _)| *own == option).map(|(_, here)| *here),
        };
        is_program_s |= PROGRAMS.contains(&option);
        match here.filter(|_| !is_program_s) {
            Some(here) => text.extend([&word[..start], "-", here.encode_utf8(&mut [0; 4]), behind]),
            None => {
                is_known &= !is_option || is_program_s;
                text.push_str(word);
            }
        }
        is_program_s &= !word.contains([',', ')']);
    }
    if is_known { text } else { format!("in pmc's own options: {advice}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn advice_uses_pmcstat_options_or_names_pmc() {
        for (advice, here) in [
            ("a smaller -c", "a smaller -n"),
            ("-o FILE, in a writable directory", "-O FILE, in a writable directory"),
            (
                "free some space, or record to another file system with -o",
                "free some space, or record to \
                                                                           another file system with -O",
            ),
            ("mkdir -p x", "mkdir -p x"),
            ("pmc stat report --log-exit -i x", "pmc stat report --log-exit -i x"),
            (
                "record something first (pmc record), or name a file with -i",
                "record something first (pmc record), or name a file with -R",
            ),
            (
                "raise kernel.perf_event_mlock_kb, or ulimit -l",
                "raise kernel.perf_event_mlock_kb, or ulimit -l",
            ),
            (
                "lower the frequency (-F), or use larger ring buffers (-m)",
                "in pmc's own options: lower the frequency (-F), or use larger ring buffers (-m)",
            ),
        ] {
            assert_eq!(translated(advice, 'O'), here);
        }
    }
}
