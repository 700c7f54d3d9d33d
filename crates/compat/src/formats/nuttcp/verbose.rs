//! What each end reports about itself under `-v`, this end first. It is built as keys with values, as in `-fparse`, and
//! translated into the usual layout, so that a far end's own words fit either (nuttcp-6.1.2.c, the P_ formats and their
//! plain kin, lines 430 to 520).

use goodput_engine::Event;
use goodput_model::{End, EndName, FlowSample, Length, Record, Role, Transport};

use super::lines::Lines;
use crate::formats::counts::{self, DirectionCounts};
use crate::formats::{Context, Intervals, Writer};

/// A layout is used if the line has all of its keys; the first match wins.
const LAYOUTS: [&str; 21] = [
    "buflen={buflen}, nbuf={nbuf}, nstream={nstream}, port={port} {mode} -> {host}",
    "buflen={buflen}, nbuf={nbuf}, nstream={nstream}, port={port} {mode}",
    "buflen={buflen}, nstream={nstream}, port={port} {mode} -> {host}",
    "buflen={buflen}, nstream={nstream}, port={port} {mode}",
    "time limit = {time_limit} seconds",
    "rate limit = {rate_limit} {rate_unit} ({rate_mode}), {pps_rate} pps",
    "rate limit = {rate_limit} {rate_unit} ({rate_mode})",
    "interval reporting every {reporting_interval} seconds",
    "connect to {connect} with mss={mss}, RTT={rtt_ms} ms",
    "connect to {connect} with mss={mss}",
    "accept from {accept}",
    "send window size = {send_window_size}, receive window size = {receive_window_size}",
    "available send window = {send_window_avail}, available receive window = \
     {receive_window_avail}",
    "{megabytes} MB in {real_seconds} real seconds = {rate_KBps} KB/sec = {rate_Mbps} Mbps",
    "{megabytes} MB in {cpu_seconds} CPU seconds = {KB_per_cpu_second} KB/cpu sec",
    "retrans = {retrans} cwnd = {cwnd} KB",
    "retrans = {retrans}",
    "{drop} / {pkt} drop/pkt {data_loss}% data loss",
    "{io_calls} I/O calls, msec/call = {msec_per_call}, calls/sec = {calls_per_sec}",
    "{user}user {system}sys {elapsed}real {cpu} {memory} {io} {swaps}",
    "{user}user {system}sys {elapsed}real {cpu}",
];

/// Prints both ends' reports at the end.
pub struct Verbose {
    lines: Lines,
    context: Context,
    /// Whether to print keys with values.
    parse: bool,
}

impl Verbose {
    /// In this layout; `lines` prints the intervals.
    pub fn new(context: Context, lines: Lines, parse: bool) -> Self {
        Self { lines, context, parse }
    }
}

impl Writer for Verbose {
    fn event(&mut self, event: &Event) -> String {
        self.lines.happened(event)
    }

    fn finish(&mut self, record: &Record) -> String {
        let flows = counts::flows(record);
        let mut texts = Vec::new();
        for direction in counts::directions(record, &flows) {
            for end in [EndName::Near, EndName::Far] {
                let reported = record.far_totals.as_ref().filter(|_| end == EndName::Far);
                let own =
                    reported.and_then(|reported| reported.text.as_deref()).filter(|t| is_nuttcp(t));
                let side = EndLine { record, context: &self.context, direction: &direction, end };
                let said = match own {
                    Some(text) => passed_on(text, side.drops()),
                    None => side.lines(),
                };
                let said = said.iter().map(|line| self.written(line)).collect::<String>();
                texts.extend((!said.is_empty()).then_some(said));
            }
        }
        texts.join("\n")
    }
}

fn is_nuttcp(text: &str) -> bool {
    text.starts_with("nuttcp-")
}

impl Verbose {
    fn written(&self, line: &str) -> String {
        let line = match line.split_once(": ") {
            Some((prefix, said)) if !self.parse => format!("{prefix}: {}", in_words(said)),
            _ => line.into(),
        };
        match &self.context.style.title {
            Some(title) => format!("{title}: {line}\n"),
            None => format!("{line}\n"),
        }
    }
}

/// The far end's own report as nuttcp passes it on: without the line that only `-vv` shows, and with the lost datagrams
/// beside what arrived, which the client computes (nuttcp-6.1.2.c, line 4860 on).
fn passed_on(text: &str, drops: Option<String>) -> Vec<String> {
    let mut lines = Vec::new();
    for line in text.lines().filter(|line| !line.contains("cpu_seconds=")) {
        lines.push(line.to_string());
        if line.contains("real_seconds=") {
            lines.extend(drops.as_ref().map(|drops| format!("nuttcp-r: {drops}")));
        }
    }
    lines
}

/// Translates keys with values into the usual layout; other lines stay as they are.
fn in_words(said: &str) -> String {
    let items: Vec<_> = said.split_whitespace().filter_map(|item| item.split_once('=')).collect();
    let filled = |layout: &&str| -> Option<String> {
        let mut parts = layout.split(['{', '}']);
        let mut text = parts.next()?.to_owned();
        while let (Some(key), Some(rest)) = (parts.next(), parts.next()) {
            let (_, value) = items.iter().find(|(name, _)| *name == key)?;
            text += &if key == "data_loss" { loss(value) } else { (*value).into() };
            text += rest;
        }
        Some(text)
    };
    let text = LAYOUTS.iter().find_map(filled).unwrap_or_else(|| said.into());
    // Where a key leaves no room for a space, and for exactly one second.
    text.replace("0d-", "0d ").replace(" 1.00 seconds", " 1.00 second")
}

/// A loss in percent, with more digits only if it would round to zero without them (LOSS_FMT, LOSS_FMT5).
fn loss(value: &str) -> String {
    match value.parse::<f64>() {
        Ok(percent) if percent == 0.0 || percent >= 0.1 => format!("{percent:.2}"),
        _ => value.into(),
    }
}

/// One end of one direction.
struct EndLine<'a> {
    record: &'a Record,
    context: &'a Context,
    direction: &'a DirectionCounts,
    end: EndName,
}

impl EndLine<'_> {
    fn sends(&self) -> bool {
        self.direction.sender == self.end
    }

    /// Empty if this end's counts are unknown.
    fn lines(&self) -> Vec<String> {
        let Some(perf) = self.perf() else { return Vec::new() };
        let lines = [
            Some("v6.1.2: socket".into()),
            Some(self.buffers()),
            self.time_limit(),
            self.rate_limit(),
            self.reporting(),
            self.connection(),
            self.windows(),
            Some(perf),
            self.retransmits(),
            self.drops(),
            self.calls(),
            self.cpu(),
        ];
        let role = if self.sends() { 't' } else { 'r' };
        lines.into_iter().flatten().map(|line| format!("nuttcp-{role}: {line}")).collect()
    }

    fn seen(&self) -> Option<&End> {
        match self.end {
            EndName::Near => self.record.ends.near.value(),
            EndName::Far => self.record.ends.far.value(),
        }
    }

    /// The flows of this end in this direction, when all was over.
    fn flows(&self) -> Vec<&FlowSample> {
        let role = if self.sends() { Role::Sender } else { Role::Receiver };
        let last = |end: &'_ End| end.samples.iter().rposition(|s| !s.flows.is_empty());
        let last = self.seen().and_then(|end| end.samples.get(last(end)?));
        last.map_or(Vec::new(), |s| s.flows.iter().filter(|flow| flow.role == role).collect())
    }

    fn is_tcp(&self) -> bool {
        self.record.plan.transport == Transport::Tcp
    }

    fn buffers(&self) -> String {
        let plan = &self.record.plan;
        let chunk = plan.chunk_bytes.0;
        let nbuf = match plan.length {
            Length::Bytes(bytes) => format!("nbuf={} ", bytes.0.div_ceil(chunk.max(1))),
            _ => String::new(),
        };
        let port = self.port().map_or(String::new(), |port| format!("port={port} "));
        let mode = if self.is_tcp() { "tcp" } else { "udp" };
        let host =
            self.host().filter(|_| self.sends()).map_or(String::new(), |h| format!(" host={h}"));
        format!("buflen={chunk} {nbuf}nstream={} {port}mode={mode}{host}", plan.flows)
    }

    /// The port that data came to: over UDP the receiver's, over TCP the far end's, because goodput connects.
    fn port(&self) -> Option<u16> {
        let connection = self.record.connections.first()?;
        let at_near = !self.is_tcp() && self.direction.sender == EndName::Far;
        Some(if at_near { connection.local.port() } else { connection.remote.port() })
    }

    /// The other end, as this end knows it.
    fn host(&self) -> Option<String> {
        let connection = self.record.connections.first()?;
        let address = match self.end {
            EndName::Near => connection.remote,
            EndName::Far => connection.local,
        };
        Some(address.ip().to_canonical().to_string())
    }

    fn time_limit(&self) -> Option<String> {
        match self.record.plan.length {
            Length::Seconds(seconds) if self.sends() => Some(format!("time_limit={seconds:.2}")),
            _ => None,
        }
    }

    fn rate_limit(&self) -> Option<String> {
        let mbps = self.record.plan.rate_bits_per_s.filter(|_| self.sends())?.0 / 1e6;
        // Goodput keeps the rate from one write to the next.
        Some(format!("rate_limit={mbps:.3} rate_unit=Mbps rate_mode=instantaneous"))
    }

    fn reporting(&self) -> Option<String> {
        let wanted = self.context.style.intervals == Intervals::All && !self.sends();
        wanted.then(|| format!("reporting_interval={:.2}", self.record.plan.interval_s))
    }

    fn connection(&self) -> Option<String> {
        let host = self.host().filter(|_| self.is_tcp())?;
        if self.end == EndName::Far {
            return Some(format!("accept={host}"));
        }
        let flows = self.flows();
        let tcp = flows.last().and_then(|flow| flow.tcp.value());
        let mss = tcp.and_then(|tcp| tcp.snd_mss_bytes);
        let rtt = tcp.and_then(|tcp| tcp.min_rtt_us.or(tcp.rtt_us));
        let mss = mss.map_or(String::new(), |mss| format!(" mss={mss}"));
        let rtt = rtt.map_or(String::new(), |us| format!(" rtt_ms={:.3}", us as f64 / 1e3));
        Some(format!("connect={host}{mss}{rtt}"))
    }

    fn windows(&self) -> Option<String> {
        let flows = self.flows();
        let memory = flows.last()?.memory.value()?;
        let (send, receive) = (memory.sndbuf_bytes, memory.rcvbuf_bytes);
        Some(format!("send_window_size={send} receive_window_size={receive}"))
    }

    fn perf(&self) -> Option<String> {
        let side = if self.sends() { &self.direction.sent } else { &self.direction.received };
        let (bytes, s) = (side.bytes? as f64, side.seconds.filter(|s| *s > 0.0)?);
        Some(format!(
            "megabytes={:.4} real_seconds={s:.2} rate_KBps={:.2} rate_Mbps={:.4}",
            bytes / f64::from(1 << 20),
            bytes / s / 1024.0,
            bytes / s / 125_000.0
        ))
    }

    fn retransmits(&self) -> Option<String> {
        let wanted = self.sends() && self.is_tcp();
        self.direction.sent.retransmits.filter(|_| wanted).map(|n| format!("retrans={n}"))
    }

    fn drops(&self) -> Option<String> {
        let side = &self.direction.received;
        let (drop, packets) = side.lost.zip(side.packets).filter(|_| !self.sends())?;
        let percent = side.lost_percent().unwrap_or(0.0);
        Some(format!("drop={drop} pkt={packets} data_loss={percent:.5}"))
    }

    fn calls(&self) -> Option<String> {
        let flows = self.flows();
        let calls = flows.iter().map(|flow| flow.calls.value().copied());
        let calls = calls.sum::<Option<u64>>().filter(|calls| *calls > 0)? as f64;
        let side = if self.sends() { &self.direction.sent } else { &self.direction.received };
        let s = side.seconds?;
        // nuttcp's milliseconds are 1024 to the second here (nuttcp-8.2.2.c, line 8814).
        let (each, per_s) = (1024.0 * s / calls, calls / s);
        Some(format!("io_calls={calls} msec_per_call={each:.2} calls_per_sec={per_s:.2}"))
    }

    /// Absent if this end's CPU time is unknown.
    fn cpu(&self) -> Option<String> {
        let end = self.seen()?;
        let grown = |name: &str| end.before.grown(&end.after, name).ok().map(|us| us as f64 / 1e6);
        let (user, system) = (grown("process.user_us")?, grown("process.system_us")?);
        let s = end.samples.last()?.at_s;
        let (percent, whole) = (((user + system) / s.max(1e-6) * 100.0) as u64, s as u64);
        let elapsed = format!("{}:{:02}", whole / 60, whole % 60);
        Some(format!(
            "stats=cpu user={user:.1} system={system:.1} elapsed={elapsed} cpu={percent}%"
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::{in_words, passed_on};

    #[test]
    fn a_receiver_s_words_are_passed_on_with_the_drops() {
        let text = "nuttcp-r: v6.1.2: socket\n\
                    nuttcp-r: megabytes=0.5967 real_seconds=1.00\n\
                    nuttcp-r: megabytes=0.5967 cpu_seconds=0.02 KB_per_cpu_second=29122.97\n\
                    nuttcp-r: io_calls=615\n";
        let drops = "drop=0 pkt=611 data_loss=0.00000";
        let lines = [
            "nuttcp-r: v6.1.2: socket",
            "nuttcp-r: megabytes=0.5967 real_seconds=1.00",
            "nuttcp-r: drop=0 pkt=611 data_loss=0.00000",
            "nuttcp-r: io_calls=615",
        ];
        assert_eq!(passed_on(text, Some(drops.into())), lines);
        assert_eq!(passed_on(text, None).len(), 3);
    }

    #[test]
    fn what_6_1_2_says_in_keys_becomes_what_it_says_in_words() {
        for (keys, words) in [
            ("v6.1.2: socket", "v6.1.2: socket"),
            (
                "buflen=65536 nbuf=64 nstream=2 port=5001 mode=tcp host=127.0.0.1",
                "buflen=65536, nbuf=64, nstream=2, port=5001 tcp -> 127.0.0.1",
            ),
            ("buflen=8192 nstream=1 port=5001 mode=udp", "buflen=8192, nstream=1, port=5001 udp"),
            ("time_limit=1.00", "time limit = 1.00 second"),
            (
                "rate_limit=5.000 rate_unit=Mbps rate_mode=aggregate pps_rate=76",
                "rate limit = 5.000 Mbps (aggregate), 76 pps",
            ),
            (
                "connect=127.0.0.1 mss=32741 rtt_ms=0.052",
                "connect to 127.0.0.1 with mss=32741, RTT=0.052 ms",
            ),
            (
                "send_window_avail=1969920 receive_window_avail=65536",
                "available send window = 1969920, available receive window = 65536",
            ),
            (
                "megabytes=4.0000 real_seconds=0.02 rate_KBps=186131.06 rate_Mbps=1524.7856",
                "4.0000 MB in 0.02 real seconds = 186131.06 KB/sec = 1524.7856 Mbps",
            ),
            ("drop=0 pkt=611 data_loss=0.00000", "0 / 611 drop/pkt 0.00% data loss"),
            ("drop=3 pkt=61 data_loss=4.91803", "3 / 61 drop/pkt 4.92% data loss"),
            ("drop=1 pkt=9000 data_loss=0.01111", "1 / 9000 drop/pkt 0.01111% data loss"),
            (
                "stats=cpu user=0.0 system=0.0 elapsed=0:00 cpu=0% memory=0i+0d-956maxrss \
                 io=0+15pf swaps=32+35csw",
                "0.0user 0.0sys 0:00real 0% 0i+0d 956maxrss 0+15pf 32+35csw",
            ),
        ] {
            assert_eq!(in_words(keys), words);
        }
    }
}
