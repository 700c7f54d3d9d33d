//! Records for the tests of the store.

use goodput_model::{BitRate, Record};
use goodput_store::read_record;

/// The record of a plain test, `target` and rate as given.
pub fn record(target: &str, goodput: f64) -> Record {
    let mut record = read_record(include_str!("../golden/v1/test.json")).expect("golden record");
    record.target = target.into();
    record.result.goodput_bits_per_s = BitRate(goodput);
    record
}
