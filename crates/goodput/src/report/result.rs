//! What a command prints of its result, whichever command it was.

use goodput_model::{Kind, Record};

use super::test::Detail;
use super::{compare, file_parts, rate_search, shaping, style, test, tune};
use crate::fit::fit;
use crate::screen;

/// Columns of a report in a page: what its main part has room for, on a screen and on paper.
const PAGE_COLUMNS: u16 = 80;

/// The report of a result, with the styles of a terminal.
pub fn text(record: &Record, detail: Detail) -> String {
    match record.kind {
        Kind::Test | Kind::Attach => test::text(record, detail),
        Kind::FindRate => rate_search::text(record),
        Kind::Compare if record.file_parts.is_some() => file_parts::text(record),
        Kind::Compare => compare::text(record),
        Kind::Tune => tune::text(record),
        Kind::Shaping => shaping::text(record),
    }
}

/// The same for a page: without styles, in lines that fit it.
pub fn on_page(record: &Record) -> String {
    let text = screen::in_columns(PAGE_COLUMNS, || text(record, Detail::default()));
    style::without(&fit(&text, Some(PAGE_COLUMNS.into())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_is_the_same_whatever_terminal_it_is_made_on() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../charts/tests/records");
        let records = ["both", "arms", "compare", "dose", "factors", "shaping"].map(|name| {
            let json = std::fs::read_to_string(format!("{folder}/{name}.json"));
            Record::from_json(&json.expect("the file is there")).expect("it is a record")
        });
        for record in &records {
            let page = on_page(record);
            assert_eq!(screen::in_columns(50, || on_page(record)), page);
        }
        let text =
            |record, columns| screen::in_columns(columns, || text(record, Detail::default()));
        let depends = |record| text(record, 200) != text(record, 20);
        assert!(records.iter().any(depends), "tables depend on the columns");
        let page = on_page(&records[0]);
        assert!(page.lines().all(|line| line.chars().count() <= PAGE_COLUMNS.into()), "{page}");
    }
}
