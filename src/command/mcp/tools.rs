//! The tools of `pmc mcp`: their names, descriptions and parameters.
//!
//! One table describes the tools to the client ([`descriptions`]) and checks the arguments of a call
//! ([`read`]), so that the two always agree. Checked arguments become a [`ToolCall`], with one struct per
//! tool.

use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value as Json, json};

use super::recordings::{
    DiffArguments, HotArguments, LocksArguments, SourceArguments, TimelineArguments, TreeArguments,
    WaitsArguments,
};
use super::runs::{RecordArguments, StatCompareArguments};

use pmc_sys::error::{Error, Result};
use pmc_text::text::{clean, nearest};
use pmc_view::agent::LEAST_BYTES;

/// Default size of an answer in bytes: four kibibytes.
const USUAL_BYTES: usize = 4 << 10;
/// Maximum size of an answer in bytes.
const MOST_BYTES: u64 = 64 << 10;

/// A call of a tool, with its arguments.
#[derive(Debug)]
pub(super) enum ToolCall {
    Doctor,
    Record(RecordArguments),
    StatCompare(StatCompareArguments),
    Hot(HotArguments),
    Tree(TreeArguments),
    Source(SourceArguments),
    Waits(WaitsArguments),
    Locks(LocksArguments),
    Diff(DiffArguments),
    Timeline(TimelineArguments),
}

/// The arguments that select a part of the answer, which every tool has.
#[derive(Debug, Deserialize)]
pub(super) struct PageArguments {
    /// Index of the first row.
    #[serde(default)]
    pub(super) offset: usize,
    /// Maximum number of rows.
    #[serde(default = "all_rows")]
    pub(super) limit: usize,
    /// Maximum size of the answer in bytes.
    #[serde(default = "usual_bytes")]
    pub(super) limit_bytes: usize,
}

fn all_rows() -> usize {
    usize::MAX
}

fn usual_bytes() -> usize {
    USUAL_BYTES
}

/// The type of an argument.
#[derive(Debug, Clone, Copy)]
enum ParameterKind {
    Text,
    /// An integer from the first number to the second.
    Integer(u64, u64),
    /// A number from the first to the second.
    Number(f64, f64),
    Flag,
    /// One of these words.
    Choice(&'static [&'static str]),
    /// A list of these words.
    Choices(&'static [&'static str]),
    /// A list of words.
    Words,
    /// A list of lists of words.
    Lists,
}

/// A parameter of a tool.
struct ToolParameter {
    name: &'static str,
    kind: ParameterKind,
    about: &'static str,
}

/// A row of the table of tools.
pub(super) struct ToolRow {
    name: &'static str,
    about: &'static str,
    parameters: &'static [ToolParameter],
    required: &'static [&'static str],
    /// Whether the tool runs commands or writes files.
    pub(super) acts: bool,
    /// Converts checked arguments.
    call: fn(&Json) -> serde_json::Result<ToolCall>,
}

const fn parameter(name: &'static str, kind: ParameterKind, about: &'static str) -> ToolParameter {
    ToolParameter { name, kind, about }
}

const KEY_NAMES: &[&str] = &["process", "command", "module", "function", "line", "tid", "cpu"];
/// Keys that two recordings can have in common.
const DIFF_KEY_NAMES: &[&str] = &["command", "module", "function"];

const RECORDING: ToolParameter =
    parameter("recording", ParameterKind::Text, "Path of a perf.data file; default perf.data");
const EVENT: ToolParameter =
    parameter("event", ParameterKind::Text, "Name of the event; default: the first event with samples");
const COMMAND_FILTER: ToolParameter =
    parameter("command", ParameterKind::Text, "Only threads with this name");
const TID_FILTER: ToolParameter =
    parameter("tid", ParameterKind::Integer(0, i32::MAX as u64), "Only the thread with this ID");
/// Parameters of every tool, which select rows and limit the answer.
const PAGING: [ToolParameter; 3] = [
    parameter("offset", ParameterKind::Integer(0, u32::MAX as u64), "Index of the first row; default 0"),
    parameter("limit", ParameterKind::Integer(1, u32::MAX as u64), "Maximum number of rows"),
    parameter(
        "limit_bytes",
        ParameterKind::Integer(LEAST_BYTES as u64, MOST_BYTES),
        "Maximum size of the answer as JSON; default 4 KiB",
    ),
];

static TOOLS: &[ToolRow] = &[
    ToolRow {
        name: "doctor",
        about: "Report what this machine can measure, why other measurements fail, how to enable them, and \
                whether this server may record.",
        parameters: &[],
        required: &[],
        acts: false,
        call: |_| Ok(ToolCall::Doctor),
    },
    ToolRow {
        name: "record",
        about: "Sample a command, or a running process of this user, into a recording. Give either command or \
                pid. Requires pmc mcp --allow-record.",
        parameters: &[
            parameter(
                "command",
                ParameterKind::Words,
                "The program and its arguments; no shell interprets them",
            ),
            parameter("pid", ParameterKind::Integer(1, i32::MAX as u64), "A running process of this user"),
            parameter(
                "seconds",
                ParameterKind::Number(0.001, 86_400.0),
                "Stop after this time; ends the command",
            ),
            parameter("output", ParameterKind::Text, "File to write; default perf.data"),
            parameter(
                "event",
                ParameterKind::Text,
                "Event to sample; default cycles or cpu-clock, with wall or locks cpu-clock",
            ),
            parameter("frequency", ParameterKind::Integer(1, 100_000), "Samples per second and CPU"),
            parameter(
                "stacks",
                ParameterKind::Choice(&["auto", "fp", "dwarf", "none"]),
                "How to record callers; default auto",
            ),
            parameter(
                "wall",
                ParameterKind::Flag,
                "Also record the time that threads wait, for the tool waits",
            ),
            parameter(
                "wakers",
                ParameterKind::Flag,
                "Also record which thread ends each wait; requires wall, and usually root",
            ),
            parameter(
                "locks",
                ParameterKind::Flag,
                "Also record waits for user-space locks, for the tool locks; usually requires root",
            ),
        ],
        required: &[],
        acts: true,
        call: |all| filled(all, ToolCall::Record),
    },
    ToolRow {
        name: "stat_compare",
        about: "Run commands in turn, several times each, and compare time and event counts with the first \
                command, with a significance test. Requires pmc mcp --allow-record.",
        parameters: &[
            parameter(
                "commands",
                ParameterKind::Lists,
                "Two or more commands: lists of a program and its arguments",
            ),
            parameter("runs", ParameterKind::Integer(2, 1000), "Runs of each command; default 5"),
            parameter("events", ParameterKind::Words, "Events to count; default: pmc's default events"),
        ],
        required: &["commands"],
        acts: true,
        call: |all| filled(all, ToolCall::StatCompare),
    },
    ToolRow {
        name: "hot",
        about: "Find the costliest functions, lines, modules, commands, threads or CPUs, by time or another \
                event. percent: own cost; total_percent: including callees.",
        parameters: &[
            RECORDING,
            EVENT,
            parameter(
                "by",
                ParameterKind::Choices(KEY_NAMES),
                "What distinguishes rows; default: process, module, function. command is the name of the thread",
            ),
            parameter("function", ParameterKind::Text, "Only functions whose name contains this"),
            COMMAND_FILTER,
            TID_FILTER,
        ],
        required: &[],
        acts: false,
        call: |all| filled(all, ToolCall::Hot),
    },
    ToolRow {
        name: "tree",
        about: "Show the call tree, or the callees or callers of one function. Rows are nodes in preorder; depth \
                gives the nesting.",
        parameters: &[
            RECORDING,
            EVENT,
            parameter("function", ParameterKind::Text, "Full name of the function at the root"),
            parameter("direction", ParameterKind::Choice(&["callees", "callers"]), "Default callees"),
            parameter("min_percent", ParameterKind::Number(0.0, 100.0), "Omit smaller branches; default 1"),
            COMMAND_FILTER,
            TID_FILTER,
        ],
        required: &[],
        acts: false,
        call: |all| filled(all, ToolCall::Tree),
    },
    ToolRow {
        name: "source",
        about: "Show the sampled source lines or instructions of one function, costliest first, and in \
                called_from the lines that call it.",
        parameters: &[
            RECORDING,
            EVENT,
            parameter("function", ParameterKind::Text, "Name of the function; default: the costliest"),
            parameter("module", ParameterKind::Text, "Name or path of the function's module"),
            parameter("rows", ParameterKind::Choice(&["lines", "instructions"]), "Default lines"),
        ],
        required: &[],
        acts: false,
        call: |all| filled(all, ToolCall::Source),
    },
    ToolRow {
        name: "waits",
        about: "Show what threads waited for (mutex, disk, socket, ...), in which function and line, how long, \
                and which thread ended the wait. Requires a recording with wall.",
        parameters: &[
            RECORDING,
            parameter("idle", ParameterKind::Flag, "Include threads that only wait for work"),
            COMMAND_FILTER,
            TID_FILTER,
        ],
        required: &[],
        acts: false,
        call: |all| filled(all, ToolCall::Waits),
    },
    ToolRow {
        name: "locks",
        about: "Show the user-space locks for which threads waited, longest first, and which threads held them \
                meanwhile, with the function and line of the release. Requires a recording with locks.",
        parameters: &[RECORDING],
        required: &[],
        acts: false,
        call: |all| filled(all, ToolCall::Locks),
    },
    ToolRow {
        name: "diff",
        about: "Compare two recordings: the share of each function before and after, and whether the difference \
                exceeds sampling noise.",
        parameters: &[
            parameter("before", ParameterKind::Text, "Path of the first recording"),
            parameter("after", ParameterKind::Text, "Path of the second recording"),
            EVENT,
            parameter(
                "by",
                ParameterKind::Choices(DIFF_KEY_NAMES),
                "What distinguishes rows; default: module, function",
            ),
        ],
        required: &["before", "after"],
        acts: false,
        call: |all| filled(all, ToolCall::Diff),
    },
    ToolRow {
        name: "timeline",
        about: "Show the samples over time, with the costliest function of each time slice. Slices without \
                samples are omitted.",
        parameters: &[
            RECORDING,
            EVENT,
            parameter("slices", ParameterKind::Integer(1, 1000), "Number of time slices; default 20"),
            COMMAND_FILTER,
            TID_FILTER,
        ],
        required: &[],
        acts: false,
        call: |all| filled(all, ToolCall::Timeline),
    },
];

impl ParameterKind {
    /// Returns the JSON schema of the type.
    fn schema(self) -> Json {
        let words = json!({"type": "array", "items": {"type": "string"}, "minItems": 1});
        match self {
            Self::Text => json!({"type": "string"}),
            Self::Integer(least, most) => json!({"type": "integer", "minimum": least, "maximum": most}),
            Self::Number(least, most) => json!({"type": "number", "minimum": least, "maximum": most}),
            Self::Flag => json!({"type": "boolean"}),
            Self::Choice(all) => json!({"type": "string", "enum": all}),
            Self::Choices(all) => {
                json!({"type": "array", "items": {"type": "string", "enum": all}, "minItems": 1})
            }
            Self::Words => words,
            Self::Lists => json!({"type": "array", "items": words, "minItems": 2}),
        }
    }

    /// Whether a value has this type.
    fn takes(self, value: &Json) -> bool {
        let are_all = |takes: &dyn Fn(&Json) -> bool, least: usize| {
            value.as_array().is_some_and(|all| all.len() >= least && all.iter().all(takes))
        };
        match self {
            Self::Text => value.is_string(),
            Self::Integer(least, most) => {
                value.as_u64().is_some_and(|number| (least..=most).contains(&number))
            }
            Self::Number(least, most) => {
                value.as_f64().is_some_and(|number| (least..=most).contains(&number))
            }
            Self::Flag => value.is_boolean(),
            Self::Choice(all) => value.as_str().is_some_and(|word| all.contains(&word)),
            Self::Choices(all) => are_all(&|one| Self::Choice(all).takes(one), 1),
            Self::Words => are_all(&Json::is_string, 1),
            Self::Lists => are_all(&|one| Self::Words.takes(one), 2),
        }
    }

    /// Describes the type for an error.
    fn words(self) -> String {
        let list = |all: &[&str]| all.join(", ");
        match self {
            Self::Text => "a string".to_owned(),
            Self::Integer(least, most) => format!("an integer from {least} to {most}"),
            Self::Number(least, most) => format!("a number from {least} to {most}"),
            Self::Flag => "true or false".to_owned(),
            Self::Choice(all) => format!("one of {}", list(all)),
            Self::Choices(all) => format!("a list of one or more of {}", list(all)),
            Self::Words => "a list of one or more strings".to_owned(),
            Self::Lists => "a list of two or more lists of strings".to_owned(),
        }
    }
}

impl ToolRow {
    fn parameters(&self) -> impl Iterator<Item = &ToolParameter> {
        self.parameters.iter().chain(&PAGING)
    }
}

/// Returns the tools in the format of `tools/list`.
pub(super) fn descriptions() -> Json {
    let tools = TOOLS.iter().map(|tool| {
        let properties: Map<String, Json> = tool
            .parameters()
            .map(|parameter| {
                let mut schema = parameter.kind.schema();
                schema["description"] = parameter.about.into();
                (parameter.name.to_owned(), schema)
            })
            .collect();
        json!({
            "name": tool.name,
            "description": tool.about,
            "inputSchema": {
                "type": "object",
                "properties": properties,
                "required": tool.required,
                "additionalProperties": false,
            },
            "annotations": {"readOnlyHint": !tool.acts, "destructiveHint": tool.acts, "openWorldHint": false},
        })
    });
    tools.collect()
}

/// Returns the tool with this name.
pub(super) fn named(name: &str) -> Option<&'static ToolRow> {
    TOOLS.iter().find(|tool| tool.name == name)
}

/// Checks the arguments of a tool, and converts them.
///
/// # Errors
/// Fails if an argument is unknown, missing, or of another type.
pub(super) fn read(row: &ToolRow, all: &Map<String, Json>) -> Result<(ToolCall, PageArguments)> {
    for (name, value) in all {
        let Some(parameter) = row.parameters().find(|parameter| parameter.name == name) else {
            let names: Vec<&str> = row.parameters().map(|parameter| parameter.name).collect();
            let near = nearest(name, names.iter().copied(), 2);
            let list = if near.is_empty() { names.join(", ") } else { near.join(" or ") };
            return Err(Error::usage(format!("unknown argument {:?}", clean(name))).try_this(list));
        };
        if !parameter.kind.takes(value) {
            return Err(Error::usage(format!("{name}: must be {}", parameter.kind.words())));
        }
    }
    if let Some(name) = row.required.iter().find(|name| !all.contains_key(**name)) {
        return Err(Error::usage(format!("the argument {name} is missing")));
    }
    let all = Json::Object(all.clone());
    let call = (row.call)(&all).and_then(|call| Ok((call, PageArguments::deserialize(&all)?)));
    call.map_err(|error| Error::usage(format!("invalid arguments: {error}")))
}

/// Fills the struct of a tool's arguments. It ignores those of other structs; the table has checked all
/// names.
fn filled<A: DeserializeOwned>(all: &Json, call: fn(A) -> ToolCall) -> serde_json::Result<ToolCall> {
    A::deserialize(all).map(call)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(tool: &str, arguments: &Json) -> Result<()> {
        read(named(tool).unwrap(), arguments.as_object().unwrap()).map(|_| ())
    }

    #[test]
    fn arguments_are_checked_against_the_table() {
        for good in [
            json!({}),
            json!({"recording": "a", "by": ["module", "line"], "offset": 3, "limit_bytes": 65536}),
            json!({"tid": 0, "limit": 1}),
        ] {
            check("hot", &good).unwrap();
        }
        for (bad, words) in [
            (json!({"recordng": "a"}), "recording"),
            (json!({"recording": 3}), "a string"),
            (json!({"by": ["colour"]}), "one or more of process, command"),
            (json!({"by": []}), "one or more"),
            (json!({"offset": -1}), "from 0 to"),
            (json!({"offset": 1.5}), "an integer"),
            (json!({"limit_bytes": 100}), "from 1024 to 65536"),
        ] {
            let error = check("hot", &bad).unwrap_err().to_string();
            assert!(error.contains(words), "{error}");
        }
        assert!(check("diff", &json!({"before": "a"})).unwrap_err().to_string().contains("after"));
        for bad in [json!(["true"]), json!([["a"]]), json!([["a"], []]), json!([["a"], "b"])] {
            assert!(check("stat_compare", &json!({"commands": bad})).is_err(), "{bad}");
        }
    }

    #[test]
    fn every_tool_is_described_and_found() {
        let all = descriptions();
        assert_eq!(all.as_array().unwrap().len(), TOOLS.len());
        for tool in all.as_array().unwrap() {
            assert!(named(tool["name"].as_str().unwrap()).is_some());
            assert_eq!(tool["inputSchema"]["properties"]["limit_bytes"]["maximum"], MOST_BYTES);
            for required in tool["inputSchema"]["required"].as_array().unwrap() {
                assert!(tool["inputSchema"]["properties"].get(required.as_str().unwrap()).is_some());
            }
        }
    }

    #[test]
    fn structs_take_every_value_that_the_table_describes() {
        let example = |kind: ParameterKind| -> Vec<Json> {
            let words = |all: &[&str]| all.iter().map(|word| json!(word)).collect();
            match kind {
                ParameterKind::Text => vec![json!("x")],
                ParameterKind::Integer(least, most) => vec![json!(least), json!(most)],
                ParameterKind::Number(least, most) => vec![json!(least), json!(most), json!(1)],
                ParameterKind::Flag => vec![json!(true), json!(false)],
                ParameterKind::Choice(all) => words(all),
                ParameterKind::Choices(all) => vec![json!(all)],
                ParameterKind::Words => vec![json!(["a", "b"])],
                ParameterKind::Lists => vec![json!([["a"], ["b"]])],
            }
        };
        for tool in TOOLS {
            let of = |parameter: &&ToolParameter| tool.required.contains(&parameter.name);
            let required = tool.parameters().filter(of);
            let least: Map<String, Json> =
                required.map(|one| (one.name.to_owned(), example(one.kind).remove(0))).collect();
            read(tool, &least).unwrap();
            for parameter in tool.parameters() {
                for value in example(parameter.kind) {
                    let mut all = least.clone();
                    all.insert(parameter.name.to_owned(), value);
                    read(tool, &all).unwrap_or_else(|error| panic!("{} {all:?}: {error}", tool.name));
                }
            }
        }
    }
}
