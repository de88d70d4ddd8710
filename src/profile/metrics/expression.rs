//! The language of derived metrics: `--metric 'name=expr'`.
//!
//! Receives text; hands on an [`Expression`] that is evaluated with the values of events. Errors carry a
//! caret and end in exit status 2. A value that cannot be had (an event that was not counted, a division by
//! zero) is no error but "no value" with its reason.
//!
//! ```text
//! expr    := product (('+' | '-') product)*
//! product := sign (('*' | '/') sign)*
//! sign    := '-' sign | atom
//! atom    := NUMBER | NAME | function '(' expr (',' expr)* ')' | '(' expr ')'
//! function:= min | max | d_ratio          d_ratio(a, b) is a/b, and 0 where b is 0
//! NAME    := letters, digits, '_', '.', ':' and '@' (for '/'), others after '\', or anything in '…'
//! ```
//! perf's generic names (`branch-misses`, `L1-dcache-loads`) need no quotes: what stands before their `-` is
//! no event.

use super::role;
use crate::error::{Error, Result};
use crate::profile::counts::Reason;
use crate::text;

/// Deepest nesting: the parser recurses, and its text comes from outside.
const MOST_NESTED: usize = 100;

/// A parsed expression.
#[derive(Debug, Clone, PartialEq)]
pub struct Expression {
    root: Node,
    events: Vec<String>,
}

#[derive(Debug, Clone, PartialEq)]
enum Node {
    Number(f64),
    /// Index into `Expression::events`.
    Event(usize),
    Negated(Box<Node>),
    Binary(Operator, Box<Node>, Box<Node>),
    Call(Function, Vec<Node>),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Operator {
    Add,
    Subtract,
    Multiply,
    Divide,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Function {
    Min,
    Max,
    Ratio,
}

/// A metric that is written as an expression: one of [`super::named`], or the user's.
#[derive(Debug, Clone)]
pub struct Definition {
    /// The name shown.
    pub name: String,
    /// Unit shown; empty for plain ratios.
    pub unit: String,
    /// What it says, in a few words; empty for the user's own.
    pub help: String,
    /// How it is computed.
    pub expression: Expression,
}

/// Splits `name=expr` and parses the right side: one `--metric`.
///
/// # Errors
/// What is wrong with the text, with a mark under it.
pub fn definition(text: &str) -> Result<Definition> {
    let Some((name, expression)) = text.split_once('=') else {
        return Err(Error::usage(format!("`{}` is not a metric", text::clean(text)))
            .why("a metric is written NAME=EXPRESSION")
            .try_this("--metric 'ipc=instructions / cycles'"));
    };
    let name = name.trim();
    if name.is_empty() {
        return Err(Error::usage(format!("the metric `{}` has no name before its `=`", text::clean(text)))
            .try_this("--metric 'ipc=instructions / cycles'"));
    }
    Ok(Definition {
        name: name.to_owned(),
        unit: String::new(),
        help: String::new(),
        expression: Expression::parse(expression)?,
    })
}

impl Expression {
    /// Parses an expression.
    ///
    /// # Errors
    /// A usage error with a caret under what was not understood.
    pub fn parse(text: &str) -> Result<Self> {
        let mut parser = Parser { text, at: 0, nested: 0, events: Vec::new() };
        let root = parser.sum().and_then(|root| match parser.peek() {
            None => Ok(root),
            Some(c) => Err(parser.expected(format!("an operator, but found `{c}`"))),
        });
        let root = root.map_err(|wrong| wrong.explain(text))?;
        Ok(Self { root, events: parser.events })
    }

    /// The sum of events, each times a factor.
    pub fn sum(terms: impl Iterator<Item = (String, f64)>) -> Self {
        let mut parser = Parser { text: "", at: 0, nested: 0, events: Vec::new() };
        let times =
            |node, factor| Node::Binary(Operator::Multiply, Box::new(node), Box::new(Node::Number(factor)));
        let nodes = terms.map(|(name, factor)| times(parser.event(name), factor)).collect::<Vec<_>>();
        let plus = |left, right| Node::Binary(Operator::Add, Box::new(left), Box::new(right));
        let root = nodes.into_iter().reduce(plus).unwrap_or(Node::Number(0.0));
        Self { root, events: parser.events }
    }

    /// The events it uses, each once, in the order of the text (`duration_time` among them).
    pub fn events(&self) -> &[String] {
        &self.events
    }

    /// Computes the value with the values that `lookup` gives for event names.
    ///
    /// # Errors
    /// Why there is no value: `lookup`'s reason, or a division by zero.
    pub fn evaluate(&self, lookup: &mut dyn FnMut(&str) -> Result<f64, Reason>) -> Result<f64, Reason> {
        let values: Vec<f64> = self.events.iter().map(|name| lookup(name)).collect::<Result<_, _>>()?;
        let value = self.root.value(&values)?;
        if value.is_finite() {
            Ok(value)
        } else {
            Err(Reason::new("the result is too large for a number", ""))
        }
    }
}

impl Node {
    fn value(&self, events: &[f64]) -> Result<f64, Reason> {
        Ok(match self {
            Self::Number(number) => *number,
            Self::Event(index) => events[*index],
            Self::Negated(node) => -node.value(events)?,
            Self::Binary(operator, left, right) => {
                let (left, right) = (left.value(events)?, right.value(events)?);
                match operator {
                    Operator::Add => left + right,
                    Operator::Subtract => left - right,
                    Operator::Multiply => left * right,
                    Operator::Divide if right == 0.0 => {
                        return Err(Reason::new(
                            "division by zero: what is divided by was counted 0 times",
                            "",
                        ));
                    }
                    Operator::Divide => left / right,
                }
            }
            Self::Call(function, arguments) => {
                let arguments: Vec<f64> =
                    arguments.iter().map(|a| a.value(events)).collect::<Result<_, _>>()?;
                match (function, arguments.as_slice()) {
                    (Function::Ratio, [a, b]) => {
                        if *b == 0.0 {
                            0.0
                        } else {
                            a / b
                        }
                    }
                    (Function::Min, all) => all.iter().copied().fold(f64::INFINITY, f64::min),
                    (Function::Max | Function::Ratio, all) => {
                        all.iter().copied().fold(f64::NEG_INFINITY, f64::max)
                    }
                }
            }
        })
    }
}

/// What the parser stumbled over: where, and what should have been there.
struct Wrong {
    at: usize,
    expected: String,
}

impl Wrong {
    fn explain(self, text: &str) -> Error {
        let before = text.get(..self.at).unwrap_or(text);
        let caret = " ".repeat(text::width(&text::clean(before)));
        Error::usage("cannot understand the metric's expression")
            .detail(format!("{}\n{caret}^ expected {}", text::clean(text), self.expected))
            .try_this("+ - * / ( ), numbers, event names, min(a, b), max(a, b), d_ratio(a, b); quote names that hold an operator: 'cpu/event=1/'")
    }
}

struct Parser<'a> {
    text: &'a str,
    at: usize,
    nested: usize,
    events: Vec<String>,
}

impl Parser<'_> {
    fn rest(&self) -> &str {
        &self.text[self.at..]
    }

    /// The next character that is not blank, staying before it.
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

    fn expected(&self, what: impl Into<String>) -> Wrong {
        Wrong { at: self.at, expected: what.into() }
    }

    fn sum(&mut self) -> Result<Node, Wrong> {
        let mut left = self.product()?;
        loop {
            let operator = match self.peek() {
                Some('+') => Operator::Add,
                Some('-') => Operator::Subtract,
                _ => return Ok(left),
            };
            self.at += 1;
            left = Node::Binary(operator, Box::new(left), Box::new(self.product()?));
        }
    }

    fn product(&mut self) -> Result<Node, Wrong> {
        let mut left = self.signed()?;
        loop {
            let operator = match self.peek() {
                Some('*') => Operator::Multiply,
                Some('/') => Operator::Divide,
                _ => return Ok(left),
            };
            self.at += 1;
            left = Node::Binary(operator, Box::new(left), Box::new(self.signed()?));
        }
    }

    fn signed(&mut self) -> Result<Node, Wrong> {
        if self.nested >= MOST_NESTED {
            return Err(self.expected(format!("at most {MOST_NESTED} levels of nesting")));
        }
        self.nested += 1;
        let node = if self.take('-') { Ok(Node::Negated(Box::new(self.signed()?))) } else { self.atom() };
        self.nested -= 1;
        node
    }

    fn atom(&mut self) -> Result<Node, Wrong> {
        let Some(first) = self.peek() else {
            return Err(self.expected("a number, an event or `(`, but the text ends"));
        };
        match first {
            '(' => {
                self.at += 1;
                let inner = self.sum()?;
                if self.take(')') { Ok(inner) } else { Err(self.expected("`)`")) }
            }
            '\'' => self.quoted(),
            c if c.is_ascii_digit() || c == '.' => self.number(),
            c if is_name(c) || c == '\\' => self.name(),
            c => Err(self.expected(format!("a number, an event or `(`, but found `{c}`"))),
        }
    }

    /// `12`, `0.5`, `1e9`, `2.5E-3`; a word that only begins with digits is an event.
    fn number(&mut self) -> Result<Node, Wrong> {
        let rest = self.rest();
        let digits = |from: usize| rest[from..].bytes().take_while(u8::is_ascii_digit).count();
        let mut end = digits(0);
        if rest[end..].starts_with('.') {
            end += 1 + digits(end + 1);
        }
        if rest[end..].starts_with(['e', 'E']) {
            let sign = usize::from(rest[end + 1..].starts_with(['+', '-']));
            let exponent = digits(end + 1 + sign);
            if exponent > 0 {
                end += 1 + sign + exponent;
            }
        }
        if rest[end..].starts_with(is_name) {
            return self.name();
        }
        match rest[..end].parse() {
            Ok(number) => {
                self.at += end;
                Ok(Node::Number(number))
            }
            Err(_) => Err(self.expected("a number")),
        }
    }

    fn quoted(&mut self) -> Result<Node, Wrong> {
        let start = self.at;
        self.at += 1;
        let Some(length) = self.rest().find('\'') else {
            return Err(Wrong { at: start, expected: "a closing `'` for this one".into() });
        };
        let name = self.rest()[..length].to_owned();
        if name.is_empty() {
            return Err(self.expected("an event name between the quotes"));
        }
        self.at += length + 1;
        Ok(self.event(name))
    }

    fn name(&mut self) -> Result<Node, Wrong> {
        let start = self.at;
        if let Some(generic) = self.generic().map(str::to_owned) {
            self.at += generic.len();
            return Ok(self.event(generic));
        }
        let mut name = String::new();
        while let Some(c) = self.rest().chars().next() {
            self.at += c.len_utf8();
            match c {
                '\\' => match self.rest().chars().next() {
                    Some(escaped) => {
                        name.push(escaped);
                        self.at += escaped.len_utf8();
                    }
                    None => return Err(self.expected("a character after `\\`")),
                },
                '@' => name.push('/'),
                c if is_name(c) => name.push(c),
                c => {
                    self.at -= c.len_utf8();
                    break;
                }
            }
        }
        if self.peek() != Some('(') {
            return Ok(self.event(name));
        }
        let function = match name.as_str() {
            "min" => Function::Min,
            "max" => Function::Max,
            "d_ratio" => Function::Ratio,
            _ => return Err(Wrong { at: start, expected: "one of the functions min, max, d_ratio".into() }),
        };
        self.at += 1;
        let mut arguments = vec![self.sum()?];
        while self.take(',') {
            arguments.push(self.sum()?);
        }
        if !self.take(')') {
            return Err(self.expected("`,` or `)`"));
        }
        if function == Function::Ratio && arguments.len() != 2 {
            return Err(Wrong { at: start, expected: "two arguments for d_ratio".into() });
        }
        Ok(Node::Call(function, arguments))
    }

    /// The longest generic name with a `-` in it that stands here as a whole word (with its modifiers).
    fn generic(&self) -> Option<&str> {
        let rest = self.rest();
        let name = role::hyphenated()
            .filter(|name| rest.get(..name.len()).is_some_and(|r| r.eq_ignore_ascii_case(name)))
            .filter(|name| !rest[name.len()..].starts_with(|c| c == '-' || is_name(c) && c != ':'))
            .max_by_key(|name| name.len())?;
        let modifiers = rest[name.len()..].find(|c| !is_name(c)).unwrap_or(rest.len() - name.len());
        Some(&rest[..name.len() + modifiers])
    }

    fn event(&mut self, name: String) -> Node {
        let index = self.events.iter().position(|e| *e == name).unwrap_or_else(|| {
            self.events.push(name);
            self.events.len() - 1
        });
        Node::Event(index)
    }
}

fn is_name(c: char) -> bool {
    c.is_alphanumeric() || matches!(c, '_' | '.' | ':' | '@')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(text: &str) -> Result<f64, Reason> {
        let expression = Expression::parse(text).unwrap_or_else(|e| panic!("{e}"));
        expression.evaluate(&mut |name| match name {
            "cycles" => Ok(200.0),
            "instructions:u" => Ok(300.0),
            "branch-misses" => Ok(5.0),
            "cpu/event=1,umask=2/" => Ok(7.0),
            "zero" => Ok(0.0),
            other => Err(Reason::new(format!("no {other}"), "")),
        })
    }

    #[test]
    fn arithmetic_has_its_precedence() {
        assert_eq!(value("1 + 2 * 3 - 4 / 2"), Ok(5.0));
        assert_eq!(value("(1 + 2) * -3"), Ok(-9.0));
        assert_eq!(value("8 / 2 / 2 - 1 - 1"), Ok(0.0));
        assert_eq!(value("1e3 * 2.5E-1 + .5"), Ok(250.5));
    }

    #[test]
    fn names_may_hold_operators_when_quoted() {
        assert_eq!(value("instructions:u / cycles"), Ok(1.5));
        assert_eq!(value("branch-misses - 1"), Ok(4.0));
        assert_eq!(value(r"branch\-misses*2"), Ok(10.0));
        assert_eq!(value("'cpu/event=1,umask=2/' * 2"), Ok(14.0));
        assert_eq!(value(r"cpu@event\=1\,umask\=2@ + 1"), Ok(8.0));
    }

    #[test]
    fn functions_choose() {
        assert_eq!(value("max(cycles, 1, 500) + min(cycles, 3)"), Ok(503.0));
        assert_eq!(value("d_ratio(1, zero) + d_ratio(6, 3)"), Ok(2.0));
    }

    #[test]
    fn no_value_has_a_reason() {
        assert!(value("1 / zero").unwrap_err().cause.contains("division by zero"));
        assert_eq!(value("1 + nothing").unwrap_err().cause, "no nothing");
        assert!(value("1e300 * 1e300").unwrap_err().cause.contains("too large"));
    }

    #[test]
    fn mistakes_get_a_caret() {
        for (text, caret, words) in [
            ("cycles +", "        ^", "the text ends"),
            ("cycles $ 2", "       ^", "found `$`"),
            ("(cycles", "       ^", "`)`"),
            ("foo(1)", "^", "min, max, d_ratio"),
            ("1 'open", "  ^", "an operator"),
            ("'open", "^", "closing"),
            ("d_ratio(1)", "^", "two arguments"),
            ("ü + *", "    ^", "found `*`"),
            ("", "^", "the text ends"),
        ] {
            let error = Expression::parse(text).unwrap_err();
            let shown = error.to_string();
            assert!(shown.contains(&format!("\n  {caret} expected ")), "{text}: {shown}");
            assert!(shown.contains(words), "{text}: {shown}");
            assert_eq!(error.exit_status().code(), 2);
        }
    }

    #[test]
    fn deep_nesting_is_refused_not_followed() {
        assert!(Expression::parse(&"(".repeat(100_000)).is_err());
        assert!(Expression::parse(&"-".repeat(100_000)).is_err());
    }

    #[test]
    fn a_definition_needs_a_name() {
        assert_eq!(definition(" ipc = cycles / 2 ").unwrap().name, "ipc");
        assert!(definition("cycles").is_err());
        assert!(definition("=cycles").is_err());
    }
}
