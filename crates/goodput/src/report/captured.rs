//! The lines on a capture: its file, and what it shows of sizes and pauses.

use goodput_model::{
    CapturedPayload, EndName, PacketBytes, PacketCapture, PacketSize, Seconds, counted,
};

/// The file first, then a line for each end and transport that sent payload. `at`: the host that captured.
pub(super) fn lines(capture: &PacketCapture, at: EndName) -> Vec<String> {
    let PacketCapture { device, file, packets, dropped, not_kept, .. } = capture;
    let lost = match dropped + not_kept {
        0 => "none missing".to_owned(),
        missing => format!("{missing} missing"),
    };
    let host = match at {
        EndName::Near => "",
        EndName::Far => " of the far host",
    };
    let packets = counted(*packets, "packet");
    let first = format!("{file}   {packets} on {device}{host}, {lost}");
    [first].into_iter().chain(capture.payload.iter().map(payload)).collect()
}

fn payload(payload: &CapturedPayload) -> String {
    let CapturedPayload { sender, transport, packets, largest_bytes, sizes, gaps } = payload;
    let largest = PacketBytes(largest_bytes.0);
    let size = |size: &PacketSize| {
        format!("{} ({})", PacketBytes(size.bytes.0), share(size.packets, *packets))
    };
    let sizes: Vec<String> = sizes.iter().take(3).map(size).collect();
    let mut words = format!(
        "{transport} of the {sender} end: packets of {}, the largest {largest}; the longest gap is {}",
        sizes.join(", "),
        Seconds(gaps.longest_s)
    );
    if let Some(rhythm) = gaps.rhythm {
        let period = Seconds(rhythm.period_s);
        words += &format!("; bursts of {} every {period}", rhythm.burst_bytes);
    }
    words
}

fn share(part: u64, whole: u64) -> String {
    format!("{:.0} %", part as f64 / whole as f64 * 100.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use goodput_model::{Bytes, Gaps, Rhythm, Transport};

    #[test]
    fn a_capture_says_what_passed() {
        let rhythm = Rhythm { period_s: 0.207, burst_bytes: Bytes(3000) };
        let tcp = CapturedPayload {
            sender: EndName::Near,
            transport: Transport::Tcp,
            packets: 4,
            largest_bytes: Bytes(65_212),
            sizes: vec![
                PacketSize { bytes: Bytes(1500), packets: 3 },
                PacketSize { bytes: Bytes(65_212), packets: 1 },
            ],
            gaps: Gaps { longest_s: 0.2, histogram: Vec::new(), rhythm: Some(rhythm) },
        };
        let capture = PacketCapture {
            device: "eth0".into(),
            file: "own.pcapng".into(),
            packets: 9,
            dropped: 0,
            not_read: 0,
            not_kept: 0,
            failure: None,
            payload: vec![tcp],
        };
        let expected = [
            "own.pcapng   9 packets on eth0, none missing",
            "TCP of the near end: packets of 1500 bytes (75 %), 65212 bytes (25 %), the largest 65212 bytes; the longest gap is \
             200 ms; bursts of 3 kB every 207 ms",
        ];
        assert_eq!(lines(&capture, EndName::Near), expected);
        let missing = PacketCapture { dropped: 3, not_kept: 4, ..capture };
        let far = "own.pcapng   9 packets on eth0 of the far host, 7 missing";
        assert_eq!(lines(&missing, EndName::Far)[0], far);
    }
}
