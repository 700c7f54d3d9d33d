//! What is wrong with a mesh file: the line, what it says, and what is allowed there.

use std::ops::Range;

/// A text that is no mesh.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{origin}{}: {problem}", place(.line, .text))]
pub struct MeshError {
    /// The file.
    pub origin: String,
    /// Number of the line, from 1; absent if the whole file is meant.
    pub line: Option<usize>,
    /// What the line says.
    pub text: String,
    /// What is wrong there, and what is allowed.
    pub problem: String,
}

/// `, line 7, "every = 'often'"`.
fn place(line: &Option<usize>, text: &str) -> String {
    line.map_or_else(String::new, |line| format!(", line {line} ({text})"))
}

impl MeshError {
    /// A problem at these bytes of the file's text.
    pub(super) fn at(
        origin: &str,
        file: &str,
        span: Option<Range<usize>>,
        problem: impl Into<String>,
    ) -> Self {
        // A span of the whole file, or beyond it, says nothing.
        let begin = span.filter(|span| !span.is_empty()).map(|span| span.start);
        let before = begin.and_then(|begin| file.get(..begin));
        let line = before.map(|before| before.matches('\n').count());
        let text = line.and_then(|line| file.lines().nth(line)).unwrap_or_default();
        Self {
            origin: origin.into(),
            line: line.map(|line| line + 1),
            text: text.trim().chars().map(goodput_model::plain_char).collect(),
            problem: problem.into().trim_end().replace('\n', "; "),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_is_counted_and_shown() {
        let file = "a = 1\n  b = 2\n";
        let error = MeshError::at("x.toml", file, Some(12..13), "no");
        assert_eq!(error.to_string(), "x.toml, line 2 (b = 2): no");
        let whole = MeshError::at("x.toml", file, None, "nothing in it");
        assert_eq!(whole.to_string(), "x.toml: nothing in it");
        assert_eq!(MeshError::at("x.toml", file, Some(90..99), "no").line, None);
    }
}
