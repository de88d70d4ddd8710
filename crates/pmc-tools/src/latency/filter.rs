//! Evaluates the kernel's filter expressions (`--filter`) in pmc, for recordings and for events that occur in
//! several rules.
//!
//! ```text
//!   prev_state == 0 && !(comm ~ "kworker*")
//! ```
//! Source: `Documentation/trace/events.rst`, `kernel/trace/trace_events_filter.c`.

use pmc_perfdata::record::tracepoint::{Payload, TracepointFormat};
use pmc_sys::abi::TracepointField;
use pmc_text::text::glob;

/// Maximum depth of parentheses and negations.
const MAX_DEPTH: usize = 50;

/// A filter for the events of one tracepoint.
#[derive(Debug, Clone)]
pub(super) enum FieldFilter {
    All(Vec<Self>),
    Any(Vec<Self>),
    Not(Box<Self>),
    Is { field: TracepointField, operator: FilterOperator, value: FilterValue },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FilterOperator {
    Equal,
    Unequal,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
    HasBits,
    Glob,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum FilterValue {
    Number(i64),
    Text(Vec<u8>),
}

/// The operators. If one operator is a prefix of another, the longer one comes first.
const OPERATORS: [(&str, FilterOperator); 8] = [
    ("==", FilterOperator::Equal),
    ("!=", FilterOperator::Unequal),
    ("<=", FilterOperator::LessOrEqual),
    (">=", FilterOperator::GreaterOrEqual),
    ("<", FilterOperator::Less),
    (">", FilterOperator::Greater),
    ("&", FilterOperator::HasBits),
    ("~", FilterOperator::Glob),
];

impl FieldFilter {
    /// Parses an expression over the fields of this tracepoint.
    ///
    /// # Errors
    /// Returns the reason why the expression is invalid, as text.
    pub(super) fn parse(text: &str, format: &TracepointFormat) -> Result<Self, String> {
        let mut parser = FilterParser { rest: text, format, depth: 0 };
        let filter = parser.any()?;
        match parser.rest.trim_start() {
            "" => Ok(filter),
            rest => Err(format!("unexpected {rest:?}")),
        }
    }

    /// Whether the event passes the filter. An event whose payload lacks the field does not pass.
    pub(super) fn passes(&self, payload: Payload<'_>) -> bool {
        match self {
            Self::All(all) => all.iter().all(|one| one.passes(payload)),
            Self::Any(any) => any.iter().any(|one| one.passes(payload)),
            Self::Not(one) => !one.passes(payload),
            Self::Is { field, operator, value: FilterValue::Number(value) } => {
                payload.number_in(field).is_some_and(|number| {
                    let order = match field.is_signed {
                        true => number.cmp(value),
                        false => (number as u64).cmp(&(*value as u64)),
                    };
                    match operator {
                        FilterOperator::Equal => order.is_eq(),
                        FilterOperator::Unequal => order.is_ne(),
                        FilterOperator::Less => order.is_lt(),
                        FilterOperator::LessOrEqual => order.is_le(),
                        FilterOperator::Greater => order.is_gt(),
                        FilterOperator::GreaterOrEqual => order.is_ge(),
                        FilterOperator::HasBits => number & value != 0,
                        FilterOperator::Glob => false,
                    }
                })
            }
            Self::Is { field, operator, value: FilterValue::Text(value) } => {
                payload.text_in(field).is_some_and(|text| match operator {
                    FilterOperator::Glob => glob::matches_bytes(value, text),
                    FilterOperator::Unequal => text != value,
                    _ => text == value,
                })
            }
        }
    }
}

struct FilterParser<'a> {
    rest: &'a str,
    format: &'a TracepointFormat,
    depth: usize,
}

impl<'a> FilterParser<'a> {
    fn any(&mut self) -> Result<FieldFilter, String> {
        let mut any = vec![self.all()?];
        while self.consume("||") {
            any.push(self.all()?);
        }
        Ok(if any.len() == 1 { any.remove(0) } else { FieldFilter::Any(any) })
    }

    fn all(&mut self) -> Result<FieldFilter, String> {
        let mut all = vec![self.one()?];
        while self.consume("&&") {
            all.push(self.one()?);
        }
        Ok(if all.len() == 1 { all.remove(0) } else { FieldFilter::All(all) })
    }

    fn one(&mut self) -> Result<FieldFilter, String> {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return Err("too many parentheses".to_owned());
        }
        let one = if self.consume("!") {
            FieldFilter::Not(Box::new(self.one()?))
        } else if self.consume("(") {
            let inner = self.any()?;
            if !self.consume(")") {
                return Err("a parenthesis is not closed".to_owned());
            }
            inner
        } else {
            self.comparison()?
        };
        self.depth -= 1;
        Ok(one)
    }

    fn comparison(&mut self) -> Result<FieldFilter, String> {
        let name = self.word(|letter| letter.is_ascii_alphanumeric() || letter == '_');
        let Some(field) = self.format.field(name) else {
            return Err(format!("{}:{} has no field {name:?}", self.format.system, self.format.name));
        };
        self.rest = self.rest.trim_start();
        let operator = OPERATORS.iter().find(|(text, _)| self.consume(text)).map(|(_, operator)| *operator);
        let Some(operator) = operator else { return Err(format!("an operator is missing after {name}")) };
        let value = self.value()?;
        let of_text =
            matches!(operator, FilterOperator::Equal | FilterOperator::Unequal | FilterOperator::Glob);
        let value = match (field.is_text(), number(&value)) {
            (true, _) if of_text => FilterValue::Text(value.into_bytes()),
            (true, _) => {
                return Err(format!("{name} is a string, which can only be compared with ==, != or ~"));
            }
            (false, _) if operator == FilterOperator::Glob => {
                return Err(format!("{name} is a number, and ~ matches only strings"));
            }
            (false, Some(number)) => FilterValue::Number(as_stored(number, field)),
            (false, None) => return Err(format!("{name} is a number, not {value:?}")),
        };
        Ok(FieldFilter::Is { field: field.clone(), operator, value })
    }

    fn value(&mut self) -> Result<String, String> {
        self.rest = self.rest.trim_start();
        let quote = self.rest.chars().next().filter(|first| matches!(first, '"' | '\''));
        if let Some(quote) = quote {
            let inner = &self.rest[1..];
            let Some(end) = inner.find(quote) else { return Err("a quote is not closed".to_owned()) };
            self.rest = &inner[end + 1..];
            return Ok(inner[..end].to_owned());
        }
        let word = self.word(|letter| !letter.is_whitespace() && !matches!(letter, ')' | '&' | '|'));
        if word.is_empty() { Err("a value is missing".to_owned()) } else { Ok(word.to_owned()) }
    }

    fn word(&mut self, is_part: impl Fn(char) -> bool) -> &'a str {
        let rest = self.rest.trim_start();
        let end = rest.find(|letter| !is_part(letter)).unwrap_or(rest.len());
        let (word, rest) = rest.split_at(end);
        self.rest = rest;
        word
    }

    fn consume(&mut self, text: &str) -> bool {
        let rest = self.rest.trim_start().strip_prefix(text);
        self.rest = rest.unwrap_or(self.rest);
        rest.is_some()
    }
}

/// Parses a number as the kernel does (`kstrtoll` with base 0): decimal, `0x` hexadecimal or `0` octal.
fn number(text: &str) -> Option<i64> {
    let (digits, is_negative) = text.strip_prefix('-').map_or((text, false), |digits| (digits, true));
    let number = match digits.strip_prefix("0x").or_else(|| digits.strip_prefix("0X")) {
        Some(digits) => u64::from_str_radix(digits, 16).ok()?,
        None if digits.len() > 1 && digits.starts_with('0') => u64::from_str_radix(digits, 8).ok()?,
        None => digits.parse().ok()?,
    } as i64;
    Some(if is_negative { number.wrapping_neg() } else { number })
}

/// Returns the value that the field has after this number is stored in it. The kernel truncates numbers to
/// the size of the field before it compares them, so `dev == -1` is true for 0xffffffff in 4 bytes.
fn as_stored(number: i64, field: &TracepointField) -> i64 {
    let unused = 64 - 8 * field.size.clamp(1, 8) as u32;
    match field.is_signed {
        true => number << unused >> unused,
        false => ((number as u64) << unused >> unused) as i64,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const FORMAT: &str = "name: x\nID: 1\nformat:\n\
        \tfield:int id;\toffset:0;\tsize:4;\tsigned:1;\n\
        \tfield:u32 flags;\toffset:4;\tsize:4;\tsigned:0;\n\
        \tfield:char comm[8];\toffset:8;\tsize:8;\tsigned:0;\n";

    fn passes(filter: &str) -> Result<bool, String> {
        let format = TracepointFormat::parse("s", FORMAT).unwrap();
        let mut bytes = (-3i32).to_ne_bytes().to_vec();
        bytes.extend(0x8000_0001u32.to_ne_bytes());
        bytes.extend(b"bash\0\0\0\0");
        FieldFilter::parse(filter, &format)
            .map(|all| all.passes(Payload { bytes: &bytes, is_byte_swapped: false }))
    }

    #[test]
    fn filters_compare_fields() {
        for (filter, want) in [
            ("id == -3", true),
            ("id < 0 && flags > 0x80000000", true),
            ("id<-2||id>5", true),
            ("flags & 1", true),
            ("flags & 2", false),
            ("!(id == -3)", false),
            ("comm == \"bash\"", true),
            ("comm == bash", true),
            ("comm != 'bash'", false),
            ("comm ~ \"b*h\" && (id == 1 || id == -3)", true),
            ("comm ~ \"b?h\"", false),
            ("comm ~ \"[a-c]a[!x]h\"", true),
            ("id == 0xfffffffd && flags == -2147483647", true),
            ("flags == 020000000001 && id > -04", true),
            ("id == 1 || id == 2 || flags >= 0x80000001", true),
        ] {
            assert_eq!(passes(filter), Ok(want), "{filter}");
        }
        for (filter, why) in [
            ("pid == 1", "has no field \"pid\""),
            ("id", "operator is missing"),
            ("id ==", "value is missing"),
            ("id == x", "is a number"),
            ("id ~ 3", "is a number"),
            ("comm < b", "is a string"),
            ("(id == 1", "not closed"),
            ("id == 1 )", "unexpected"),
        ] {
            assert!(passes(filter).unwrap_err().contains(why), "{filter}");
        }
        assert!(passes(&"!".repeat(1000)).is_err());
    }

    proptest! {
        #[test]
        fn any_text_is_parsed_or_refused(text in "[ a-z0-9()!&|<=~*'\"]{0,40}") {
            let _ = passes(&text);
            let _ = glob::matches_bytes(text.as_bytes(), b"some text");
        }
    }
}
