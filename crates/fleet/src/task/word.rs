//! Names of sites as words of the bus.

/// Longest word, bytes. A file system bounds it: nats-server names a directory after each consumer, and the longest name
/// of a file has 255 bytes (NAME_MAX, limits.h).
const MAX_BYTES: usize = 200;

/// A name as one word of a subject, of a key and of a consumer's name. Letters, digits, `-` and `_` stay. Each other byte
/// becomes `=` and two hexadecimal digits: NATS gives `.`, `*`, `>` and blanks a meaning, and keys have no others. No two
/// names become the same word.
///
/// # Errors
/// The name is empty or too long, in words.
pub fn word(name: &str) -> Result<String, String> {
    let plain = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
    let part = |byte: u8| match plain(&byte) {
        true => char::from(byte).to_string(),
        false => format!("={byte:02X}"),
    };
    let word: String = name.bytes().map(part).collect();
    match word.len() {
        0 => Err("the name of a site is empty".into()),
        1..=MAX_BYTES => Ok(word),
        _ => Err(format!("the name {name:?} is too long for NATS; use at most 60 characters")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_word_is_the_name_without_what_nats_gives_a_meaning() {
        assert_eq!(word("site-A_1"), Ok("site-A_1".into()));
        assert_eq!(word("a.b*>=ä"), Ok("a=2Eb=2A=3E=3D=C3=A4".into()));
        assert!(word("").is_err() && word(&"ä".repeat(61)).is_err());
        assert!(word(&"a".repeat(200)).is_ok());
    }

    proptest! {
        #[test]
        fn no_two_names_are_one_word(one in ".{1,30}", two in ".{1,30}") {
            if let (Ok(first), Ok(second)) = (word(&one), word(&two)) {
                prop_assert_eq!(first == second, one == two);
                let fits = |c: char| c.is_ascii_alphanumeric() || "-_=".contains(c);
                prop_assert!(first.chars().all(fits));
            }
        }
    }
}
