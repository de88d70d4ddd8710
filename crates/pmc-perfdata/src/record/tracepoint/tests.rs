//! Prints payloads with a small format file: conversions, macros, names, and missing data.

use super::*;

const SWITCH: &str = r#"name: sched_switch
ID: 372
format:
	field:unsigned short common_type;	offset:0;	size:2;	signed:0;
	field:int common_pid;	offset:4;	size:4;	signed:1;

	field:char comm[16];	offset:8;	size:16;	signed:0;
	field:int prio;	offset:24;	size:4;	signed:1;
	field:__data_loc char[] path;	offset:28;	size:4;	signed:0;
	field:const void * call_site;	offset:32;	size:8;	signed:0;

print fmt: "%s %03d %s%s|%s at %pS" " %-4x|", REC->comm, REC->prio, (REC->prio & 3) ? __print_flags(REC->prio & 7, "|", { 1, "A" }, { 0x2, "B" }) : "R", REC->prio > 0 ? "+" : "", __get_str(path), (void *)REC->call_site, (u8)((REC->prio) >> 1)
"#;

fn printed(format: &TracepointFormat, payload: Payload<'_>, names: KernelNames<'_>) -> String {
    let mut line = String::new();
    format.print(payload, names, &mut line);
    line
}

fn payload() -> Vec<u8> {
    let mut bytes = vec![0; 40];
    bytes[8..12].copy_from_slice(b"bash");
    bytes[24..28].copy_from_slice(&7i32.to_ne_bytes());
    bytes[28..32].copy_from_slice(&(40u32 | 5 << 16).to_ne_bytes());
    bytes[32..40].copy_from_slice(&0x1234u64.to_ne_bytes());
    bytes.extend(b"/tmp\0");
    bytes
}

#[test]
fn payload_is_printed_by_its_format() {
    let format = TracepointFormat::parse("sched", SWITCH).expect("it parses");
    assert!(format.is_printable());
    let bytes = payload();
    let payload = Payload { bytes: &bytes, is_byte_swapped: false };
    let named = |address: u64| (address == 0x1234).then(|| ("here".to_owned(), 4));
    assert_eq!(
        printed(&format, payload, KernelNames { code: &named, texts: None }),
        "bash 007 A|B|0x4+|/tmp at here+0x4 3   |"
    );
    assert_eq!(format.field("prio").and_then(|f| payload.number_in(f)), Some(7));
}

#[test]
fn single_field_is_printed_like_in_the_line() {
    let line = r#"print fmt: "%%x comm=%s old_prio=%0*d prio=%s%s path=%s", REC->comm, 4, REC->prio, __print_flags(REC->prio & 7, "|", { 1, "A" }, { 0x2, "B" }), "+ and", __get_str(path)"#;
    let text = format!("{}{line}\n", &SWITCH[..SWITCH.find("print fmt").unwrap()]);
    let format = TracepointFormat::parse("sched", &text).expect("it parses");
    let bytes = payload();
    let payload = Payload { bytes: &bytes, is_byte_swapped: false };
    let whole = printed(&format, payload, KernelNames::NONE);
    assert_eq!(whole, "%x comm=bash old_prio=0007 prio=A|B|0x4+ and path=/tmp");
    let field = |name| format.print_field(name, payload, KernelNames::NONE);
    assert_eq!(field("comm").as_deref(), Some("bash"));
    assert_eq!(field("prio").as_deref(), Some("A|B|0x4+"), "not old_prio");
    assert_eq!(field("path").as_deref(), Some("/tmp"));
    assert_eq!(field("call_site").as_deref(), Some("0x1234"), "the line does not name it");
    assert_eq!(field("nothing"), None);
}

#[test]
fn fields_that_cannot_be_evaluated_are_printed_by_name() {
    let format = TracepointFormat::parse("sched", &SWITCH.replace("__get_str", "secret")).expect("it parses");
    assert!(!format.is_printable());
    let bytes = payload();
    let payload = Payload { bytes: &bytes, is_byte_swapped: false };
    assert_eq!(printed(&format, payload, KernelNames::NONE), "comm=bash prio=7 path=/tmp call_site=0x1234");
    // A payload that is too short has no values, but is not an error.
    let short = Payload { bytes: &bytes[..20], is_byte_swapped: false };
    assert_eq!(printed(&format, short, KernelNames::NONE), "comm= prio= path= call_site=");
}

#[test]
fn byte_swapped_numbers_are_read() {
    let format = TracepointFormat::parse("sched", SWITCH).expect("it parses");
    let mut bytes = payload();
    bytes[24..28].copy_from_slice(&(-5i32).to_ne_bytes().map(u8::reverse_bits).map(u8::reverse_bits));
    bytes[24..28].reverse();
    let payload = Payload { bytes: &bytes, is_byte_swapped: true };
    assert_eq!(format.field("prio").and_then(|f| payload.number_in(f)), Some(-5));
}

#[test]
fn deep_and_long_expressions_terminate() {
    let deep = format!("{}1{}", "(".repeat(100_000), ")".repeat(100_000));
    let format = SWITCH.replace("REC->comm,", &format!("{deep},"));
    assert!(!TracepointFormat::parse("sched", &format).expect("it parses").is_printable());
}

#[test]
fn conversions_match_printf() {
    let cases = [
        (
            r#""%d|%5d|%-5d|%05d|%+d", REC->prio, REC->prio, REC->prio, REC->prio, REC->prio"#,
            "7|    7|7    |00007|+7",
        ),
        (r#""%d|%5d|%05d|%u", -REC->prio, -REC->prio, -REC->prio, -REC->prio"#, "-7|   -7|-0007|4294967289"),
        (r#""%x|%#x|%08lx|%#X|%hhx", -1, 10, 10, 10, 511"#, "ffffffff|0xa|0000000a|0XA|ff"),
        (r#""%o|%#o|%.3d|%6.3d|%c|%%", 8, 8, 7, 7, 65"#, "10|010|007|   007|A|%"),
        (r#""%*d|%-*d|%.*s", 4, 7, 4, 7, 2, REC->comm"#, "   7|7   |ba"),
        (r#""%6s|%-6s|%.2s", REC->comm, REC->comm, REC->comm"#, "  bash|bash  |ba"),
        (
            r#""%p|%18px|%pK", REC->call_site, REC->call_site, REC->call_site"#,
            "0x1234|            0x1234|0x1234",
        ),
        (r#""%40d", 7"#, "                                       7"),
        // If a conversion is unknown or lacks its argument, the whole line becomes a list of fields.
        (r#""x=%d %d", 1"#, "comm=bash prio=7 path=/tmp call_site=0x1234"),
        (r#""x=%d %pbl", 1, 2"#, "comm=bash prio=7 path=/tmp call_site=0x1234"),
    ];
    let bytes = payload();
    for (line, expected) in cases {
        let text = format!("{}print fmt: {line}\n", &SWITCH[..SWITCH.find("print fmt").unwrap()]);
        let format = TracepointFormat::parse("sched", &text).expect("it parses");
        let payload = Payload { bytes: &bytes, is_byte_swapped: false };
        assert_eq!(printed(&format, payload, KernelNames::NONE), expected, "{line}");
    }
}
