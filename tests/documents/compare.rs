//! Compares shown lines with printed ones, and writes new lines in place of outdated ones.

use super::page::ShownCommand;

/// A word of a line: unchanged, and without the parts that differ from run to run.
#[derive(Debug, Clone, PartialEq)]
struct Word<'a> {
    text: &'a str,
    kind: &'a str,
}

/// Returns the words of a line without the parts that differ from run to run: numbers, comparison signs, bars
/// and spacing.
fn words(line: &str) -> Vec<Word<'_>> {
    let is_bar = |word: &str| word.chars().all(|c| ('\u{2500}'..='\u{259f}').contains(&c) || c == '·');
    let is_sign = |word: &str| ["(+-", "(", "±", "<", "="].contains(&word);
    // Samples in a stripped library have no symbol, which changes the rest of the line. On a busy machine,
    // threads spend their time differently. Kernels have different functions.
    let line = [" of stacks complete", " elapsed, ", "◆"]
        .into_iter()
        .find_map(|end| Some(line.split_once(end)?.0))
        .unwrap_or(line);
    // The names of libc's own functions depend on whether its debug symbols are installed.
    let libc = "libc.so.6";
    let line = line.find(libc).map_or(line, |at| &line[..at + libc.len()]);
    // The columns of a busy machine: waits for a CPU. The command's name, if it is the same in all rows.
    let is_optional = |word: &str| ["CPU", "words"].contains(&word);
    let kept = line.split_whitespace().filter(|word| !is_bar(word) && !is_sign(word) && !is_optional(word));
    let mut words: Vec<Word<'_>> = Vec::new();
    for text in kept {
        let kind = match text {
            _ if text.contains('…') => text,
            _ if text.contains(|c: char| c.is_ascii_digit()) => "#",
            "K/sec" | "M/sec" => "/sec",
            // Slower machines take longer and collect more samples.
            _ => match text.trim_end_matches([';', ',', '.']) {
                "bytes" | "KiB" | "MiB" | "GiB" => "bytes",
                "ns" | "us" | "µs" | "ms" => "s",
                word => word,
            },
        };
        if kind != "#" || words.last().is_none_or(|last| last.kind != "#") {
            words.push(Word { text, kind });
        }
    }
    words
}

/// Whether a printed word is the shown one. `…` in a shown word matches any text.
fn is_word(shown: &Word<'_>, printed: &Word<'_>) -> bool {
    match shown.text.split_once('…') {
        Some((start, end)) => printed.text.starts_with(start) && printed.text.ends_with(end),
        None => shown.kind == printed.kind,
    }
}

/// Whether a printed line is the shown one. `…` at the end of the shown line matches any words.
fn is_line(shown: &str, printed: &str) -> bool {
    // On a busy machine, a few runs may not show a difference.
    let is_verdict = shown.contains("times as fast as A") || shown.contains("times as long as A");
    if is_verdict && printed.contains("No difference between B and A found") {
        return true;
    }
    let verdict = if shown.ends_with("slower") { "slower" } else { "faster" };
    let printed = printed.replace("no difference shown", verdict);
    let (mut shown, printed) = (words(shown), words(&printed));
    let is_open = shown.last().is_some_and(|word| word.text == "…");
    if is_open {
        shown.pop();
    }
    let is_long_enough = if is_open { printed.len() >= shown.len() } else { printed.len() == shown.len() };
    is_long_enough && shown.iter().zip(&printed).all(|(shown, printed)| is_word(shown, printed))
}

/// Returns the first shown line that was not printed. The printed lines may have others between them. They
/// must have the order of the shown lines if `is_ordered`.
pub(crate) fn missing<'a>(shown: &'a ShownCommand, printed: &str, is_ordered: bool) -> Option<&'a str> {
    let all: Vec<&str> = printed.lines().collect();
    let mut from = 0;
    shown.lines.iter().filter(|(_, line)| line.trim() != "…").find_map(|(_, line)| {
        match all[from..].iter().position(|printed| is_line(line, printed)) {
            Some(at) => {
                from = if is_ordered { from + at + 1 } else { 0 };
                None
            }
            None => Some(line.as_str()),
        }
    })
}

/// Returns the lines to show instead of the lines of a command: each line that is printed as shown (with
/// `is_whole`, as printed now), and for the others the most similar printed line. Without one, returns all
/// printed lines, to be shortened by hand.
pub(crate) fn renewed(shown: &ShownCommand, printed: &str, is_ordered: bool, is_whole: bool) -> Vec<String> {
    let all: Vec<&str> = printed.lines().map(str::trim_end).collect();
    let (mut from, mut used) = (0, vec![false; all.len()]);
    let line = |(_, line): &(usize, String)| {
        if line.trim() == "…" {
            return Some(line.clone());
        }
        let same = (from..all.len()).find(|&at| !used[at] && is_line(line, all[at]));
        let at = same.or_else(|| {
            let unused = (from..all.len()).filter(|&at| !used[at]).map(|at| (at, all[at]));
            most_similar(line, unused)
        })?;
        used[at] = true;
        if is_ordered {
            from = at + 1;
        }
        Some(match same {
            Some(_) if !is_whole || line.trim_end_matches(" …").contains('…') => line.clone(),
            _ if line.ends_with(" …") => shortened(all[at], line.chars().count()),
            _ => all[at].to_owned(),
        })
    };
    let renewed: Option<Vec<String>> = shown.lines.iter().map(line).collect();
    renewed.unwrap_or_else(|| all.into_iter().map(str::to_owned).collect())
}

/// Returns the index of the line that shares most words with `shown`, and at least two thirds of all.
fn most_similar<'a>(shown: &str, printed: impl Iterator<Item = (usize, &'a str)>) -> Option<usize> {
    let shown = words(shown);
    let shared = |line: &str| {
        let line = words(line);
        let same = shown.iter().filter(|word| line.iter().any(|other| is_word(word, other))).count();
        (same * 3 >= shown.len().max(line.len()) * 2 && same > 0).then_some(same)
    };
    let candidates = printed.filter_map(|(at, line)| Some((shared(line)?, at)));
    candidates.max_by_key(|&(same, at)| (same, std::cmp::Reverse(at))).map(|(_, at)| at)
}

/// Cuts a line before the word that exceeds `width` columns.
fn shortened(line: &str, width: usize) -> String {
    let Some((cut, _)) = line.char_indices().nth(width) else { return line.to_owned() };
    let end = line[..cut].rfind(' ').unwrap_or(cut);
    format!("{} …", line[..end].trim_end())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(lines: &[&str]) -> ShownCommand {
        let lines = lines.iter().enumerate().map(|(at, &line)| (at, line.to_owned())).collect();
        ShownCommand { command: String::new(), at: 0, lines }
    }

    #[test]
    fn lines_are_compared_without_numbers() {
        let printed = " 12.5% ±0.3  ███░  main › f\nother\n   3.1%  g (inlined)\n";
        assert_eq!(missing(&shown(&["99.0% ±1.2  █░  main › f", "…", "0.1% g …"]), printed, true), None);
        let turned = shown(&["other", "1% ±2 main › f"]);
        assert_eq!(missing(&turned, printed, true), Some("1% ±2 main › f"));
        assert_eq!(missing(&turned, printed, false), None);
        assert_eq!(missing(&shown(&["1% h"]), printed, false), Some("1% h"));
        assert_eq!(missing(&shown(&["1% g"]), printed, false), Some("1% g"));
        assert_eq!(missing(&shown(&["382 KiB; 15 µs of CPU"]), "1.4 MiB; 2.1 ms of CPU", true), None);
        assert_eq!(
            missing(&shown(&["1 s elapsed, 3 threads: …"]), "2 s elapsed, 3 threads: 1 s", true),
            None
        );
        assert_eq!(missing(&shown(&["a …/x.c b"]), "a /tmp/1/x.c b", true), None);
        assert_eq!(missing(&shown(&["a …/x.c b"]), "a /tmp/1/y.c b", true), Some("a …/x.c b"));
    }

    #[test]
    fn outdated_lines_are_replaced_by_the_most_similar_ones() {
        let printed = "head\n 2 calls in 3 ms, all seen\nmore\n  9% f (lib.so) in thread 7";
        let old = shown(&["9 calls in 1 ms, seen", "…", "  1% f …"]);
        assert_eq!(renewed(&old, printed, true, false), [" 2 calls in 3 ms, all seen", "…", "  1% f …"]);
        assert_eq!(renewed(&old, printed, true, true), [" 2 calls in 3 ms, all seen", "…", "  9% f …"]);
        assert_eq!(renewed(&shown(&["nothing like it"]), printed, true, false).len(), 4);
    }
}
