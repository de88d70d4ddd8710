//! What standard output is: a file or a connection may have taken its place, and then messages name that.
//!
//! Receives the file and its name; leaves what is written there to others.

use std::io;
use std::os::fd::AsFd;
use std::sync::Mutex;

static NAME: Mutex<Option<String>> = Mutex::new(None);

/// Puts a file that is called so in its place.
///
/// # Errors
/// What the kernel says; standard output is then what it was.
pub fn replace(file: impl AsFd, name: &str) -> io::Result<()> {
    rustix::stdio::dup2_stdout(file)?;
    if let Ok(mut own) = NAME.lock() {
        *own = Some(name.to_owned());
    }
    Ok(())
}

/// What to call it in a message.
pub fn name() -> String {
    let name = NAME.lock().map_or(None, |name| name.clone());
    name.unwrap_or_else(|| "standard output".to_owned())
}
