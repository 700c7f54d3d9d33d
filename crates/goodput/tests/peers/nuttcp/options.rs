//! What else users of nuttcp do, at either side.

use std::io::Write;
use std::net::TcpListener;

use goodput_model::Known;
use libtest_mimic::Failed;
use rustix::process::Signal;

use super::{DATA_PORT, PORT, TARGET, client, counts, serve};
use crate::matrix::Test;
use crate::space::{Finished, Space, exe};

/// The tests.
pub fn all() -> Vec<(&'static str, Test)> {
    vec![
        ("who_connects_can_be_reversed", reversed),
        ("its_summary_has_its_usual_words", summary),
        ("interval_lines_come_while_it_runs", intervals),
        ("buffers_end_a_test", buffers),
        ("socket_options_are_taken", socket_options),
        ("many_streams_of_datagrams_end_together", datagram_streams),
        ("rates_are_kept_by_whoever_sends", rates),
        ("both_ip_versions_are_spoken", both_ip_versions),
        ("our_own_port_answers_it_as_well", own_port),
        ("a_third_party_is_measured_with_where_it_is_allowed", third_party),
        ("what_is_not_served_is_refused_in_words", refusals),
        ("a_client_that_is_killed_leaves_room_for_the_next", killed_client),
        ("a_server_that_is_killed_is_reported", killed_server),
        ("a_server_of_something_else_is_named", wrong_server),
        ("chunks_bytes_and_options_reach_its_server", our_options),
    ]
}

fn check(holds: bool, said: impl std::fmt::Display) -> Result<(), Failed> {
    if holds { Ok(()) } else { Err(said.to_string().into()) }
}

/// What a client prints, if it ends well.
fn printed(space: &Space, arguments: &[&str]) -> Result<String, Failed> {
    let Finished { status, stdout, stderr } = space.start("nuttcp", arguments)?.finish()?;
    check(status.success(), format!("{arguments:?}: {status}: {stdout} {stderr}"))?;
    Ok(stdout)
}

fn reversed() -> Result<(), Failed> {
    let space = Space::new()?;
    let _server = space.serve(&[])?;
    for way in [&["-F"][..], &["-r", "-F"]] {
        let said = client(&space, &[&["-T1", DATA_PORT], way].concat())?;
        check(said.bytes('t')? == said.bytes('r')?, &said.0)?;
    }
    Ok(())
}

/// Whether the number behind `before` is a time. It is the receiver's, whose clock a busy host may start after the
/// sender's: how long it is, [`rates`] asks the sender.
fn lasted(said: &str, before: &str) -> bool {
    let number = said.split_once(before).and_then(|(_, rest)| rest.split_whitespace().next());
    number.and_then(|number| number.parse::<f64>().ok()).is_some_and(|seconds| seconds > 0.0)
}

fn summary() -> Result<(), Failed> {
    let space = Space::new()?;
    let _server = space.serve(&[])?;
    let classic = printed(&space, &["-T1", "127.0.0.1"])?;
    check(lasted(&classic, " MB / "), &classic)?;
    for words in [" sec = ", " Mbps ", " %TX ", " %RX ", " retrans ", " msRTT\n"] {
        check(classic.contains(words), format!("{words:?} is not in {classic:?}"))?;
    }
    let parse = printed(&space, &["-fparse", "-r", DATA_PORT, "-T1", "127.0.0.1"])?;
    check(lasted(&parse, " real_seconds="), &parse)?;
    for words in ["megabytes=", " tx_cpu=", " rx_cpu=", " retrans="] {
        check(parse.contains(words), format!("{words:?} is not in {parse:?}"))?;
    }
    Ok(())
}

fn intervals() -> Result<(), Failed> {
    let space = Space::new()?;
    let _server = space.serve(&[])?;
    for (options, words) in [
        (&["-i0.5"][..], " MB /   "),
        (&["-i0.5", "-r", DATA_PORT], " MB /   "),
        (&["-i0.5", "-u", "-R20m", "-l1400"], " ~drop/pkt "),
        (&["-i0.5", "-u", "-r", DATA_PORT, "-R20m", "-l1400"], " ~drop/pkt "),
        (&["-i0.5", "-u", "-N6", DATA_PORT, "-R20m", "-l1400"], " MB /   "),
    ] {
        let said = printed(&space, &[options, &["-T3", "127.0.0.1"]].concat())?;
        let (lines, last) =
            said.trim_end().split_once("\n\n").ok_or("nothing before the last line")?;
        let all = lines.lines().all(|line| line.contains(words));
        // A host that is busy may miss an interval's end, or be late to end the test.
        let enough = lines.lines().count() >= 2;
        check(all && enough && last.contains("%RX"), format!("{options:?}: {said}"))?;
    }
    Ok(())
}

fn buffers() -> Result<(), Failed> {
    let space = Space::new()?;
    let _server = space.serve(&[])?;
    for way in [None, Some("-r")] {
        for (buffers, bytes) in [(["-n64", "-l65536"], 64 << 16), (["-n4", "-l1024"], 4096)] {
            let arguments: Vec<_> = buffers.into_iter().chain([DATA_PORT]).chain(way).collect();
            let said = client(&space, &arguments)?;
            let both = (said.bytes('t')?, said.bytes('r')?);
            // Four digits of a megabyte are 105 bytes.
            let near = |count: u64| count.abs_diff(bytes) <= 53;
            check(near(both.0) && near(both.1), format!("{arguments:?}: {both:?}"))?;
        }
    }
    Ok(())
}

fn socket_options() -> Result<(), Failed> {
    let space = Space::new()?;
    let _server = space.serve(&[])?;
    for options in [
        &["-w100"][..],
        &["-ws100", "-r"],
        &["-l9000"],
        &["-M1000", "-D", "-r"],
        &["-c10", "-r"],
        &["-N8"],
        &["-frunningtotal", "-i0.5"],
        &["-fxmitstats", "-i0.5", "-u", "-l1400", "-R5m"],
    ] {
        client(&space, &[&["-T1", DATA_PORT], options].concat())?;
    }
    Ok(())
}

/// Its end markers go to four streams only, and it reads the streams strictly in turn.
fn datagram_streams() -> Result<(), Failed> {
    let space = Space::new()?;
    let _server = space.serve(&[])?;
    for way in [&["-p5301"][..], &["-p5301", "-r"]] {
        let arguments = [&["-u", "-N7", "-R10m", "-T1"][..], way].concat();
        let said = client(&space, &arguments)?;
        // Seven streams of 11 datagrams at most, and a pause of half a second at the end. A host that is
        // busy may need longer; a pause for each of the streams would be 3.5 s.
        let seconds = said.number('r', "real_seconds")?;
        check(said.bytes('t')? == said.bytes('r')?, &said.0)?;
        check(seconds < 3.5, format!("{way:?}: {seconds} s: {}", said.0))?;
    }
    Ok(())
}

fn rates() -> Result<(), Failed> {
    let space = Space::new()?;
    let _server = space.serve(&[])?;
    for way in [None, Some("-r")] {
        for rate in ["-R20m", "-Ri20m"] {
            let arguments: Vec<_> = [rate, "-T2", DATA_PORT].into_iter().chain(way).collect();
            // A host that is busy may send less, and never makes up for it by sending faster. By the
            // sender's clock: a receiver that was left alone finds more waiting than its time allows.
            let said = client(&space, &arguments)?;
            let mbps = said.number('t', "rate_Mbps")?;
            check(mbps > 0.0 && mbps < 22.0, format!("{arguments:?}: {mbps} Mbps"))?;
            // It may be late to stop, never early; in two digits behind the point.
            let seconds = said.number('t', "real_seconds")?;
            check(seconds >= 1.99, format!("{arguments:?}: {seconds} s"))?;
        }
    }
    Ok(())
}

fn both_ip_versions() -> Result<(), Failed> {
    let space = Space::new()?;
    let _server = space.serve(&[])?;
    for way in [None, Some("-r"), Some("-u")] {
        let arguments = ["-6", "-T1", "-R20m", DATA_PORT];
        let arguments: Vec<_> = arguments.into_iter().chain(way).chain(["::1"]).collect();
        printed(&space, &arguments)?;
    }
    let _their_server = serve_v6(&space)?;
    for way in [None, Some("--reverse")] {
        let arguments = ["nuttcp://[::1]:5006", "-t", "1"].into_iter().chain(way);
        counts(&space.test(&arguments.collect::<Vec<_>>())?)?;
    }
    Ok(())
}

fn serve_v6(space: &Space) -> Result<crate::space::Running, Failed> {
    let server = space.start("nuttcp", &["-6", "-S", "--nofork", "-P5006"])?;
    space.wait_for_listener(5006)?;
    Ok(server)
}

fn own_port() -> Result<(), Failed> {
    let space = Space::new()?;
    let _server = space.serve(&[])?;
    printed(&space, &["-P7487", "-T1", "127.0.0.1"]).map(drop)
}

/// Their server and ours share a host, by the IP version.
fn third_party() -> Result<(), Failed> {
    let space = Space::new()?;
    let _theirs = space.start("nuttcp", &["-6", "-S", "--nofork"])?;
    space.wait_for_listener(PORT)?;
    let mut server = space.serve(&["--bind", "127.0.0.1", "--third-party", "::1"])?;
    for (options, words) in [
        (&["-T1"][..], "%RX"),
        (&["-T1", "-r"], "%RX"),
        (&["-n2m", "-N2"], "    2.0000 MB /"),
        (&["-T1", "-u", "-R10m"], "drop/pkt"),
        (&["-T2", "-i0.5", "-fparse", "-r"], "\n\nmegabytes="),
    ] {
        let said = printed(&space, &[options, &["127.0.0.1", "::1"]].concat())?;
        check(said.contains(words) && !said.contains("Error"), format!("{options:?}: {said}"))?;
    }
    server.wait_for_complaint("measures for it with ::1:5000: TCP, 1 flow, from here")?;
    let not_allowed = space.start("nuttcp", &["-T1", "127.0.0.1", "127.0.0.1"])?.finish()?;
    let said = not_allowed.stdout + &not_allowed.stderr;
    check(said.contains("doesn't allow 3rd party nuttcp with that host"), said)?;
    // The other way round, their server becomes a client of ours.
    let said = printed(&space, &["-T1", "::1", "127.0.0.1"])?;
    check(said.contains("%RX"), said)
}

fn refusals() -> Result<(), Failed> {
    let space = Space::new()?;
    let _server = space.serve(&["--max-duration", "5"])?;
    for (arguments, words) in [
        (&["-r", "-p5001", "-T1", "127.0.0.1"][..], "port 5001 of this host is this server's own"),
        (&["-T1", "127.0.0.1", "127.0.0.2"], "doesn't allow 3rd party nuttcp"),
        (&["-xt", "127.0.0.1"], "doesn't run traceroute"),
        (&["-T60", "127.0.0.1"], "a duration of 60 s is too much; this server allows 5 s"),
    ] {
        let Finished { status, stdout, stderr } = space.start("nuttcp", arguments)?.finish()?;
        let said = stdout + &stderr;
        check(!status.success() && said.contains(words), format!("{arguments:?}: {said}"))?;
    }
    let _their_server = space.start("nuttcp", &["-S", "--nofork", "-P5006"])?;
    space.wait_for_listener(5006)?;
    let both = ["test", "nuttcp://127.0.0.1:5006", "--both", "-t", "1", "--no-store"];
    let said = space.start(exe(), &both)?.finish()?.stderr;
    check(said.contains("can't express both directions at once"), said)
}

fn killed_client() -> Result<(), Failed> {
    let space = Space::new()?;
    let mut server = space.serve(&[])?;
    for options in [&["-T30"][..], &["-T30", "-r", DATA_PORT], &["-T30", "-u", "-R1m"]] {
        let killed = space.start("nuttcp", &[options, &["127.0.0.1"]].concat())?;
        server.wait_for_complaint("nuttcp: measures: ")?;
        drop(killed);
        client(&space, &["-T1", DATA_PORT])?;
    }
    Ok(())
}

fn killed_server() -> Result<(), Failed> {
    let space = Space::new()?;
    let server = serve(&space, &[])?;
    let mut client = space.start(exe(), &["test", TARGET, "-t", "30", "--no-store"])?;
    client.wait_for_line("0.0–")?;
    server.signal(Signal::KILL)?;
    let finished = client.finish()?;
    check(!finished.status.success() && !finished.stderr.contains("panicked"), &finished.stderr)
}

fn wrong_server() -> Result<(), Failed> {
    let space = Space::new()?;
    let listener = space.within(|| TcpListener::bind("127.0.0.1:0"))??;
    let port = listener.local_addr()?.port();
    let answering = std::thread::spawn(move || -> std::io::Result<u64> {
        let (mut stream, _) = listener.accept()?;
        stream.write_all(b"SSH-2.0-x\r\n")?;
        std::io::copy(&mut stream, &mut std::io::sink())
    });
    let test = |port: u16| -> Result<Finished, Failed> {
        let target = format!("nuttcp://127.0.0.1:{port}");
        space.start(exe(), &["test", &target, "-t", "1", "--no-store"])?.finish()
    };
    let Finished { status, stderr, .. } = test(port)?;
    check(!status.success() && stderr.contains("an SSH server"), stderr)?;
    answering.join().map_err(|_| "the server of something else panicked")??;
    let Finished { status, stderr, .. } = test(port)?;
    check(!status.success() && stderr.contains("Connection refused"), stderr)
}

fn our_options() -> Result<(), Failed> {
    let space = Space::new()?;
    let _server = serve(&space, &[])?;
    let report = |arguments: &[&str]| -> Result<String, Failed> {
        let record = space.test(&[&[TARGET], arguments].concat())?;
        let totals = record.far_totals.ok_or("nuttcp reported nothing")?;
        check(matches!(totals.cpu_percent, Known::Value(_)), "no CPU was reported")?;
        Ok(totals.text.unwrap_or_default())
    };
    let reverse = ["-n", "1M", "--reverse", "--chunk", "8192", "--rate", "100mbit"];
    let said = report(&reverse)?;
    for words in ["buflen=8192 nbuf=128 ", "rate_limit=100.000 ", "rate_mode=instantaneous"] {
        check(said.contains(words), format!("{words:?} is not in {said}"))?;
    }
    let said = report(&["-t", "1", "--dscp", "46", "--rcvbuf", "100000"])?;
    for words in ["tos=0xB8", "receive_window_size=200000"] {
        check(said.contains(words), format!("{words:?} is not in {said}"))?;
    }
    Ok(())
}
