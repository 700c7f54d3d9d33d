//! How nuttcp 6.1.2 spells its one line.

use super::lines::{Numbers, Spelling};

/// The formats of nuttcp-6.1.2.c, PERF_FMT_BRIEF to RTT_FMT_BRIEF and their _INTERVAL kin.
pub const CLASSIC: Spelling = Spelling { interval, total };

fn interval(n: &Numbers) -> String {
    let mut line = perf(n);
    if let Some(retransmits) = n.retransmits {
        line += &format!(" {retransmits:5} retrans");
    }
    if let Some((drop, packets)) = n.datagrams {
        line += &format!(" {drop:5} / {packets:5} ~drop/pkt {:5.2} ~%loss", n.loss_percent());
    }
    line
}

fn total(n: &Numbers) -> String {
    let mut line = perf(n) + &format!(" {} %TX", n.tx_cpu);
    if let Some(rx_cpu) = n.rx_cpu {
        line += &format!(" {rx_cpu} %RX");
    }
    if let Some((drop, packets)) = n.datagrams {
        line += &format!(" {drop} / {packets} drop/pkt {:.2} %loss", n.loss_percent());
    }
    if let Some(retransmits) = n.retransmits {
        line += &format!(" {retransmits} retrans");
    }
    if let Some(rtt) = n.rtt_ms {
        line += &format!(" {rtt:.2} msRTT");
    }
    line
}

fn perf(n: &Numbers) -> String {
    format!("{:10.4} MB / {:6.2} sec = {:9.4} Mbps", n.megabytes(), n.seconds, n.mbps())
}
