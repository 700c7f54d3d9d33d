//! What a command prints of its result, whichever command it was.

use goodput_model::{Kind, Record};

use super::test::Detail;
use super::{compare, file_parts, rate_search, shaping, style, test, tune};
use crate::fit::fit;

/// Columns of a report that is no terminal's.
const PAGE_COLUMNS: usize = 100;

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
    style::without(&fit(&text(record, Detail::default()), Some(PAGE_COLUMNS)))
}
