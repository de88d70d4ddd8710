//! The language of derived metrics: perf's language, plus names in quotes.
//!
//! Parses text into a tree of numbers and [`MetricWord`]s, which have no meaning yet. Errors show the
//! position with a caret and lead to exit status 2.
//!
//! ```text
//! expr     := operands (`if` operands `else` expr)?
//! operands := sign (OPERATOR sign)*     weakest first: |  ^  &  < > >=  + -  * / %
//! sign     := '-' sign | atom
//! atom     := NUMBER | NAME | '#'LITERAL | '(' expr ')'
//!           | function '(' expr (',' expr)* ')' | about '(' NAME ')'
//! function := min | max | d_ratio          d_ratio(a, b) is a/b, or 0 if b is 0
//! about    := has_event | source_count | aggr_nr | strcmp_cpuid_str
//! NAME     := letters, digits, '_', '.', ':' and '@' (for '/'), others after '\', or anything in '…'
//! ```
//! perf's generic names (`branch-misses`, `L1-dcache-loads`) need no quotes. They cannot be confused with a
//! subtraction, because the part before the `-` is not an event.

use super::expression::{ExpressionNode, MetricFunction, Operator};
use super::literals;
use super::role;
use pmc_sys::error::{Error, Result};
use pmc_text::text;

/// Maximum nesting depth. There must be a limit, because the parser is recursive and its input is untrusted.
const MOST_NESTED: usize = 100;

/// Maximum number of operators. A long chain of operators also makes a deep tree. The longest chains in the
/// vendors' tables have about 600 operators.
const MOST_OPERATORS: usize = 1000;

/// A leaf as written in the text.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum MetricWord {
    /// A metric or an event, without escapes.
    Name(String),
    /// An event in quotes.
    Event(String),
    /// `#smt_on`, without the `#`, in lower case: one of [`literals::NAMES`].
    Literal(&'static str),
    /// Whether the event exists on this machine.
    HasEvent(String),
    /// Number of PMUs that can count the event.
    SourceCount(String),
    /// Number of counters in the event's sum.
    AggrNr(String),
    /// Whether the CPU matches this id.
    IsCpuid(String),
    /// `NaN`: the metric has no value in this case.
    Nothing,
}

/// Parses the expression of the metric `name`.
///
/// # Errors
/// Returns a usage error with a caret at the position of the problem.
pub(super) fn parse(name: &str, text: &str) -> Result<ExpressionNode<MetricWord>> {
    let mut parser = MetricParser { text, at: 0, nested: 0, operators: 0 };
    let root = parser.conditional().and_then(|root| match parser.peek() {
        None => Ok(root),
        Some(c) => Err(parser.expected(format!("an operator, but found `{c}`"))),
    });
    root.map_err(|wrong| wrong.explain(name, text))
}

/// A syntax error: its position and the expected text.
struct SyntaxError {
    at: usize,
    expected: String,
}

impl SyntaxError {
    fn explain(self, name: &str, text: &str) -> Error {
        Error::usage(format!("invalid expression of the metric `{}`", text::clean(name)))
            .detail(text::with_caret(text, self.at, &format!("expected {}", self.expected)))
            .try_this(
                "a if c else b, | ^ & < > >= + - * / % ( ), numbers, names of events and metrics, min(a, b), \
                 max(a, b), d_ratio(a, b); quote names that contain an operator: 'cpu/event=1/'",
            )
    }
}

struct MetricParser<'a> {
    text: &'a str,
    at: usize,
    nested: usize,
    operators: usize,
}

impl MetricParser<'_> {
    fn rest(&self) -> &str {
        &self.text[self.at..]
    }

    /// Skips blanks and returns the next character without consuming it.
    fn peek(&mut self) -> Option<char> {
        self.at += self.rest().len() - self.rest().trim_start().len();
        self.rest().chars().next()
    }

    fn take(&mut self, wanted: char) -> bool {
        let found = self.peek() == Some(wanted);
        if found {
            self.at += wanted.len_utf8();
        }
        found
    }

    fn word(&mut self, wanted: &str) -> bool {
        self.peek();
        let after = self.rest().strip_prefix(wanted);
        let found = after.is_some_and(|after| !after.starts_with(|c| is_name(c) || c == '\\'));
        if found {
            self.at += wanted.len();
        }
        found
    }

    fn expected(&self, what: impl Into<String>) -> SyntaxError {
        SyntaxError { at: self.at, expected: what.into() }
    }

    fn one_more_operator(&mut self) -> Result<(), SyntaxError> {
        self.operators += 1;
        match self.operators > MOST_OPERATORS {
            true => Err(self.expected(format!("at most {MOST_OPERATORS} operators"))),
            false => Ok(()),
        }
    }

    fn conditional(&mut self) -> Result<ExpressionNode<MetricWord>, SyntaxError> {
        let yes = self.operands(0)?;
        if !self.word("if") {
            return Ok(yes);
        }
        self.one_more_operator()?;
        let condition = self.operands(0)?;
        if !self.word("else") {
            return Err(self.expected("`else`"));
        }
        Ok(ExpressionNode::If(Box::new([yes, condition, self.conditional()?])))
    }

    /// Parses operands and the operators between them that bind at least as strongly as `weakest`.
    fn operands(&mut self, weakest: u8) -> Result<ExpressionNode<MetricWord>, SyntaxError> {
        let mut left = self.signed()?;
        loop {
            let (operator, binds, length) = match self.peek() {
                Some('|') => (Operator::Or, 0, 1),
                Some('^') => (Operator::Xor, 1, 1),
                Some('&') => (Operator::And, 2, 1),
                Some('<') => (Operator::Less, 3, 1),
                Some('>') if self.rest().starts_with(">=") => (Operator::AtLeast, 3, 2),
                Some('>') => (Operator::More, 3, 1),
                Some('+') => (Operator::Add, 4, 1),
                Some('-') => (Operator::Subtract, 4, 1),
                Some('*') => (Operator::Multiply, 5, 1),
                Some('/') => (Operator::Divide, 5, 1),
                Some('%') => (Operator::Remainder, 5, 1),
                _ => return Ok(left),
            };
            if binds < weakest {
                return Ok(left);
            }
            self.one_more_operator()?;
            self.at += length;
            left = ExpressionNode::binary(operator, left, self.operands(binds + 1)?);
        }
    }

    fn signed(&mut self) -> Result<ExpressionNode<MetricWord>, SyntaxError> {
        if self.nested >= MOST_NESTED {
            return Err(self.expected(format!("at most {MOST_NESTED} levels of nesting")));
        }
        self.nested += 1;
        let node =
            if self.take('-') { Ok(ExpressionNode::Negated(Box::new(self.signed()?))) } else { self.atom() };
        self.nested -= 1;
        node
    }

    fn atom(&mut self) -> Result<ExpressionNode<MetricWord>, SyntaxError> {
        let Some(first) = self.peek() else {
            return Err(self.expected("a number, an event or `(`, but found the end of the text"));
        };
        match first {
            '(' => {
                self.at += 1;
                let inner = self.conditional()?;
                if self.take(')') { Ok(inner) } else { Err(self.expected("`)`")) }
            }
            '#' => self.literal(),
            c if c.is_ascii_digit() || c == '.' => self.number(),
            c if is_name(c) || matches!(c, '\\' | '\'') => self.named(),
            c => Err(self.expected(format!("a number, an event or `(`, but found `{c}`"))),
        }
    }

    /// Parses `12`, `0.5`, `1e9` or `2.5E-3`. A word that starts with digits but is not a number is an event.
    fn number(&mut self) -> Result<ExpressionNode<MetricWord>, SyntaxError> {
        let rest = self.rest();
        let end = number_length(rest);
        if rest[end..].starts_with(is_name) {
            return self.named();
        }
        match rest[..end].parse() {
            Ok(number) => {
                self.at += end;
                Ok(ExpressionNode::Number(number))
            }
            Err(_) => Err(self.expected("a number")),
        }
    }

    fn literal(&mut self) -> Result<ExpressionNode<MetricWord>, SyntaxError> {
        let rest = &self.rest()[1..];
        let length = rest.find(|c| !is_name(c)).unwrap_or(rest.len());
        match literals::NAMES.iter().find(|name| rest[..length].eq_ignore_ascii_case(name)) {
            Some(name) => {
                self.at += 1 + length;
                Ok(ExpressionNode::Leaf(MetricWord::Literal(name)))
            }
            None => Err(self.expected(format!("one of #{}", literals::NAMES.join(", #")))),
        }
    }

    /// Parses a name, or a function with its arguments.
    fn named(&mut self) -> Result<ExpressionNode<MetricWord>, SyntaxError> {
        let start = self.at;
        if self.rest().starts_with('\'') {
            return Ok(ExpressionNode::Leaf(MetricWord::Event(self.quoted()?)));
        }
        if let Some(generic) = self.generic().map(str::to_owned) {
            self.at += generic.len();
            return Ok(ExpressionNode::Leaf(MetricWord::Name(generic)));
        }
        let name = self.name()?;
        if self.peek() != Some('(') {
            let is_nothing = name.eq_ignore_ascii_case("nan");
            return Ok(ExpressionNode::Leaf(if is_nothing {
                MetricWord::Nothing
            } else {
                MetricWord::Name(name)
            }));
        }
        self.at += 1;
        let (function, most) = match name.as_str() {
            "min" => (MetricFunction::Min, usize::MAX),
            "max" => (MetricFunction::Max, usize::MAX),
            "d_ratio" => (MetricFunction::Ratio, 2),
            "has_event" => return self.about(MetricWord::HasEvent),
            "source_count" => return self.about(MetricWord::SourceCount),
            "aggr_nr" => return self.about(MetricWord::AggrNr),
            "strcmp_cpuid_str" => return self.about(MetricWord::IsCpuid),
            _ => {
                let functions = "min, max, d_ratio, has_event, source_count, aggr_nr, strcmp_cpuid_str";
                return Err(SyntaxError { at: start, expected: format!("one of the functions {functions}") });
            }
        };
        let mut arguments = vec![self.conditional()?];
        while self.take(',') {
            arguments.push(self.conditional()?);
        }
        if !self.take(')') {
            return Err(self.expected("`,` or `)`"));
        }
        if function == MetricFunction::Ratio && arguments.len() != most {
            return Err(SyntaxError { at: start, expected: "two arguments for d_ratio".into() });
        }
        Ok(ExpressionNode::Call(function, arguments))
    }

    /// Parses the name in parentheses after a function such as `has_event`.
    fn about(&mut self, word: fn(String) -> MetricWord) -> Result<ExpressionNode<MetricWord>, SyntaxError> {
        let name = match self.peek() {
            Some('\'') => self.quoted()?,
            Some(c) if is_name(c) || c == '\\' => match self.generic().map(str::to_owned) {
                Some(generic) => {
                    self.at += generic.len();
                    generic
                }
                None => self.name()?,
            },
            _ => return Err(self.expected("a name")),
        };
        if self.take(')') { Ok(ExpressionNode::Leaf(word(name))) } else { Err(self.expected("`)`")) }
    }

    fn quoted(&mut self) -> Result<String, SyntaxError> {
        let start = self.at;
        self.at += 1;
        let Some(length) = self.rest().find('\'') else {
            return Err(SyntaxError { at: start, expected: "a closing `'` for this one".into() });
        };
        let name = self.rest()[..length].to_owned();
        if name.is_empty() {
            return Err(self.expected("an event name between the quotes"));
        }
        self.at += length + 1;
        Ok(name)
    }

    fn name(&mut self) -> Result<String, SyntaxError> {
        let mut name = String::new();
        while let Some(c) = self.rest().chars().next() {
            match c {
                '\\' => {
                    self.at += 1;
                    match self.rest().chars().next() {
                        Some(escaped) => {
                            name.push(escaped);
                            self.at += escaped.len_utf8();
                        }
                        None => return Err(self.expected("a character after `\\`")),
                    }
                    continue;
                }
                '@' => name.push('/'),
                c if is_name(c) => name.push(c),
                _ => break,
            }
            self.at += c.len_utf8();
        }
        Ok(name)
    }

    /// Returns the longest generic name with a `-` at this position, if it is a whole word (with its
    /// modifiers).
    fn generic(&self) -> Option<&str> {
        let rest = self.rest();
        if !rest.trim_start_matches(is_name).starts_with('-') {
            return None;
        }
        let name = role::hyphenated()
            .filter(|name| rest.get(..name.len()).is_some_and(|r| r.eq_ignore_ascii_case(name)))
            .filter(|name| !rest[name.len()..].starts_with(|c| c == '-' || is_name(c) && c != ':'))
            .max_by_key(|name| name.len())?;
        let modifiers = rest[name.len()..].find(|c| !is_name(c)).unwrap_or(rest.len() - name.len());
        Some(&rest[..name.len() + modifiers])
    }
}

/// Returns the length in bytes of the number at the start of the text.
pub(super) fn number_length(text: &str) -> usize {
    let digits = |from: usize| text[from..].bytes().take_while(u8::is_ascii_digit).count();
    let mut end = digits(0);
    if text[end..].starts_with('.') {
        end += 1 + digits(end + 1);
    }
    if end > 0 && text[end..].starts_with(['e', 'E']) {
        let sign = usize::from(text[end + 1..].starts_with(['+', '-']));
        let exponent = digits(end + 1 + sign);
        if exponent > 0 {
            end += 1 + sign + exponent;
        }
    }
    end
}

fn is_name(c: char) -> bool {
    c.is_alphanumeric() || matches!(c, '_' | '.' | ':' | '@')
}

#[cfg(test)]
mod tests {
    use super::super::formula::Operand;
    use super::super::library::{Binder, MetricLibrary, definition};
    use super::super::literals::{Literals, MetricEnvironment};
    use super::*;
    use crate::profile::counts::MissingValueReason;

    fn value(text: &str) -> Result<f64, MissingValueReason> {
        let written = format!("x={text}");
        let library = MetricLibrary::new([definition(&written).unwrap()]);
        let literals = Literals { smt_on: Some(1.0), num_cpus: Some(8.0), ..Literals::default() };
        let environment = MetricEnvironment {
            literals,
            has_event: &|name| name == "cpu/event=1/",
            source_count: &|name| (name == "UNC_CHA").then_some(3.0),
            is_cpuid: &|name| name == "GenuineIntel-6-55-7",
            ..MetricEnvironment::UNKNOWN
        };
        let mut binder = Binder::new(&library, &environment);
        let formula = binder.formula(library.definitions().next().unwrap()).unwrap_or_else(|e| panic!("{e}"));
        formula.evaluate(&mut |operand: &Operand| match operand.name.as_str() {
            "cycles" | "FOO" => Ok(200.0),
            "instructions:u" => Ok(300.0),
            "branch-misses" => Ok(5.0),
            "cpu/event=1,umask=2/" => Ok(7.0),
            "cpu/event=1/k" | "if.x" => Ok(11.0),
            "zero" => Ok(0.0),
            other => Err(MissingValueReason::new(format!("no {other}"), "")),
        })
    }

    #[test]
    fn operator_precedence_is_respected() {
        for (text, expected) in [
            ("1 + 2 * 3 - 4 / 2", 5.0),
            ("(1 + 2) * -3", -9.0),
            ("8 / 2 / 2 - 1 - 1", 0.0),
            ("1e3 * 2.5E-1 + .5 + 1e+02", 350.5),
            // From perf's own test of its expressions.
            ("(FOO-199)*2 + (FOO/100)%2 - -4", 6.0),
            ("1-1 | 1", 1.0),
            ("1-1 & 1", 0.0),
            ("min(1,2) + max(1,2)", 3.0),
            ("1+1 if 3*4 else 0", 2.0),
            ("100 if 1 else 200 if 1 else 300", 100.0),
            ("100 if 0 else 200 if 1 else 300", 200.0),
            ("100 if 1 else 200 if 0 else 300", 100.0),
            ("100 if 0 else 200 if 0 else 300", 300.0),
            (".1 + 2.", 2.1),
            ("d_ratio(2.5, 0)", 0.0),
            ("1.1 < 1.1", 0.0),
            ("1.1e10 < 1.1e100", 1.0),
            ("1.1e2 > 1.1e-2", 1.0),
            // From weakest to strongest.
            ("1 | 6 ^ 2 & 3 > 2 + 0 * 5", 7.0),
            ("2 >= 2 & 3 >= 2", 1.0),
            ("7.9 % 4", 3.0),
            ("-2 - -3", 1.0),
            ("1 if 0 < 1 & 1 < 0 else 2", 2.0),
        ] {
            assert_eq!(value(text), Ok(expected), "{text}");
        }
    }

    #[test]
    fn quoted_or_escaped_names_may_contain_operators() {
        assert_eq!(value("instructions:u / cycles"), Ok(1.5));
        assert_eq!(value("branch-misses - 1"), Ok(4.0));
        assert_eq!(value(r"branch\-misses*2"), Ok(10.0));
        assert_eq!(value("'cpu/event=1,umask=2/' * 2"), Ok(14.0));
        assert_eq!(value(r"cpu@event\=1\,umask\=2@ + 1"), Ok(8.0));
        assert_eq!(value(r"cpu@event\=1@k + if.x"), Ok(22.0));
    }

    #[test]
    fn functions_select_and_query_values() {
        assert_eq!(value("max(cycles, 1, 500) + min(cycles, 3)"), Ok(503.0));
        assert_eq!(value("d_ratio(1, zero) + d_ratio(6, 3)"), Ok(2.0));
        assert_eq!(value(r"has_event(cpu@event\=1@) + has_event(branch-misses)"), Ok(1.0));
        assert_eq!(value("source_count(UNC_CHA) * 2"), Ok(6.0));
        assert_eq!(value(r"strcmp_cpuid_str(GenuineIntel\-6\-55\-7) | strcmp_cpuid_str(0x0)"), Ok(1.0));
        assert_eq!(value("#NUM_CPUS + #smt_on"), Ok(9.0));
    }

    #[test]
    fn missing_values_carry_a_reason() {
        for (text, cause) in [
            ("1 / zero", "division by zero"),
            ("1 % (zero / 2)", "division by zero"),
            ("1 + nothing", "no nothing"),
            ("1e300 * 1e300", "too large"),
            ("#slots + 1", "#slots is unknown"),
            ("source_count(UNC_IIO) + 1", "no known PMU counts UNC_IIO"),
            ("NaN + 1", "lacks the required events"),
            ("1 if nothing else 2", "no nothing"),
            ("nothing & 1", "no nothing"),
            ("cycles * X:R", "retire latency"),
        ] {
            let reason = value(text).unwrap_err();
            assert!(reason.cause.contains(cause), "{text}: {}", reason.cause);
        }
        // Operands that do not affect the result may have no value.
        for (text, expected) in [
            ("cycles if 1 else NaN", 200.0),
            ("1 / zero if zero else 3", 3.0),
            ("nothing > 1 & zero", 0.0),
            ("cycles if X:R >= 0 else 4", 4.0),
        ] {
            assert_eq!(value(text), Ok(expected), "{text}");
        }
    }

    #[test]
    fn parse_errors_point_with_a_caret() {
        for (text, caret, words) in [
            ("cycles +", "        ^", "the end of the text"),
            ("cycles $ 2", "       ^", "found `$`"),
            ("(cycles", "       ^", "`)`"),
            ("foo(1)", "^", "min, max, d_ratio"),
            ("1 'open", "  ^", "an operator"),
            ("'open", "^", "closing"),
            ("d_ratio(1)", "^", "two arguments"),
            ("ü + *", "    ^", "found `*`"),
            ("", "^", "the end of the text"),
            ("1 if 2", "      ^", "`else`"),
            ("1 + #smt", "    ^", "#smt_on"),
            ("has_event(1 + 2)", "            ^", "`)`"),
            ("1 => 2", "  ^", "found `=`"),
        ] {
            let error = parse("x", text).unwrap_err();
            let shown = error.to_string();
            assert!(shown.contains(&format!("\n  {caret} expected ")), "{text}: {shown}");
            assert!(shown.contains(words), "{text}: {shown}");
            assert_eq!(error.exit_status().code(), 2);
        }
        let long = format!("{}$ + {}", "a + ".repeat(500), "b".repeat(900));
        let shown = parse("x", &long).unwrap_err().to_string();
        assert!(shown.len() < 700 && shown.contains("\n  …a + a +") && shown.contains("bbb…\n"), "{shown}");
    }

    #[test]
    fn hostile_text_is_rejected_without_recursion() {
        let many = |part: &str| part.repeat(100_000);
        for text in
            [many("("), many("-"), many("1+") + "1", many("1 if 1 else ") + "1", many("max("), many("(1)^(")]
        {
            assert!(parse("x", &text).is_err());
        }
        let most = "1+".repeat(MOST_OPERATORS) + "zero";
        assert_eq!(value(&most), Ok(MOST_OPERATORS as f64));
        assert_eq!(value(&("1 if 0 else ".repeat(MOST_OPERATORS) + "3")), Ok(3.0));
    }
}
