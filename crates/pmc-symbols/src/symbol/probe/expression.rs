//! Parses the C expressions that refer to a value: `count`, `item->parts[2].id`, `*pointer`.

/// One access of an expression; accesses are applied from left to right.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum AccessStep {
    /// `.NAME`, or `->NAME` if `through_pointer`.
    Member { name: String, through_pointer: bool },
    /// `[N]`
    Index(i64),
    /// `*` before the rest.
    Dereference,
}

/// A variable, and the accesses that lead to a part of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct VariableExpression {
    pub(super) variable: String,
    pub(super) steps: Vec<AccessStep>,
}

/// Maximum number of accesses.
const MOST_STEPS: usize = 64;

impl VariableExpression {
    /// Parses an expression. If it is invalid, returns the text from the first error on.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let stars = text.bytes().take_while(|&byte| byte == b'*').count();
        let (variable, mut rest) = name(&text[stars..])?;
        let mut steps = Vec::new();
        while !rest.is_empty() {
            if let Some(after) = rest.strip_prefix('[') {
                let (index, after) = after.split_once(']').ok_or(rest)?;
                let index = match index.strip_prefix("0x") {
                    Some(digits) => i64::from_str_radix(digits, 16),
                    None => index.parse(),
                };
                steps.push(AccessStep::Index(index.map_err(|_| rest)?));
                rest = after;
            } else {
                let arrow = rest.strip_prefix("->");
                let after = arrow.or_else(|| rest.strip_prefix('.')).ok_or(rest)?;
                let (member, after) = name(after)?;
                steps.push(AccessStep::Member { name: member.to_owned(), through_pointer: arrow.is_some() });
                rest = after;
            }
        }
        steps.extend(std::iter::repeat_n(AccessStep::Dereference, stars.min(MOST_STEPS)));
        if steps.len() > MOST_STEPS {
            return Err(rest.to_owned());
        }
        Ok(Self { variable: variable.to_owned(), steps })
    }

    /// The last name in the expression, which is the argument's default name.
    pub(super) fn last_name(&self) -> &str {
        let member = |step: &'_ AccessStep| matches!(step, AccessStep::Member { .. });
        match self.steps.iter().rfind(|step| member(step)) {
            Some(AccessStep::Member { name, .. }) => name,
            _ => &self.variable,
        }
    }
}

/// Splits off a C name.
fn name(text: &str) -> Result<(&str, &str), String> {
    let fits = |letter: char| letter.is_alphanumeric() || letter == '_' || letter == '$';
    let end = text.find(|letter| !fits(letter)).unwrap_or(text.len());
    let starts = text.starts_with(|letter: char| letter.is_alphabetic() || letter == '_');
    if starts { Ok(text.split_at(end)) } else { Err(text.to_owned()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn accesses_are_parsed_from_left_to_right() {
        let parsed = VariableExpression::parse("*item->parts[2].id").unwrap();
        let member = |name: &str, through_pointer| AccessStep::Member { name: name.into(), through_pointer };
        assert_eq!(parsed.variable, "item");
        assert_eq!(
            parsed.steps,
            [member("parts", true), AccessStep::Index(2), member("id", false), AccessStep::Dereference]
        );
        assert_eq!(parsed.last_name(), "id");
        assert_eq!(VariableExpression::parse("numbers[-1]").unwrap().last_name(), "numbers");
    }

    #[test]
    fn invalid_expressions_return_the_rest() {
        for (text, rest) in
            [("a+1", "+1"), ("a[", "["), ("a[x]", "[x]"), ("a->", ""), ("1a", "1a"), ("", ""), ("a[1", "[1")]
        {
            assert_eq!(VariableExpression::parse(text), Err(rest.to_owned()), "{text}");
        }
    }
}
