//! The binary: passes the arguments to the library and exits with the status that the library returns. This
//! is the only place where the process ends, except after a panic.

use std::process::ExitCode;

use pmc_sys::error::Exit;
use pmc_sys::sys::memory::{self, LimitedAllocator};

#[global_allocator]
static ALLOCATOR: LimitedAllocator = LimitedAllocator;

fn main() -> ExitCode {
    memory::fit_limit();
    pmc_sys::sys::descriptor::refuse_closed_stdout();
    pmc_sys::sys::signal::handle_file_size_limit();
    let exit = pmc::command::main();
    if let Exit::Interrupted(signal) = exit {
        pmc_sys::sys::signal::die_by(signal);
    }
    exit.into()
}
