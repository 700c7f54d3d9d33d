//! nuttcp's `-fparse`: the same line as `key=value` (nuttcp-6.1.2.c, P_PERF_FMT_BRIEF and its kin).

use super::Format;
use super::nuttcp::lines::{Lines, Numbers, Spelling};

/// The format.
pub const FORMAT: Format = Format {
    id: "nuttcp-parse",
    summary: "the line of nuttcp -fparse: key=value",
    refuses: |_| None,
    writer: |context| Box::new(Lines::new(context, &PARSE)),
};

/// Its lines.
pub const PARSE: Spelling = Spelling { interval, total };

fn interval(n: &Numbers) -> String {
    let line = format!(
        "megabytes={:.4} real_sec={:.2} rate_Mbps={:.4}",
        n.megabytes(),
        n.seconds,
        n.mbps()
    );
    line + &counts(n)
}

fn total(n: &Numbers) -> String {
    let mut line = format!(
        "megabytes={:.4} real_seconds={:.2} rate_Mbps={:.4} tx_cpu={}",
        n.megabytes(),
        n.seconds,
        n.mbps(),
        n.tx_cpu
    );
    if let Some(rx_cpu) = n.rx_cpu {
        line += &format!(" rx_cpu={rx_cpu}");
    }
    line += &counts(n);
    if let Some(rtt) = n.rtt_ms {
        line += &format!(" rtt_ms={rtt:.2}");
    }
    line
}

fn counts(n: &Numbers) -> String {
    let mut text = String::new();
    if let Some(retransmits) = n.retransmits {
        text += &format!(" retrans={retransmits}");
    }
    if let Some((drop, packets)) = n.datagrams {
        text += &format!(" drop={drop} pkt={packets} data_loss={:.5}", n.loss_percent());
    }
    text
}
