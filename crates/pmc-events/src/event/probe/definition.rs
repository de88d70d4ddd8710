//! perf's syntax of probe definitions, as in `perf probe`.
//!
//! Takes text; returns the probe location and the arguments as typed. Does not look them up in programs.
//!
//! ```text
//! [[GROUP:]EVENT=]FUNCTION[@FILE][:LINE | +OFFSET | %return]   [[NAME=]VALUE[:TYPE] …]
//! [[GROUP:]EVENT=]FILE:LINE
//! ```

use std::str::FromStr;

use super::super::error::{Fault, ParseError, ParseResult};
use super::super::syntax::{EventWord, number};
use crate::hint::Hint;

/// A probe definition as the user typed it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProbeSyntax {
    /// The group of the new event, if given.
    pub group: Option<String>,
    /// The name of the new event, if given.
    pub event: Option<String>,
    /// The location.
    pub point: ProbePoint,
    /// The values to read.
    pub arguments: Vec<ProbeArgument>,
}

/// The location of a probe.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ProbePoint {
    /// The function, or a pattern.
    pub function: Option<String>,
    /// The source file.
    pub file: Option<String>,
    /// The line number, relative to the function's first line if a function is given.
    pub line: Option<u32>,
    /// Bytes from the function's first instruction.
    pub offset: Option<u64>,
    /// Whether the probe is at the function's return.
    pub returns: bool,
    /// An address, in place of a function.
    pub address: Option<u64>,
}

/// A value that a probe reads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ProbeArgument {
    /// The kernel's own notation (`%di`, `$retval`, `+8(%sp):u64`), with name and type.
    Verbatim(String),
    /// A variable, or a part of one.
    Variable {
        /// The name of the argument, if given.
        name: Option<String>,
        /// The variable.
        expression: String,
        /// The type, if given.
        kind: Option<String>,
    },
    /// `$params`: all parameters.
    Parameters,
    /// `$vars`: all parameters and local variables.
    Variables,
}

/// A range of source lines to show.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LineRange {
    /// The function.
    pub function: Option<String>,
    /// The source file.
    pub file: Option<String>,
    /// The first line, relative to the function's first line if a function is given.
    pub first: Option<u32>,
    /// The last line.
    pub last: Option<u32>,
}

/// The kernel's types, for the error message.
const TYPES: &str = "u8 … u64, s8 … s64, x8 … x64, u, s or x (of the variable's size), string, ustring, char, \
                     symbol, or bWIDTH@OFFSET/SIZE";

impl ProbePoint {
    /// Whether the location depends on source lines.
    pub fn needs_lines(&self) -> bool {
        self.line.is_some() || self.file.is_some()
    }
}

impl ProbeSyntax {
    /// Whether the probe reads variables of the program.
    pub fn reads_variables(&self) -> bool {
        self.arguments.iter().any(|argument| !matches!(argument, ProbeArgument::Verbatim(_)))
    }
}

impl FromStr for ProbeSyntax {
    type Err = Box<ParseError>;

    fn from_str(text: &str) -> Result<Self, Box<ParseError>> {
        let parse = || {
            let mut words = words(text);
            let Some(place) = words.next() else {
                return Err(Fault::at(&(0..0), "a probe requires a place").expected("FUNCTION, or FILE:LINE"));
            };
            let (name, place) = named(place)?;
            let (group, event) = match name {
                Some(name) => group_and_event(name)?,
                None => (None, None),
            };
            let point = point(place)?;
            let arguments = words.map(argument).collect::<ParseResult<Vec<_>>>()?;
            let syntax = Self { group, event, point, arguments };
            // Variables are not available at a function's return, because its stack frame is gone.
            if syntax.point.returns && syntax.reads_variables() {
                return Err(Fault::at(&place.span(), "variables no longer exist when a function returns")
                    .expected("$retval, or probe the function entry to read its parameters"));
            }
            Ok(syntax)
        };
        parse().map_err(|fault: Fault| fault.within(text))
    }
}

impl FromStr for ProbePoint {
    type Err = Box<ParseError>;

    /// Parses a location without arguments.
    fn from_str(text: &str) -> Result<Self, Box<ParseError>> {
        match text.parse()? {
            ProbeSyntax { group: None, event: None, point, arguments } if arguments.is_empty() => Ok(point),
            _ => Err(Fault::at(&(0..text.len()), "only a place is possible here")
                .expected("FUNCTION, FUNCTION:LINE, FUNCTION+OFFSET or FILE:LINE")
                .within(text)),
        }
    }
}

impl FromStr for LineRange {
    type Err = Box<ParseError>;

    /// Parses `FUNCTION[@FILE][:FIRST[-LAST|+COUNT]]` or `FILE[:FIRST[-LAST|+COUNT]]`.
    fn from_str(text: &str) -> Result<Self, Box<ParseError>> {
        let parse = || {
            let word = EventWord { text, at: 0 };
            let (place, lines) = match line_suffix(text) {
                Some(colon) => (&text[..colon], Some(part(word, colon + 1, text.len()))),
                None => (text, None),
            };
            let mut range = Self::default();
            match place.split_once('@') {
                Some((function, file)) => {
                    (range.function, range.file) = (Some(function.to_owned()), Some(file.to_owned()));
                }
                None if is_file(place) => range.file = Some(place.to_owned()),
                None => range.function = Some(place.to_owned()),
            }
            if place.is_empty() {
                return Err(Fault::at(&(0..0), "a function or a file is required"));
            }
            let Some(lines) = lines else { return Ok(range) };
            let expected = |fault: Fault| fault.expected("a line, FIRST-LAST, or FIRST+COUNT");
            let (first, rest) = lines.text.split_at(lines.text.find(['-', '+']).unwrap_or(lines.text.len()));
            let read = |text: &str| {
                let number = text.parse::<u32>();
                number.map_err(|_| {
                    expected(Fault::at(&lines.span(), format!("invalid lines `{}`", lines.text)))
                })
            };
            let first = read(first)?;
            range.first = Some(first);
            range.last = match (rest.strip_prefix('-'), rest.strip_prefix('+')) {
                (Some(last), _) => Some(read(last)?),
                (_, Some(count)) => Some(first.saturating_add(read(count)?).saturating_sub(1)),
                _ => None,
            };
            if range.last.is_some_and(|last| last < first) {
                return Err(Fault::at(&lines.span(), "the last line must not be before the first"));
            }
            Ok(range)
        };
        parse().map_err(|fault: Fault| fault.within(text))
    }
}

/// The words between white space.
fn words(text: &str) -> impl Iterator<Item = EventWord<'_>> {
    let mut end = 0;
    text.split_whitespace().map(move |word| {
        let at = text[end..].find(word).map_or(end, |start| end + start);
        end = at + word.len();
        EventWord { text: word, at }
    })
}

fn part(word: EventWord<'_>, from: usize, to: usize) -> EventWord<'_> {
    EventWord { text: &word.text[from..to], at: word.at + from }
}

/// Splits off the name before `=`.
fn named(word: EventWord<'_>) -> ParseResult<(Option<EventWord<'_>>, EventWord<'_>)> {
    // In an operator's name (`operator==`), `=` does not separate a name from a value.
    let equals = word.text.find('=').filter(|_| !word.text.contains("operator"));
    Ok(match equals {
        Some(at) => (Some(part(word, 0, at)), part(word, at + 1, word.text.len())),
        None => (None, word),
    })
}

/// Splits `GROUP:EVENT`, and checks both names.
fn group_and_event(word: EventWord<'_>) -> ParseResult<(Option<String>, Option<String>)> {
    let (group, event) = match word.text.find(':') {
        Some(at) => (Some(part(word, 0, at)), part(word, at + 1, word.text.len())),
        None => (None, word),
    };
    let checked = |word: EventWord<'_>| match is_identifier(word.text) {
        true => Ok(word.text.to_owned()),
        false => Err(Fault::at(&word.span(), format!("invalid event name `{}`", word.text))
            .expected("letters, digits and `_`, not beginning with a digit")),
    };
    Ok((group.map(checked).transpose()?, Some(checked(event)?)))
}

fn is_identifier(name: &str) -> bool {
    !name.is_empty()
        && !name.starts_with(|letter: char| letter.is_ascii_digit())
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}

/// Whether a name before `:LINE` is that of a source file.
fn is_file(name: &str) -> bool {
    name.contains(['.', '/']) && !name.contains("::")
}

/// The position of the colon before a line number, as opposed to the `::` in C++ names.
fn line_suffix(text: &str) -> Option<usize> {
    let colon = text.rfind(':')?;
    let is_line = text[colon + 1..].starts_with(|digit: char| digit.is_ascii_digit());
    (is_line && !text[..colon].ends_with(':')).then_some(colon)
}

fn point(word: EventWord<'_>) -> ParseResult<ProbePoint> {
    let invalid =
        |what: &str, word: EventWord<'_>| Fault::at(&word.span(), format!("invalid {what} `{}`", word.text));
    let mut point = ProbePoint::default();
    let mut rest = word;
    if let Some(at) = rest.text.find(';') {
        let span = part(rest, at, rest.text.len()).span();
        return Err(
            Fault::at(&span, "source text patterns are not supported").expected(Hint::FunctionAndLine)
        );
    }
    if rest.text.starts_with('%') || rest.text.starts_with("sdt_") && rest.text.contains(':') {
        return Err(Fault::at(&rest.span(), "a static marker needs no probe")
            .try_this(Hint::SampleMarker { marker: rest.text.trim_start_matches('%').to_owned() }));
    }
    if let Some(at) = rest.text.find('%') {
        let suffix = part(rest, at, rest.text.len());
        if suffix.text != "%return" {
            return Err(invalid("suffix", suffix).expected("%return"));
        }
        point.returns = true;
        rest = part(rest, 0, at);
    }
    let mut line = None;
    if let Some(at) = line_suffix(rest.text) {
        let typed = part(rest, at + 1, rest.text.len());
        if typed.text.contains('+') {
            return Err(Fault::at(&typed.span(), "an offset cannot be combined with a line"));
        }
        line = Some(typed.text.parse().map_err(|_| invalid("line", typed).expected("a number"))?);
        rest = part(rest, 0, at);
    }
    let has_operator = rest.text.contains("operator");
    if let Some(at) = rest.text.rfind('+').filter(|_| !has_operator && !is_file(rest.text)) {
        let typed = part(rest, at + 1, rest.text.len());
        point.offset = Some(number(typed.text).ok_or_else(|| invalid("offset", typed).expected("a number"))?);
        rest = part(rest, 0, at);
    }
    if let Some((function, file)) = rest.text.split_once('@') {
        if file.is_empty() {
            return Err(Fault::at(&rest.span(), "a file's name is missing after `@`"));
        }
        point.file = Some(file.to_owned());
        rest = part(rest, 0, function.len());
    } else if line.is_some() && is_file(rest.text) {
        point.file = Some(rest.text.to_owned());
    }
    point.line = line;
    let is_plain_file = point.line.is_some() && point.file.as_deref() == Some(rest.text);
    if rest.text.is_empty() {
        return Err(Fault::at(&word.span(), "a probe requires a function").expected("FUNCTION, or FILE:LINE"));
    }
    match number(rest.text).filter(|_| rest.text.starts_with("0x")) {
        Some(address) => point.address = Some(address),
        None if !is_plain_file => point.function = Some(rest.text.replace('\\', "")),
        None => {}
    }
    let is_exact = point.line.is_some() || point.offset.is_some();
    if point.returns && (is_exact || point.function.is_none()) {
        return Err(Fault::at(&word.span(), "%return cannot be combined with a line or an offset"));
    }
    if point.address.is_some() && is_exact {
        return Err(Fault::at(&word.span(), "an address cannot be combined with a line or an offset"));
    }
    Ok(point)
}

fn argument(word: EventWord<'_>) -> ParseResult<ProbeArgument> {
    let (name, value) = named(word)?;
    if let Some(name) = name.filter(|name| !is_identifier(name.text)) {
        return Err(Fault::at(&name.span(), format!("invalid name of an argument `{}`", name.text))
            .expected("letters, digits and `_`, not beginning with a digit"));
    }
    match value.text {
        "$vars" if name.is_none() => return Ok(ProbeArgument::Variables),
        "$params" if name.is_none() => return Ok(ProbeArgument::Parameters),
        "" => return Err(Fault::at(&word.span(), "the value of the argument is missing")),
        _ => {}
    }
    let (place, kind) = match value.text.rfind(':') {
        Some(at) => (part(value, 0, at), Some(part(value, at + 1, value.text.len()))),
        None => (value, None),
    };
    if let Some(kind) = kind.filter(|kind| !is_type(kind.text)) {
        return Err(Fault::at(&kind.span(), format!("unknown type `{}`", kind.text)).expected(TYPES));
    }
    if value.text.starts_with(['%', '$', '@', '+', '-', '\\']) {
        let is_text = kind.is_some_and(|kind| matches!(kind.text, "string" | "ustring"));
        let holds_address = place.text.starts_with(['%', '$']) && place.text != "$comm";
        // The kernel reads strings only from memory: from the address that the register or `$retval` holds.
        return Ok(ProbeArgument::Verbatim(match is_text && holds_address {
            true => {
                let (name, kind) = word.text.split_at(value.at - word.at);
                let (place, kind) = kind.split_at(place.text.len());
                format!("{name}+0({place}){kind}")
            }
            false => word.text.to_owned(),
        }));
    }
    Ok(ProbeArgument::Variable {
        name: name.map(|name| name.text.to_owned()),
        expression: place.text.to_owned(),
        kind: kind.map(|kind| kind.text.to_owned()),
    })
}

/// Whether this is one of the kernel's types, or `u`, `s` or `x`.
fn is_type(text: &str) -> bool {
    let text = text.split_once('[').map_or(text, |(element, _)| element);
    let is_number = |digits: &str| !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    match text {
        "string" | "ustring" | "char" | "symbol" | "symstr" | "u" | "s" | "x" => true,
        _ => match text.split_at_checked(1) {
            Some(("u" | "s" | "x", bits)) => matches!(bits, "8" | "16" | "32" | "64"),
            Some(("b", rest)) => rest.split_once('@').is_some_and(|(width, rest)| {
                let (offset, size) = rest.split_once('/').unwrap_or_default();
                is_number(width) && is_number(offset) && is_number(size)
            }),
            _ => false,
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn point_of(text: &str) -> ProbePoint {
        text.parse::<ProbeSyntax>().unwrap().point
    }

    #[test]
    fn places_are_parsed_as_in_perf() {
        let function = |name: &str| ProbePoint { function: Some(name.into()), ..ProbePoint::default() };
        assert_eq!(point_of("main"), function("main"));
        assert_eq!(point_of("ns::Class::run"), function("ns::Class::run"));
        assert_eq!(point_of("helper.isra.0"), function("helper.isra.0"));
        assert_eq!(point_of("ns::run:3"), ProbePoint { line: Some(3), ..function("ns::run") });
        assert_eq!(point_of("main+0x10"), ProbePoint { offset: Some(16), ..function("main") });
        assert_eq!(point_of("main%return"), ProbePoint { returns: true, ..function("main") });
        let file = Some("a.c".to_owned());
        assert_eq!(
            point_of("main@a.c:3"),
            ProbePoint { line: Some(3), file: file.clone(), ..function("main") }
        );
        assert_eq!(point_of("a.c:12"), ProbePoint { line: Some(12), file, ..ProbePoint::default() });
        assert_eq!(point_of("0x1179"), ProbePoint { address: Some(0x1179), ..ProbePoint::default() });
    }

    #[test]
    fn names_and_arguments_are_split() {
        let parsed =
            "g:e=main n=item->next.id:x32 *p:string %di r=$retval $vars".parse::<ProbeSyntax>().unwrap();
        assert_eq!((parsed.group.as_deref(), parsed.event.as_deref()), (Some("g"), Some("e")));
        let variable = |name: Option<&str>, expression: &str, kind: &str| ProbeArgument::Variable {
            name: name.map(str::to_owned),
            expression: expression.into(),
            kind: Some(kind.into()),
        };
        assert_eq!(
            parsed.arguments,
            [
                variable(Some("n"), "item->next.id", "x32"),
                variable(None, "*p", "string"),
                ProbeArgument::Verbatim("%di".into()),
                ProbeArgument::Verbatim("r=$retval".into()),
                ProbeArgument::Variables,
            ]
        );
    }

    #[test]
    fn strings_are_read_from_the_address_that_a_register_holds() {
        let text = "main%return $retval:string r=$retval:ustring a=%di:string $comm:string $retval:x64 +8(%sp):string";
        let parsed = text.parse::<ProbeSyntax>();
        let verbatim = |text: &str| ProbeArgument::Verbatim(text.to_owned());
        assert_eq!(
            parsed.unwrap().arguments,
            [
                verbatim("+0($retval):string"),
                verbatim("r=+0($retval):ustring"),
                verbatim("a=+0(%di):string"),
                verbatim("$comm:string"),
                verbatim("$retval:x64"),
                verbatim("+8(%sp):string"),
            ]
        );
    }

    #[test]
    fn errors_point_at_the_word() {
        for (text, wrong) in [
            ("", ""),
            ("main%exit", "%exit"),
            ("main:3+4", "3+4"),
            ("main+x", "x"),
            ("1=main", "1"),
            ("main a:u7", "u7"),
            ("main 2=a", "2"),
            ("main:3%return", "main:3%return"),
            ("main%return count", "main%return"),
            ("main;x = 3", ";x"),
            ("a+b:c", "b:c"),
        ] {
            let error = text.parse::<ProbeSyntax>().unwrap_err();
            assert_eq!(&text[error.span.clone()], wrong, "{text}: {error}");
        }
    }

    #[test]
    fn ranges_of_lines_are_parsed() {
        let range = "main@a.c:3+4".parse::<LineRange>().unwrap();
        assert_eq!((range.function.as_deref(), range.file.as_deref()), (Some("main"), Some("a.c")));
        assert_eq!((range.first, range.last), (Some(3), Some(6)));
        let range = "a.c:10-12".parse::<LineRange>().unwrap();
        assert_eq!((range.function, range.first, range.last), (None, Some(10), Some(12)));
        assert_eq!("main".parse::<LineRange>().unwrap().first, None);
        assert!("main:9-3".parse::<LineRange>().is_err() && "main:3x".parse::<LineRange>().is_err());
    }
}
