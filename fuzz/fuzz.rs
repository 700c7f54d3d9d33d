//! The target that `GOODPUT_FUZZ` names.
#![no_main]

use std::sync::LazyLock;

use goodput_fuzzed::{Target, find};
use libfuzzer_sys::fuzz_target;

static TARGET: LazyLock<&Target> = LazyLock::new(|| {
    let name = std::env::var("GOODPUT_FUZZ").unwrap_or_default();
    find(&name).unwrap_or_else(|| panic!("GOODPUT_FUZZ names no target: {name:?}"))
});

fuzz_target!(|data: &[u8]| (TARGET.run)(data));
