//! Plain columns that fit the screen, or with each row in one line, for grep and awk.
//!
//! Lines are wrapped only between words, and never between a number and its unit. If the longest words of all columns
//! don't fit side by side, each cell gets a line of its own, after its heading.

use std::io;

use super::style;
use crate::fit::{fit, longest_word_columns, width};
use crate::screen;

/// Columns between two cells.
const GAP_COLUMNS: usize = 2;

/// Fewest columns of a word that is broken.
const MIN_BROKEN_COLUMNS: usize = 12;

/// Colours a line.
type Paint = fn(&str) -> String;

/// Rows of text under a heading.
pub struct Table {
    headings: Vec<String>,
    rows: Vec<Row>,
    /// The first column of numbers; these columns are aligned to the right.
    numbers_from: usize,
    /// Whether a word of the last column may be broken, so that the table keeps its columns.
    breaks_last: bool,
}

struct Row {
    cells: Vec<String>,
    paint: Option<Paint>,
}

impl Table {
    /// A table with these headings.
    pub fn new(headings: &[&str]) -> Self {
        Self::with(headings.iter().map(|h| (*h).into()).collect(), usize::MAX)
    }

    /// A table with headings of two lines, whose cells are numbers beginning at the column `numbers_from`.
    pub fn of_numbers(headings: &[(String, String)], numbers_from: usize) -> Self {
        Self::with(headings.iter().map(|(a, b)| format!("{a}\n{b}")).collect(), numbers_from)
    }

    fn with(headings: Vec<String>, numbers_from: usize) -> Self {
        Self { headings, rows: Vec::new(), numbers_from, breaks_last: false }
    }

    /// Breaks long words of the last column rather than giving each cell a line of its own.
    pub fn breaking_the_last_column(self) -> Self {
        Self { breaks_last: true, ..self }
    }

    /// Adds a row, with a cell for each heading.
    pub fn row(&mut self, cells: &[&str]) {
        self.add(cells, None);
    }

    /// Adds a highlighted row, because something is wrong there.
    pub fn bad_row(&mut self, cells: &[&str]) {
        self.add(cells, Some(|line| style::bad(line)));
    }

    fn add(&mut self, cells: &[&str], paint: Option<Paint>) {
        self.rows.push(Row { cells: cells.iter().map(ToString::to_string).collect(), paint });
    }

    /// Prints the table.
    pub fn print(self) -> io::Result<()> {
        screen::print(&self.text())
    }

    /// Prints the table, in a file or pipe with each row in one line.
    pub fn print_whole(self) -> io::Result<()> {
        screen::print(&self.within(screen::known_columns().map(usize::from)))
    }

    /// The lines, at most as wide as the screen.
    pub fn text(self) -> String {
        self.beside(0)
    }

    /// The lines beside a label of this width.
    pub fn beside(self, label_columns: usize) -> String {
        self.within(Some(usize::from(screen::columns()).saturating_sub(label_columns)))
    }

    /// The lines, within `columns` if given. Only a longer word makes a longer line.
    pub fn within(self, columns: Option<usize>) -> String {
        match self.widths(columns) {
            Some(widths) => self.side_by_side(&widths),
            None => self.stacked(columns),
        }
    }

    /// The width of each column: its cells' full width, or less if they don't all fit. `None` if the longest words
    /// don't fit side by side.
    fn widths(&self, columns: Option<usize>) -> Option<Vec<usize>> {
        let wanted = self.columns_by(|cell| cell.lines().map(width).max().unwrap_or(0));
        let Some(columns) = columns else { return Some(wanted) };
        let mut widths = self.columns_by(longest_word_columns);
        if let Some(last) = widths.last_mut().filter(|_| self.breaks_last) {
            *last = (*last).min(MIN_BROKEN_COLUMNS);
        }
        let gaps = GAP_COLUMNS * widths.len().saturating_sub(1);
        let least: usize = widths.iter().sum();
        let mut spare = columns.checked_sub(gaps + least)?;
        // The narrowest column that needs more grows first, so short texts stay on one line.
        while spare > 0 {
            let short = (0..widths.len()).filter(|at| widths[*at] < wanted[*at]);
            let Some(narrowest) = short.min_by_key(|at| widths[*at]) else { break };
            widths[narrowest] += 1;
            spare -= 1;
        }
        Some(widths)
    }

    /// The maximum of `needed` over a column's heading and cells, for each column.
    fn columns_by(&self, needed: impl Fn(&str) -> usize) -> Vec<usize> {
        let column = |at: usize| {
            let cells = self.rows.iter().filter_map(|row| row.cells.get(at));
            cells.chain(self.headings.get(at)).map(|cell| needed(cell)).max().unwrap_or(0)
        };
        (0..self.headings.len()).map(column).collect()
    }

    fn side_by_side(&self, widths: &[usize]) -> String {
        let mut out = String::new();
        for line in self.lines(&self.headings, widths) {
            out += &(style::faint(line) + "\n");
        }
        for Row { cells, paint } in &self.rows {
            for line in self.lines(cells, widths) {
                out += &paint.map_or(line.clone(), |paint| paint(&line));
                out.push('\n');
            }
        }
        out
    }

    /// The lines of one row.
    fn lines(&self, cells: &[String], widths: &[usize]) -> Vec<String> {
        let wrapped: Vec<Vec<String>> = cells
            .iter()
            .zip(widths)
            .map(|(cell, columns)| {
                fit(cell, Some(*columns)).lines().flat_map(|line| broken(line, *columns)).collect()
            })
            .collect();
        let height = wrapped.iter().map(Vec::len).max().unwrap_or(0);
        (0..height).map(|line| self.line(line, &wrapped, widths)).collect()
    }

    /// One line of a row whose cells have several.
    fn line(&self, number: usize, cells: &[Vec<String>], widths: &[usize]) -> String {
        let mut out = String::new();
        for (at, (lines, columns)) in cells.iter().zip(widths).enumerate() {
            let text = lines.get(number).map_or("", String::as_str);
            let blank = " ".repeat(columns.saturating_sub(width(text)));
            out += &match at >= self.numbers_from {
                true => blank + text,
                false => text.to_string() + &blank,
            };
            out += &" ".repeat(GAP_COLUMNS);
        }
        out.trim_end().into()
    }

    /// A line for each cell, and an empty one between rows.
    fn stacked(&self, columns: Option<usize>) -> String {
        let row = |Row { cells, paint }: &Row| {
            let filled = cells.iter().zip(&self.headings).filter(|(cell, _)| !cell.is_empty());
            filled.map(|(cell, heading)| stacked_cell(heading, cell, *paint, columns)).collect()
        };
        self.rows.iter().map(row).collect::<Vec<String>>().join("\n")
    }
}

/// A line in pieces of at most this width, broken after `/` or `:` if possible. Text in colours has no words that are
/// too wide.
fn broken(mut line: &str, columns: usize) -> Vec<String> {
    let mut pieces = Vec::new();
    while width(line) > columns {
        let most = line.char_indices().nth(columns.max(1)).map_or(line.len(), |(at, _)| at);
        let end = line[..most].rfind(['/', ':']).map_or(most, |at| at + 1);
        let (piece, rest) = line.split_at(end);
        pieces.push(piece.into());
        line = rest;
    }
    pieces.push(line.into());
    pieces
}

/// `heading: cell`.
fn stacked_cell(heading: &str, cell: &str, paint: Option<Paint>, columns: Option<usize>) -> String {
    let label = match heading {
        "" => String::new(),
        heading => format!("{}: ", heading.split_whitespace().collect::<Vec<_>>().join(" ")),
    };
    let line = |line: &str| paint.map_or(line.into(), |paint| paint(line)) + "\n";
    fit(&(label + cell), columns).lines().map(line).collect()
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;

    fn plain(text: &str) -> String {
        anstream::adapter::strip_str(text).to_string()
    }

    #[test]
    fn columns_are_as_wide_as_their_widest_cell() {
        let mut table = Table::new(&["a", "b"]);
        table.row(&["long", "x"]);
        table.row(&["s", "y"]);
        assert_eq!(plain(&table.within(None)), "a     b\nlong  x\ns     y\n");
    }

    #[test]
    fn numbers_are_aligned_to_the_right() {
        let heading = |a: &str, b: &str| (a.to_string(), b.to_string());
        let mut table = Table::of_numbers(&[heading("", "arm"), heading("time", "s")], 1);
        table.row(&["copy", "0.1"]);
        assert_eq!(plain(&table.within(None)), "      time\narm      s\ncopy   0.1\n");
    }

    #[test]
    fn colours_take_no_columns() {
        let mut table = Table::new(&["change", "outcome", "why"]);
        table.row(&["chunk=1M", &style::good("kept"), "faster"]);
        table.bad_row(&["chunk=2M", "dropped", "slower"]);
        let text = table.within(None);
        assert!(text.contains('\x1b'), "there are some");
        let lines =
            ["change    outcome  why", "chunk=1M  kept     faster", "chunk=2M  dropped  slower"];
        assert_eq!(plain(&text).lines().collect::<Vec<_>>(), lines);
    }

    #[test]
    fn a_long_word_of_the_last_column_is_broken_on_request() {
        let mut table = Table::new(&["id", "target"]).breaking_the_last_column();
        table.row(&["1", "http://nas/some/long/path"]);
        let text = plain(&table.within(Some(20)));
        assert_eq!(text, "id  target\n1   http://nas/some/\n    long/path\n");
    }

    #[test]
    fn a_table_that_does_not_fit_is_stacked() {
        let mut table = Table::new(&["", "setting", "gain"]);
        table.row(&["first", "sysctl.net.ipv4.tcp_congestion_control", "3 %"]);
        table.row(&["second", "chunk", ""]);
        let text = plain(&table.within(Some(40)));
        let setting = "setting:\nsysctl.net.ipv4.tcp_congestion_control";
        assert_eq!(text, format!("first\n{setting}\ngain: 3 %\n\nsecond\nsetting: chunk\n"));
    }

    /// Words of letters, settings, and numbers with units.
    fn cell() -> impl Strategy<Value = String> {
        let word =
            prop_oneof!["[a-zé]{1,12}", "[a-z.]{1,30}=[0-9]{1,9}", "[0-9]{1,3}[.][0-9] Mbit/s"];
        vec(word, 0..8).prop_map(|words| words.join(" "))
    }

    fn table() -> impl Strategy<Value = (Vec<String>, Vec<Vec<String>>)> {
        (1usize..7).prop_flat_map(|columns| (vec(cell(), columns), vec(vec(cell(), columns), 0..6)))
    }

    fn pieces(text: &str) -> Vec<String> {
        let mut pieces: Vec<_> = text.split_whitespace().map(String::from).collect();
        pieces.sort();
        pieces
    }

    proptest! {
        /// At any width, no line is too long unless it is one word, no word is broken, and none is missing.
        #[test]
        fn any_table_fits_any_width_without_breaking_words(
            (headings, rows) in table(), columns in 1usize..200
        ) {
            let headings: Vec<_> = headings.iter().map(String::as_str).collect();
            let mut table = Table::new(&headings);
            for row in &rows {
                table.row(&row.iter().map(String::as_str).collect::<Vec<_>>());
            }
            let is_stacked = table.widths(Some(columns)).is_none();
            let text = plain(&table.within(Some(columns)));
            for line in text.lines() {
                let is_one_word = longest_word_columns(line) == width(line);
                prop_assert!(width(line) <= columns || is_stacked && is_one_word, "{line:?}");
                prop_assert!(!line.ends_with(|end: char| end.is_ascii_digit()) || {
                    let last = line.rsplit(' ').next().unwrap_or_default();
                    last.contains('=')
                }, "a number without its unit: {line:?}");
            }
            if !is_stacked {
                let all = headings.iter().copied().chain(rows.iter().flatten().map(String::as_str));
                prop_assert_eq!(pieces(&text), pieces(&all.collect::<Vec<_>>().join(" ")));
            }
        }
    }
}
