//! Datagrams with payload, in every format, from any sender.

use goodput_mover::udp::count;

/// Takes any bytes.
pub fn run(data: &[u8]) {
    let Some((&piece, bytes)) = data.split_first() else { return };
    let chunk = usize::from(piece) + 1;
    let datagrams = bytes.len().div_ceil(chunk) as u64;
    for framing in goodput_framing::examples() {
        let counts = count(&framing, chunk, bytes.chunks(chunk));
        assert!(counts.received <= datagrams);
    }
}
