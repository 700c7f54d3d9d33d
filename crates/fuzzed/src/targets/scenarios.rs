//! Scenario files of users, and the pages that the lab makes of them.

use goodput_lab::Scenario;

/// Takes any bytes.
pub fn run(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    if let Ok(scenario) = Scenario::parse("fuzzed", text) {
        let _ = scenario.topology();
    }
}
