//! Plain columns.

use std::io::Write;

use super::style;

/// Rows of text under a heading; the last column may be as long as it likes.
pub struct Table {
    rows: Vec<Vec<String>>,
}

impl Table {
    /// A table with these headings.
    pub fn new(headings: &[&str]) -> Self {
        Self { rows: vec![headings.iter().map(|h| (*h).into()).collect()] }
    }

    /// Adds a row.
    pub fn row(&mut self, cells: &[&str]) {
        self.rows.push(cells.iter().map(|cell| (*cell).into()).collect());
    }

    /// Writes it to standard output. A reader that has gone needs no more.
    pub fn print(&self) {
        let _ = write!(anstream::stdout(), "{}", self.text());
    }

    /// The lines.
    pub fn text(&self) -> String {
        let widths = self.widths();
        let mut text = String::new();
        for (number, row) in self.rows.iter().enumerate() {
            let cells = row.iter().zip(&widths).map(|(cell, width)| format!("{cell:width$}"));
            let line = cells.collect::<Vec<_>>().join("  ");
            let line = line.trim_end();
            text += &if number == 0 { style::faint(line) } else { line.into() };
            text.push('\n');
        }
        text
    }

    fn widths(&self) -> Vec<usize> {
        let columns = self.rows.iter().map(Vec::len).max().unwrap_or(0);
        let width = |column: usize| {
            self.rows
                .iter()
                .filter_map(|row| row.get(column))
                .map(|cell| cell.chars().count())
                .max()
        };
        (0..columns).map(|column| width(column).unwrap_or(0)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_as_wide_as_their_widest_cell() {
        let mut table = Table::new(&["a", "b"]);
        table.row(&["long", "x"]);
        table.row(&["s", "y"]);
        assert!(table.text().ends_with("long  x\ns     y\n"), "{}", table.text());
    }
}
