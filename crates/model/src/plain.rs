//! Untrusted text on a screen, in a log or in a page: a peer, a host or another user may have chosen it.

/// Whether a character shows as itself. A control character could forge a line or repaint the screen; a direction mark or an
/// invisible character could make the text look different. Tabs show: the kernel separates the numbers of a setting with
/// them.
pub fn is_plain(c: char) -> bool {
    let is_invisible = matches!(
        c,
        '\u{ad}'
            | '\u{61c}'
            | '\u{115f}'..='\u{1160}'
            | '\u{180e}'
            | '\u{200b}'..='\u{200f}'
            | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}'
            | '\u{3164}'
            | '\u{feff}'
            | '\u{fff9}'..='\u{fffb}'
            | '\u{e0000}'..='\u{e007f}'
    );
    c == '\t' || !(c.is_control() || is_invisible)
}

/// The character, or U+FFFD in place of one that does not show as itself.
pub fn plain_char(c: char) -> char {
    if is_plain(c) { c } else { char::REPLACEMENT_CHARACTER }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_forges_a_line_paints_a_screen_or_turns_the_text_is_replaced() {
        let evil = "a\nb\r\x1b[2J\u{9b}31m\u{202e}\u{2066}\u{61c}\u{e0041}\tc ä";
        let plain: String = evil.chars().map(plain_char).collect();
        let expected = "a?b??[2J?31m????\tc ä".replace('?', "\u{fffd}");
        assert_eq!(plain, expected);
    }
}
