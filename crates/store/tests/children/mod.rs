//! This test program, run once more.

use std::path::Path;
use std::process::Command;

/// Environment variable with the history's name, for the tests that are the body of a child.
pub const CHILD_STORE: &str = "GOODPUT_TEST_CHILD_STORE";

/// A command that runs the one test `name` of this program on a history.
pub fn child(name: &str, history: &Path) -> Command {
    let mut command = Command::new(std::env::current_exe().expect("own path"));
    command.args(["--exact", name, "--nocapture"]).env(CHILD_STORE, history);
    command
}
