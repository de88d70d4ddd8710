//! Human-readable function names, split into the scope, the function, and its template arguments and
//! parameters. Decorations added by compilers and linkers are removed.
//!
//! ```text
//!   bool std::operator< <char, std::char_traits<char> >(std::basic_string<char> const&)
//!        '-scope -' '- function' '---------------- details ----------------------------'
//! ```
//! Parses demangled names in any language (C++, Rust, Go, Java), and names of generated code. A name that
//! cannot be parsed is kept whole. The caller adds colours. Machine-readable output contains full names.

use super::names::{NameToken, folded, name_tokens};
use super::{clean, cut, width};

/// The mark appended to a function's name to denote one of its closures (lambdas): `λ`.
const CLOSURE: &str = " λ";

/// A parsed name. Its parts, joined, are the text to display.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DisplayName {
    /// Namespaces, types and packages, including the separator before the function.
    pub scope: String,
    /// The function's own name.
    pub function: String,
    /// Template arguments, parameters and the closure mark.
    pub details: String,
}

impl DisplayName {
    /// Parses a name, and replaces its control characters.
    pub fn new(name: &str) -> Self {
        let name = clean(name);
        of_python(&name)
            .or_else(|| take_apart(&name))
            .unwrap_or_else(|| Self { function: name.into_owned(), ..Self::default() })
    }

    /// Returns the whole name.
    pub fn text(&self) -> String {
        [self.scope.as_str(), &self.function, &self.details].concat()
    }

    /// Shortens the name to at most `columns`: first omits the details, then shortens the scope from the
    /// left, and finally cuts the function.
    pub fn fit(mut self, columns: usize) -> Self {
        let (scope, function) = (width(&self.scope), width(&self.function));
        if scope + function + width(&self.details) <= columns {
            return self;
        }
        let is_closure = self.details.ends_with(CLOSURE);
        if scope + function <= columns {
            self.details = match is_closure && scope + function + width(CLOSURE) <= columns {
                true => CLOSURE.to_owned(),
                false => cut(&self.details, columns - scope - function),
            };
            return self;
        }
        self.details.clear();
        // The innermost scopes are the most informative.
        let after = |(at, _): &(usize, &str)| {
            self.scope[*at..].find(|c: char| !matches!(c, ':' | '.' | '/')).map(|more| at + more)
        };
        let separators = self.scope.match_indices(['.', ':', '/']).collect::<Vec<_>>();
        let ends = separators.iter().filter_map(after);
        let kept = ends.map(|end| format!("…{}", &self.scope[end..]));
        self.scope = kept
            .filter(|kept| width(kept) + function <= columns)
            .max_by_key(|kept| kept.len())
            .unwrap_or_else(|| innermost(&self.scope, columns.saturating_sub(function)));
        self.function = cut(&self.function, columns - width(&self.scope));
        self
    }
}

/// Returns the last component of a scope, cut to `columns`. If that would be too short to be useful, returns
/// only an ellipsis.
fn innermost(scope: &str, columns: usize) -> String {
    let separators = [':', '.', '/'];
    let inner = scope.trim_end_matches(separators);
    let separator = &scope[inner.len()..];
    let inner = &inner[inner.rfind(separators).map_or(0, |at| at + 1)..];
    match columns.checked_sub(separator.len()) {
        _ if columns == 0 || inner.is_empty() => String::new(),
        Some(room @ 6..) => cut(inner, room) + separator,
        _ => "…".to_owned(),
    }
}

/// A piece of a name at the top level, which is not itself inside brackets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum NamePiece<'a> {
    Word(&'a str),
    /// `::`
    Separator,
    /// Blanks.
    Blank,
    /// A bracket with its contents.
    Bracket(char, &'a str),
}

/// Splits a name into its pieces; `None` if its brackets are unbalanced.
fn pieces(name: &str) -> Option<Vec<NamePiece<'_>>> {
    let mut pieces = Vec::new();
    let mut open = Vec::new();
    // Start of the current word or bracket, and end of the word if it contains blanks.
    let (mut begin, mut word_end) = (0, 0);
    for (at, token, text) in name_tokens(name).chain([(name.len(), NameToken::Text, "")]) {
        if at < word_end {
            continue;
        }
        let (word, is_outside) = (&name[begin..at], open.is_empty());
        match token {
            NameToken::Open(closing) => open.push(closing),
            NameToken::Close(closing) if open.pop() != Some(closing) => return None,
            NameToken::Close(_) if open.is_empty() => {
                let bracket = &name[begin..=at];
                pieces.push(NamePiece::Bracket(bracket.chars().next()?, bracket));
                begin = at + 1;
            }
            _ => {}
        }
        if !is_outside {
            continue;
        }
        if word == "operator" && text == " " && name[at + 1..].starts_with(|c: char| c.is_alphabetic()) {
            // The names of conversion operators, `operator new` and `operator delete` extend to the
            // parameters.
            word_end = at + name[at..].find('(').unwrap_or(name.len() - at);
            continue;
        }
        let piece = match text {
            "::" => Some(NamePiece::Separator),
            " " => Some(NamePiece::Blank),
            ">" if word.ends_with(['-', '=']) => return None,
            "" => None,
            _ if token != NameToken::Text => None,
            _ => continue,
        };
        if !word.is_empty() {
            pieces.push(NamePiece::Word(word));
        }
        begin = if piece.is_some() { at + text.len() } else { at };
        pieces.extend(piece);
    }
    open.is_empty().then_some(pieces)
}

/// Whether a piece may follow the parameters.
fn is_behind_parameters(piece: &NamePiece<'_>) -> bool {
    match piece {
        NamePiece::Blank | NamePiece::Bracket('[', _) => true,
        NamePiece::Word(word) => {
            matches!(*word, "const" | "volatile" | "noexcept" | "&" | "&&" | "const&")
                || is_compiler_suffix(word)
        }
        _ => false,
    }
}

/// Whether the word is a suffix that compilers append to function names: `.constprop.0`, `.cold`,
/// `.llvm.123`.
fn is_compiler_suffix(word: &str) -> bool {
    const KNOWN: &[&str] =
        &["constprop", "isra", "part", "cold", "llvm", "lto_priv", "localalias", "clone", "plt", "resolver"];
    word.starts_with('.')
        && word[1..].split('.').all(|part| {
            KNOWN.contains(&part) || !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit())
        })
}

fn is_closure(piece: &NamePiece<'_>) -> bool {
    matches!(piece, NamePiece::Bracket('{', text)
        if ["{closure", "{{closure", "{lambda", "{async", "{{async"].iter().any(|begin| text.starts_with(begin)))
}

/// Whether the word is the hash that rustc appends to a name: `h` and 16 digits.
fn is_hash(word: &str) -> bool {
    word.len() == 17 && word.starts_with('h') && word[1..].bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// Parses Python's `py::QUALIFIED.NAME:FILE`, in which `<module>` and `<locals>` are names, not template
/// arguments.
fn of_python(name: &str) -> Option<DisplayName> {
    let (qualified, file) = name.strip_prefix("py::")?.split_once(':')?;
    let (scope, function) = qualified.split_at(qualified.rfind('.').map_or(0, |dot| dot + 1));
    Some(DisplayName {
        scope: format!("py::{scope}"),
        function: function.to_owned(),
        details: format!(":{file}"),
    })
}

/// Removes a version that the linker appends to a symbol: `memcpy@@GLIBC_2.14` becomes `memcpy`.
pub fn without_version(name: &str) -> &str {
    let version = name.find('@').filter(|at| {
        *at > 0 && name[*at..].trim_start_matches('@').starts_with(|c: char| c.is_ascii_uppercase())
    });
    version.map_or(name, |at| &name[..at])
}

fn take_apart(name: &str) -> Option<DisplayName> {
    if name.starts_with('[') || name.contains("+0x") {
        return None;
    }
    let name = without_version(name);
    let mut pieces = pieces(name)?;
    let mut details = String::new();
    // The last parentheses contain the parameters, unless they start a component.
    let last = pieces.iter().rposition(|piece| !is_behind_parameters(piece))?;
    if last > 0
        && let NamePiece::Bracket('(', text) = pieces[last]
        && !matches!(pieces[last - 1], NamePiece::Separator | NamePiece::Blank)
    {
        let text = folded(text);
        let behind = pieces.split_off(last);
        details.push_str(if text == "()" { "" } else { &text });
        for piece in &behind[1..] {
            if let NamePiece::Word(word) = piece
                && is_compiler_suffix(word)
            {
                details.push_str(word);
            }
        }
        // Removes the return type.
        let blank = pieces.iter().enumerate().rposition(|(at, piece)| {
            *piece == NamePiece::Blank
                && !matches!(pieces.get(at + 1), Some(NamePiece::Bracket('<', _)) | None)
        });
        pieces.drain(..blank.map_or(0, |blank| blank + 1));
    }
    pieces.retain(|piece| !matches!(piece, NamePiece::Bracket('[', text) if text.starts_with("[abi:")));
    let mut closure = "";
    let mut parts: Vec<&[NamePiece<'_>]> = pieces.split(|piece| *piece == NamePiece::Separator).collect();
    while let [.., before, last] = &parts[..] {
        let lambda = before.first().is_some_and(is_closure);
        if matches!(last, [NamePiece::Word(word)] if is_hash(word)) {
            parts.pop();
        } else if last.first().is_some_and(is_closure) || lambda && is_call(last) {
            closure = CLOSURE;
            details.clear();
            parts.pop();
        } else {
            break;
        }
    }
    let (own, above) = parts.split_last()?;
    let mut scope = String::new();
    for part in above.iter().filter(|part| !matches!(part, [NamePiece::Word("__cxx11" | "__1" | "_V2")])) {
        part.iter().for_each(|piece| show(piece, &mut scope));
        scope.push_str("::");
    }
    // In names of generated code, a blank precedes the file name.
    let is_space = |at: &usize| {
        own[*at] == NamePiece::Blank && !matches!(own.get(at + 1), Some(NamePiece::Bracket('<', _)))
    };
    let end = (1..own.len()).find(is_space).unwrap_or(own.len());
    // In Go, brackets may precede the function: encoding/json.(*Decoder).Decode.
    let is_own = |piece: &NamePiece<'_>| matches!(piece, NamePiece::Word(word) if *word != "@plt" && !is_compiler_suffix(word));
    let at = own[..end].iter().rposition(is_own);
    let Some((at, NamePiece::Word(word))) = at.map(|at| (at, own[at])) else {
        let mut function = String::new();
        own.iter().for_each(|piece| show(piece, &mut function));
        return (!function.is_empty()).then(|| DisplayName { scope, function, details: details + closure });
    };
    own[..at].iter().for_each(|piece| show(piece, &mut scope));
    let is_alone = above.is_empty();
    let outer = go_closure(word).filter(|_| is_alone);
    if outer.is_some() {
        closure = CLOSURE;
    }
    let (package, function, suffix) = dotted(outer.unwrap_or(word), is_alone);
    if function.is_empty() {
        return None;
    }
    scope.push_str(package);
    let mut behind = if suffix.starts_with(".llvm") { String::new() } else { suffix.to_owned() };
    for (at, piece) in own.iter().enumerate().skip(at + 1) {
        match piece {
            NamePiece::Bracket('<', _) => behind.push_str("<…>"),
            NamePiece::Blank if matches!(own.get(at + 1), Some(NamePiece::Bracket('<', _))) => {}
            piece => show(piece, &mut behind),
        }
    }
    Some(DisplayName { scope, function: function.to_owned(), details: behind + &details + closure })
}

/// Whether this part of the name is `operator()`, the only name that a lambda has.
fn is_call(part: &[NamePiece<'_>]) -> bool {
    matches!(part, [NamePiece::Word("operator()"), ..])
}

/// Splits the name of a function in a package or class (`runtime.mallocgc`). Returns the part up to the last
/// dot, the function's name, and the suffix added by a compiler or linker.
fn dotted(word: &str, has_package: bool) -> (&str, &str, &str) {
    let cold = word.match_indices('.').map(|(at, _)| at).find(|at| is_compiler_suffix(&word[*at..]));
    let end = cold.or(word.rfind("@plt")).filter(|at| *at > 0).unwrap_or(word.len());
    let (word, suffix) = word.split_at(end);
    let dot =
        word.rfind('.').filter(|at| has_package && at + 1 < word.len() && !word.starts_with("operator"));
    let (package, function) = word.split_at(dot.map_or(0, |dot| dot + 1));
    (package, function, suffix)
}

/// Returns the function that contains a Go closure, such as `main.run` for `main.run.func1.2`.
fn go_closure(word: &str) -> Option<&str> {
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let (outer, last) = word.rsplit_once('.')?;
    let named = |text: &str| text.strip_prefix("func").or(text.strip_prefix("gowrap")).is_some_and(is_number);
    if named(last) {
        return Some(go_closure(outer).unwrap_or(outer)).filter(|outer| !outer.is_empty());
    }
    let (_, before) = outer.rsplit_once('.')?;
    (is_number(last) && named(before)).then(|| go_closure(outer))?
}

/// Appends a piece to the displayed text, without its arguments.
fn show(piece: &NamePiece<'_>, out: &mut String) {
    match *piece {
        NamePiece::Word(word) => out.push_str(word),
        NamePiece::Separator => out.push_str("::"),
        NamePiece::Blank => out.push(' '),
        // `<T as Trait>` is a type, while brackets after a name contain its arguments.
        NamePiece::Bracket('<', text) if out.is_empty() => out.push_str(&folded(text)),
        NamePiece::Bracket('<', text) if text.starts_with("<impl ") => out.push_str(&folded(text)),
        NamePiece::Bracket('<', _) => {
            out.truncate(out.strip_suffix("::").map_or(out.len(), str::len));
            out.push_str("<…>");
        }
        NamePiece::Bracket('(', text) if text.starts_with("(*") || text == "(anonymous namespace)" => {
            out.push_str(text);
        }
        NamePiece::Bracket('(', "()") => out.push_str("()"),
        NamePiece::Bracket('(', _) => out.push_str("(…)"),
        NamePiece::Bracket('[', text) if text.starts_with("[go.") => out.push_str("[…]"),
        _ if is_closure(piece) => out.push('λ'),
        NamePiece::Bracket(_, text) => out.push_str(text),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn parts(name: &str) -> [String; 3] {
        let DisplayName { scope, function, details } = DisplayName::new(name);
        [scope, function, details]
    }

    #[test]
    fn names_in_all_languages_are_split() {
        for (name, scope, function, details) in [
            ("main", "", "main", ""),
            ("_start", "", "_start", ""),
            ("memcpy@plt", "", "memcpy", "@plt"),
            ("__libc_start_main@@GLIBC_2.34", "", "__libc_start_main", ""),
            ("memcpy@GLIBC_2.2.5", "", "memcpy", ""),
            ("compress.constprop.0", "", "compress", ".constprop.0"),
            ("shop::Basket::price() const", "shop::Basket::", "price", ""),
            (
                "std::_Rb_tree<int, std::pair<int const, A> >::_M_insert(std::pair<int const, A>&&)",
                "std::_Rb_tree<…>::",
                "_M_insert",
                "(std::pair<…>&&)",
            ),
            ("void std::__sort<int*, F>(int*, F)", "std::", "__sort", "<…>(int*, F)"),
            ("bool std::operator< <char, A>(S<char> const&, T)", "std::", "operator<", "<…>(S<…> const&, T)"),
            ("std::ostream& operator<<(std::ostream&, int)", "", "operator<<", "(std::ostream&, int)"),
            ("std::__cxx11::to_string[abi:cxx11](int)", "std::", "to_string", "(int)"),
            ("(anonymous namespace)::work(int)", "(anonymous namespace)::", "work", "(int)"),
            ("Shape::operator()(int) const", "Shape::", "operator()", "(int)"),
            ("Shape::operator bool() const", "Shape::", "operator bool", ""),
            ("operator new(unsigned long)", "", "operator new", "(unsigned long)"),
            ("main::{lambda(int, int)#1}::operator()(int, int) const", "", "main", " λ"),
            ("f(int) [clone .cold]", "", "f", "(int)"),
            ("Tree<int>::_M_copy<false, Node>.isra.0", "Tree<…>::", "_M_copy", "<…>.isra.0"),
            ("std::sort<int*>@plt", "std::", "sort", "<…>@plt"),
            ("core::fmt::write", "core::fmt::", "write", ""),
            ("core::fmt::write::h0123456789abcdef", "core::fmt::", "write", ""),
            ("pmc::tui::run::{{closure}}", "pmc::tui::", "run", " λ"),
            ("pmc::run::{closure#0}::{closure#1}", "pmc::", "run", " λ"),
            ("core::iter::Map::<I, F>::fold::{closure#0}", "core::iter::Map<…>::", "fold", " λ"),
            (
                "<alloc::vec::Vec<u8, A> as core::fmt::Write>::write_str",
                "<alloc::vec::Vec<…> as core::fmt::Write>::",
                "write_str",
                "",
            ),
            ("<dyn core::ops::Fn(u8) -> u8>::call", "<dyn core::ops::Fn(u8) -> u8>::", "call", ""),
            ("core::ptr::drop_in_place<alloc::vec::Vec<u8>>", "core::ptr::", "drop_in_place", "<…>"),
            ("py::<module>:/srv/shop.py", "py::", "<module>", ":/srv/shop.py"),
            ("py::Till.ring:<frozen till>", "py::Till.", "ring", ":<frozen till>"),
            ("py::day.<locals>.<lambda>:shop.py", "py::day.<locals>.", "<lambda>", ":shop.py"),
            ("runtime.mallocgc", "runtime.", "mallocgc", ""),
            ("encoding/json.(*Decoder).Decode", "encoding/json.(*Decoder).", "Decode", ""),
            ("github.com/a/b.Run.func1.2", "github.com/a/b.", "Run", " λ"),
            ("main.Map[go.shape.int]", "main.", "Map", "[…]"),
            ("Ljava/util/HashMap;::get", "Ljava/util/HashMap;::", "get", ""),
            (
                "java.lang.Object java.util.HashMap.get(java.lang.Object)",
                "java.util.HashMap.",
                "get",
                "(java.lang.Object)",
            ),
            ("LazyCompile:*run /app/main.js:3:5", "", "LazyCompile:*run", " /app/main.js:3:5"),
            ("git+0x4a2d0", "", "git+0x4a2d0", ""),
            ("[git .plt]", "", "[git .plt]", ""),
            ("torn<by<a compiler", "", "torn<by<a compiler", ""),
            ("evil\u{1b}[2Jname", "", "evil?[2Jname", ""),
            ("数据库::查询", "数据库::", "查询", ""),
            ("", "", "", ""),
        ] {
            assert_eq!(parts(name), [scope, function, details], "{name}");
        }
    }

    #[test]
    fn function_name_is_shortened_last() {
        let fit = |columns| DisplayName::new("shop::Basket<int>::price(Item const&)").fit(columns).text();
        assert_eq!(fit(40), "shop::Basket<…>::price(Item const&)");
        assert_eq!(fit(26), "shop::Basket<…>::price(It…");
        assert_eq!(fit(17), "…Basket<…>::price");
        assert_eq!(fit(14), "Basket…::price");
        assert_eq!(fit(8), "…price");
        assert_eq!(fit(5), "price");
        assert_eq!(fit(4), "pri…");
        assert_eq!(DisplayName::new("a::b::run::{{closure}}").fit(11).text(), "a::b::run λ");
        assert_eq!(DisplayName::new("a::b::run::{{closure}}").fit(10).text(), "a::b::run…");
    }

    proptest! {
        #[test]
        fn function_name_is_never_dropped(
            scopes in prop::collection::vec("[a-z][a-z_0-9]{0,9}(<[a-z]{1,5}(, [a-z]{1,4}<int> ?)?>)?", 0..4),
            function in "[a-zA-Z_][a-z_]{0,12}",
            arguments in "(<[a-z]{1,4}(, int)?>)?",
            parameters in "(\\(([a-z]{1,6}<[a-z]{1,3}> const&)?\\)( const)?)?",
            closures in 0usize..3,
            columns in 1usize..60,
        ) {
            let mut name: String = scopes.iter().map(|scope| format!("{scope}::")).collect();
            name += &format!("{function}{arguments}{parameters}");
            name += &"::{{closure}}".repeat(closures);
            let read = DisplayName::new(&name);
            prop_assert_eq!(&read.function, &function);
            let fitted = read.fit(columns);
            prop_assert!(width(&fitted.text()) <= columns);
            prop_assert!(columns < function.len() || fitted.function == function);
        }

        #[test]
        fn any_input_is_displayed(name in "\\PC{0,40}|[a-z:<>(){}. \\[\\]@\u{1b}-]{0,30}", columns in 1usize..60) {
            let read = DisplayName::new(&name);
            prop_assert!(name.is_empty() || !read.function.is_empty(), "{:?}", read);
            prop_assert!(clean(&name).contains(read.function.as_str()) || read.function.contains('…') || read.function.contains('λ'));
            prop_assert!(width(&read.fit(columns).text()) <= columns);
        }
    }
}
