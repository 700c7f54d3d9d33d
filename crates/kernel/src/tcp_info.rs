//! Reading `struct tcp_info` by the length that the kernel returns.

use std::os::fd::{AsRawFd, BorrowedFd};

use goodput_model::{Known, Missing, TcpInfo};

/// More room than any kernel needs so far (6.18: 280 bytes).
const ROOM_BYTES: usize = 512;

/// Calls `$each!` with every plain field: name, offset, width, and the length at which the kernel's structure first
/// included it (include/uapi/linux/tcp.h; the same lengths as in the model).
macro_rules! fields {
    ($each:ident) => {
        $each! {
            state 0 1 104, ca_state 1 1 104, options 5 1 104,
            rto_us 8 4 104, snd_mss_bytes 16 4 104, rcv_mss_bytes 20 4 104,
            unacked_segments 24 4 104, sacked_segments 28 4 104, lost_segments 32 4 104,
            retrans_out_segments 36 4 104, last_data_recv_ms 52 4 104,
            pmtu_bytes 60 4 104,
            rtt_us 68 4 104, rttvar_us 72 4 104, snd_ssthresh_segments 76 4 104,
            snd_cwnd_segments 80 4 104, advmss_bytes 84 4 104, rcv_rtt_us 92 4 104,
            rcv_space_bytes 96 4 104, total_retrans_segments 100 4 104,
            pacing_rate_bytes_per_s 104 8 120, max_pacing_rate_bytes_per_s 112 8 120,
            acked_bytes 120 8 136, received_bytes 128 8 136,
            segs_out 136 4 144, segs_in 140 4 144,
            notsent_bytes 144 4 160, min_rtt_us 148 4 160,
            data_segs_in 152 4 160, data_segs_out 156 4 160,
            delivery_rate_bytes_per_s 160 8 168,
            busy_us 168 8 192, rwnd_limited_us 176 8 192, sndbuf_limited_us 184 8 192,
            delivered_segments 192 4 200, delivered_ce_segments 196 4 200,
            sent_bytes 200 8 224, retrans_bytes 208 8 224, dsack_dups 216 4 224,
            reord_seen 220 4 224,
            rcv_ooo_segments 224 4 232, snd_wnd_bytes 228 4 232,
            rcv_wnd_bytes 232 4 240, rehash 236 4 240,
            total_rto 240 2 248, total_rto_recoveries 242 2 248, total_rto_time_ms 244 4 248,
        }
    };
}

/// Offset of the two window scales: the sender's in one half of the byte, ours in the other.
const WINDOW_SCALES_AT: usize = 6;
/// Offset of `tcpi_delivery_rate_app_limited:1, tcpi_fastopen_client_fail:2`.
const FLAGS_AT: usize = 7;

/// Decodes `bytes`, at the length that the kernel returned. A field beyond the end of the kernel's structure stays
/// `None`.
pub fn decode(bytes: &[u8]) -> TcpInfo {
    let mut info = TcpInfo {
        length_bytes: u32::try_from(bytes.len()).unwrap_or(u32::MAX),
        ..TcpInfo::default()
    };
    macro_rules! fill {
        ($($name:ident $offset:literal $width:literal $needs:literal,)*) => {
            $(info.$name = number(bytes, $offset, $width, $needs);)*
        };
    }
    fields!(fill);
    let scales = number(bytes, WINDOW_SCALES_AT, 1, 104);
    info.snd_wscale = scales.map(|byte| bits(byte, 0, 4));
    info.rcv_wscale = scales.map(|byte| bits(byte, 4, 4));
    let flags = number(bytes, FLAGS_AT, 1, 168);
    info.delivery_rate_app_limited = flags.map(|byte| bits(byte, 0, 1));
    info.without_none()
}

/// The kernel's view of the connection `socket`.
pub fn tcp_info(socket: BorrowedFd<'_>) -> Known<TcpInfo> {
    let mut bytes = [0u8; ROOM_BYTES];
    match read(socket, &mut bytes) {
        Ok(length) => Known::Value(decode(&bytes[..length.min(ROOM_BYTES)])),
        Err(error) => Known::Missing(refused(&error)),
    }
}

fn refused(error: &std::io::Error) -> Missing {
    match error.raw_os_error() {
        Some(libc::EOPNOTSUPP | libc::ENOPROTOOPT) => {
            Missing::because("no tcp_info: not a TCP socket")
        }
        _ => Missing::because(format!("no tcp_info: {error}")),
    }
}

#[expect(unsafe_code, reason = "libraries read tcp_info by a fixed length only")]
fn read(socket: BorrowedFd<'_>, bytes: &mut [u8; ROOM_BYTES]) -> std::io::Result<usize> {
    let mut length = ROOM_BYTES as libc::socklen_t;
    // SAFETY: `bytes` and `length` live through the call, and `length` is the size of `bytes`,
    // beyond which the kernel writes nothing.
    let result = unsafe {
        libc::getsockopt(
            socket.as_raw_fd(),
            libc::IPPROTO_TCP,
            libc::TCP_INFO,
            bytes.as_mut_ptr().cast(),
            &mut length,
        )
    };
    if result < 0 { Err(std::io::Error::last_os_error()) } else { Ok(length as usize) }
}

/// The unsigned number of `width` bytes at `offset`, if the structure is at least `needs` long.
fn number(bytes: &[u8], offset: usize, width: usize, needs: usize) -> Option<u64> {
    if bytes.len() < needs {
        return None;
    }
    let field = bytes.get(offset..offset + width)?;
    let mut word = [0u8; 8];
    let start = if cfg!(target_endian = "little") { 0 } else { 8 - width };
    word[start..start + width].copy_from_slice(field);
    Some(u64::from_ne_bytes(word))
}

/// `count` bits of a C bit field byte; the field declared first has number 0. Compilers fill a byte from its low end on
/// little-endian machines and from its high end on others.
fn bits(byte: u64, first: u32, count: u32) -> u64 {
    let shift = if cfg!(target_endian = "little") { first } else { 8 - first - count };
    (byte >> shift) & ((1 << count) - 1)
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::{TcpListener, TcpStream, UdpSocket};
    use std::os::fd::AsFd;

    use super::*;

    type Getter = fn(&TcpInfo) -> Result<u64, Missing>;

    fn table() -> Vec<(&'static str, Getter, usize)> {
        macro_rules! list {
            ($($name:ident $offset:literal $width:literal $needs:literal,)*) => {
                vec![
                    $((stringify!($name), TcpInfo::$name as Getter, $needs),)*
                    ("snd_wscale", TcpInfo::snd_wscale as Getter, 104),
                    ("rcv_wscale", TcpInfo::rcv_wscale as Getter, 104),
                    ("delivery_rate_app_limited", TcpInfo::delivery_rate_app_limited as Getter, 168),
                ]
            };
        }
        fields!(list)
    }

    #[test]
    fn at_every_length_a_field_is_there_or_says_how_much_is_lacking() {
        // No number is one for "none".
        let bytes = [0x11u8; 300];
        for length in 0..bytes.len() {
            let info = decode(&bytes[..length]);
            assert_eq!(info.length_bytes as usize, length);
            for (name, get, needs) in table() {
                match get(&info) {
                    Ok(value) => assert!(length >= needs && value > 0, "{name} at {length}"),
                    Err(why) => {
                        assert!(length < needs, "{name} at {length}");
                        let expected = format!("{name} needs {needs}");
                        assert!(why.to_string().ends_with(&expected), "{why} is not {expected}");
                    }
                }
            }
        }
    }

    #[test]
    fn offsets_are_those_of_the_c_structure() {
        // Each byte holds its own offset, so each field shows where it was read.
        let bytes: Vec<u8> = (0..=255).collect();
        let info = decode(&bytes);
        let low = |value: Option<u64>| usize::from(value.unwrap().to_ne_bytes()[0]);
        assert_eq!(low(info.rtt_us), std::mem::offset_of!(libc::tcp_info, tcpi_rtt));
        assert_eq!(low(info.pacing_rate_bytes_per_s), 104);
        let sacked = std::mem::offset_of!(libc::tcp_info, tcpi_sacked);
        assert_eq!(low(info.sacked_segments), sacked);
        let retransmitted = std::mem::offset_of!(libc::tcp_info, tcpi_retrans);
        assert_eq!(low(info.retrans_out_segments), retransmitted);
        let busy = std::mem::offset_of!(libc::tcp_info, tcpi_busy_time);
        assert_eq!(low(info.busy_us), busy);
        let retrans = std::mem::offset_of!(libc::tcp_info, tcpi_bytes_retrans);
        assert_eq!(low(info.retrans_bytes), retrans);
        let window = std::mem::offset_of!(libc::tcp_info, tcpi_rcv_wnd);
        assert_eq!(low(info.rcv_wnd_bytes), window);
        let time = std::mem::offset_of!(libc::tcp_info, tcpi_total_rto_time);
        assert_eq!(low(info.total_rto_time_ms), time);
    }

    #[test]
    fn a_live_connection_counts_what_it_carried() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut sender = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (mut receiver, _) = listener.accept().unwrap();
        sender.write_all(&[7; 10_000]).unwrap();
        receiver.read_exact(&mut [0; 10_000]).unwrap();
        let info = tcp_info(receiver.as_fd());
        let info = info.get().unwrap();
        assert_eq!(info.state(), Ok(1), "established");
        assert_eq!(info.received_bytes(), Ok(10_000));
        assert!(info.rcv_mss_bytes().unwrap() > 0 && info.snd_wscale().unwrap() <= 14);
    }

    #[test]
    fn a_udp_socket_has_none() {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        let why = tcp_info(socket.as_fd()).get().unwrap_err();
        assert_eq!(why.to_string(), "no tcp_info: not a TCP socket");
    }
}
