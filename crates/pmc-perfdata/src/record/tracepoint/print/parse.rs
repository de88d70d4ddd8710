//! Parses tokens into expressions, by operator precedence.

use super::Expr;
use super::lex::{Token, tokens};
use pmc_sys::abi::TracepointField;

/// Parses the format text and its arguments.
pub(super) fn print(text: &str, fields: &[TracepointField]) -> Option<(String, Vec<Expr>)> {
    let tokens = tokens(text)?;
    let mut p = PrintParser { tokens: &tokens, fields, depth: 0 };
    let format = p.text()?;
    let mut arguments = Vec::new();
    while p.accept(",") {
        arguments.push(p.choice()?);
    }
    p.tokens.is_empty().then_some((format, arguments))
}

struct PrintParser<'a> {
    tokens: &'a [Token],
    fields: &'a [TracepointField],
    depth: u32,
}

/// Binary operators, lowest precedence first.
const LEVELS: [&[&str]; 10] = [
    &["||"],
    &["&&"],
    &["|"],
    &["^"],
    &["&"],
    &["==", "!="],
    &["<=", ">=", "<", ">"],
    &["<<", ">>"],
    &["+", "-"],
    &["*", "/", "%"],
];

/// Maximum nesting depth of expressions; the deepest in the kernel have about 20 levels.
const DEEPEST: u32 = 100;

impl PrintParser<'_> {
    fn accept(&mut self, sign: &str) -> bool {
        let found = matches!(self.tokens.first(), Some(Token::Sign(s)) if *s == sign);
        if found {
            self.tokens = &self.tokens[1..];
        }
        found
    }

    fn expect(&mut self, sign: &str) -> Option<()> {
        self.accept(sign).then_some(())
    }

    fn word(&mut self) -> Option<&str> {
        let Some((Token::Word(word), rest)) = self.tokens.split_first() else { return None };
        self.tokens = rest;
        Some(word)
    }

    /// Joins adjacent string literals.
    fn text(&mut self) -> Option<String> {
        let mut text = None::<String>;
        while let Some((Token::Text(part), rest)) = self.tokens.split_first() {
            text.get_or_insert_default().push_str(part);
            self.tokens = rest;
        }
        text
    }

    fn choice(&mut self) -> Option<Expr> {
        self.depth += 1;
        if self.depth > DEEPEST {
            return None;
        }
        let condition = self.binary(0)?;
        let expr = if self.accept("?") {
            let yes = self.choice()?;
            self.expect(":")?;
            Expr::Choice(condition.into(), yes.into(), self.choice()?.into())
        } else {
            condition
        };
        self.depth -= 1;
        Some(expr)
    }

    fn binary(&mut self, level: usize) -> Option<Expr> {
        let Some(signs) = LEVELS.get(level) else { return self.unary() };
        let mut left = self.binary(level + 1)?;
        while let Some(sign) = signs.iter().find(|sign| self.accept(sign)) {
            left = Expr::Binary(sign, left.into(), self.binary(level + 1)?.into());
        }
        Some(left)
    }

    fn unary(&mut self) -> Option<Expr> {
        self.depth += 1;
        if self.depth > DEEPEST {
            return None;
        }
        let sign = ["-", "~", "!", "+"].into_iter().find(|sign| self.accept(sign));
        let expr = match sign {
            Some(sign) => Expr::Unary(sign.chars().next()?, self.unary()?.into()),
            None => self.postfix()?,
        };
        self.depth -= 1;
        Some(expr)
    }

    fn postfix(&mut self) -> Option<Expr> {
        let expr = self.primary()?;
        if self.accept("[") {
            let at = self.choice()?;
            self.expect("]")?;
            let (Expr::Field(index) | Expr::Bytes(index)) = expr else { return None };
            return Some(Expr::Element(index, at.into()));
        }
        Some(expr)
    }

    fn primary(&mut self) -> Option<Expr> {
        if let Some(Token::Text(_)) = self.tokens.first() {
            return self.text().map(Expr::Text);
        }
        if let Some((Token::Number(number), rest)) = self.tokens.split_first() {
            self.tokens = rest;
            return Some(Expr::Number(*number));
        }
        if self.accept("(") {
            if let Some(cast) = self.cast() {
                let inner = self.unary()?;
                return Some(match cast {
                    Some((bytes, is_signed)) => Expr::Cast(bytes, is_signed, inner.into()),
                    None => inner,
                });
            }
            let inner = self.choice()?;
            self.expect(")")?;
            return Some(inner);
        }
        let word = self.word()?.to_owned();
        if word == "REC" {
            self.expect("->")?;
            let name = self.word()?.to_owned();
            return self.field(&name).map(Expr::Field);
        }
        if !self.accept("(") {
            return Some(Expr::Word(word));
        }
        if word == "sizeof" {
            let (bytes, _) = self.cast().flatten()?;
            return Some(Expr::Number(bytes.into()));
        }
        let expr = self.call(&word)?;
        self.expect(")")?;
        Some(expr)
    }

    /// Parses the type and the `)` of a cast. Returns the type's size in bytes and whether it is signed, or
    /// an inner `None` for pointers and structs. Consumes nothing if there is no type.
    #[allow(clippy::option_option, reason = "outer None: no cast; inner None: a cast to a pointer or struct")]
    fn cast(&mut self) -> Option<Option<(u8, bool)>> {
        let before = self.tokens;
        let mut words = Vec::new();
        let mut is_pointer = false;
        loop {
            if self.accept("*") {
                is_pointer = true;
            } else if self.accept(")") {
                break;
            } else if let Some(word) = self.word() {
                words.push(word.to_owned());
            } else {
                words.clear();
                break;
            }
        }
        let number = |words: &[String]| {
            let is_unsigned = words.iter().any(|w| w == "unsigned");
            let size = words
                .iter()
                .filter(|w| !matches!(w.as_str(), "unsigned" | "signed" | "const"))
                .map(String::as_str);
            Some(match size.collect::<Vec<_>>().as_slice() {
                ["char"] => (1, !is_unsigned),
                ["short"] | ["short", "int"] => (2, !is_unsigned),
                [] | ["int"] => (4, !is_unsigned),
                ["long"] | ["long", "long"] | ["long", "int"] | ["long", "long", "int"] => (8, !is_unsigned),
                ["u8" | "__u8" | "uint8_t" | "bool" | "_Bool"] => (1, false),
                ["u16" | "__u16" | "uint16_t" | "umode_t"] => (2, false),
                ["u32" | "__u32" | "uint32_t" | "dev_t" | "gfp_t" | "uid_t" | "gid_t"] => (4, false),
                ["u64" | "__u64" | "uint64_t" | "size_t" | "uintptr_t" | "sector_t" | "pgoff_t"] => {
                    (8, false)
                }
                ["s8" | "__s8"] => (1, true),
                ["s16" | "__s16"] => (2, true),
                ["s32" | "__s32" | "pid_t"] => (4, true),
                ["s64" | "__s64" | "ssize_t" | "loff_t"] => (8, true),
                _ => return None,
            })
        };
        let kind = if words.is_empty() {
            None
        } else if is_pointer || words[0] == "struct" {
            Some(None)
        } else {
            number(&words).map(Some)
        };
        if kind.is_none() {
            self.tokens = before;
        }
        kind
    }

    fn field(&self, name: &str) -> Option<usize> {
        self.fields.iter().position(|field| field.name == name)
    }

    fn field_argument(&mut self) -> Option<usize> {
        let name = self.word()?.to_owned();
        self.field(&name)
    }

    fn call(&mut self, function: &str) -> Option<Expr> {
        Some(match function {
            "__get_str" | "__get_rel_str" | "__get_dynamic_array" | "__get_rel_dynamic_array" => {
                Expr::Bytes(self.field_argument()?)
            }
            "__get_dynamic_array_len" | "__get_rel_dynamic_array_len" => Expr::Length(self.field_argument()?),
            "__get_bitmask" | "__get_cpumask" | "__get_rel_bitmask" | "__get_rel_cpumask" => {
                Expr::Bitmask(self.field_argument()?)
            }
            "__print_flags" | "__print_flags_u64" => {
                let number = self.choice()?;
                self.expect(",")?;
                let between = self.text()?;
                Expr::Flags(number.into(), between, self.names()?)
            }
            "__print_symbolic" | "__print_symbolic_u64" => {
                let number = self.choice()?;
                Expr::Symbol(number.into(), self.names()?)
            }
            "__print_hex" | "__print_hex_str" => {
                let bytes = self.choice()?;
                self.expect(",")?;
                let between = if function == "__print_hex" { " " } else { "" };
                Expr::Hex(bytes.into(), self.choice()?.into(), between)
            }
            "__print_array" => {
                let bytes = self.choice()?;
                self.expect(",")?;
                let count = self.choice()?;
                self.expect(",")?;
                Expr::Array(bytes.into(), count.into(), self.choice()?.into())
            }
            "__builtin_expect" => {
                let inner = self.choice()?;
                self.expect(",")?;
                self.choice()?;
                inner
            }
            _ => return None,
        })
    }

    /// Parses any number of `, { value, "name" }`.
    fn names(&mut self) -> Option<Vec<(Expr, String)>> {
        let mut names = Vec::new();
        while self.accept(",") {
            self.expect("{")?;
            if self.accept("}") {
                continue;
            }
            let value = self.choice()?;
            self.expect(",")?;
            match self.text() {
                Some(name) => names.push((value, name)),
                // Some of the kernel's tables end with `((void *)0)`.
                None => drop(self.choice()?),
            }
            self.expect("}")?;
        }
        Some(names)
    }
}
