//! Tests that this machine can't host, in harnesses of our own.

use libtest_mimic::Trial;

/// In place of a test that can't run here: a skip, and a failure if everything is required.
pub fn needs(name: &str, what: String) -> Trial {
    let skipped = name.to_owned();
    Trial::test(name, move || {
        goodput_testing::as_test(&skipped, || goodput_testing::skip(&what));
        Ok(())
    })
}
