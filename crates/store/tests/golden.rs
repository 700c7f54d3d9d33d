//! Records of every released format must load forever.

use std::fs;
use std::path::{Path, PathBuf};

use goodput_store::read_record;
use serde_json::Value;

fn golden_files() -> Vec<PathBuf> {
    let formats = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden");
    let list = |directory: PathBuf| -> Vec<PathBuf> {
        let entries = fs::read_dir(&directory).expect("folder of golden records");
        entries.map(|entry| entry.expect("entry of it").path()).collect()
    };
    list(formats).into_iter().flat_map(list).collect()
}

/// The kernel's numbers for "none", which the records of the first goodputs have; today's lack the field.
const NONE: [(&str, u64); 4] = [
    ("pacing_rate_bytes_per_s", u64::MAX),
    ("max_pacing_rate_bytes_per_s", u64::MAX),
    ("snd_ssthresh_segments", 0x7fff_ffff),
    ("min_rtt_us", 0xffff_ffff),
];

/// Everything in `old` is in `new` too, unchanged; `new` may say more.
fn lost(old: &Value, new: &Value, at: &str) -> Option<String> {
    match (old, new) {
        (Value::Object(old), Value::Object(new)) => old.iter().find_map(|(name, value)| {
            let at = format!("{at}.{name}");
            let is_none = NONE.iter().any(|(field, none)| name == field && *value == *none);
            match new.get(name) {
                Some(new) => lost(value, new, &at),
                None => (!is_none).then_some(at),
            }
        }),
        (Value::Array(old), Value::Array(new)) if old.len() == new.len() => {
            old.iter().zip(new).find_map(|(old, new)| lost(old, new, at))
        }
        (Value::Number(old), Value::Number(new)) if old.as_f64() == new.as_f64() => None,
        (old, new) => (old != new).then(|| at.to_string()),
    }
}

#[test]
fn every_golden_record_loads_and_nothing_in_it_is_lost() {
    let files = golden_files();
    assert!(files.len() >= 2, "{files:?}");
    for file in files {
        let json = fs::read_to_string(&file).unwrap();
        let record = read_record(&json).unwrap_or_else(|error| panic!("{file:?}: {error}"));
        let again = serde_json::to_value(&record).unwrap();
        let old: Value = serde_json::from_str(&json).unwrap();
        assert_eq!(lost(&old, &again, "record"), None, "{file:?}");
    }
}
