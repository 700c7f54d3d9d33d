//! The line of parameters: names and numbers, which a client writes and a server reads.
//!
//! nuttcp's own servers read the first thirteen by position and search the others by name; this
//! reader searches all by name. A key belongs to the version that introduced it: a server
//! dereferences a null pointer if keys of the announced version are missing (lines 4206 ff.).

use std::fmt::Write;

use goodput_model::traffic_class::dscp;

use super::version::Version;

/// The beginning of the line.
pub const BEGINS: &[u8] = b"buflen = ";

/// `nbuf` without a limit (`INT_MAX`).
pub const NO_LIMIT: u64 = 0x7fff_ffff;

/// `rate` without a limit (`MAXRATE`, line 822).
pub const NO_RATE: u64 = 0xffff_ffff;

/// Bits of `format` (lines 876 to 906) that this end supports.
pub mod format {
    /// A receiver's interval lines also have the bytes sent (UDP).
    pub const TRANSMITTED: u32 = 0x1;
    /// Interval lines include the running total.
    pub const RUNNING_TOTAL: u32 = 0x4;
    /// Lines have the layout `key=value`.
    pub const PARSE: u32 = 0x40;
    /// Bits that change the columns of a client's lines: with the bytes sent, with totals, without
    /// drops, loss, retransmissions and window.
    pub const COLUMNS: u32 = TRANSMITTED | RUNNING_TOTAL | 0x8 | 0x10 | 0x100 | 0x2000;
    /// The default: report the round-trip time.
    pub const WANT_RTT: u32 = 0x800;
}

/// A value that was not requested.
const NULL: &str = "_NULL_";

/// A client's request.
#[derive(Debug, Clone, PartialEq)]
pub struct Parameters {
    /// Bytes of one write or datagram.
    pub buflen: u64,
    /// Writes over all streams; [`NO_LIMIT`] for none.
    pub nbuf: u64,
    /// Socket buffer of the server, bytes; 0 leaves it to the system.
    pub win: u64,
    /// Streams, each on a port of its own.
    pub nstream: u64,
    /// Kilobits per second over all streams; 0 or [`NO_RATE`] for none.
    pub rate: u64,
    /// Port of the first stream.
    pub port: u64,
    /// Whether the client sends.
    pub client_sends: bool,
    /// Whether `win` is for both buffers.
    pub braindead: bool,
    /// Seconds that the sender sends; 0 for no limit.
    pub timeout_s: f64,
    /// Datagrams rather than streams.
    pub udp: bool,
    /// The version whose keys are in the line.
    pub version: Version,
    /// Seconds between interval lines; 0 for none.
    pub interval_s: f64,
    /// Whether the receiver connects to the sender (`-F`).
    pub reverse: bool,
    /// The format of lines, and more; see [`mod@format`].
    pub format: u64,
    /// Whether only the route is requested.
    pub traceroute: bool,
    /// Whether the rate holds between any two writes.
    pub irate: bool,
    /// The other server whose client this server must become, if any.
    pub third_party: Option<ThirdParty>,
    /// Time to live of multicast datagrams; 0 for unicast.
    pub multicast: u64,
    /// `TCP_MAXSEG` of the sender; 0 leaves it to the system.
    pub datamss: u64,
    /// The IP header's byte whose upper six bits are the code point.
    pub tos: u64,
    /// Whether `nbuf` counts bytes; only a test with a third party distinguishes this.
    pub nbuf_bytes: bool,
    /// Whether `rate` counts packets per second; only a test with a third party distinguishes this.
    pub rate_pps: bool,
    /// `TCP_NODELAY` of the sender.
    pub nodelay: bool,
    /// CPU on which the server must run.
    pub affinity: Option<u64>,
    /// Packets that the sender may send at once.
    pub maxburst: u64,
    /// Which measures of jitter are requested.
    pub do_jitter: u64,
    /// Which measures of one-way delay are requested.
    pub do_owd: u64,
    /// Distance between the addresses of the streams.
    pub stride: u64,
    /// Whether each stream goes to a different address of the client.
    pub multilink: bool,
    /// Source port that the connecting side must use; 0 for any.
    pub srcport: u64,
    /// Whether a TCP sender starts slowly.
    pub iratesss: bool,
}

/// Another server, and the requested form of its result (lines 3920 to 3960).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ThirdParty {
    /// Its name or address.
    pub host: String,
    /// Port of its control connection, if not the usual one.
    pub port: Option<u64>,
    /// The IP version to reach it by, 4 or 6, if requested.
    pub family: Option<u64>,
    /// Whether the lines of `-v` are requested.
    pub verbose: bool,
}

impl Parameters {
    /// The values if a client sends none.
    pub fn standard(version: Version) -> Self {
        Self {
            buflen: 65_536,
            nbuf: NO_LIMIT,
            win: 0,
            nstream: 1,
            rate: NO_RATE,
            port: 0,
            client_sends: true,
            braindead: false,
            timeout_s: 0.0,
            udp: false,
            version,
            interval_s: 0.0,
            reverse: false,
            format: u64::from(format::WANT_RTT),
            traceroute: false,
            irate: false,
            third_party: None,
            multicast: 0,
            datamss: 0,
            tos: 0,
            nbuf_bytes: false,
            rate_pps: false,
            nodelay: false,
            affinity: None,
            maxburst: 1,
            do_jitter: 0,
            do_owd: 0,
            stride: 0,
            multilink: false,
            srcport: 0,
            iratesss: false,
        }
    }

    /// Reads a line; keys may come in any order and be missing. An error is a phrase for the
    /// client, in nuttcp's words if it has them.
    pub fn read(line: &str) -> Result<Self, String> {
        let scan = Scan(line);
        let begins = std::str::from_utf8(BEGINS).unwrap_or_default();
        let version = scan.text("vers").map_or(Some(Version::new(6, 1, 2)), Version::read);
        let (true, true, true, Some(version)) =
            (line.starts_with(begins), scan.has("port"), scan.has("trans"), version)
        else {
            return Err("error scanning parameters".into());
        };
        let usual = Self::standard(version);
        Ok(Self {
            buflen: scan.number("buflen", usual.buflen)?,
            nbuf: scan.number("nbuf", usual.nbuf)?,
            win: scan.number("win", 0)?,
            nstream: scan.number("nstream", usual.nstream)?,
            rate: scan.number("rate", usual.rate)?,
            port: scan.number("port", 0)?,
            client_sends: scan.flag("trans")?,
            braindead: scan.flag("braindead")?,
            timeout_s: scan.seconds("timeout")?,
            udp: scan.flag("udp")?,
            version,
            interval_s: scan.seconds("interval")?,
            reverse: scan.flag("reverse")?,
            format: scan.number("format", 0)?,
            traceroute: scan.flag("traceroute")?,
            irate: scan.flag("irate")?,
            third_party: scan.third_party()?,
            multicast: scan.number("multicast", 0)?,
            datamss: scan.number("datamss", 0)?,
            tos: scan.hexadecimal("tos")?,
            nbuf_bytes: scan.flag("nbuf_bytes")?,
            rate_pps: scan.flag("rate_pps")?,
            nodelay: scan.flag("nodelay")?,
            affinity: scan.number_unless("affinity", "-1")?,
            maxburst: scan.number("maxburst", usual.maxburst)?,
            do_jitter: scan.number("do_jitter", 0)?,
            do_owd: scan.number("do_owd", 0)?,
            stride: scan.number("stride", 0)?,
            multilink: scan.flag("multilink")?,
            srcport: scan.number("srcport", 0)?,
            iratesss: scan.flag("iratesss")?,
        })
    }

    /// Whether the server connects, and the client listens: a sender connects, unless reversed.
    /// Over UDP the sender begins.
    pub fn connects(&self) -> bool {
        self.client_sends == self.reverse
    }

    /// The code point of the packets, if a type of service is asked for.
    pub fn dscp(&self) -> Result<Option<u8>, String> {
        let class = u8::try_from(self.tos).map_err(|_| "invalid tos")?;
        Ok((class > 0).then(|| dscp(class)))
    }

    /// The line, with exactly the keys of its version (lines 3666 to 4110). Requests that our
    /// client never makes are written as not requested.
    pub fn write(&self) -> String {
        let mut line = format!(
            "buflen = {}, nbuf = {}, win = {}, nstream = {}, rate = {}, port = {}, trans = {}, \
             braindead = {}, timeout = {:.6}, udp = {}, vers = {}, interval = {:.6}, reverse = {}, \
             format = {}, traceroute = 0, irate = {}, thirdparty = {NULL} , multicast = 0",
            self.buflen,
            self.nbuf,
            self.win,
            self.nstream,
            self.rate,
            self.port,
            u8::from(self.client_sends),
            u8::from(self.braindead),
            self.timeout_s,
            u8::from(self.udp),
            self.version,
            self.interval_s,
            u8::from(self.reverse),
            self.format,
            u8::from(self.irate),
        );
        self.write_later(&mut line);
        line.push('\n');
        line
    }

    /// The keys that 6.1.2 does not have, in order. Writing to a string can't fail.
    fn write_later(&self, line: &mut String) {
        let has = |major, minor, delta| self.version >= Version::new(major, minor, delta);
        if has(6, 2, 1) {
            line.push_str(" , ssm = 0");
        }
        let (mss, tos, nodelay) = (self.datamss, self.tos, u8::from(self.nodelay));
        let _ = write!(line, " , datamss = {mss} , tos = {tos:X}");
        let _ = write!(line, " , nbuf_bytes = 0 , rate_pps = 0 , nodelay = {nodelay}");
        let later = [
            (has(6, 2, 6), " , affinity = -1"),
            (has(6, 2, 7), " , maxburst = 1"),
            (has(7, 0, 1), " , do_jitter = 0 , do_owd = 0"),
            (has(7, 1, 1), " , stride = 0 , multilink = 0"),
            (has(7, 2, 1), ", group = _NULL_"),
            (has(7, 3, 1), " , srcport = 0"),
            (has(8, 1, 1), " , iratesss = 0"),
        ];
        later.iter().filter(|(has, _)| *has).for_each(|(_, keys)| line.push_str(keys));
    }

    /// Whether lines have the layout `key=value`.
    pub fn parse(&self) -> bool {
        self.format & u64::from(format::PARSE) != 0
    }
}

/// A line whose items are searched by name; if a name is repeated, the first counts.
struct Scan<'a>(&'a str);

impl<'a> Scan<'a> {
    fn text(&self, name: &str) -> Option<&'a str> {
        let items = self.0.split(',').filter_map(|item| item.split_once('='));
        items
            .map(|(key, value)| (key.trim(), value.trim()))
            .find(|(key, _)| *key == name)
            .map(|i| i.1)
    }

    fn has(&self, name: &str) -> bool {
        self.text(name).is_some()
    }

    fn read<T>(&self, name: &str, usual: T, of: impl Fn(&str) -> Option<T>) -> Result<T, String> {
        match self.text(name) {
            None => Ok(usual),
            Some(text) => of(text).ok_or_else(|| format!("invalid {name}")),
        }
    }

    fn number(&self, name: &str, usual: u64) -> Result<u64, String> {
        self.read(name, usual, |text| text.parse().ok())
    }

    fn number_unless(&self, name: &str, none: &str) -> Result<Option<u64>, String> {
        self.read(
            name,
            None,
            |text| if text == none { Some(None) } else { text.parse().ok().map(Some) },
        )
    }

    /// `brief3` is 1 by default, and more for columns of single streams.
    fn third_party(&self) -> Result<Option<ThirdParty>, String> {
        let Some(host) = self.text("thirdparty").filter(|host| *host != NULL) else {
            return Ok(None);
        };
        let port = self.number_unless("ctlport3", "0")?;
        let family = self.number_unless("af3", "0")?;
        let verbose = self.text("brief3").is_some_and(|brief| brief.starts_with(['0', '-']));
        Ok(Some(ThirdParty { host: host.into(), port, family, verbose }))
    }

    fn hexadecimal(&self, name: &str) -> Result<u64, String> {
        self.read(name, 0, |text| u64::from_str_radix(text, 16).ok())
    }

    fn flag(&self, name: &str) -> Result<bool, String> {
        self.number(name, 0).map(|number| number != 0)
    }

    fn seconds(&self, name: &str) -> Result<f64, String> {
        let seconds = |text: &str| text.parse().ok().filter(|s: &f64| s.is_finite() && *s >= 0.0);
        self.read(name, 0.0, seconds)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// From a client of Debian's 6.1.2: `nuttcp -n4 -l1024`.
    const LINE_6_1_2: &str = "buflen = 1024, nbuf = 4, win = 0, nstream = 1, rate = 4294967295, \
        port = 5001, trans = 1, braindead = 0, timeout = 0.000000, udp = 0, vers = 6.1.2, \
        interval = 0.000000, reverse = 0, format = 2048, traceroute = 0, irate = 0, \
        thirdparty = _NULL_ , multicast = 0 , datamss = 0 , tos = 0 , nbuf_bytes = 0 , \
        rate_pps = 0 , nodelay = 0";

    fn simple(version: Version) -> Parameters {
        Parameters { buflen: 1024, nbuf: 4, port: 5001, ..Parameters::standard(version) }
    }

    #[test]
    fn the_line_of_6_1_2_is_read_and_written_byte_by_byte() {
        let asked = simple(Version::new(6, 1, 2));
        assert_eq!(Parameters::read(LINE_6_1_2), Ok(asked.clone()));
        assert_eq!(asked.write(), format!("{LINE_6_1_2}\n"));
    }

    #[test]
    fn a_newer_version_has_its_keys_and_no_others() {
        let line = simple(Version::new(8, 2, 2)).write();
        let later = " , nodelay = 0 , affinity = -1 , maxburst = 1 , do_jitter = 0 , do_owd = 0 \
                     , stride = 0 , multilink = 0, group = _NULL_ , srcport = 0 , iratesss = 0\n";
        assert!(line.ends_with(later), "{line}");
        assert!(line.contains(" , multicast = 0 , ssm = 0 , datamss = 0"), "{line}");
        let between = simple(Version::new(6, 2, 7)).write();
        assert!(between.ends_with(" , affinity = -1 , maxburst = 1\n"), "{between}");
    }

    #[test]
    fn keys_are_found_in_any_order_and_may_be_missing() {
        let read =
            Parameters::read("buflen = 9, trans = 0, udp = 1, port = 7000, tos = B8").unwrap();
        assert_eq!((read.buflen, read.port, read.client_sends, read.udp), (9, 7000, false, true));
        assert_eq!((read.tos, read.nstream, read.nbuf, read.affinity), (0xb8, 1, NO_LIMIT, None));
    }

    #[test]
    fn what_is_no_line_of_parameters_is_refused_and_so_is_each_bad_number() {
        for line in ["GET / HTTP/1.1", "", "buflen = 1", "port = 1, trans = 1", "buflen = , , ="] {
            let why = Parameters::read(line).unwrap_err();
            assert_eq!(why, "error scanning parameters", "{line}");
        }
        for (from, to, name) in [
            ("nbuf = 4", "nbuf = -4", "nbuf"),
            ("nstream = 1", "nstream = 99999999999999999999", "nstream"),
            ("timeout = 0.000000", "timeout = -1.0", "timeout"),
            ("timeout = 0.000000", "timeout = inf", "timeout"),
            ("interval = 0.000000", "interval = NaN", "interval"),
            ("tos = 0", "tos = -B8", "tos"),
        ] {
            let why = Parameters::read(&LINE_6_1_2.replacen(from, to, 1)).unwrap_err();
            assert_eq!(why, format!("invalid {name}"));
        }
    }

    proptest! {
        #[test]
        fn any_line_is_read_or_refused(line in "(buflen = [0-9]{1,9}, port = 1, trans = 1)?.{0,300}") {
            let _ = Parameters::read(&line);
        }

        #[test]
        fn what_is_written_is_read_again(
            buflen in 1u64..1 << 31, nbuf in 1u64..1 << 31, port in 1024u64..65536,
            client_sends: bool, udp: bool, reverse: bool, timeout in 0u32..100_000, tos in 0u64..256,
            newer: bool,
        ) {
            let version = if newer { Version::new(8, 2, 2) } else { Version::new(6, 1, 2) };
            let asked = Parameters {
                buflen, nbuf, port, client_sends, udp, reverse, tos,
                timeout_s: f64::from(timeout) / 10.0,
                ..Parameters::standard(version)
            };
            prop_assert_eq!(Parameters::read(asked.write().trim_end()), Ok(asked));
        }
    }
}
