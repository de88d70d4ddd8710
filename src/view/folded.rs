//! Folded stacks: one line a stack, as programs that draw flame graphs read it.
//!
//! ```text
//!   main;parse;read_line 17        outermost caller first, then the number of samples
//! ```

use std::io::{self, Write};

use crate::profile::sampled::Profile;
use crate::text::clean;

/// Writes an event's stacks. Its tree must be in caller order, with all branches.
///
/// # Errors
/// Those of `out`.
pub fn write(out: &mut dyn Write, profile: &Profile, event: usize) -> io::Result<()> {
    let Some(event) = profile.events.get(event) else { return Ok(()) };
    let Some(tree) = &event.tree else {
        // Without call chains each function is a stack of its own.
        for row in event.rows.iter().filter(|row| row.own.samples > 0) {
            let words: Vec<String> =
                row.cells.iter().map(|cell| frame(&super::report::cell_words(profile, cell))).collect();
            writeln!(out, "{} {}", words.join(";"), row.own.samples)?;
        }
        return Ok(());
    };
    let mut path = String::new();
    // Node, and how much of the path is its callers'.
    let mut open: Vec<(u32, usize)> = tree.roots.iter().rev().map(|root| (*root, 0)).collect();
    while let Some((number, above)) = open.pop() {
        let node = &tree.nodes[number as usize];
        path.truncate(above);
        if above > 0 {
            path.push(';');
        }
        path.push_str(&frame(profile.texts.get(node.symbol)));
        if node.own.samples > 0 {
            writeln!(out, "{path} {}", node.own.samples)?;
        }
        open.extend(node.children.iter().rev().map(|child| (*child, path.len())));
    }
    Ok(())
}

/// A name that cannot be taken for two.
fn frame(name: &str) -> String {
    clean(name).replace(';', ":")
}
