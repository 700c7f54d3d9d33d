//! A picture with what it says in words and in numbers.

/// One picture.
#[derive(Debug, Clone, PartialEq)]
pub struct Figure {
    /// The chart it is of, and the direction if there are two: part of file names and of anchors.
    pub id: String,
    /// Heading: what the picture shows.
    pub title: String,
    /// One or two sentences with the most important numbers, for people who can't see the picture.
    pub alt: String,
    /// The picture, an SVG document; `None` if a table shows it better.
    pub svg: Option<String>,
    /// The numbers that the picture shows.
    pub table: Table,
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
