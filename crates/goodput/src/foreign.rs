//! Records that another machine wrote, as they may go into the history of this one.

use anyhow::{Result, bail};
use goodput_model::{Record, plain_char};
use goodput_store::read_record;
use jiff::Timestamp;

/// A record that another machine wrote, with texts that change no screen.
///
/// # Errors
/// It is none, or its time is none: lists go by it.
pub fn foreign(json: &str) -> Result<Record> {
    let record = read_record(json)?;
    let time = record.started.parse::<Timestamp>();
    if time.is_err() || !record.started.ends_with('Z') {
        bail!(
            "the record began at {:?}, which is no time in UTC like 2026-01-31T12:00:00Z",
            record.started
        );
    }
    let json = record.to_json()?;
    let clean = plain_json(&json);
    Ok(if clean == json { record } else { read_record(&clean)? })
}

/// The JSON with texts that change no screen: of what is not a character to read, only ends of lines stay, which lines of
/// a file have.
pub fn plain_json(json: &str) -> String {
    let mut clean = String::with_capacity(json.len());
    let mut chars = json.chars();
    while let Some(c) = chars.next() {
        match c {
            '\\' => match chars.next() {
                Some(kept @ ('"' | '\\' | '/' | 't' | 'n')) => clean.extend(['\\', kept]),
                // A control character, by four digits or by a letter.
                Some('u') => clean.extend(chars.nth(3).map(|_| char::REPLACEMENT_CHARACTER)),
                _ => clean.push(char::REPLACEMENT_CHARACTER),
            },
            // Between the texts.
            '\n' => clean.push(c),
            _ => clean.push(plain_char(c)),
        }
    }
    clean
}
