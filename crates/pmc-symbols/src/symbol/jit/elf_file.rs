//! Converts code from a jitdump to shared libraries, for programs that read ELF files but not jitdumps.
//!
//! Takes the code of one function; returns the bytes of a shared library with this code, one symbol, and a
//! build-id derived from both. The caller stores the file.
//!
//! ```text
//! 0 | ELF header | segment | 0x80: code | build-id | .symtab | names | section headers |
//! ```
//! As in `perf inject -j`, the code's address in the file equals its offset, so that segments and sections
//! give the same result for a mapping of [`TEXT`].

use std::hash::{DefaultHasher, Hash, Hasher};

use object::elf;

use super::jitdump::{JitCode, Jitdump};

/// Offset and address of the code.
pub const TEXT: u64 = 0x80;

/// Sizes of the headers and table rows in 64-bit files, in bytes.
const FILE_HEADER: usize = 64;
const SEGMENT: usize = 56;
const SECTION: usize = 64;
const SYMBOL: usize = 24;

/// Writes numbers in the byte order of the code's architecture.
struct ByteWriter {
    out: Vec<u8>,
    is_big: bool,
}

impl ByteWriter {
    fn number(&mut self, number: u64, bytes: usize) {
        match self.is_big {
            true => self.out.extend(&number.to_be_bytes()[8 - bytes..]),
            false => self.out.extend(&number.to_le_bytes()[..bytes]),
        }
    }

    /// Writes integers, each in the given number of bytes.
    fn numbers(&mut self, numbers: &[(u64, usize)]) {
        numbers.iter().for_each(|&(number, bytes)| self.number(number, bytes));
    }

    fn align(&mut self, to: usize) -> usize {
        self.out.resize(self.out.len().next_multiple_of(to), 0);
        self.out.len()
    }
}

/// Computes the build-id for one function. Equal code with the same name gets the same build-id.
pub fn build_id(dump: &Jitdump, code: &JitCode) -> [u8; 16] {
    let half = |number: u64| {
        let mut hasher = DefaultHasher::new();
        (number, &code.name, dump.machine(), dump.bytes(code)).hash(&mut hasher);
        hasher.finish().to_le_bytes()
    };
    let mut id = [0; 16];
    id[..8].copy_from_slice(&half(1));
    id[8..].copy_from_slice(&half(2));
    id
}

/// Creates the file, with the code's build-id.
pub fn build(dump: &Jitdump, code: &JitCode, id: &[u8]) -> Vec<u8> {
    let text = dump.bytes(code);
    let mut file = ByteWriter { out: vec![0; TEXT as usize], is_big: dump.is_big_endian };
    file.out.extend(text);
    let note_at = file.align(4);
    file.numbers(&[(4, 4), (id.len() as u64, 4), (elf::NT_GNU_BUILD_ID.0.into(), 4)]);
    file.out.extend(b"GNU\0");
    file.out.extend(id);
    let note_size = file.out.len() - note_at;
    let symbols_at = file.align(8);
    file.out.extend([0; SYMBOL]);
    let function = u64::from(elf::STB_GLOBAL.0 << 4 | elf::STT_FUNC.0);
    file.numbers(&[(1, 4), (function, 1), (0, 1), (1, 2), (TEXT, 8), (text.len() as u64, 8)]);
    let symbols_size = file.out.len() - symbols_at;
    let names_at = file.out.len();
    // A single table contains all names. The function's name comes first.
    file.out.push(0);
    let name: Vec<u8> = code.name.bytes().map(|byte| if byte == 0 { b'?' } else { byte }).collect();
    file.out.extend(&name);
    file.out.push(0);
    let mut section_name = |name: &[u8]| {
        let at = (file.out.len() - names_at) as u64;
        file.out.extend(name);
        at
    };
    let text_name = section_name(b".text\0");
    let note_name = section_name(b".note.gnu.build-id\0");
    let symbols_name = section_name(b".symtab\0");
    let names_name = section_name(b".strtab\0");
    let names_size = file.out.len() - names_at;
    let sections_at = file.align(8);
    file.out.extend([0; SECTION]);
    let in_memory = elf::SHF_ALLOC.0;
    let loaded = in_memory | elf::SHF_EXECINSTR.0;
    // Name, type, flags, address, offset, size, link, info, alignment, size of a row.
    let mut section =
        |name, kind: elf::SectionType, flags, address, at: usize, size: usize, link, align, row: usize| {
            file.numbers(&[(name, 4), (kind.0.into(), 4), (flags, 8), (address, 8), (at as u64, 8)]);
            let info = if kind == elf::SHT_SYMTAB { 1 } else { 0 };
            file.numbers(&[(size as u64, 8), (link, 4), (info, 4), (align, 8), (row as u64, 8)]);
        };
    section(text_name, elf::SHT_PROGBITS, loaded, TEXT, TEXT as usize, text.len(), 0, 16, 0);
    section(note_name, elf::SHT_NOTE, in_memory, note_at as u64, note_at, note_size, 0, 4, 0);
    section(symbols_name, elf::SHT_SYMTAB, 0, 0, symbols_at, symbols_size, 4, 8, SYMBOL);
    section(names_name, elf::SHT_STRTAB, 0, 0, names_at, names_size, 0, 1, 0);
    let whole = std::mem::take(&mut file.out);
    head(&mut file, dump.machine(), text.len() as u64, sections_at as u64);
    let mut whole = whole;
    whole[..file.out.len()].copy_from_slice(&file.out);
    whole
}

/// Writes the ELF header and the only segment.
fn head(file: &mut ByteWriter, machine: u16, code: u64, sections_at: u64) {
    file.out.extend(elf::ELFMAG);
    let order = if file.is_big { elf::ELFDATA2MSB } else { elf::ELFDATA2LSB };
    file.out.extend([elf::ELFCLASS64.0, order.0, elf::EV_CURRENT.0, elf::ELFOSABI_SYSV.0]);
    file.out.extend([0; 8]);
    file.numbers(&[(elf::ET_DYN.0.into(), 2), (machine.into(), 2), (1, 4), (0, 8), (FILE_HEADER as u64, 8)]);
    file.numbers(&[(sections_at, 8), (0, 4), (FILE_HEADER as u64, 2), (SEGMENT as u64, 2), (1, 2)]);
    file.numbers(&[(SECTION as u64, 2), (5, 2), (4, 2)]);
    let flags = u64::from(elf::PF_R.0 | elf::PF_X.0);
    file.numbers(&[(elf::PT_LOAD.0.into(), 4), (flags, 4), (TEXT, 8), (TEXT, 8), (TEXT, 8), (code, 8)]);
    file.numbers(&[(code, 8), (16, 8)]);
}
