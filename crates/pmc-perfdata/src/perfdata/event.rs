//! The events of a recording: attributes, instance ids and names.

use pmc_sys::abi::attr::{Flag, kind};
use pmc_sys::abi::{Attr, generic};

/// Name of the event whose samples represent waits for something other than a CPU. A sample's period is the
/// waiting time in nanoseconds, its time is the end of the wait, and its stack is the stack at the start of
/// the wait. perf's event for off-CPU time has the same name.
pub const BLOCKED_EVENT: &str = "offcpu-time";
/// Name of the event whose samples represent waits for a CPU; see [`BLOCKED_EVENT`].
pub const RUNNABLE_EVENT: &str = "offcpu-runnable";

/// One event of a recording.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct RecordedEvent {
    /// The attributes passed to the kernel.
    pub attr: Attr,
    /// Ids of the event's instances, one per CPU or thread.
    pub ids: Vec<u64>,
    /// The recorded name: untrusted text that must be cleaned before it is printed.
    pub name: Option<String>,
}

impl RecordedEvent {
    /// Returns the recorded name, or a name derived from type and config.
    pub fn name(&self) -> String {
        self.name.clone().unwrap_or_else(|| name_of(&self.attr))
    }
}

/// Returns perf's name for the attributes, with modifiers.
fn name_of(attr: &Attr) -> String {
    let (kind, config) = (attr.kind(), attr.config());
    let plain = match (generic::name_of(kind, config), kind) {
        (Some(name), _) => name.to_owned(),
        (None, kind::HW_CACHE) => match generic::cache_events().find(|(_, known, _)| *known == config) {
            Some((name, ..)) => name,
            None => format!("cache 0x{config:x}"),
        },
        (None, kind::RAW) => format!("raw 0x{config:x}"),
        (None, kind::BREAKPOINT) => {
            let accesses = [(1, 'r'), (2, 'w'), (4, 'x')].into_iter();
            let accesses = accesses.filter(|(bit, _)| attr.bp_type() & bit != 0).map(|(_, letter)| letter);
            format!("mem:0x{:x}:{}", attr.config1(), accesses.collect::<String>())
        }
        (None, kind::TRACEPOINT) => return format!("tracepoint {config}"),
        (None, kind) => return format!("type {kind} config 0x{config:x}"),
    };
    format!("{plain}{}", modifiers(attr))
}

/// Returns the event's modifiers, which perf derives from the attributes: `:u`, `:kpp`, `:HG`.
fn modifiers(attr: &Attr) -> String {
    let letters = |flags: &[(Flag, char)]| -> String {
        flags.iter().filter(|(flag, _)| !attr.get(*flag)).map(|(_, letter)| *letter).collect()
    };
    let levels = [(Flag::ExcludeKernel, 'k'), (Flag::ExcludeUser, 'u'), (Flag::ExcludeHv, 'h')];
    let has_levels = levels.iter().any(|(flag, _)| attr.get(*flag));
    let mut text = if has_levels { letters(&levels) } else { String::new() };
    text += &"p".repeat(attr.precise_ip().into());
    // perf excludes guests by default if there is no other modifier.
    let usual = !text.is_empty() || has_levels;
    if attr.get(Flag::ExcludeHost) || attr.get(Flag::ExcludeGuest) == usual {
        text += &letters(&[(Flag::ExcludeHost, 'H'), (Flag::ExcludeGuest, 'G')]);
    }
    if text.is_empty() { text } else { format!(":{text}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_match_perf_with_requested_modifiers() {
        let named = |kind, config, change: &dyn Fn(&mut Attr)| {
            let mut attr = Attr::new(kind, config);
            attr.set(Flag::ExcludeGuest, true);
            change(&mut attr);
            RecordedEvent { attr, ..RecordedEvent::default() }.name()
        };
        let without =
            |flags: &'static [Flag]| move |attr: &mut Attr| flags.iter().for_each(|f| attr.set(*f, true));
        assert_eq!(named(kind::HARDWARE, 0, &|_| {}), "cycles");
        // Output of perf 6.1 `evlist` for a file without names.
        assert_eq!(named(kind::HARDWARE, 0, &|attr| attr.set(Flag::ExcludeGuest, false)), "cycles:HG");
        let user = without(&[Flag::ExcludeKernel, Flag::ExcludeHv]);
        let of_user = |attr: &mut Attr| {
            user(attr);
            attr.set(Flag::ExcludeGuest, false);
        };
        assert_eq!(named(kind::HARDWARE, 0, &of_user), "cycles:u");
        assert_eq!(named(kind::SOFTWARE, 0, &user), "cpu-clock:uH");
        let precise = |attr: &mut Attr| {
            attr.set_precise_ip(2);
            attr.set(Flag::ExcludeGuest, false);
        };
        assert_eq!(named(kind::HARDWARE, 1, &precise), "instructions:pp");
        assert_eq!(named(kind::HW_CACHE, 1 << 16, &|_| {}), "L1-dcache-load-misses");
        assert_eq!(named(kind::RAW, 0x1c2, &|_| {}), "raw 0x1c2");
        let address = |attr: &mut Attr| attr.set_breakpoint(3, 0x1000, 8);
        assert_eq!(named(kind::BREAKPOINT, 0, &address), "mem:0x1000:rw");
        assert_eq!(named(kind::TRACEPOINT, 314, &of_user), "tracepoint 314");
    }
}
