//! One line of iperf3's report (3.12, `iperf_locale.c` for the layout and `units.c` for the numbers).

use goodput_model::Role;

/// The counts that a line shows after the rate.
#[derive(Debug, Clone, Copy)]
pub enum Count {
    /// None: for a TCP receiver.
    None,
    /// For a TCP sender. An interval shows the congestion window as well.
    Retransmits { count: u64, cwnd_bytes: Option<u64> },
    /// For a UDP sender.
    Datagrams(u64),
    /// For a UDP receiver, and for both ends in the totals.
    Lost { jitter_ms: f64, lost: u64, of: u64 },
}

/// One line: for a stream, or for the sum of several.
#[derive(Debug, Clone, Copy)]
pub struct Line {
    /// Number of the flow; `None` for a sum.
    pub stream: Option<u16>,
    pub role: Role,
    pub from_s: f64,
    pub to_s: f64,
    pub bytes: u64,
    pub count: Count,
    /// The last word of the line.
    pub ending: &'static str,
}

/// iperf3 names streams by their descriptors: the first has 5, and others mostly odd ones.
const FIRST_DESCRIPTOR: u32 = 5;

impl Line {
    /// The sum of lines of one role.
    pub fn sum(&self, lines: &[&Self]) -> Self {
        let counts: Vec<_> = lines.iter().map(|line| line.count).collect();
        Self {
            stream: None,
            bytes: lines.iter().map(|line| line.bytes).sum(),
            count: sum(&counts),
            ..*self
        }
    }

    /// The line as iperf3 prints it. With both directions at once, lines name their role.
    pub fn print(&self, bidirectional: bool) -> String {
        let name = self.stream.map_or_else(
            || "SUM".into(),
            |flow| format!("{:>3}", FIRST_DESCRIPTOR + 2 * u32::from(flow)),
        );
        let role = match (bidirectional, self.role) {
            (false, _) => "",
            (true, Role::Sender) => "[TX-S]",
            (true, Role::Receiver) => "[RX-S]",
        };
        let seconds = self.to_s - self.from_s;
        let rate = if seconds > 0.0 { self.bytes as f64 * 8.0 / seconds } else { 0.0 };
        let (from, to) = (self.from_s, self.to_s);
        let (bytes, rate) = (scaled(self.bytes as f64, BYTES), scaled(rate, BITS));
        let count = self.counted(bidirectional);
        let ending = self.ending;
        format!("[{name}]{role} {from:6.2}-{to:<6.2} sec  {bytes}  {rate}/sec{count}{ending}\n")
    }

    fn counted(&self, bidirectional: bool) -> String {
        match self.count {
            Count::None => " ".repeat(18),
            Count::Retransmits { count, cwnd_bytes } if self.stream.is_some() => match cwnd_bytes {
                Some(cwnd) => format!("  {count:>3}   {}       ", scaled(cwnd as f64, BYTES)),
                None => format!("  {count:>3}             "),
            },
            Count::Retransmits { count, .. } => format!("  {count:>3}             "),
            Count::Datagrams(count) if bidirectional => format!("            {count}  "),
            Count::Datagrams(count) => format!("  {count}  "),
            Count::Lost { jitter_ms, lost, of } => {
                let percent = if of > 0 { 100.0 * lost as f64 / of as f64 } else { 0.0 };
                format!("  {jitter_ms:5.3} ms  {lost}/{of} ({}%)  ", two_digits(percent))
            }
        }
    }
}

/// The jitter of a sum is the mean of its streams' jitters.
fn sum(counts: &[Count]) -> Count {
    let zero = match counts.first() {
        Some(Count::Retransmits { .. }) => Count::Retransmits { count: 0, cwnd_bytes: None },
        Some(Count::Datagrams(_)) => Count::Datagrams(0),
        Some(Count::Lost { .. }) => Count::Lost { jitter_ms: 0.0, lost: 0, of: 0 },
        Some(Count::None) | None => Count::None,
    };
    let streams = counts.len() as f64;
    counts.iter().fold(zero, |sum, count| match (sum, *count) {
        (Count::Retransmits { count, .. }, Count::Retransmits { count: more, .. }) => {
            Count::Retransmits { count: count + more, cwnd_bytes: None }
        }
        (Count::Datagrams(count), Count::Datagrams(more)) => Count::Datagrams(count + more),
        (Count::Lost { jitter_ms: a, lost, of }, Count::Lost { jitter_ms: b, lost: l, of: o }) => {
            Count::Lost { jitter_ms: a + b / streams, lost: lost + l, of: of + o }
        }
        (sum, _) => sum,
    })
}

/// A unit's steps and their names.
type Unit = (f64, [&'static str; 5]);

const BYTES: Unit = (1024.0, ["Bytes", "KBytes", "MBytes", "GBytes", "TBytes"]);
const BITS: Unit = (1000.0, ["bits", "Kbits", "Mbits", "Gbits", "Tbits"]);

/// Three digits and a unit, at least four characters wide (`unit_snprintf`).
fn scaled(mut value: f64, (step, names): Unit) -> String {
    let mut name = names[0];
    for larger in &names[1..] {
        if value < step {
            break;
        }
        value /= step;
        name = larger;
    }
    let places = match value {
        v if v < 9.995 => 2,
        v if v < 99.95 => 1,
        _ => 0,
    };
    format!("{value:4.places$} {name}")
}

/// Two significant digits, as with printf's `%.2g`.
fn two_digits(value: f64) -> String {
    let scientific = format!("{value:.1e}");
    let Some((digits, exponent)) = scientific.split_once('e') else { return scientific };
    let exponent: i32 = exponent.parse().unwrap_or(0);
    let plain = |text: &str| match text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.').to_owned(),
        false => text.to_owned(),
    };
    match exponent {
        -4..=1 => plain(&format!("{value:.*}", (1 - exponent) as usize)),
        _ => format!("{}e{exponent:+03}", plain(digits)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_iperf3s() {
        assert_eq!(scaled(0.0, BYTES), "0.00 Bytes");
        assert_eq!(scaled(1023.0 * 1024.0, BYTES), "1023 KBytes");
        assert_eq!(scaled(34.1e9, BITS), "34.1 Gbits");
        assert_eq!(scaled(311.0, BITS), " 311 bits");
        assert_eq!(scaled(9.96e6, BITS), "9.96 Mbits");
        let two = [0.0, 2.63, 0.012, 12.3, 99.9, 1e-6].map(two_digits);
        assert_eq!(two, ["0", "2.6", "0.012", "12", "1e+02", "1e-06"]);
    }
}
