//! Compares lines and keys with those of the real programs.

use std::collections::BTreeSet;

use goodput_model::{Direction, Transport};
use serde_json::Value;

use super::made_up::{Far, Made};
use crate::formats::{Intervals, Style, find, print};

/// What iperf 3.12 printed.
const KEYS: &str = include_str!("iperf3-3.12.keys");

/// Additional keys that 3.22 printed.
const LATER_KEYS: [&str; 4] = [
    "start.timestamp.timemillisecs",
    "start.test_start.gso",
    "start.test_start.gro",
    "start.cookie",
];

fn printed(format: &str, made: Made) -> String {
    let style = Style { intervals: Intervals::All, ..Style::default() };
    print(find(format).unwrap(), &made.record(), style)
}

fn keys(value: &Value, path: &str, found: &mut BTreeSet<String>) {
    match value {
        Value::Object(fields) => {
            let dot = if path.is_empty() { "" } else { "." };
            fields.iter().for_each(|(key, v)| keys(v, &format!("{path}{dot}{key}"), found));
        }
        Value::Array(all) => all.iter().for_each(|v| keys(v, &format!("{path}[]"), found)),
        _ => _ = found.insert(path.into()),
    }
}

/// The kind of record that a run of iperf3 with these options makes.
fn made(options: &str) -> Made {
    let has = |option: &str| options.split(' ').any(|o| o == option);
    Made {
        transport: if has("-u") { Transport::Udp } else { Transport::Tcp },
        direction: match (has("-R"), has("--bidir")) {
            (true, _) => Direction::Reverse,
            (_, true) => Direction::Both,
            _ => Direction::Send,
        },
        flows: if has("-P") { 2 } else { 1 },
        far: Far::Reported,
        ..Made::plain()
    }
}

#[test]
fn no_key_of_iperf3_is_missing() {
    let mut sections = 0;
    for section in KEYS.split("\n\n# ").skip(1) {
        let (options, wanted) = section.split_once('\n').unwrap();
        let tree: Value = serde_json::from_str(&printed("iperf3", made(options))).unwrap();
        let mut found = BTreeSet::new();
        keys(&tree, "", &mut found);
        let wanted = wanted.lines().chain(LATER_KEYS);
        let missing: Vec<_> = wanted.filter(|key| !found.contains(*key)).collect();
        assert!(missing.is_empty(), "{options}: {missing:?}");
        sections += 1;
    }
    assert_eq!(sections, 8);
}

#[test]
fn what_only_the_sender_sees_is_0_where_this_end_receives() {
    let made = Made { direction: Direction::Reverse, far: Far::Reported, ..Made::plain() };
    let tree: Value = serde_json::from_str(&printed("iperf3", made)).unwrap();
    let sender = &tree["end"]["streams"][0]["sender"];
    for key in ["max_snd_cwnd", "max_snd_wnd", "max_rtt", "min_rtt", "mean_rtt", "reorder"] {
        assert_eq!(sender[key], 0, "{key}");
    }
}

#[test]
fn without_intervals_iperf3_has_one_of_all() {
    let style = Style { intervals: Intervals::None, ..Style::default() };
    let record = Made::plain().record();
    let tree: Value =
        serde_json::from_str(&print(find("iperf3").unwrap(), &record, style.clone())).unwrap();
    let intervals = tree["intervals"].as_array().unwrap();
    assert_eq!(intervals.len(), 1);
    assert_eq!(intervals[0]["sum"]["bytes"], tree["end"]["sum_sent"]["bytes"]);
    let text = print(find("iperf3-text").unwrap(), &record, style);
    assert!(
        text.contains("[  5]   0.00-2.00   sec  1.91 MBytes  8.00 Mbits/sec    4   14.1 KBytes")
    );
}

#[test]
fn iperf3_has_each_count_where_it_belongs() {
    let tree: Value = serde_json::from_str(&printed("iperf3", Made::plain())).unwrap();
    assert_eq!(tree["start"]["connected"][0]["local_port"], 40000);
    assert_eq!(tree["start"]["timestamp"]["time"], "Fri, 02 Jan 2026 03:04:05 GMT");
    let interval = &tree["intervals"][1]["streams"][0];
    assert_eq!((&interval["bytes"], &interval["retransmits"]), (&1_000_000.into(), &2.into()));
    assert_eq!(interval["snd_cwnd"], 14480);
    let stream = &tree["end"]["streams"][0];
    assert_eq!(stream["sender"]["bits_per_second"], 8e6);
    assert_eq!(
        (&stream["sender"]["max_rtt"], &stream["sender"]["min_rtt"]),
        (&1004.into(), &1000.into())
    );
    assert_eq!(stream["receiver"]["bytes"], 2_000_000);
    assert_eq!(tree["end"]["cpu_utilization_percent"]["host_user"], 40.5 / 4.0);
    assert_eq!(tree["end"]["cpu_utilization_percent"]["remote_total"], 20.25);
}

#[test]
fn what_the_far_end_did_not_report_is_left_out_of_iperf3() {
    let silent = Made { far: Far::Silent, ..Made::plain() };
    let tree: Value = serde_json::from_str(&printed("iperf3", silent)).unwrap();
    assert_eq!(tree["end"]["sum_sent"]["bytes"], 2_000_000);
    assert!(tree["end"]["sum_received"].get("bytes").is_none());
    let text = printed("iperf3-text", silent);
    assert!(text.contains("[  5] (receiver statistics not available)\n"), "{text}");
}

#[test]
fn iperf3_tables_are_those_of_3_12() {
    let expected = "\
Connecting to host 192.0.2.7, port 6201
[  5] local 192.0.2.1 port 40000 connected to 192.0.2.7 port 6201
[ ID] Interval           Transfer     Bitrate         Retr  Cwnd
[  5]   0.00-1.00   sec   977 KBytes  8.00 Mbits/sec    2   14.1 KBytes       
[  5]   1.00-2.00   sec   977 KBytes  8.00 Mbits/sec    2   14.1 KBytes       
- - - - - - - - - - - - - - - - - - - - - - - - -
[ ID] Interval           Transfer     Bitrate         Retr
[  5]   0.00-2.00   sec  1.91 MBytes  8.00 Mbits/sec    4             sender
[  5]   0.00-2.00   sec  1.91 MBytes  8.00 Mbits/sec                  receiver

iperf Done.
";
    assert_eq!(printed("iperf3-text", Made::plain()), expected);
    let udp = Made { transport: Transport::Udp, ..Made::plain() };
    let text = printed("iperf3-text", udp);
    assert!(text.contains("8.00 Mbits/sec  0.005 ms  4/400 (1%)  receiver\n"), "{text}");
    assert!(text.contains("8.00 Mbits/sec  200  \n"), "{text}");
}

#[test]
fn nuttcp_lines_are_those_of_6_1_2() {
    let expected = "    0.9537 MB /   1.00 sec =    8.0000 Mbps     2 retrans\n    \
                    0.9537 MB /   1.00 sec =    8.0000 Mbps     2 retrans\n\n    \
                    1.9073 MB /   2.00 sec =    8.0000 Mbps 40 %TX 12 %RX 4 retrans 1.00 msRTT\n";
    let reported = Made { far: Far::Reported, ..Made::plain() };
    assert_eq!(printed("nuttcp", reported), expected);
    let udp = Made { transport: Transport::Udp, far: Far::Reported, ..Made::plain() };
    let line = "megabytes=1.9073 real_seconds=2.00 rate_Mbps=8.0000 tx_cpu=40 rx_cpu=12 drop=4 \
                pkt=400 data_loss=1.00000 rtt_ms=1.00\n";
    let text = printed("nuttcp-parse", udp);
    assert!(text.ends_with(line), "{text}");
}

#[test]
fn iperf2_rows_name_the_sender_first() {
    let text = printed("iperf2-csv", Made { direction: Direction::Reverse, ..Made::plain() });
    let rows: Vec<_> = text.lines().map(|row| row.split_once(',').unwrap().1).collect();
    let expected = [
        "192.0.2.7,6201,192.0.2.1,40000,1,0.0-1.0,1000000,8000000",
        "192.0.2.7,6201,192.0.2.1,40000,1,1.0-2.0,1000000,8000000",
        "192.0.2.7,6201,192.0.2.1,40000,1,0.0-2.0,2000000,8000000",
    ];
    assert_eq!(rows, expected);
    let udp = Made { transport: Transport::Udp, ..Made::plain() };
    let text = printed("iperf2-csv", udp);
    assert!(text.ends_with("1,0.0-2.0,2000000,8000000,0.005,4,400,1.000,0\n"), "{text}");
    let text = printed("iperf2-text", udp);
    assert!(
        text.ends_with(
            "[  1] Server Report:\n\
         [ ID] Interval       Transfer     Bandwidth        Jitter   Lost/Total Datagrams\n\
         [  1] 0.0000-2.0000 sec  1.91 MBytes  8.00 Mbits/sec   0.005 ms 4/400 (1%)\n"
        ),
        "{text}"
    );
}

#[test]
fn ttcp_counts_kilobytes_of_1024() {
    let text = printed("ttcp", Made::plain());
    let line = "ttcp-t: 2000000 bytes in 2.00 real seconds = 976.56 KB/sec +++\n\
                ttcp-t: 16 I/O calls, msec/call = 125.00, calls/sec = 8.00\n";
    assert!(text.contains(line), "{text}");
}
