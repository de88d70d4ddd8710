//! `pmc kallsyms`: prints the addresses of symbols in the running kernel.
//!
//! Passes the kernel's symbol list to the view.

use pmc_command::pager::PagedOutput;
use pmc_symbols::symbol::RunningKernel;
use pmc_sys::error::{Error, Exit, Result};

/// Runs the command. Succeeds if every name was found.
///
/// # Errors
/// Fails if the symbol list cannot be read or hides its addresses, or a write fails.
pub(super) fn run(names: &[String]) -> Result<Exit> {
    let found = RunningKernel::live().symbols(names).map_err(|error| {
        Error::new(format!("looking up {}: {error}", names.join(", ")))
            .why("kernel.kptr_restrict or kernel.perf_event_paranoid hides kernel addresses from this user")
            .try_this("run as root")
    })?;
    let mut out = PagedOutput::open();
    pmc_view::listings::kernel_symbols(&mut out, names, &found)
        .and_then(|()| out.finish())
        .map_err(|error| Error::output("the symbols", error))?;
    let all = names.iter().all(|name| found.iter().any(|symbol| symbol.name == *name));
    Ok(if all { Exit::Done } else { Exit::Failure })
}
