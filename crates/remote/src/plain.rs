//! A host's text, made safe for a screen: nothing in it can forge a line, repaint the screen or reverse the writing
//! direction.

use goodput_model::plain_char;

/// Lines of a host's output, without anything that a terminal would act on. Line breaks and tabs stay.
pub(crate) fn lines(text: &str) -> String {
    text.chars().map(|c| if c == '\n' { c } else { plain_char(c) }).collect()
}

/// The same on one line, for a message. Lines that only draw a frame are left out.
pub(crate) fn one_line(text: &str) -> String {
    let lines = text.split(['\n', '\r']).map(str::trim);
    let lines = lines.filter(|line| line.chars().any(char::is_alphanumeric));
    lines.collect::<Vec<_>>().join(" ").chars().map(plain_char).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn nothing_repaints_the_screen() {
        assert_eq!(
            lines("a\x1b[2Jb\u{9b}31m\u{202e}\tc\nd\r\n"),
            "a\u{fffd}[2Jb\u{fffd}31m\u{fffd}\tc\nd\u{fffd}\n"
        );
        assert_eq!(
            one_line("@@@@@\r\n@ WARNING @\r\nIt is\x07 bad.\n"),
            "@ WARNING @ It is\u{fffd} bad."
        );
    }

    proptest! {
        #[test]
        fn any_text_becomes_one_line(text in any::<String>()) {
            prop_assert!(!one_line(&text).chars().any(|c| c.is_control() && c != '\t'));
        }
    }
}
