//! x86-64: all data comes from CPUID, which describes the core that executes it.
//!
//! Sources: Intel SDM volume 2 (CPUID leaf 0xA), AMD APM volume 3 (0x8000_0001, 0x8000_0022); hypervisor
//! leaf 0x4000_0000 by convention among hypervisor vendors.

use std::arch::x86_64::{__cpuid, CpuidResult};

use super::CoreCounters;

/// Reads a CPUID leaf. Every x86-64 CPU has the instruction, and reading an unsupported leaf is harmless.
fn leaf(number: u32) -> CpuidResult {
    #[allow(unused_unsafe, reason = "newer compilers know that it is safe")]
    // SAFETY: CPUID exists on every x86-64 CPU and reads nothing but registers.
    unsafe {
        __cpuid(number)
    }
}

/// Returns the counters of the current CPU. `None` for vendors that pmc does not support, or if the leaf is
/// empty.
///
/// A hypervisor may expose the leaf without the counters, so callers must also ask the kernel.
pub fn counters() -> Option<CoreCounters> {
    let basic = leaf(0);
    match &vendor([basic.ebx, basic.edx, basic.ecx]) {
        b"GenuineIntel" | b"CentaurHauls" | b"  Shanghai  " if basic.eax >= 0xa => intel(leaf(0xa)),
        b"AuthenticAMD" | b"HygonGenuine" => {
            let most = leaf(0x8000_0000).eax;
            let v2 = if most >= 0x8000_0022 { Some(leaf(0x8000_0022)) } else { None };
            Some(amd(leaf(0x8000_0001).ecx, v2))
        }
        _ => None,
    }
}

/// Returns the rate of the time stamp counter in Hz (leaf 0x15: crystal ECX times EBX/EAX). `None` if the
/// CPU does not provide it.
pub fn time_stamp_rate() -> Option<f64> {
    let CpuidResult { eax, ebx, ecx, .. } = if leaf(0).eax >= 0x15 { leaf(0x15) } else { return None };
    (eax > 0 && ebx > 0 && ecx > 0).then(|| f64::from(ecx) * f64::from(ebx) / f64::from(eax))
}

/// Reads the time stamp counter.
pub fn clock_reading() -> u64 {
    #[allow(unused_unsafe, reason = "newer compilers know that it is safe")]
    // SAFETY: RDTSC exists on every x86-64 CPU. A kernel that denies this to programs does not let them trace
    // either.
    unsafe {
        std::arch::x86_64::_rdtsc()
    }
}

/// Names and numbers of the registers that samples can contain (`asm/perf_regs.h`).
pub const REGISTER_NAMES: [(&str, u32); 20] = [
    ("ax", 0),
    ("bx", 1),
    ("cx", 2),
    ("dx", 3),
    ("si", 4),
    ("di", 5),
    ("bp", 6),
    ("sp", 7),
    ("ip", 8),
    ("flags", 9),
    ("cs", 10),
    ("ss", 11),
    ("r8", 16),
    ("r9", 17),
    ("r10", 18),
    ("r11", 19),
    ("r12", 20),
    ("r13", 21),
    ("r14", 22),
    ("r15", 23),
];

/// Decodes leaf 0xA: EAX[7:0] version, [15:8] general counters, [23:16] their width; EDX[4:0] fixed
/// counters, [12:5] their width.
fn intel(leaf: CpuidResult) -> Option<CoreCounters> {
    if leaf.eax & 0xff == 0 {
        return None;
    }
    let width = |bits: u32| (bits != 0).then_some(bits);
    Some(CoreCounters {
        general: leaf.eax >> 8 & 0xff,
        general_width: width(leaf.eax >> 16 & 0xff),
        fixed: leaf.edx & 0x1f,
        fixed_width: width(leaf.edx >> 5 & 0xff),
        source: "CPUID leaf 0xA",
    })
}

/// Decodes leaf 0x8000_0022: EAX[0] performance monitoring version 2, EBX[3:0] number of counters. On older
/// CPUs 0x8000_0001 ECX[23] distinguishes six counters from four. All are 48 bits wide; none is fixed.
fn amd(features: u32, v2: Option<CpuidResult>) -> CoreCounters {
    let (general, source) = match v2 {
        Some(leaf) if leaf.eax & 1 == 1 => (leaf.ebx & 0xf, "CPUID leaf 0x80000022"),
        _ if features >> 23 & 1 == 1 => (6, "CPUID leaf 0x80000001, core extensions"),
        _ => (4, "CPUID leaf 0x80000001, no core extensions"),
    };
    CoreCounters { general, general_width: Some(48), fixed: 0, fixed_width: None, source }
}

/// Returns the name of the hypervisor, from its signature; `None` on a physical machine.
pub fn hypervisor() -> Option<String> {
    if leaf(1).ecx >> 31 & 1 == 0 {
        return None;
    }
    let answer = leaf(0x4000_0000);
    Some(hypervisor_name(&vendor([answer.ebx, answer.ecx, answer.edx])))
}

fn hypervisor_name(signature: &[u8; 12]) -> String {
    match signature {
        b"KVMKVMKVM\0\0\0" => "KVM".to_owned(),
        b"Microsoft Hv" => "Hyper-V".to_owned(),
        b"VMwareVMware" => "VMware".to_owned(),
        b"XenVMMXenVMM" => "Xen".to_owned(),
        b"TCGTCGTCGTCG" => "QEMU without KVM".to_owned(),
        b"bhyve bhyve " => "bhyve".to_owned(),
        b"VBoxVBoxVBox" => "VirtualBox".to_owned(),
        b"ACRNACRNACRN" => "ACRN".to_owned(),
        other => {
            let name: String =
                other.iter().map(|&b| char::from(b)).filter(|c| c.is_ascii_graphic() || *c == ' ').collect();
            if name.trim().is_empty() { "one without a name".to_owned() } else { name.trim().to_owned() }
        }
    }
}

/// Returns the twelve characters that the three registers contain.
fn vendor(registers: [u32; 3]) -> [u8; 12] {
    let mut letters = [0; 12];
    for (part, register) in letters.chunks_exact_mut(4).zip(registers) {
        part.copy_from_slice(&register.to_le_bytes());
    }
    letters
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(eax: u32, ebx: u32, edx: u32) -> CpuidResult {
        CpuidResult { eax, ebx, ecx: 0, edx }
    }

    #[test]
    fn intel_leaf_0xa_of_ice_lake() {
        // Version 5, 8 general counters of 48 bits, 4 fixed counters of 48 bits.
        let counters = intel(answer(0x0830_0805, 0, 0x8604)).unwrap();
        assert_eq!((counters.general, counters.general_width), (8, Some(48)));
        assert_eq!((counters.fixed, counters.fixed_width), (4, Some(48)));
        assert_eq!(intel(answer(0, 0, 0)), None, "a virtual machine without vPMU");
    }

    #[test]
    fn amd_counters_by_generation() {
        assert_eq!(amd(0, None).general, 4);
        assert_eq!(amd(1 << 23, None).general, 6);
        assert_eq!(amd(1 << 23, Some(answer(0, 0, 0))).general, 6, "leaf there, version 2 not");
        let zen4 = amd(1 << 23, Some(answer(1, 0x4_0406, 0)));
        assert_eq!((zen4.general, zen4.source), (6, "CPUID leaf 0x80000022"));
    }

    #[test]
    fn hypervisors_are_identified_by_signature() {
        assert_eq!(hypervisor_name(b"KVMKVMKVM\0\0\0"), "KVM");
        assert_eq!(hypervisor_name(b"Odd\x1b[31mOne\0"), "Odd[31mOne");
        assert_eq!(hypervisor_name(&[0; 12]), "one without a name");
        assert_eq!(&vendor([0x756e_6547, 0x4965_6e69, 0x6c65_746e]), b"GenuineIntel");
    }
}
