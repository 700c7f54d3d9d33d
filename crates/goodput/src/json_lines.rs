//! Files with records: one, or one in each line.

use std::fmt;

use anyhow::{Error, Result};

/// Lines that are no records, with the reasons.
#[derive(Debug, Default)]
pub struct WrongLines {
    /// Number of the lines that are records.
    pub good: usize,
    /// Each reason once, as it is of its first line, with the numbers of its lines, from 1.
    reasons: Vec<(String, Vec<usize>)>,
}

impl WrongLines {
    /// How many they are.
    pub fn number(&self) -> usize {
        self.reasons.iter().map(|(_, lines)| lines.len()).sum()
    }

    fn add(&mut self, line: usize, why: &Error) {
        // The parser has seen this one line.
        let why = why.to_string().replace(" at line 1 column ", " at column ");
        match self.reasons.iter_mut().find(|(other, _)| kind(other) == kind(&why)) {
            Some((_, lines)) => lines.push(line),
            None => self.reasons.push((why, vec![line])),
        }
    }
}

/// A reason without the column, which differs from line to line.
fn kind(why: &str) -> &str {
    why.split(" at column ").next().unwrap_or(why)
}

impl fmt::Display for WrongLines {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        /// Reasons that are named: a file of something else has one for each line.
        const NAMED: usize = 5;
        for (n, (why, lines)) in self.reasons.iter().take(NAMED).enumerate() {
            let gap = if n == 0 { "" } else { "; " };
            write!(f, "{gap}{}: {why}", numbers(lines))?;
        }
        match self.reasons.iter().skip(NAMED).map(|(_, lines)| lines.len()).sum() {
            0 => Ok(()),
            1 => f.write_str("; 1 more line"),
            more => write!(f, "; {more} more lines"),
        }
    }
}

impl std::error::Error for WrongLines {}

/// `line 4`, or `lines 4, 7, 9, … (12 lines)`.
fn numbers(lines: &[usize]) -> String {
    const NAMED: usize = 3;
    let named: Vec<_> = lines.iter().take(NAMED).map(ToString::to_string).collect();
    let named = named.join(", ");
    match lines.len() {
        1 => format!("line {named}"),
        ..=NAMED => format!("lines {named}"),
        all => format!("lines {named}, … ({all} lines)"),
    }
}

/// The records of a text, each as `read` reads it.
///
/// # Errors
/// What `read` says of the only record, or [`WrongLines`].
pub fn records<T>(text: &str, read: impl Fn(&str) -> Result<T>) -> Result<Vec<T>> {
    let lines = (1..).zip(text.lines()).filter(|(_, line)| !line.trim().is_empty());
    let mut lines = lines.peekable();
    // A record in several lines begins with a brace alone.
    if lines.peek().is_none_or(|(_, first)| first.trim() == "{") {
        return Ok(vec![read(text)?]);
    }
    let (mut all, mut wrong) = (Vec::new(), WrongLines::default());
    for (line, text) in lines {
        match read(text) {
            Ok(record) => all.push(record),
            Err(why) => wrong.add(line, &why),
        }
    }
    wrong.good = all.len();
    if wrong.number() > 0 { Err(wrong.into()) } else { Ok(all) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wrong_lines_are_named_by_their_reasons() {
        let read = |text: &str| match text {
            "good" => Ok(()),
            "cut" => anyhow::bail!("it ends too early at line 1 column {}", text.len()),
            other => anyhow::bail!("{other} is no record"),
        };
        let said = |text: &str| {
            let wrong = records(text, read).unwrap_err().downcast::<WrongLines>().unwrap();
            (wrong.good, wrong.number(), wrong.to_string())
        };
        assert_eq!(records("good\n\ngood\n", read).unwrap().len(), 2);
        assert_eq!(
            said("good\ncut\nx\ngood\ncut"),
            (2, 3, "lines 2, 5: it ends too early at column 3; line 3: x is no record".into())
        );
        let (_, number, text) = said("a\nb\nc\nd\ne\nf\ng\n");
        assert_eq!((number, text.contains("; 2 more lines")), (7, true), "{text}");
        assert!(said(&"cut\n".repeat(9)).2.starts_with("lines 1, 2, 3, … (9 lines): it ends"));
    }
}
