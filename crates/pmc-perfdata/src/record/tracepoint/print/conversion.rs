//! printf's conversions, including the kernel's extensions to `%p`: parsed once, applied to each value.

use std::fmt::Write;

use super::super::KernelNames;
use super::{Expr, PrintScope, PrintValue};
use crate::record::bytes::until_nul;
use pmc_text::text::{self, Digits};

/// The flags, width and precision between `%` and its letter, and the letters after `%p`.
#[derive(Debug, Clone)]
pub(super) struct PrintConversion {
    minus: bool,
    zero: bool,
    alternate: bool,
    plus: bool,
    width: Size,
    precision: Option<Size>,
    /// Size of the number in bytes: 1 for `hh`, 2 for `h`, 8 for `l`, `ll`, `z`, `L`, else 4.
    bytes: u32,
    kind: ConversionKind,
}

/// A width or a precision.
#[derive(Debug, Clone)]
enum Size {
    Fixed(usize),
    /// `*`: taken from an argument.
    Argument(Expr),
}

/// The format of a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ConversionKind {
    Text,
    Character,
    Signed,
    Unsigned,
    Octal,
    Hex,
    UpperHex,
    Pointer(Pointer),
}

/// The meaning of `%p` and its letters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Pointer {
    /// Hashed pointers, kernel pointers and error pointers, which print as numbers.
    Number,
    /// The function at the address, with or without the offset into it.
    Code {
        has_offset: bool,
    },
    Uuid,
    Mac,
    Ipv4,
    Ipv6,
}

/// Removes and returns the first character if it matches.
fn take(text: &mut &str, is: impl Fn(char) -> bool) -> Option<char> {
    let c = text.chars().next().filter(|c| is(*c))?;
    *text = &text[c.len_utf8()..];
    Some(c)
}

/// Maximum width of a value, to limit the effect of broken files.
const WIDEST: usize = 4 << 10;

impl Size {
    fn parse(text: &mut &str, star: &mut impl FnMut() -> Option<Expr>) -> Option<Self> {
        if take(text, |c| c == '*').is_some() {
            return star().map(Self::Argument);
        }
        let mut number = 0usize;
        while let Some(digit) = take(text, |c| c.is_ascii_digit()).and_then(|c| c.to_digit(10)) {
            number = (number * 10 + digit as usize).min(WIDEST);
        }
        Some(Self::Fixed(number))
    }

    fn evaluate(&self, scope: &PrintScope<'_>) -> Option<usize> {
        match self {
            Self::Fixed(size) => Some(*size),
            Self::Argument(expr) => Some(scope.number(expr)?.clamp(0, WIDEST as i64) as usize),
        }
    }
}

impl Pointer {
    /// Parses the letters after `%p`.
    fn parse(text: &mut &str) -> Option<Self> {
        let mut letters = text.bytes().take_while(u8::is_ascii_alphanumeric);
        let (all, first, second) = (letters.clone().count(), letters.next(), letters.next());
        let (pointer, taken) = match first {
            Some(b'S' | b'F' | b'B') => (Self::Code { has_offset: true }, 1),
            Some(b's' | b'f') => (Self::Code { has_offset: false }, 1),
            Some(b'U') => (Self::Uuid, all),
            Some(b'M') => (Self::Mac, all),
            Some(b'I') if second == Some(b'4') => (Self::Ipv4, all),
            Some(b'I') if second == Some(b'6') => (Self::Ipv6, all),
            Some(b'K' | b'x' | b'e') => (Self::Number, 1),
            Some(letter) if letter.is_ascii_alphabetic() => return None,
            _ => (Self::Number, 0),
        };
        *text = &text[taken..];
        Some(pointer)
    }
}

impl PrintConversion {
    /// Parses the conversion at the start of `text`, and also returns the text after it; `None` for an
    /// unknown conversion. `star` returns the arguments for `*`.
    pub(super) fn parse(text: &str, mut star: impl FnMut() -> Option<Expr>) -> Option<(Self, &str)> {
        let [mut minus, mut zero, mut alternate, mut plus] = [false; 4];
        let mut left = text;
        while let Some(flag) = take(&mut left, |c| "-0#+ ".contains(c)) {
            match flag {
                '-' => minus = true,
                '0' => zero = true,
                '#' => alternate = true,
                '+' => plus = true,
                _ => {}
            }
        }
        let width = Size::parse(&mut left, &mut star)?;
        let precision = match take(&mut left, |c| c == '.') {
            Some(_) => Some(Size::parse(&mut left, &mut star)?),
            None => None,
        };
        let mut bytes = 4;
        while let Some(size) = take(&mut left, |c| "hlLzjt".contains(c)) {
            bytes = match (size, bytes) {
                ('h', 2) => 1,
                ('h', _) => 2,
                _ => 8,
            };
        }
        let kind = match take(&mut left, |_| true)? {
            'd' | 'i' => ConversionKind::Signed,
            'u' => ConversionKind::Unsigned,
            'x' => ConversionKind::Hex,
            'X' => ConversionKind::UpperHex,
            'o' => ConversionKind::Octal,
            'c' => ConversionKind::Character,
            's' => ConversionKind::Text,
            'p' => ConversionKind::Pointer(Pointer::parse(&mut left)?),
            _ => return None,
        };
        Some((Self { minus, zero, alternate, plus, width, precision, bytes, kind }, left))
    }

    /// Appends a value; `None` if it has the wrong type, or if a width is missing from the payload.
    pub(super) fn print(
        &self,
        scope: &PrintScope<'_>,
        value: PrintValue<'_>,
        names: KernelNames<'_>,
        out: &mut String,
    ) -> Option<()> {
        let width = self.width.evaluate(scope)?;
        let precision = match &self.precision {
            Some(size) => Some(size.evaluate(scope)?),
            None => None,
        };
        match (self.kind, value) {
            (ConversionKind::Pointer(pointer), value) => self.pointer(pointer, value, width, names, out)?,
            (ConversionKind::Text, PrintValue::Text(text)) => self.pad(cut(&text, precision), width, out),
            (ConversionKind::Text, PrintValue::Bytes(bytes)) => {
                self.pad(cut(&String::from_utf8_lossy(until_nul(bytes)), precision), width, out);
            }
            (ConversionKind::Text, PrintValue::Number(address)) => {
                match names.texts.and_then(|texts| texts.get(&(address as u64))) {
                    Some(text) => self.pad(cut(text, precision), width, out),
                    None => self.address(address, width, out),
                }
            }
            (ConversionKind::Character, PrintValue::Number(c)) => {
                self.pad(char::from(c as u8).encode_utf8(&mut [0; 4]), width, out);
            }
            (_, PrintValue::Number(number)) => self.number(number, width, precision, out),
            (_, PrintValue::Text(text)) => self.pad(&text, width, out),
            (_, PrintValue::Bytes(bytes)) => self.pad(&text::hex(bytes, " "), width, out),
        }
        Some(())
    }

    fn number(&self, number: i64, width: usize, precision: Option<usize>, out: &mut String) {
        let unused = 64 - 8 * self.bytes;
        let unsigned = (number as u64) << unused >> unused;
        let signed = number << unused >> unused;
        let marked = |mark: &'static str| if self.alternate && unsigned != 0 { mark } else { "" };
        let (before, digits) = match self.kind {
            ConversionKind::Signed if signed < 0 => ("-", Digits::decimal(signed.unsigned_abs())),
            ConversionKind::Signed => (if self.plus { "+" } else { "" }, Digits::decimal(signed as u64)),
            ConversionKind::Unsigned => ("", Digits::decimal(unsigned)),
            ConversionKind::Octal => (if self.alternate { "0" } else { "" }, Digits::octal(unsigned)),
            ConversionKind::UpperHex => (marked("0X"), Digits::upper_hex(unsigned)),
            _ => (marked("0x"), Digits::hex(unsigned)),
        };
        let digits = digits.as_str();
        let taken = before.len() + digits.len();
        let zeros = match precision {
            Some(precision) => precision.saturating_sub(digits.len()),
            None if self.zero && !self.minus => width.saturating_sub(taken),
            None => 0,
        };
        self.align(width.saturating_sub(taken + zeros), out, |out| {
            out.push_str(before);
            fill(ZEROS, zeros, out);
            out.push_str(digits);
        });
    }

    fn pointer(
        &self,
        pointer: Pointer,
        value: PrintValue<'_>,
        width: usize,
        names: KernelNames<'_>,
        out: &mut String,
    ) -> Option<()> {
        match (pointer, value) {
            (Pointer::Number, PrintValue::Number(address)) => self.address(address, width, out),
            (Pointer::Code { has_offset }, PrintValue::Number(address)) => match (names.code)(address as u64)
            {
                Some((name, offset)) if has_offset && offset > 0 => {
                    self.pad(&format!("{name}+0x{offset:x}"), width, out);
                }
                Some((name, _)) => self.pad(&name, width, out),
                None => self.address(address, width, out),
            },
            (Pointer::Uuid, PrintValue::Bytes(bytes)) => {
                let bytes: &[u8; 16] = bytes.first_chunk()?;
                for (at, byte) in bytes.iter().enumerate() {
                    let between = if matches!(at, 4 | 6 | 8 | 10) { "-" } else { "" };
                    let _ = write!(out, "{between}{byte:02x}");
                }
            }
            (Pointer::Mac, PrintValue::Bytes(bytes)) => out.push_str(&text::hex(bytes.get(..6)?, ":")),
            (Pointer::Ipv4, PrintValue::Bytes(bytes)) => {
                let address: [u8; 4] = *bytes.first_chunk()?;
                let _ = write!(out, "{}", std::net::Ipv4Addr::from(address));
            }
            (Pointer::Ipv6, PrintValue::Bytes(bytes)) => {
                let address: [u8; 16] = *bytes.first_chunk()?;
                let _ = write!(out, "{}", std::net::Ipv6Addr::from(address));
            }
            _ => return None,
        }
        Some(())
    }

    /// Appends a number as an address.
    fn address(&self, address: i64, width: usize, out: &mut String) {
        let digits = Digits::hex(address as u64);
        let digits = digits.as_str();
        self.align(width.saturating_sub("0x".len() + digits.len()), out, |out| {
            out.push_str("0x");
            out.push_str(digits);
        });
    }

    fn pad(&self, text: &str, width: usize, out: &mut String) {
        let missing = if width == 0 { 0 } else { width.saturating_sub(text.chars().count()) };
        self.align(missing, out, |out| out.push_str(text));
    }

    /// Calls `print`, and pads its output with `missing` spaces.
    fn align(&self, missing: usize, out: &mut String, print: impl FnOnce(&mut String)) {
        if !self.minus {
            fill(BLANKS, missing, out);
        }
        print(out);
        if self.minus {
            fill(BLANKS, missing, out);
        }
    }
}

/// Returns the first `most` characters of `text`.
fn cut(text: &str, most: Option<usize>) -> &str {
    let end = most.and_then(|most| text.char_indices().nth(most));
    end.map_or(text, |(at, _)| &text[..at])
}

const BLANKS: &str = "                ";
const ZEROS: &str = "0000000000000000";

/// Appends `count` bytes of a repeated pattern.
fn fill(pattern: &str, mut count: usize, out: &mut String) {
    while count > 0 {
        let part = &pattern[..count.min(pattern.len())];
        out.push_str(part);
        count -= part.len();
    }
}
