//! What the `#literals` and the asking functions of expressions stand for on a machine.
//!
//! Plain values and questions, which a command fills in from the host; decides nothing.

/// What expressions ask about the machine and the measurement.
#[derive(Clone, Copy)]
pub struct Environment<'a> {
    /// The values of literals.
    pub literals: Literals,
    /// Whether there is an event of this text, as `-e` takes it.
    pub has_event: &'a dyn Fn(&str) -> bool,
    /// How many PMUs count this event; `None` where there is no such event.
    pub source_count: &'a dyn Fn(&str) -> Option<f64>,
    /// The cycles from one instruction's retirement to the next for this event (`NAME` of `NAME:R`), as the
    /// vendor measured them on average. Where it is `None`, `NAME:R >= 0` does not hold.
    pub retire_latency: &'a dyn Fn(&str) -> Option<f64>,
    /// Whether this is a CPU of this id (`GenuineIntel-6-55-7`, or a pattern).
    pub is_cpuid: &'a dyn Fn(&str) -> bool,
}

impl Environment<'_> {
    /// Knows nothing.
    pub const UNKNOWN: Self = Self {
        literals: Literals::UNKNOWN,
        has_event: &|_| false,
        source_count: &|_| None,
        retire_latency: &|_| None,
        is_cpuid: &|_| false,
    };
}

macro_rules! literals {
    ($($(#[$doc:meta])+ $name:ident,)+) => {
        /// The literals; `None` is one that nobody knows here: a metric that needs it has no value.
        #[derive(Debug, Clone, Copy, Default, PartialEq)]
        pub struct Literals { $($(#[$doc])+ pub $name: Option<f64>,)+ }

        /// The names of the literals.
        pub const NAMES: &[&str] = &[$(stringify!($name)),+];

        impl Literals {
            const UNKNOWN: Self = Self { $($name: None),+ };

            /// The value of the literal of this name.
            pub(super) fn get(&self, name: &str) -> Option<f64> {
                match name {
                    $(stringify!($name) => self.$name,)+
                    _ => None,
                }
            }
        }
    };
}

literals! {
    /// 1 where hardware threads share cores.
    smt_on,
    /// 1 where all hardware threads of a core are measured.
    core_wide,
    /// CPUs that there can be.
    num_cpus,
    /// CPUs that run.
    num_cpus_online,
    /// Cores of all sockets.
    num_cores,
    /// Dies of all sockets.
    num_dies,
    /// Sockets.
    num_packages,
    /// Rate of the time stamp counter in Hz.
    system_tsc_freq,
    /// Issue slots a cycle (Arm).
    slots,
    /// 1 where there is persistent memory.
    has_pmem,
    /// 1 where CPUs are measured, not tasks.
    target_cpu,
}
