//! Checks JSON documents against the schemas in `docs/schemas`.
#![allow(dead_code, unreachable_pub, reason = "each test program uses its own part of the kit")]
#![allow(clippy::unwrap_used, reason = "a test that cannot go on ends there")]

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Value as Json, json};

/// Returns the folder of the schemas.
pub fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/schemas")
}

/// Returns a schema, by the name of its file.
pub fn schema(name: &str) -> Json {
    serde_json::from_slice(&fs::read(folder().join(format!("{name}.json"))).unwrap()).unwrap()
}

/// Whether a value has a type of JSON Schema.
fn is_of(value: &Json, kind: &str) -> bool {
    match kind {
        "null" => value.is_null(),
        "boolean" => value.is_boolean(),
        "integer" => value.is_i64() || value.is_u64(),
        "number" => value.is_number(),
        "string" => value.is_string(),
        "array" => value.is_array(),
        "object" => value.is_object(),
        other => panic!("the schema has an unknown type {other}"),
    }
}

/// Returns the first place in which a value does not follow a schema. Understands the keywords that the schemas
/// use, and panics for others, so that nothing stays unchecked.
pub fn fault(root: &Json, schema: &Json, value: &Json, place: &str) -> Option<String> {
    for (keyword, rule) in schema.as_object().unwrap() {
        let list = || rule.as_array().unwrap().iter();
        let follows = match keyword.as_str() {
            "$schema" | "$defs" | "title" | "description" => true,
            "$ref" => {
                let target = rule.as_str().unwrap().strip_prefix('#').unwrap();
                let found = fault(root, root.pointer(target).unwrap(), value, place);
                if found.is_some() {
                    return found;
                }
                true
            }
            "anyOf" => list().any(|one| fault(root, one, value, place).is_none()),
            "const" => value == rule,
            "enum" => list().any(|one| one == value),
            "type" => match rule {
                Json::String(kind) => is_of(value, kind),
                _ => list().any(|kind| is_of(value, kind.as_str().unwrap())),
            },
            "required" => value
                .as_object()
                .is_none_or(|object| list().all(|name| object.contains_key(name.as_str().unwrap()))),
            "items" => {
                let items = value.as_array().into_iter().flatten().enumerate();
                let found = items.map(|(at, one)| fault(root, rule, one, &format!("{place}/{at}")));
                if let Some(found) = found.flatten().next() {
                    return Some(found);
                }
                true
            }
            "properties" | "additionalProperties" => {
                let known = &schema["properties"];
                for (name, one) in value.as_object().into_iter().flatten() {
                    let rule = match (keyword == "properties", known.get(name)) {
                        (true, Some(rule)) => rule,
                        (false, None) => rule,
                        _ => continue,
                    };
                    let place = format!("{place}/{name}");
                    if rule == &json!(false) {
                        return Some(format!("{place}: the schema has no such field"));
                    }
                    if let Some(found) = fault(root, rule, one, &place) {
                        return Some(found);
                    }
                }
                true
            }
            other => panic!("the schema has an unknown keyword {other}"),
        };
        if !follows {
            return Some(format!("{place}: {keyword} {rule}: {value}"));
        }
    }
    None
}

/// Returns a document, which must follow the schema in the file with this name.
#[track_caller]
pub fn document(name: &str, text: &str) -> Json {
    let schema = schema(name);
    let document: Json = serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {text}"));
    if let Some(fault) = fault(&schema, &schema, &document, "") {
        panic!("{name}: {fault}");
    }
    document
}
