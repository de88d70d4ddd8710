//! Aggregated stacks of DTrace (`@[ustack()] = count()`), as it prints them.
//!
//! ```text
//!                 libc.so.1`__read+0x15        module`function+offset, innermost first
//!                 app`main+0x20
//!                  12                          the number of samples ends a stack
//! ```

use super::error::ImportError;
use super::profile::{ImportId, ImportedCall, ImportedProfile, ImportedSample};
use super::text::{head_lines, hex, is_digits, lines, module_and_function, rust_name, without_offset};

pub(super) fn is_format(head: &[u8]) -> bool {
    let mut has_frame = false;
    for line in head_lines(head).filter(|line| !is_header(line) && !line.trim().is_empty()) {
        if !line.starts_with([' ', '\t']) {
            return false;
        }
        has_frame |= line.contains('`');
        if is_digits(line.trim()) {
            return has_frame;
        }
    }
    false
}

/// Whether the line is the header of DTrace's output, or one of its messages about probes.
fn is_header(line: &str) -> bool {
    let words: Vec<&str> = line.split_ascii_whitespace().collect();
    let is_probe =
        words.len() == 3 && words[..2].iter().all(|word| is_digits(word)) && words[2].contains(':');
    words == ["CPU", "ID", "FUNCTION:NAME"] || is_probe && !line.contains('`') || line.starts_with("dtrace:")
}

pub(super) fn read(bytes: &[u8], mut profile: ImportedProfile) -> Result<ImportedProfile, ImportError> {
    let event = profile.event("samples", "")?;
    let thread = profile.named_thread("")?;
    let mut locations: Vec<ImportId> = Vec::new();
    let mut begun = 0;
    for (number, line) in lines(bytes) {
        let text = line.trim();
        if text.is_empty() || is_header(&line) {
            continue;
        }
        if is_digits(text) {
            let Ok(count) = text.parse::<u64>() else {
                profile.lose(ImportError::line(number, "the number of samples is too large"))?;
                locations.clear();
                continue;
            };
            if locations.is_empty() {
                profile.skip("this number of samples has no stack", |what| ImportError::line(number, what));
            } else if count > 0 {
                let stack = profile.stack(&locations)?;
                let (samples, value) = (count, count);
                profile.add(ImportedSample {
                    event,
                    stack,
                    thread,
                    samples,
                    value,
                    ..ImportedSample::default()
                })?;
            }
            locations.clear();
            continue;
        }
        if !line.starts_with([' ', '\t']) {
            profile.lose(ImportError::line(number, "a frame of a stack must be indented"))?;
            continue;
        }
        if locations.is_empty() {
            begun = number;
        }
        let location = location(text, &mut profile);
        locations.push(location);
    }
    if !locations.is_empty() {
        let what = "the stack that begins here does not end with a number of samples";
        profile.lose(ImportError::line(begun, what))?;
    }
    Ok(profile)
}

/// Parses `module`function+0x12`. An address, with or without a module, is code without a name.
fn location(text: &str, profile: &mut ImportedProfile) -> ImportId {
    let (module, name) = module_and_function(text).unwrap_or_else(|| ("", without_offset(text)));
    let is_address = name.starts_with("0x") && hex(name).is_some();
    let call = ImportedCall {
        name: if is_address { 0 } else { profile.text(&rust_name(name)) },
        module: profile.text(module),
        address: if is_address { hex(name).unwrap_or(0) } else { 0 },
        ..ImportedCall::default()
    };
    profile.plain_location(call)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stacks_end_with_their_count() {
        let text = "CPU     ID                    FUNCTION:NAME\n\n\n              libc.so.1`__read+0x15\n              \
                    app`std::f<int>(char)+0x20\n              0xfffe12\n               12\n\n\n       app`main\n  3\n";
        assert!(is_format(text.as_bytes()));
        let profile = read(text.as_bytes(), ImportedProfile::new()).unwrap();
        let counts: Vec<(u64, usize)> = profile
            .samples
            .iter()
            .map(|sample| (sample.samples, profile.stacks[sample.stack as usize].len()))
            .collect();
        assert_eq!(counts, [(12, 3), (3, 1)]);
        let nameless = read(b"  unix`0xfffffffffb800c91\n 3\n", ImportedProfile::new()).unwrap();
        let call = nameless.calls[0];
        assert_eq!((call.name, call.address), (0, 0xffff_ffff_fb80_0c91));
        assert_eq!(&**nameless.get_text(call.module), "unix");
        let cut = read(b"  a`b\n 3\n\n  a`c\n", ImportedProfile::new()).unwrap();
        let lost = cut.lost().unwrap().to_string();
        assert!(cut.samples.len() == 1 && lost.starts_with("line 4: "), "{lost}");
    }
}
