//! What else users of iperf3 do, at either side.

use std::time::Instant;

use libtest_mimic::Failed;
use rustix::process::Signal;
use serde_json::Value;

use super::{PEER, PORT, TARGET, client};
use crate::matrix::Test;
use crate::moved::moved;
use crate::space::{Space, exe};

/// A key pair that protects nothing, and the user "mario" with the password "rossi".
const PRIVATE: &str = include_str!("private.pem");
const PUBLIC: &str = include_str!("public.pem");
const USERS: &str = include_str!("users.csv");

/// The tests.
pub fn all() -> Vec<(&'static str, Test)> {
    vec![
        ("what_the_server_printed_reaches_the_client", server_output),
        ("a_warm_up_is_left_out", warm_up),
        ("its_server_leaves_our_warm_up_out_and_reports_what_it_printed", our_warm_up),
        ("we_print_as_its_server_does", printed_here),
        ("bytes_and_blocks_end_a_test", bytes_and_blocks),
        ("socket_options_are_taken", socket_options),
        ("our_options_are_said_to_its_server", our_options),
        ("several_clients_measure_at_the_same_time", together),
        ("a_hundred_flows_share_the_rate_of_their_client", many_flows),
        ("its_users_log_in_here", users_here),
        ("our_users_log_in_there", users_there),
        ("a_client_that_is_killed_leaves_room_for_the_next", killed_client),
        ("a_server_that_is_killed_is_reported", killed_server),
        ("a_refusal_is_reported_in_words", refusals),
    ]
}

fn check(holds: bool, said: impl std::fmt::Display) -> Result<(), Failed> {
    if holds { Ok(()) } else { Err(said.to_string().into()) }
}

fn server_output() -> Result<(), Failed> {
    let space = Space::new()?;
    let _server = space.serve(&[])?;
    let json = client(&space, &["-t", "2", "--get-server-output"])?;
    let text = json["server_output_text"].as_str().ok_or("there is no output of the server")?;
    for wanted in ["Accepted connection from 127.0.0.1", "receiver\n"] {
        check(text.contains(wanted), format!("{wanted:?} is not in {text}"))?;
    }
    // Of a second, or more on a host that is busy.
    let first = text.split_once("[  5]   0.00-").and_then(|(_, rest)| rest.split(' ').next());
    let to_s = first.and_then(|to_s| to_s.parse::<f64>().ok());
    check(to_s.is_some_and(|to_s| to_s >= 1.0), format!("no first interval is in {text}"))?;
    Ok(())
}

/// Whether both sides leave the same out of their sums, by clocks of their own: with the warm-up, one
/// of them would have half as much again.
fn alike(end: &Value) -> Result<(), Failed> {
    let bytes = |name: &str| end[name]["bytes"].as_f64().unwrap_or(0.0);
    let (sent, received) = (bytes("sum_sent"), bytes("sum_received"));
    check(
        sent > 0.0 && (received / sent - 1.0).abs() < 0.35,
        format!("{sent} and {received} bytes"),
    )
}

fn warm_up() -> Result<(), Failed> {
    let space = Space::new()?;
    let _server = space.serve(&[])?;
    for direction in [&["-b", "50M"][..], &["-b", "50M", "-R"]] {
        let arguments = [&["-O", "1", "-t", "2", "-i", "0.5"], direction].concat();
        alike(&client(&space, &arguments)?["end"])?;
    }
    Ok(())
}

fn our_warm_up() -> Result<(), Failed> {
    let space = Space::new()?;
    let _server = space.start("iperf3", &["-s"])?;
    space.wait_for_listener(PORT)?;
    let mut arguments = vec![TARGET, "-t", "1", "--omit", "1", "--rate", "50mbit", "--peer-output"];
    for more in [&[][..], &["--reverse"], &["--udp"]] {
        arguments.extend(more);
        let record = space.test(&arguments)?;
        let totals = record.far_totals.as_ref().ok_or("there is no report of the server")?;
        let text = totals.text.as_deref().unwrap_or_default();
        check(text.contains("(omitted)"), format!("{more:?}: the server printed {text:?}"))?;
        // A busy host holds no rate, so only a shortfall can be checked.
        let bytes = totals.flows[0].bytes.value().copied().unwrap_or(0);
        let samples = record.ends.near.value().and_then(|near| near.samples.last());
        let all = samples.map_or(0, |last| last.sent_bytes.max(last.received_bytes));
        check((1..all).contains(&bytes), format!("{more:?}: {bytes} of {all} bytes"))?;
        arguments.truncate(arguments.len() - more.len());
    }
    Ok(())
}

/// More flows than a slow host serves at once: the limit holds for what is received, all flows together.
fn many_flows() -> Result<(), Failed> {
    const FLOWS: u64 = 128;
    let space = Space::new()?;
    let mut server = space.serve(&["--max-rate", "80mbit"])?;
    let since = Instant::now();
    let json = client(&space, &["-P", "128", "-t", "3"])?;
    // What was saved while nothing moved, and a piece of each flow.
    let most = 1e7 * (since.elapsed().as_secs_f64() + 0.3) + (FLOWS * 65_536) as f64;
    let flows = json["end"]["streams"].as_array().map_or(0, Vec::len) as u64;
    let received = json["end"]["sum_received"]["bytes"].as_f64().unwrap_or(0.0);
    check(flows == FLOWS, format!("{flows} flows"))?;
    check(received > 0.0 && received < most, format!("{received} of {most} bytes"))?;
    server.wait_for_complaint("measured: ")
}

/// What scripts read of `iperf3 -s -1`, of this end's own counts.
fn printed_here() -> Result<(), Failed> {
    for direction in [&[][..], &["-R"], &["--bidir"], &["-u", "-b", "20M"]] {
        let space = Space::new()?;
        let server = space.serve(&["--one-off", "--format", "iperf3"])?;
        client(&space, &[&["-t", "1"], direction].concat())?;
        let printed = server.finish()?.stdout;
        let json = printed.find('{').map(|at| &printed[at..]).unwrap_or_default();
        let json: Value = serde_json::from_str(json)?;
        let peer = json["start"]["accepted_connection"]["host"].as_str();
        check(peer == Some("127.0.0.1"), format!("{direction:?}: accepted {peer:?}"))?;
        let reverse = i64::from(direction.contains(&"-R"));
        check(json["start"]["test_start"]["reverse"] == reverse, format!("{direction:?}: {json}"))?;
        let name = if direction == ["-R"] { "sum_sent" } else { "sum_received" };
        let bytes = json["end"][name]["bytes"].as_u64().unwrap_or(0);
        let host = json["end"]["cpu_utilization_percent"]["host_total"].as_f64();
        check(bytes > 0 && host.is_some(), format!("{direction:?}: {bytes} bytes, CPU {host:?}"))?;
        check(json["intervals"].as_array().is_some_and(|all| !all.is_empty()), "no intervals")?;
    }
    Ok(())
}

fn bytes_and_blocks() -> Result<(), Failed> {
    let space = Space::new()?;
    let _server = space.serve(&[])?;
    for way in [None, Some("-R"), Some("--bidir")] {
        // A client that receives takes each read for a block, however little it brings.
        for (end, least) in [(["-n", "8M"], 8 << 20), (["-k", "64"], 1)] {
            let arguments: Vec<_> = end.into_iter().chain(way).collect();
            let json = client(&space, &arguments)?;
            // With both directions at once, the one that is there first ends the test.
            let sums = ["sum_sent", "sum_received_bidir_reverse"].map(|sum| &json["end"][sum]);
            let most = sums.iter().filter_map(|sum| sum["bytes"].as_u64()).max().unwrap_or(0);
            check(most >= least, format!("{arguments:?}: {most} bytes"))?;
        }
    }
    Ok(())
}

fn socket_options() -> Result<(), Failed> {
    let space = Space::new()?;
    let _server = space.serve(&[])?;
    for options in [
        &["-w", "256K"][..],
        &["-M", "1000", "-N"],
        &["-C", "reno", "-S", "0x10"],
        &["--dscp", "ef", "-Z", "-R"],
        &["-u", "--udp-counters-64bit", "-b", "20M", "-R"],
        &["--rcv-timeout", "5000", "-R"],
        &["--connect-timeout", "2000", "-A", "0"],
        &["--repeating-payload", "-T", "title", "--extra-data", "more"],
        &["-u", "-b", "20M", "--dont-fragment"],
        &["-u", "-b", "1M", "-l", "16"],
    ] {
        let arguments = [&["-t", "1"], options].concat();
        client(&space, &arguments).map_err(|why| format!("{options:?}: {why:?}"))?;
    }
    Ok(())
}

fn our_options() -> Result<(), Failed> {
    let space = Space::new()?;
    let _server = space.start("iperf3", &["-s"])?;
    space.wait_for_listener(PORT)?;
    for options in [
        &["-n", "50M", "-P", "2"][..],
        &["-n", "50M", "-R"],
        &["-n", "50M", "--both"],
        &["-n", "1M", "-u", "--rate", "50mbit", "-R"],
        &["-n", "5M", "--sndbuf", "128K", "--rcvbuf", "128K", "--mss", "1000", "--nodelay"],
        &["-n", "5M", "--congestion", "reno", "--dscp", "46", "--chunk", "64K", "-R"],
        &["-n", "5M", "--mover", "sendfile", "-R", "--max-pacing", "1gbit"],
        &["-n", "5M", "--mover", "splice", "--rate", "500mbit"],
        &["-n", "100K", "-u", "--chunk", "1000", "--rate", "10mbit"],
    ] {
        let record = space.test(&[&[TARGET], options].concat());
        let record = record.map_err(|why| format!("{options:?}: {why:?}"))?;
        check(moved(&record), format!("{options:?}: {:?}", record.result))?;
    }
    let odd = ["test", TARGET, "--no-store", "-t", "1", "--sndbuf", "64K"];
    let refused = space.start(exe(), &odd)?.finish()?;
    check(refused.stderr.contains("--rcvbuf the same"), &refused.stderr)
}

/// Each gets its own counts. iperf3's own server takes one client at a time.
fn together() -> Result<(), Failed> {
    let space = Space::new()?;
    let _server = space.serve(&[])?;
    let rates = ["10M", "20M", "30M"];
    let started = rates.iter().flat_map(|rate| {
        let tcp = ["-c", "127.0.0.1", "-J", "-t", "2", "-b", rate];
        let start = |arguments: &[&str]| space.start("iperf3", arguments);
        [start(&tcp), start(&[&tcp[..], &["-u"]].concat())]
    });
    for client in started.collect::<Vec<_>>() {
        let end = &serde_json::from_str::<Value>(&client?.finish()?.stdout)?["end"];
        let count = |name: &str| end[name]["bytes"].as_u64().unwrap_or(0);
        let (sent, received) = (count("sum_sent"), count("sum_received"));
        check(received > sent / 2 && received <= sent, format!("{sent} and {received} bytes"))?;
    }
    Ok(())
}

/// Before 3.17 it knows the old padding only, which it takes no longer since.
fn is_old() -> bool {
    PEER.release() < Some((3, 17))
}

fn users_here() -> Result<(), Failed> {
    let space = Space::new()?;
    let (users, key) = (space.file("users", USERS)?, space.file("key", PRIVATE)?);
    let public = space.file("public", PUBLIC)?;
    let options = ["--users-file", &users, "--rsa-private-key", &key, "--pkcs1-padding"];
    let _server = space.serve(&options[..if is_old() { 5 } else { 4 }])?;
    let log_in = |password: &str| {
        let arguments =
            ["-c", "127.0.0.1", "-t", "1", "--username", "mario", "--rsa-public-key-path", &public];
        space.start_with("iperf3", &arguments, &[("IPERF3_PASSWORD", password)])?.finish()
    };
    let right = log_in("rossi")?;
    check(right.status.success(), &right.stderr)?;
    let wrong = log_in("verdi")?;
    check(wrong.stderr.contains("test authorization failed"), &wrong.stderr)
}

fn users_there() -> Result<(), Failed> {
    let space = Space::new()?;
    let (users, key) = (space.file("users", USERS)?, space.file("key", PRIVATE)?);
    let public = space.file("public", PUBLIC)?;
    let _server = space.start(
        "iperf3",
        &["-s", "--rsa-private-key-path", &key, "--authorized-users-path", &users],
    )?;
    space.wait_for_listener(PORT)?;
    let log_in = |password: &str| {
        let file = space.file("password", password)?;
        let arguments = [
            "test",
            TARGET,
            "-t",
            "1",
            "--no-store",
            "--username",
            "mario",
            "--password-file",
            &file,
        ];
        let key = ["--rsa-public-key", &public, "--pkcs1-padding"];
        let key = &key[..if is_old() { 3 } else { 2 }];
        space.start(exe(), &[&arguments[..], key].concat())?.finish()
    };
    let wrong = log_in("verdi\n")?;
    // 3.22 hangs up without a word, on its own client as well.
    let why = ["password is wrong", "closed the connection after the user name and password"];
    check(why.iter().any(|why| wrong.stderr.contains(why)), &wrong.stderr)?;
    let right = log_in("rossi\n")?;
    check(right.status.success(), &right.stderr)
}

fn killed_client() -> Result<(), Failed> {
    for (signal, complaint) in [(Signal::KILL, "ended: "), (Signal::INT, "disconnected after 0")] {
        let space = Space::new()?;
        // With room for one: the killed one's has to be free.
        let mut server = space.serve(&["--exclusive"])?;
        let arguments = ["-c", "127.0.0.1", "-t", "60", "-i", "0.1", "--forceflush"];
        let mut killed = space.start("iperf3", &arguments)?;
        killed.wait_for_line("bits/sec")?;
        killed.signal(signal)?;
        killed.finish()?;
        server.wait_for_complaint(complaint)?;
        client(&space, &["-t", "1"])?;
    }
    Ok(())
}

fn killed_server() -> Result<(), Failed> {
    // Which of its connections breaks first, a flow or the conversation, decides on the words.
    for (signal, wanted) in [
        (Signal::KILL, ["closed the connection", "broke the connection while"]),
        (Signal::INT, ["interrupted", "broke the connection while"]),
    ] {
        let space = Space::new()?;
        let server = space.start("iperf3", &["-s"])?;
        space.wait_for_listener(PORT)?;
        let arguments = ["test", TARGET, "-t", "60", "-i", "0.1", "--no-store", "--json-stream"];
        let mut ours = space.start(exe(), &arguments)?;
        ours.wait_for_line("interval")?;
        server.signal(signal)?;
        let ended = ours.finish()?;
        let is_printed = wanted.iter().any(|words| ended.stderr.contains(words));
        check(!ended.status.success() && is_printed, &ended.stderr)?;
    }
    Ok(())
}

fn refusals() -> Result<(), Failed> {
    let space = Space::new()?;
    let _server = space.serve(&["--max-duration", "5", "--max-rate", "1gbit"])?;
    for (arguments, wanted) in [
        // Versions from before this limit report its number only.
        (&["-t", "6"][..], ["int_errno=37", "exceeds the server's maximum"]),
        (&["-t", "1", "-b", "2G"], ["larger than server limit", "larger than the server's limit"]),
        (&["--sctp"], ["SCTP", "SCTP"]),
    ] {
        let all = [&["-c", "127.0.0.1"], arguments].concat();
        let finished = space.start("iperf3", &all)?.finish()?;
        let said = finished.stdout + &finished.stderr;
        let is_printed = wanted.iter().any(|wanted| said.contains(wanted));
        check(is_printed, format!("{arguments:?}: {said}"))?;
    }
    Ok(())
}
