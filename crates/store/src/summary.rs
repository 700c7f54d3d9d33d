//! What a line of a table needs of a record. The rest of the record, all samples of both ends, is skipped: to understand it
//! took nearly all of the time of a long export.

use goodput_model::{DirectionResult, EndName};
use serde::Deserialize;

use crate::compat::{Head, knows};
use crate::error::RecordError;
use crate::figures::Figures;

/// A record in short.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Summary {
    /// Its numbers.
    pub figures: Figures,
    /// Why it is only a part, if it is.
    pub incomplete: Option<String>,
}

/// These fields of a record.
#[derive(Deserialize)]
struct Fields {
    format: u32,
    result: Result,
    verdict: Verdict,
    #[serde(default)]
    incomplete: Option<String>,
}

#[derive(Deserialize)]
struct Result {
    directions: Vec<DirectionResult>,
}

#[derive(Deserialize)]
struct Verdict {
    sender: EndName,
}

impl Summary {
    /// That of the record in `json`. What is skipped may be no part of a record, as long as it is JSON.
    ///
    /// Errors: as those of [`crate::read_record`].
    pub(crate) fn read(json: &str) -> std::result::Result<Self, RecordError> {
        let fields: Fields = serde_json::from_str(json).map_err(|why| refused(json, why))?;
        knows(fields.format)?;
        Ok(Self {
            figures: Figures::of_directions(&fields.result.directions, fields.verdict.sender),
            incomplete: fields.incomplete,
        })
    }
}

/// Why it can't be read: a newer format may be the reason why a field is missing.
fn refused(json: &str, why: serde_json::Error) -> RecordError {
    if json.trim().is_empty() {
        return RecordError::Empty;
    }
    let head: serde_json::Result<Head> = serde_json::from_str(json);
    let newer = head.ok().and_then(|head| knows(head.format).err());
    newer.unwrap_or_else(|| why.into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::read_record;

    const RECORD: &str = include_str!("../tests/golden/v1/test.json");

    #[test]
    fn it_has_what_the_whole_record_has() {
        let mut record = read_record(RECORD).unwrap();
        for incomplete in [None, Some("the budget was used up".to_owned())] {
            record.incomplete = incomplete.clone();
            let read = Summary::read(&record.to_json().unwrap()).unwrap();
            assert_eq!(read, Summary { figures: Figures::of(&record), incomplete });
            assert!(read.figures.received_bytes.is_some());
        }
    }

    #[test]
    fn what_is_no_record_is_refused_in_the_same_words() {
        let cut = &RECORD[..RECORD.len() / 2];
        let newer = RECORD.replacen("\"format\": 1", "\"format\": 99", 1);
        assert_ne!(newer, RECORD);
        for wrong in [cut, &newer, "{\"format\": 1}", "[]", ""] {
            let [short, whole] = [Summary::read(wrong).map(drop), read_record(wrong).map(drop)];
            let [short, whole] = [short, whole].map(|read| read.unwrap_err().to_string());
            let same = |text: &str| text.split(" at ").next().map(str::to_owned);
            // Of what lacks everything, another field is missed first.
            assert!(same(&short) == same(&whole) || wrong.contains("1}"), "{short} | {whole}");
        }
    }
}
