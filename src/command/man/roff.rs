//! A page of the manual as a man page: text with the macros of `man(7)`.
//!
//! A line that begins with a period is a macro, and a backslash begins an escape such as `\fB` (bold) or `\-`
//! (a hyphen that can be copied from the page).

use crate::command::man::page::{Page, Part};

/// Returns the man page, in section 1. It has no date, so that the same program always writes the same page.
pub(super) fn text(page: &Page) -> String {
    let version = env!("CARGO_PKG_VERSION");
    let title = format!(".TH {} 1 \"\" \"pmc {version}\" \"pmc manual\"\n", page.name.to_uppercase());
    let about = page.about.trim_end_matches('.');
    let mut text = format!("{title}.SH NAME\n{} \\- {}\n", escaped(&page.name), escaped(about));
    let mut follows_heading = true;
    for part in &page.parts {
        // A heading already starts a paragraph.
        let paragraph_macro = if follows_heading { "" } else { ".PP\n" };
        follows_heading = matches!(part, Part::Heading(..));
        text += &match part {
            Part::Heading(1, title) => format!(".SH {}\n", escaped(&title.to_uppercase())),
            Part::Heading(_, title) => format!(".SS {}\n", escaped(title)),
            Part::Paragraph(paragraph) => format!("{paragraph_macro}{}\n", line(paragraph)),
            // Lines that are not filled, indented by four characters.
            Part::Lines(lines) => {
                let lines: String = lines.iter().map(|example| line(example) + "\n").collect();
                format!("{paragraph_macro}.RS 4\n.nf\n{lines}.fi\n.RE\n")
            }
            Part::Term(words, meaning) => {
                let words: Vec<String> =
                    words.iter().map(|word| format!("\\fB{}\\fR", escaped(word))).collect();
                format!(".TP\n{}\n{}\n", words.join(", "), line(meaning))
            }
        };
    }
    text
}

/// Returns a line of text, which is never a macro.
fn line(text: &str) -> String {
    format!("{}{}", if text.starts_with('.') { "\\&" } else { "" }, escaped(text))
}

/// Returns the text in ASCII, with its special characters as escapes. Quotes and hyphens keep their ASCII
/// form, so that commands can be copied from the page.
fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '\\' => escaped.push_str("\\e"),
            '-' => escaped.push_str("\\-"),
            '\'' => escaped.push_str("\\(aq"),
            '`' => escaped.push_str("\\(ga"),
            '^' => escaped.push_str("\\(ha"),
            '~' => escaped.push_str("\\(ti"),
            '"' => escaped.push_str("\\(dq"),
            _ if letter.is_ascii() => escaped.push(letter),
            _ => escaped.push_str(&format!("\\[u{:04X}]", u32::from(letter))),
        }
    }
    escaped
}
