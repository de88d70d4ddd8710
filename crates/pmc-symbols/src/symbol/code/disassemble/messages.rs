//! The messages between pmc and its disassembler's process.
//!
//! Requests are trusted, because pmc writes them. Replies are not, because code may have made the decoder
//! misbehave. [`read_reply`] accepts only instructions that cover the requested code and consist of printable
//! text.
//!
//! ```text
//!   request       instruction set 1, syntax 1, first only 1, start 8, size 4, the code
//!   instruction   size 1 (not 0), flow and flags 1, lengths of the texts 1 + 1, target 8?, refers 8?, texts
//!   end           0 1, length of an error 1, its text; no error if the length is 0
//! ```

use std::io::{self, Read, Write};

use super::super::LONGEST_INSTRUCTION;
use super::instruction::{CodeRequest, Flow, Instruction, InstructionSet, InstructionTarget, Syntax};

const MACHINES: [InstructionSet; 3] = [InstructionSet::X86_64, InstructionSet::X86, InstructionSet::Aarch64];
const FLOWS: [Flow; 4] = [Flow::Next, Flow::Jump, Flow::Call, Flow::Return];
/// Flag: the address of a target follows.
const HAS_TARGET: u8 = 4;
/// Flag: the address of a memory operand follows.
const HAS_REFERENCE: u8 = 8;
/// Size of a request without its code.
const HEADER: usize = 15;
/// Maximum length of all texts per byte of code. The longest are lists of four registers and `.byte`, with
/// fewer than 20 characters per byte.
const MOST_TEXT: usize = 64;

/// Returns the size of a request in bytes.
pub(super) fn size(code: &CodeRequest<'_>) -> usize {
    HEADER + code.bytes.len()
}

/// Appends a request to a message.
pub(super) fn add_request(message: &mut Vec<u8>, code: &CodeRequest<'_>) {
    let size = u32::try_from(code.bytes.len()).unwrap_or(u32::MAX);
    let machine = MACHINES.iter().position(|machine| *machine == code.machine).unwrap_or_default() as u8;
    message.extend([machine, u8::from(code.syntax == Syntax::Intel), u8::from(code.is_first_only)]);
    message.extend(code.start.to_le_bytes());
    message.extend(size.to_le_bytes());
    message.extend(code.bytes);
}

/// Reads a request, whose code is stored in `bytes`; `None` at the end of the requests.
///
/// # Errors
/// Fails if reading fails, or if the request is invalid.
pub(super) fn read_request<'a>(
    input: &mut impl Read,
    bytes: &'a mut Vec<u8>,
) -> io::Result<Option<CodeRequest<'a>>> {
    let mut machine = [0];
    if read_some(input, &mut machine)? == 0 {
        return Ok(None);
    }
    let machine = *MACHINES.get(usize::from(machine[0])).ok_or(io::ErrorKind::InvalidData)?;
    let [is_intel, is_first_only] = array(input)?.map(|byte| byte != 0);
    let syntax = if is_intel { Syntax::Intel } else { Syntax::Att };
    let start = u64::from_le_bytes(array(input)?);
    let size = u32::from_le_bytes(array(input)?);
    bytes.clear();
    bytes.resize(size as usize, 0);
    input.read_exact(bytes)?;
    Ok(Some(CodeRequest { machine, syntax, start, bytes, is_first_only }))
}

fn read_some(input: &mut impl Read, bytes: &mut [u8]) -> io::Result<usize> {
    loop {
        match input.read(bytes) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            read => return read,
        }
    }
}

/// Writes an instruction of a reply.
///
/// # Errors
/// Fails if writing fails.
pub(super) fn write_instruction(out: &mut impl Write, instruction: &Instruction) -> io::Result<()> {
    let short = |length: usize| u8::try_from(length).map_err(|_| io::Error::from(io::ErrorKind::InvalidData));
    let Instruction { bytes, mnemonic, operands, flow, target, refers, .. } = instruction;
    let flags = [(target, HAS_TARGET), (refers, HAS_REFERENCE)];
    let flags = flags.iter().filter(|(address, _)| address.is_some()).map(|(_, flag)| flag).sum::<u8>();
    let flow = FLOWS.iter().position(|known| known == flow).unwrap_or_default() as u8;
    out.write_all(&[short(bytes.len())?, flow | flags, short(mnemonic.len())?, short(operands.len())?])?;
    for address in [target, refers].into_iter().flatten() {
        out.write_all(&address.address.to_le_bytes())?;
    }
    out.write_all(mnemonic.as_bytes())?;
    out.write_all(operands.as_bytes())
}

/// Writes the end of a reply, with the error if the code was not decoded.
///
/// # Errors
/// Fails if writing fails.
pub(super) fn write_end(out: &mut impl Write, error: Option<&str>) -> io::Result<()> {
    let error = error.unwrap_or_default().as_bytes();
    let error = &error[..error.len().min(255)];
    out.write_all(&[0, error.len() as u8])?;
    out.write_all(error)
}

/// Reads the reply to a request: the instructions, or the error of the process.
///
/// # Errors
/// Fails if reading fails. Returns `InvalidData` if the reply does not fit the request.
pub(super) fn read_reply(
    input: &mut impl Read,
    code: &CodeRequest<'_>,
) -> io::Result<Result<Vec<Instruction>, String>> {
    let mut all = Vec::new();
    let mut at = 0;
    let mut text_left = MOST_TEXT * code.bytes.len();
    loop {
        let [size, second] = array(input)?;
        if size == 0 && second > 0 {
            return Ok(Err(text(input, second.into())?));
        }
        if size == 0 {
            let is_complete = at == code.bytes.len() || code.is_first_only;
            return if is_complete { Ok(Ok(all)) } else { Err(invalid()) };
        }
        let end = at + usize::from(size);
        let bytes = code.bytes.get(at..end).filter(|_| u64::from(size) <= LONGEST_INSTRUCTION);
        let bytes = bytes.filter(|_| !code.is_first_only || at == 0).ok_or_else(invalid)?;
        let flow = *FLOWS.get(usize::from(second & !(HAS_TARGET | HAS_REFERENCE))).ok_or_else(invalid)?;
        let lengths: [u8; 2] = array(input)?;
        let lengths = lengths.map(usize::from);
        text_left = text_left.checked_sub(lengths.iter().sum()).ok_or_else(invalid)?;
        let mut address = |flag| match second & flag {
            0 => Ok(None),
            _ => Ok::<_, io::Error>(Some(InstructionTarget {
                address: u64::from_le_bytes(array(input)?),
                name: None,
            })),
        };
        let (target, refers) = (address(HAS_TARGET)?, address(HAS_REFERENCE)?);
        let mnemonic = text(input, lengths[0])?.into();
        let operands = text(input, lengths[1])?.into();
        let start = code.start.wrapping_add(at as u64);
        all.push(Instruction {
            address: start,
            bytes: bytes.into(),
            mnemonic,
            operands,
            flow,
            target,
            refers,
        });
        at = end;
    }
}

fn invalid() -> io::Error {
    io::ErrorKind::InvalidData.into()
}

fn array<const SIZE: usize>(input: &mut impl Read) -> io::Result<[u8; SIZE]> {
    let mut bytes = [0; SIZE];
    input.read_exact(&mut bytes)?;
    Ok(bytes)
}

/// Reads a text of printable ASCII characters.
fn text(input: &mut impl Read, length: usize) -> io::Result<String> {
    let mut bytes = vec![0; length];
    input.read_exact(&mut bytes)?;
    let is_printable = bytes.iter().all(|byte| matches!(byte, b' '..=b'~'));
    String::from_utf8(bytes).ok().filter(|_| is_printable).ok_or_else(invalid)
}

#[cfg(test)]
mod tests {
    use super::*;

    const CODE: CodeRequest<'static> = CodeRequest {
        machine: InstructionSet::X86_64,
        syntax: Syntax::Intel,
        start: u64::MAX - 1,
        bytes: &[0x90, 0x48, 0x8d, 0x05, 0x10, 0, 0, 0, 0xe8, 0, 0, 0, 0],
        is_first_only: false,
    };

    fn reply(mut bytes: &[u8], code: &CodeRequest<'_>) -> io::Result<Result<Vec<Instruction>, String>> {
        read_reply(&mut bytes, code)
    }

    #[test]
    fn requests_and_replies_arrive_unchanged() {
        let mut message = Vec::new();
        add_request(&mut message, &CODE);
        assert_eq!(message.len(), size(&CODE));
        let mut bytes = Vec::new();
        assert_eq!(read_request(&mut &message[..], &mut bytes).unwrap(), Some(CODE));
        assert_eq!(read_request(&mut &[][..], &mut bytes).unwrap(), None);
        assert!(read_request(&mut &message[..message.len() - 1], &mut bytes).is_err());

        let at = |address| Some(InstructionTarget { address, name: None });
        let instruction = |from: usize, to: usize, flow| Instruction {
            address: CODE.start.wrapping_add(from as u64),
            bytes: CODE.bytes[from..to].into(),
            mnemonic: "word".into(),
            operands: format!("{from},[rip+{to:#x}]").into(),
            flow,
            ..Instruction::default()
        };
        let sent = [
            instruction(0, 1, Flow::Next),
            Instruction { refers: at(7), ..instruction(1, 8, Flow::Jump) },
            Instruction { target: at(u64::MAX), refers: at(0), ..instruction(8, 13, Flow::Return) },
        ];
        let mut bytes = Vec::new();
        sent.iter().for_each(|instruction| write_instruction(&mut bytes, instruction).unwrap());
        let unfinished = bytes.len();
        write_end(&mut bytes, None).unwrap();
        assert_eq!(reply(&bytes, &CODE).unwrap().unwrap(), sent);
        for end in 0..bytes.len() {
            assert!(reply(&bytes[..end], &CODE).is_err(), "{end}");
        }
        bytes.truncate(unfinished);
        write_end(&mut bytes, Some("no memory")).unwrap();
        assert_eq!(reply(&bytes, &CODE).unwrap().unwrap_err(), "no memory");
    }

    #[test]
    fn replies_that_do_not_fit_the_code_are_refused() {
        let first = CodeRequest { is_first_only: true, ..CODE };
        let whole = CodeRequest { bytes: &CODE.bytes[..2], ..CODE };
        assert!(reply(&[0, 0], &first).unwrap().unwrap().is_empty());
        assert_eq!(reply(&[1, 0, 1, 0, b'x', 0, 0], &first).unwrap().unwrap().len(), 1);
        assert_eq!(reply(&[2, 0, 1, 0, b'x', 0, 0], &whole).unwrap().unwrap().len(), 1);
        let refused: &[(&[u8], &CodeRequest<'_>, &str)] = &[
            (&[0, 0], &whole, "nothing"),
            (&[1, 0, 1, 0, b'x', 0, 0], &whole, "a part"),
            (&[3, 0, 1, 0, b'x', 0, 0], &whole, "more than the code"),
            (&[1, 0, 1, 0, b'x', 1, 0, 1, 0, b'x', 0, 0], &first, "a second instruction"),
            (&[2, 16, 1, 0, b'x', 0, 0], &whole, "an unknown flag"),
            (&[2, 0, 1, 0, b'\n', 0, 0], &whole, "a control character"),
            (&[2, 0, 0, 2, 0xc2, 0x9b, 0, 0], &whole, "a control character in UTF-8"),
            (&[2, 0, 1, 0, 0xff, 0, 0], &whole, "no UTF-8"),
            (&[0, 1, 0x1b], &whole, "an error with a control character"),
        ];
        for (bytes, code, what) in refused {
            let error = reply(bytes, code).expect_err(what);
            assert_eq!(error.kind(), io::ErrorKind::InvalidData, "{what}");
        }
        let long = [[2, 0, 120, 9].as_slice(), &[b'x'; 129], &[0, 0]].concat();
        assert_eq!(reply(&long, &whole).unwrap_err().kind(), io::ErrorKind::InvalidData);
    }

    #[test]
    fn longest_instruction_is_a_limit() {
        let code = CodeRequest { bytes: &[0x66; 20], ..CODE };
        assert!(reply(&[15, 0, 1, 0, b'x', 5, 0, 1, 0, b'x', 0, 0], &code).unwrap().is_ok());
        assert!(reply(&[16, 0, 1, 0, b'x', 4, 0, 1, 0, b'x', 0, 0], &code).is_err());
    }

    /// Arbitrary replies neither panic nor yield unprintable text.
    #[test]
    fn arbitrary_replies_are_refused_or_printable() {
        let mut dice = 0x2026_1127_u64;
        let mut next = || {
            dice = dice.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (dice >> 33) as u32
        };
        let mut accepted = 0;
        for _ in 0..200_000 {
            let bytes: Vec<u8> =
                (0..next() % 24).map(|_| (next() % 12) as u8 * (next() % 11) as u8).collect();
            let code = CodeRequest { is_first_only: next() % 2 == 0, bytes: &CODE.bytes[..3], ..CODE };
            let Ok(Ok(all)) = reply(&bytes, &code) else { continue };
            accepted += 1;
            assert!(all.iter().map(|one| one.bytes.len()).sum::<usize>() <= code.bytes.len());
            let texts = all.iter().flat_map(|one| [&one.mnemonic, &one.operands]);
            assert!(texts.flat_map(|text| text.chars()).all(|c| matches!(c, ' '..='~')));
        }
        assert!(accepted > 1000, "{accepted}");
    }
}
