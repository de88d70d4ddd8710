//! Reasons why a location or variable cannot be probed, with remedies.

use crate::hint::Hint;
use pmc_sys::error::Error;
use pmc_text::text;

use super::locations::LocationError;

/// The reason why a location or variable cannot be probed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ProbeError {
    /// The file cannot be read.
    #[error("cannot read the symbols of {path}: {why}")]
    Unreadable {
        /// The file.
        path: String,
        /// The kernel's error, or the reason why the file is invalid.
        why: String,
    },
    /// The request takes too much work for a file of this size.
    #[error(
        "cannot search the debug information of {path}: very many of its entries refer to the same lists or \
         line programs"
    )]
    TooMuchWork {
        /// The file.
        path: String,
    },
    /// The request requires debug information.
    #[error("{path} has no debug information, which {purpose} requires")]
    NoDebugInformation {
        /// The file.
        path: String,
        /// The operation that requires it.
        purpose: String,
        /// Where pmc searched for it, and which package contains it.
        remedy: Option<Hint>,
    },
    /// No function has this name.
    #[error("{path} has no function `{name}`")]
    NoFunction {
        /// The file.
        path: String,
        /// The name.
        name: String,
        /// The names of all functions, for suggestions.
        near: Vec<String>,
        /// Whether the file has only the symbols for dynamic linking.
        is_stripped: bool,
        /// Whether the file imports a function of this name from a library.
        is_imported: bool,
        /// The package or the file that contains the names of a stripped file.
        remedy: Option<Hint>,
    },
    /// The name lacks its first components, and several functions end in it.
    #[error("{path} has several functions whose names end in `{name}`")]
    AmbiguousFunction {
        /// The file.
        path: String,
        /// The name.
        name: String,
        /// The whole names, sorted.
        found: Vec<String>,
    },
    /// The function exists only as inlined copies, which have no return instruction.
    #[error("`{name}` is inlined at {count} places and has no separate code, so its return cannot be probed")]
    InlinedReturn {
        /// The function.
        name: String,
        /// Number of inlined copies.
        count: usize,
    },
    /// The offset is outside of the function.
    #[error("`{name}` has only {size:#x} bytes")]
    OffsetBeyond {
        /// The function.
        name: String,
        /// Its size.
        size: u64,
    },
    /// The address is not in the file's code.
    #[error("{path} has no code at address {address:#x}")]
    NoCode {
        /// The file.
        path: String,
        /// The address.
        address: u64,
    },
    /// No code belongs to this line.
    #[error("no code belongs to {place}")]
    NoLine {
        /// The line, as typed.
        place: String,
        /// The next line with code, as the user would type it.
        next: Option<String>,
    },
    /// The source file is unknown.
    #[error("{path} has no source file named {file}")]
    NoSourceFile {
        /// The program.
        path: String,
        /// The source file.
        file: String,
        /// The known source files.
        near: Vec<String>,
    },
    /// The instruction at which this line begins also belongs to another line.
    #[error("the code for {place} begins at an instruction that also belongs to another line")]
    SharedLine {
        /// The line, as typed.
        place: String,
        /// The other line, as the user would type it.
        instead: String,
    },
    /// The expression is invalid.
    #[error("`{expression}` is not a valid variable: error at `{rest}`")]
    Expression {
        /// The expression.
        expression: String,
        /// The part of the expression from the first error on.
        rest: String,
    },
    /// No variable has this name.
    #[error("no variable `{name}` is in scope here")]
    NoVariable {
        /// The name.
        name: String,
        /// The variables, for suggestions.
        near: Vec<String>,
    },
    /// The variable exists, but cannot be read.
    #[error("cannot read `{name}` here: {reason}")]
    Location {
        /// The variable.
        name: String,
        /// The reason.
        reason: LocationError,
    },
    /// A part of the variable cannot be read.
    #[error("cannot read `{expression}`: {why}")]
    Access {
        /// The expression.
        expression: String,
        /// The reason.
        why: String,
    },
}

impl ProbeError {
    /// Whether the variable exists but has no readable location at this address.
    pub fn is_location(&self) -> bool {
        matches!(self, Self::Location { .. })
    }
}

/// Maximum number of suggestions.
const MOST_SUGGESTIONS: usize = 3;

impl From<ProbeError> for Error {
    fn from(error: ProbeError) -> Self {
        let result = Self::new(text::clean(&error.to_string()).into_owned());
        let suggest = |result: Self, name: &str, near: &[String]| {
            let near = text::nearest(name, near.iter().map(String::as_str), MOST_SUGGESTIONS);
            near.into_iter().fold(result, |result, name| result.try_this(text::clean(name).into_owned()))
        };
        match &error {
            ProbeError::NoDebugInformation { remedy, .. } => {
                remedy.iter().cloned().fold(result, Self::try_this)
            }
            ProbeError::NoFunction { name, near, is_stripped, is_imported, remedy, .. } => {
                let result = suggest(result, name, near);
                let result = remedy.iter().cloned().fold(result, Self::try_this);
                let result = match is_stripped {
                    true => result.why("the file is stripped: it has only the names of exported functions"),
                    false => result,
                };
                match is_imported {
                    true => result.why("it is in a library").try_this(Hint::ProbeLibrary),
                    false => result.try_this(Hint::ListFunctions),
                }
            }
            ProbeError::AmbiguousFunction { found, .. } => found
                .iter()
                .take(MOST_SUGGESTIONS)
                .fold(result, |result, name| result.try_this(text::clean(name).into_owned())),
            ProbeError::InlinedReturn { name, .. } => result.try_this(format!("{name}, without %return")),
            ProbeError::NoLine { next, .. } => {
                let result = next.iter().fold(result, |result, next| result.try_this(next.as_str()));
                result.try_this(Hint::LinesWithCode)
            }
            ProbeError::SharedLine { instead, .. } => result.try_this(instead.as_str()),
            ProbeError::NoSourceFile { file, near, .. } => suggest(result, file, near),
            ProbeError::Expression { .. } => {
                result.try_this("NAME, NAME->MEMBER, NAME.MEMBER, NAME[N] or *NAME, without spaces")
            }
            ProbeError::NoVariable { name, near } => {
                suggest(result, name, near).try_this(Hint::VariablesInScope)
            }
            ProbeError::Location { .. } => {
                result.try_this(Hint::VariablesOrOtherLine)
            }
            ProbeError::TooMuchWork { .. } => result
                .why("pmc limits the work per file; entries of a usual file rarely share a list or a line program")
                .try_this(Hint::ListFunctionsOfTable),
            ProbeError::Unreadable { .. }
            | ProbeError::OffsetBeyond { .. }
            | ProbeError::NoCode { .. }
            | ProbeError::Access { .. } => result,
        }
    }
}
