//! A page of the manual as Markdown.

use crate::command::man::page::{Page, Part};

/// Returns the page. Options are items of lists, and examples are blocks of code.
pub(super) fn text(page: &Page) -> String {
    let mut text =
        format!("# {}\n\n{}.\n", page.name.replacen('-', " ", 1), page.about.trim_end_matches('.'));
    let mut is_list = false;
    for part in &page.parts {
        let is_term = matches!(part, Part::Term(..));
        if !(is_list && is_term) {
            text.push('\n');
        }
        is_list = is_term;
        text += &match part {
            Part::Heading(level, title) => format!("#{} {title}\n", "#".repeat(*level)),
            Part::Paragraph(paragraph) => format!("{paragraph}\n"),
            Part::Lines(lines) => format!("```text\n{}\n```\n", lines.join("\n")),
            Part::Term(words, meaning) => {
                let words: Vec<String> = words.iter().map(|word| format!("`{word}`")).collect();
                format!("- {}: {meaning}\n", words.join(", "))
            }
        };
    }
    text
}
