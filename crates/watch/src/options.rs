//! The options of a test as names and values, to see which ones changed.

use std::collections::BTreeMap;

use goodput_model::Plan;
use serde_json::Value;

/// Options by their place in the plan: `length.bytes`, `socket.congestion`.
pub(crate) type Options = BTreeMap<String, String>;

/// Options that show nothing of the path: the intervals that are kept, and whether the far end's own output is asked for.
pub(crate) const UNSEEN: [&str; 2] = ["interval_s", "peer_output"];

/// Whether an option is this one, or a part of it.
pub(crate) fn belongs(name: &str, option: &str) -> bool {
    name.strip_prefix(option).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
}

/// Every option that is given.
pub(crate) fn given(plan: &Plan) -> Options {
    // A plan is data, which JSON can hold.
    collected(&serde_json::to_value(plan).unwrap_or_default())
}

/// Everything with a value in some JSON, by its place.
pub(crate) fn collected(json: &Value) -> Options {
    let mut all = Options::new();
    collect("", json, &mut all);
    all
}

fn collect(place: &str, value: &Value, all: &mut Options) {
    let mut put = |text: String| all.insert(place.to_owned(), text);
    match value {
        Value::Null => {}
        Value::String(text) => drop(put(text.clone())),
        Value::Object(fields) => {
            for (name, value) in fields {
                let dot = if place.is_empty() { "" } else { "." };
                collect(&format!("{place}{dot}{name}"), value, all);
            }
        }
        other => drop(put(other.to_string())),
    }
}
