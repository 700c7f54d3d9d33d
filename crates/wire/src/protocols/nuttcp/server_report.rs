//! A server's report about itself after the payload, in the layout `key=value`.
//!
//! ```text
//! nuttcp-t: connect=192.0.2.1 mss=1448 rtt_ms=0.059
//! nuttcp-t: megabytes=2.4375 real_seconds=1.02 rate_KBps=2438.62 rate_Mbps=19.9772
//! nuttcp-t: retrans=0 cwnd=543
//! nuttcp-t: stats=cpu user=0.0 system=0.0 elapsed=0:01 cpu=0% memory=0i+0d-764maxrss …
//! ```
//!
//! The CPU's line is the last in every version. Bytes are printed in MB of 2^20 with four decimal places, so they are
//! known to ± 53 bytes. Over UDP this gives the exact number of datagrams if all have the same length. Over TCP, if a
//! receiving server prints as many MB as this end has sent, this end's count is used; the counts differ only if the
//! stream broke off.

use goodput_model::{FlowTotals, Known, Plan, Role, Sample, Totals, Transport};

use super::version::Version;
use crate::error::WireError;
use crate::plain::phrase;

/// At most this much text of a server is kept, bytes.
const MAX_TEXT_BYTES: usize = 64 * 1024;

/// A MB in nuttcp, bytes.
const NUTTCP_MB_BYTES: f64 = 1_048_576.0;

/// Half of the last digit of a number of MB, bytes.
const PRECISION_BYTES: f64 = NUTTCP_MB_BYTES * 0.000_05;

/// Last digit of a number of seconds. In a short test the rate, which has four digits, gives the time more precisely.
const RATE_STEP_S: f64 = 0.01;

/// Why most of what other protocols report is missing.
const UNREPORTED: &str = "a nuttcp server does not report it";

/// The report so far.
#[derive(Debug, Default)]
pub struct ServerReport {
    text: String,
    megabytes: Option<f64>,
    seconds: Option<f64>,
    cpu_percent: Option<f64>,
    retransmits: Option<u64>,
    complaint: Option<String>,
}

impl ServerReport {
    /// Takes a line.
    pub fn hear(&mut self, line: &str) -> Result<(), WireError> {
        let line = phrase(line);
        if self.text.len() + line.len() > MAX_TEXT_BYTES {
            let why = format!("it reports more than {} KiB about itself", MAX_TEXT_BYTES >> 10);
            return Err(WireError::Protocol(why));
        }
        self.read(&line);
        self.text.push_str(&line);
        self.text.push('\n');
        Ok(())
    }

    fn read(&mut self, line: &str) {
        if line.contains("Error") {
            self.complaint.get_or_insert_with(|| line.into());
        }
        let Some(items) = line.strip_prefix("nuttcp-r: ").or(line.strip_prefix("nuttcp-t: "))
        else {
            return;
        };
        let value = |name: &str| {
            let items = items.split_whitespace().filter_map(|item| item.split_once('='));
            items.filter(|(key, _)| *key == name).map(|(_, value)| value).next()
        };
        let number = |name: &str| value(name).and_then(at_least_zero);
        if let (Some(megabytes), Some(seconds)) = (number("megabytes"), number("real_seconds")) {
            let rate = number("rate_Mbps");
            let exact = rate.map(|mbps| megabytes * NUTTCP_MB_BYTES / 125_000.0 / mbps);
            let agrees = |exact: &f64| (exact - seconds).abs() <= RATE_STEP_S / 2.0;
            (self.megabytes, self.seconds) =
                (Some(megabytes), Some(exact.filter(agrees).unwrap_or(seconds)));
        }
        if let Some(percent) = value("cpu").filter(|_| value("stats") == Some("cpu")) {
            self.cpu_percent = percent.strip_suffix('%').and_then(at_least_zero);
        }
        if let Some(retransmits) = value("retrans") {
            self.retransmits = retransmits.parse().ok();
        }
    }

    /// Whether the report is complete.
    pub fn is_complete(&self) -> bool {
        self.megabytes.is_some() && self.cpu_percent.is_some()
    }

    /// The server's complaint.
    pub fn complaint(&self) -> Option<&str> {
        self.complaint.as_deref()
    }

    /// A server's report of a measurement of `plan`. `theirs` is the server's version, `ours` the last sample of this
    /// end.
    pub fn totals(&self, plan: &Plan, theirs: Version, ours: &Sample) -> Totals {
        let flows = plan.flow_plans();
        let Some(first) = flows.first() else {
            return self.totals_of(theirs, Vec::new());
        };
        let role = match first.sender {
            goodput_model::EndName::Near => Role::Receiver,
            goodput_model::EndName::Far => Role::Sender,
        };
        let (bytes, datagrams) = self.counts(plan, role, ours);
        let lost = datagrams.filter(|_| role == Role::Receiver).and_then(|received| {
            let sent = ours.flows.iter().map(|flow| flow.datagrams.map(|counts| counts.sent));
            sent.sum::<Option<u64>>()?.checked_sub(received)
        });
        let known = |value: Option<u64>| value.map_or(Known::missing(UNREPORTED), Known::Value);
        let unreported = FlowTotals::unreported(first.id, role, UNREPORTED);
        let totals = FlowTotals {
            together_with: flows.len() as u16 - 1,
            bytes: known(bytes),
            duration_s: self.seconds.map_or(Known::missing(UNREPORTED), Known::Value),
            retransmits: known(self.retransmits),
            // nuttcp counts received datagrams; this end knows how many were sent.
            datagrams: known(datagrams.and_then(|counted| counted.checked_add(lost.unwrap_or(0)))),
            lost: known(lost),
            ..unreported
        };
        self.totals_of(theirs, vec![totals])
    }

    fn totals_of(&self, theirs: Version, flows: Vec<FlowTotals>) -> Totals {
        Totals {
            program: format!("nuttcp {theirs}"),
            cpu_percent: self.cpu_percent.map_or(Known::missing(UNREPORTED), Known::Value),
            cpu_user_percent: None,
            cpu_system_percent: None,
            congestion: None,
            cookie: None,
            flows,
            text: Some(self.text.trim_end().into()),
        }
    }

    /// Bytes to the printed precision or better, and over UDP whole datagrams.
    fn counts(&self, plan: &Plan, role: Role, ours: &Sample) -> (Option<u64>, Option<u64>) {
        let bytes = self.megabytes.map(|megabytes| (megabytes * NUTTCP_MB_BYTES).round());
        let chunk = plan.chunk_bytes.0 as f64;
        let is_sent = |bytes: &f64| (bytes - ours.sent_bytes as f64).abs() <= PRECISION_BYTES;
        if plan.transport == Transport::Tcp
            && role == Role::Receiver
            && bytes.is_some_and(|b| is_sent(&b))
        {
            return (Some(ours.sent_bytes), None);
        }
        if plan.transport == Transport::Tcp || chunk <= 2.0 * PRECISION_BYTES {
            return (bytes.map(|bytes| bytes as u64), None);
        }
        let datagrams = bytes.map(|bytes| (bytes / chunk).round() as u64);
        (datagrams.and_then(|count| count.checked_mul(plan.chunk_bytes.0)), datagrams)
    }
}

fn at_least_zero(text: &str) -> Option<f64> {
    text.parse().ok().filter(|number: &f64| number.is_finite() && *number >= 0.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pair::sample;
    use goodput_model::{Bytes, Direction};
    use proptest::prelude::*;

    /// Of Debian's 6.1.2: `nuttcp -r -fparse -v -T1 -R20m`.
    const LINES: [&str; 9] = [
        "nuttcp-t: v6.1.2: socket",
        "nuttcp-t: buflen=65536 nstream=1 port=5001 mode=tcp host=127.0.0.1",
        "nuttcp-t: connect=127.0.0.1 mss=32741 rtt_ms=0.059",
        "nuttcp-t: send_window_size=3939840 receive_window_size=131072",
        "nuttcp-t: megabytes=2.4375 real_seconds=1.02 rate_KBps=2438.62 rate_Mbps=19.9772",
        "nuttcp-t: megabytes=2.4375 cpu_seconds=0.00 KB_per_cpu_second=1101014.56",
        "nuttcp-t: retrans=3 cwnd=543",
        "nuttcp-t: io_calls=40 msec_per_call=26.20 calls_per_sec=39.08",
        "nuttcp-t: stats=cpu user=0.0 system=0.0 elapsed=0:01 cpu=7% memory=0i+0d-764maxrss io=0+15pf swaps=40+1csw",
    ];

    fn report_of(lines: &[&str]) -> ServerReport {
        let mut report = ServerReport::default();
        lines.iter().for_each(|line| report.hear(line).unwrap());
        report
    }

    #[test]
    fn a_senders_account_is_read() {
        let report = report_of(&LINES);
        assert!(report.is_complete());
        let plan = Plan { direction: Direction::Reverse, ..Plan::standard() };
        let totals = report.totals(&plan, Version::new(6, 1, 2), &sample(1.0, 0));
        assert_eq!(
            (totals.program.as_str(), totals.cpu_percent),
            ("nuttcp 6.1.2", Known::Value(7.0))
        );
        let flow = &totals.flows[0];
        assert_eq!((flow.role, &flow.bytes), (Role::Sender, &Known::Value(2_555_904)));
        assert_eq!(flow.retransmits, Known::Value(3));
        // 2.4375 MB at 19.9772 Mbps.
        let seconds = flow.duration_s.value().unwrap();
        assert!((seconds - 1.023_528).abs() < 1e-6, "{seconds}");
        assert!(flow.lost.value().is_none());
        assert!(totals.text.unwrap().starts_with("nuttcp-t: v6.1.2: socket\nnuttcp-t: buflen"));
    }

    #[test]
    fn a_time_that_the_rate_belies_is_taken_as_reported() {
        let report = report_of(&["nuttcp-r: megabytes=2.4375 real_seconds=1.02 rate_Mbps=7.0"]);
        assert_eq!(report.seconds, Some(1.02));
        let short = report_of(&["nuttcp-r: megabytes=0.0039 real_seconds=0.00 rate_Mbps=163.84"]);
        assert!(short.seconds.is_some_and(|s| s > 1.9e-4 && s < 2.1e-4), "{:?}", short.seconds);
    }

    #[test]
    fn it_is_complete_only_with_its_last_line() {
        for lines in 0..LINES.len() {
            assert!(!report_of(&LINES[..lines]).is_complete(), "{lines}");
        }
    }

    #[test]
    fn datagrams_are_counted_exactly_although_bytes_are_rounded() {
        let perf = "nuttcp-r: megabytes=0.0401 real_seconds=1.02 rate_KBps=2438.62 rate_Mbps=19.9";
        let plan = Plan { transport: Transport::Udp, chunk_bytes: Bytes(1400), ..Plan::standard() };
        let totals = report_of(&[perf]).totals(&plan, Version::new(8, 2, 2), &sample(1.0, 0));
        assert_eq!(totals.flows[0].bytes, Known::Value(42_000));
    }

    #[test]
    fn what_this_end_has_sent_is_what_was_received_where_it_prints_alike() {
        let report = report_of(&["nuttcp-r: megabytes=0.9537 real_seconds=0.01 rate_Mbps=1815.7"]);
        let bytes = |sent| {
            let totals =
                report.totals(&Plan::standard(), Version::new(8, 2, 2), &sample(1.0, sent));
            totals.flows[0].bytes.clone()
        };
        assert_eq!(bytes(1_000_000), Known::Value(1_000_000));
        assert_eq!(bytes(2_000_000), Known::Value(1_000_027));
    }

    #[test]
    fn a_servers_text_is_made_plain_and_its_complaint_remembered() {
        let report = report_of(&["nuttcp-r: v6.1.2: \x1b[31mError: bind: Address already in use"]);
        let complaint = report.complaint().unwrap();
        assert!(complaint.ends_with("Address already in use") && !complaint.contains('\x1b'));
        let flood = "x".repeat(1000);
        let mut report = ServerReport::default();
        assert!((0..100).any(|_| report.hear(&flood).is_err()));
    }

    proptest! {
        #[test]
        fn any_line_is_taken(line in "(nuttcp-r: )?(megabytes=.{0,9} real_seconds=.{0,9})?.{0,80}") {
            let mut report = ServerReport::default();
            prop_assert!(report.hear(&line).is_ok());
            let _ = report.totals(&Plan::standard(), Version::new(6, 1, 2), &sample(1.0, 0));
        }
    }
}
