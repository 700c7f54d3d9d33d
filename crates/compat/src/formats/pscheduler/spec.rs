//! What was tested: `test`, with the specification of `SPEC_SCHEMA`. The source sends and the destination receives,
//! whichever of them is this host.

use std::net::IpAddr;

use goodput_engine::Target;
use goodput_model::{EndName, Family, Length, Record, Transport};
use serde::Serialize;

/// A name or an address that pScheduler takes for a host.
pub type Host = String;

/// The congestion controls that the schemas before 4 know.
const FIRST_CONGESTION: [&str; 8] =
    ["reno", "cubic", "bic", "htcp", "vegas", "westwood", "yeah", "bbr"];

/// `test`.
#[derive(Debug, Serialize)]
pub struct Test {
    r#type: &'static str,
    spec: Spec,
}

macro_rules! spec {
    ($($(#[doc = $doc:literal])* $name:ident: $kind:ty,)*) => {
        /// `spec`. What the user left to goodput is absent.
        #[derive(Debug, Default, Serialize)]
        #[serde(rename_all = "kebab-case")]
        struct Spec {
            /// The first version of the schema that has all of these keys.
            schema: u8,
            $($(#[doc = $doc])* #[serde(skip_serializing_if = "Option::is_none")] $name: Option<$kind>,)*
        }
    };
}

spec! {
    /// The host that sends.
    source: Host,
    /// The host that receives.
    dest: Host,
    /// Length of the test, without what is omitted.
    duration: String,
    /// Length of an interval.
    interval: String,
    /// Streams.
    parallel: u16,
    /// Whether the payload is datagrams; absent for TCP.
    udp: bool,
    /// Rate of each stream, bits per second: pScheduler's tool for iperf3 passes it to `-b`, which is of one stream.
    bandwidth: u64,
    /// Rate to which the kernel limits a stream, bits per second.
    fq_rate: u64,
    /// Size of the socket's buffers, bytes.
    window_size: u64,
    /// Size of segments, bytes.
    mss: u32,
    /// Size of a write or a datagram, bytes.
    buffer_length: u64,
    /// The byte with the code point.
    ip_tos: u8,
    /// 4 or 6.
    ip_version: u8,
    /// Address to which this host binds.
    local_address: IpAddr,
    /// Time at the beginning that the summary leaves out.
    omit: String,
    /// Whether small segments are sent at once.
    no_delay: bool,
    /// Congestion control.
    congestion: String,
}

/// What was tested of what `sender` sent.
pub fn of(record: &Record, sender: EndName) -> Test {
    let plan = &record.plan;
    let socket = &plan.socket;
    let rate = |rate: goodput_model::BitRate| Some(rate.0 as u64).filter(|bits| *bits > 0);
    let spec = Spec {
        schema: 1,
        source: host(record, sender),
        dest: host(record, sender.other()),
        duration: match plan.length {
            Length::Seconds(seconds) => Some(duration(seconds)),
            Length::Auto { .. } | Length::Bytes(_) | Length::Source => None,
        },
        interval: Some(duration(plan.interval_s)),
        parallel: Some(plan.flows),
        udp: (plan.transport == Transport::Udp).then_some(true),
        bandwidth: plan.rate_per_flow().and_then(rate),
        fq_rate: socket.max_pacing_bits_per_s.and_then(rate),
        window_size: socket.sndbuf_bytes.or(socket.rcvbuf_bytes).map(|size| size.0),
        mss: socket.mss_bytes,
        buffer_length: Some(plan.chunk_bytes.0),
        ip_tos: socket.dscp.map(|dscp| dscp << 2),
        ip_version: ip_version(record),
        // The key is about the sender.
        local_address: socket.bind.filter(|_| sender == EndName::Near),
        omit: (plan.omit_s > 0.0).then(|| duration(plan.omit_s)),
        no_delay: socket.nodelay.then_some(true),
        congestion: socket.congestion.clone(),
    };
    Test { r#type: "throughput", spec: Spec { schema: first_schema(&spec), ..spec } }
}

fn first_schema(spec: &Spec) -> u8 {
    let later = |name: &String| !FIRST_CONGESTION.contains(&name.as_str());
    match spec {
        Spec { fq_rate: Some(_), .. } => 7,
        Spec { congestion: Some(name), .. } if later(name) => 4,
        _ => 1,
    }
}

/// The IP version of the flows, or the one that was asked for.
fn ip_version(record: &Record) -> Option<u8> {
    let used = record.connections.first().map(|connection| {
        let v4 = connection.remote.ip().to_canonical().is_ipv4();
        if v4 { Family::V4 } else { Family::V6 }
    });
    used.or(record.plan.socket.family).map(|family| match family {
        Family::V4 => 4,
        Family::V6 => 6,
    })
}

/// This host by the address of its flows, or else its name; the far host as the user named it, or else by its address.
pub fn host(record: &Record, end: EndName) -> Option<Host> {
    let connection = record.connections.first();
    match end {
        EndName::Near => {
            let address = connection.map(|flow| flow.local.ip().to_canonical().to_string());
            address.or_else(|| Some(record.ends.near.value()?.host.name.clone())).filter(is_host)
        }
        EndName::Far => {
            let typed = record.target.parse::<Target>().ok().map(|target| target.host);
            let address = || connection.map(|flow| flow.remote.ip().to_canonical().to_string());
            typed.filter(is_host).or_else(address)
        }
    }
}

/// Whether pScheduler takes this for a host (python-pscheduler/pscheduler/pscheduler/jsonval.py, `Host`).
fn is_host(text: &Host) -> bool {
    let label = |(at, label): (usize, &str)| {
        let first = label
            .bytes()
            .next()
            .is_some_and(|first| first.is_ascii_alphanumeric() || at == 0 && first == b'_');
        let rest = label.bytes().skip(1).all(|c| c.is_ascii_alphanumeric() || c == b'-');
        first && rest && label.len() <= 63
    };
    let name = text.strip_suffix('.').unwrap_or(text);
    text.parse::<IpAddr>().is_ok() || text.len() <= 255 && name.split('.').enumerate().all(label)
}

/// Seconds as ISO 8601 has a duration, in the decimal form that pScheduler reads: to the millisecond, and not 0 if there is
/// some time. Times of clocks have noise beyond that.
pub fn duration(seconds: f64) -> String {
    let milliseconds = (seconds * 1000.0).round();
    let least = if seconds > 0.0 { 1.0 } else { 0.0 };
    format!("PT{}S", milliseconds.max(least) / 1000.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_pscheduler_takes_for_a_host_is_one() {
        for host in ["nas", "_ps.example.net.", "a-1.b", "192.0.2.7", "2001:db8::7"] {
            assert!(is_host(&host.into()), "{host}");
        }
        let long = "a".repeat(64);
        for other in ["", ".", "a..b", "-a", "a._b", "fe80::1%eth0", "a b", "a/b", &long] {
            assert!(!is_host(&other.into()), "{other}");
        }
    }

    #[test]
    fn a_duration_has_milliseconds_at_most_and_never_an_exponent() {
        let written = [10.0, 10.000_000_002, 9.999_999_9, 2.345_678, 1e-7, 0.0, 86_400.1];
        assert_eq!(
            written.map(duration),
            ["PT10S", "PT10S", "PT10S", "PT2.346S", "PT0.001S", "PT0S", "PT86400.1S"]
        );
    }
}
