//! `print fmt`: the C expressions of a format file, parsed once and evaluated for each payload.
//!
//! Receives `"text %d …", REC->field, …`; returns the formatted line. Supports C's integer operators, the
//! kernel's printing macros (`__print_flags`, `__print_symbolic`, `__get_str`, `__print_hex`, …) and printf's
//! conversions. Parsing fails on anything else; the caller then prints the fields by name.

mod conversion;
mod lex;
mod parse;

use std::borrow::Cow;
use std::fmt::Write;

use super::{KernelNames, Payload};
use conversion::PrintConversion;
use pmc_sys::abi::TracepointField;
use pmc_text::text;

/// A parsed `print fmt`.
#[derive(Debug, Clone)]
pub(super) struct Print {
    pieces: Vec<FormatPiece>,
}

/// A part of a format.
#[derive(Debug, Clone)]
enum FormatPiece {
    /// Literal text.
    Text(String),
    /// An argument and its conversion.
    Argument(PrintConversion, Expr),
    /// The rest of the format, from the first conversion that is unknown or lacks its argument.
    Unknown,
}

/// A C expression. Fields are identified by index.
#[derive(Debug, Clone)]
enum Expr {
    Number(i64),
    Text(String),
    /// An enum constant that the kernel's build did not replace with its number.
    Word(String),
    Field(usize),
    /// The bytes of a variable-length field.
    Bytes(usize),
    /// The length of a variable-length field, in bytes.
    Length(usize),
    Element(usize, Box<Expr>),
    Unary(char, Box<Expr>),
    Binary(&'static str, Box<Expr>, Box<Expr>),
    Choice(Box<Expr>, Box<Expr>, Box<Expr>),
    /// A cast to this number of bytes, signed or unsigned.
    Cast(u8, bool, Box<Expr>),
    Flags(Box<Expr>, String, Vec<(Expr, String)>),
    Symbol(Box<Expr>, Vec<(Expr, String)>),
    Hex(Box<Expr>, Box<Expr>, &'static str),
    Array(Box<Expr>, Box<Expr>, Box<Expr>),
    Bitmask(usize),
}

/// The value of an expression.
enum PrintValue<'a> {
    Number(i64),
    Text(Cow<'a, str>),
    Bytes(&'a [u8]),
}

impl Print {
    pub(super) fn parse(text: &str, fields: &[TracepointField]) -> Option<Self> {
        let (format, arguments) = parse::print(text, fields)?;
        Some(Self { pieces: pieces(&format, arguments) })
    }

    /// Appends the formatted line; `None` if the payload is too short or a conversion is unknown.
    pub(super) fn evaluate(
        &self,
        fields: &[TracepointField],
        payload: Payload<'_>,
        names: KernelNames<'_>,
        out: &mut String,
    ) -> Option<()> {
        let scope = PrintScope { fields, payload };
        self.pieces.iter().try_for_each(|piece| piece.print(&scope, names, out))
    }

    /// Writes the part of the line between `NAME=` and the next space. `out` must be empty.
    pub(super) fn evaluate_labelled(
        &self,
        name: &str,
        fields: &[TracepointField],
        payload: Payload<'_>,
        names: KernelNames<'_>,
        out: &mut String,
    ) -> Option<()> {
        let scope = PrintScope { fields, payload };
        let (behind, text) = self.behind_label(&format!("{name}="))?;
        out.push_str(text);
        for piece in behind {
            if out.contains(' ') {
                break;
            }
            piece.print(&scope, names, out)?;
        }
        out.truncate(out.find(' ').unwrap_or(out.len()));
        Some(())
    }

    /// Returns the pieces after a label, and the rest of the piece that contains the label. The label must
    /// start the format or follow a space.
    fn behind_label(&self, label: &str) -> Option<(&[FormatPiece], &str)> {
        self.pieces.iter().enumerate().find_map(|(number, piece)| {
            let FormatPiece::Text(text) = piece else { return None };
            let mut found = text.match_indices(label);
            let begins = |at: usize| text[..at].ends_with(' ') || number == 0 && at == 0;
            let (at, _) = found.find(|(at, _)| begins(*at))?;
            Some((&self.pieces[number + 1..], &text[at + label.len()..]))
        })
    }
}

/// Splits a format into pieces, once for all payloads.
fn pieces(format: &str, arguments: Vec<Expr>) -> Vec<FormatPiece> {
    let mut arguments = arguments.into_iter();
    let mut pieces = Vec::new();
    let mut text = String::new();
    let mut left = format;
    while let Some(at) = left.find('%') {
        text.push_str(&left[..at]);
        left = &left[at + 1..];
        if let Some(rest) = left.strip_prefix('%') {
            text.push('%');
            left = rest;
            continue;
        }
        if !text.is_empty() {
            pieces.push(FormatPiece::Text(std::mem::take(&mut text)));
        }
        let conversion = PrintConversion::parse(left, || arguments.next());
        let Some(((conversion, rest), argument)) = conversion.zip(arguments.next()) else {
            pieces.push(FormatPiece::Unknown);
            return pieces;
        };
        pieces.push(FormatPiece::Argument(conversion, argument));
        left = rest;
    }
    text.push_str(left);
    pieces.push(FormatPiece::Text(text));
    pieces
}

impl FormatPiece {
    /// Appends the piece; `None` as for [`Print::evaluate`].
    fn print(&self, scope: &PrintScope<'_>, names: KernelNames<'_>, out: &mut String) -> Option<()> {
        match self {
            Self::Text(text) => out.push_str(text),
            Self::Argument(conversion, argument) => {
                conversion.print(scope, scope.value(argument)?, names, out)?;
            }
            Self::Unknown => return None,
        }
        Some(())
    }
}

struct PrintScope<'a> {
    fields: &'a [TracepointField],
    payload: Payload<'a>,
}

impl<'a> PrintScope<'a> {
    fn field(&self, index: usize) -> Option<&'a TracepointField> {
        self.fields.get(index)
    }

    fn bytes(&self, expr: &'a Expr) -> Option<&'a [u8]> {
        match self.value(expr)? {
            PrintValue::Bytes(bytes) => Some(bytes),
            _ => None,
        }
    }

    fn number(&self, expr: &Expr) -> Option<i64> {
        match self.value(expr)? {
            PrintValue::Number(number) => Some(number),
            // In C, an array used as a number evaluates to its address, which is not null.
            _ => None,
        }
    }

    /// Returns the value of a table entry; −1 if the kernel's build left an unknown word there.
    fn named(&self, expr: &Expr) -> Option<i64> {
        match expr {
            Expr::Word(word) => Some(known(word).unwrap_or(-1)),
            expr => self.number(expr),
        }
    }

    fn value(&self, expr: &'a Expr) -> Option<PrintValue<'a>>
    where
        Self: 'a,
    {
        Some(match expr {
            Expr::Number(number) => PrintValue::Number(*number),
            Expr::Text(text) => PrintValue::Text(Cow::Borrowed(text)),
            // perf also treats unknown names as 0.
            Expr::Word(word) => PrintValue::Number(known(word).unwrap_or(0)),
            Expr::Field(index) => {
                let field = self.field(*index)?;
                match self.payload.number_in(field) {
                    Some(number) => PrintValue::Number(number),
                    None => PrintValue::Bytes(self.payload.bytes_of(field)?),
                }
            }
            Expr::Bytes(index) => PrintValue::Bytes(self.payload.bytes_of(self.field(*index)?)?),
            Expr::Length(index) => {
                PrintValue::Number(self.payload.bytes_of(self.field(*index)?)?.len() as i64)
            }
            Expr::Element(index, at) => {
                let field = self.field(*index)?;
                let (size, at) = (field.element_size(), usize::try_from(self.number(at)?).ok()?);
                let bytes = self.payload.bytes_of(field)?.get(at.checked_mul(size)?..)?.get(..size)?;
                PrintValue::Number(self.payload.integer(bytes, field.is_signed)?)
            }
            Expr::Unary(operator, inner) => {
                let number = self.number(inner)?;
                PrintValue::Number(match operator {
                    '-' => number.wrapping_neg(),
                    '~' => !number,
                    '!' => i64::from(number == 0),
                    _ => number,
                })
            }
            Expr::Binary(operator, left, right) => PrintValue::Number(self.binary(operator, left, right)?),
            Expr::Choice(condition, yes, no) => {
                return self.value(if self.number(condition)? != 0 { yes } else { no });
            }
            Expr::Cast(bytes, is_signed, inner) => match self.value(inner)? {
                PrintValue::Number(number) => {
                    let unused = 64 - 8 * u32::from(*bytes);
                    PrintValue::Number(if *is_signed {
                        number << unused >> unused
                    } else {
                        ((number as u64) << unused >> unused) as i64
                    })
                }
                other => other,
            },
            Expr::Flags(number, between, names) => {
                PrintValue::Text(Cow::Owned(self.flags(self.number(number)?, between, names)?))
            }
            Expr::Symbol(number, names) => {
                let number = self.number(number)?;
                let found = names.iter().find(|(value, _)| self.named(value) == Some(number));
                PrintValue::Text(found.map_or_else(
                    || Cow::Owned(format!("0x{number:x}")),
                    |(_, name)| Cow::Borrowed(name.as_str()),
                ))
            }
            Expr::Hex(bytes, count, between) => {
                let bytes = self.bytes(bytes)?;
                let count = usize::try_from(self.number(count)?).ok()?.min(bytes.len());
                PrintValue::Text(Cow::Owned(text::hex(&bytes[..count], between)))
            }
            Expr::Array(bytes, count, size) => {
                let bytes = self.bytes(bytes)?;
                let size =
                    usize::try_from(self.number(size)?).ok().filter(|size| matches!(size, 1 | 2 | 4 | 8))?;
                let count = usize::try_from(self.number(count)?).ok()?;
                let elements = bytes.chunks_exact(size).take(count);
                let numbers = elements.map(|e| self.payload.number(e).unwrap_or(0));
                let texts: Vec<String> = numbers.map(|n| format!("0x{n:x}")).collect();
                PrintValue::Text(Cow::Owned(format!("{{{}}}", texts.join(","))))
            }
            Expr::Bitmask(index) => {
                let bytes = self.payload.bytes_of(self.field(*index)?)?;
                let words: Vec<String> = bytes
                    .chunks(4)
                    .rev()
                    .map(|word| format!("{:08x}", self.payload.number(word).unwrap_or(0)))
                    .collect();
                PrintValue::Text(Cow::Owned(words.join(",")))
            }
        })
    }

    /// Formats the names of the set bits in the table's order, followed by the remaining bits as a number.
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
        // These operators evaluate their right operand only if necessary.
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
            // Most numbers that formats shift are unsigned.
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

/// Values of symbolic names that kernels leave unexpanded in their format files.
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
