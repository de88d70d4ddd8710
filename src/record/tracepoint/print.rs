//! `print fmt`: the C expressions of a format file, parsed once and evaluated for each payload.
//!
//! Receives `"text %d …", REC->field, …`; hands on the printed line. Knows C's operators on integers, the
//! kernel's printing macros (`__print_flags`, `__print_symbolic`, `__get_str`, `__print_hex`, …) and printf's
//! conversions. Whatever else is in there makes parsing fail, and the caller prints the fields by name.

mod lex;
mod parse;

use std::borrow::Cow;
use std::fmt::Write;

use super::{Names, Payload, until_nul};
use crate::abi::TracepointField;
use crate::text;

/// A parsed `print fmt`.
#[derive(Debug, Clone)]
pub(super) struct Print {
    format: String,
    arguments: Vec<Expr>,
}

/// A C expression. Fields are named by their index.
#[derive(Debug, Clone)]
enum Expr {
    Number(i64),
    Text(String),
    /// A name that the kernel's build did not turn into a number.
    Word(String),
    Field(usize),
    /// The bytes of a field of variable length.
    Bytes(usize),
    /// The length of such a field, in bytes.
    Length(usize),
    Element(usize, Box<Expr>),
    Unary(char, Box<Expr>),
    Binary(&'static str, Box<Expr>, Box<Expr>),
    Choice(Box<Expr>, Box<Expr>, Box<Expr>),
    /// To so many bytes, with sign or without.
    Cast(u8, bool, Box<Expr>),
    Flags(Box<Expr>, String, Vec<(Expr, String)>),
    Symbol(Box<Expr>, Vec<(Expr, String)>),
    Hex(Box<Expr>, Box<Expr>, &'static str),
    Array(Box<Expr>, Box<Expr>, Box<Expr>),
    Bitmask(usize),
}

/// What an expression comes to.
enum Value<'a> {
    Number(i64),
    Text(Cow<'a, str>),
    Bytes(&'a [u8]),
}

impl Print {
    pub(super) fn parse(text: &str, fields: &[TracepointField]) -> Option<Self> {
        let (format, arguments) = parse::print(text, fields)?;
        Some(Self { format, arguments })
    }

    /// Appends the line; `None` when the payload does not hold what is printed, or a conversion is not known.
    pub(super) fn evaluate(
        &self,
        fields: &[TracepointField],
        payload: Payload<'_>,
        names: Names<'_>,
        out: &mut String,
    ) -> Option<()> {
        self.evaluate_part(fields, payload, names, (&self.format, 0), out)
    }

    /// Appends what is printed behind `NAME=`, up to the next space.
    pub(super) fn evaluate_labelled(
        &self,
        name: &str,
        fields: &[TracepointField],
        payload: Payload<'_>,
        names: Names<'_>,
        out: &mut String,
    ) -> Option<()> {
        let label = format!("{name}=");
        let mut found = self.format.match_indices(&label).map(|(at, _)| self.format.split_at(at));
        let (before, part) = found.find(|(before, _)| before.is_empty() || before.ends_with(' '))?;
        let part = part[label.len()..].split(' ').next()?;
        self.evaluate_part(fields, payload, names, (part, arguments_of(before)?), out)?;
        out.truncate(out.find(' ').unwrap_or(out.len()));
        Some(())
    }

    /// Appends what a part of the format prints, whose first argument has this number.
    fn evaluate_part(
        &self,
        fields: &[TracepointField],
        payload: Payload<'_>,
        names: Names<'_>,
        (mut left, first): (&str, usize),
        out: &mut String,
    ) -> Option<()> {
        let scope = Scope { fields, payload };
        let mut arguments = self.arguments.get(first..)?.iter();
        while let Some(at) = left.find('%') {
            out.push_str(&left[..at]);
            left = &left[at + 1..];
            if let Some(rest) = left.strip_prefix('%') {
                out.push('%');
                left = rest;
                continue;
            }
            let (conversion, rest) = Conversion::parse(left, || scope.number(arguments.next()?))?;
            left = rest;
            let argument = arguments.next()?;
            match conversion.letter {
                'p' => left = pointer(&scope, argument, &conversion, left, names, out)?,
                's' => {
                    let value = match scope.value(argument)? {
                        Value::Number(address) => {
                            match names.texts.and_then(|texts| texts.get(&(address as u64))) {
                                Some(text) => Value::Text(Cow::Borrowed(text)),
                                None => Value::Number(address),
                            }
                        }
                        text => text,
                    };
                    conversion.print(value, out);
                }
                _ => conversion.print(scope.value(argument)?, out),
            }
        }
        out.push_str(left);
        Some(())
    }
}

/// How many arguments a part of a format takes.
fn arguments_of(part: &str) -> Option<usize> {
    let (mut count, mut left) = (0, part);
    while let Some(at) = left.find('%') {
        left = &left[at + 1..];
        if let Some(rest) = left.strip_prefix('%') {
            left = rest;
            continue;
        }
        let star = || {
            count += 1;
            Some(0)
        };
        (_, left) = Conversion::parse(left, star)?;
        count += 1;
    }
    Some(count)
}

/// What stands between `%` and its letter.
#[derive(Default)]
struct Conversion {
    minus: bool,
    zero: bool,
    alternate: bool,
    plus: bool,
    width: usize,
    precision: Option<usize>,
    /// Bytes of the number: 1 for `hh`, 2 for `h`, 8 for `l`, `ll`, `z`, `L`, else 4.
    bytes: u32,
    letter: char,
}

/// The text's first character, if it is one of these; the text is then what follows.
fn take(text: &mut &str, is: impl Fn(char) -> bool) -> Option<char> {
    let c = text.chars().next().filter(|c| is(*c))?;
    *text = &text[c.len_utf8()..];
    Some(c)
}

/// No line is wider than this, whatever a file says.
const WIDEST: usize = 4 << 10;

impl Conversion {
    fn parse(text: &str, mut star: impl FnMut() -> Option<i64>) -> Option<(Self, &str)> {
        let mut c = Self { bytes: 4, ..Self::default() };
        let mut left = text;
        while let Some(flag) = take(&mut left, |c| "-0#+ ".contains(c)) {
            match flag {
                '-' => c.minus = true,
                '0' => c.zero = true,
                '#' => c.alternate = true,
                '+' => c.plus = true,
                _ => {}
            }
        }
        let mut digits = |left: &mut &str| -> Option<usize> {
            if take(left, |c| c == '*').is_some() {
                return star().map(|n| n.clamp(0, WIDEST as i64) as usize);
            }
            let mut number = 0usize;
            while let Some(digit) = take(left, |c| c.is_ascii_digit()).and_then(|c| c.to_digit(10)) {
                number = (number * 10 + digit as usize).min(WIDEST);
            }
            Some(number)
        };
        c.width = digits(&mut left)?;
        if take(&mut left, |c| c == '.').is_some() {
            c.precision = Some(digits(&mut left)?);
        }
        while let Some(size) = take(&mut left, |c| "hlLzjt".contains(c)) {
            c.bytes = match (size, c.bytes) {
                ('h', 2) => 1,
                ('h', _) => 2,
                _ => 8,
            };
        }
        c.letter = take(&mut left, |c| "diuxXocsp".contains(c))?;
        Some((c, left))
    }

    fn print(&self, value: Value<'_>, out: &mut String) {
        let text = match (self.letter, value) {
            ('s', Value::Text(text)) => self.cut(&text).to_owned(),
            ('s', Value::Bytes(bytes)) => self.cut(&String::from_utf8_lossy(until_nul(bytes))).to_owned(),
            ('s', Value::Number(address)) => format!("0x{address:x}"),
            ('c', Value::Number(c)) => char::from(c as u8).to_string(),
            (_, Value::Number(number)) => self.digits(number),
            (_, Value::Text(text)) => text.into_owned(),
            (_, Value::Bytes(bytes)) => text::hex(bytes, " "),
        };
        self.pad(&text, out);
    }

    fn cut<'t>(&self, text: &'t str) -> &'t str {
        let most = self.precision.unwrap_or(usize::MAX);
        text.char_indices().nth(most).map_or(text, |(at, _)| &text[..at])
    }

    fn digits(&self, number: i64) -> String {
        let unused = 64 - 8 * self.bytes;
        let unsigned = (number as u64) << unused >> unused;
        let signed = number << unused >> unused;
        let (sign, prefix, digits) = match self.letter {
            'd' | 'i' if signed < 0 => ("-", "", signed.unsigned_abs().to_string()),
            'd' | 'i' => (if self.plus { "+" } else { "" }, "", signed.to_string()),
            'u' => ("", "", unsigned.to_string()),
            'o' => ("", if self.alternate { "0" } else { "" }, format!("{unsigned:o}")),
            'X' => ("", if self.alternate && unsigned != 0 { "0X" } else { "" }, format!("{unsigned:X}")),
            _ => ("", if self.alternate && unsigned != 0 { "0x" } else { "" }, format!("{unsigned:x}")),
        };
        let taken = sign.len() + prefix.len() + digits.len();
        let zeros = match self.precision {
            Some(precision) => precision.saturating_sub(digits.len()),
            None if self.zero && !self.minus => self.width.saturating_sub(taken),
            None => 0,
        };
        format!("{sign}{prefix}{}{digits}", "0".repeat(zeros))
    }

    fn pad(&self, text: &str, out: &mut String) {
        let missing = self.width.saturating_sub(text.chars().count());
        let spaces = " ".repeat(missing);
        let _ = if self.minus { write!(out, "{text}{spaces}") } else { write!(out, "{spaces}{text}") };
    }
}

/// `%p` and the kernel's letters behind it; gives what stands behind those.
fn pointer<'t>(
    scope: &Scope<'_>,
    argument: &Expr,
    conversion: &Conversion,
    rest: &'t str,
    names: Names<'_>,
    out: &mut String,
) -> Option<&'t str> {
    let letters = rest.len() - rest.trim_start_matches(|c: char| c.is_ascii_alphanumeric()).len();
    let value = scope.value(argument)?;
    match (rest.chars().next().filter(char::is_ascii_alphabetic), value) {
        // Names of code: with offset for S and F, without for s and f.
        (Some(letter @ ('S' | 's' | 'F' | 'f' | 'B')), Value::Number(address)) => {
            let text = match (names.code)(address as u64) {
                Some((name, offset)) if "SFB".contains(letter) && offset > 0 => {
                    format!("{name}+0x{offset:x}")
                }
                Some((name, _)) => name,
                None => format!("0x{address:x}"),
            };
            conversion.pad(&text, out);
            Some(&rest[1..])
        }
        (Some('U'), Value::Bytes(bytes)) => {
            let bytes: &[u8; 16] = bytes.first_chunk()?;
            for (at, byte) in bytes.iter().enumerate() {
                let _ = write!(out, "{}{byte:02x}", if matches!(at, 4 | 6 | 8 | 10) { "-" } else { "" });
            }
            Some(&rest[letters..])
        }
        (Some('M'), Value::Bytes(bytes)) => {
            out.push_str(&text::hex(bytes.get(..6)?, ":"));
            Some(&rest[letters..])
        }
        (Some('I'), Value::Bytes(bytes)) => match rest.as_bytes().get(1) {
            Some(b'4') => {
                let address: [u8; 4] = *bytes.first_chunk()?;
                let _ = write!(out, "{}", std::net::Ipv4Addr::from(address));
                Some(&rest[letters..])
            }
            Some(b'6') => {
                let address: [u8; 16] = *bytes.first_chunk()?;
                let _ = write!(out, "{}", std::net::Ipv6Addr::from(address));
                Some(&rest[letters..])
            }
            _ => None,
        },
        // Hashed, kernel and error pointers print as numbers.
        (Some('K' | 'x' | 'e'), Value::Number(address)) => {
            conversion.pad(&format!("0x{address:x}"), out);
            Some(&rest[1..])
        }
        (None, Value::Number(address)) => {
            conversion.pad(&format!("0x{address:x}"), out);
            Some(rest)
        }
        _ => None,
    }
}

struct Scope<'a> {
    fields: &'a [TracepointField],
    payload: Payload<'a>,
}

impl<'a> Scope<'a> {
    fn field(&self, index: usize) -> Option<&'a TracepointField> {
        self.fields.get(index)
    }

    fn bytes(&self, expr: &'a Expr) -> Option<&'a [u8]> {
        match self.value(expr)? {
            Value::Bytes(bytes) => Some(bytes),
            _ => None,
        }
    }

    fn number(&self, expr: &Expr) -> Option<i64> {
        match self.value(expr)? {
            Value::Number(number) => Some(number),
            // An array where a number is wanted is its address: not null.
            _ => None,
        }
    }

    /// The number that a name of a table stands for; −1 when the kernel's build left a word there that nobody
    /// knows.
    fn named(&self, expr: &Expr) -> Option<i64> {
        match expr {
            Expr::Word(word) => Some(known(word).unwrap_or(-1)),
            expr => self.number(expr),
        }
    }

    fn value(&self, expr: &'a Expr) -> Option<Value<'a>>
    where
        Self: 'a,
    {
        Some(match expr {
            Expr::Number(number) => Value::Number(*number),
            Expr::Text(text) => Value::Text(Cow::Borrowed(text)),
            // perf's reader takes unknown names for 0.
            Expr::Word(word) => Value::Number(known(word).unwrap_or(0)),
            Expr::Field(index) => {
                let field = self.field(*index)?;
                match self.payload.number_in(field) {
                    Some(number) => Value::Number(number),
                    None => Value::Bytes(self.payload.bytes_of(field)?),
                }
            }
            Expr::Bytes(index) => Value::Bytes(self.payload.bytes_of(self.field(*index)?)?),
            Expr::Length(index) => Value::Number(self.payload.bytes_of(self.field(*index)?)?.len() as i64),
            Expr::Element(index, at) => {
                let field = self.field(*index)?;
                let (size, at) = (field.element_size(), usize::try_from(self.number(at)?).ok()?);
                let bytes = self.payload.bytes_of(field)?.get(at.checked_mul(size)?..)?.get(..size)?;
                Value::Number(self.payload.integer(bytes, field.is_signed)?)
            }
            Expr::Unary(operator, inner) => {
                let number = self.number(inner)?;
                Value::Number(match operator {
                    '-' => number.wrapping_neg(),
                    '~' => !number,
                    '!' => i64::from(number == 0),
                    _ => number,
                })
            }
            Expr::Binary(operator, left, right) => Value::Number(self.binary(operator, left, right)?),
            Expr::Choice(condition, yes, no) => {
                return self.value(if self.number(condition)? != 0 { yes } else { no });
            }
            Expr::Cast(bytes, is_signed, inner) => match self.value(inner)? {
                Value::Number(number) => {
                    let unused = 64 - 8 * u32::from(*bytes);
                    Value::Number(if *is_signed {
                        number << unused >> unused
                    } else {
                        ((number as u64) << unused >> unused) as i64
                    })
                }
                other => other,
            },
            Expr::Flags(number, between, names) => {
                Value::Text(Cow::Owned(self.flags(self.number(number)?, between, names)?))
            }
            Expr::Symbol(number, names) => {
                let number = self.number(number)?;
                let found = names.iter().find(|(value, _)| self.named(value) == Some(number));
                Value::Text(found.map_or_else(
                    || Cow::Owned(format!("0x{number:x}")),
                    |(_, name)| Cow::Borrowed(name.as_str()),
                ))
            }
            Expr::Hex(bytes, count, between) => {
                let bytes = self.bytes(bytes)?;
                let count = usize::try_from(self.number(count)?).ok()?.min(bytes.len());
                Value::Text(Cow::Owned(text::hex(&bytes[..count], between)))
            }
            Expr::Array(bytes, count, size) => {
                let bytes = self.bytes(bytes)?;
                let size =
                    usize::try_from(self.number(size)?).ok().filter(|size| matches!(size, 1 | 2 | 4 | 8))?;
                let count = usize::try_from(self.number(count)?).ok()?;
                let elements = bytes.chunks_exact(size).take(count);
                let numbers = elements.map(|e| self.payload.number(e).unwrap_or(0));
                let texts: Vec<String> = numbers.map(|n| format!("0x{n:x}")).collect();
                Value::Text(Cow::Owned(format!("{{{}}}", texts.join(","))))
            }
            Expr::Bitmask(index) => {
                let bytes = self.payload.bytes_of(self.field(*index)?)?;
                let words: Vec<String> = bytes
                    .chunks(4)
                    .rev()
                    .map(|word| format!("{:08x}", self.payload.number(word).unwrap_or(0)))
                    .collect();
                Value::Text(Cow::Owned(words.join(",")))
            }
        })
    }

    /// Names of the set bits, in the table's order; what is left over as a number.
    fn flags(&self, mut number: i64, between: &str, names: &[(Expr, String)]) -> Option<String> {
        let mut out = String::new();
        for (value, name) in names {
            let value = self.named(value)?;
            if number == 0 && value < 0 {
                out.push_str(name);
                break;
            }
            if value > 0 && number & value == value {
                let _ = write!(out, "{}{name}", if out.is_empty() { "" } else { between });
                number &= !value;
            }
        }
        if number != 0 {
            let _ = write!(out, "{}0x{number:x}", if out.is_empty() { "" } else { between });
        }
        Some(out)
    }

    fn binary(&self, operator: &str, left: &'a Expr, right: &'a Expr) -> Option<i64> {
        let a = self.number(left)?;
        // These two look at the right side only when they must.
        match operator {
            "&&" => return Some(i64::from(a != 0 && self.number(right)? != 0)),
            "||" => return Some(i64::from(a != 0 || self.number(right)? != 0)),
            _ => {}
        }
        let b = self.number(right)?;
        let unsigned = |expr: &Expr| matches!(expr, Expr::Cast(8, false, _));
        if unsigned(left) || unsigned(right) {
            let (a, b) = (a as u64, b as u64);
            match operator {
                "<" => return Some(i64::from(a < b)),
                "<=" => return Some(i64::from(a <= b)),
                ">" => return Some(i64::from(a > b)),
                ">=" => return Some(i64::from(a >= b)),
                _ => {}
            }
        }
        Some(match operator {
            "+" => a.wrapping_add(b),
            "-" => a.wrapping_sub(b),
            "*" => a.wrapping_mul(b),
            "/" => a.checked_div(b)?,
            "%" => a.checked_rem(b)?,
            "<<" => a.wrapping_shl(b as u32),
            // Numbers without sign are most of what is shifted.
            ">>" => (a as u64).wrapping_shr(b as u32) as i64,
            "&" => a & b,
            "|" => a | b,
            "^" => a ^ b,
            "==" => i64::from(a == b),
            "!=" => i64::from(a != b),
            "<" => i64::from(a < b),
            "<=" => i64::from(a <= b),
            ">" => i64::from(a > b),
            ">=" => i64::from(a >= b),
            _ => return None,
        })
    }
}

/// Names that kernels leave in their format files.
fn known(word: &str) -> Option<i64> {
    const SOFTIRQS: [&str; 10] = [
        "HI_SOFTIRQ",
        "TIMER_SOFTIRQ",
        "NET_TX_SOFTIRQ",
        "NET_RX_SOFTIRQ",
        "BLOCK_SOFTIRQ",
        "IRQ_POLL_SOFTIRQ",
        "TASKLET_SOFTIRQ",
        "SCHED_SOFTIRQ",
        "HRTIMER_SOFTIRQ",
        "RCU_SOFTIRQ",
    ];
    match word {
        "HRTIMER_NORESTART" | "false" | "NULL" => Some(0),
        "HRTIMER_RESTART" | "true" => Some(1),
        _ => SOFTIRQS.iter().position(|name| *name == word).map(|at| at as i64),
    }
}
