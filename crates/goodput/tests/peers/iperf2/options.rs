//! What else users of iperf2 do, at either side.

use std::time::Instant;

use goodput_model::Transport;
use libtest_mimic::Failed;
use rustix::process::Signal;

use super::{PORT, TARGET, client, logged, rows};
use crate::matrix::Test;
use crate::space::{Space, exe};

/// The tests.
pub fn all() -> Vec<(&'static str, Test)> {
    vec![
        ("every_byte_counts", every_byte),
        ("the_server_connects_back", back),
        ("datagrams_come_back_too", datagrams_back),
        ("nobody_is_sent_datagrams_unproven", unproven),
        ("options_are_taken", options),
        ("messages_bounce_back", bounceback),
        ("flows_share_the_rate_of_their_client", many_flows),
        ("our_bytes_arrive_there", our_bytes),
        ("a_stream_without_header_is_ttcp_to_both", plain),
        ("a_client_that_is_killed_leaves_room_for_the_next", killed_client),
        ("a_server_that_is_killed_is_reported", killed_server),
    ]
}

fn check(holds: bool, said: impl std::fmt::Display) -> Result<(), Failed> {
    if holds { Ok(()) } else { Err(said.to_string().into()) }
}

/// Not a multiple of anything.
const BYTES: u64 = 1_000_003;

/// Header and all: what was asked for is what both sides count.
fn every_byte() -> Result<(), Failed> {
    for (way, sent, received) in [(None, 0, 1), (Some("-R"), 1, 0), (Some("--full-duplex"), 1, 1)] {
        // The two threads of such a client wait for each other at a barrier, and give up if one has sent
        // everything before the other is there: its traffic is slow enough here. Several flows of that kind make
        // it wait for ever (2.2.1), or crash on a busy host (2.1.8). It does all this with its own server as well.
        let meets = way == Some("--full-duplex");
        let slow = if meets { &["-b", "8m"][..] } else { &[] };
        for flows in if meets { &["1"][..] } else { &["1", "4"] } {
            let space = Space::new()?;
            let mut server = space.serve(&[])?;
            let asked = ["-n", "1000003", "-P", flows];
            let arguments: Vec<_> = asked.iter().chain(slow).copied().chain(way).collect();
            let said = client(&space, &arguments)
                .map_err(|why| format!("{arguments:?}: {}", why.message().unwrap_or_default()))?;
            let rows = rows(&said)?;
            check(!rows.is_empty() && rows.iter().all(|row| row.bytes == BYTES), &said)?;
            let count: u64 = flows.parse()?;
            let ours = logged(&mut server, count as usize)?;
            let counted = (ours.sent_bytes, ours.received_bytes);
            let asked = (sent * count * BYTES, received * count * BYTES);
            check(counted == asked, format!("{way:?}: {counted:?}"))?;
        }
    }
    Ok(())
}

/// Each flow is a connection of its own, which says nothing of the others.
fn many_flows() -> Result<(), Failed> {
    const FLOWS: usize = 32;
    let space = Space::new()?;
    let mut server = space.serve(&["--max-rate", "80mbit"])?;
    let since = Instant::now();
    client(&space, &["-P", "32", "-t", "3"])?;
    let ours = logged(&mut server, FLOWS)?;
    // What was saved while nothing moved, and a piece of each flow.
    let most = 1e7 * (since.elapsed().as_secs_f64() + 0.3) + (FLOWS * 65_536) as f64;
    let received = ours.received_bytes;
    check(received > 0 && (received as f64) < most, format!("{received} of {most} bytes"))
}

/// `-d` at once, `-r` afterwards, to the port that the client names.
fn back() -> Result<(), Failed> {
    for (way, measurements) in [("-d", 1), ("-r", 2)] {
        let space = Space::new()?;
        let mut server = space.serve(&[])?;
        let said = client(&space, &[way, "-L", "6001", "-n", "1000003"])?;
        let rows = rows(&said)?;
        check(rows.len() == 2 && rows.iter().all(|row| row.bytes == BYTES), &said)?;
        let ours = logged(&mut server, measurements)?;
        let counted = (ours.sent_bytes, ours.received_bytes);
        check(counted == (BYTES, BYTES), format!("{way}: {counted:?}"))?;
    }
    Ok(())
}

fn datagrams_back() -> Result<(), Failed> {
    for way in ["-d", "-r"] {
        let space = Space::new()?;
        let _server = space.serve(&["--allow-unproven-udp"])?;
        let said = client(&space, &["-u", way, "-L", "6001", "-t", "1", "-b", "5m"])?;
        let rows = rows(&said)?;
        // What it sent, what our server reports of that, and what came back.
        check(rows.len() == 3 && rows.iter().all(|row| row.bytes > 0), said)?;
    }
    Ok(())
}

/// Any address might be forged, and clients behind a proxy on this host come from loopback.
fn unproven() -> Result<(), Failed> {
    ["192.0.2.1", "127.0.0.1"].into_iter().try_for_each(sends_nothing_to)
}

fn sends_nothing_to(address: &str) -> Result<(), Failed> {
    let space = Space::new()?;
    let added = space.start("ip", &["address", "add", "192.0.2.1/32", "dev", "lo"])?.finish()?;
    check(added.status.success(), added.stderr)?;
    let mut server = space.serve(&[])?;
    let asked = ["-c", address, "-u", "-R", "-t", "1", "-b", "5m"];
    let said = space.start("iperf", &asked)?.finish()?.stdout;
    // At most the end of a flow, no longer than what came, which the client counts.
    check(said.contains(" 0.000 Bytes ") || said.contains(" 16.0 Bytes "), said)?;
    server.wait_for_complaint("serve with --allow-unproven-udp")
}

fn options() -> Result<(), Failed> {
    let space = Space::new()?;
    let _server = space.serve(&[])?;
    for options in [
        &["-b", "20m", "-l", "4K", "-i", "0.5"][..],
        &["-w", "256K", "-e"],
        &["-R", "--trip-times", "-n", "1M"],
        &["-M", "1000", "-N"],
        &["-Z", "reno", "-S", "0x10"],
        &["--trip-times"],
        &["-X"],
        &["-X", "--trip-times"],
        &["-C"],
        &["-R", "-b", "20m", "-l", "4K", "-i", "0.5"],
        &["-R", "-S", "0x10", "-w", "256K"],
        &["-y", "C"],
        &["-u", "-b", "5m", "-l", "100"],
        &["-u", "-b", "5m", "--trip-times"],
        &["-u", "-b", "5m", "-e", "-i", "0.5"],
        &["-u", "-b", "500pps"],
    ] {
        let arguments = [&["-t", "1"], options].concat();
        let said = client(&space, &arguments).map_err(|why| format!("{options:?}: {why:?}"))?;
        let printed = said.contains(" Bytes ") || said.contains(",127.0.0.1,5001,");
        check(printed, format!("{options:?}: {said}"))?;
        let unreported = options.contains(&"-u") && !said.contains("Server Report");
        check(!unreported, format!("{options:?}: {said}"))?;
    }
    Ok(())
}

fn bounceback() -> Result<(), Failed> {
    let space = Space::new()?;
    let _server = space.serve(&[])?;
    for more in [&[][..], &["--bounceback-hold", "2"], &["-l", "20000"]] {
        let arguments = [&["--bounceback", "-t", "1"], more].concat();
        let said = client(&space, &arguments)?;
        // 2.1 reports "2562 rps" of them, 2.2 "RPS=24272".
        let printed = said.contains(" rps") || said.contains("RPS=");
        check(printed && bounced(&said) > 0, format!("{more:?}: {said}"))?;
    }
    Ok(())
}

/// How many messages came back, by the line that counts most of them: `10=0.390/0.025/3.324/1.035 ms`.
fn bounced(said: &str) -> u64 {
    let words = said.split_whitespace().filter(|word| word.matches('/').count() == 3);
    words.filter_map(|word| word.split_once('=')?.0.parse().ok()).max().unwrap_or(0)
}

fn our_bytes() -> Result<(), Failed> {
    for way in [None, Some("--reverse"), Some("--both")] {
        let space = Space::new()?;
        let server = space.start("iperf", &["-s", "-f", "B", "-P", "1"])?;
        space.wait_for_socket(Transport::Tcp, PORT)?;
        let arguments = [TARGET, "--bytes", "1000003"].into_iter().chain(way);
        space.test(&arguments.collect::<Vec<_>>())?;
        let said = server.finish()?.stdout;
        let rows = rows(&said)?;
        check(!rows.is_empty() && rows.iter().all(|row| row.bytes == BYTES), said)?;
    }
    Ok(())
}

/// iperf2's server takes any stream, and ttcp's receiver takes iperf2's.
fn plain() -> Result<(), Failed> {
    let space = Space::new()?;
    let server = space.start("iperf", &["-s", "-f", "B", "-P", "1"])?;
    space.wait_for_socket(Transport::Tcp, PORT)?;
    space.test(&["ttcp://127.0.0.1", "--bytes", "1000003"])?;
    let said = server.finish()?.stdout;
    // 2.1.8 does not count the four bytes by which it saw that there is no header.
    check(rows(&said)?.iter().any(|row| row.bytes == BYTES - 4), said)?;
    let mut server = space.serve(&["--protocols", "ttcp"])?;
    client(&space, &["-n", "1000003"])?;
    let log = server.wait_for_complaints("ttcp: measured: ", 1)?;
    check(log.contains("received 1000003 bytes"), log)
}

fn killed_client() -> Result<(), Failed> {
    for way in [None, Some("-R"), Some("--full-duplex")] {
        let space = Space::new()?;
        let mut server = space.serve(&[])?;
        let arguments = ["-c", "127.0.0.1", "-t", "60", "-i", "0.5"].into_iter().chain(way);
        let killed = space.start("iperf", &arguments.collect::<Vec<_>>())?;
        server.wait_for_complaint("measures")?;
        killed.signal(Signal::KILL)?;
        killed.finish()?;
        // Whether its kernel still closes the connection in order depends on what is unread.
        server.wait_for_any_complaint(&["iperf2: disconnected after", "iperf2: ended: "])?;
        client(&space, &["-n", "1000003"])?;
    }
    Ok(())
}

fn killed_server() -> Result<(), Failed> {
    let space = Space::new()?;
    let server = space.start("iperf", &["-s"])?;
    space.wait_for_socket(Transport::Tcp, PORT)?;
    let arguments = ["test", TARGET, "-t", "60", "-i", "0.1", "--no-store", "--json-stream"];
    let mut ours = space.start(exe(), &arguments)?;
    ours.wait_for_line("interval")?;
    server.signal(Signal::KILL)?;
    let ended = ours.finish()?;
    check(!ended.status.success() && ended.stderr.contains("broke the connection"), ended.stderr)
}
