//! Tests that this machine can't host, in harnesses of our own.

use libtest_mimic::{Failed, Trial};

/// A test that can't run here: a skip that is printed and counted, and a failure where everything
/// is required.
pub fn needs(name: &str, what: String) -> Trial {
    let required = std::env::var("GOODPUT_REQUIRE").is_ok_and(|value| value == "all");
    let line = format!("SKIPPED {name}: needs {what}");
    if required {
        return Trial::test(name, move || Err(Failed::from(line)));
    }
    eprintln!("{line}");
    Trial::test(name, || Ok(())).with_ignored_flag(true)
}
