//! Replaces standard output with a file or a connection, whose name is then used in messages.
//!
//! Does not write any output itself.

use std::io;
use std::os::fd::AsFd;
use std::sync::Mutex;

static NAME: Mutex<Option<String>> = Mutex::new(None);

/// Replaces standard output with this file, which messages refer to as `name`.
///
/// # Errors
/// Returns the kernel's error. In this case, standard output is unchanged.
pub fn replace(file: impl AsFd, name: &str) -> io::Result<()> {
    rustix::stdio::dup2_stdout(file)?;
    if let Ok(mut own) = NAME.lock() {
        *own = Some(name.to_owned());
    }
    Ok(())
}

/// Returns the name of standard output to use in messages.
pub fn name() -> String {
    let name = NAME.lock().map_or(None, |name| name.clone());
    name.unwrap_or_else(|| "standard output".to_owned())
}
