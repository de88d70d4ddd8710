//! Programs that pmc runs for its own purposes, such as `tar` and `debuginfod-find`.
//!
//! They are searched for in `PATH` without the current directory, which may belong to another user. The
//! measured command is searched for as in a shell.

use std::env;
use std::ffi::{OsStr, OsString};
use std::path::Path;
use std::process::Command;

/// Prepares to run a program, which is found in the absolute folders of `PATH`.
pub fn helper(program: &str) -> Command {
    let mut command = Command::new(program);
    command.env("PATH", absolute(&env::var_os("PATH").unwrap_or_default()));
    command
}

/// Returns the absolute folders of a `PATH`. The C library reads an empty `PATH` as the current directory.
fn absolute(path: &OsStr) -> OsString {
    let folders = env::split_paths(path).filter(|folder| folder.is_absolute());
    let usual = || ["/usr/bin", "/bin"].map(Path::new);
    match env::join_paths(folders) {
        Ok(path) if !path.is_empty() => path,
        _ => env::join_paths(usual()).unwrap_or_default(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn current_directory_is_not_searched() {
        let of = |path: &str| absolute(path.as_ref()).into_string().unwrap();
        assert_eq!(of(":/usr/bin:.:bin:/opt/x:"), "/usr/bin:/opt/x");
        assert_eq!((of(""), of(".")), ("/usr/bin:/bin".to_owned(), "/usr/bin:/bin".to_owned()));
    }
}
