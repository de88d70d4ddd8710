//! One line per system call, as text or JSON.
//!
//! ```text
//!      0.123 ( 0.005 ms): cat/1234 openat(AT_FDCWD, ~"/etc/passwd", O_RDONLY) = 3<~/etc/passwd>
//! ```
//! The line starts as in `perf trace`, with the milliseconds since the first call, the duration, and the
//! thread. The call itself is in strace's notation.

use std::io::{self, Write};

use crate::trace::{CallDescriptors, CallKey, CallResult, TracedCall};
use pmc_analysis::profile::script::{AddressFunction, AddressFunctions};
use pmc_sys::error::errno_words;
use pmc_text::text::{clean, write_json};
use pmc_text::units::milliseconds;
use serde_json::{Map, json};

use super::{arguments, call_name};

/// The part of a call that a line shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CallPart {
    /// The whole call.
    Whole,
    /// The start of a call that has not returned yet: the arguments before the first one whose memory the
    /// call writes.
    Begin,
    /// The remaining arguments, and the result.
    End,
}

/// Writes a call, or a part of it. Times are relative to `start`.
///
/// # Errors
/// Fails if writing to `out` fails.
pub fn write_call(
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
fn stack<'a>(
    call: &'a TracedCall,
    functions: Option<&'a AddressFunctions>,
) -> impl Iterator<Item = &'a AddressFunction> {
    let all = functions
        .into_iter()
        .flat_map(|functions| call.entered.stack.iter().flat_map(|&at| functions.at(at)));
    all.skip_while(|function| function.dso.as_deref() == Some("[kernel.kallsyms]"))
}

/// Writes the number of calls that `--limit` cut off.
///
/// # Errors
/// Fails if writing to `out` fails.
pub fn write_omitted_json(out: &mut dyn Write, calls: u64) -> io::Result<()> {
    writeln!(out, "{}", json!({"omitted": {"calls": calls}}))
}

/// Writes a call as a JSON object on one line. docs/trace.md explains the fields.
///
/// # Errors
/// Fails if writing to `out` fails.
pub fn write_call_json(
    out: &mut dyn Write,
    call: &TracedCall,
    descriptors: &CallDescriptors,
    functions: Option<&AddressFunctions>,
) -> io::Result<()> {
    let entered = &call.entered;
    let mut named = Map::new();
    for (at, argument) in arguments::arguments(call, descriptors).into_iter().enumerate() {
        let name = if argument.name.is_empty() { format!("arg{at}") } else { argument.name.to_owned() };
        named.insert(name, argument.value.into());
    }
    let (result, error) = match call.result {
        CallResult::Value(value) => (Some(value), None),
        CallResult::Error(errno) => (Some(-1), Some(errno_words(errno).0)),
        CallResult::Unfinished => (None, None),
    };
    let duration = (call.result != CallResult::Unfinished).then(|| call.duration());
    let frame = |function: &AddressFunction| json!({"symbol": function.symbol.as_deref(), "dso": function.dso.as_deref(), "offset": function.offset});
    let stack = functions.map(|_| stack(call, functions).map(frame).collect::<Vec<_>>());
    let object = json!({
        "time_ns": entered.begin, "duration_ns": duration, "comm": &*call.comm, "pid": entered.thread.pid,
        "tid": entered.thread.tid, "name": entered.call().map(|known| known.name), "number": entered.number,
        "is_32_bit": entered.abi.is_32_bit(), "args": named, "words": entered.arguments, "result": result,
        "error": error, "text": arguments::result(call, descriptors), "has_loss": call.has_loss,
        "stack": stack,
    });
    write_json(out, &object)?;
    writeln!(out)
}
