//! Messages of goodput's own protocol as JSON: whatever is read has no text that paints a screen, takes
//! memory only as its length allows, and is read the same when it is said again.

use goodput_wire::protocols::goodput::messages::Message;

/// Takes any bytes.
pub fn run(data: &[u8]) {
    let Ok(message) = Message::read(data) else { return };
    let said = serde_json::to_value(&message).expect("what was read can be said");
    plain(&said);
    // Numbers beyond JSON, such as an infinity, are said as null, which is no number.
    if let Ok(again) = Message::read(said.to_string().as_bytes()) {
        assert_eq!(serde_json::to_value(&again).expect("as before"), said);
    }
}

/// Every text and every key is fit for a terminal.
fn plain(json: &serde_json::Value) {
    use serde_json::Value::{Array, Object, String};
    match json {
        String(text) => fit(text),
        Array(items) => items.iter().for_each(plain),
        Object(members) => members.iter().for_each(|(key, member)| {
            fit(key);
            plain(member);
        }),
        _ => {}
    }
}

fn fit(text: &str) {
    let paints = |c: char| c.is_control() && c != '\t' || ('\u{202a}'..='\u{202e}').contains(&c);
    assert!(!text.contains(paints), "{text:?}");
}
