//! Our server's report to a client after the payload: the lines of nuttcp's server, in its two layouts (lines 5000 to
//! 5900 and 8700 to 8830), as far as this end has the values.
//!
//! nuttcp's client takes bytes, time and rate from the line with `real seconds`, the CPU from the one with `sys`,
//! retransmissions and the round-trip time of a sending server, and shows the others only with `-v`. Unknown values
//! are left out, with one exception. The CPU's line has user and system time separately, but this end knows only their
//! sum. The sum is printed as system time, because a mover spends nearly all of its time in the kernel.

use std::fmt::Write;

use goodput_model::{FlowSample, Sample, SocketMemory, TcpInfo};

use super::OURS;
use super::intervals::NUTTCP_MB_BYTES;
use super::parameters::{NO_LIMIT, NO_RATE};
use super::plan::ClientRequest;
use crate::session::ServerConfig;

/// Shortest time of a measurement, seconds: avoids a division by zero (line 8467).
const MIN_DURATION_S: f64 = 1e-6;

/// The lines about a measurement whose last sample is `last`.
pub fn lines(asked: &ClientRequest, last: &Sample, config: &ServerConfig) -> String {
    let report = Report {
        asked,
        last,
        bytes: if asked.parameters.client_sends { last.received_bytes } else { last.sent_bytes },
        seconds: last.at_s.max(MIN_DURATION_S),
    };
    let mut said = Vec::new();
    said.push(format!("v{OURS}: socket of goodput {}", config.host.goodput));
    report.settings(&mut said);
    report.connection(config, &mut said);
    report.windows(&mut said);
    report.counts(&mut said);
    let role = if asked.parameters.client_sends { 'r' } else { 't' };
    said.iter().map(|line| format!("nuttcp-{role}: {line}\n")).collect()
}

struct Report<'a> {
    asked: &'a ClientRequest,
    last: &'a Sample,
    bytes: u64,
    seconds: f64,
}

impl Report<'_> {
    fn parse(&self) -> bool {
        self.asked.parameters.parse()
    }

    fn sends(&self) -> bool {
        !self.asked.parameters.client_sends
    }

    /// The sum of a number that every flow knows.
    fn sum(&self, of: impl Fn(&FlowSample) -> Option<u64>) -> Option<u64> {
        let flows = &self.last.flows;
        (!flows.is_empty()).then(|| flows.iter().map(of).sum::<Option<u64>>()).flatten()
    }

    fn tcp(&self) -> Option<&TcpInfo> {
        self.last.flows.last()?.tcp.value()
    }

    fn settings(&self, said: &mut Vec<String>) {
        let p = &self.asked.parameters;
        let mode = if p.udp { "udp" } else { "tcp" };
        let parse = self.parse();
        let limit = match (p.nbuf, parse) {
            (NO_LIMIT, _) => String::new(),
            (nbuf, true) => format!("nbuf={nbuf} "),
            (nbuf, false) => format!("nbuf={nbuf}, "),
        };
        said.push(match parse {
            true => format!(
                "buflen={} {limit}nstream={} port={} mode={mode}",
                p.buflen, p.nstream, p.port
            ),
            false => {
                format!("buflen={}, {limit}nstream={}, port={} {mode}", p.buflen, p.nstream, p.port)
            }
        });
        if let Some(cpu) = p.affinity {
            // nuttcp shows a line with this word even without `-v`.
            said.push(format!("Warning: this server does not bind its threads to CPU {cpu}"));
        }
        if self.sends() {
            self.limits(said);
        } else if p.interval_s > 0.0 {
            let (every, plural) = (p.interval_s, if p.interval_s == 1.0 { "" } else { "s" });
            said.push(match parse {
                true => format!("reporting_interval={every:.2}"),
                false => format!("interval reporting every {every:.2} second{plural}"),
            });
        }
    }

    fn limits(&self, said: &mut Vec<String>) {
        let p = &self.asked.parameters;
        let parse = self.parse();
        if p.timeout_s > 0.0 {
            let (limit, plural) = (p.timeout_s, if p.timeout_s == 1.0 { "" } else { "s" });
            said.push(match parse {
                true => format!("time_limit={limit:.2}"),
                false => format!("time limit = {limit:.2} second{plural}"),
            });
        }
        if !matches!(p.rate, 0 | NO_RATE..) {
            let rate = p.rate as f64 / 1000.0;
            // This end keeps the rate from write to write in both modes.
            said.push(match parse {
                true => format!("rate_limit={rate:.3} rate_unit=Mbps rate_mode=instantaneous"),
                false => format!("rate limit = {rate:.3} Mbps (instantaneous)"),
            });
        }
    }

    /// Who connected, and the connect's measurements. nuttcp reports the time of its connect(2) as the round-trip
    /// time; the kernel's minimum is closest to it.
    fn connection(&self, config: &ServerConfig, said: &mut Vec<String>) {
        if self.asked.parameters.udp {
            return;
        }
        let (peer, parse) = (config.peer.ip().to_canonical(), self.parse());
        let connects = self.asked.parameters.connects();
        let mss = self.tcp().and_then(|tcp| tcp.snd_mss_bytes).filter(|_| self.sends());
        let least = self.tcp().and_then(|tcp| tcp.min_rtt_us.or(tcp.rtt_us));
        let rtt_ms = least.filter(|_| connects).map(|us| us as f64 / 1000.0);
        let mut line = match (connects, parse) {
            (true, true) => format!("connect={peer}"),
            (true, false) => format!("connect to {peer}"),
            (false, true) => format!("accept={peer}"),
            (false, false) => format!("accept from {peer}"),
        };
        let facts = [
            mss.map(|mss| format!("mss={mss}")),
            rtt_ms.map(
                |ms| if parse { format!("rtt_ms={ms:.3}") } else { format!("RTT={ms:.3} ms") },
            ),
        ];
        let facts: Vec<_> = facts.into_iter().flatten().collect();
        if parse {
            facts.iter().for_each(|fact| line.extend([" ", fact]));
        } else if !facts.is_empty() {
            line.extend([" with ", &facts.join(", ")]);
        }
        line.push_str(if peer.is_ipv4() { " af=inet" } else { " af=inet6" });
        said.push(line);
    }

    fn windows(&self, said: &mut Vec<String>) {
        let memory = self.last.flows.last().and_then(|flow| flow.memory.value());
        if let Some(SocketMemory { sndbuf_bytes: send, rcvbuf_bytes: receive, .. }) = memory {
            said.push(match self.parse() {
                true => format!("send_window_size={send} receive_window_size={receive}"),
                false => format!("send window size = {send}, receive window size = {receive}"),
            });
        }
    }

    fn counts(&self, said: &mut Vec<String>) {
        let (parse, s) = (self.parse(), self.seconds);
        let (megabytes, bytes) = (self.bytes as f64 / NUTTCP_MB_BYTES, self.bytes as f64);
        let (kilobytes, mbps) = (bytes / s / 1024.0, bytes / s / 125_000.0);
        said.push(match parse {
            true => format!(
                "megabytes={megabytes:.4} real_seconds={s:.2} rate_KBps={kilobytes:.2} \
                 rate_Mbps={mbps:.4}"
            ),
            false => format!(
                "{megabytes:.4} MB in {s:.2} real seconds = {kilobytes:.2} KB/sec = {mbps:.4} Mbps"
            ),
        });
        let cpu_us = self.sum(|flow| flow.cpu_us.value().copied());
        if let Some(cpu) = cpu_us.filter(|us| *us > 0).map(|us| us as f64 / 1e6) {
            let each = bytes / cpu / 1024.0;
            said.push(match parse {
                true => format!(
                    "megabytes={megabytes:.4} cpu_seconds={cpu:.2} KB_per_cpu_second={each:.2}"
                ),
                false => {
                    format!("{megabytes:.4} MB in {cpu:.2} CPU seconds = {each:.2} KB/cpu sec")
                }
            });
        }
        self.retransmits(said);
        if let Some(calls) = self.sum(|flow| flow.calls.value().copied()).filter(|n| *n > 0) {
            // nuttcp counts 1024 milliseconds to the second here (line 8814).
            let (each, per_s) = (1024.0 * s / calls as f64, calls as f64 / s);
            said.push(match parse {
                true => {
                    format!("io_calls={calls} msec_per_call={each:.2} calls_per_sec={per_s:.2}")
                }
                false => {
                    format!("{calls} I/O calls, msec/call = {each:.2}, calls/sec = {per_s:.2}")
                }
            });
        }
        said.push(self.cpu(cpu_us.unwrap_or(0)));
    }

    /// The retransmissions of a TCP sender; separately for each stream if there are several.
    fn retransmits(&self, said: &mut Vec<String>) {
        if self.asked.parameters.udp || !self.sends() {
            return;
        }
        let kilobytes = |tcp: &TcpInfo| Some(tcp.snd_cwnd_segments? * tcp.snd_mss_bytes? / 1024);
        let each = |of: &dyn Fn(&TcpInfo) -> Option<u64>| -> Option<Vec<u64>> {
            self.last.flows.iter().map(|flow| of(flow.tcp.value()?)).collect()
        };
        let Some(retransmits) = each(&|tcp| tcp.total_retrans_segments) else { return };
        let mut line = self.by_stream("retrans", "", &retransmits);
        if let Some(cwnd) = each(&kilobytes) {
            line.push(' ');
            line.push_str(&self.by_stream("cwnd", " KB", &cwnd));
        }
        said.push(line);
    }

    fn by_stream(&self, name: &str, unit: &str, each: &[u64]) -> String {
        let sum: u64 = each.iter().sum();
        let parts: Vec<_> = each.iter().map(u64::to_string).collect();
        let mut said =
            if self.parse() { format!("{name}={sum}") } else { format!("{name} = {sum}{unit}") };
        if each.len() > 1 && sum > 0 {
            let parts = parts.join("+");
            // Writing to a string can't fail.
            let _ = match self.parse() {
                true => write!(said, " {name}_by_stream={parts}"),
                false => write!(said, " ( {parts} )"),
            };
        }
        said
    }

    /// The elapsed time in the format of `prusage()`, and the share of the CPU.
    fn cpu(&self, cpu_us: u64) -> String {
        let (cpu, whole) = (cpu_us as f64 / 1e6, self.seconds as u64);
        let (hours, minutes, seconds) = (whole / 3600, whole / 60 % 60, whole % 60);
        let elapsed = match hours {
            0 => format!("{minutes}:{seconds:02}"),
            _ => format!("{hours}:{minutes:02}:{seconds:02}"),
        };
        let percent = (cpu / self.seconds * 100.0) as u64;
        match self.parse() {
            true => format!("stats=cpu user=0.0 system={cpu:.1} elapsed={elapsed} cpu={percent}%"),
            false => format!("0.0user {cpu:.1}sys {elapsed}real {percent}%"),
        }
    }
}
