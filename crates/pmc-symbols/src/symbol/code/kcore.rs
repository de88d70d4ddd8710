//! Reads `/proc/kcore` or a copy of it: an ELF core file with the kernel's memory, which is as large as that
//! memory and cannot be mapped.

use crate::hint::Hint;
use std::io::ErrorKind;
use std::os::unix::fs::FileExt;
use std::path::Path;

use object::read::elf::{FileHeader, ProgramHeader};
use object::{Endianness, elf};

use super::disassemble::InstructionSet;
use super::{MachineCode, NoCode};

/// Maximum number of bytes to read for headers. Real headers are far smaller.
const MOST_HEADERS: u64 = 1 << 20;

/// Reads the code at a memory address. `start` is the same address in the module's own address space.
pub(super) fn read(path: &Path, address: u64, start: u64, size: u64) -> Result<MachineCode, NoCode> {
    let unread = |why: String| {
        let why = format!("{}: {why}", path.display());
        NoCode::new(why, Hint::AnyKernelImage)
    };
    let words = |error: std::io::Error| unread(pmc_sys::error::kernel_message(&error));
    let file = pmc_sys::sys::regular_file::open_regular(path, true).map_err(words)?;
    let broken = || unread("not a 64-bit ELF file".into());
    let read = |bytes: &mut [u8]| {
        file.read_exact_at(bytes, 0).map_err(|error| match error.kind() {
            ErrorKind::UnexpectedEof => broken(),
            _ => words(error),
        })
    };
    let mut headers = vec![0; size_of::<elf::FileHeader64<Endianness>>()];
    read(&mut headers)?;
    let header = *elf::FileHeader64::<Endianness>::parse(&*headers).map_err(|_| broken())?;
    let endian = header.endian().map_err(|_| broken())?;
    let table = u64::from(header.e_phnum(endian)) * u64::from(header.e_phentsize(endian));
    let end = header.e_phoff(endian).checked_add(table).filter(|&end| end <= MOST_HEADERS);
    headers.resize(end.ok_or_else(broken)? as usize, 0);
    read(&mut headers)?;
    let machine = InstructionSet::of_elf(header.e_machine(endian).0)
        .ok_or_else(|| unread("pmc does not support this code's instruction set".into()))?;
    let segments = header.program_headers(endian, &*headers).map_err(|_| broken())?;
    for segment in segments {
        let into = address.wrapping_sub(segment.p_vaddr(endian));
        let there = segment.p_filesz(endian);
        if segment.p_type(endian) != elf::PT_LOAD || into >= there {
            continue;
        }
        let mut bytes = vec![0; size.min(there - into) as usize];
        let offset = segment.p_offset(endian).checked_add(into).ok_or_else(broken)?;
        file.read_exact_at(&mut bytes, offset).map_err(words)?;
        return Ok(MachineCode {
            start,
            machine,
            bytes,
            from: path.to_owned(),
            lines: Vec::new(),
            is_unlinked: false,
        });
    }
    Err(unread(format!("no data at address {address:#x}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns an ELF core file with one segment.
    fn core(address: u64, bytes: &[u8]) -> Vec<u8> {
        let mut file = b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0".to_vec();
        file.extend([4, 0, 62, 0, 1, 0, 0, 0]);
        for word in [0u64, 64, 0] {
            file.extend(word.to_le_bytes());
        }
        file.extend([0, 0, 0, 0, 64, 0, 56, 0, 1, 0, 0, 0, 0, 0, 0, 0]);
        file.extend([1, 0, 0, 0, 5, 0, 0, 0]);
        for word in [120u64, address, 0, bytes.len() as u64, bytes.len() as u64, 1] {
            file.extend(word.to_le_bytes());
        }
        file.extend(bytes);
        file
    }

    #[test]
    fn kernel_memory_is_read_by_address() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("kcore");
        let base = 0xffff_ffff_8100_0000;
        std::fs::write(&path, core(base, &[0x90, 0xc3, 0xcc])).unwrap();
        let code = read(&path, base + 1, 0x1234, 99).unwrap();
        assert_eq!(
            (code.start, code.machine, &code.bytes[..]),
            (0x1234, InstructionSet::X86_64, &[0xc3, 0xcc][..])
        );
        assert!(read(&path, base + 3, 0, 1).unwrap_err().why.contains("no data at"));
        let whole = std::fs::read(&path).unwrap();
        for cut in 0..whole.len() {
            std::fs::write(&path, &whole[..cut]).unwrap();
            assert!(read(&path, base, base, 3).is_err(), "cut at {cut}");
        }
        let error = read(Path::new("/does/not/exist"), base, base, 3).unwrap_err();
        assert!(error.why.contains("ENOENT"), "{error:?}");
    }
}
