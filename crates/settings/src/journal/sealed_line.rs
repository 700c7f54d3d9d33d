//! A line of a journal: a JSON object whose last member is a checksum of the members before it. A damaged value can be
//! valid JSON, and must not be written back as if it were the original.

use serde::Serialize;
use serde::de::DeserializeOwned;
use sha2::{Digest, Sha256};

/// Begins the checksum.
const BEGIN: &[u8] = b",\"sum\":\"";
/// Ends the checksum and the object.
const END: &[u8] = b"\"}";
/// Length of the kept digest: enough against accidental changes.
const CHECKSUM_BYTES: usize = 4;

/// Writes an object with at least one member as a line, with the line's end.
///
/// # Errors
/// If `object` can't be written as JSON.
pub(crate) fn seal(object: &impl Serialize) -> serde_json::Result<Vec<u8>> {
    let mut line = serde_json::to_vec(object)?;
    // The end of the object moves behind the checksum.
    line.pop();
    let sum = checksum(&line);
    line.extend([BEGIN, sum.as_bytes(), END, b"\n"].concat());
    Ok(line)
}

/// Reads a line without its end; `None` if it is damaged. Lines of earlier versions have no checksum.
pub(super) fn unseal<T: DeserializeOwned>(line: &[u8]) -> Option<T> {
    let is_whole = sealed(line).is_none_or(|(members, sum)| sum == checksum(members).as_bytes());
    serde_json::from_slice(line).ok().filter(|_| is_whole)
}

/// The members of an object, and their checksum; `None` if it has no checksum.
fn sealed(line: &[u8]) -> Option<(&[u8], &[u8])> {
    let rest = line.strip_suffix(END)?;
    let (rest, sum) = rest.split_at_checked(rest.len().checked_sub(2 * CHECKSUM_BYTES)?)?;
    Some((rest.strip_suffix(BEGIN)?, sum))
}

fn checksum(members: &[u8]) -> String {
    let digest = Sha256::digest(members);
    digest.iter().take(CHECKSUM_BYTES).map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::{Value, json};

    #[test]
    fn a_line_without_a_checksum_is_read_as_before() {
        assert_eq!(unseal::<Value>(br#"{"line":"begin"}"#), Some(json!({"line": "begin"})));
        assert_eq!(unseal::<Value>(b"{\"line\":"), None);
        assert_eq!(unseal::<Value>(b""), None);
    }

    proptest! {
        #[test]
        fn what_was_sealed_is_read_and_a_changed_value_is_noticed(value in "[0-9]{1,9}", place: prop::sample::Index) {
            let line = seal(&json!({"original": value})).unwrap();
            let line = line.strip_suffix(b"\n").unwrap();
            let read: Value = unseal(line).unwrap();
            prop_assert_eq!(&read["original"], &json!(value));
            let digit = br#"{"original":""#.len() + place.index(value.len());
            let mut damaged = line.to_vec();
            damaged[digit] = if damaged[digit] == b'9' { b'1' } else { b'9' };
            prop_assert_eq!(unseal::<Value>(&damaged), None);
        }
    }
}
