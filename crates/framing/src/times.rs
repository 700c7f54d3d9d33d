//! A time as iperf writes it: seconds and microseconds, 32 bits each, big-endian.

/// As bytes.
pub fn time_bytes(at_ns: u64) -> [u8; 8] {
    let (seconds, us) = (at_ns / 1_000_000_000, at_ns % 1_000_000_000 / 1000);
    // Seconds since 1970 wrap in 2106, which only shifts the clock for readers.
    (u64::from(seconds as u32) << 32 | us).to_be_bytes()
}

/// Such a time at byte `at` of a datagram, nanoseconds. `None` if the datagram ends before, or if these bytes are not a
/// time.
pub fn time_at(datagram: &[u8], at: usize) -> Option<u64> {
    let (seconds, us) = (word_at(datagram, at)?, word_at(datagram, at + 4)?);
    (us < 1_000_000).then(|| u64::from(seconds) * 1_000_000_000 + u64::from(us) * 1000)
}

/// The big-endian 32-bit word at byte `at` of a datagram.
pub fn word_at(datagram: &[u8], at: usize) -> Option<u32> {
    datagram.get(at..)?.first_chunk().copied().map(u32::from_be_bytes)
}
