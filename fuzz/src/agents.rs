//! What an AI agent sends to `pmc mcp`: lines of JSON-RPC, with hostile arguments for the tools, which read
//! small recordings.

use std::sync::Once;

use pmc::command::answer_mcp;
use serde_json::{Value as Json, json};

use crate::mutation::{Random, bytes};

/// Size of an answer in bytes if the call does not set one.
const USUAL: u64 = 4 << 10;
/// Sizes that a call can set.
const SETTABLE: std::ops::RangeInclusive<u64> = 1 << 10..=64 << 10;

/// Recordings of the target's folder, by the names that the messages use.
const RECORDINGS: [(&str, &str); 6] = [
    ("perf.data", "simpleperf-132.data"),
    ("wall.data", "pmc-wall.data"),
    ("archive.data", "made-archive.data"),
    ("accesses.data", "made-accesses.data"),
    ("dwarf.data", "perf6-dwarf.data"),
    ("group.data", "perf6-group.data"),
];

/// Enters a folder with the recordings, and nothing else.
fn enter_folder() {
    static ENTERED: Once = Once::new();
    ENTERED.call_once(|| {
        let corpus = crate::source("fuzz/corpus/recording");
        let folder = tempfile::tempdir().expect("a temporary folder").keep();
        for (name, seed) in RECORDINGS {
            std::fs::copy(corpus.join(seed), folder.join(name)).expect("a seed can be copied");
        }
        std::env::set_current_dir(folder).expect("the new folder");
    });
}

/// Passes the input to the server, one line after the other, and checks the answers.
pub fn messages(data: &[u8]) {
    enter_folder();
    for line in data.split_inclusive(|byte| *byte == b'\n').take(16) {
        let mut output = Vec::new();
        answer_mcp(&mut &line[..], &mut output).expect("streams in memory do not fail");
        check(line, &output);
    }
}

/// Checks the answer to a line: at most one line of JSON without control characters, of limited size.
fn check(line: &[u8], output: &[u8]) {
    let Some(answer) = output.strip_suffix(b"\n") else {
        return assert!(output.is_empty(), "an answer ends with a line feed");
    };
    let text = str::from_utf8(answer).expect("an answer is UTF-8");
    assert!(!text.contains(char::is_control), "{text:?}");
    let answer: Json = serde_json::from_str(text).expect("an answer is JSON");
    let asked: Json = serde_json::from_slice(line).unwrap_or_default();
    match (&answer, &asked) {
        (Json::Array(answers), Json::Array(asked)) => {
            assert!(!answers.is_empty() && answers.len() <= asked.len());
            answers.iter().for_each(|answer| check_message(answer, *SETTABLE.end()));
        }
        _ => {
            let limit = asked["params"]["arguments"]["limit_bytes"].as_u64();
            let limit = limit.filter(|limit| SETTABLE.contains(limit)).unwrap_or(USUAL);
            check_message(&answer, limit);
            let is_request = answer["id"].is_string() || answer["id"].is_number();
            assert!(!is_request || answer["id"] == asked["id"], "{text}");
        }
    }
}

fn check_message(answer: &Json, limit: u64) {
    assert_eq!(answer["jsonrpc"], "2.0", "{answer}");
    assert!(answer["result"].is_object() != answer["error"].is_object(), "{answer}");
    let document = &answer["result"]["structuredContent"];
    if document.is_null() {
        return;
    }
    let text = answer["result"]["content"][0]["text"].as_str().expect("the text of an answer");
    assert!(text.len() as u64 <= limit, "{} of {limit} bytes: {text}", text.len());
    assert_eq!(serde_json::from_str::<Json>(text).expect("the text is JSON"), *document);
    check_strings(document);
    if answer["result"]["isError"] == json!(false) {
        assert!(document["rows"].is_array() != document["error"].is_string(), "{document}");
    }
}

/// Checks that no string in a document has control characters, even escaped ones. Answers are not deep.
fn check_strings(document: &Json) {
    let mut open = vec![document];
    while let Some(value) = open.pop() {
        match value {
            Json::String(text) => assert!(!text.contains(char::is_control), "{text:?}"),
            Json::Array(all) => open.extend(all),
            Json::Object(all) => {
                assert!(all.keys().all(|name| !name.contains(char::is_control)), "{all:?}");
                open.extend(all.values());
            }
            _ => {}
        }
    }
}

/// Values that no tool expects.
const HOSTILE: [&str; 16] = [
    "null",
    "-1",
    "0",
    "1e308",
    "18446744073709551615",
    "0.1",
    "[]",
    "{}",
    "[[[[]]]]",
    r#""""#,
    r#""/dev/zero""#,
    r#""/proc/self/mem""#,
    r#""wall.data""#,
    r#""\u001b[31m\u202e\u0000\n""#,
    r#"["function","line","tid","cpu","module","command","time"]"#,
    r#"["",""]"#,
];

/// Names of tools and arguments.
const NAMES: [&str; 20] = [
    "hot",
    "tree",
    "source",
    "diff",
    "timeline",
    "doctor",
    "recording",
    "event",
    "by",
    "function",
    "command",
    "tid",
    "direction",
    "min_percent",
    "module",
    "rows",
    "slices",
    "offset",
    "limit",
    "limit_bytes",
];

/// Changes values of a message, or bytes.
pub fn mutate(input: &mut Vec<u8>, max: usize, random: &mut Random) {
    let mut lines: Vec<Vec<u8>> = input.split(|byte| *byte == b'\n').map(<[u8]>::to_vec).collect();
    let number = random.below(lines.len());
    let parsed = serde_json::from_slice::<Json>(&lines[number]);
    let Some(mut message) = parsed.ok().filter(|_| random.below(8) > 0) else {
        return bytes(input, max, random);
    };
    for _ in 0..1 + random.below(4) {
        change(&mut message, random);
    }
    lines[number] = message.to_string().into_bytes();
    *input = lines.join(&b'\n');
    input.truncate(max);
}

/// Changes a value in the message, which is found by a random walk.
fn change(message: &mut Json, random: &mut Random) {
    let mut value = message;
    loop {
        let stays = random.below(4) == 0;
        match value {
            Json::Object(fields) if stays || fields.is_empty() => {
                let name = random.pick(&NAMES).to_owned();
                fields.insert(name, hostile(random));
                return;
            }
            Json::Array(all) if stays || all.is_empty() => {
                let one = all.first().cloned().unwrap_or_else(|| hostile(random));
                all.resize(1 + random.below(100), one);
                return;
            }
            Json::Object(fields) => {
                let number = random.below(fields.len());
                value = fields.values_mut().nth(number).expect("it is below the length");
            }
            Json::Array(all) => {
                let number = random.below(all.len());
                value = &mut all[number];
            }
            Json::String(text) if random.below(2) == 0 => {
                let mut changed = text.clone().into_bytes();
                bytes(&mut changed, 1 << 12, random);
                *text = String::from_utf8_lossy(&changed).into_owned();
                return;
            }
            _ => {
                *value = hostile(random);
                return;
            }
        }
    }
}

fn hostile(random: &mut Random) -> Json {
    match random.below(6) {
        0 => random.word().into(),
        1 => (random.word() % 100_000).into(),
        2 => random.pick(&NAMES).into(),
        3 => random.pick(&RECORDINGS).0.into(),
        _ => serde_json::from_str(random.pick(&HOSTILE)).expect("it is JSON"),
    }
}
