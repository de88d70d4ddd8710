//! The values of `#literals`, and of functions that query the machine.
//!
//! Contains only plain values and callbacks, which a command fills in from the host.

/// The properties of the machine and of the measurement that expressions can use.
#[derive(Clone, Copy)]
pub struct MetricEnvironment<'a> {
    /// The values of literals.
    pub literals: Literals,
    /// Returns whether an event exists, given its text as typed after `-e`.
    pub has_event: &'a dyn Fn(&str) -> bool,
    /// Returns the number of PMUs that count an event, or `None` if there is no such event.
    pub source_count: &'a dyn Fn(&str) -> Option<f64>,
    /// Returns the average retire latency of an event in cycles, from the vendor's table (for `NAME:R`). If
    /// it returns `None`, `NAME:R >= 0` is false.
    pub retire_latency: &'a dyn Fn(&str) -> Option<f64>,
    /// Returns whether the CPU's id matches an id, such as `GenuineIntel-6-55-7`, or a pattern.
    pub is_cpuid: &'a dyn Fn(&str) -> bool,
}

impl MetricEnvironment<'_> {
    /// An environment in which everything is unknown.
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
        /// The literals. `None` means unknown; a metric that needs an unknown literal has no value.
        #[derive(Debug, Clone, Copy, Default, PartialEq)]
        pub struct Literals { $($(#[$doc])+ pub $name: Option<f64>,)+ }

        /// Names of the literals.
        pub const NAMES: &[&str] = &[$(stringify!($name)),+];

        impl Literals {
            const UNKNOWN: Self = Self { $($name: None),+ };

            /// Returns the value of the literal with this name.
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
    /// 1 if hardware threads share cores.
    smt_on,
    /// 1 if all hardware threads of a core are measured.
    core_wide,
    /// Number of possible CPUs.
    num_cpus,
    /// Number of online CPUs.
    num_cpus_online,
    /// Number of cores in all sockets.
    num_cores,
    /// Number of dies in all sockets.
    num_dies,
    /// Number of sockets.
    num_packages,
    /// Rate of the time stamp counter in Hz.
    system_tsc_freq,
    /// Issue slots per cycle (Arm).
    slots,
    /// 1 if the machine has persistent memory.
    has_pmem,
    /// 1 if the measurement covers CPUs instead of tasks.
    target_cpu,
}
