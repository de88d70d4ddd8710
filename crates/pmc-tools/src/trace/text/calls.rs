//! One line per system call.
//!
//! ```text
//!      0.123 ( 0.005 ms): cat/1234 openat(AT_FDCWD, ~"/etc/passwd", O_RDONLY) = 3<~/etc/passwd>
//! ```
//! The line starts as in `perf trace`, with the milliseconds since the first call, the duration, and the
//! thread. The call itself is in strace's notation.

use std::io::{self, Write};

use crate::trace::descriptors::CallDescriptors;
use crate::trace::summary::CallKey;
use crate::trace::tracer::{CallResult, TracedCall};
use pmc_analysis::profile::script::{AddressFunction, AddressFunctions};
use pmc_text::text::clean;
use pmc_text::units::milliseconds;

use super::{arguments, call_name};

/// The part of a call that a line shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::trace) enum CallPart {
    /// The whole call.
    Whole,
    /// The start of a call that has not returned yet: the arguments before the first one whose memory the
    /// call writes.
    Begin,
    /// The remaining arguments, and the result.
    End,
}

/// Writes a call, or a part of it. Times are relative to `start`.
pub(in crate::trace) fn write_call(
    out: &mut dyn Write,
    call: &TracedCall,
    part: CallPart,
    descriptors: &CallDescriptors,
    start: u64,
    functions: Option<&AddressFunctions>,
) -> io::Result<()> {
    let entered = &call.entered;
    let time = if part == CallPart::End { call.end } else { entered.begin };
    write!(out, "{:10.3} ", milliseconds(time.saturating_sub(start)))?;
    match call.result {
        CallResult::Unfinished => write!(out, "(         ): ")?,
        _ => write!(out, "({:6.3} ms): ", milliseconds(call.duration()))?,
    }
    let name = call_name(CallKey { abi: entered.abi, number: entered.number });
    write!(out, "{}/{} ", clean(&call.comm), entered.thread.tid)?;
    let arguments = arguments::arguments(call, descriptors);
    let first_output = arguments.iter().position(|shown| shown.is_output).unwrap_or(arguments.len());
    let shown = match part {
        CallPart::Whole => 0..arguments.len(),
        CallPart::Begin => 0..first_output,
        CallPart::End => first_output..arguments.len(),
    };
    match part {
        CallPart::End => write!(out, "<... {name} resumed>")?,
        _ => write!(out, "{name}(")?,
    }
    for (at, argument) in arguments.iter().enumerate().skip(shown.start).take(shown.len()) {
        if argument.has_label {
            write!(out, "{}=", argument.name)?;
        }
        write!(out, "{}{}", argument.value, if at + 1 < arguments.len() { ", " } else { "" })?;
    }
    if part == CallPart::Begin {
        return writeln!(out, " <unfinished ...>");
    }
    let loss = if call.has_loss { " [records lost]" } else { "" };
    writeln!(out, ") = {}{loss}", arguments::result(call, descriptors))?;
    for function in stack(call, functions) {
        let dso = function.dso.as_deref().map_or("[unknown]".into(), clean);
        match &function.symbol {
            Some(symbol) => writeln!(out, "{INDENT}{} ({dso})", clean(symbol))?,
            None => writeln!(out, "{INDENT}[{:#x}] ({dso})", function.offset)?,
        }
    }
    Ok(())
}

/// Indentation of the functions in a stack, as in `perf trace`.
const INDENT: &str = "                                       ";

/// Returns the functions in a call's stack, innermost first. Omits the kernel functions that handle the
/// event.
pub(in crate::trace) fn stack<'a>(
    call: &'a TracedCall,
    functions: Option<&'a AddressFunctions>,
) -> impl Iterator<Item = &'a AddressFunction> {
    let all = functions
        .into_iter()
        .flat_map(|functions| call.entered.stack.iter().flat_map(|&at| functions.at(at)));
    all.skip_while(|function| function.dso.as_deref() == Some("[kernel.kallsyms]"))
}
