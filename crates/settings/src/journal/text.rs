//! The text of a journal: sealed lines, read and judged. What its lines say is a matter of each kind of journal: for
//! changes of this host, or of a host reached by SSH.

use std::ops::RangeInclusive;
use std::path::Path;

use serde::de::DeserializeOwned;

use super::last_line::{LastLine, lines};
use super::sealed_line::unseal;

/// What the lines of a journal say altogether. Each kind of journal has its own lines.
pub trait JournalContents: Default {
    /// One line.
    type Line: DeserializeOwned;

    /// The versions of the format that can be read.
    const KNOWN_FORMATS: RangeInclusive<u32>;

    /// Whether nothing can be put back without the first line, because only it names the host.
    const NEEDS_FIRST_LINE: bool;

    /// Takes one more line into account.
    fn add(&mut self, line: Self::Line);

    /// The version that the first line names; `None` if that line is damaged.
    fn format(&self) -> Option<u32>;

    /// Whether nothing is left to put back.
    fn is_empty(&self) -> bool;
}

/// A journal that was read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JournalText<C> {
    /// What its whole lines say.
    pub says: C,
    /// Numbers of the lines that can't be read, from 1.
    pub(crate) unreadable: Vec<usize>,
    /// How many lines were read, these included.
    lines: usize,
    /// What is behind its last line break.
    end: LastLine,
    /// Its length without the beginning of a line at its end, bytes.
    kept_bytes: usize,
}

impl<C: JournalContents> JournalText<C> {
    /// Reads a journal. The beginning of a line at its end was interrupted while being written, so
    /// its change was never made and it is ignored. The first line was whole before the journal got its name: a
    /// journal without it is damaged.
    pub fn read(bytes: &[u8]) -> Self {
        let (whole, rest) = lines(bytes);
        let (end, last) = LastLine::judge(rest);
        let torn = if end == LastLine::Torn { rest.len() } else { 0 };
        let kept_bytes = bytes.len() - torn;
        let mut text = Self { end, kept_bytes, ..Self::empty() };
        whole.for_each(|line| text.take(unseal(line)));
        if matches!(end, LastLine::Unbroken | LastLine::Damaged) {
            text.take(last);
        }
        text
    }

    /// A journal that consists of its first line.
    pub(crate) fn begun(first: C::Line) -> Self {
        let mut text = Self::empty();
        text.take(Some(first));
        text
    }

    fn empty() -> Self {
        let (says, unreadable, lines, kept_bytes) = Default::default();
        Self { says, unreadable, lines, end: LastLine::Ended, kept_bytes }
    }

    fn take(&mut self, line: Option<C::Line>) {
        self.lines += 1;
        match line {
            Some(line) => self.says.add(line),
            None => self.unreadable.push(self.lines),
        }
    }

    /// What is behind its last line break.
    pub(super) fn end(&self) -> LastLine {
        self.end
    }

    /// Its length without the beginning of a line at its end, bytes.
    pub(super) fn kept_bytes(&self) -> u64 {
        self.kept_bytes as u64
    }

    /// Why nothing is put back by the journal at `path` unless a person asks for that, if so.
    pub fn problem(&self, path: &Path) -> Option<String> {
        self.foreign().or_else(|| self.damaged(path))
    }

    /// Why this goodput can't use the journal at all, if so.
    pub fn foreign(&self) -> Option<String> {
        let format = self.says.format().filter(|format| !C::KNOWN_FORMATS.contains(format))?;
        let (first, last) = (C::KNOWN_FORMATS.start(), C::KNOWN_FORMATS.end());
        Some(format!(
            "its format is {format}, this goodput knows {first} to {last}; use the version that wrote it"
        ))
    }

    /// How the journal at `path` is damaged, and what a person can do, if it is.
    pub fn damaged(&self, path: &Path) -> Option<String> {
        let damage = self.damage()?;
        let folder = path.parent().unwrap_or(path).display();
        let undo = format!("`goodput --state-dir {folder} settings undo --damaged`");
        let advice = match self.says.format() {
            Some(_) => format!("{undo} puts back what its other lines say, and sets it aside"),
            None if C::NEEDS_FIRST_LINE => {
                format!("put back by hand what it names, then {undo} sets it aside")
            }
            None => format!(
                "{undo}, in the network namespace in which the run was, puts back what its other lines say, and sets it aside"
            ),
        };
        Some(format!("it is damaged: {damage}; nothing was changed; {advice}"))
    }

    /// How the journal is damaged, if it is.
    pub fn damage(&self) -> Option<String> {
        match (self.says.format(), &self.unreadable[..]) {
            (None, []) if self.says.is_empty() => None,
            (None, _) => Some("its first line is not valid".into()),
            (Some(_), []) => None,
            (Some(_), [line]) => Some(format!("line {line} of {} is not valid", self.lines)),
            (Some(_), lines) => {
                let lines: Vec<_> = lines.iter().map(ToString::to_string).collect();
                Some(format!("lines {} of {} are not valid", lines.join(", "), self.lines))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::contents::Text;
    use super::*;

    #[test]
    fn advice_about_damage_names_the_folder_and_depends_on_the_first_line() {
        let path = Path::new("/state/1.remote.jsonl");
        let begin = r#"{"line":"begin","format":3,"pid":1,"boot_id":"b","netns":1}"#;
        let undo = "`goodput --state-dir /state settings undo --damaged`";
        let nothing = "nothing was changed";
        for (text, said) in [
            (format!("{begin}\n"), None),
            (
                format!("{begin}\nx\n{begin}\ny"),
                Some(format!(
                    "it is damaged: lines 2, 4 of 4 are not valid; {nothing}; {undo} puts back what its other lines say, \
                     and sets it aside"
                )),
            ),
            (
                "x\n".into(),
                Some(format!(
                    "it is damaged: its first line is not valid; {nothing}; {undo}, in the network namespace in which the \
                     run was, puts back what its other lines say, and sets it aside"
                )),
            ),
        ] {
            assert_eq!(Text::read(text.as_bytes()).problem(path), said, "{text}");
        }
    }
}
