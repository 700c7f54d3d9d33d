//! Wraps text for a terminal: a long line continues in the next one, indented to the column where its text began.

use crate::os_error::without_numbers;
use crate::report::style;

/// A continued line has at least this many columns; otherwise it starts at the left margin.
const MIN_TEXT_COLUMNS: usize = 30;

/// The text in lines of at most `columns`, or unchanged if this is `None`. Strong text (a command, a rate) is not
/// wrapped, so that it can be copied.
pub fn fit(text: &str, columns: Option<usize>) -> String {
    let text = without_numbers(text);
    let Some(columns) = columns else { return text.into() };
    let wrapped = text.split_inclusive('\n').map(|line| match line.strip_suffix('\n') {
        Some(line) => wrap(line, columns) + "\n",
        None => wrap(line, columns),
    });
    wrapped.collect()
}

/// At most `columns` of the text, which then ends with `…`.
pub fn shortened(text: &str, columns: usize) -> String {
    match columns.checked_sub(1) {
        _ if width(text) <= columns => text.into(),
        Some(kept) => text.chars().take(kept).chain(['…']).collect(),
        None => String::new(),
    }
}

fn wrap(line: &str, columns: usize) -> String {
    if width(line) <= columns {
        return line.into();
    }
    let indent = Some(text_column(line)).filter(|at| at + MIN_TEXT_COLUMNS <= columns).unwrap_or(0);
    let mut out = String::new();
    let mut used = 0;
    for (blank, word) in pieces(line, columns - indent) {
        if used > indent && used + blank.len() + width(word) > columns {
            out += "\n";
            out += &" ".repeat(indent);
            used = indent;
        } else {
            out += blank;
            used += blank.len();
        }
        out += word;
        used += width(word);
    }
    out
}

/// Where a line's text begins: after its label, which is faint, or after a bullet.
fn text_column(line: &str) -> usize {
    let text = line.trim_start_matches(' ');
    let begin = line.len() - text.len();
    let label = text.strip_prefix(style::FAINT_BEGINS).and_then(|text| text.split('\x1b').next());
    begin + label.map_or(if text.starts_with("- ") { 2 } else { 0 }, width)
}

/// What stays in one line, with the blanks before it: a text between gaps of several blanks if it has at most `room`
/// columns, otherwise each of its words.
fn pieces(line: &str, room: usize) -> Vec<(&str, &str)> {
    let mut pieces = Vec::new();
    let mut rest = line;
    while !rest.is_empty() {
        let (blank, behind) = rest.split_at(rest.len() - rest.trim_start_matches(' ').len());
        let (text, left) = behind.split_at(behind.find("  ").unwrap_or(behind.len()));
        match width(text) <= room {
            true => pieces.push((blank, text)),
            false => {
                let first = pieces.len();
                pieces.extend(words(text));
                pieces[first].0 = blank;
            }
        }
        rest = left;
    }
    pieces
}

/// Each word with the blanks before it. Strong text is one word, and so is a number with its thousands and its unit.
fn words(line: &str) -> impl Iterator<Item = (&str, &str)> {
    let mut rest = line;
    std::iter::from_fn(move || {
        let blanks = rest.len() - rest.trim_start_matches(' ').len();
        let (blank, behind) = rest.split_at(blanks);
        let word = end_of_thousands(behind, end_of_word(behind, end_of_strong(behind)));
        let end = end_of_unit(behind, word);
        let (word, left) = behind.split_at(end);
        rest = left;
        (!word.is_empty() || !blank.is_empty()).then_some((blank, word))
    })
}

/// The end of the strong text in the first word, which may begin with the end of another style; 0 if there is none.
fn end_of_strong(text: &str) -> usize {
    let begins = text[..end_of_word(text, 0)].find(style::STRONG_BEGINS);
    begins.map_or(0, |at| {
        let inside = at + style::STRONG_BEGINS.len();
        text[inside..].find('\x1b').map_or(text.len(), |end| inside + end)
    })
}

/// The end of the word that continues at `at`.
fn end_of_word(text: &str, at: usize) -> usize {
    text[at..].find(' ').map_or(text.len(), |end| at + end)
}

/// The end of the thousands of a number whose first digits end at `end`: `2 290` and `35 900`.
fn end_of_thousands(text: &str, mut end: usize) -> usize {
    let first = text[..end].trim_start_matches(|sign: char| "+-−(".contains(sign));
    if !(1..=3).contains(&first.len()) || !is_of_digits(first) {
        return end;
    }
    while let Some(group) = text[end..].strip_prefix(' ').and_then(|behind| behind.get(..3)) {
        let goes_on = text[end + 4..].starts_with(|next: char| next.is_ascii_digit());
        if goes_on || !is_of_digits(group) {
            break;
        }
        end += 4;
    }
    end
}

fn is_of_digits(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_digit())
}

/// The end of the unit after a word that ends at `end`; `end` if the word is not a number or another number follows.
fn end_of_unit(text: &str, end: usize) -> usize {
    let is_number = text[..end].ends_with(|last: char| last.is_ascii_digit())
        && text[..end].starts_with(|first: char| first.is_ascii_digit() || "+-−(".contains(first));
    let unit = text[end..].strip_prefix(' ').and_then(|behind| behind.chars().next());
    match unit {
        Some(first) if is_number && (first.is_alphabetic() || first == '%') => {
            end_of_word(text, end + 1)
        }
        _ => end,
    }
}

/// Columns of the longest word: the narrowest width for wrapping.
pub fn longest_word_columns(text: &str) -> usize {
    text.lines().flat_map(words).map(|(_, word)| width(word)).max().unwrap_or(0)
}

/// Columns of a text, without its colours.
pub fn width(text: &str) -> usize {
    anstream::adapter::strip_str(text).to_string().chars().count()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plain(text: &str, columns: usize) -> String {
        anstream::adapter::strip_str(&fit(text, Some(columns))).to_string()
    }

    #[test]
    fn a_long_line_goes_on_below_its_text() {
        let line = format!("{}{}\n", style::faint("evidence    "), "many words ".repeat(12).trim());
        let text = plain(&line, 60);
        assert!(text.lines().count() > 1 && text.lines().all(|line| line.chars().count() <= 60));
        assert!(text.starts_with("evidence    many"), "{text}");
        assert!(text.lines().skip(1).all(|line| line.starts_with("            ")), "{text}");
        assert_eq!(text.split_whitespace().count(), 25);
        assert_eq!(fit(&line, None), line);
    }

    #[test]
    fn a_command_is_not_broken() {
        let command = "goodput settings set sysctl.net.ipv4.tcp_rmem='4096 131072 67108864'";
        let line =
            format!("to try      {}   # a reason of several words\n", style::strong(command));
        let text = plain(&line, 80);
        assert!(text.contains(command), "{text}");
        assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
        assert!(plain(&line, 40).contains(command));
        let tc = "tc qdisc change dev n0 root tbf rate 400mbit burst 70480 limit 500000";
        let line = format!("{}{}\n", style::faint("with tc     "), style::strong(tc));
        assert!(plain(&line, 80).contains(tc), "{}", plain(&line, 80));
        let undo = format!("{}{}\n", style::faint("undo        "), style::strong(command));
        assert!(plain(&undo, 60).contains(command), "{}", plain(&undo, 60));
    }

    #[test]
    fn a_number_keeps_its_unit() {
        assert_eq!(
            plain("about 943.2 Mbit/s (+812 % of 4 8)", 8),
            "about\n943.2 Mbit/s\n(+812 %\nof 4 8)"
        );
        assert_eq!(longest_word_columns("about 943.2 Mbit/s"), 12);
    }

    #[test]
    fn a_number_keeps_its_thousands() {
        assert_eq!(plain("interval 2 290 to 2 380 times", 12), "interval\n2 290 to\n2 380 times");
        assert_eq!(longest_word_columns("(966 851 packets/GB)"), 20);
        assert_eq!(plain("4096 131072 4 19", 5), "4096\n131072\n4 19");
    }

    #[test]
    fn a_text_between_wide_gaps_stays_whole_if_it_can() {
        assert_eq!(
            plain("████  █ path rate 80 %   ▓ host (near) 20 %", 24),
            "████  █ path rate 80 %\n▓ host (near) 20 %"
        );
    }

    #[test]
    fn what_fits_stays_as_it_is() {
        for line in ["", "  a   b  \n", "ä\n\n"] {
            assert_eq!(fit(line, Some(10)), line);
        }
    }
}
