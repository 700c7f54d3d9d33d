//! Masks of CPUs as /sys writes them: hexadecimal words separated by commas, the highest first (lib/vsprintf.c
//! `bitmap_string`).

use super::ParseError;

/// More words than any kernel's mask has (8192 CPUs take 256).
const MAX_WORDS: usize = 1024;

/// How many CPUs are in the mask; `file` is for the error.
pub fn count(file: &str, text: &str) -> Result<u64, ParseError> {
    let broken = || ParseError::new("a mask of CPUs", format!("{file}: {text:?}"));
    let words: Vec<&str> = text.trim().split(',').take(MAX_WORDS + 1).collect();
    if words.len() > MAX_WORDS {
        return Err(ParseError::new("a mask of CPUs", format!("{file} is too long")));
    }
    let each = words.into_iter().map(|word| {
        let hexadecimal = word.bytes().all(|byte| byte.is_ascii_hexdigit());
        let value = u32::from_str_radix(word, 16).ok().filter(|_| hexadecimal);
        value.map(|value| u64::from(value.count_ones())).ok_or_else(broken)
    });
    each.sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn words_add_up() {
        assert_eq!(count("t", "f\n"), Ok(4));
        assert_eq!(count("t", "00000001,ffffffff\n"), Ok(33));
        assert_eq!(count("t", "0\n"), Ok(0));
        for wrong in ["", "g", "+1", "1,,1", "123456789"] {
            assert!(count("t", wrong).is_err(), "{wrong:?}");
        }
    }

    proptest! {
        #[test]
        fn no_text_makes_it_panic(text in "[0-9a-fx,+ \n]{0,40}") {
            let _ = count("t", &text);
        }
    }
}
