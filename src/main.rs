//! The binary: hands the arguments to the library and leaves with the status that it decided.
//! This is the only place where the process exits.

fn main() -> std::process::ExitCode {
    pmc::command::main()
}
