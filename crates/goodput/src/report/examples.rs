//! Reports that README.md and the pages of `docs` show: the program must print exactly these lines.

use std::fs;
use std::path::Path;

use crate::fit::fit;

/// Width of the screen on which the examples were printed.
pub const COLUMNS: usize = 100;

/// Fails unless the example `name` of a page is this report, printed on a screen of [`COLUMNS`].
pub fn assert_shown(page: &str, name: &str, report: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(page);
    let text = fs::read_to_string(&path).expect("a page");
    let begin = format!("<!-- example: {name} -->\n```text\n");
    let (_, example) = text.split_once(&begin).expect("the example's begin");
    let (example, _) = example.split_once("```\n<!-- end of example -->").expect("its end");
    let report = anstream::adapter::strip_str(&fit(report, Some(COLUMNS))).to_string();
    assert_eq!(example, report, "{page} should show:\n{report}");
}
