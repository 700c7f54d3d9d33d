//! Files with records: one, or one in each line.

use anyhow::{Error, Result};

/// A line that is no record.
#[derive(Debug)]
pub struct WrongLine {
    /// Number of the line, from 1.
    pub line: usize,
    /// Number of the records before it.
    pub before: usize,
    /// Why it is no record.
    pub why: String,
}

impl std::fmt::Display for WrongLine {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "line {}: {}", self.line, self.why)
    }
}

impl std::error::Error for WrongLine {}

/// The records of a text, each as `read` reads it.
///
/// # Errors
/// What `read` says of the only record, or a [`WrongLine`].
pub fn records<T>(text: &str, read: impl Fn(&str) -> Result<T>) -> Result<Vec<T>> {
    let lines = (1..).zip(text.lines()).filter(|(_, line)| !line.trim().is_empty());
    let mut lines = lines.enumerate().peekable();
    match lines.peek() {
        // A record in several lines begins with a brace alone.
        Some((_, (_, first))) if first.trim() != "{" => lines
            .map(|(before, (line, text))| read(text).map_err(|why| wrong(line, before, &why)))
            .collect(),
        _ => Ok(vec![read(text)?]),
    }
}

fn wrong(line: usize, before: usize, why: &Error) -> Error {
    // The parser has seen this one line.
    let why = why.to_string().replace(" at line 1 column ", " at column ");
    WrongLine { line, before, why }.into()
}
