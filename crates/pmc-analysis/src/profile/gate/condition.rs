//! The language of `--fail-if`: the condition under which a change makes a comparison fail.
//!
//! Parses text into a [`GateCondition`], and evaluates it for one measure at a time: a time, a count, or the
//! cost of a function. Errors show the position with a caret and lead to exit status 2.
//!
//! ```text
//! any        := all (`or` all)*
//! all        := term (`and` term)*
//! term       := '(' any ')' | comparison
//! comparison := quantity ('<' | '<=' | '>' | '>=') NUMBER '%'?
//! quantity   := `worse` | `better` | `p` | NAME
//! NAME       := anything without blanks, quotes, brackets and '<' '>', or anything in "…"
//! ```

use std::str::FromStr;

use pmc_sys::error::{Error, Result};
use pmc_text::text;

/// Maximum nesting depth of brackets. The parser is recursive.
const MOST_NESTED: usize = 50;

/// A parsed condition.
///
/// `worse` is the increase in percent, and `better` the decrease. A name selects an event or a metric. Its
/// value is the increase in percent. `p` is the probability of such a change by chance. All parts of a
/// condition refer to the same measure, so `cycles > 3% and p < 0.01` uses the p of cycles.
#[derive(Debug, Clone, PartialEq)]
pub struct GateCondition {
    text: String,
    root: ConditionNode,
}

#[derive(Debug, Clone, PartialEq)]
enum ConditionNode {
    All(Vec<ConditionNode>),
    Any(Vec<ConditionNode>),
    Comparison { quantity: GateQuantity, order: GateOrder, limit: f64 },
}

#[derive(Debug, Clone, PartialEq)]
enum GateQuantity {
    Worse,
    Better,
    /// The p-value.
    Probability,
    /// The change of the named event or metric.
    Named(String),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum GateOrder {
    Below,
    AtMost,
    Above,
    AtLeast,
}

/// The measure for which a condition is evaluated.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ConditionSubject<'a> {
    /// The names by which a condition can select the measure.
    pub(crate) names: &'a [String],
    /// Whether `worse` and `better` refer to this measure.
    pub(crate) is_cost: bool,
}

impl ConditionSubject<'_> {
    /// Whether a name in a condition selects this measure.
    fn is_named(&self, asked: &str) -> bool {
        self.names.iter().any(|name| selects_name(asked, name))
    }
}

/// Whether a name in a condition selects the measure `name`. `cycles` also selects `cycles:u`, which pmc
/// counts if the user may not count in the kernel.
pub fn selects_name(asked: &str, name: &str) -> bool {
    name == asked || name.strip_suffix(":u") == Some(asked)
}

impl FromStr for GateCondition {
    type Err = Error;

    /// Parses a condition. An error has a caret at the position of the problem.
    fn from_str(text: &str) -> Result<Self> {
        let mut parser = ConditionParser { text, at: 0, nested: 0 };
        let root = parser.any().and_then(|root| match parser.peek() {
            None => Ok(root),
            Some(_) => Err(parser.expected("`and`, `or` or the end")),
        });
        match root {
            Ok(root) => Ok(Self { text: text.trim().to_owned(), root }),
            Err((at, expected)) => Err(Error::usage("not a condition")
                .detail(text::with_caret(text, at, &format!("expected {expected}")))
                .try_options("--fail-if 'worse > 3% and p < 0.01'")),
        }
    }
}

impl GateCondition {
    /// Returns the condition as typed.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Returns the names of events and metrics in the condition.
    pub fn names(&self) -> Vec<&str> {
        self.root.comparisons().into_iter().filter_map(|(quantity, ..)| quantity.name()).collect()
    }

    /// Whether the condition selects this measure: it could hold for it, and the measure is a cost or is
    /// named in the condition.
    pub(crate) fn selects(&self, subject: ConditionSubject<'_>) -> bool {
        let is_named = || self.names().iter().any(|name| subject.is_named(name));
        self.root.could_hold(subject) && (subject.is_cost || is_named())
    }

    /// Whether the condition holds for a change in percent, with this p-value.
    pub(crate) fn holds(&self, subject: ConditionSubject<'_>, percent: f64, p: f64) -> bool {
        self.root.holds(subject, percent, p)
    }

    /// Returns changes in percent that are barely beyond each limit that the condition sets for this measure.
    pub(crate) fn changes_beyond_limits(&self, subject: ConditionSubject<'_>) -> Vec<f64> {
        let beyond = |(quantity, order, limit): (&GateQuantity, GateOrder, f64)| {
            let margin = 1e-9 * limit.abs().max(1.0);
            let change = match order {
                GateOrder::Above | GateOrder::AtLeast => limit + margin,
                GateOrder::Below | GateOrder::AtMost => limit - margin,
            };
            match quantity {
                GateQuantity::Worse if subject.is_cost => Some(change),
                GateQuantity::Better if subject.is_cost => Some(-change),
                GateQuantity::Named(name) if subject.is_named(name) => Some(change),
                _ => None,
            }
        };
        self.root.comparisons().into_iter().filter_map(beyond).collect()
    }
}

impl GateQuantity {
    fn name(&self) -> Option<&str> {
        if let Self::Named(name) = self { Some(name) } else { None }
    }
}

impl ConditionNode {
    fn comparisons(&self) -> Vec<(&GateQuantity, GateOrder, f64)> {
        match self {
            Self::All(nodes) | Self::Any(nodes) => nodes.iter().flat_map(Self::comparisons).collect(),
            Self::Comparison { quantity, order, limit } => vec![(quantity, *order, *limit)],
        }
    }

    fn holds(&self, subject: ConditionSubject<'_>, percent: f64, p: f64) -> bool {
        match self {
            Self::All(nodes) => nodes.iter().all(|node| node.holds(subject, percent, p)),
            Self::Any(nodes) => nodes.iter().any(|node| node.holds(subject, percent, p)),
            Self::Comparison { quantity, order, limit } => {
                let value = match quantity {
                    GateQuantity::Worse if subject.is_cost => percent,
                    GateQuantity::Better if subject.is_cost => -percent,
                    GateQuantity::Probability => p,
                    GateQuantity::Named(name) if subject.is_named(name) => percent,
                    _ => return false,
                };
                order.compare(value, *limit)
            }
        }
    }

    /// Whether the condition could hold for this measure with a suitable change and p-value.
    fn could_hold(&self, subject: ConditionSubject<'_>) -> bool {
        match self {
            Self::All(nodes) => nodes.iter().all(|node| node.could_hold(subject)),
            Self::Any(nodes) => nodes.iter().any(|node| node.could_hold(subject)),
            Self::Comparison { quantity, .. } => match quantity {
                GateQuantity::Worse | GateQuantity::Better => subject.is_cost,
                GateQuantity::Probability => true,
                GateQuantity::Named(name) => subject.is_named(name),
            },
        }
    }
}

impl GateOrder {
    fn compare(self, value: f64, limit: f64) -> bool {
        match self {
            Self::Below => value < limit,
            Self::AtMost => value <= limit,
            Self::Above => value > limit,
            Self::AtLeast => value >= limit,
        }
    }
}

/// A syntax error: its byte offset, and the expected text.
type ConditionSyntaxError = (usize, String);

struct ConditionParser<'a> {
    text: &'a str,
    at: usize,
    nested: usize,
}

impl ConditionParser<'_> {
    fn rest(&self) -> &str {
        &self.text[self.at..]
    }

    /// Skips blanks and returns the next character without consuming it.
    fn peek(&mut self) -> Option<char> {
        self.at += self.rest().len() - self.rest().trim_start().len();
        self.rest().chars().next()
    }

    fn take(&mut self, wanted: &str) -> bool {
        self.peek();
        let found = self.rest().starts_with(wanted);
        if found {
            self.at += wanted.len();
        }
        found
    }

    fn expected(&self, what: impl Into<String>) -> ConditionSyntaxError {
        (self.at, what.into())
    }

    /// Consumes the word `wanted`, such as `and`.
    fn take_word(&mut self, wanted: &str) -> bool {
        self.peek();
        let found = self.word_end() == wanted.len() && self.rest().starts_with(wanted);
        if found {
            self.at += wanted.len();
        }
        found
    }

    /// Returns the length of the word at the current offset.
    fn word_end(&self) -> usize {
        let is_end = |c: char| c.is_whitespace() || "<>()\"".contains(c);
        self.rest().find(is_end).unwrap_or(self.rest().len())
    }

    fn any(&mut self) -> Result<ConditionNode, ConditionSyntaxError> {
        let mut nodes = vec![self.all()?];
        while self.take_word("or") {
            nodes.push(self.all()?);
        }
        Ok(if nodes.len() == 1 { nodes.remove(0) } else { ConditionNode::Any(nodes) })
    }

    fn all(&mut self) -> Result<ConditionNode, ConditionSyntaxError> {
        let mut nodes: Vec<ConditionNode> = Vec::new();
        let mut named: Option<String> = None;
        loop {
            self.peek();
            let start = self.at;
            let node = self.term()?;
            if let ConditionNode::Comparison { quantity: GateQuantity::Named(name), .. } = &node {
                if let Some(first) = named.as_ref().filter(|first| *first != name) {
                    let first = text::clean(first);
                    return Err((start, format!("`{first}` again: `and` joins conditions on one measure")));
                }
                named = Some(name.clone());
            }
            nodes.push(node);
            if !self.take_word("and") {
                break;
            }
        }
        Ok(if nodes.len() == 1 { nodes.remove(0) } else { ConditionNode::All(nodes) })
    }

    fn term(&mut self) -> Result<ConditionNode, ConditionSyntaxError> {
        if !self.take("(") {
            return self.comparison();
        }
        self.nested += 1;
        if self.nested > MOST_NESTED {
            return Err(self.expected(format!("at most {MOST_NESTED} nested brackets")));
        }
        let node = self.any()?;
        self.nested -= 1;
        if self.take(")") { Ok(node) } else { Err(self.expected("`)`, `and` or `or`")) }
    }

    fn comparison(&mut self) -> Result<ConditionNode, ConditionSyntaxError> {
        let quantity = self.quantity()?;
        const ORDERS: [(&str, GateOrder); 4] = [
            ("<=", GateOrder::AtMost),
            (">=", GateOrder::AtLeast),
            ("<", GateOrder::Below),
            (">", GateOrder::Above),
        ];
        let Some((_, order)) = ORDERS.into_iter().find(|(sign, _)| self.take(sign)) else {
            return Err(self.expected("<, <=, > or >="));
        };
        let limit = self.limit(quantity == GateQuantity::Probability)?;
        Ok(ConditionNode::Comparison { quantity, order, limit })
    }

    fn quantity(&mut self) -> Result<GateQuantity, ConditionSyntaxError> {
        const WANTED: &str = "`worse`, `better`, `p`, or the name of an event or metric";
        if self.take("\"") {
            let end = self.rest().find('"').ok_or((self.text.len(), "a closing quote".to_owned()))?;
            let name = self.rest()[..end].to_owned();
            if name.is_empty() {
                return Err(self.expected("a name"));
            }
            self.at += end + 1;
            return Ok(GateQuantity::Named(name));
        }
        self.peek();
        let word = self.rest()[..self.word_end()].to_owned();
        if word.is_empty() || word == "and" || word == "or" || word.starts_with(|c: char| c.is_ascii_digit())
        {
            return Err(self.expected(WANTED));
        }
        self.at += word.len();
        Ok(match word.as_str() {
            "worse" => GateQuantity::Worse,
            "better" => GateQuantity::Better,
            "p" => GateQuantity::Probability,
            _ => GateQuantity::Named(word),
        })
    }

    /// Parses a limit: for p-values, a probability; for changes, a percentage.
    fn limit(&mut self, is_probability: bool) -> Result<f64, ConditionSyntaxError> {
        self.peek();
        let start = self.at;
        let is_number = |c: char| c.is_ascii_alphanumeric() || "+-.".contains(c);
        let length = self.rest().find(|c| !is_number(c)).unwrap_or(self.rest().len());
        let number = self.rest()[..length].parse::<f64>().ok().filter(|number| number.is_finite());
        let number = number.ok_or_else(|| self.expected("a number"))?;
        self.at += length;
        match (is_probability, self.take("%")) {
            (true, has_percent) => {
                let p = if has_percent { number / 100.0 } else { number };
                if p > 0.0 && p <= 1.0 { Ok(p) } else { Err((start, "a probability up to 1".to_owned())) }
            }
            (false, true) => Ok(number),
            (false, false) => Err(self.expected("`%`: changes are in percent")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn holds(condition: &str, name: &str, is_cost: bool, percent: f64, p: f64) -> bool {
        let names = [name.to_owned()];
        let condition = GateCondition::from_str(condition).unwrap();
        condition.holds(ConditionSubject { names: &names, is_cost }, percent, p)
    }

    #[test]
    fn conditions_refer_to_one_measure() {
        let usual = "worse > 3% and p < 0.01";
        assert!(holds(usual, "elapsed", true, 3.1, 0.009));
        assert!(!holds(usual, "elapsed", true, 3.0, 0.009));
        assert!(!holds(usual, "elapsed", true, 3.1, 0.01));
        assert!(!holds(usual, "elapsed", true, -9.0, 0.001), "an improvement is not worse");
        assert!(!holds(usual, "instructions", false, 9.0, 0.001), "`worse` is about costs only");
        assert!(holds("instructions >= 1% and p < 1%", "instructions", false, 1.0, 0.009));
        assert!(holds("cycles > 1%", "cycles:u", false, 2.0, 1.0));
        assert!(!holds("cycles > 1%", "cycles:k", false, 2.0, 1.0));
        assert!(holds("ipc < -2%", "ipc", false, -2.5, 1.0));
        assert!(holds("better < 5%", "elapsed", true, -4.0, 1.0));
        assert!(!holds("better < 5%", "elapsed", true, -6.0, 1.0));
        assert!(holds("a > 9% or (a > 1% or b > 1%) and p <= 0.5", "a", false, 2.0, 0.5));
        assert!(holds("\"my metric\" > 1%", "my metric", false, 2.0, 1.0));
        assert!(holds("cpu/event=0x3c/ > 1%", "cpu/event=0x3c/", false, 2.0, 1.0));
    }

    #[test]
    fn names_select_measures() {
        let selects = |condition: &str, name: &str, is_cost| {
            let names = [name.to_owned()];
            GateCondition::from_str(condition).unwrap().selects(ConditionSubject { names: &names, is_cost })
        };
        assert!(selects("worse > 1%", "elapsed", true));
        assert!(!selects("worse > 1%", "cycles", false));
        assert!(selects("worse > 1% or cycles > 2%", "cycles", false));
        assert!(selects("worse > 1% or cycles > 2%", "elapsed", true));
        assert!(!selects("cycles > 2% and p < 0.1", "elapsed", true));
        assert!(!selects("p < 0.1", "cycles", false));
        // It can hold for no measure.
        assert!(!selects("worse > 1% and cycles > 1%", "cycles", false));
    }

    #[test]
    fn syntax_errors_point_with_a_caret() {
        for (text, caret, expected) in [
            ("", "^", "`worse`, `better`, `p`"),
            ("worse", "     ^", "<, <=, > or >="),
            ("worse > ", "        ^", "a number"),
            ("worse > 3", "         ^", "`%`: changes are in percent"),
            ("worse = 3%", "      ^", "<, <=, > or >="),
            ("worse > 3% p < 1", "           ^", "`and`, `or` or the end"),
            ("worse > 3% and", "              ^", "`worse`, `better`, `p`"),
            ("(worse > 3%", "           ^", "`)`, `and` or `or`"),
            ("p < 5", "    ^", "a probability up to 1"),
            ("p < 0", "    ^", "a probability up to 1"),
            ("p < nan", "    ^", "a number"),
            ("\"a", "  ^", "a closing quote"),
            ("3% > worse", "^", "`worse`, `better`, `p`"),
            ("a > 1% and b > 1%", "           ^", "`a` again"),
        ] {
            let error = GateCondition::from_str(text).unwrap_err();
            assert_eq!(error.exit_status().code(), 2, "{text}");
            let shown = error.to_string();
            assert!(shown.contains(&format!("\n  {caret} expected {expected}")), "{text}: {shown}");
        }
        assert!(GateCondition::from_str(&"(".repeat(100_000)).is_err());
    }

    #[test]
    fn limits_have_a_direction() {
        let beyond = |condition: &str, name: &str, is_cost| {
            let names = [name.to_owned()];
            let subject = ConditionSubject { names: &names, is_cost };
            GateCondition::from_str(condition).unwrap().changes_beyond_limits(subject)
        };
        let near = |found: &[f64], wanted: &[f64]| {
            found.len() == wanted.len() && found.iter().zip(wanted).all(|(a, b)| (a - b).abs() < 1e-6)
        };
        assert!(near(&beyond("worse > 3% and p < 0.01 or better > 5%", "x", true), &[3.0, -5.0]));
        assert!(near(&beyond("x < -2% or y > 4%", "x", false), &[-2.0]));
        assert!(beyond("x < -2%", "x", false)[0] < -2.0 && beyond("x > 2%", "x", false)[0] > 2.0);
    }

    proptest! {
        #[test]
        fn no_text_panics(text in "\\PC{0,40}", words in prop::collection::vec(
            prop::sample::select(vec!["worse", "p", "and", "or", "(", ")", "<", ">=", "3%", "0.1", "\"a\"", " "]), 0..12)) {
            let _ = GateCondition::from_str(&text);
            let _ = GateCondition::from_str(&words.concat());
        }
    }
}
