//! What the tests of the store share: records, and this test program run once more.

use std::path::Path;
use std::process::Command;

use goodput_model::{BitRate, Record};
use goodput_store::read_record;

/// The record of a plain test, `target` and rate as given.
pub fn record(target: &str, goodput: f64) -> Record {
    let mut record = read_record(include_str!("../golden/v1/test.json")).expect("golden record");
    record.target = target.into();
    record.result.goodput_bits_per_s = BitRate(goodput);
    record
}

/// Environment variable with the history's path, for the tests that are the body of a child.
pub const CHILD_STORE: &str = "GOODPUT_TEST_CHILD_STORE";

/// A command that runs the one test `name` of this program on the history at `path`.
pub fn child(name: &str, path: &Path) -> Command {
    let mut command = Command::new(std::env::current_exe().expect("own path"));
    command.args(["--exact", name, "--nocapture"]).env(CHILD_STORE, path);
    command
}
