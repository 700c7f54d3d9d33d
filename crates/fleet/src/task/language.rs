//! What all messages of a fleet have in common: their version, and what their names may be.

use goodput_model::is_plain;
use serde::de::DeserializeOwned;

/// Version of what coordinator and agents say to each other. It grows when an older one would misunderstand.
pub const FORMAT: u32 = 2;

/// Longest id of a task, bytes: it is a word of subjects and the name of a file.
const MAX_ID_BYTES: usize = 128;
/// Longest text of a message, characters.
const MAX_TEXT_CHARS: usize = 300;

pub(super) fn from_json<T: DeserializeOwned>(json: &[u8]) -> Result<T, String> {
    serde_json::from_slice(json).map_err(|why| format!("not understood: {why}"))
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
