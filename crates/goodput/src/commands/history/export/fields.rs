//! Fields of a line.

use goodput_store::Traffic;

use crate::report::style::plain;

/// Transport, direction and flows; empty if an older goodput kept the result.
pub fn measured_with(traffic: Option<&Traffic>) -> [String; 3] {
    traffic.map_or_else(Default::default, |Traffic { transport, direction, flows }| {
        [transport.clone(), direction.clone(), flows.to_string()]
    })
}

/// A text as a field (RFC 4180, section 2) that stays in its line.
pub fn field(text: &str) -> String {
    let text = plain(text);
    match text.contains([',', '"']) {
        true => format!("\"{}\"", text.replace('"', "\"\"")),
        false => text,
    }
}
