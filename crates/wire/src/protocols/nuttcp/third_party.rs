//! A third party (`nuttcp A B`): the client asks this server to measure with another server on its
//! behalf. This end becomes a client, and sends back its output as lines, up to `DONE`
//! (nuttcp-6.1.2.c, lines 3782 to 3990: the real server starts itself as a client there).

use goodput_model::{BitRate, Bytes, Direction, Family, Length, Plan, SocketOptions, Transport};

use super::PROTOCOL;
use super::parameters::{NO_LIMIT, NO_RATE, Parameters, ThirdParty, format};
use super::plan::{makes_sense, refuse};
use crate::check;
use crate::session::{Limits, ThirdPartyTest, Words};

/// Bytes of a datagram if the client leaves the choice to this end: the largest power of two that
/// fits the segments of a usual network, as in the real client (line 2299).
const UDP_BUFLEN: u64 = 1024;

/// Seconds if the client sends neither time nor bytes (`DEFAULT_TIMEOUT`).
const TIMEOUT_S: f64 = 10.0;

/// Default first data ports of clients; these leave the choice to this end.
const USUAL_DATA_PORTS: [u64; 2] = [5001, 5101];

/// The test that `asked` requests with the other server, or why it is refused.
pub fn third_party_test(
    asked: &Parameters,
    other: &ThirdParty,
    limits: &Limits,
) -> Result<ThirdPartyTest, String> {
    refuse(&[
        (asked.reverse, "this end and the third party agree on who connects; leave out -F"),
        (asked.maxburst > 1, "bursts of more than one packet are not sent here"),
        (asked.iratesss, "a smoothed slow start is not sent here"),
        (asked.srcport > 0, "a source port can't be chosen here"),
        (asked.affinity.is_some(), "a CPU can't be chosen here"),
        (asked.format & u64::from(format::COLUMNS) != 0, "other columns are not printed here"),
        (
            asked.nbuf != NO_LIMIT && asked.timeout_s > 0.0,
            "either bytes or time end a test here, not both",
        ),
    ])?;
    makes_sense(asked)?;
    let plan = plan(asked, other, limits)?;
    check::sense(&plan)?;
    check::within(&plan, limits)?;
    let port = other.port.map_or(Ok(PROTOCOL.port), u16::try_from);
    Ok(ThirdPartyTest {
        host: other.host.clone(),
        port: port.map_err(|_| "invalid ctlport")?,
        plan,
        words: Words {
            key_values: asked.parse(),
            intervals: asked.interval_s > 0.0,
            verbose: other.verbose,
        },
    })
}

fn plan(asked: &Parameters, other: &ThirdParty, limits: &Limits) -> Result<Plan, String> {
    let transport = if asked.udp { Transport::Udp } else { Transport::Tcp };
    let chunk = match (asked.buflen, transport) {
        (0, Transport::Tcp) => Parameters::standard(asked.version).buflen,
        (0, Transport::Udp) => UDP_BUFLEN,
        (own, _) => own,
    };
    let data_port = Some(asked.port).filter(|port| !USUAL_DATA_PORTS.contains(port));
    Ok(Plan {
        transport,
        direction: if asked.client_sends { Direction::Send } else { Direction::Reverse },
        flows: u16::try_from(asked.nstream).map_err(|_| "invalid nstream")?,
        length: length(asked, chunk)?,
        interval_s: if asked.interval_s > 0.0 { asked.interval_s } else { 1.0 },
        chunk_bytes: Bytes(chunk),
        rate_bits_per_s: rate(asked, chunk).or(limits.rate_bits_per_s).map(BitRate),
        data_port: data_port.map(u16::try_from).transpose().map_err(|_| "invalid port")?,
        socket: socket(asked, other)?,
        ..Plan::standard()
    })
}

fn length(asked: &Parameters, chunk: u64) -> Result<Length, String> {
    let bytes = if asked.nbuf_bytes { Some(asked.nbuf) } else { asked.nbuf.checked_mul(chunk) };
    Ok(match asked.timeout_s {
        _ if asked.nbuf != NO_LIMIT => Length::Bytes(Bytes(bytes.ok_or("invalid nbuf")?)),
        0.0 => Length::Seconds(TIMEOUT_S),
        seconds => Length::Seconds(seconds),
    })
}

/// Bits per second over all streams, if there is a limit.
fn rate(asked: &Parameters, chunk: u64) -> Option<f64> {
    let unit_bits = if asked.rate_pps { chunk as f64 * 8.0 } else { 1000.0 };
    (!matches!(asked.rate, 0 | NO_RATE..)).then_some(asked.rate as f64 * unit_bits)
}

/// Both ends get the window, as if the real server were a client.
fn socket(asked: &Parameters, other: &ThirdParty) -> Result<SocketOptions, String> {
    let window = (asked.win > 0).then_some(Bytes(asked.win));
    let mss = (asked.datamss > 0 && !asked.udp).then_some(asked.datamss);
    let family = match other.family {
        None => None,
        Some(4) => Some(Family::V4),
        Some(6) => Some(Family::V6),
        Some(_) => return Err("invalid address family".into()),
    };
    Ok(SocketOptions {
        sndbuf_bytes: window,
        rcvbuf_bytes: window,
        mss_bytes: mss.map(u32::try_from).transpose().map_err(|_| "invalid datamss")?,
        nodelay: asked.nodelay,
        dscp: asked.dscp()?,
        family,
        ..SocketOptions::default()
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pair::limits;

    /// Of Debian's 6.1.2, `nuttcp -T2 A 192.0.2.9`.
    const LINE: &str = "buflen = 0, nbuf = 2147483647, win = 0, nstream = 1, rate = 4294967295, \
        port = 5001, trans = 1, braindead = 0, timeout = 2.000000, udp = 0, vers = 6.1.2, \
        interval = 0.000000, reverse = 0, format = 2048, traceroute = 0, irate = 0, \
        thirdparty = 192.0.2.9 , brief3 = 1 , multicast = 0 , datamss = 0 , tos = 0 , \
        nbuf_bytes = 0 , rate_pps = 0 , nodelay = 0";

    fn asked(changes: &[(&str, &str)]) -> Result<ThirdPartyTest, String> {
        let line = changes.iter().fold(LINE.to_string(), |line, (from, to)| {
            assert!(line.contains(from), "{from}");
            line.replace(from, to)
        });
        let asked = Parameters::read(&line).unwrap();
        third_party_test(&asked, asked.third_party.as_ref().unwrap(), &limits())
    }

    #[test]
    fn the_usual_test_sends_to_the_other_server() {
        let test = asked(&[]).unwrap();
        assert_eq!((test.host.as_str(), test.port), ("192.0.2.9", 5000));
        assert_eq!(test.words, Words { key_values: false, intervals: false, verbose: false });
        let usual =
            Plan { length: Length::Seconds(2.0), chunk_bytes: Bytes(65_536), ..Plan::standard() };
        assert_eq!(test.plan, usual);
    }

    #[test]
    fn options_are_those_of_a_client() {
        let test = asked(&[
            ("trans = 1", "trans = 0"),
            ("win = 0", "win = 9000"),
            ("brief3 = 1", "brief3 = 0 , ctlport3 = 5006"),
            ("format = 2048", "format = 2112"),
            ("interval = 0.0", "interval = 0.5"),
            ("nodelay = 0", "nodelay = 1, af3 = 6"),
        ])
        .unwrap();
        let ThirdPartyTest { port, plan, words, .. } = test;
        assert_eq!((port, plan.direction), (5006, Direction::Reverse));
        assert_eq!(words, Words { key_values: true, intervals: true, verbose: true });
        assert_eq!(plan.socket.sndbuf_bytes, plan.socket.rcvbuf_bytes);
        assert_eq!((plan.socket.nodelay, plan.socket.family), (true, Some(Family::V6)));
    }

    #[test]
    fn packets_per_second_and_bytes_are_counted_with_the_buffer() {
        let test = asked(&[
            ("udp = 0", "udp = 1"),
            ("rate = 4294967295", "rate = 100"),
            ("rate_pps = 0", "rate_pps = 1"),
            ("nbuf = 2147483647", "nbuf = 5000"),
            ("nbuf_bytes = 0", "nbuf_bytes = 1"),
            ("timeout = 2.0", "timeout = 0.0"),
        ])
        .unwrap();
        assert_eq!(test.plan.rate_bits_per_s, Some(BitRate(819_200.0)));
        assert_eq!(test.plan.length, Length::Bytes(Bytes(5000)));
    }

    #[test]
    fn what_is_not_done_is_refused_in_words() {
        for (from, to, words) in [
            ("reverse = 0", "reverse = 1", "leave out -F"),
            ("traceroute = 0", "traceroute = 1", "traceroute"),
            ("format = 2048", "format = 2052", "columns"),
            ("timeout = 2.0", "timeout = 999999.0", "a duration of"),
            ("nstream = 1", "nstream = 100000000", "invalid nstream"),
            ("nbuf = 2147483647", "nbuf = 18446744073709551615", "not both"),
            ("nodelay = 0", "nodelay = 0, af3 = 5", "address family"),
            ("brief3 = 1", "brief3 = 1 , ctlport3 = 70000", "invalid ctlport"),
        ] {
            let why = asked(&[(from, to)]).unwrap_err();
            assert!(why.contains(words), "{to}: {why}");
        }
    }
}
