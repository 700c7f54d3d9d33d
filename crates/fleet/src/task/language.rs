//! What all messages of a fleet have in common: their version, and what their names may be.

use goodput_model::is_plain;
use serde::de::DeserializeOwned;
use serde_json::error::Category;

/// Version of what coordinator and agents say to each other. It grows when an older one would misunderstand.
pub const FORMAT: u32 = 2;

/// Longest id of a task, bytes: it is a word of subjects and the name of a file.
const MAX_ID_BYTES: usize = 128;
/// Longest text of a message, characters.
const MAX_TEXT_CHARS: usize = 300;

/// Reads a message, or says in words why it is none.
pub(super) fn from_json<T: DeserializeOwned>(json: &[u8]) -> Result<T, String> {
    serde_json::from_slice(json).map_err(|why| match why.classify() {
        // A field that is missing or another one, with its name.
        Category::Data => format!("it is no message of this version of goodput ({why})"),
        Category::Syntax | Category::Eof | Category::Io => "it is no message of goodput".into(),
    })
}

pub(super) fn knows(format: u32, who: &str) -> Result<(), String> {
    if format == FORMAT {
        return Ok(());
    }
    Err(format!(
        "{who} speaks version {format} of the language of fleets, and this goodput version {FORMAT}; install the same \
         goodput on both"
    ))
}

/// Whether a text can name a task.
pub(super) fn is_id(text: &str) -> bool {
    let fits = |c: char| c.is_ascii_alphanumeric() || "-_".contains(c);
    (1..=MAX_ID_BYTES).contains(&text.len()) && text.chars().all(fits)
}

/// Whether a text can be shown, and is a name.
pub(super) fn is_name(text: &str) -> bool {
    (1..=MAX_TEXT_CHARS).contains(&text.chars().count()) && text.chars().all(is_plain)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde::Deserialize;

    #[derive(Debug, Deserialize)]
    struct Message {
        site: String,
    }

    #[test]
    fn what_is_no_message_is_said_in_words() {
        for garbage in [&b"poison"[..], b"", b"{\"site\":", b"\xff"] {
            let why = from_json::<Message>(garbage).unwrap_err();
            assert_eq!(why, "it is no message of goodput");
        }
        let why = from_json::<Message>(b"{}").unwrap_err();
        assert!(why.contains("no message of this version") && why.contains("`site`"), "{why}");
        assert_eq!(from_json::<Message>(br#"{"site":"a"}"#).unwrap().site, "a");
    }
}
