//! Splits C code into tokens: words, numbers, string literals and operators.

/// A token of C.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Token {
    Word(String),
    Number(i64),
    Text(String),
    Sign(&'static str),
}

/// Operators, longest first.
const SIGNS: [&str; 31] = [
    "->", "<<", ">>", "<=", ">=", "==", "!=", "&&", "||", "(", ")", "[", "]", "{", "}", ",", "?", ":", "+",
    "-", "*", "/", "%", "&", "|", "^", "~", "!", "<", ">", ".",
];

/// Splits `text` into tokens; `None` if it is not valid C or has too many tokens.
pub(super) fn tokens(text: &str) -> Option<Vec<Token>> {
    /// The kernel's longest format has about 3,000 tokens.
    const MAX_TOKENS: usize = 1 << 16;
    let mut tokens = Vec::new();
    let mut left = text.trim_start();
    while let Some(first) = left.chars().next() {
        if tokens.len() > MAX_TOKENS {
            return None;
        }
        let rest = if first == '"' {
            let (text, rest) = quoted(&left[1..])?;
            tokens.push(Token::Text(text));
            rest
        } else if let Some(quoted) = left.strip_prefix('\'') {
            let c = quoted.chars().next().filter(|c| c.is_ascii() && *c != '\\')?;
            tokens.push(Token::Number(c as i64));
            quoted[1..].strip_prefix('\'')?
        } else if first.is_ascii_digit() {
            let end = left.find(|c: char| !c.is_ascii_alphanumeric()).unwrap_or(left.len());
            tokens.push(Token::Number(number(&left[..end])?));
            &left[end..]
        } else if first.is_ascii_alphabetic() || first == '_' {
            let end = left.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(left.len());
            tokens.push(Token::Word(left[..end].to_owned()));
            &left[end..]
        } else {
            let sign = SIGNS.iter().find(|sign| left.starts_with(**sign))?;
            tokens.push(Token::Sign(sign));
            &left[sign.len()..]
        };
        left = rest.trim_start();
    }
    Some(tokens)
}

/// Returns the string up to the closing quote, with escapes resolved, and the text after it.
fn quoted(text: &str) -> Option<(String, &str)> {
    let mut out = String::new();
    let mut chars = text.char_indices();
    while let Some((at, c)) = chars.next() {
        match c {
            '"' => return Some((out, &text[at + 1..])),
            '\\' => out.push(match chars.next()?.1 {
                'n' => '\n',
                't' => '\t',
                other => other,
            }),
            _ => out.push(c),
        }
    }
    None
}

fn number(word: &str) -> Option<i64> {
    let digits = word.trim_end_matches(['u', 'U', 'l', 'L']);
    let number = match digits.strip_prefix("0x").or_else(|| digits.strip_prefix("0X")) {
        Some(hex) => u64::from_str_radix(hex, 16).ok()?,
        None if digits.len() > 1 && digits.starts_with('0') => u64::from_str_radix(digits, 8).ok()?,
        None => digits.parse().ok()?,
    };
    Some(number as i64)
}
