//! iperf2: its server and its client, as Debian has them.

mod options;

use goodput_model::{Direction, Known, Record, Role as FlowRole, Transport};
use libtest_mimic::Failed;

use crate::matrix::{Case, Counts, EVERY_DIRECTION, Found, Peer, Role};
use crate::space::{Running, Space};

/// The program.
pub const PEER: Peer = Peer {
    id: "iperf2",
    program: "iperf",
    version_argument: "--version",
    directions: |_| EVERY_DIRECTION,
    measure,
    more: options::all,
};

const PORT: u16 = 5001;
const TARGET: &str = "iperf2://127.0.0.1";

/// Rate of UDP, each direction over all flows: no host loses any of it.
const UDP_MBIT: u32 = 40;

fn measure(case: &Case) -> Result<Found, Failed> {
    match case.role {
        Role::WeServe => we_serve(case),
        Role::WeConnect => we_connect(case),
    }
}

/// A line of what iperf2 prints of a flow: without intervals, all of it.
struct Row {
    /// Whether it is of the direction that was asked back (`[ *1]`).
    back: bool,
    bytes: u64,
    /// Of what received datagrams: those lost, and all.
    lost: Option<(u64, u64)>,
}

/// The rows of a text, sums left out. They are in bytes (`-f B`).
fn rows(said: &str) -> Result<Vec<Row>, Failed> {
    let flows = said.lines().filter(|line| line.contains(" Bytes ") && !line.contains("[SUM]"));
    flows.map(|line| row(line).ok_or_else(|| format!("{line:?} is no row").into())).collect()
}

/// `[ *1] 0.0000-1.0004 sec  5003328 Bytes  5001172 Bytes/sec   0.001 ms 61/813 (7.5%)`.
fn row(line: &str) -> Option<Row> {
    let (id, rest) = line.strip_prefix('[')?.split_once(']')?;
    let words: Vec<_> = rest.split_whitespace().collect();
    let lost = match words.iter().position(|word| *word == "ms") {
        None => None,
        Some(ms) => {
            let (lost, all) = words.get(ms + 1)?.split_once('/')?;
            Some((lost.parse().ok()?, all.parse().ok()?))
        }
    };
    Some(Row { back: id.contains('*'), bytes: words.get(2)?.parse().ok()?, lost })
}

/// What the rows that `of` is true of come to.
fn total(rows: &[Row], of: impl Fn(&Row) -> bool) -> (u64, Option<(u64, u64)>) {
    let rows: Vec<_> = rows.iter().filter(|row| of(row)).collect();
    let lost = rows
        .iter()
        .map(|row| row.lost)
        .reduce(|one, other| one.zip(other).map(|((a, b), (c, d))| (a + c, b + d)));
    (rows.iter().map(|row| row.bytes).sum(), lost.flatten())
}

fn arguments_of(case: &Case) -> Vec<String> {
    let mut arguments = vec!["-t".into(), "1".into(), "-P".into(), case.flows.to_string()];
    if case.transport == Transport::Udp {
        let rate = format!("{}m", UDP_MBIT / u32::from(case.flows));
        arguments.extend(["-u".into(), "-b".into(), rate]);
    }
    arguments.extend(match case.direction {
        Direction::Send => None,
        Direction::Reverse => Some("-R".into()),
        Direction::Both => Some("--full-duplex".into()),
    });
    arguments
}

/// What the client prints, and what our server says in its log.
fn we_serve(case: &Case) -> Result<Found, Failed> {
    let space = Space::new()?;
    // Without this option it sends no datagrams to an address that has not proven itself.
    let mut server = space.serve(&["--allow-unproven-udp"])?;
    let arguments = arguments_of(case);
    let printed = client(&space, &arguments.iter().map(String::as_str).collect::<Vec<_>>())?;
    let rows = rows(&printed)?;
    let ours = logged(&mut server, case.flows.into())?;
    let there = || Counts {
        sent_bytes: total(&rows, |row| !row.back && row.lost.is_none()).0,
        received_bytes: ours.received_bytes,
        lost: ours.missed,
        may_stop_early: false,
        uncounted_bytes: 0,
    };
    let back = || {
        let (received_bytes, lost) = total(&rows, |row| row.back);
        Counts {
            sent_bytes: ours.sent_bytes,
            received_bytes,
            lost,
            may_stop_early: true,
            uncounted_bytes: 0,
        }
    };
    let counts = match case.direction {
        Direction::Send => vec![there()],
        Direction::Reverse => vec![back()],
        Direction::Both => vec![there(), back()],
    };
    Found::new(&space, counts)
}

/// Runs a client until its end; what it prints.
fn client(space: &Space, arguments: &[&str]) -> Result<String, Failed> {
    let all = [&["-c", "127.0.0.1", "-f", "B"], arguments].concat();
    let finished = space.start("iperf", &all)?.finish()?;
    let failed = ["failed", "WARNING: did not", "ERROR"];
    if failed.iter().any(|word| finished.stderr.contains(word)) || !finished.status.success() {
        return Err(format!("{}: {}", finished.status, finished.stderr).into());
    }
    Ok(finished.stdout)
}

/// What our server counted.
#[derive(Debug, Default)]
struct Logged {
    received_bytes: u64,
    sent_bytes: u64,
    missed: Option<(u64, u64)>,
}

/// The sums over this many measurements, from its log: `received 3 bytes and missed 1 of 4
/// datagrams, sent 5 bytes in 1.000 s`.
fn logged(server: &mut Running, measurements: usize) -> Result<Logged, Failed> {
    let log = server.wait_for_complaints("measured: ", measurements)?;
    let mut sums = Logged::default();
    for line in log.lines().filter(|line| line.contains("measured: ")) {
        let after = |text: &str| -> Option<u64> {
            let (_, rest) = line.split_once(text)?;
            rest.split_whitespace().next()?.parse().ok()
        };
        let unreported = || format!("{line:?} does not report it");
        sums.received_bytes += after(": received ").ok_or_else(unreported)?;
        sums.sent_bytes += after(", sent ").ok_or_else(unreported)?;
        if let Some((lost, all)) = after(" missed ").zip(after(" of ")) {
            let (l, a) = sums.missed.unwrap_or_default();
            sums.missed = Some((l + lost, a + all));
        }
    }
    Ok(sums)
}

/// Seconds of our own measurements. Over UDP a server of 2.2 takes up a flow that it sends on and then
/// none for a second: all flows have to be there before the end.
fn seconds(case: &Case) -> &'static str {
    let takes_turns = case.transport == Transport::Udp && case.direction != Direction::Send;
    if takes_turns && case.flows > 1 { "5" } else { "1" }
}

/// Our own counts, and those that the server prints.
fn we_connect(case: &Case) -> Result<Found, Failed> {
    let space = Space::new()?;
    let flows = case.flows.to_string();
    let mut serve = vec!["-s", "-f", "B", "-P", &flows];
    let rate = format!("{UDP_MBIT}mbit");
    let mut arguments = vec![TARGET, "-t", seconds(case), "-P", &flows];
    if case.transport == Transport::Udp {
        serve.push("-u");
        arguments.extend(["--udp", "--rate", &rate]);
    }
    arguments.extend(match case.direction {
        Direction::Send => None,
        Direction::Reverse => Some("--reverse"),
        Direction::Both => Some("--both"),
    });
    let server = space.start("iperf", &serve)?;
    space.wait_for_socket(case.transport, PORT)?;
    let record = space.test(&arguments)?;
    let rows = rows(&server.finish()?.stdout)?;
    let (sent, received, lost) = ours(&record)?;
    let there = || {
        let (received_bytes, lost) = total(&rows, |row| !row.back);
        Counts { sent_bytes: sent, received_bytes, lost, may_stop_early: true, uncounted_bytes: 0 }
    };
    let back = |of: fn(&Row) -> bool| Counts {
        sent_bytes: total(&rows, of).0,
        received_bytes: received,
        lost,
        may_stop_early: true,
        uncounted_bytes: 0,
    };
    if case.transport == Transport::Udp && case.direction == Direction::Send {
        tells_what_it_prints(&record, &there())?;
    }
    let counts = match case.direction {
        Direction::Send => vec![there()],
        Direction::Reverse => vec![back(|_| true)],
        Direction::Both => vec![there(), back(|row| row.back)],
    };
    Found::new(&space, counts)
}

/// Bytes that this end sent and received, and the datagrams that it missed.
type Ours = (u64, u64, Option<(u64, u64)>);

fn ours(record: &Record) -> Result<Ours, Failed> {
    let samples = record.ends.near.value().map(|near| &near.samples);
    let last = samples.and_then(|samples| samples.last()).ok_or("this end has no samples")?;
    let received = last.flows.iter().filter(|flow| flow.role == FlowRole::Receiver);
    let missed = received.filter_map(|flow| flow.datagrams).map(|d| (d.lost, d.lost + d.received));
    let missed = missed.reduce(|(a, b), (c, d)| (a + c, b + d));
    Ok((last.sent_bytes, last.received_bytes, missed))
}

/// The server's report in our record is the one that it prints.
fn tells_what_it_prints(record: &Record, printed: &Counts) -> Result<(), Failed> {
    let totals = record.far_totals.as_ref().ok_or("the record has no report of the server")?;
    let bytes: Option<u64> = totals.flows.iter().map(|flow| flow.bytes.value().copied()).sum();
    let lost: Option<u64> = totals.flows.iter().map(|flow| known(&flow.lost)).sum();
    let printed = (Some(printed.received_bytes), printed.lost.map(|(lost, _)| lost));
    if (bytes, lost) == printed {
        return Ok(());
    }
    Err(format!("{printed:?} printed, {:?} reported", (bytes, lost)).into())
}

fn known(count: &Known<u64>) -> Option<u64> {
    count.value().copied()
}
