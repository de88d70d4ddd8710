//! The size of the rings of a plan: as typed, or as large as useful within the user's limit on locked memory.

use pmc_events::counter::request::sampling::CallGraph;
use pmc_events::counter::target::TargetSlot;
use pmc_sys::host::Host;
use pmc_sys::sys::credentials::{Credentials, Limits};
use pmc_sys::sys::page_size;

use super::off_cpu::events::STACK_COPY;
use super::plan::SamplePlan;

/// Number of stack copies that fit into a ring: half a second of profiling.
const COPIES: u64 = 512;
/// The same for stack copies of context switches, which come in bursts.
const SWITCH_COPIES: u64 = 2048;
/// Maximum size of all rings together.
const RINGS: u64 = 512 << 20;

/// Returns the size of a ring: the most useful size, or less if this user may not lock that much memory. The
/// kernel allows `perf_event_mlock_kb` per CPU, shared by all rings, plus `RLIMIT_MEMLOCK`. The limits do not
/// apply to users who may lock any amount of memory.
pub(super) fn ring_bytes(plan: &SamplePlan, host: &Host, slots: &[TargetSlot]) -> u64 {
    let page = page_size() as u64;
    if let Some(size) = plan.ring {
        return size.pages() as u64 * page;
    }
    let rings = match plan.per_thread {
        true => slots.len(),
        false => slots.iter().map(|slot| slot.cpu).collect::<std::collections::BTreeSet<_>>().len(),
    } as u64
        * if plan.options.backward { 2 } else { 1 };
    let rings = rings.max(1);
    let copy = plan.options.call_graph.map_or(0, CallGraph::copied_bytes);
    let switches = plan.off_cpu.map_or(0, |_| u64::from(STACK_COPY) * SWITCH_COPIES);
    let useful =
        plan.useful_ring.bytes().max(u64::from(copy) * COPIES).max(switches).min(RINGS / rings).max(page);
    if may_lock_any(host) {
        return useful.next_power_of_two() / if useful.is_power_of_two() { 1 } else { 2 };
    }
    let each: u64 = host.number("/proc/sys/kernel/perf_event_mlock_kb").unwrap_or(516);
    let shared = (each << 10).saturating_mul(host.online_cpus().len() as u64);
    let own = Limits::own().locked_memory.unwrap_or(u64::MAX);
    let allowed = (shared.saturating_add(own) / rings).saturating_sub(page).clamp(page, useful);
    // The largest power-of-two number of pages that fits together with its header page.
    1 << allowed.ilog2()
}

/// Whether this user may lock any amount of memory for rings.
pub(super) fn may_lock_any(host: &Host) -> bool {
    let paranoid: i32 = host.number("/proc/sys/kernel/perf_event_paranoid").unwrap_or(2);
    paranoid < 0 || Credentials::own().ipc_lock()
}
