//! Standard output: a file or a connection may replace it, and messages then use its name.
//!
//! Receives the file and its name. Does not write any output itself.

use std::io;
use std::os::fd::AsFd;
use std::sync::Mutex;

static NAME: Mutex<Option<String>> = Mutex::new(None);

/// Replaces standard output with this file, and uses `name` in messages.
///
/// # Errors
/// The kernel's error; standard output is then unchanged.
pub fn replace(file: impl AsFd, name: &str) -> io::Result<()> {
    rustix::stdio::dup2_stdout(file)?;
    if let Ok(mut own) = NAME.lock() {
        *own = Some(name.to_owned());
    }
    Ok(())
}

/// Returns the name of standard output for messages.
pub fn name() -> String {
    let name = NAME.lock().map_or(None, |name| name.clone());
    name.unwrap_or_else(|| "standard output".to_owned())
}
