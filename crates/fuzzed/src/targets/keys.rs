//! The files that say whom to trust: authorized keys, known servers, private keys.

use goodput_wire::keys::{AuthorizedKeys, KeyFile, KnownServers, PublicKey};

/// Takes any bytes.
pub fn run(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    if let Ok(keys) = AuthorizedKeys::parse(text) {
        assert!(keys.len() <= text.lines().count());
    }
    if let Ok(known) = KnownServers::parse(text) {
        let _ = known.find("far.example", 7487);
    }
    if let Ok(file) = KeyFile::parse(text) {
        let again = KeyFile::parse(&file.to_text()).expect("what was written is read");
        assert_eq!(again.key.public(), file.key.public());
    }
    if let Ok(key) = text.parse::<PublicKey>() {
        assert_eq!(key.to_string(), text);
    }
}
