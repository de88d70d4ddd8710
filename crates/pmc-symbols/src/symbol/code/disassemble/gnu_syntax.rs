//! Converts x86 instructions to the syntax of GNU objdump, which perf shows and users know.
//!
//! Takes an instruction as printed by capstone; returns it as printed by objdump. The differences are
//! systematic:
//!
//! ```text
//!   capstone                     objdump
//!   addq $1, %rsi                add    $0x1,%rsi          no size suffix with a register; hex numbers
//!   cmpl $-1, 8(%rsp)            cmpl   $0xffffffff,0x8(%rsp)
//!   nopl (%rax, %rax)            nopl   0x0(%rax,%rax,1)   displacement as encoded; the scale is written
//!   mov rax, qword ptr [rdi + 8] mov    rax,QWORD PTR [rdi+0x8]
//! ```

use std::borrow::Cow;
use std::fmt::Write;

/// An instruction as printed by capstone.
pub(super) struct CapstoneText<'a> {
    /// The mnemonic without a size suffix, such as `mov`.
    pub(super) base: &'a str,
    /// The prefixes and mnemonic, such as `lock addl`.
    pub(super) mnemonic: &'a str,
    pub(super) operands: &'a str,
    /// The encoded bytes.
    pub(super) bytes: &'a [u8],
    /// Whether its memory operand has an encoded displacement, even if it is 0.
    pub(super) has_displacement: bool,
}

/// Returns the mnemonic and operands as `objdump -d` prints them.
pub(super) fn att(words: &CapstoneText<'_>) -> (String, String) {
    let &CapstoneText { base, mnemonic, operands, bytes, has_displacement } = words;
    let (prefixes, operation) = mnemonic.rsplit_once(' ').unwrap_or(("", mnemonic));
    let mut operands: Vec<&str> = split(operands).collect();
    let suffix = operation.strip_prefix(base);
    let size = match suffix {
        Some("b") => Some(1),
        Some("w") => Some(2),
        Some("l") => Some(4),
        Some("q") => Some(8),
        _ => None,
    };
    let is_shift = matches!(base, "shl" | "shr" | "sal" | "sar" | "rol" | "ror" | "rcl" | "rcr");
    if is_shift && bytes.iter().any(|byte| matches!(byte, 0xd0 | 0xd1)) && operands.first() == Some(&"$1") {
        operands.remove(0);
    }
    // A shift's count operand does not determine the operand size.
    let count = usize::from(is_shift && operands.len() > 1);
    let is_told = STACK_OR_FLOW.contains(&base)
        || operands[count..].iter().any(|operand| register_bytes(operand).is_some());
    let operation = if size.is_some() && is_told { base } else { operation };
    // The code of `xabort` is one byte.
    let size = size.or((base == "xabort").then_some(1));
    let size = size.or_else(|| operands.last().and_then(|last| register_bytes(last))).unwrap_or(8);
    let mut written: Vec<String> =
        operands.iter().map(|operand| att_operand(operand, size, has_displacement)).collect();
    let operation = rewritten(operation, bytes, &mut written);
    let mnemonic =
        if prefixes.is_empty() { operation.into_owned() } else { format!("{prefixes} {operation}") };
    (mnemonic, written.join(","))
}

/// Rewrites operations that objdump prints in a special way: padding, strings, and the x87 register stack.
fn rewritten<'a>(operation: &'a str, bytes: &[u8], operands: &mut Vec<String>) -> Cow<'a, str> {
    if bytes == [0x66, 0x90] {
        operands.extend(["%ax".to_owned(), "%ax".to_owned()]);
        return "xchg".into();
    }
    if operation == "nopw" && operands.first().is_some_and(|first| first.starts_with("%cs:")) {
        operands[0].drain(.."%cs:".len());
        return long_nop(operation, bytes).into();
    }
    let is_string = |operand: &String| matches!(operand.as_str(), "(%rdi)" | "(%rsi)");
    if operands.iter().any(is_string) && operation.len() == 5 {
        let (name, size) = operation.split_at(4);
        if matches!(name, "stos" | "lods" | "movs" | "scas" | "cmps") && "bwlq".contains(size) {
            for operand in operands.iter_mut().filter(|operand| is_string(operand)) {
                let segment = if operand == "(%rdi)" { "%es:" } else { "%ds:" };
                operand.insert_str(0, segment);
            }
            let is_told = operands.iter().any(|operand| register_bytes(operand).is_some());
            return if is_told { name } else { operation }.into();
        }
    }
    if operands.len() == 1 && operands[0].starts_with("%st(") {
        match operation {
            "faddp" | "fmulp" | "fsubp" | "fsubrp" | "fdivp" | "fdivrp" => {
                operands.insert(0, "%st".to_owned())
            }
            "fcomi" | "fucomi" | "fcompi" | "fucompi" => operands.push("%st".to_owned()),
            "fadd" | "fmul" | "fsub" | "fsubr" | "fdiv" | "fdivr" if bytes[0] == 0xd8 => {
                operands.push("%st".to_owned());
            }
            _ => {}
        }
    }
    match operation {
        "fcompi" => "fcomip".into(),
        "fucompi" => "fucomip".into(),
        "wait" => "fwait".into(),
        _ => operation.into(),
    }
}

/// Returns a padding instruction with its redundant prefixes. One operand-size prefix is part of the
/// operation itself.
fn long_nop(operation: &str, bytes: &[u8]) -> String {
    let sizes = bytes.iter().take_while(|byte| **byte == 0x66).count();
    format!("{}cs {operation}", "data16 ".repeat(sizes.saturating_sub(1)))
}

/// Operations whose operand has a fixed size in 64-bit code.
const STACK_OR_FLOW: [&str; 10] =
    ["call", "enter", "iret", "jmp", "leave", "lcall", "ljmp", "pop", "push", "ret"];

/// Returns the size of a general-purpose register in bytes; `None` for other operands.
fn register_bytes(operand: &str) -> Option<u32> {
    let name = operand.strip_prefix('%')?;
    let is_numbered = |rest: &str| rest.starts_with(|c: char| c.is_ascii_digit());
    if let Some(rest) = name.strip_prefix('r') {
        return match rest.chars().last()? {
            'd' if is_numbered(rest) => Some(4),
            'w' if is_numbered(rest) => Some(2),
            'b' if is_numbered(rest) => Some(1),
            _ => (rest != "ip" && !rest.contains('(')).then_some(8),
        };
    }
    match name {
        "eax" | "ebx" | "ecx" | "edx" | "esi" | "edi" | "ebp" | "esp" => Some(4),
        "ax" | "bx" | "cx" | "dx" | "si" | "di" | "bp" | "sp" => Some(2),
        "al" | "bl" | "cl" | "dl" | "ah" | "bh" | "ch" | "dh" | "sil" | "dil" | "bpl" | "spl" => Some(1),
        _ => None,
    }
}

fn att_operand(operand: &str, bytes: u32, has_displacement: bool) -> String {
    if let Some(number) = operand.strip_prefix('$') {
        return signed(number)
            .map_or_else(|| operand.to_owned(), |value| format!("${:#x}", value & ones(bytes)));
    }
    // Most operands are registers.
    if operand.starts_with('%') && !operand.contains([' ', ':', '(']) {
        return operand.to_owned();
    }
    // objdump puts no space before masks.
    let operand = match operand.contains(" {") {
        true => Cow::Owned(operand.replace(" {", "{")),
        false => Cow::Borrowed(operand),
    };
    let (before, inside) =
        operand.split_once('(').map_or((&*operand, None), |(before, inside)| (before, Some(inside)));
    let start = before.rfind([':', '*']).map_or(0, |at| at + 1);
    let (segment, displacement) = before.split_at(start);
    let mut written = String::with_capacity(operand.len() + "0x(,1)".len());
    written.push_str(segment);
    let _ = match signed(displacement) {
        // Only a displacement from a register has a sign. A bare address is unsigned.
        Some(value) if (value as i64) < 0 && inside.is_some() => {
            write!(written, "-{:#x}", (value as i64).unsigned_abs())
        }
        Some(value) => write!(written, "{value:#x}"),
        None if displacement.is_empty() && has_displacement && inside.is_some() => written.write_str("0x0"),
        None => written.write_str(displacement),
    };
    let Some((inside, rest)) = inside.and_then(|inside| inside.split_once(')')) else { return written };
    written.push('(');
    for (number, part) in inside.split(", ").enumerate() {
        if number > 0 {
            written.push(',');
        }
        written.push_str(part);
    }
    written.push_str(if inside.matches(", ").count() == 1 { ",1)" } else { ")" });
    written.push_str(rest);
    written
}

/// Returns a mask for the lowest bytes.
fn ones(bytes: u32) -> u64 {
    u64::MAX >> (64 - 8 * bytes)
}

/// Parses a signed number into two's complement.
fn signed(text: &str) -> Option<u64> {
    let (text, is_negative) = text.strip_prefix('-').map_or((text, false), |rest| (rest, true));
    let value = match text.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16).ok()?,
        None => text.parse().ok()?,
    };
    Some(if is_negative { value.wrapping_neg() } else { value })
}

/// Splits operands at the commas outside of brackets.
fn split(operands: &str) -> impl Iterator<Item = &str> {
    let mut depth = 0_usize;
    let is_end = move |c: char| {
        match c {
            '(' | '[' => depth += 1,
            ')' | ']' => depth = depth.saturating_sub(1),
            _ => {}
        }
        c == ',' && depth == 0
    };
    operands.split(is_end).map(str::trim).filter(|operand| !operand.is_empty())
}

/// Returns the mnemonic and operands as `objdump -d -M intel` prints them, except for some x87 and string
/// operations.
pub(super) fn intel(words: &CapstoneText<'_>) -> (String, String) {
    if words.bytes == [0x66, 0x90] {
        return ("xchg".to_owned(), "ax,ax".to_owned());
    }
    let operands: Vec<&str> = split(words.operands).collect();
    let size = operands.first().and_then(|first| intel_bytes(first)).unwrap_or(8);
    let written: Vec<String> =
        operands.iter().map(|operand| intel_operand(operand, size, words.has_displacement)).collect();
    let operands = written.join(",");
    match (words.mnemonic, operands.split_once("cs:")) {
        ("nop", Some((size, place))) => (long_nop("nop", words.bytes), format!("{size}{place}")),
        _ => (words.mnemonic.to_owned(), operands),
    }
}

/// Returns the size of a register or memory operand in bytes.
fn intel_bytes(operand: &str) -> Option<u32> {
    match operand.split_once(" ptr ") {
        Some(("byte", _)) => Some(1),
        Some(("word", _)) => Some(2),
        Some(("dword", _)) => Some(4),
        Some(_) => Some(8),
        None => register_bytes(&format!("%{operand}")),
    }
}

fn intel_operand(operand: &str, bytes: u32, has_displacement: bool) -> String {
    if let Some(value) = signed(operand) {
        return format!("{:#x}", value & ones(bytes));
    }
    let operand = operand.replace(" {", "{");
    let Some((before, inside)) = operand.split_once('[') else { return operand };
    let (inside, rest) = inside.split_once(']').unwrap_or((inside, ""));
    let (size, segment) = before.split_once(" ptr ").unwrap_or(("", before));
    let size = match size {
        "" => String::new(),
        // x87 numbers are 10 bytes long.
        "xword" => "TBYTE PTR ".to_owned(),
        size => format!("{} PTR ", size.to_uppercase()),
    };
    let place = match signed(inside) {
        Some(address) if segment.is_empty() => format!("ds:{address:#x}"),
        Some(address) => format!("{segment}{address:#x}"),
        None => format!("{segment}[{}]", intel_place(inside, has_displacement)),
    };
    format!("{size}{place}{rest}")
}

/// Rewrites `rax + rcx - 8` to `rax+rcx*1-0x8`.
fn intel_place(inside: &str, has_displacement: bool) -> String {
    let (mut written, mut registers, mut has_number) = (String::new(), 0, false);
    for word in inside.split(' ') {
        match signed(word) {
            Some(number) => {
                has_number = true;
                written.push_str(&format!("{number:#x}"));
            }
            None if matches!(word, "+" | "-") => written.push_str(word),
            None => {
                registers += 1;
                written.push_str(word);
                if registers == 2 && !word.contains('*') {
                    written.push_str("*1");
                }
            }
        }
    }
    if has_displacement && !has_number {
        written.push_str("+0x0");
    }
    written
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(
        write: fn(&CapstoneText<'_>) -> (String, String),
        base: &str,
        text: &str,
        bytes: &[u8],
        has_displacement: bool,
    ) -> String {
        let (mnemonic, operands) = match text.find([' ', '\t']) {
            Some(at) if !text[..at].starts_with("rep") => text.split_at(at),
            _ => text.split_at(text.rfind("  ").unwrap_or(text.len())),
        };
        let words = CapstoneText { base, mnemonic, operands: operands.trim(), bytes, has_displacement };
        let (mnemonic, operands) = write(&words);
        format!("{mnemonic} {operands}").trim().to_owned()
    }

    #[test]
    fn att_syntax_matches_objdump() {
        for (base, text, bytes, has_displacement, expected) in [
            ("add", "addq $1, %rsi", &[][..], false, "add $0x1,%rsi"),
            ("cmp", "cmpl $-1, 8(%rsp)", &[], true, "cmpl $0xffffffff,0x8(%rsp)"),
            ("and", "andq $-0x10, %rsp", &[], false, "and $0xfffffffffffffff0,%rsp"),
            ("nop", "nopl (%rax, %rax)", &[], true, "nopl 0x0(%rax,%rax,1)"),
            ("nop", "nopw %cs:(%rax, %rax)", &[0x66, 0x66, 0x2e], true, "data16 cs nopw 0x0(%rax,%rax,1)"),
            ("nop", "nop", &[0x66, 0x90], false, "xchg %ax,%ax"),
            ("push", "pushq $8", &[], false, "push $0x8"),
            ("ret", "retq", &[], false, "ret"),
            ("jmp", "jmpq *-8(%rax, %rcx, 8)", &[], true, "jmp *-0x8(%rax,%rcx,8)"),
            ("mov", "movq %fs:0x28, %rax", &[], true, "mov %fs:0x28,%rax"),
            ("mov", "movq %fs:-8, %rax", &[], true, "mov %fs:0xfffffffffffffff8,%rax"),
            ("mov", "movq %fs:-8(%rax), %rcx", &[], true, "mov %fs:-0x8(%rax),%rcx"),
            ("mov", "movq %fs:-0x10(, %rcx, 8), %rcx", &[], true, "mov %fs:-0x10(,%rcx,8),%rcx"),
            ("movq", "movq %xmm0, %rax", &[], false, "movq %xmm0,%rax"),
            ("shl", "shlq %cl, (%rax)", &[0x48, 0xd3], false, "shlq %cl,(%rax)"),
            ("shr", "shrl $1, %eax", &[0xd1, 0xe8], false, "shr %eax"),
            ("stosd", "rep stosl  %eax, (%rdi)", &[0xf3, 0xab], false, "rep stos %eax,%es:(%rdi)"),
            ("fmulp", "fmulp %st(1)", &[0xde, 0xc9], false, "fmulp %st,%st(1)"),
            ("vpaddb", "vpaddb %ymm17, %ymm31, %ymm17 {%k5}", &[], false, "vpaddb %ymm17,%ymm31,%ymm17{%k5}"),
        ] {
            assert_eq!(written(att, base, text, bytes, has_displacement), expected, "{text}");
        }
    }

    #[test]
    fn intel_syntax_matches_objdump() {
        for (text, has_displacement, expected) in [
            ("mov rax, qword ptr [rdi + 8]", true, "mov rax,QWORD PTR [rdi+0x8]"),
            ("lea rdx, [r13 + r13*2]", true, "lea rdx,[r13+r13*2+0x0]"),
            ("movdqa xmm1, xmmword ptr [rsi + rcx]", false, "movdqa xmm1,XMMWORD PTR [rsi+rcx*1]"),
            ("mov rax, qword ptr fs:[0x28]", true, "mov rax,QWORD PTR fs:0x28"),
            ("cmp eax, -1", false, "cmp eax,0xffffffff"),
            ("fld xword ptr [rsp + 0x18]", true, "fld TBYTE PTR [rsp+0x18]"),
        ] {
            assert_eq!(written(intel, "", text, &[], has_displacement), expected, "{text}");
        }
    }
}
