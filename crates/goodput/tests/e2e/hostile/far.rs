//! Servers that lie, flood or stall: `goodput test` ends with a clear message, and never panics.

use std::io::Write;
use std::net::TcpListener;
use std::process::Output;

use serde_json::{Value, json};

use super::raw_peer::{RawPeer, host};
use crate::common::{Home, stderr, stdout};

/// Runs `goodput test` with `arguments` against a server that behaves so.
fn against(arguments: &[&str], behave: fn(&mut Far)) -> Output {
    let listener = TcpListener::bind("127.0.0.1:0").expect("loopback has a free port");
    let address = listener.local_addr().expect("it is bound");
    let server = std::thread::spawn(move || {
        let (stream, _) = listener.accept().expect("goodput connects");
        behave(&mut Far { control: RawPeer::on(stream, address), listener });
    });
    let address = address.to_string();
    let mut all = vec!["test", &address, "--no-store"];
    all.extend(arguments);
    let output = Home::new().run(&all);
    // A server that goodput hung up on may have failed to say the rest.
    let _ = server.join();
    assert!(!stderr(&output).contains("panicked"), "{}", stderr(&output));
    output
}

/// A server under the test's control.
struct Far {
    control: RawPeer,
    listener: TcpListener,
}

impl Far {
    fn greet(&mut self, version: u32, name: &str) {
        self.control.preamble();
        self.control.hear();
        self.control.send(b"goodputc");
        self.control.say(&json!({ "hello": { "version": version, "host": host(name) } }));
    }

    /// Up to payload that moves on one flow, which is read by nobody.
    fn run(&mut self) -> std::net::TcpStream {
        self.greet(1, "far");
        self.control.hear_of(&["propose"]);
        let cookies = ["00112233445566778899aabbccddeeff"];
        let accept = json!({ "measurement": 1, "cookies": cookies, "longest_s": 1e308 });
        self.control.say(&json!({ "accept": accept }));
        let (flow, _) = self.listener.accept().expect("goodput opens its flow");
        self.control.say(&json!({ "flows-ready": { "measurement": 1 } }));
        self.control.hear_of(&["begin"]);
        flow
    }

    fn sample(&mut self, at_s: f64, received_bytes: u64, flows: Value) {
        self.control.say(&sample(at_s, received_bytes, flows));
    }

    fn report(&mut self, after: Value) {
        let before = json!({ "facts": {}, "missing": {} });
        let end = json!({ "host": host("far"), "before": before, "after": after, "samples": [] });
        self.control.say(&json!({ "report": { "measurement": 1, "end": end } }));
    }
}

/// The message with a sample of the only measurement.
fn sample(at_s: f64, received_bytes: u64, flows: Value) -> Value {
    let sample =
        json!({ "at_s": at_s, "sent_bytes": 0, "received_bytes": received_bytes, "flows": flows });
    json!({ "sample": { "measurement": 1, "sample": sample } })
}

/// A flow whose every counter is as large as counters get.
fn full_flow() -> Value {
    let most = u64::MAX;
    json!({
        "flow": 0, "role": "receiver", "bytes": most, "blocked_us": most, "paced_us": most,
        "calls": most, "cpu_us": most, "queued_bytes": most,
        "tcp": { "length_bytes": 232, "rtt_us": most, "bytes_retrans": most, "min_rtt_us": most },
        "memory": { "missing": "none\u{1b}[2J" },
    })
}

#[test]
fn another_version_is_named_by_both_numbers() {
    let output = against(&[], |far| far.greet(9, "far"));
    assert_eq!(output.status.code(), Some(2));
    let text = stderr(&output);
    assert!(text.contains("version 9") && text.contains("version 1"), "{text}");
}

#[test]
fn a_name_and_a_reason_cannot_paint_the_screen() {
    let output = against(&[], |far| {
        far.greet(1, &format!("evil\n\u{1b}[2Jgoodput 99 Gbit/s{}", "y".repeat(3000)));
        far.control.hear_of(&["propose"]);
        let why = format!("no\n\u{1b}[31mway{}", "z".repeat(40_000));
        far.control.say(&json!({ "refuse": { "measurement": 1, "why": why } }));
        far.control.hear_of(&["goodbye"]);
    });
    assert_eq!(output.status.code(), Some(2));
    for text in [stdout(&output), stderr(&output)] {
        // Nothing is printed on standard output before an error.
        assert!(!text.contains('\u{1b}') && text.lines().count() <= 1, "{text}");
        assert!(text.len() < 3000, "{} bytes", text.len());
    }
}

#[test]
fn a_report_of_absurd_counters_is_survived() {
    let output = against(&["-t", "1"], |far| {
        let _flow = far.run();
        for tenth in 0..10u32 {
            let at_s = f64::from(tenth) / 10.0;
            far.sample(at_s, u64::MAX, json!([full_flow(), full_flow()]));
        }
        far.control.hear_of(&["finish"]);
        let facts = ["process.user_us", "process.system_us", "cpu.idle_us", "cpu.iowait_us"];
        let facts: serde_json::Map<_, _> =
            facts.iter().map(|name| (name.to_string(), json!(u64::MAX))).collect();
        far.report(json!({ "facts": facts, "missing": { "x\u{1b}": "y\n" } }));
        far.control.hear_of(&["goodbye"]);
    });
    assert!(
        matches!(output.status.code(), Some(0 | 2)),
        "{:?}: {}",
        output.status,
        stderr(&output)
    );
    assert!(!stdout(&output).contains('\u{1b}'), "{}", stdout(&output));
}

#[test]
fn samples_without_end_are_cut_off() {
    let output = against(&["-t", "30"], |far| {
        let _flow = far.run();
        let mut flow = full_flow();
        flow["memory"]["missing"] = json!("x".repeat(4 << 20));
        let sample = sample(1.0, 1, json!([flow]));
        far.control.flood(&sample, 4 << 30);
    });
    assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
    assert!(stderr(&output).contains("2048 KiB a second"), "{}", stderr(&output));
}

#[test]
fn pings_without_end_are_cut_off() {
    let output = against(&["-t", "30"], |far| {
        let _flow = far.run();
        far.control.flood(&json!({ "ping": {} }), 1 << 30);
    });
    assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
}

#[test]
fn a_server_that_stalls_is_given_up_in_time() {
    let output = against(&[], |far| {
        far.greet(1, "far");
        far.control.hear_of(&["goodbye"]);
    });
    assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
    assert!(stderr(&output).contains("neither accepts nor refuses"), "{}", stderr(&output));
}

/// The far end sees a broken connection only, and may say so before this end has noticed its own failure.
#[test]
fn what_broke_a_flow_here_is_named_even_if_the_far_end_refuses_first() {
    let output = against(&["-t", "30", "-R", "--sink", "/dev/full"], |far| {
        let mut flow = far.run();
        let why = "flow 0: the peer broke the connection";
        far.control.say(&json!({ "refuse": { "measurement": 1, "why": why } }));
        // The peer stops reading at the first chunk that it can't write.
        let _ = flow.write_all(&vec![0; 4 << 20]);
        far.control.hear_of(&["goodbye"]);
    });
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("No space left on device"), "{}", stderr(&output));
}
