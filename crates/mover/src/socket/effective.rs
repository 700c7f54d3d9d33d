//! What the kernel made of the options: read back, never assumed.

use std::fs;
use std::os::fd::AsFd;

use goodput_model::traffic_class::dscp;
use goodput_model::{Bytes, SocketOptions};
use socket2::{Domain, SockRef, Socket, Type};

use super::error::SocketError;

/// The values a socket really has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Effective {
    /// `SO_SNDBUF` as the kernel reports it: twice the requested value (socket(7)).
    pub sndbuf: u64,
    /// `SO_RCVBUF` as the kernel reports it: twice the requested value.
    pub rcvbuf: u64,
    /// `TCP_CONGESTION`; `None` if it is not a TCP socket.
    pub congestion: Option<String>,
    /// `TCP_MAXSEG`, bytes of payload in a segment, without options only before it is connected; `None` if it is not a
    /// TCP socket.
    pub mss: Option<u32>,
    /// `TCP_NOTSENT_LOWAT`, bytes; `None` if it is not a TCP socket.
    pub notsent_lowat: Option<u32>,
    /// `SO_BUSY_POLL`, microseconds; `None` if the kernel does not support it (CONFIG_NET_RX_BUSY_POLL).
    pub busy_poll_us: Option<u32>,
    /// `SO_PRIORITY`.
    pub priority: Option<u32>,
    /// Code point of its packets, of IPv6 if it is an IPv6 socket.
    pub dscp: Option<u8>,
}

/// Reads the values of `socket`.
pub fn effective(socket: impl AsFd) -> Result<Effective, SocketError> {
    let socket = SockRef::from(&socket);
    let error = || SocketError::of("read the options of", "a socket");
    let is_tcp = socket.r#type().map_err(error())? == Type::STREAM;
    Ok(Effective {
        sndbuf: socket.send_buffer_size().map_err(error())? as u64,
        rcvbuf: socket.recv_buffer_size().map_err(error())? as u64,
        congestion: congestion(&socket).filter(|_| is_tcp),
        mss: socket.tcp_mss().ok().filter(|_| is_tcp),
        notsent_lowat: socket.tcp_notsent_lowat().ok().filter(|_| is_tcp),
        busy_poll_us: super::get_number(socket.as_fd(), libc::SOL_SOCKET, libc::SO_BUSY_POLL),
        priority: socket.priority().ok(),
        dscp: code_point(&socket),
    })
}

fn code_point(socket: &Socket) -> Option<u8> {
    let class = match socket.domain().ok()? == Domain::IPV6 {
        true => socket.tclass_v6().ok()?,
        false => socket.tos_v4().ok()?,
    };
    u8::try_from(class).ok().map(dscp)
}

pub(super) fn congestion(socket: &Socket) -> Option<String> {
    let name = socket.tcp_congestion().ok()?;
    let end = name.iter().position(|byte| *byte == 0).unwrap_or(name.len());
    Some(String::from_utf8_lossy(&name[..end]).into_owned())
}

/// Compares the values of `socket` with the requested ones; returns each difference in words.
pub fn check_effective(socket: impl AsFd, asked: &SocketOptions) -> Vec<String> {
    match effective(socket) {
        Ok(has) => differences(&has, asked, limit),
        Err(error) => vec![error.to_string()],
    }
}

/// A limit of the kernel, if readable.
fn limit(sysctl: &str) -> Option<u64> {
    let path = format!("/proc/sys/{}", sysctl.replace('.', "/"));
    fs::read_to_string(path).ok()?.trim().parse().ok()
}

fn differences(
    has: &Effective,
    asked: &SocketOptions,
    limit: impl Fn(&str) -> Option<u64>,
) -> Vec<String> {
    let buffer = |name, asked: Option<Bytes>, has, sysctl| {
        asked.and_then(|asked| cut_buffer(name, asked.0, has, sysctl, limit(sysctl)))
    };
    let congestion = asked.congestion.as_ref().zip(has.congestion.as_ref());
    let mss = asked.mss_bytes.zip(has.mss);
    let found = [
        buffer("send", asked.sndbuf_bytes, has.sndbuf, "net.core.wmem_max"),
        buffer("receive", asked.rcvbuf_bytes, has.rcvbuf, "net.core.rmem_max"),
        congestion.filter(|(asked, has)| asked != has).map(|(asked, has)| {
            format!("congestion control {asked} was requested, but {has} is in use")
        }),
        mss.filter(|(asked, has)| has > asked).map(|(asked, has)| {
            format!("a segment size of {asked} bytes was requested, but {has} is in use")
        }),
    ];
    let numbers = numbers(has, asked).into_iter().filter_map(|(what, asked, has)| {
        let (asked, has) = asked.zip(has).filter(|(asked, has)| asked != has)?;
        Some(format!("{what} of {asked} was requested, but {has} is in effect"))
    });
    found.into_iter().flatten().chain(numbers).collect()
}

/// Values that the kernel accepts unchanged or refuses: a name, the requested and the actual value.
fn numbers(
    has: &Effective,
    asked: &SocketOptions,
) -> [(&'static str, Option<u64>, Option<u64>); 4] {
    let unsent = asked.notsent_lowat_bytes.map(|bytes| bytes.0);
    let number = |number: Option<u32>| number.map(u64::from);
    [
        ("a TCP_NOTSENT_LOWAT in bytes", unsent, number(has.notsent_lowat)),
        ("an SO_BUSY_POLL in us", number(asked.busy_poll_us), number(has.busy_poll_us)),
        ("an SO_PRIORITY", number(asked.priority), number(has.priority)),
        ("a code point", asked.dscp.map(u64::from), has.dscp.map(u64::from)),
    ]
}

/// Compares a `name` buffer of `asked` bytes with what the kernel `has`; reports a difference. The kernel cuts the
/// requested size to its limit, then doubles it, and has a minimum size (socket(7)). `limit` is the value of `sysctl`,
/// if known.
pub fn cut_buffer(
    name: &str,
    asked: u64,
    has: u64,
    sysctl: &str,
    limit: Option<u64>,
) -> Option<String> {
    if has == asked.saturating_mul(2) {
        return None;
    }
    let got = has / 2;
    let why = match limit {
        Some(limit) if asked > limit => format!("limited by {sysctl} = {limit}"),
        _ if got > asked => "the kernel's minimum".into(),
        _ => "the kernel's choice".into(),
    };
    Some(format!("a {name} buffer of {asked} bytes was requested, but {got} are in effect ({why})"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn has(sndbuf: u64) -> Effective {
        Effective {
            sndbuf,
            rcvbuf: 131_072,
            congestion: Some("bbr".into()),
            mss: Some(1448),
            notsent_lowat: Some(u32::MAX),
            busy_poll_us: Some(0),
            priority: Some(0),
            dscp: Some(0),
        }
    }

    #[test]
    fn a_number_that_the_kernel_did_not_keep_is_named() {
        let asked = SocketOptions {
            priority: Some(6),
            busy_poll_us: Some(0),
            notsent_lowat_bytes: Some(Bytes(16384)),
            ..SocketOptions::default()
        };
        let found = differences(&has(1), &asked, |_| None).join("; ");
        assert!(found.contains("an SO_PRIORITY of 6 was requested, but 0 is in effect"), "{found}");
        assert!(found.contains("TCP_NOTSENT_LOWAT in bytes of 16384"), "{found}");
        assert!(!found.contains("SO_BUSY_POLL"), "{found}");
    }

    #[test]
    fn what_the_kernel_kept_is_no_difference() {
        let asked = SocketOptions {
            sndbuf_bytes: Some(Bytes(65536)),
            congestion: Some("bbr".into()),
            mss_bytes: Some(1460),
            ..SocketOptions::default()
        };
        assert_eq!(differences(&has(131_072), &asked, |_| Some(212_992)), [""; 0]);
    }

    #[test]
    fn what_the_kernel_cut_is_reported_with_its_limit() {
        let asked = SocketOptions {
            sndbuf_bytes: Some(Bytes(64 << 20)),
            congestion: Some("cubic".into()),
            ..SocketOptions::default()
        };
        let found = differences(&has(16_777_216), &asked, |_| Some(8_388_608));
        assert_eq!(
            found,
            [
                "a send buffer of 67108864 bytes was requested, but 8388608 are in effect \
                 (limited by net.core.wmem_max = 8388608)",
                "congestion control cubic was requested, but bbr is in use"
            ]
        );
    }
}
