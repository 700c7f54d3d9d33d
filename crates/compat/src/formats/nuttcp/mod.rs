//! nuttcp's one line, as version 6.1.2 prints it without `-v`; lines for intervals if they were
//! asked for (`-i`). 8.x adds the congestion window, which scripts for 6.1.2 do not expect.

pub mod account;
pub mod verbose;

use goodput_engine::Event;
use goodput_model::Record;

use self::account::{Lines, Numbers, Spelling};
use super::{Format, Writer};

/// The format.
pub const FORMAT: Format = Format {
    id: "nuttcp",
    summary: "the one line of nuttcp, with -i one more for each interval",
    writer: |context| Box::new(Lines::new(context, &CLASSIC)),
};

/// What `-fparse` and `-v` ask for.
pub fn format(parse: bool, verbose: bool) -> &'static Format {
    match (parse, verbose) {
        (false, false) => &FORMAT,
        (true, false) => &super::nuttcp_parse::FORMAT,
        (false, true) => &super::nuttcp_verbose::FORMAT,
        (true, true) => &super::nuttcp_verbose_parse::FORMAT,
    }
}

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

impl Writer for Lines {
    fn event(&mut self, event: &Event) -> String {
        self.happened(event)
    }

    fn finish(&mut self, record: &Record) -> String {
        self.total(record)
    }
}
