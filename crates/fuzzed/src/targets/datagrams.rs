//! Datagrams with payload, in every format, from whoever sends them.

use goodput_model::Framing;
use goodput_mover::udp::formats::count;

/// Takes any bytes.
pub fn run(data: &[u8]) {
    let Some((&piece, bytes)) = data.split_first() else { return };
    let chunk = usize::from(piece) + 1;
    let datagrams = bytes.len().div_ceil(chunk) as u64;
    for wide in [false, true] {
        let iperf2 = Framing::Iperf2 { header: Vec::new(), report: wide, timed: false };
        let nuttcp = Framing::Nuttcp { counted: wide };
        for framing in [Framing::Goodput, Framing::Iperf3 { wide }, iperf2, nuttcp, Framing::Ttcp] {
            let counts = count(&framing, chunk, bytes.chunks(chunk));
            assert!(counts.received <= datagrams);
        }
    }
}
