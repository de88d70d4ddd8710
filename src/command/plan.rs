//! What options mean that several commands share.

use crate::cli::symbol_files::SymbolFiles;
use crate::symbol::Options;

/// What was typed about files with symbols, over what the environment says. `live`: the recording was made on this machine.
pub(super) fn symbol_options(typed: &SymbolFiles, live: bool) -> Options {
    let environment = Options::from_environment();
    Options {
        symfs: typed.symfs.clone(),
        kallsyms: typed.kallsyms.clone(),
        vmlinux: typed.vmlinux.clone(),
        debuginfod: typed.debuginfod,
        cache: environment.cache.clone().filter(|_| !typed.no_cache),
        live,
        ..environment
    }
}
