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
struct Head {
    format: u32,
}

/// The record in `json`, as `--json` prints it.
///
/// Errors: not JSON, not a record, or a format newer than this program knows.
pub fn read_record(json: &str) -> Result<Record, RecordError> {
    let head: Head = serde_json::from_str(json)?;
    match head.format {
        ..=FORMAT_VERSION => Ok(Record::from_json(json)?),
        found => Err(RecordError::Newer { found, known: FORMAT_VERSION }),
    }
}

/// Whether `head` and `tail`, the first and the last bytes of a text, can be those of a record that this program reads.
/// What is between can't be told.
pub(crate) fn glance(head: &[u8], tail: &[u8]) -> Result<(), RecordError> {
    let text = head.trim_ascii_start().strip_prefix(b"{").map(<[u8]>::trim_ascii_start);
    let value = text.and_then(|text| text.strip_prefix(b"\"format\""));
    let value = value.and_then(|value| value.trim_ascii_start().strip_prefix(b":"));
    let value = value.ok_or(RecordError::Damaged { part: "beginning" })?.trim_ascii_start();
    let digits = value.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let format = std::str::from_utf8(&value[..digits]).ok().and_then(|text| text.parse().ok());
    match format {
        None => Err(RecordError::Damaged { part: "beginning" }),
        Some(found) if found > FORMAT_VERSION => {
            Err(RecordError::Newer { found, known: FORMAT_VERSION })
        }
        Some(_) if !tail.trim_ascii_end().ends_with(b"}") => {
            Err(RecordError::Damaged { part: "end" })
        }
        Some(_) => Ok(()),
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
    fn a_glance_finds_newer_records_and_damaged_ends() {
        let whole = include_str!("../tests/golden/v1/test.json").as_bytes();
        let middle = whole.len() / 2;
        let seen = |head: &[u8], tail: &[u8]| glance(head, tail).map_err(|why| why.to_string());
        assert_eq!(seen(whole, whole), Ok(()));
        assert_eq!(seen(b"{\"format\": 1, ", b"} \n"), Ok(()));
        let why = seen(br#"{"format":99,"#, b"}").unwrap_err();
        assert!(why.contains("format 99"), "{why}");
        let cut = &whole[..middle];
        assert!(seen(cut, cut.trim_ascii_end().strip_suffix(b"}").unwrap_or(cut)).is_err());
        for head in ["", "nonsense", "{\"format\":x", "{\"started\":1}", "{\"format\":99999999999}"]
        {
            assert!(seen(head.as_bytes(), b"}").is_err(), "{head}");
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
