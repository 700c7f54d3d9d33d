//! /proc/self/mountstats: each NFS mount's requests to its server, and how long they took.
//!
//! Written by `show_vfsstat` (fs/proc_namespace.c), `nfs_show_stats` (fs/nfs/super.c), `rpc_clnt_show_stats`
//! (net/sunrpc/stats.c) and `print_stats` of each transport (net/sunrpc/xprtsock.c); mountstats(8) reads the same.

use super::ParseError;
use super::mountinfo::unescape;

const FILE: &str = "/proc/self/mountstats";

/// One mounted file system.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MountStatistics {
    /// Where it is mounted.
    pub point: String,
    /// The counts of an NFS mount; no other file system counts anything here.
    pub nfs: Option<NfsStatistics>,
}

/// The counts of an NFS mount since it was mounted.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct NfsStatistics {
    /// Bytes moved; absent if the kernel did not write the line.
    pub bytes: Option<ByteCounts>,
    /// Its connections.
    pub transports: Vec<Transport>,
    /// The calls, by the protocol's names.
    pub operations: Vec<Operation>,
}

/// The line `bytes:` (`nfs_stat_bytecounters`, include/linux/nfs_iostat.h), bytes and pages since it was mounted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ByteCounts {
    /// Read by programs through the page cache.
    pub cached_read: u64,
    /// Requested by programs with `O_DIRECT`, including bytes beyond the end of a file.
    pub direct_read: u64,
    /// Read from the server.
    pub server_read: u64,
    /// Written to the server.
    pub server_write: u64,
}

/// One connection (`xs_tcp_print_stats`, `xs_udp_print_stats`, net/sunrpc/xprtsock.c).
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Transport {
    /// "tcp", "udp", "rdma" or "local".
    pub protocol: String,
    /// How often it was connected; not counted for datagrams.
    pub connects: Option<u64>,
    /// Calls that were sent.
    pub sends: u64,
    /// Answers that came.
    pub receives: u64,
    /// Answers to calls that were not pending.
    pub bad_answers: u64,
    /// For each call, the calls in flight with it, added up.
    pub in_flight_sum: u64,
    /// For each call, the calls that waited for a slot of the connection, added up.
    pub backlog_sum: u64,
    /// Most slots in use at once; kernels before 3.0 do not count it.
    pub most_slots: Option<u64>,
}

/// One kind of call (`_print_rpc_iostats`, net/sunrpc/stats.c).
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Operation {
    /// "READ", "WRITE", …
    pub name: String,
    /// Calls that ended.
    pub calls: u64,
    /// How often calls were sent; more than the calls if some had to be sent again.
    pub transmissions: u64,
    /// Calls that were given up temporarily and retried (major timeouts).
    pub timeouts: u64,
    /// Bytes of the calls, RPC headers included.
    pub sent_bytes: u64,
    /// Bytes of the answers, RPC headers included.
    pub received_bytes: u64,
    /// From the start of a call to its first byte on the connection, added up, milliseconds.
    pub queue_ms: u64,
    /// From the first byte to the answer, added up, milliseconds.
    pub round_trip_ms: u64,
    /// From the start of a call to its end, added up, milliseconds.
    pub execute_ms: u64,
    /// Calls that ended with an error; kernels before 5.3 do not count it.
    pub errors: Option<u64>,
}

/// Reads the file. Additions of later kernels are skipped.
pub fn parse(text: &str) -> Result<Vec<MountStatistics>, ParseError> {
    let mut mounts: Vec<MountStatistics> = Vec::new();
    // An empty line ends the counts of an NFS mount; without this check, a truncated list of calls would look complete.
    let mut whole = true;
    for line in text.lines() {
        if let Some(device) = line.strip_prefix("device ") {
            check_whole(whole)?;
            mounts.push(mount(device)?);
            whole = mounts.last().is_none_or(|mount| mount.nfs.is_none());
        } else if line.is_empty() {
            whole = true;
        } else if let Some(nfs) = mounts.last_mut().and_then(|mount| mount.nfs.as_mut()) {
            take(nfs, line.trim_start())?;
        }
    }
    check_whole(whole)?;
    Ok(mounts)
}

fn check_whole(whole: bool) -> Result<(), ParseError> {
    if whole { Ok(()) } else { Err(ParseError::new(FILE, "a mount's counts are cut short")) }
}

/// `SOURCE mounted on POINT with fstype KIND statvers=1.1`, the last word only for NFS.
fn mount(device: &str) -> Result<MountStatistics, ParseError> {
    let broken = || ParseError::new(FILE, format!("{device:?}"));
    let (_, after) = device.split_once(" mounted on ").ok_or_else(broken)?;
    let (point, kind) = after.split_once(" with fstype ").ok_or_else(broken)?;
    let version = kind.split(' ').find_map(|word| word.strip_prefix("statvers="));
    // A version other than 1.x has another layout.
    let nfs = version.filter(|version| version.starts_with("1.")).map(|_| NfsStatistics::default());
    Ok(MountStatistics { point: unescape(point), nfs })
}

/// One line of an NFS mount.
fn take(nfs: &mut NfsStatistics, line: &str) -> Result<(), ParseError> {
    let Some((name, rest)) = line.split_once(':') else { return Ok(()) };
    match name {
        "bytes" => nfs.bytes = Some(bytes(&numbers(line, rest)?)?),
        "xprt" => nfs.transports.push(transport(line, rest.trim())?),
        // Names of calls are in capitals.
        _ if !name.is_empty() && name.bytes().all(|b| b.is_ascii_uppercase() || b == b'_') => {
            nfs.operations.push(operation(name, &numbers(line, rest)?)?);
        }
        _ => {}
    }
    Ok(())
}

fn numbers(line: &str, text: &str) -> Result<Vec<u64>, ParseError> {
    let number = |word: &str| word.parse().or_else(|error| negative(word).ok_or(error));
    let all = text.split_ascii_whitespace().map(number).collect::<Result<_, _>>();
    all.map_err(|_| ParseError::new(FILE, format!("{line:?}")))
}

/// The time for which a connection has been idle is written with a sign.
fn negative(word: &str) -> Option<u64> {
    word.parse::<i64>().ok().map(|_| 0)
}

fn too_short(of: &str) -> ParseError {
    ParseError::new(FILE, format!("{of} has too few numbers"))
}

fn bytes(numbers: &[u64]) -> Result<ByteCounts, ParseError> {
    match *numbers {
        [cached_read, _, direct_read, _, server_read, server_write, ..] => {
            Ok(ByteCounts { cached_read, direct_read, server_read, server_write })
        }
        _ => Err(too_short("bytes")),
    }
}

fn transport(line: &str, rest: &str) -> Result<Transport, ParseError> {
    let (protocol, rest) = rest.split_once(char::is_whitespace).unwrap_or((rest, ""));
    let numbers = numbers(line, rest)?;
    // The words before the counts: the port; for connections also how often and since when.
    let (connects, counts) = match protocol {
        "udp" => (None, numbers.get(2..)),
        "local" => (numbers.get(1), numbers.get(4..)),
        _ => (numbers.get(2), numbers.get(5..)),
    };
    let Some([sends, receives, bad_answers, in_flight_sum, backlog_sum, more @ ..]) = counts else {
        return Err(too_short("xprt"));
    };
    Ok(Transport {
        protocol: protocol.into(),
        connects: connects.copied(),
        sends: *sends,
        receives: *receives,
        bad_answers: *bad_answers,
        in_flight_sum: *in_flight_sum,
        backlog_sum: *backlog_sum,
        // For RDMA, other counts follow.
        most_slots: more.first().filter(|_| protocol != "rdma").copied(),
    })
}

fn operation(name: &str, numbers: &[u64]) -> Result<Operation, ParseError> {
    let [calls, transmissions, timeouts, sent, received, queue, round_trip, execute, more @ ..] =
        numbers
    else {
        return Err(too_short(name));
    };
    Ok(Operation {
        name: name.into(),
        calls: *calls,
        transmissions: *transmissions,
        timeouts: *timeouts,
        sent_bytes: *sent,
        received_bytes: *received,
        queue_ms: *queue,
        round_trip_ms: *round_trip,
        execute_ms: *execute,
        errors: more.first().copied(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// As Linux 6.1 writes it, shortened.
    const NFS4: &str = include_str!("mountstats/linux-6.1-nfs4.txt");
    /// As Linux 3.10 writes it: version 1.1, no count of errors.
    const NFS3: &str = include_str!("mountstats/linux-3.10-nfs3.txt");
    /// As Linux 2.6.18 writes it: version 1.0, over UDP, nothing behind the backlog.
    const OLD: &str = include_str!("mountstats/linux-2.6.18-udp.txt");

    fn nfs(text: &str, point: &str) -> NfsStatistics {
        let mounts = parse(text).unwrap();
        mounts.into_iter().find(|mount| mount.point == point).unwrap().nfs.unwrap()
    }

    fn read(nfs: &NfsStatistics) -> &Operation {
        nfs.operations.iter().find(|operation| operation.name == "READ").unwrap()
    }

    #[test]
    fn a_mount_of_a_recent_kernel_reports_all() {
        let mounts = parse(NFS4).unwrap();
        assert!(mounts.len() > 1 && mounts[0].nfs.is_none(), "others count nothing: {mounts:?}");
        let nfs = nfs(NFS4, "/tmp/mnt");
        assert_eq!(nfs.transports.len(), 2, "{:?}", nfs.transports);
        assert_eq!(nfs.transports[0].protocol, "tcp");
        let read = read(&nfs);
        assert_eq!((read.calls, read.errors), (read.transmissions, Some(0)));
        assert!(read.execute_ms >= read.round_trip_ms && read.received_bytes > 16 << 20);
        assert!(nfs.bytes.is_some_and(|bytes| bytes.server_read == 16 << 20), "{:?}", nfs.bytes);
    }

    #[test]
    fn older_kernels_count_less() {
        let newer = nfs(NFS3, "/mnt/na s");
        assert_eq!(newer.transports[0].connects, Some(1));
        assert_eq!(newer.transports[0].most_slots, Some(16));
        assert_eq!((read(&newer).calls, read(&newer).errors), (512, None));
        assert_eq!(read(&newer).transmissions, 514);
        let old = nfs(OLD, "/home");
        let udp = Transport {
            protocol: "udp".into(),
            sends: 700,
            receives: 698,
            bad_answers: 1,
            in_flight_sum: 4200,
            backlog_sum: 77,
            ..Transport::default()
        };
        assert_eq!(old.transports, [udp]);
        assert_eq!(read(&old).timeouts, 2);
    }

    #[test]
    fn lines_that_are_cut_are_errors_and_unknown_ones_are_not() {
        let head = "device n:/e mounted on /m with fstype nfs statvers=1.1\n";
        for cut in ["\tbytes:\t1 2 3\n", "\txprt:\ttcp 1 2 3\n", "\tREAD: 1 2 3 4 5 6 7\n"] {
            assert!(parse(&format!("{head}{cut}\n")).is_err(), "{cut:?}");
        }
        assert!(
            parse(head).is_err()
                && parse(&format!("{head}device x mounted on /y with fstype z\n")).is_err()
        );
        let novel =
            format!("{head}\tnovel: x y\n\tno colon\n\txprt:\ttcp 1 1 2 0 -1 9 9 0 9 0 2 7\n\n");
        let nfs = parse(&novel).unwrap().remove(0).nfs.unwrap();
        assert_eq!((nfs.transports[0].connects, nfs.transports[0].sends), (Some(2), 9));
        let other = "device n:/e mounted on /m with fstype nfs statvers=2.0\n\tREAD: x\n\n";
        assert_eq!(parse(other).unwrap()[0].nfs, None, "another layout");
        assert!(parse("device /dev/sda1 mounted\n").is_err());
    }

    proptest! {
        #[test]
        fn any_text_is_read_or_refused(text in "(device |xprt:|READ:|[ -~\t\n0-9]){0,80}") {
            let _ = parse(&text);
        }

        #[test]
        fn a_file_cut_anywhere_is_read_or_refused(at in 0..NFS4.len()) {
            let _ = parse(&NFS4[..at]);
        }
    }
}
