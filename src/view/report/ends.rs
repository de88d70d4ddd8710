//! The part of the trust line about stacks that end early: where, why, and what would help.
//!
//! Receives counts; decides which are worth a line. Copied stacks know why the unwinder stopped; of the
//! kernel's own chains only the module is known in which the last frame lies, which is as a rule the one that
//! was built without frame pointers.

use std::io::{self, Write};

use crate::abi::attr::LARGEST_STACK_COPY;
use crate::profile::sampled::DataQuality;
use crate::sort;
use crate::text::clean;

/// Fewer broken stacks than this need no explanation.
const WORTH: f64 = 1.0;
/// Modules that are named.
const MOST: usize = 3;

/// Writes nothing where (nearly) all stacks are whole.
pub(super) fn write(out: &mut dyn Write, trust: &DataQuality) -> io::Result<()> {
    if trust.ends.copied > 0 {
        copied(out, trust)?;
    } else {
        chains(out, trust)?;
    }
    if trust.joined > 0 {
        let joined = share(trust.joined, trust.stacks);
        let with = "are joined with what was seen of their threads before";
        writeln!(out, "       {joined:.1}% ended where their copy ends, and {with} (--no-join: not).")?;
    }
    let cut_off = share(trust.cut_off, trust.stacks);
    if cut_off < WORTH {
        return Ok(());
    }
    writeln!(out, "       {cut_off:.1}% led to addresses where nothing was mapped; these are cut off.")
}

fn share(part: u64, all: u64) -> f64 {
    part as f64 / all.max(1) as f64 * 100.0
}

fn copied(out: &mut dyn Write, trust: &DataQuality) -> io::Result<()> {
    let ends = &trust.ends;
    let of_all = |part: u64| share(part, ends.copied);
    if of_all(ends.early()) < WORTH {
        return Ok(());
    }
    let mut parts = Vec::new();
    let mut part = |samples: u64, words: &str| {
        if samples > 0 {
            parts.push((samples, format!("{:.1}% {words}", of_all(samples))));
        }
    };
    part(ends.cut, "where the copy of the stack ends");
    part(ends.lost, "where the unwind tables lead nowhere");
    part(ends.long, "because they are longer than --max-stack");
    part(ends.compat, "in 32-bit Arm processes, which pmc does not unwind");
    for (module, samples) in ends.no_tables.iter().take(MOST) {
        match module {
            Some(name) => part(*samples, &format!("in {}, which has no unwind tables there", clean(name))),
            None => part(*samples, "where nothing was mapped"),
        }
    }
    let rest: u64 = ends.no_tables.iter().skip(MOST).map(|(_, samples)| samples).sum();
    part(rest, "in other code without unwind tables");
    sort::by_key(&mut parts, |(samples, _)| std::cmp::Reverse(*samples));
    let words: Vec<String> = parts.into_iter().map(|(_, words)| words).collect();
    writeln!(
        out,
        "       {:.1}% of the copied stacks end early: {}.",
        of_all(ends.early()),
        words.join(", ")
    )?;
    if of_all(ends.cut) >= WORTH {
        writeln!(out, "         try: {}", more_of_each("dwarf", trust.largest_copies))?;
    }
    Ok(())
}

fn chains(out: &mut dyn Write, trust: &DataQuality) -> io::Result<()> {
    let broken: u64 = trust.broken.iter().map(|(_, samples)| samples).sum();
    if share(broken, trust.stacks) < WORTH {
        return Ok(());
    }
    let named = trust.broken.iter().take(MOST);
    let mut words: Vec<String> = named
        .map(|(name, samples)| format!("{:.1}% in {}", share(*samples, trust.stacks), clean(name)))
        .collect();
    let rest: u64 = trust.broken.iter().skip(MOST).map(|(_, samples)| samples).sum();
    if rest > 0 {
        words.push(format!("{:.1}% elsewhere", share(rest, trust.stacks)));
    }
    writeln!(out, "       {:.1}% end early: {}.", share(broken, trust.stacks), words.join(", "))?;
    let advice = match trust.unwound_live {
        Some(how) => more_of_each(how, trust.largest_copies),
        None => "record --call-graph auto, or build that code with -fno-omit-frame-pointer".to_owned(),
    };
    writeln!(out, "         try: {advice}")
}

/// What helps where copies are too small.
fn more_of_each(how: &str, are_largest: bool) -> String {
    match are_largest {
        true => "build that code with -fno-omit-frame-pointer: copies cannot be larger".to_owned(),
        false => format!("copy more of each stack (--call-graph {how},{LARGEST_STACK_COPY})"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profile::sampled::quality::Ends;

    fn written(trust: &DataQuality) -> String {
        let mut out = Vec::new();
        write(&mut out, trust).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn copied_stacks_say_why_they_end() {
        let no_tables = vec![(Some("jit\x1b.so".to_owned()), 30), (None, 5)];
        let ends = Ends { copied: 1000, cut: 100, lost: 0, long: 2, compat: 0, no_tables };
        let said = written(&DataQuality { ends, ..DataQuality::default() });
        let want = "       13.7% of the copied stacks end early: 10.0% where the copy of the stack ends, ";
        assert!(said.starts_with(want), "{said}");
        assert!(
            said.contains("3.0% in jit") && !said.contains('\x1b') && said.contains("dwarf,65528"),
            "{said}"
        );
        assert_eq!(
            written(&DataQuality {
                ends: Ends { copied: 1000, cut: 5, ..Ends::default() },
                ..DataQuality::default()
            }),
            ""
        );
    }

    #[test]
    fn what_was_cut_off_is_counted() {
        let said = |cut_off| written(&DataQuality { stacks: 200, cut_off, ..DataQuality::default() });
        let want = "       25.0% led to addresses where nothing was mapped; these are cut off.\n";
        assert_eq!((said(50).as_str(), said(1).as_str()), (want, ""));
    }

    #[test]
    fn joined_stacks_are_counted() {
        let said = |joined| written(&DataQuality { stacks: 200, joined, ..DataQuality::default() });
        assert!(
            said(50).starts_with("       25.0% ended where their copy ends, and are joined"),
            "{}",
            said(50)
        );
        assert_eq!(said(0), "");
    }

    #[test]
    fn broken_chains_say_where() {
        let broken = ["a", "b", "c", "d"].map(|name| (name.to_owned(), 10)).into();
        let said = written(&DataQuality { stacks: 200, broken, ..DataQuality::default() });
        let want = "       20.0% end early: 5.0% in a, 5.0% in b, 5.0% in c, 5.0% elsewhere.\n";
        assert!(said.starts_with(want) && said.contains("--call-graph auto"), "{said}");
    }
}
