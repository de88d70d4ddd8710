//! Control groups to which perf events can be bound.
//!
//! In cgroup v1, the `perf_event` controller has a separate hierarchy. In v2, or if v1 does not use the
//! controller, every cgroup of the unified hierarchy can be counted. To bind an event to a cgroup, its
//! directory must be opened; this module finds the directory.

use std::path::PathBuf;

use super::Host;

impl Host {
    /// Mount point of the hierarchy whose cgroups can be measured; `None` if it is not mounted.
    pub(crate) fn cgroup_mount(&self) -> Option<PathBuf> {
        let mounts = self.text("/proc/self/mounts").or_else(|| self.text("/proc/mounts"))?;
        let mut unified = None;
        for line in mounts.lines() {
            let mut fields = line.split(' ');
            let (Some(_), Some(at), Some(kind), Some(options)) =
                (fields.next(), fields.next(), fields.next(), fields.next())
            else {
                continue;
            };
            let at = unescape(at);
            match kind {
                "cgroup" if options.split(',').any(|o| o == "perf_event") => return Some(at.into()),
                "cgroup2" if unified.is_none() => unified = Some(at.into()),
                _ => {}
            }
        }
        unified
    }

    /// The directory of a cgroup, given by its path below the mount point; a leading `/` is allowed.
    pub fn cgroup(&self, name: &str) -> Option<PathBuf> {
        Some(self.path(self.cgroup_mount()?.join(name.trim_start_matches('/'))))
    }
}

/// Decodes escaped characters in a mount point, such as `\040` for a space (`proc_pid_mounts(5)`).
fn unescape(field: &str) -> String {
    let mut out = String::with_capacity(field.len());
    let mut rest = field;
    while let Some(at) = rest.find('\\') {
        out.push_str(&rest[..at]);
        let code = rest.get(at + 1..at + 4).and_then(|octal| u8::from_str_radix(octal, 8).ok());
        match code {
            Some(code) => {
                out.push(code as char);
                rest = &rest[at + 4..];
            }
            None => {
                out.push('\\');
                rest = &rest[at + 1..];
            }
        }
    }
    out + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn octal_escapes_are_decoded() {
        assert_eq!(unescape(r"/a\040b\134"), r"/a b\");
        assert_eq!(unescape(r"/a\x"), r"/a\x");
    }
}
