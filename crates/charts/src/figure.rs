//! A picture with what it says in words and in numbers.

use std::fmt;
use std::ops::Deref;

/// What a figure is of, in a record of several runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Of {
    /// What all runs together say.
    All,
    /// The one run whose samples the record has.
    OneRun,
}

/// One picture.
#[derive(Debug, Clone, PartialEq)]
pub struct Figure {
    /// What it is of.
    pub of: Of,
    /// The chart it is of, and the direction if there are two: part of file names and of anchors.
    pub id: String,
    /// Heading: what the picture shows.
    pub title: String,
    /// One or two sentences with the most important numbers, for people who can't see the picture.
    pub alt: String,
    /// The picture; `None` if a table shows it better.
    pub svg: Option<Picture>,
    /// The numbers that the picture shows.
    pub table: Table,
}

/// A picture as two SVG documents. Read as a text it is the wide one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Picture {
    /// For a screen or a sheet, and for a file of its own.
    pub wide: String,
    /// For a phone: as tall, with text of the same size.
    pub narrow: String,
}

impl Deref for Picture {
    type Target = str;

    fn deref(&self) -> &str {
        &self.wide
    }
}

impl fmt::Display for Picture {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self)
    }
}

/// Numbers for people, each row as long as the columns.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Table {
    /// Headings.
    pub columns: Vec<String>,
    /// Cells.
    pub rows: Vec<Vec<String>>,
}

impl Table {
    /// A table without rows.
    pub fn new<const N: usize>(columns: [&str; N]) -> Self {
        Self { columns: columns.map(Into::into).into(), rows: Vec::new() }
    }

    /// Adds a row.
    pub fn row<const N: usize>(&mut self, cells: [String; N]) {
        self.rows.push(cells.into());
    }
}
