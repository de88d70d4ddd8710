//! Decodes bit fields and names their values: branch flags, `data_src`, transactions.
//!
//! Names are spelled as in perf script where perf has a name. The values are from
//! `include/uapi/linux/perf_event.h`.

/// The third word of a branch entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct BranchFlags(pub u64);

impl BranchFlags {
    fn field(self, shift: u32, width: u32) -> u64 {
        self.0 >> shift & ((1 << width) - 1)
    }
    /// Whether the CPU mispredicted the branch.
    pub fn is_mispredicted(self) -> bool {
        self.field(0, 1) == 1
    }
    /// Whether the CPU predicted the branch correctly.
    pub fn is_predicted(self) -> bool {
        self.field(1, 1) == 1
    }
    /// Whether the branch is inside a transaction.
    pub fn in_tx(self) -> bool {
        self.field(2, 1) == 1
    }
    /// Whether a transaction was aborted.
    pub fn is_abort(self) -> bool {
        self.field(3, 1) == 1
    }
    /// Cycles since the previous branch; 0: unknown.
    pub fn cycles(self) -> u16 {
        self.field(4, 16) as u16
    }
    /// The branch type, as perf prints it; empty if not recorded.
    pub fn kind(self) -> &'static str {
        const KINDS: [&str; 15] = [
            "",
            "COND",
            "UNCOND",
            "IND",
            "CALL",
            "IND_CALL",
            "RET",
            "SYSCALL",
            "SYSRET",
            "COND_CALL",
            "COND_RET",
            "ERET",
            "IRQ",
            "SERROR",
            "NO_TX",
        ];
        const NEW: [&str; 8] =
            ["FAULT_ALGN", "FAULT_DATA", "FAULT_INST", "ARCH_1", "ARCH_2", "ARCH_3", "ARCH_4", "ARCH_5"];
        match self.field(20, 4) as usize {
            15 => NEW.get(self.field(26, 4) as usize).copied().unwrap_or(""),
            kind => KINDS.get(kind).copied().unwrap_or(""),
        }
    }
    /// The result of the speculation, as perf prints it; empty if not recorded.
    pub fn speculation(self) -> &'static str {
        ["", "SPEC_WRONG_PATH", "NON_SPEC_CORRECT_PATH", "SPEC_CORRECT_PATH"][self.field(24, 2) as usize]
    }
    /// Bits without a defined meaning.
    pub fn reserved(self) -> u64 {
        self.field(33, 31)
    }
    /// The privilege level of the target: 1 user, 2 kernel, 3 hypervisor, 0 unknown.
    pub fn privilege(self) -> u8 {
        self.field(30, 3) as u8
    }

    /// Converts a word from the opposite byte order, where the bits are numbered from the top.
    pub(super) fn from_byte_swapped(word: u64) -> Self {
        let mut at = 64;
        let mut out = 0;
        let mut to = 0;
        for width in [1, 1, 1, 1, 16, 4, 2, 4, 3, 31] {
            at -= width;
            out |= (word >> at & ((1u64 << width) - 1)) << to;
            to += width;
        }
        Self(out)
    }
}

/// `data_src`: the source of the data in a memory access.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct DataSource(pub u64);

/// perf's name for all classes that have no column.
const OTHER: &str = "Other";

impl DataSource {
    fn field(self, shift: u32, width: u32) -> u64 {
        self.0 >> shift & ((1 << width) - 1)
    }

    /// Joins the names of the set bits in perf's format.
    fn joined(bits: u64, names: &[&str]) -> String {
        let set = names.iter().enumerate().filter(|(bit, _)| bits >> bit & 1 == 1).map(|(_, name)| *name);
        set.collect::<Vec<_>>().join(" or ")
    }

    fn or_not_known(text: String) -> String {
        if text.is_empty() { "N/A".to_owned() } else { text }
    }

    fn hit_or_miss(mut text: String, bits: u64) -> String {
        if bits & 2 != 0 {
            text.push_str(" hit");
        }
        if bits & 4 != 0 {
            text.push_str(" miss");
        }
        text
    }

    /// The operation, as perf prints it.
    pub fn operation_words(self) -> &'static str {
        match self.field(0, 5) {
            bits if bits & 1 != 0 => "N/A",
            bits if bits & 2 != 0 => "LOAD",
            bits if bits & 4 != 0 => "STORE",
            bits if bits & 8 != 0 => "PFETCH",
            bits if bits & 0x10 != 0 => "EXEC",
            _ => "No",
        }
    }

    /// The memory level, as printed by perf's sort key `mem`.
    pub fn level_words(self) -> String {
        const LEVELS: [&str; 14] = [
            "N/A",
            "HIT",
            "MISS",
            "L1",
            "LFB",
            "L2",
            "L3",
            "Local RAM",
            "Remote RAM (1 hop)",
            "Remote RAM (2 hops)",
            "Remote Cache (1 hop)",
            "Remote Cache (2 hops)",
            "I/O",
            "Uncached",
        ];
        const HOPS: [&str; 5] =
            ["N/A ", "core, same node ", "node, same socket ", "socket, same board ", "board "];
        let bits = self.field(5, 14);
        let (is_remote, hops) = self.remote();
        let mut text = if is_remote { "Remote ".to_owned() } else { String::new() };
        let mut parts = Vec::new();
        match hops {
            0 => parts.push(Self::joined(bits & !6, &LEVELS)),
            hops => text.push_str(HOPS.get(usize::from(hops)).copied().unwrap_or("")),
        }
        parts.push(match self.field(33, 4) {
            0 => String::new(),
            9 => "CXL".to_owned(),
            0xa => "I/O".to_owned(),
            0xb => "Any cache".to_owned(),
            0xc => "LFB".to_owned(),
            0xd => "RAM".to_owned(),
            0xe => "PMEM".to_owned(),
            0xf => "N/A".to_owned(),
            level => format!("L{level}"),
        });
        parts.retain(|part| !part.is_empty());
        text.push_str(&parts.join(" or "));
        Self::hit_or_miss(Self::or_not_known(text), bits)
    }

    /// The result of snooping other caches, as printed by perf's sort key `snoop`.
    pub fn snoop_words(self) -> String {
        let mut parts = vec![Self::joined(self.field(19, 5), &["N/A", "None", "Hit", "Miss", "HitM"])];
        parts.push(Self::joined(self.field(38, 2), &["Fwd", "Peer"]));
        parts.retain(|part| !part.is_empty());
        Self::or_not_known(parts.join(" or "))
    }

    /// The result of the address translation, as printed by perf's sort key `tlb`.
    pub fn tlb_words(self) -> String {
        let bits = self.field(26, 7);
        let text = Self::joined(bits & !6, &["N/A", "HIT", "MISS", "L1", "L2", "Walker", "Fault"]);
        Self::hit_or_miss(Self::or_not_known(text), bits)
    }

    /// Whether the access was locked, as printed by perf's sort key `locked`.
    pub fn lock_words(self) -> &'static str {
        match self.field(24, 2) {
            bits if bits & 1 != 0 => "N/A",
            bits if bits & 2 != 0 => "Yes",
            _ => "No",
        }
    }

    /// Why the access was blocked, as printed by perf's sort key `blocked`. The text begins with a space.
    pub fn blocked_words(self) -> &'static str {
        match self.field(40, 3) {
            bits if bits == 0 || bits & 1 != 0 => " N/A",
            bits if bits & 6 == 6 => " Data Addr",
            bits if bits & 2 != 0 => " Data",
            bits if bits & 4 != 0 => " Addr",
            _ => "",
        }
    }

    /// The operation, as in the columns of perf's `-F op`.
    pub fn operation_class(self) -> &'static str {
        match self.field(0, 5) {
            2 => "Load",
            4 => "Store",
            6 => "Ld+St",
            bits if bits & 8 != 0 => "Pfetch",
            bits if bits & 0x10 != 0 => "Exec",
            _ => OTHER,
        }
    }

    /// The cache that supplied the data, as in the columns of perf's `-F cache`.
    pub fn cache_class(self) -> &'static str {
        match self.field(33, 4) {
            1 => "L1",
            2 => "L2",
            3 => "L3",
            4 => "L4",
            5 => "L2-buf",
            0xc => "L1-buf",
            _ => OTHER,
        }
    }

    /// The memory that supplied the data, as in the columns of perf's `-F memory`.
    pub fn memory_class(self) -> &'static str {
        match self.field(33, 4) {
            6 => "MSC",
            8 => "Uncach",
            9 => "CXL",
            0xa => "IO",
            0xd => "RAM",
            0xe => "PMEM",
            _ => OTHER,
        }
    }

    /// The result of the address translation, as in the columns of perf's `-F dtlb`.
    pub fn dtlb_class(self) -> &'static str {
        match self.field(26, 7) {
            0b01010 => "L1-Hit",
            0b10010 => "L2-Hit",
            0b11010 => "L?-Hit",
            bits if bits & 4 != 0 => "Miss",
            _ => OTHER,
        }
    }

    /// All fields, in the format of perf script.
    pub fn in_perfs_words(self) -> String {
        format!(
            "|OP {}|LVL {}|SNP {}|TLB {}|LCK {}|BLK {}",
            self.operation_words(),
            self.level_words(),
            self.snoop_words(),
            self.tlb_words(),
            self.lock_words(),
            self.blocked_words()
        )
    }

    /// Whether the data came from another node, and how far away that node is: 1 same node, 2 same socket, 3
    /// same board, 4 another board.
    pub fn remote(self) -> (bool, u8) {
        (self.field(37, 1) == 1, self.field(43, 3) as u8)
    }
}

/// Decodes a sampled transaction: its flags, as perf prints them, and its abort code.
pub fn transaction(word: u64) -> (Vec<&'static str>, u32) {
    const NAMES: [&str; 8] = ["EL", "TX", "SYNC", "ASYNC", "RETRY", "CON", "CAP-WRITE", "CAP-READ"];
    let names = NAMES.iter().enumerate().filter(|(bit, _)| word >> bit & 1 == 1).map(|(_, name)| *name);
    (names.collect(), (word >> 32) as u32)
}

/// The size of a page, as perf prints it.
pub fn page_size(bytes: u64) -> String {
    match bytes {
        0 => "N/A".to_owned(),
        _ if bytes >= 1 << 30 => format!("{}G", bytes >> 30),
        _ if bytes >= 1 << 20 => format!("{}M", bytes >> 20),
        _ if bytes >= 1 << 10 => format!("{}K", bytes >> 10),
        _ => format!("{bytes}B"),
    }
}
