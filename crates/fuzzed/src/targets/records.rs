//! Records from disk, of every format: what is read is read the same when it is written again.

/// Takes any bytes.
pub fn run(data: &[u8]) {
    let Ok(record) = std::str::from_utf8(data).map_err(drop).and_then(read) else { return };
    let written = serde_json::to_string(&record).expect("what was read can be written");
    // Numbers beyond JSON are written as null, which is no number.
    if let Ok(again) = read(&written) {
        let again = serde_json::to_string(&again).expect("as before");
        assert_eq!(again, written);
    }
}

fn read(json: &str) -> Result<goodput_model::Record, ()> {
    goodput_store::read_record(json).map_err(drop)
}
