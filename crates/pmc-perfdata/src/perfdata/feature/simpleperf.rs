//! Symbols that simpleperf (Android) stores in its recordings, for readers that do not have the device's
//! files.
//!
//! Receives the bytes of the sections `FILE` and `FILE2`; returns [`DeviceFile`]s. Numbers are little-endian,
//! as on all Android devices. Source: simpleperf's `record_file_format.h` and `record_file.proto`.
//!
//! ```text
//!   FILE    { u32 size of what follows | path, NUL | u32 type | u64 min_vaddr | u32 symbols
//!             | { u64 vaddr | u32 len | name, NUL } × symbols
//!             | a DEX file: u32 offsets | u64 × offsets
//!             | an ELF file or kernel module, since 2019: u64 where min_vaddr lies } …
//!   FILE2   { u32 size | protobuf: 1 path, 2 type, 3 min_vaddr, 4 { 1 vaddr, 2 len, 3 name } …,
//!             6 or 7 { 1 where min_vaddr lies } } …
//! ```

use super::Features;
use crate::record::Cursor;
use crate::record::bytes::until_nul;

/// A file on the device, with the functions that have samples.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct DeviceFile {
    /// The path as in mappings, as untrusted bytes.
    pub path: Vec<u8>,
    /// simpleperf's number for the kind of file.
    pub kind: u32,
    /// The lowest virtual address of the file's code.
    pub min_vaddr: u64,
    /// Location of `min_vaddr`: its offset in the file or, for a kernel module, from the module's start in
    /// memory. 0 if not recorded.
    pub min_vaddr_at: u64,
    /// The file's functions.
    pub symbols: Vec<DeviceSymbol>,
}

/// A function in a file on the device.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct DeviceSymbol {
    /// Start address: a virtual address of the file.
    pub vaddr: u64,
    /// Size in bytes.
    pub len: u32,
    /// The name; untrusted bytes.
    pub name: Vec<u8>,
}

/// simpleperf's numbers for the kinds of files whose addresses need special handling.
const KERNEL_MODULE: u32 = 1;
const ELF: u32 = 2;
const DEX: u32 = 3;

impl DeviceFile {
    /// Returns all files in a recording. If the section is truncated, returns the files before that point.
    pub fn all(features: &Features) -> Vec<Self> {
        let mut files = Vec::new();
        let sections = [
            (&features.device_files, Self::plain as fn(&[u8]) -> _),
            (&features.device_files2, Self::message),
        ];
        for (section, parse) in sections {
            let mut rest = Cursor::new(section.as_ref().map_or(&[], |raw| &raw.0));
            while let Some(bytes) = rest.u32().and_then(|size| rest.take(size as usize)) {
                let Some(file) = parse(bytes) else { break };
                files.push(file);
            }
        }
        files
    }

    /// Returns each function with its start and end, in the address space used by mappings: offsets in the
    /// file, offsets from the start of a kernel module, or addresses in kernel memory. DEX files already
    /// contain such offsets.
    pub fn places(&self) -> impl Iterator<Item = (std::ops::Range<u64>, &[u8])> {
        let is_numbered = matches!(self.kind, ELF | KERNEL_MODULE);
        let by = if is_numbered { self.min_vaddr_at.wrapping_sub(self.min_vaddr) } else { 0 };
        self.symbols.iter().map(move |symbol| {
            let start = symbol.vaddr.wrapping_add(by);
            (start..start.saturating_add(symbol.len.into()), &*symbol.name)
        })
    }

    /// Parses a row of `FILE`.
    fn plain(bytes: &[u8]) -> Option<Self> {
        let mut fields = Cursor::new(bytes);
        let path = text(&mut fields)?;
        let (kind, min_vaddr, count) = (fields.u32()?, fields.u64()?, fields.u32()?);
        let mut file = Self { path, kind, min_vaddr, ..Self::default() };
        // Every symbol consumes bytes, so the loop ends with the data even if the count is invalid.
        for _ in 0..count {
            let (vaddr, len) = (fields.u64()?, fields.u32()?);
            file.symbols.push(DeviceSymbol { vaddr, len, name: text(&mut fields)? });
        }
        if kind == DEX {
            let offsets = fields.u32()?;
            fields.take(usize::try_from(offsets).ok()?.checked_mul(8)?)?;
        }
        if matches!(kind, ELF | KERNEL_MODULE) && !fields.rest().is_empty() {
            file.min_vaddr_at = fields.u64()?;
        }
        Some(file)
    }

    /// Parses a row of `FILE2`.
    fn message(bytes: &[u8]) -> Option<Self> {
        let mut file = Self::default();
        let mut rest = Cursor::new(bytes);
        while let Some((number, value)) = field(&mut rest)? {
            match (number, value) {
                (1, ProtobufValue::Bytes(path)) => file.path = path.to_vec(),
                (2, ProtobufValue::Number(kind)) => file.kind = kind as u32,
                (3, ProtobufValue::Number(address)) => file.min_vaddr = address,
                (4, ProtobufValue::Bytes(symbol)) => file.symbols.push(DeviceSymbol::message(symbol)?),
                (6 | 7, ProtobufValue::Bytes(place)) => {
                    let mut rest = Cursor::new(place);
                    while let Some((number, value)) = field(&mut rest)? {
                        if let (1, ProtobufValue::Number(at)) = (number, value) {
                            file.min_vaddr_at = at;
                        }
                    }
                }
                _ => {}
            }
        }
        Some(file)
    }
}

impl DeviceSymbol {
    fn message(bytes: &[u8]) -> Option<Self> {
        let mut symbol = Self::default();
        let mut rest = Cursor::new(bytes);
        while let Some((number, value)) = field(&mut rest)? {
            match (number, value) {
                (1, ProtobufValue::Number(vaddr)) => symbol.vaddr = vaddr,
                (2, ProtobufValue::Number(len)) => symbol.len = len as u32,
                (3, ProtobufValue::Bytes(name)) => symbol.name = name.to_vec(),
                _ => {}
            }
        }
        Some(symbol)
    }
}

/// Returns the bytes before a NUL, or `None` if there is no NUL.
fn text(fields: &mut Cursor<'_>) -> Option<Vec<u8>> {
    let text = until_nul(fields.rest());
    let bytes = fields.take(text.len() + 1)?;
    Some(bytes[..text.len()].to_vec())
}

/// The value of a field of a protobuf message.
enum ProtobufValue<'a> {
    Number(u64),
    Bytes(&'a [u8]),
}

/// Returns the number and value of the next field of a protobuf message: `Some(None)` at the end, `None` if
/// the field is truncated.
fn field<'a>(rest: &mut Cursor<'a>) -> Option<Option<(u64, ProtobufValue<'a>)>> {
    if rest.rest().is_empty() {
        return Some(None);
    }
    let tag = varint(rest)?;
    let value = match tag & 7 {
        0 => ProtobufValue::Number(varint(rest)?),
        1 => ProtobufValue::Number(rest.u64()?),
        2 => {
            let len = usize::try_from(varint(rest)?).ok()?;
            ProtobufValue::Bytes(rest.take(len)?)
        }
        5 => ProtobufValue::Number(rest.u32()?.into()),
        _ => return None,
    };
    Some(Some((tag >> 3, value)))
}

/// Reads a varint: seven bits per byte, lowest first. The eighth bit is set if more bytes follow.
fn varint(rest: &mut Cursor<'_>) -> Option<u64> {
    let mut number = 0;
    for at in (0..64).step_by(7) {
        let byte = *rest.take(1)?.first()?;
        number |= u64::from(byte & 0x7f) << at;
        if byte & 0x80 == 0 {
            return Some(number);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::super::RawSection;
    use super::*;

    fn sized(row: &[u8]) -> Vec<u8> {
        [&(row.len() as u32).to_le_bytes(), row].concat()
    }

    fn plain(kind: u32, symbols: &[(u64, u32, &str)], behind: &[u8]) -> Vec<u8> {
        let mut row = b"/system/lib64/libc.so\0".to_vec();
        row.extend(kind.to_le_bytes());
        row.extend(0x3_2000u64.to_le_bytes());
        row.extend((symbols.len() as u32).to_le_bytes());
        for (vaddr, len, name) in symbols {
            row.extend(vaddr.to_le_bytes());
            row.extend(len.to_le_bytes());
            row.extend(name.as_bytes());
            row.push(0);
        }
        row.extend(behind);
        row
    }

    fn message(fields: &[(u8, &[u8])]) -> Vec<u8> {
        fields
            .iter()
            .flat_map(|(number, bytes)| [&[number << 3 | 2, bytes.len() as u8], *bytes].concat())
            .collect()
    }

    fn features(device_files: &[u8], device_files2: &[u8]) -> Features {
        let raw = |bytes: &[u8]| Some(RawSection(bytes.to_vec()));
        Features { device_files: raw(device_files), device_files2: raw(device_files2), ..Features::default() }
    }

    fn shown(features: &Features) -> Vec<String> {
        let line = |file: &DeviceFile| {
            let places =
                file.places().map(|(range, name)| format!(" {range:x?} {}", String::from_utf8_lossy(name)));
            format!("{} {}{}", file.kind, String::from_utf8_lossy(&file.path), places.collect::<String>())
        };
        DeviceFile::all(features).iter().map(line).collect()
    }

    #[test]
    fn both_formats_give_function_offsets() {
        let symbols: &[(u64, u32, &str)] = &[(0x3_2100, 0x40, "malloc"), (0x3_3000, 8, "free")];
        let rows = [
            sized(&plain(ELF, symbols, &0x1000u64.to_le_bytes())),
            sized(&plain(ELF, symbols, &[])),
            sized(&plain(DEX, symbols, &[[1, 0, 0, 0].to_vec(), vec![7; 8]].concat())),
            sized(&plain(0, symbols, &[])),
        ];
        let symbol = [&[0x08, 0x80, 0xc2, 0x0c, 0x10, 0x40][..], &message(&[(3, b"malloc")])].concat();
        let place = message(&[(6, &[0x08, 0x80, 0x20])]);
        let row2 = [
            message(&[(1, b"/system/lib64/libc.so"), (4, &symbol), (99, b"new")]),
            vec![0x10, 2, 0x18, 0x80, 0xc0, 0x0c],
            place,
        ];
        let features = features(&rows.concat(), &sized(&row2.concat()));
        assert_eq!(
            shown(&features),
            [
                "2 /system/lib64/libc.so 1100..1140 malloc 2000..2008 free",
                "2 /system/lib64/libc.so 100..140 malloc 1000..1008 free",
                "3 /system/lib64/libc.so 32100..32140 malloc 33000..33008 free",
                "0 /system/lib64/libc.so 32100..32140 malloc 33000..33008 free",
                "2 /system/lib64/libc.so 1100..1140 malloc",
            ]
        );
    }

    #[test]
    fn truncated_or_invalid_rows_end_the_list() {
        let sound = plain(ELF, &[(1, 2, "a")], &[]);
        for cut in 0..sound.len() {
            let features = features(&[sized(&sound), sized(&sound[..cut])].concat(), &[]);
            assert_eq!(DeviceFile::all(&features).len(), 1, "{cut}");
        }
        let mut many = sound.clone();
        many[34..38].copy_from_slice(&u32::MAX.to_le_bytes());
        let long = [&u32::MAX.to_le_bytes()[..], &sound].concat();
        for bad in
            [sized(&many), long, sized(&[0x80; 12]), sized(&[0x0b, 1]), sized(&[0x0a, 200, 1]), vec![1]]
        {
            let features = features(&bad, &bad);
            assert!(DeviceFile::all(&features).len() <= 1, "{bad:x?}");
        }
    }
}
