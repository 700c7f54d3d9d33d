//! Plain columns.

use std::io::Write;

use super::style;

/// Rows of text under a heading; the last column may be as long as it likes.
pub struct Table {
    rows: Vec<Vec<String>>,
    /// Rows of headings.
    headings: usize,
    /// From which column on cells are numbers, which are aligned to the right.
    numbers_from: usize,
}

impl Table {
    /// A table with these headings.
    pub fn new(headings: &[&str]) -> Self {
        let rows = vec![headings.iter().map(|h| (*h).into()).collect()];
        Self { rows, headings: 1, numbers_from: usize::MAX }
    }

    /// A table with headings of two lines, whose cells from the column `numbers_from` on are numbers.
    pub fn of_numbers(headings: &[(String, String)], numbers_from: usize) -> Self {
        let line = |read: fn(&(String, String)) -> &String| headings.iter().map(read).cloned();
        let rows = vec![line(|h| &h.0).collect(), line(|h| &h.1).collect()];
        Self { rows, headings: 2, numbers_from }
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
            let cells = row.iter().zip(&widths).enumerate().map(|(column, (cell, width))| {
                let is_number = column >= self.numbers_from;
                if is_number { format!("{cell:>width$}") } else { format!("{cell:width$}") }
            });
            let line = cells.collect::<Vec<_>>().join("  ");
            let line = line.trim_end();
            text += &if number < self.headings { style::faint(line) } else { line.into() };
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

    #[test]
    fn numbers_are_aligned_to_the_right() {
        let heading = |a: &str, b: &str| (a.to_string(), b.to_string());
        let mut table = Table::of_numbers(&[heading("", "arm"), heading("time", "s")], 1);
        table.row(&["copy", "0.1"]);
        assert!(table.text().ends_with("copy   0.1\n"), "{}", table.text());
    }
}
