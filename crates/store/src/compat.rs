//! Reads records of every format that ever existed.
//!
//! A new format gets an arm in [`read_record`] that converts the old one, and files of the old
//! format stay in `tests/golden/` for good.

use goodput_model::Record;
use goodput_model::record::FORMAT_VERSION;
use serde::Deserialize;

use crate::error::RecordError;

/// The part that is read before the format is known.
#[derive(Deserialize)]
pub(crate) struct Head {
    pub(crate) format: u32,
}

/// The record in `json`, as `--json` prints it.
///
/// Errors: nothing, not JSON, not a record, or a format newer than this program knows.
pub fn read_record(json: &str) -> Result<Record, RecordError> {
    if json.trim().is_empty() {
        return Err(RecordError::Empty);
    }
    let head: Head = serde_json::from_str(json)?;
    knows(head.format)?;
    Ok(Record::from_json(json)?)
}

/// Whether this program reads records of the format `found`.
pub(crate) fn knows(found: u32) -> Result<(), RecordError> {
    match found {
        ..=FORMAT_VERSION => Ok(()),
        found => Err(RecordError::Newer { found, known: FORMAT_VERSION }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_newer_format_is_named_and_not_guessed() {
        let error = read_record(r#"{"format": 2, "whatever": []}"#).unwrap_err();
        let text = error.to_string();
        assert!(text.contains("format 2") && text.contains("newer goodput"), "{text}");
    }

    #[test]
    fn blank_lines_are_empty() {
        for blank in ["", "\n\n", " \r\n"] {
            let why = read_record(blank).unwrap_err().to_string();
            assert_eq!(why, "it is not a goodput record: it is empty", "{blank:?}");
        }
    }

    proptest! {
        #[test]
        fn any_text_is_a_record_or_an_error(text in ".{0,200}") {
            let _ = read_record(&text);
        }

        #[test]
        fn a_record_cut_short_is_an_error(share in 0.0f64..1.0) {
            let whole = include_str!("../tests/golden/v1/test.json").trim_end();
            let mut cut = (whole.len() as f64 * share) as usize;
            while !whole.is_char_boundary(cut) {
                cut -= 1;
            }
            prop_assert!(read_record(&whole[..cut]).is_err());
        }
    }
}
