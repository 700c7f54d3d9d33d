//! Plain columns. On a terminal they fit its width; elsewhere each row is one line, for grep and awk.

use std::io;

use comfy_table::presets::NOTHING;
use comfy_table::{
    CellAlignment, ColumnConstraint, ContentArrangement, LineStyle, Table as Columns,
};

use super::style;
use crate::screen;

/// Stands under the headings while the table is laid out, so that they can be distinguished from the rows.
const UNDER_HEADINGS: char = '─';

/// Rows of text under a heading.
pub struct Table {
    columns: Columns,
    /// From which column on cells are numbers, which are aligned to the right.
    numbers_from: usize,
}

impl Table {
    /// A table with these headings.
    pub fn new(headings: &[&str]) -> Self {
        Self::with(headings.iter().map(|h| (*h).into()).collect(), usize::MAX)
    }

    /// A table with headings of two lines, whose cells from the column `numbers_from` on are numbers.
    pub fn of_numbers(headings: &[(String, String)], numbers_from: usize) -> Self {
        Self::with(headings.iter().map(|(a, b)| format!("{a}\n{b}")).collect(), numbers_from)
    }

    fn with(headings: Vec<String>, numbers_from: usize) -> Self {
        let under = LineStyle::none().fill(UNDER_HEADINGS);
        let mut columns = Columns::new();
        columns.load_style(NOTHING.header_separator(under)).set_header(headings);
        Self { columns, numbers_from }
    }

    /// Adds a row.
    pub fn row(&mut self, cells: &[&str]) {
        self.columns.add_row(cells);
    }

    /// Prints it, as the screen prints everything.
    pub fn print(self) -> io::Result<()> {
        screen::print(&self.text())
    }

    /// The lines, as wide as the screen at most.
    pub fn text(self) -> String {
        self.within(screen::columns())
    }

    /// The lines beside a label of this width.
    pub fn beside(self, label_columns: usize) -> String {
        self.within(screen::columns().map(|columns| columns.saturating_sub(label_columns)))
    }

    /// The lines, within `width` columns if that is given. The first column names the row, so it is
    /// never broken.
    fn within(mut self, width: Option<usize>) -> String {
        self.columns.set_content_arrangement(ContentArrangement::Disabled);
        if let Some(width) = width.map(|width| u16::try_from(width).unwrap_or(u16::MAX)) {
            self.columns.set_content_arrangement(ContentArrangement::Dynamic).set_width(width);
        }
        for column in self.columns.column_iter_mut() {
            column.set_padding((0, 2));
            if column.index == 0 {
                column.set_constraint(ColumnConstraint::ContentWidth);
            }
            if column.index >= self.numbers_from {
                column.set_cell_alignment(CellAlignment::Right);
            }
        }
        let lines: Vec<_> = self.columns.lines().collect();
        let under = lines.iter().position(|line| line.starts_with(UNDER_HEADINGS)).unwrap_or(0);
        let heading = lines[..under].iter().map(|line| style::faint(line.trim_end()));
        let rows = lines.iter().skip(under + 1).map(|line| line.trim_end().to_string());
        heading.chain(rows).map(|line| line + "\n").collect()
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
        let text = anstream::adapter::strip_str(&table.text()).to_string();
        assert_eq!(text, "a     b\nlong  x\ns     y\n");
    }

    #[test]
    fn numbers_are_aligned_to_the_right() {
        let heading = |a: &str, b: &str| (a.to_string(), b.to_string());
        let mut table = Table::of_numbers(&[heading("", "arm"), heading("time", "s")], 1);
        table.row(&["copy", "0.1"]);
        let text = anstream::adapter::strip_str(&table.text()).to_string();
        assert_eq!(text, "      time\narm      s\ncopy   0.1\n");
    }

    #[test]
    fn a_terminal_is_never_overrun() {
        let mut table = Table::new(&["setting", "what it does"]);
        table.row(&["sysctl.net.ipv4.tcp_rmem", &"many words ".repeat(20)]);
        let text = anstream::adapter::strip_str(&table.within(Some(80))).to_string();
        assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
        assert!(text.contains("\nsysctl.net.ipv4.tcp_rmem  many words"), "{text}");
    }
}
